"""Standard errors of scores, from the sums of the sweep that gives the scores.

With row weights w, ``W = sum w``, and ``m = W^2 / sum w^2`` independent rows (without weights their number), a mean
``a = sum w v / W`` of values v of rows has the standard error ::

    SE(a) = sqrt( (sum w v^2 / W  -  a^2) / m )

What is a function of such means has that of its first-order expansion (the delta method): of ``rmse = sqrt(a)`` with
``v = e^2`` it is ``SE(a) / (2 rmse)``. `relative_error` has that of targets whose errors are the same, which is the
largest it can be. The rows are taken as independent: where copies or neighbours of a row are among
them, the standard error is too small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.type_aliases import Fields, FieldsView, Float

SUFFIX = "_se"  # of the name of a score


def independent_rows(rows: FieldsView) -> float:
    """The number m of independent rows: ``effective_rows`` where there are weights, else ``rows``."""
    return float(rows.get("effective_rows", rows["rows"]))


def mean_error(mean: ArrayLike, square: ArrayLike, rows: float) -> Float:
    """``sqrt((square - mean^2) / m)``, elementwise; NaN for fewer than two rows, or where sums have overflown.

    Parameters
    ----------
    mean, square : means of v and of v^2, of one shape.
    rows : number m of independent rows.
    """
    a = np.asarray(mean, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.sqrt(np.maximum(np.asarray(square) - a * a, 0.0) / max(rows, 1.0))
    return np.where(np.isfinite(found) & (rows >= 2.0), found, np.nan)


def root_error(mean: ArrayLike, square: ArrayLike, rows: float) -> Float:
    """Standard error of ``sqrt(mean)``: ``SE(mean) / (2 sqrt(mean))``; 0 where the mean is 0."""
    root = np.sqrt(np.asarray(mean, dtype=np.float64))
    return np.asarray(mean_error(mean, square, rows) / np.where(root > 0.0, 2.0 * root, 1.0))


def relative_error(rmse: Float, errors: Float, scale: Float) -> tuple[float, float]:
    """``sqrt(mean_t (rmse_t / scale_t)^2)``, the error of targets of any units, and its standard error.

    Parameters
    ----------
    rmse, errors : (d,) root mean squared error of each target, and its standard error.
    scale : (d,) standard deviation of each target.
    """
    relative, own = rmse / scale, errors / scale
    root = float(np.sqrt((relative**2).mean()))
    return root, float((relative * own).mean() / root) if root > 0.0 else float(own.mean())


def share_error(share: ArrayLike, rows: float) -> Float:
    """Standard error of a share p of the rows: ``sqrt(p (1 - p) / m)``; NaN for fewer than two rows.

    It is at least that of one row of the other sort: that no row of m is wrong does not mean that none ever will be.
    """
    if not rows >= 2.0:
        return np.full(np.shape(share), np.nan)
    p = np.clip(np.asarray(share, dtype=np.float64), 1.0 / rows, 1.0 - 1.0 / rows)
    return np.asarray(np.sqrt(p * (1.0 - p) / rows))


def measured(name: str, values: ArrayLike, errors: ArrayLike) -> dict[str, float]:
    """The fields of a score and of its standard error: averages over targets, or over levels.

    The average of the standard errors is that of the average score where the targets of a row err together, and more
    where they do not.
    """
    return {name: float(np.asarray(values).mean()), f"{name}{SUFFIX}": float(np.asarray(errors).mean())}


def measured_each(name: str, values: Float, errors: Float) -> Fields:
    """The fields of a score in the units of the targets (d,): a number, of several targets a list of one for each."""
    if len(values) == 1:
        return measured(name, values, errors)
    return {name: values.tolist(), f"{name}{SUFFIX}": errors.tolist()}


def without_errors(scores: FieldsView) -> Fields:
    """The scores alone."""
    return {name: value for name, value in scores.items() if not name.endswith(SUFFIX)}
