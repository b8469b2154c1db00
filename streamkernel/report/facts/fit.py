"""The curves of a model's page, read out of the model: arrays in the units of the axes, without colours.

Each function returns its curve, or an `Absent` with the reason, so that no empty figure is ever drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.factors import BasisRecord
from streamkernel.models.predicting import PredictingModel
from streamkernel.report.text import count, plain, plural

__all__ = [
    "Absent",
    "GcvCurve",
    "LengthscaleCurve",
    "Memory",
    "Recorded",
    "Round",
    "Sweep",
    "Sweeps",
    "TraceCurve",
    "class_names",
    "gcv_curve",
    "gcv_error",
    "lengthscale_curve",
    "memory_use",
    "solved_by_iterations",
    "sweep_times",
    "target_names",
    "trace_curve",
]

Array = NDArray[np.float64]

ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Absent:
    """The reason why there is nothing to draw."""

    reason: str


@dataclass(frozen=True)
class Round:
    """Basis sizes from `start` to `stop`; `measured` is the relative trace that a sweep measured at its start."""

    start: int
    stop: int
    measured: float | None
    candidates: int
    scoring_rows: int


@dataclass(frozen=True)
class TraceCurve:
    """Residual trace over the trace, after each basis function.

    Attributes
    ----------
    size, relative : (n + 1,), beginning with the empty basis; values that round to zero are drawn at `ROUNDING`.
    left : the certificate, without this limit.
    rows : number of rows over which it is exact.
    tol : share of the trace at which the selection was to stop; 0 for none.
    """

    size: NDArray[np.int64]
    relative: Array
    rounds: tuple[Round, ...]
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
    searched : whether GCV chose alpha, and not the user.
    unit : name of the error's unit.
    """

    alpha: Array
    error: Array
    degrees: Array
    left_out: int
    chosen: float
    chosen_error: float
    chosen_degrees: float
    searched: bool
    unit: str


@dataclass(frozen=True)
class LengthscaleCurve:
    """GCV error on a sample of rows for each lengthscale of the search."""

    lengthscale: Array
    error: Array
    chosen: float
    median: float
    sample_rows: int
    unit: str


@dataclass(frozen=True)
class Sweep:
    """One pass over the rows."""

    name: str
    seconds: float
    rows: int
    resumed: bool


@dataclass(frozen=True)
class Sweeps:
    """All passes, and the seconds spent between them."""

    sweeps: tuple[Sweep, ...]
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


class Recorded(Protocol):
    """An object that stores a record of its run: a model or a factor."""

    @property
    def config(self) -> dict[str, Any]: ...


def target_names(model: PredictingModel) -> list[str]:
    """Names of the d targets, one line each: from the model, or numbered."""
    d = model.target_count
    names = [plain(name, 40) for name in model.config.get("target_names") or []]
    return names if len(names) == d else [f"target {index + 1}" for index in range(d)]


def class_names(model: PredictingModel) -> list[str] | None:
    """Class labels, one line each; None for regression."""
    labels = model.config.get("classes")
    return None if labels is None else [plain(label, 40) for label in labels]


def trace_curve(model: BasisRecord) -> TraceCurve | Absent:
    """Residual trace against basis size."""
    config, path = model.config, np.asarray(model.arrays["residual_path"], dtype=np.float64)
    trace = float(config["certificate"]["trace"])
    if not trace > 0.0 or not np.isfinite(path).all():
        return Absent("the trace of the kernel matrix is 0, so that there is nothing for a basis to explain")
    if len(path) < 2:
        return Absent("the basis has no functions")
    rounds = tuple(
        Round(
            int(record["start"]),
            int(record["stop"]),
            None if record.get("residual_trace") is None else float(record["residual_trace"]) / trace,
            int(record.get("candidates", 0)),
            int(record.get("scoring_rows", 0)),
        )
        for record in config.get("rounds", [])
    )
    return TraceCurve(
        np.arange(len(path)),
        np.maximum(path / trace, ROUNDING),
        rounds,
        float(config["certificate"]["residual_trace"]) / trace,
        int(config["totals"]["rows"] if "totals" in config else config["rows"]["count"]),
        float(config.get("settings", {}).get("tol", 0.0)),
    )


