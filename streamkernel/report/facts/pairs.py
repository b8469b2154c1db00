"""Predicted against true values, on the rows that the model stores for this, or on other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ParameterError, ShapeMismatchError
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions.scores.standard_errors import mean_error, relative_error, root_error, share_error
from streamkernel.report.facts.fit import Absent, class_names, target_names
from streamkernel.report.text import count, plain
from streamkernel.type_aliases import AnyArray, Bool, FieldsView, Float, Int

_MOST_CLASSES = 20
_PREDICTED = {"predicted", "probability"}
_NAMES = ("true", *sorted(_PREDICTED), "std")
_WHERE = {"held-out": "held-out rows", "training": "training rows"}


@dataclass(frozen=True)
class CheckedRows:
    """Some rows with known targets, unchanged.

    Attributes
    ----------
    rows, where : as in `Targets`.
    true : (rows, d), or class labels (rows,).
    values : predictions for these rows, by name: "predicted" or "probability", perhaps "std".
    weights : (rows,) weights; None where all are equal.
    """

    rows: str
    where: str
    true: AnyArray
    values: dict[str, AnyArray]
    weights: Float | None = None

    def equal_rows(self, kept: Bool) -> Float | None:
        """Weights of those of the rows that a mask keeps; None for ones.

        They sum to the number of rows of equal weight that give means of the same variance, ``(sum w)^2 / sum w^2``.
        """
        return None if self.weights is None else _equal_rows(self.weights[kept])


def _equal_rows(weights: Float) -> Float | None:
    largest = weights.max(initial=0.0)
    if not largest > 0.0:
        return None
    w = weights / largest
    return np.asarray(w * (w.sum() / (w @ w)))


@dataclass(frozen=True)
class TargetPairs:
    """One target: its finite pairs, and their scores.

    Attributes
    ----------
    rmse_se, mae_se, r2_se : standard errors of the scores, NaN where they are not known.
    r2 : share of the variance explained, NaN for a constant target.
    left_out : number of rows whose value or prediction is not finite.
    """

    name: str
    true: Float
    predicted: Float
    left_out: int
    rmse: float
    rmse_se: float
    mae: float
    mae_se: float
    r2: float
    r2_se: float

    @property
    def residual(self) -> Float:
        return self.predicted - self.true


@dataclass(frozen=True)
class Targets:
    """All targets of a regression; `rows` names the rows and their number, `where` names the rows in two words."""

    rows: str
    where: str
    targets: tuple[TargetPairs, ...]

    def relative_error(self, scales: Sequence[float]) -> tuple[float, float]:
        """`streamkernel.reductions.scores.standard_errors.relative_error` of the targets.

        Parameters
        ----------
        scales : standard deviation of each target.
        """
        errors, own = (np.array([getattr(each, name) for each in self.targets]) for name in ("rmse", "rmse_se"))
        return relative_error(errors, own, np.asarray(scales))


@dataclass(frozen=True)
class ClassPairs:
    """Counts of true against predicted classes.

    Attributes
    ----------
    rows, where : as in `Targets`.
    labels : labels of rows and columns; with many classes the commonest ones, and "N others" last.
    counts : (k, k) rows, true class by predicted class; of rows with weights as many of equal weight.
    accuracy, accuracy_se : share of the rows whose class is right, and its standard error.
    baseline : accuracy of always predicting the commonest class.
    margins : (rows,) score of the true class minus the best other score: positive if right, negative if wrong.
    """

    rows: str
    where: str
    labels: tuple[str, ...]
    counts: Int
    n_classes: int
    accuracy: float
    accuracy_se: float
    baseline: float
    margins: Float | Absent


def check_pairs(model: PredictingModel, pairs: FieldsView | None = None) -> Targets | ClassPairs | Absent:
    """Predictions for some rows, beside the true values.

    Parameters
    ----------
    pairs : values to use instead of the model's check rows; see `streamkernel.report.write_report`.

    Raises
    ------
    ParameterError, ShapeMismatchError
        `pairs` lacks a part, or does not fit the model.
    """
    checked = checked_rows(model, pairs)
    if isinstance(checked, Absent):
        return checked
    predicted = checked.values["probability" if "probability" in checked.values else "predicted"]
    kind = _targets if class_names(model) is None else _classes
    return kind(model, checked, predicted)


def checked_rows(model: PredictingModel, pairs: FieldsView | None = None) -> CheckedRows | Absent:
    """The rows of `check_pairs`, and all their predictions.

    Raises
    ------
    ParameterError, ShapeMismatchError
        See `check_pairs`.
    """
    if pairs is None:
        arrays = {name: model.arrays[f"check_{name}"] for name in _NAMES if f"check_{name}" in model.arrays}
        weights = model.arrays.get("check_weight")
        if "true" not in arrays or not _PREDICTED & arrays.keys():
            return Absent("the model keeps no rows to compare predictions with")
        kind = "training" if model.record.check is None else model.record.check.kind
    else:
        arrays = {name: np.asarray(pairs[name]) for name in _NAMES if name in pairs}
        missing = [name for name in ("kind", "true") if name not in pairs]
        if not _PREDICTED & arrays.keys():
            missing.append("predicted")
        if missing:
            raise ParameterError(f"pairs lacks {', '.join(missing)}; give kind, true and predicted")
        kind, weights = str(pairs["kind"]), pairs.get("weight")
    if class_names(model) is not None and "probability" in arrays:
        # The probability is the prediction of a class; the scores behind it may have another shape.
        arrays = {name: arrays[name] for name in ("true", "probability")}
    true = arrays.pop("true")
    for name, values in arrays.items():
        if true.shape != values.shape:
            raise ShapeMismatchError(
                f"true values have shape {true.shape}, {name} ones {values.shape}; give equal ones"
            )
    if true.size == 0:
        return Absent("there are no rows to compare predictions with")
    text = f"{count(len(true))} {_rows_text(kind)}"
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    if w is not None:
        if w.shape != true.shape[:1] or not ((w >= 0.0) & np.isfinite(w)).all():
            raise ShapeMismatchError(f"weights of shape {w.shape} for {len(true)} rows; give one >= 0 for each row")
        equal = _equal_rows(w)
        text += (
            ""
            if equal is None
            else f", by weight (as many as {count(max(1, round(float(equal.sum()))))} of equal weight)"
        )
    return CheckedRows(text, _WHERE.get(kind, "the rows given"), true, arrays, w)


def _rows_text(kind: str) -> str:
    if kind == "training":
        return "training rows, as none were held out"
    return _WHERE.get(kind, f"rows ({plain(kind, 80)})")


def _targets(model: PredictingModel, checked: CheckedRows, predicted: AnyArray) -> Targets | Absent:
    names = target_names(model)
    true, predicted = (
        np.asarray(values, dtype=np.float64).reshape(len(values), -1) for values in (checked.true, predicted)
    )
    if true.shape[1] != len(names):
        raise ShapeMismatchError(f"pairs have {true.shape[1]} targets, the model {len(names)}; give as many")
    targets = []
    for name, t, f in zip(names, true.T, predicted.T, strict=True):
        finite = np.isfinite(t) & np.isfinite(f)
        if not finite.any():
            return Absent(f"no prediction of {name} is finite")
        t, f, w = t[finite], f[finite], checked.equal_rows(finite)
        targets.append(_scored(name, t, f, int((~finite).sum()), w))
    return Targets(checked.rows, checked.where, tuple(targets))


def _scored(name: str, t: Float, f: Float, left_out: int, w: Float | None) -> TargetPairs:
    """A target with its scores; `w` are weights as of `CheckedRows.equal_rows`."""
    m = float(len(t) if w is None else w.sum())
    # Squares of a broken fit's predictions may overflow; they are then shown as infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        squares, deviations = (f - t) ** 2, (t - np.average(t, weights=w)) ** 2
        square, spread, fourth = (float(np.average(v, weights=w)) for v in (squares, deviations, squares**2))
    mae = float(np.average(np.abs(f - t), weights=w))
    # A spread that is rounding only counts as none: R^2 would be a ratio of rounding errors.
    constant = spread <= (1e-12 * float(np.abs(t).max(initial=0.0))) ** 2
    r2, r2_se = float("nan"), float("nan")
    if not constant:
        with np.errstate(over="ignore", invalid="ignore"):
            left = square / spread
            expansion = (squares - left * deviations) / spread
            r2, r2_se = 1.0 - left, float(mean_error(0.0, np.average(expansion**2, weights=w), m))
    rmse_se, mae_se = float(root_error(square, fourth, m)), float(mean_error(mae, square, m))
    return TargetPairs(name, t, f, left_out, float(np.sqrt(square)), rmse_se, mae, mae_se, r2, r2_se)


def _classes(model: PredictingModel, checked: CheckedRows, predicted: AnyArray) -> ClassPairs | Absent:
    true = checked.true
    finite: Bool = np.ones(len(true), dtype=np.bool_)
    labels = class_names(model) or []
    margins: Float | Absent = Absent("there are labels only, no scores of the classes")
    if true.ndim == 2 and true.shape[1] > 1:
        if true.shape[1] != len(labels):
            raise ShapeMismatchError(f"pairs have {true.shape[1]} classes, the model {len(labels)}; give as many")
        finite = np.asarray(np.isfinite(predicted).all(axis=1))
        if not finite.any():
            return Absent("no score of any row is finite")
        true, predicted = true[finite], predicted[finite]
        t, f = true.argmax(axis=1), predicted.argmax(axis=1)
        margins = _margins(t, predicted)
    else:
        t, f = (_codes(model, values.reshape(-1)) for values in (true, predicted))
    k = len(labels)
    w = checked.equal_rows(finite)
    sums = np.bincount(t * k + f, w, minlength=k * k).reshape(k, k)
    accuracy, baseline = float(np.average(t == f, weights=w)), float(sums.sum(axis=1).max() / sums.sum())
    shown, counts = _commonest(labels, np.rint(sums).astype(np.int64))
    se = float(share_error(accuracy, float(len(t) if w is None else w.sum())))
    return ClassPairs(checked.rows, checked.where, shown, counts, k, accuracy, se, baseline, margins)


def _codes(model: PredictingModel, values: AnyArray) -> Int:
    """Index of each row's class label."""
    known = {str(label): index for index, label in enumerate(model.record.classes or ())}
    try:
        return np.array([known[str(value)] for value in values.tolist()], dtype=np.int64)
    except KeyError as error:
        raise ShapeMismatchError(
            f"{plain(error.args[0])!r} is none of the {len(known)} classes of the model; give its labels or scores"
        ) from None


def _margins(t: Int, scores: AnyArray) -> Float:
    rows = np.arange(len(t))
    others = np.array(scores, dtype=np.float64)
    own = others[rows, t]
    others[rows, t] = -np.inf
    return np.asarray(own - others.max(axis=1))


def _commonest(labels: list[str], counts: Int) -> tuple[tuple[str, ...], Int]:
    """The commonest classes in their own order, and all others merged into one."""
    if len(labels) <= _MOST_CLASSES:
        return tuple(labels), counts
    largest = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: _MOST_CLASSES - 1])
    place = np.full(len(labels), len(largest))
    place[largest] = np.arange(len(largest))
    merged = np.zeros((len(largest) + 1, len(largest) + 1), dtype=np.int64)
    np.add.at(merged, (place[:, None], place[None, :]), counts)
    return (*(labels[index] for index in largest), f"{len(labels) - len(largest)} others"), merged
