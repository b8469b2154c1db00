"""Hyper-parameters of a Gaussian process: their search, its record in the model, and variances from sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, step_of
from streamkernel.fits._choose_basis import Chosen
from streamkernel.kernels import Kernel, log_lengthscales, packed_bytes, per_feature
from streamkernel.models.gaussian import TuningRecord
from streamkernel.reductions import Sample
from streamkernel.reductions.pools import PoolColumns
from streamkernel.reductions.sums import DiagonalNoise, EvidenceGradient, GaussianEquations, GaussianSums
from streamkernel.selection import Problem
from streamkernel.selection.forms import GramForm
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.gaussian import EVIDENCE, GaussianSettings
from streamkernel.tuning import Tuning, polish, tune
from streamkernel.type_aliases import AnyArray, Float, Int

SAMPLE_BASIS = 400  # points of the sparse process on the sample
TUNING_BYTES = 100 << 20  # resident after a search: the optimiser, compiled loops, buffers of BLAS
FULL_EVALUATIONS = 10  # evaluations of the evidence over all rows, two sweeps each

_ROUNDS, _LOOKS = 4, 60  # of a search on the sample, about
_MOST_LOOKS = 80  # that are kept
_CLIMB = 40  # numbers of a lengthscale that L-BFGS-B holds: ten pairs of steps and slopes, and as much again
_SINGLE = np.dtype(np.float32)

FULL = "full"  # stage of a point that was evaluated on all rows


@dataclass(frozen=True)
class GaussianTuner:
    """The search on the sample for the hyper-parameters of the largest evidence; `choose_basis` calls it."""

    settings: GaussianSettings
    session: Session

    def __call__(self, sample: Sample, kernel: Kernel, centre: Float, scale: Float) -> Tuning:
        settings, unit = self.settings, float((scale**2).mean())
        given = {
            name: None if value == EVIDENCE else float(value) / unit
            for name, value in (("signal", settings.signal_variance), ("noise", settings.noise_variance))
        }
        fixed = [name for name, value in given.items() if value is not None]
        if not settings.tunes_lengthscale:
            fixed.append("lengthscale")
        found = tune(
            sample,
            kernel,
            scale=scale,
            centre=centre,
            ard=settings.ard,
            n_basis=SAMPLE_BASIS,
            signal=given["signal"],
            noise=given["noise"],
            fixed=fixed,
            seed=settings.seed,
            run=self.session.local,
        )
        self.session.progress.note(f"hyper-parameters of {len(found.points)} looks at {found.rows} sampled rows")
        return found

    def polished(self, chosen: Chosen) -> tuple[Chosen, GaussianSums | None]:
        """The same basis points with hyper-parameters optimised over all rows, where the settings ask for it.

        Also returns the sums at the optimum, which equal those of the final sweep of "fitc"; None without such a
        search.
        """
        if not self.settings.polishes or chosen.tuning is None:
            return chosen, None
        count = iter(range(1, 10**6))

        def sweep(reduction: Any) -> Any:
            sums = self.session.sweep(reduction, chosen.table, f"evidence {next(count)}")
            return sums if chosen.independent == 1.0 else sums.times(chosen.independent)

        found = polish(
            chosen.tuning,
            sweep,
            chosen.selection.basis,
            centre=chosen.centre,
            scale=chosen.scale,
            evaluations=FULL_EVALUATIONS,
        )
        selection = replace(chosen.selection, basis=found.basis)
        if len(found.basis) < len(chosen.selection.basis):
            selection = chosen.selection.left(found.basis, _places(found.basis, chosen.selection.basis))
        chosen = replace(chosen, kernel=found.basis.kernel, selection=selection, tuning=found.tuning)
        return chosen, found.sums if chosen.independent == 1.0 else found.sums.times(1.0 / chosen.independent)


def _places(part: Basis, whole: Basis) -> Int:
    """Positions in `whole` of the points of `part`, a subsequence; by value, because centres have no row numbers."""
    points = enumerate(whole.points)
    return np.asarray([next(i for i, z in points if np.array_equal(z, point)) for point in part.points], np.int64)


def tuning_steps(problem: Problem, rows: int, *, ard: bool = False) -> list[Step]:
    """What a search on so many sampled rows costs: points chosen for each round, and some 60 looks of two passes.

    Parameters
    ----------
    ard : whether each feature gets a lengthscale of its own.
    """
    n = min(SAMPLE_BASIS, rows)
    if ard:
        problem = replace(problem, kernel=per_feature(problem.kernel, problem.table.n_features))
    points = points_step(problem, n, rows, times=3 * _ROUNDS)
    # The record of every look: each lengthscale costs a Python float and an entry of a tuple.
    lengths = len(log_lengthscales(problem.kernel))
    looks = _MOST_LOOKS * (32 * lengths) + _CLIMB * 8 * lengths if lengths > 1 else 0
    return [replace(points, kept_bytes=looks), *evidence_steps(problem, n, rows, times=_LOOKS, where="sample")]


def points_step(problem: Problem, n: int, rows: int, *, times: int) -> Step:
    """What it costs to choose n of so many sampled rows as points (`solvers.sample_basis`)."""
    p, item = problem.table.n_features, problem.table.dtype.itemsize
    half = n // 2
    size = min(4 * (n - half), rows - half)  # no more candidates than there are rows that are no points yet
    pool = PoolColumns(unfilled_basis(problem, half), unfilled_basis(problem, size), np.zeros(0), _SINGLE)
    return step_of(
        "points of the sample",
        GramForm().reduction(pool),
        problem.table,
        sampled=rows,
        kernel_columns=half + size,
        where="sample",
        times=times,
        packings=2,
        # The points before and after, the candidates, and these in float64 while their features are computed.
        rows_bytes=p * (item * (half + n + size) + 8 * size),
        # Residuals of all rows at once: in float64, and their features.
        held_bytes=8 * rows * (p + n) + packed_bytes(n, p, problem.kernel.formulas),
    )


def evidence_steps(problem: Problem, n: int, rows: int, *, times: int, where: str = "sweep") -> list[Step]:
    """The steps of this many evaluations of the evidence and its gradient, two passes each."""
    basis, d = unfilled_basis(problem, n), max(len(problem.centre), 1)
    ones = np.ones(d)
    sums = GaussianEquations(basis, np.zeros(d), DiagonalNoise(1.0, 1.0))
    slopes = EvidenceGradient(basis, np.zeros(d), ones, 1.0, 1.0, np.zeros((n, n)), np.zeros((n, d)), True)
    held = 8 * 10 * n * n  # the precision, its factors and inverse, and what is made of them
    # Slopes have panels of their own; beside a sweep those of the basis that was chosen stay.
    sampled, chosen = (rows, 0) if where == "sample" else (None, 1)
    return [
        step_of(
            name,
            work,
            problem.table,
            sampled=sampled,
            kernel_columns=n,
            where=where,
            times=times,
            held_bytes=held,
            packings=packings + chosen,
            # The points that were chosen, and as they are joined to a basis for each kernel that is looked at.
            rows_bytes=2 * basis.points.dtype.itemsize * basis.points.size,
        )
        for name, work, packings in (("evidence", sums, 1), ("its gradient", slopes, 2))
    ]


def tuning_record(chosen: Chosen) -> TuningRecord | None:
    """The record of the search for hyper-parameters; None without a search."""
    tuning = chosen.tuning
    if tuning is None:
        return None
    lengths = len(tuning.points[0].lengthscales)
    names = [f"lengthscale of {name}" for name in chosen.table.columns] if lengths > 1 else ["lengthscale"] * lengths
    noise: dict[str, float] = {} if tuning.noise is None else {"noise": tuning.noise}
    return TuningRecord(
        objective=tuning.objective,
        parameters=(*names, "signal variance", *(["noise variance"] if noise else [])),
        best=_best(tuning),
        sample_rows=tuning.rows,
        moved=tuple(tuning.moved),
        signal=tuning.signal,
        **noise,
        value=tuning.value,
    )


def tuning_arrays(chosen: Chosen) -> dict[str, AnyArray]:
    """Every point that was evaluated."""
    points = () if chosen.tuning is None else chosen.tuning.points
    if not points:
        return {}
    logs = [
        np.log([*point.lengthscales, point.signal, *([] if point.noise is None else [point.noise])]) for point in points
    ]
    return {
        "tuning_parameters": np.array(logs),
        "tuning_values": np.array([point.value for point in points]),
        "tuning_stage": np.array([int(point.stage == FULL) for point in points], dtype=np.int64),
    }


def _best(tuning: Tuning) -> int:
    """Index of the point that the model uses: the best of the last stage."""
    full = any(point.stage == FULL for point in tuning.points)
    values = [point.value if (point.stage == FULL) == full else -np.inf for point in tuning.points]
    return int(np.argmax(values))
