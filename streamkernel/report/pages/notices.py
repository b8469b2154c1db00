"""Warnings to read before trusting the report: one sentence each, none if all is well."""

from __future__ import annotations

import numpy as np

from streamkernel.engine import format_bytes
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.report.facts.fit import Absent, Memory, TraceCurve, gcv_error, memory_use, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.text import percent, significant

__all__ = ["memory_notice", "notices"]

_FAR_ABOVE = 1.5  # times the GCV error: more than the scatter of some hundred rows can explain
_FEW_ROWS = 100


def notices(model: PredictingModel, pairs: Targets | ClassPairs | Absent) -> list[str]:
    """Sentences about facts that look wrong."""
    found = [
        *([_lost_digits(model), _held_out(model, pairs)] if isinstance(model, RidgeModel) else []),
        _rising(trace_curve(model)),
        *memory_notice(memory_use(model)),
    ]
    return [notice for notice in found if notice]


def _lost_digits(model: RidgeModel) -> str:
    score = model.record.solution.gcv
    if score != 0.0 or not (np.asarray(model.arrays["sum_YY"]).diagonal() > 0.0).any():
        return ""
    return (
        "The GCV error is 0 to rounding. Unless the basis holds the targets without noise, digits were lost in the "
        "sums: give a larger alpha or a smaller lengthscale."
    )


def _held_out(model: RidgeModel, pairs: Targets | ClassPairs | Absent) -> str:
    if not isinstance(pairs, Targets) or pairs.where == "training rows" or len(pairs.targets) != 1:
        return ""
    target = pairs.targets[0]
    expected = float(gcv_error(model, model.record.solution.gcv)[0])
    if len(target.true) < _FEW_ROWS or not np.isfinite(expected) or target.rmse <= _FAR_ABOVE * expected:
        return ""
    return (
        f"The RMSE on {pairs.where}, {significant(target.rmse)}, is far above the GCV error, {significant(expected)}: "
        "these rows differ from those of the fit (are the rows sorted?), or the fit has lost digits."
    )


def _rising(curve: TraceCurve | Absent) -> str:
    if isinstance(curve, Absent) or not curve.left > 2.0 * float(curve.relative.min()):
        return ""
    return (
        f"The residual trace rises after its least value, {percent(float(curve.relative.min()))}: beyond there it is "
        "rounding, and so are the last basis functions. A smaller basis or lengthscale does as well."
    )


def memory_notice(memory: Memory | Absent) -> list[str]:
    """A sentence if the measured memory exceeds the promised memory."""
    if isinstance(memory, Absent) or memory.measured <= memory.promised:
        return []
    return [
        f"Memory went over what was promised: {format_bytes(memory.measured)} against {format_bytes(memory.promised)}."
    ]
