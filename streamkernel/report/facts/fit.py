"""The curves of a model's page, read out of the model: arrays in the units of the axes, without colours.

Each function returns its curve, or an `Absent` with the reason, so that no empty figure is ever drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamkernel.factors import SavedBasis
from streamkernel.models.kernel_cca import ViewRecord
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.records import BasisRecord, ModelRecord, Validation
from streamkernel.records.basis import SweepRecord
from streamkernel.report.text import plain, plural
from streamkernel.type_aliases import Float, Int, Unchecked

ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Absent:
    """The reason why there is nothing to draw."""

    reason: str


@dataclass(frozen=True)
class TraceCurve:
    """Residual trace over the trace, after each basis function.

    Attributes
    ----------
    size, relative : (n + 1,), beginning with the empty basis; values below `ROUNDING` are drawn there.
    rounds : basis sizes at the start and the end of each round that added functions.
    measured : basis sizes at the start of a round, and the shares that a sweep measured there.
    left : the certificate, without this limit.
    rows : number of rows over which it is exact.
    tol : share of the trace at which the selection was to stop; 0 for none.
    """

    size: Int
    relative: Float
    rounds: tuple[tuple[int, int], ...]
    measured: tuple[tuple[int, float], ...]
    left: float
    rows: int
    tol: float

    @property
    def vanished(self) -> bool:
        """Whether only rounding errors are left."""
        return self.left <= ROUNDING


@dataclass(frozen=True)
class GcvCurve:
    """GCV error and effective degrees of freedom along alpha.

    Attributes
    ----------
    alpha, error, degrees : one value each for every alpha with a finite score above 0.
    left_out : number of alphas without such a score.
    chosen, chosen_error, chosen_degrees : alpha of the model, with its error and degrees of freedom; the error is NaN
        if it is not finite.
    searched : whether GCV or held-out folds chose alpha, and not the user.
    unit : name of the error's unit.
    held_alpha, held_error : alphas that were tried on held-out folds, and the errors there; empty without folds.
    """

    alpha: Float
    error: Float
    degrees: Float
    left_out: int
    chosen: float
    chosen_error: float
    chosen_degrees: float
    searched: bool
    unit: str
    held_alpha: Float = field(default_factory=lambda: np.zeros(0))
    held_error: Float = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class HeldOutCurve:
    """Error on held-out rows along alpha, of a fit that has no GCV curve.

    Attributes
    ----------
    alpha, error : alphas that were tried, ascending, and their errors.
    chosen : alpha of the model.
    interval : its error less and more one standard error.
    rows, parts, unit : as of `ValidationCurve`.
    """

    alpha: Float
    error: Float
    chosen: float
    interval: tuple[float, float]
    rows: int
    parts: int
    unit: str


@dataclass(frozen=True)
class ValidationCurve:
    """Error on held-out folds against basis size, each size at its own best alpha.

    Attributes
    ----------
    size, error, alpha : (s,) basis sizes, ascending, their errors and alphas.
    interval : the error of the whole basis less and more one standard error.
    rows, distinct : numbers of held-out rows and of independent ones among them.
    folds, parts : number of folds, and of equal parts of the rows that they are taken from.
    unit : name of the error's unit.
    """

    size: Int
    error: Float
    alpha: Float
    interval: tuple[float, float]
    rows: int
    distinct: float
    folds: int
    parts: int
    unit: str


@dataclass(frozen=True)
class LengthscaleCurve:
    """GCV error on a sample of rows for each lengthscale of the search."""

    lengthscale: Float
    error: Float
    chosen: float
    median: float
    sample_rows: int
    unit: str


@dataclass(frozen=True)
class Sweeps:
    """All passes, and the seconds spent between them."""

    sweeps: Sequence[SweepRecord]
    between: float
    total: float

    @property
    def each(self) -> float | None:
        """Mean seconds of the sweeps that were run; None if all came from checkpoints."""
        made = [sweep.seconds for sweep in self.sweeps if not sweep.resumed]
        return sum(made) / len(made) if made else None


@dataclass(frozen=True)
class Memory:
    """Memory of all processes together, in bytes."""

    promised: int
    measured: int


def length_unit(model: SavedBasis) -> str:
    """The unit of a lengthscale, in words."""
    if model.metric is not None:
        return "distances in the metric"
    scaled = model.record.scaler is not None
    return "standard deviations of the features" if scaled else "units of the features"


def target_names(model: PredictingModel) -> list[str]:
    """Names of the d targets, one line each: from the model, or numbered."""
    d = model.target_count
    names = [plain(name, 40) for name in model.record.target_names]
    return names if len(names) == d else [f"target {index + 1}" for index in range(d)]


def class_names(model: PredictingModel) -> list[str] | None:
    """Class labels, one line each; None for regression."""
    labels = model.record.classes
    return None if labels is None else [plain(label, 40) for label in labels]


def trace_curve(model: SavedBasis) -> TraceCurve | Absent:
    """Residual trace against basis size."""
    if not model.basis.kernel.positive_definite:
        return Absent("the kernel is not positive definite, and has no features whose trace a basis could explain")
    record, path = model.record, np.asarray(model.arrays["residual_path"], dtype=np.float64)
    trace = record.certificate.trace
    if not trace > 0.0 or not np.isfinite(path).all():
        return Absent("the trace of the kernel matrix is 0, so that a basis has nothing to explain")
    if len(path) < 2:
        return Absent("the basis has no functions")
    measured = ((each.start, (each.residual_trace or 0.0) / trace) for each in record.rounds)
    return TraceCurve(
        np.arange(len(path)),
        np.maximum(path / trace, ROUNDING),
        tuple((each.start, each.stop) for each in record.rounds if each.stop > each.start),
        tuple((start, share) for start, share in measured if share > ROUNDING),
        record.certificate.residual_trace / trace,
        record.row_count if isinstance(record, ModelRecord) else record.rows.count,
        record.settings.tol,
    )


def gcv_error(model: PredictingModel, score: Unchecked) -> tuple[Float, str]:
    """GCV scores in a unit that users know, and the name of this unit.

    One target: root mean square in the target's units. Several targets: in standard deviations. Classes: squared error
    of the scores per row, summed over the classes. None (a fit without a score) becomes NaN.
    """
    scores = np.asarray(score, dtype=np.float64)
    if model.record.classes is not None:
        return scores, "squared error per row, summed over classes"
    d = model.target_count
    with np.errstate(invalid="ignore"):
        root = np.sqrt(scores / d)
    if d > 1:
        return root, "root mean square, in standard deviations of the targets"
    scale = model.record.target_scale[0]
    return root * float(scale), f"root mean square, in units of {target_names(model)[0]}"


def solved_by_iterations(model: RidgeModel) -> bool:
    """Whether conjugate gradients gave the coefficients; they give neither GCV nor degrees of freedom."""
    return model.solver == "cg"


def gcv_curve(model: RidgeModel) -> GcvCurve | Absent:
    """GCV error against alpha."""
    arrays, record = model.arrays, model.record
    names = ("gcv_alphas", "gcv_scores", "gcv_effective_df")
    if solved_by_iterations(model):
        return Absent("conjugate gradients solved for one alpha: a GCV error needs the sums of the direct solve")
    if any(name not in arrays for name in names):
        return Absent("the model keeps no GCV curve")
    alpha, score, degrees = (np.asarray(arrays[name], dtype=np.float64) for name in names)
    error, unit = gcv_error(model, score)
    # A score of 0 (an exact fit, or rounding) has no place on a logarithmic axis, and gives no information on alpha.
    drawn = np.isfinite(error) & np.isfinite(degrees) & (error > 0.0) & (alpha > 0.0)
    if drawn.sum() < 2:
        return Absent(
            "no alpha has a GCV error that can be drawn: the basis fits the rows exactly, "
            "or has as many degrees of freedom as there are rows"
        )
    solution = record.solution
    chosen, _ = gcv_error(model, solution.gcv)
    return GcvCurve(
        alpha[drawn],
        error[drawn],
        degrees[drawn],
        int((~drawn).sum()),
        record.alpha,
        float(chosen) if np.isfinite(chosen) and chosen > 0.0 else float("nan"),
        float("nan") if solution.effective_df is None else solution.effective_df,
        isinstance(record.settings.alpha, str),
        unit,
        *_held_out_errors(model),
    )


def _held_out_errors(model: RidgeModel) -> tuple[Float, Float]:
    """Alphas above 0 that were tried on held-out folds, and their errors in the unit of `gcv_error`."""
    found = model.record.validation
    if found is None:
        return np.zeros(0), np.zeros(0)
    alpha, (error, _) = np.asarray(found.alphas, dtype=np.float64), gcv_error(model, found.errors)
    drawn = (alpha > 0.0) & (error > 0.0)
    return alpha[drawn], error[drawn]


def held_out_curve(model: RidgeModel) -> HeldOutCurve | None:
    """Error on held-out rows along alpha, where conjugate gradients found it; else None."""
    found = model.record.validation
    if found is None or not solved_by_iterations(model):
        return None
    alpha, error = _held_out_errors(model)
    if len(alpha) < 2:
        return None
    _, unit = gcv_error(model, found.error)
    return HeldOutCurve(alpha, error, model.record.alpha, _interval(model, found), found.rows, found.parts, unit)


def _interval(model: RidgeModel, found: Validation) -> tuple[float, float]:
    """The error of the chosen alpha less and more one standard error, in the unit of `gcv_error`."""
    ends, _ = gcv_error(model, [max(found.error - found.error_se, 0.0), found.error + found.error_se])
    return float(ends[0]), float(ends[1])


def validation_curve(model: RidgeModel) -> ValidationCurve | None:
    """Error on held-out folds against basis size; None for a model of which no more than one size is known."""
    found = model.record.validation
    if found is None or len(found.sizes) < 2:
        return None
    error, unit = gcv_error(model, found.size_errors)
    return ValidationCurve(
        np.asarray(found.sizes, dtype=np.int64),
        error,
        np.asarray(found.size_alphas, dtype=np.float64),
        _interval(model, found),
        found.rows,
        found.distinct,
        found.folds,
        found.parts,
        unit,
    )


def lengthscale_curve(model: PredictingModel) -> LengthscaleCurve | Absent:
    """GCV errors of the search for a lengthscale."""
    choice = model.record.lengthscale_choice
    if choice is None:
        if model.record.lengthscale is None:
            return Absent("the kernel has no lengthscale to search for")
        return Absent("the lengthscale was given")
    sample = plural(choice.sample_rows, "sampled row")
    grid = np.asarray(choice.grid, dtype=np.float64)
    if len(grid) == 0 and model.record.metric_choice is not None:
        return Absent("it was found with the metric, by the error on held-out rows")
    if len(grid) == 0:
        return Absent(f"the lengthscale is the median distance between {sample}")
    d = model.target_count
    scores = np.asarray(choice.scores, dtype=np.float64)
    # The search works on scaled targets, so its errors are shares of a standard deviation in every case.
    if model.record.classes is None:
        error, unit = np.sqrt(np.maximum(scores, 0.0) / d), "root mean square, in standard deviations of the target"
    else:
        error, unit = scores, "squared error per row, summed over classes"
    finite = np.isfinite(error)
    if finite.sum() < 2:
        return Absent(f"the search on {sample} found no finite GCV error")
    return LengthscaleCurve(grid[finite], error[finite], choice.value, choice.median, choice.sample_rows, unit)


def fitted_to_rows(record: BasisRecord | ViewRecord) -> list[str]:
    """The parts of the kernel that were fitted to the rows; they violate an assumption of the bounds."""
    named = {"the lengthscale": record.lengthscale_choice, "the scaling": record.scaler}
    return [words for words, part in named.items() if part is not None]


def sweep_times(model: SavedBasis) -> Sweeps | Absent:
    """Seconds of each sweep."""
    run = model.record.run
    if run is None or not run.sweeps:
        return Absent("no record of the sweeps was kept")
    spent = sum(sweep.seconds for sweep in run.sweeps)
    return Sweeps(run.sweeps, max(run.seconds - spent, 0.0), run.seconds)


def memory_use(model: SavedBasis) -> Memory | Absent:
    """Memory promised and memory measured."""
    run = model.record.run
    if run is None or not run.planned_memory_bytes or not run.peak_memory_bytes:
        return Absent("no record of the memory use was kept")
    return Memory(run.planned_memory_bytes, run.peak_memory_bytes)
