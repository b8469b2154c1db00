"""The page of a matching pursuit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkernel.models.pursuit import PursuitModel
from streamkernel.report.facts.calibration import distribution_check
from streamkernel.report.facts.fit import Absent, TraceCurve, lengthscale_curve, memory_use, sweep_times, trace_curve
from streamkernel.report.facts.pairs import check_pairs
from streamkernel.report.facts.pursuit import (
    error_rates,
    error_words,
    loss_curve,
    pursuit_bound,
    squared_errors,
    weakness,
)
from streamkernel.report.figures.calibration import distribution_panels
from streamkernel.report.figures.costs import memory_panel, time_panel
from streamkernel.report.figures.fit import lengthscale_panel, trace_panel
from streamkernel.report.figures.predictions import prediction_panels
from streamkernel.report.figures.pursuit import (
    error_panel,
    loss_panel,
    pursuit_bound_panel,
    rate_panel,
    weakness_panel,
)
from streamkernel.report.pages.notices import memory_notice
from streamkernel.report.pages.pursuit import pursuit_cards, pursuit_headline, pursuit_notices, pursuit_settings
from streamkernel.report.pages.tables import target_table
from streamkernel.report.text import plain
from streamkernel.report.whole import Group, whole_page

__all__ = ["render_pursuit"]

_THEOREM = "Hussain & Shawe-Taylor, Theorem 3"


def render_pursuit(model: PursuitModel, title: str | None, pairs: Mapping[str, Any] | None) -> str:
    """The page as text."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    kind, lead = pursuit_headline(model)
    errors = target_table(checked)
    standardised = model.record.scaler is not None
    losses = loss_panel(loss_curve(model))
    by_error = model.record.settings.choose_by == "error"
    path = [
        *(losses or [error_panel(squared_errors(model), chose=not by_error)]),
        *rate_panel(error_rates(model), error_words(model), chose=by_error),
        pursuit_bound_panel(pursuit_bound(model), _THEOREM),
        weakness_panel(weakness(model)),
    ]
    groups = [
        Group("Path", path),
        Group(
            "Functions",
            [trace_panel(_trace(model)), lengthscale_panel(lengthscale_curve(model), standardised=standardised)],
        ),
        Group("Predictions", prediction_panels(checked), [] if errors is None else [errors]),
        Group("Probabilities", distribution_panels(check)),
        Group("Cost", [time_panel(sweep_times(model)), memory_panel(memory_use(model))]),
    ]
    return whole_page(
        plain(title, 200) if title is not None else kind,
        lead,
        pursuit_cards(model, checked, check),
        [*pursuit_notices(model), *memory_notice(memory_use(model))],
        [group for group in groups if group.panels],
        pursuit_settings(model),
        model.record,
    )


def _trace(model: PursuitModel) -> TraceCurve | Absent:
    if not model.basis.kernel.positive_definite:
        return Absent("the kernel is not positive definite, and has no features whose trace a basis could explain")
    return trace_curve(model)
