"""Sections and warnings that pages of several kinds share."""

from __future__ import annotations

from streamkernel.models.predicting import PredictingModel
from streamkernel.report.facts.fit import Absent, Recorded, TraceCurve, memory_use, sweep_times, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.figures.costs import memory_figure, time_figure
from streamkernel.report.figures.predictions import prediction_figures
from streamkernel.report.pages.tables import Section, memory_notice, target_table
from streamkernel.report.text import percent


def prediction_section(pairs: Targets | ClassPairs | Absent) -> Section:
    """Predicted against true values."""
    errors = target_table(pairs)
    return Section("Predictions", prediction_figures(pairs), [] if errors is None else [errors])


def cost_section(model: Recorded, between: str = "picking, algebra, check") -> Section:
    """Time and memory; `between` names the work between sweeps."""
    return Section("Cost", [time_figure(sweep_times(model), between), memory_figure(memory_use(model))])


def fit_notices(model: PredictingModel) -> list[str]:
    """Warnings about the basis and the memory of any fit."""
    rising = _rising(trace_curve(model))
    return [*([rising] if rising else []), *memory_notice(memory_use(model))]


def _rising(curve: TraceCurve | Absent) -> str:
    if isinstance(curve, Absent) or not curve.left > 2.0 * float(curve.relative.min()):
        return ""
    return (
        f"The residual trace rises after its least value, {percent(float(curve.relative.min()))}: beyond there it is "
        "rounding, and so are the last basis functions. A smaller basis or lengthscale does as well."
    )
