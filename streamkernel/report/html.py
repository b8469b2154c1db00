"""The report as one HTML file: panels drawn by Bokeh, its library inside, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from bokeh.embed import components
from bokeh.resources import Resources

from streamkernel.estimators import RidgeModel
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.report.calibration import distribution_check, row_intervals
from streamkernel.report.committee_panels import freedom_panel, members_panel
from streamkernel.report.costs import memory_panel, time_panel
from streamkernel.report.curves import gcv_panel, lengthscale_panel, trace_panel
from streamkernel.report.evidence import freedom_curve, lengthscales, member_weights, tuning_path
from streamkernel.report.facts import gcv_curve, lengthscale_curve, memory_use, sweep_times, trace_curve
from streamkernel.report.gaussian_tables import (
    calibration_notice,
    gaussian_cards,
    gaussian_headline,
    gaussian_settings,
)
from streamkernel.report.notices import notices
from streamkernel.report.page import Section, assemble
from streamkernel.report.pairs import check_pairs
from streamkernel.report.panels import Panel
from streamkernel.report.predictions import prediction_panels
from streamkernel.report.publish import checked_output, publish_file
from streamkernel.report.tables import Card, Table, cards, headline, settings_tables, target_table
from streamkernel.report.tuning_panels import lengthscales_panel, tuning_panels
from streamkernel.report.uncertainty_panels import distribution_panels, rows_panel
from streamkernel.report.words import plain

__all__ = ["Group", "render", "whole_page", "write_html"]


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
    if not isinstance(model, RidgeModel):
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
                lengthscale_panel(lengthscale_curve(model), standardised=model.config.get("scaler") is not None),
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
        model.config,
    )


def _render_gaussian(model: PredictingModel, title: str | None, pairs: Mapping[str, Any] | None) -> str:
    """The page of a model that predicts distributions."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    kind, lead = gaussian_headline(model)
    errors = target_table(checked)
    standardised = model.config.get("scaler") is not None
    parameters = [
        *tuning_panels(tuning_path(model)),
        *lengthscales_panel(lengthscales(model), standardised=standardised),
    ]
    if (model.config.get("lengthscale_choice") or {}).get("grid"):
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
        model.config,
    )


@dataclass(frozen=True)
class Group:
    """Panels, and tables below them, under one heading."""

    title: str
    panels: Sequence[Panel]
    tables: Sequence[Table] = ()


def whole_page(
    title: str,
    lead: str,
    numbers: Sequence[Card],
    warnings: Sequence[str],
    groups: Sequence[Group],
    settings: Sequence[Table],
    config: Mapping[str, Any],
) -> str:
    """Draw the panels of all groups and put them on one page; `config` tells with which version the work was done."""
    figures = {panel.name: panel.figure for group in groups for panel in group.panels if panel.figure is not None}
    script, drawn = components(figures, wrap_script=False) if figures else ("", {})
    # Only the core library: neither widgets nor WebGL nor the typesetter, which would be fetched.
    library = Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw
    return assemble(
        title,
        lead,
        numbers,
        warnings,
        [Section(group.title, group.panels, drawn, group.tables) for group in groups],
        settings,
        ["\n".join(library), script] if figures else [],
        f"Made by streamkernel {plain((config.get('software') or {}).get('streamkernel', ''))}. "
        "This page is complete in itself and sends nothing anywhere.",
    )
