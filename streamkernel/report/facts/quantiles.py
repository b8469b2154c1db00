"""Quantiles beside the targets of some rows, and the share of the targets below each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ShapeMismatchError
from streamkernel.models.margins import MarginModel, QuantileModel
from streamkernel.reductions.scores import QuantileCalibration, score_quantiles
from streamkernel.report.facts.fit import Absent, target_names
from streamkernel.report.facts.pairs import checked_rows
from streamkernel.type_aliases import FieldsView, Float

_MOST_ROWS = 60  # drawn with their quantiles


@dataclass(frozen=True)
class QuantileCheck:
    """Quantiles of K levels for the check rows.

    Attributes
    ----------
    rows, where : as in `Targets`.
    name : name of the target.
    count : number of rows, of equal weight that tell as much.
    calibration : scores on all of them.
    true, quantiles : (k,) targets and (k, K) quantiles of some rows, by ascending quantile of the middle level.
    """

    rows: str
    where: str
    name: str
    count: int
    calibration: QuantileCalibration
    true: Float
    quantiles: Float

    @property
    def levels(self) -> Float:
        """(K,) levels."""
        return self.calibration.levels


def quantile_check(model: MarginModel, pairs: FieldsView | None = None) -> QuantileCheck | Absent | None:
    """Quantiles of the model's check rows, or those of `pairs`; None for other models.

    Raises
    ------
    ParameterError, ShapeMismatchError
        `pairs` lacks a part, or does not fit the model.
    """
    if not isinstance(model, QuantileModel):
        return None
    checked = checked_rows(model, pairs)
    if isinstance(checked, Absent):
        return checked
    values = np.asarray(pairs["quantiles"] if pairs and "quantiles" in pairs else model.arrays.get("check_quantiles"))
    if pairs and "quantiles" not in pairs:
        return Absent("the rows were given without their quantiles")
    true = np.asarray(checked.true, dtype=np.float64).ravel()
    if values.shape != (len(true), len(model.levels)):
        raise ShapeMismatchError(
            f"quantiles have shape {values.shape}, for {len(true)} rows and {len(model.levels)} levels; give "
            f"({len(true)}, {len(model.levels)})"
        )
    finite = np.isfinite(true) & np.isfinite(values).all(axis=1)
    if not finite.any():
        return Absent("no row has finite quantiles")
    true, values, levels, weights = true[finite], values[finite], np.array(model.levels), checked.equal_rows(finite)
    order = np.argsort(values[:, int(np.argmin(np.abs(levels - 0.5)))], kind="stable")
    few = np.unique(np.linspace(0, len(order) - 1, min(len(order), _MOST_ROWS)).round().astype(np.int64))
    drawn = order[few]
    return QuantileCheck(
        checked.rows,
        checked.where,
        target_names(model)[0],
        len(true) if weights is None else max(1, round(float(weights.sum()))),
        score_quantiles(true, values, levels, weights),
        true[drawn],
        values[drawn],
    )
