"""What a large margin model was fitted by, and what it decides: arrays in the units of the axes.

Each function returns None if the model has no such thing, and an `Absent` if there is a reason not to draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.models.margins import MarginClassifierModel, MarginModel, OneClassModel, QuantileModel
from streamkernel.reductions.margins import class_pairs
from streamkernel.report.facts.fit import Absent, class_names, target_names
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.text import count, plain
from streamkernel.settings.gap import GapSettingsRecord
from streamkernel.settings.linear import LinearRegressorSettingsRecord
from streamkernel.settings.margins import MarginRegressorSettingsRecord, MarginSettingsRecord
from streamkernel.type_aliases import FieldsView, Float

_DRAWN_BINS = 40  # of values, so that -1, 0 and 1 are ends of bins
_CURVE_POINTS = 201
_GRID = (128, 80)  # columns and rows of cells
_ROWS_AT_ONCE = 1024
_ROOM = 0.08  # around the basis points, as a share of their range
_SCALED_REACH = 2.5  # of a map where the basis points are unit vectors: in a scaled column, deviations from its mean
_LEAST_GAP = 1e-4  # of the tolerance, below which gaps are drawn there: a last Newton step ends at rounding


@dataclass(frozen=True)
class CostPath:
    """Errors on a validation fold along C.

    Attributes
    ----------
    C, error, error_se : (s,) values of C, ascending, with their errors and standard errors.
    chosen : C of the model, one of these.
    classes : whether errors are shares of wrong classes; else they are mean losses of a row, for C = 1.
    rows, effective : number of rows of the fold, and of rows of equal weight that give means of the same variance.
    """

    C: Float
    error: Float
    error_se: Float
    chosen: float
    classes: bool
    rows: int
    effective: float

    @property
    def at(self) -> int:
        """Position of the chosen C."""
        return int(np.argmin(np.abs(np.log(self.C / self.chosen))))


@dataclass(frozen=True)
class GapCurves:
    """Relative duality gaps of K functions after each of their sweeps, with the functions' names.

    Attributes
    ----------
    gaps : an array for each function; values below `least` are drawn there.
    tolerance : the gap at which the solution was to end; None if it is not known.
    final : the largest gap of a function at its end, without this limit.
    converged : whether this is within the tolerance.
    """

    names: tuple[str, ...]
    gaps: tuple[Float, ...]
    tolerance: float | None
    least: float
    final: float
    converged: bool

    @property
    def largest(self) -> Float:
        """(s,) the largest gap after each sweep; a function that has ended keeps its last one."""
        sweeps = max(map(len, self.gaps))
        each = [np.pad(gaps, (0, sweeps - len(gaps)), mode="edge") for gaps in self.gaps]
        return np.asarray(np.max(each, axis=0))


@dataclass(frozen=True)
class ValueHistogram:
    """Values of one function on the rows of the validation fold, which it was fitted without.

    Attributes
    ----------
    name : name of the class whose values should be at least 1; all others should be at most -1.
    only : whether there is one function, which separates two classes.
    edges : (b + 1,) ends of the bins of ``f / (1 + |f|)``
    weight : (2, b) weight of the rows in each bin: of the other classes, and of the class.
    curve : (2, t) bins' units and probabilities of the class; None for a model without probabilities.
    rows : number of rows.
    """

    name: str
    only: bool
    edges: Float
    weight: Float
    curve: Float | None
    rows: int

    @property
    def share(self) -> Float:
        """(2, b) share of each bin in the rows of its side."""
        totals = self.weight.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.weight, totals, out=np.zeros_like(self.weight), where=totals > 0.0))

    @property
    def inside(self) -> float:
        """Share of the rows whose value does not reach the margin of their side."""
        return self._short_of(0.5)

    @property
    def wrong(self) -> float:
        """Share of the rows whose value is on the other side."""
        return self._short_of(0.0)

    def _short_of(self, t: float) -> float:
        middles = 0.5 * (self.edges[:-1] + self.edges[1:])
        short = self.weight[0][middles > -t].sum() + self.weight[1][middles < t].sum()
        return float(short / max(float(self.weight.sum()), np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class TubeErrors:
    """Errors of predicted targets in deviations of each target, with half the width of the tube.

    Attributes
    ----------
    rows, where : as in `Targets`.
    targets : number of targets.
    error : (t,) errors of all rows and targets.
    loss : name of the loss.
    """

    rows: str
    where: str
    targets: int
    error: Float
    epsilon: float
    loss: str

    @property
    def outside(self) -> float:
        """Share of the errors that are larger than epsilon."""
        return float((np.abs(self.error) > self.epsilon).mean())


@dataclass(frozen=True)
class DecisionMap:
    """Values of a model of two features over a grid around its basis points, in the units of the columns.

    Attributes
    ----------
    columns : names of the features.
    x, y : (c,) and (r,) middles of the cells.
    values : (r, c, k) values of the functions: one per class or target, and a single one for two classes.
    points : (n, 2) the basis; none where its points are unit vectors, which stand for columns and not for rows.
    outputs : labels of the classes, or names of the k targets.
    classes : whether these are classes.
    boundary : whether a single value separates two sides at 0.
    """

    columns: tuple[str, str]
    x: Float
    y: Float
    values: Float
    points: Float
    outputs: tuple[str, ...]
    classes: bool
    boundary: bool = False


@dataclass(frozen=True)
class DecisionValues:
    """Decision values f of one class.

    Attributes
    ----------
    rows : names the rows.
    edges : (b + 1,) ends of the bins of ``t = f / (rho + |f|)``, of which one is 0.
    weight : (b,) weight of the rows in each bin.
    unit : the unit of f in t: rho, or 1 where rho is not above 0.
    outliers, nu : share of the weight below 0, and the largest that was allowed to the fit.
    """

    rows: str
    edges: Float
    weight: Float
    unit: float
    outliers: float
    nu: float

    @property
    def share(self) -> Float:
        """(b,) share of each bin in the weight of all rows."""
        return np.asarray(self.weight / self.weight.sum())


def cost_path(model: MarginModel) -> CostPath | Absent | None:
    """Errors on the validation fold along C."""
    path, solution, settings = model.record.path, model.record.solution, model.record.settings
    given = settings.C if isinstance(settings, MarginSettingsRecord) else None
    if path is None:
        if given is None:
            return None
        return Absent(
            "there were too few rows to hold some out for a search" if isinstance(given, str) else "C was given"
        )
    C, error = np.asarray(path.C, dtype=np.float64), np.asarray(path.errors, dtype=np.float64)
    se = np.asarray(path.errors_se, dtype=np.float64)
    drawn = np.isfinite(error) & np.isfinite(se) & (C > 0.0)
    if drawn.sum() < 2:
        return Absent("C was given")
    return CostPath(
        C[drawn],
        error[drawn],
        se[drawn],
        solution.C,
        model.record.classes is not None,
        path.rows,
        path.effective,
    )


def function_names(model: MarginModel) -> list[str]:
    """Names of the K functions: classes, targets or levels; one of two classes has the name of the second."""
    if isinstance(model, QuantileModel):
        return [f"quantile {level:g}" for level in model.levels]
    if isinstance(model, MarginClassifierModel) and model.paired:
        labels = class_names(model) or []
        return [f"{labels[j]} against {labels[i]}" for i, j in class_pairs(len(labels))]
    K, classes, targets = len(model.record.solution.problems), class_names(model), target_names(model)
    if classes is not None and (len(classes) == K or (K, len(classes)) == (1, 2)):
        return classes[-K:]
    if classes is None and len(targets) == K:
        return targets
    return [f"function {index + 1}" for index in range(K)]


def gap_curves(model: MarginModel) -> GapCurves | Absent:
    """Relative duality gap of each function against sweeps."""
    solution, settings = model.record.solution, model.record.settings
    tolerance = settings.gap_tol if isinstance(settings, GapSettingsRecord) else None
    gaps = [np.asarray(problem.gaps, dtype=np.float64) for problem in solution.problems]
    if not gaps or not all(len(each) and np.isfinite(each).all() for each in gaps):
        return Absent("the model keeps no gaps")
    least = _LEAST_GAP * (tolerance or 1e-8)
    return GapCurves(
        tuple(function_names(model)),
        tuple(np.maximum(each, least) for each in gaps),
        tolerance,
        least,
        solution.gap,
        solution.converged,
    )


def value_histograms(model: MarginModel) -> list[ValueHistogram] | Absent | None:
    """Histogram of each function's values; None for models whose rows have no sides."""
    if not isinstance(model, MarginClassifierModel):
        return None
    if "margin_weights" not in model.arrays or model.record.path is None:
        return Absent("no rows were held out")
    weights = np.asarray(model.arrays["margin_weights"], dtype=np.float64)
    K, _, bins = weights.shape
    if not weights.sum() > 0.0:
        return Absent("no rows were held out")
    joined = bins // _DRAWN_BINS if bins % _DRAWN_BINS == 0 else 1
    weights = weights.reshape(K, 2, bins // joined, joined).sum(axis=3)
    # Short of the ends, which are infinite values.
    t = np.linspace(-1.0, 1.0, _CURVE_POINTS + 2)[1:-1]
    curves = model.curves
    found = None if curves is None else curves.probabilities(np.tile((t / (1.0 - np.abs(t)))[:, None], K))
    return [
        ValueHistogram(
            name,
            K == 1,
            np.linspace(-1.0, 1.0, bins // joined + 1),
            weight,
            None if found is None else np.stack([t, found[:, k]]),
            model.record.path.rows,
        )
        for k, (name, weight) in enumerate(zip(function_names(model), weights, strict=True))
    ]


def decision_values(model: OneClassModel, pairs: FieldsView | None = None) -> DecisionValues | Absent:
    """Histogram of the decision values of the rows of the fit, or of other rows.

    Parameters
    ----------
    pairs : ``kind`` and decision values ``predicted`` of other rows; see `streamkernel.report.write_report`.

    Raises
    ------
    ParameterError
        `pairs` lacks one of them.
    """
    threshold, weight = model.record.threshold, np.asarray(model.arrays["decision_weights"], dtype=np.float64)
    rows, outliers = "the rows of the fit", threshold.outliers
    if pairs is not None:
        missing = [name for name in ("kind", "predicted") if name not in pairs]
        if missing:
            raise ParameterError(f"pairs lacks {', '.join(missing)}; give kind and predicted")
        f = np.asarray(pairs["predicted"], dtype=np.float64).ravel()
        f = f[np.isfinite(f)]
        if not len(f):
            return Absent("there are no rows with finite decision values")
        weight, _ = np.histogram(f / (threshold.unit + np.abs(f)), np.linspace(-1.0, 1.0, len(weight) + 1))
        rows, outliers = f"{count(len(f))} {plain(pairs['kind'])}", float((f < 0.0).mean())
        weight = weight.astype(np.float64)
    if not (np.isfinite(weight).all() and weight.sum() > 0.0):
        return Absent("the model keeps no decision values")
    # Most values may be near 0: as many bins are joined as leave a few dozen with rows.
    filled, half = np.flatnonzero(weight), len(weight) // 2
    wide = [each for each in (10, 5, 4, 2) if half % each == 0 and filled[-1] - filled[0] >= _DRAWN_BINS * each // 2]
    if wide:
        weight = weight.reshape(-1, wide[0]).sum(axis=1)
    edges = np.linspace(-1.0, 1.0, len(weight) + 1)
    return DecisionValues(rows, edges, weight, threshold.unit, outliers, model.record.settings.nu)


def tube_errors(model: MarginModel, pairs: Targets | ClassPairs | Absent) -> TubeErrors | None:
    """Errors on the check rows beside the tube; None for models without one."""
    settings = model.record.settings
    if not isinstance(settings, (MarginRegressorSettingsRecord, LinearRegressorSettingsRecord)):
        return None
    if not isinstance(pairs, Targets):
        return None
    scales = model.record.target_scale
    error = np.concatenate([each.residual / scale for each, scale in zip(pairs.targets, scales, strict=True)])
    error = error[np.isfinite(error)]
    if not len(error):
        return None
    return TubeErrors(
        pairs.rows,
        pairs.where,
        len(pairs.targets),
        error,
        settings.epsilon,
        getattr(settings, "loss", "epsilon_insensitive"),
    )


def decision_map(model: MarginModel) -> DecisionMap | Absent | None:
    """Values over a grid; None for models of other than two features, of sparse rows, or of a kernel matrix."""
    if len(model.record.columns) != 2 or model.sparse or model.of_matrix:
        return None
    points = np.asarray(model.points, dtype=np.float64)
    around = points
    if model.record.rule == "columns":
        ends, scaler = _SCALED_REACH * np.array([[-1.0, -1.0], [1.0, 1.0]]), model.scaler
        points, around = points[:0], ends if scaler is None else scaler.unscaled(ends)
    if not len(around) or not np.isfinite(around).all():
        return Absent("the basis has no points to draw it around")
    x, y = (_middles(column, cells) for column, cells in zip(around.T, _GRID, strict=True))
    values = _values(model, np.stack(np.meshgrid(x, y), axis=2).reshape(-1, 2))
    if not np.isfinite(values).all():
        return Absent("its values around the basis points are not finite")
    classes = class_names(model)
    if classes is not None and len(classes) == 2 and values.shape[1] == 2:
        values = values[:, 1:] - values[:, :1]
    first, second = (plain(name, 40) for name in model.record.columns)
    one = isinstance(model, OneClassModel)
    outputs = ["decision value"] if one else classes if classes is not None else target_names(model)
    if isinstance(model, QuantileModel):
        values, outputs = np.sort(values, axis=-1), function_names(model)
    return DecisionMap(
        (first, second), x, y, values.reshape(len(y), len(x), -1), points, tuple(outputs), classes is not None, one
    )


def _middles(column: Float, cells: int) -> Float:
    """Middles of equal cells around the values of a column."""
    low, high = float(column.min()), float(column.max())
    # A column of one value still needs an axis of some length.
    room = _ROOM * (high - low) or 0.5 * abs(low) or 0.5
    edges = np.linspace(low - room, high + room, cells + 1)
    return np.asarray(0.5 * (edges[:-1] + edges[1:]))


def _values(model: MarginModel, rows: Float) -> Float:
    """Values (b, k) of the functions for rows (b, 2) in the units of the columns."""
    dtype, scaler, functions = model.arrays["components"].dtype, model.scaler, model.predictions()
    scaled = rows.astype(dtype) if scaler is None else scaler.apply(rows, dtype)
    parts = [scaled[first : first + _ROWS_AT_ONCE] for first in range(0, len(scaled), _ROWS_AT_ONCE)]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([functions.values(part) for part in parts])
