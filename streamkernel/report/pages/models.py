"""The report as one HTML file: Bokeh draws the panels, its library is in the file, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from streamkernel.models import RidgeModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.report.facts.calibration import distribution_check, row_intervals
from streamkernel.report.facts.fit import gcv_curve, lengthscale_curve, memory_use, sweep_times, trace_curve
from streamkernel.report.facts.pairs import check_pairs
from streamkernel.report.facts.tuning import freedom_curve, lengthscales, member_weights, tuning_path
from streamkernel.report.figures.calibration import distribution_panels, rows_panel
from streamkernel.report.figures.committee import freedom_panel, members_panel
from streamkernel.report.figures.costs import memory_panel, time_panel
from streamkernel.report.figures.fit import gcv_panel, lengthscale_panel, trace_panel
from streamkernel.report.figures.predictions import prediction_panels
from streamkernel.report.figures.tuning import lengthscales_panel, tuning_panels
from streamkernel.report.pages.gaussian import (
    TunedModel,
    calibration_notice,
    gaussian_cards,
    gaussian_headline,
    gaussian_settings,
)
from streamkernel.report.pages.notices import notices
from streamkernel.report.pages.tables import cards, headline, settings_tables, target_table
from streamkernel.report.publish import checked_output, publish_file
from streamkernel.report.pursuit_page import render_pursuit
from streamkernel.report.text import plain
from streamkernel.report.whole import Group, whole_page

__all__ = ["render", "write_html"]


def write_html(
    model: PredictingModel,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
    pairs: Mapping[str, Any] | None = None,
) -> None:
    """See `streamkernel.report.write_report`."""
    target = checked_output(path, overwrite=overwrite)
    publish_file(target, render(model, title=title, pairs=pairs).encode(), overwrite=overwrite)


def render(model: PredictingModel, *, title: str | None = None, pairs: Mapping[str, Any] | None = None) -> str:
    """The page as text."""
    if isinstance(model, PursuitModel):
        return render_pursuit(model, title, pairs)
    if not isinstance(model, RidgeModel):
        assert isinstance(model, TunedModel)
        return _render_gaussian(model, title, pairs)
    checked = check_pairs(model, pairs)
    kind, lead = headline(model)
    errors = target_table(checked)
    groups = [
        Group(
            "Basis and regularisation",
            [
                trace_panel(trace_curve(model)),
                gcv_panel(gcv_curve(model)),
                lengthscale_panel(lengthscale_curve(model), standardised=model.record.scaler is not None),
            ],
        ),
        Group("Predictions", prediction_panels(checked), [] if errors is None else [errors]),
        Group("Cost", [time_panel(sweep_times(model)), memory_panel(memory_use(model))]),
    ]
    return whole_page(
        plain(title, 200) if title is not None else kind,
        lead,
        cards(model, checked),
        notices(model, checked),
        groups,
        settings_tables(model),
        model.record,
    )


def _render_gaussian(model: TunedModel, title: str | None, pairs: Mapping[str, Any] | None) -> str:
    """The page of a model that predicts distributions."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    kind, lead = gaussian_headline(model)
    errors = target_table(checked)
    standardised = model.record.scaler is not None
    parameters = [
        *tuning_panels(tuning_path(model)),
        *lengthscales_panel(lengthscales(model), standardised=standardised),
    ]
    choice = model.record.lengthscale_choice
    if choice is not None and choice.grid:
        parameters.append(lengthscale_panel(lengthscale_curve(model), standardised=standardised))
    groups = [
        Group("Hyper-parameters", parameters),
        Group("Basis", [trace_panel(trace_curve(model)), *freedom_panel(freedom_curve(model))]),
        Group("Committee", members_panel(member_weights(model))),
        Group("Predictions", prediction_panels(checked), [] if errors is None else [errors]),
        Group("Uncertainty", [*rows_panel(row_intervals(model, pairs)), *distribution_panels(check)]),
        Group("Cost", [time_panel(sweep_times(model)), memory_panel(memory_use(model))]),
    ]
    return whole_page(
        plain(title, 200) if title is not None else kind,
        lead,
        gaussian_cards(model, checked, check),
        [*calibration_notice(check), *notices(model, checked)],
        [group for group in groups if group.panels],
        gaussian_settings(model),
        model.record,
    )