def gcv_error(model: PredictingModel, score: Any) -> tuple[Array, str]:
    """GCV scores in a unit that users know, and the name of this unit.

    One target: root mean square in the target's units. Several targets: in standard deviations. Classes: squared error
    of the scores per row, summed over the classes. None (a fit without a score) becomes NaN.
    """
    scores = np.asarray(score, dtype=np.float64)
    if model.config.get("classes") is not None:
        return scores, "squared error per row, summed over classes"
    d = model.target_count
    with np.errstate(invalid="ignore"):
        root = np.sqrt(scores / d)
    if d > 1:
        return root, "root mean square, in standard deviations of the targets"
    scale = (model.config.get("target_scale") or [1.0])[0]
    return root * float(scale), f"root mean square, in units of {target_names(model)[0]}"


def solved_by_iterations(model: Recorded) -> bool:
    """Whether conjugate gradients gave the coefficients; they give neither GCV nor degrees of freedom."""
    return bool((model.config.get("solution") or {}).get("solver") == "cg")


def gcv_curve(model: PredictingModel) -> GcvCurve | Absent:
    """GCV error against alpha."""
    arrays, config = model.arrays, model.config
    names = ("gcv_alphas", "gcv_scores", "gcv_effective_df")
    if solved_by_iterations(model):
        return Absent(
            "alpha was given and solved for by conjugate gradients: the GCV error takes the sums of the direct solve"
        )
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
    solution = config.get("solution", {})
    chosen, _ = gcv_error(model, solution.get("gcv"))
    return GcvCurve(
        alpha[drawn],
        error[drawn],
        degrees[drawn],
        int((~drawn).sum()),
        float(config["alpha"]),
        float(chosen) if np.isfinite(chosen) and chosen > 0.0 else float("nan"),
        float(solution.get("effective_df", np.nan)),
        config.get("settings", {}).get("alpha") == "gcv",
        unit,
    )


def lengthscale_curve(model: PredictingModel) -> LengthscaleCurve | Absent:
    """GCV errors of the search for a lengthscale."""
    choice = model.config.get("lengthscale_choice")
    if choice is None:
        if model.config.get("lengthscale") is None:
            return Absent("the kernel has no lengthscale to search for")
        return Absent("the lengthscale was given")
    sample = plural(int(choice["sample_rows"]), "sampled row")
    grid = np.asarray(choice.get("grid") or [], dtype=np.float64)
    if len(grid) == 0:
        return Absent(f"the lengthscale is the median distance between {sample}")
    d = model.target_count
    scores = np.asarray(choice["scores"], dtype=np.float64)
    # The search works on scaled targets, so its errors are shares of a standard deviation in every case.
    if model.config.get("classes") is None:
        error, unit = np.sqrt(np.maximum(scores, 0.0) / d), "root mean square, in standard deviations of the target"
    else:
        error, unit = scores, "squared error per row, summed over classes"
    finite = np.isfinite(error)
    if finite.sum() < 2:
        return Absent(f"the search on {sample} found no finite GCV error")
    return LengthscaleCurve(
        grid[finite], error[finite], float(choice["value"]), float(choice["median"]), int(choice["sample_rows"]), unit
    )


def sweep_times(model: Recorded) -> Sweeps | Absent:
    """Seconds of each sweep."""
    run = model.config.get("run") or {}
    sweeps = tuple(
        Sweep(plain(record["name"]), float(record["seconds"]), int(record["rows"]), bool(record.get("resumed")))
        for record in run.get("sweeps", [])
    )
    if not sweeps:
        return Absent("no record of the sweeps was kept")
    spent = sum(sweep.seconds for sweep in sweeps)
    total = float(run.get("seconds", spent))
    return Sweeps(sweeps, max(total - spent, 0.0), total)


def memory_use(model: Recorded) -> Memory | Absent:
    """Memory promised and memory measured."""
    run = model.config.get("run") or {}
    promised, measured = (int(run.get(name) or 0) for name in ("planned_memory_bytes", "peak_memory_bytes"))
    if promised <= 0 or measured <= 0:
        return Absent("no record of the memory use was kept")
    return Memory(promised, measured)


def rows_words(model: PredictingModel) -> str:
    """Rows of the fit: "rows 0 to 49,999"."""
    rows = model.config["rows"]
    return f"rows {count(rows['start'])} to {count(rows['stop'] - 1)}"
