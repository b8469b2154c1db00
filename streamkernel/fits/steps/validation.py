"""Alpha by errors on held-out folds, and what a model stores of these errors.

The means are those of all rows of the folds, from sums. Their standard errors need errors row by row: some rows of the
folds, which a fit has in memory, are predicted by the coefficients of their fold, which was not trained on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.records import Validation
from streamkernel.reductions import DrawnRows, Predictions, Sample, draw_rows
from streamkernel.reductions.predictions import Sigmoids
from streamkernel.reductions.scores import value_histogram
from streamkernel.selection import RowCache
from streamkernel.solvers import FoldChoice, standard_error
from streamkernel.solvers.margins.margin_calibration import platt_curves
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import AnyArray, Float

_CHECK_STREAM = (24,)
_CHECKED = 4000  # rows of validation folds whose errors are looked at one by one: their variance is known to some %
_CHECKED_BYTES, _LEAST_CHECKED = 64 << 20, 400  # of the rows among which they are
_DIFFERS = 1.02  # ratio of two root mean squared errors that a user should know of


def checked_numbers(table: Table, folds: Folds | None, seed: int) -> DrawnRows:
    """A uniform sample of rows, of which those in validation folds show how errors scatter."""
    if folds is None:
        return DrawnRows(np.zeros(0, np.int64), 0.0)
    return draw_rows(table, checked_rows(table, folds), seed, _CHECK_STREAM)


def checked_rows(table: Table, folds: Folds) -> int:
    """Number of rows of that sample; fewer where rows are wide."""
    most = max(_LEAST_CHECKED, _CHECKED_BYTES // max(1, table.stored_width * table.dtype.itemsize))
    return int(min(_CHECKED / folds.share, most, table.counted))


def held_out(sample: Sample, drawn: DrawnRows, folds: Folds) -> Sample:
    """The rows of a sample that are in validation folds, with the weights with which the drawn rows stand for all."""
    if drawn.weights is not None:
        sample = replace(sample, weights=drawn.importance)
    assert sample.keys is not None, "folds need a table with keys"
    return sample.at_positions(np.flatnonzero(folds.held_out(sample.keys)))


def fetched_held_out(cache: RowCache, drawn: DrawnRows, folds: Folds) -> Sample:
    """`held_out` of drawn rows that a cache has fetched: features are copied of these alone."""
    bare = held_out(cache.without_features(drawn.rows), drawn, folds)
    return replace(bare, X=cache.get(bare.rows).X)


@dataclass(frozen=True)
class LeftOutRows:
    """Rows of validation folds, each predicted by the fit that left its fold out.

    Attributes
    ----------
    true, predicted : (r, d) targets and their predictions.
    weights, keys : (r,) row weights, and keys of the rows' features: equal rows are in the same fold.
    """

    true: Float
    predicted: Float
    weights: Float
    keys: AnyArray

    def calibration(self) -> dict[str, Float]:
        """The arrays of Platt's curve, by which the values of indicators of classes become probabilities.

        All classes share a curve, so that the largest value always has the largest probability. For two classes it is
        the curve of the difference of the indicators, and of its negative for the first class: its offset is 0. There
        are no arrays where the curve does not rise.
        """
        f, of_class = self.predicted, self.true > 0.5
        if f.shape[1] == 2:
            f = f - f[:, ::-1]
        curve = platt_curves(value_histogram(f, of_class, self.weights).sum(axis=0, keepdims=True))
        if not curve.slope[0] > 0.0:
            return {}
        if f.shape[1] == 2:
            return Sigmoids(curve.slope, np.zeros(1)).to_arrays()
        return Sigmoids(np.repeat(curve.slope, f.shape[1]), np.repeat(curve.offset, f.shape[1])).to_arrays()


def left_out_rows(choice: FoldChoice, basis: Basis, folds: Folds, held: Sample) -> LeftOutRows:
    """Predict some rows of the validation folds by the solutions of their folds.

    Parameters
    ----------
    held : some rows of the validation folds, drawn uniformly.
    """
    assert held.keys is not None, "folds need a table with keys"
    of = folds.of(held.keys)
    positions, predicted = [np.zeros(0, np.int64)], [np.zeros((0, held.Y.shape[1]))]
    for fold, solution in zip(choice.folds, choice.solutions, strict=True):
        rows = np.flatnonzero(of == fold)
        if len(rows):
            values = Predictions(basis, basis.coefficients(solution.beta), solution.intercept)
            predicted.append(values.values(held.X[rows]))
            positions.append(rows)
    taken = held.at_positions(np.concatenate(positions))
    assert taken.keys is not None
    return LeftOutRows(taken.Y, np.concatenate(predicted), taken.weights, taken.keys)


def validation_record(
    choice: FoldChoice,
    gcv_alpha: float | None,
    rows: LeftOutRows,
    folds: Folds,
    *,
    scale: Float | None,
    classes: bool,
) -> Validation:
    """Errors on held-out folds as a model stores them.

    Parameters
    ----------
    gcv_alpha : alpha that GCV chooses; None where it is not known.
    rows : some rows of the validation folds.
    scale : (d,) squared units of the targets; None for ones.
    classes : whether targets are indicators of classes.
    """
    d = len(choice.mse)
    values = _values(rows, np.ones(d) if scale is None else scale, classes)
    mean, error, effective = standard_error(values, rows.weights, rows.keys)
    # Normal errors, where too few rows were looked at: the variance of their squares is twice the square of their mean.
    normal = math.sqrt(2.0 / max(choice.effective, 1.0)) * np.concatenate([choice.mse, [choice.error]])
    known = effective > 2.0
    # From the rows that were looked at to all rows of the folds.
    se = error[: d + 1] * math.sqrt(min(effective / choice.effective, 1.0)) if known else normal
    rmse = np.sqrt(choice.mse)
    by_alpha = dict(zip(choice.alphas.tolist(), choice.errors.tolist(), strict=True))
    gcv_error = None if gcv_alpha is None else by_alpha.get(gcv_alpha)
    wrong = (float(mean[-1]), _share_se(mean[-1], error[-1], effective)) if classes and known else (None, None)
    return Validation(
        folds=len(choice.folds),
        parts=folds.buckets,
        rows=choice.rows,
        distinct=choice.effective,
        error=choice.error,
        error_se=float(se[d]),
        rmse=tuple(rmse.tolist()),
        rmse_se=tuple((se[:d] / np.maximum(2.0 * rmse, np.finfo(np.float64).tiny)).tolist()),
        checked_rows=len(rows.weights),
        alphas=tuple(choice.alphas.tolist()),
        errors=tuple(choice.errors.tolist()),
        sizes=tuple(choice.sizes.tolist()),
        size_alphas=tuple(choice.size_alphas.tolist()),
        size_errors=tuple(choice.size_errors.tolist()),
        gcv_alpha=gcv_alpha,
        gcv_error=gcv_error,
        differs=gcv_alpha is not None and _differs(choice.error, gcv_error, float(se[d])),
        wrong=wrong[0],
        wrong_se=wrong[1],
    )


def _share_se(share: float, se: float, rows: float) -> float:
    """The standard error of a share, which is not known to be small where few rows, or none, are wrong.

    At least that with two rows more of each sort (Agresti & Coull 1998).
    """
    more = (share * rows + 2.0) / (rows + 4.0)
    return max(float(se), math.sqrt(more * (1.0 - more) / (rows + 4.0)))


def _differs(error: float, gcv_error: float | None, se: float) -> bool:
    """Whether alpha by GCV is worse on held-out rows by more than a little, and by more than two standard errors."""
    return gcv_error is None or (gcv_error > _DIFFERS**2 * error and gcv_error > error + 2.0 * se)


def _values(rows: LeftOutRows, scale: Float, classes: bool) -> Float:
    """(r, d + 2): squared errors of each target, their sum in common units, and whether the class is wrong."""
    squares = (rows.true - rows.predicted) ** 2
    wrong = (rows.predicted.argmax(axis=1) != rows.true.argmax(axis=1)) & classes
    return np.column_stack([squares, (squares / scale).sum(axis=1), wrong])


def words_of(record: Validation, alpha: float) -> list[str]:
    """Lines for the user: the error, and a choice of GCV that differs."""
    if record.wrong is not None and record.wrong_se is not None:
        error = f"share of wrong classes {record.wrong:.4g} +- {record.wrong_se:.2g}"
    elif len(record.rmse) == 1:
        error = f"RMSE {record.rmse[0]:.4g} +- {record.rmse_se[0]:.2g}"
    else:
        error = f"mean squared error {record.error:.4g} +- {record.error_se:.2g}"
    lines = [f"alpha {alpha:.6g}, {error} on held-out rows"]
    if record.differs and record.gcv_alpha is not None:
        worse = "cannot be solved for without these rows" if record.gcv_error is None else _times(record)
        lines.append(f"GCV would take alpha {record.gcv_alpha:.3g}, which {worse}: are rows repeated or related?")
    return lines


def _times(record: Validation) -> str:
    assert record.gcv_error is not None
    more = math.sqrt(record.gcv_error / record.error) if record.error > 0.0 else math.inf
    return f"has {more:.3g} times this error"
