"""Lengthscales, signal and noise variance of a Gaussian process, by its evidence: on a sample, then over the table.

`tune` maximises the FITC evidence or the variational bound of a sample in memory over the logarithms of all free
hyper-parameters, by L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995), in rounds. Each round chooses basis points for the kernel
of the previous round and keeps them fixed. `polish` continues with the points of the final basis and sums over all
rows, two sweeps per evaluation.

After the first round, a very large lengthscale is reduced to a value at which its feature has an effect. At very large
lengthscales the slope is 0, so that the search could never undo the effect of a poor first basis.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import DataError, ParameterError, ShapeError
from streamkernel.kernels import Kernel, log_lengthscales, with_log_lengthscales
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import require_finite
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import GaussianSums
from streamkernel.table import Table, open_table
from streamkernel.tuning._bounds import Bounds, spread_lengthscales
from streamkernel.tuning._sample_basis import Run, greedy_points
from streamkernel.tuning._search import Tuning, TuningPoint, maximise
from streamkernel.tuning.sample_evidence import FORMS, Evidence, SparseEvidence, Sweep, in_this_thread
from streamkernel.type_aliases import Bool, Float

MOVABLE = ("lengthscale", "signal", "noise")

_FLAT = 2e-6  # a round ends when an iteration gains less, in nats per row
_START_NOISE = 0.1  # of the variance of the targets
_FELT = 3.0  # typical distances: the value to which a very large lengthscale is reduced
_STREAM = (21,)
_ENOUGH = 2e-3  # nats per row: a round that gains less ends the search


@dataclass(frozen=True)
class Polished:
    """Result of `polish`, with the basis and the sums at the best point.

    `sums` are those of `GaussianEquations`, with `DiagonalNoise(signal, noise)` for fitc and `ConstantNoise` for vfe.
    """

    tuning: Tuning
    basis: Basis
    sums: GaussianSums


class Objective(Protocol):
    """A function of the hyper-parameters with value and gradient, as `SparseEvidence`."""

    def at(self, kernel: Kernel, signal: float, noise: float) -> Evidence: ...


class EvidenceSearch:
    """A search over (log lengthscales, log signal, log noise), in rounds.

    Parameters
    ----------
    kernel : Kernel whose lengthscales may move.
    fixed : names out of `MOVABLE` that keep their start values.
    bounds : Bounds of the other hyper-parameters.
    points : points of an earlier search; the new points are appended.
    """

    def __init__(
        self, kernel: Kernel, fixed: Collection[str], bounds: Bounds, points: Collection[TuningPoint] = ()
    ) -> None:
        self.kernel = kernel
        lengthscales = ["lengthscale" not in fixed] * len(log_lengthscales(kernel))
        self._free = np.array([*lengthscales, "signal" not in fixed, "noise" not in fixed])
        self._bounds = bounds
        self.points = list(points)

    def round(
        self, objective: Objective, start: Float, evaluations: int, stage: str, number: int
    ) -> tuple[Float, Evidence]:
        """The best of at most `evaluations` points, starting from `start`, and its evidence.

        It is `maximise` on the evidence per row and target.

        Raises
        ------
        NumericalError
            The evaluation at the start fails.
        """

        def evaluate(values: Float) -> tuple[float, Float, Evidence]:
            signal, noise = float(np.exp(values[-2])), float(np.exp(values[-1]))
            found = objective.at(with_log_lengthscales(self.kernel, values[:-2]), signal, noise)
            value = found.value / found.count
            lengthscales = tuple(np.exp(values[:-2]).tolist())
            self.points.append(TuningPoint(stage, number, len(found.basis), lengthscales, signal, noise, value))
            return value, found.gradient / found.count, found

        return maximise(evaluate, start, self._free, self._bounds.low, self._bounds.high, evaluations, _FLAT)


def tune(
    sample: Sample,
    kernel: Kernel,
    *,
    scale: Float,
    centre: Float | None = None,
    ard: bool = False,
    n_basis: int = 400,
    objective: str = "fitc",
    signal: float | None = None,
    noise: float | None = None,
    fixed: Collection[str] = (),
    seed: int = 0,
    rounds: int = 4,
    evaluations: int = 20,
    run: Run | None = None,
) -> Tuning:
    """Maximise the evidence of a sample.

    Parameters
    ----------
    sample : rows, with their targets.
    kernel : Kernel with the lengthscales to start from.
    scale, centre : (d,) the targets of the process are ``(Y - centre) / scale``; `centre` is by default the mean of the
        sample.
    ard : True for one lengthscale per feature, if the kernel has one for all.
    n_basis : number of points of the sparse process, at most the rows of the sample.
    objective : "fitc" or "vfe".
    signal, noise : variances to start from, or the fixed ones, in units of the scaled targets.
    fixed : names out of "lengthscale", "signal" and "noise" that keep their start values.
    seed : seed of the choice of points.
    rounds, evaluations : largest number of rounds, and of evaluations per round.
    run : function that runs a reduction over a table in memory (`Session.local`); in the calling thread by default.

    Raises
    ------
    ParameterError, ShapeError
        An argument is invalid.
    DataError
        All targets of the sample are constant.
    NumericalError
        The sample is not finite.
    """
    _check(objective, fixed)
    rounds, evaluations = checked_integer("rounds", rounds), checked_integer("evaluations", evaluations)
    n = min(checked_integer("n_basis", n_basis), len(sample))
    varying, centre, scale = _varying(sample, centre, scale)
    X, Y, centre, scale = sample.X, np.ascontiguousarray(sample.Y[:, varying]), centre[varying], scale[varying]
    if ard:
        kernel = spread_lengthscales(kernel, X)
    kernel.check_features(X.shape[1])
    weights = None if bool((sample.weights == 1.0).all()) else sample.weights
    table = open_table(X, Y, weights=weights)
    run = run or in_this_thread
    bounds = Bounds.of(kernel, X)
    start = np.concatenate([log_lengthscales(kernel), np.zeros(2)])
    start[-2] = bounds.unit if signal is None else np.log(checked_number("signal", signal))
    start[-1] = np.log(_START_NOISE) if noise is None else np.log(checked_number("noise", noise))
    search = EvidenceSearch(kernel, fixed, bounds)
    best: tuple[Float, Evidence] | None = None
    for number in range(rounds):
        if number == 1 and "lengthscale" not in fixed:
            start = bounds.called_back(start, _FELT)
        points = greedy_points(run, table, with_log_lengthscales(kernel, start[:-2]), n, seed, (*_STREAM, number))
        sparse = SparseEvidence(
            _over(run, table), points.points, points.rows, centre=centre, scale=scale, form=objective
        )
        first = len(search.points)
        start, found = search.round(sparse, start, evaluations, "sample", number)
        if best is None or found.value > best[1].value:
            best = start, found
        if found.value / found.count < search.points[first].value + _ENOUGH:
            break
    assert best is not None
    targets = tuple(np.flatnonzero(varying).tolist())
    return _tuning(search, *best, objective, len(sample), targets, fixed)


def polish(
    tuning: Tuning,
    sweep: Sweep,
    basis: Basis,
    *,
    centre: Float,
    scale: Float,
    evaluations: int = 10,
) -> Polished:
    """Continue the search over all rows of a table, from the best point of the sample.

    Parameters
    ----------
    tuning : result on the sample; hyper-parameters that were fixed there stay fixed.
    sweep : Sweep over the table, called twice per evaluation.
    basis : points of the final model, chosen for the kernel of `tuning`.
    centre, scale : (d,) the targets of the process are ``(Y - centre) / scale``.
    evaluations : largest number of evaluations; 1 evaluates the best point of the sample only.

    Raises
    ------
    ParameterError, NumericalError
        As in `tune`.
    """
    assert tuning.noise is not None
    fixed = tuple(name for name in MOVABLE if name not in tuning.moved)
    evaluations = checked_integer("evaluations", evaluations)
    start = np.concatenate([log_lengthscales(tuning.kernel), np.log([tuning.signal, tuning.noise])])
    search = EvidenceSearch(tuning.kernel, fixed, Bounds.around(start), tuning.points)
    varying = np.isin(np.arange(len(scale)), tuning.targets)
    scale = np.where(varying, scale, np.inf)
    sparse = SparseEvidence(sweep, basis.points, basis.rows, centre=centre, scale=scale, form=tuning.objective)
    number = max((point.round for point in tuning.points), default=-1) + 1
    best, found = search.round(sparse, start, evaluations, "full", number)
    result = _tuning(search, best, found, tuning.objective, tuning.rows, tuning.targets, fixed)
    return Polished(result, found.basis, found.sums)


def _tuning(
    search: EvidenceSearch,
    values: Float,
    found: Evidence,
    objective: str,
    rows: int,
    targets: tuple[int, ...],
    fixed: Collection[str],
) -> Tuning:
    signal, noise = (float(value) for value in np.exp(values[-2:]))
    moved = tuple(name for name in MOVABLE if name not in fixed)
    kernel = with_log_lengthscales(search.kernel, values[:-2])
    value = found.value / found.count
    return Tuning(kernel, signal, noise, value, objective, rows, moved, tuple(search.points), targets)


def _check(objective: str, fixed: Collection[str]) -> None:
    if objective not in FORMS:
        raise ParameterError(f"objective {objective!r} is not known; give one of {', '.join(FORMS)}")
    unknown = sorted(set(fixed) - set(MOVABLE))
    if isinstance(fixed, str) or unknown:
        raise ParameterError(f"fixed = {fixed!r} names what cannot move; give some of {', '.join(MOVABLE)}")


def _varying(sample: Sample, centre: Float | None, scale: Float) -> tuple[Bool, Float, Float]:
    """Mask of the targets that are not constant, and centre and scale of all targets, (d,) each."""
    Y = sample.Y
    centre = Y.mean(axis=0) if centre is None else np.asarray(centre, dtype=np.float64)
    scale = np.asarray(scale, dtype=np.float64)
    if scale.shape != (Y.shape[1],) or centre.shape != scale.shape or Y.shape[1] == 0:
        raise ShapeError(f"{Y.shape[1]} targets, centre {centre.shape} and scale {scale.shape}; give one for each")
    require_finite(sample.X, "the sample")
    require_finite(Y, "the targets of the sample")
    # The standard deviation is about the mean. A large offset costs digits, so that rounding grows with it.
    rounding = 8.0 * np.finfo(float).eps * np.abs(Y).max(axis=0, initial=0.0)
    varying = (Y.std(axis=0) > np.maximum(rounding, np.finfo(float).tiny)) & (scale > 0.0)
    if not varying.any():
        raise DataError(
            f"the targets of all {len(sample)} sampled rows are constant, and no evidence tells a noise or a "
            "lengthscale from them; give these as numbers"
        )
    return varying, centre, scale


def _over(run: Run, table: Table) -> Sweep:
    return lambda reduction: run(reduction, table)
