"""Sparse greedy Gaussian process regression, with the gap to the full model as certificate and stopping rule.

Each pick is the one of 59 candidates that decreases ``J = |Y - G beta|^2 + rho |beta|^2`` most; -J / 2 rho is the log
posterior up to a constant. This is the prediction gain of `Mixture`, exact over all rows. The sums that score the
candidates also give J and the residual trace after each pick. By duality they also bound the decrease of J that a fit
with all rows as basis functions could still reach (Smola & Bartlett 2001; ALGORITHMS 10.6; `linalg.duality`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, driver_step
from streamkernel.kernels import filling_bytes, packed_bytes
from streamkernel.linalg import DualityPath, cholesky, duality_path, single_threaded_blas, solve_lower
from streamkernel.records import RoundRecord
from streamkernel.reductions import Sample, uniform_rows
from streamkernel.reductions.pools import PoolSums
from streamkernel.selection._picks import Picks, projection_ridge
from streamkernel.selection.greedy import Greedy
from streamkernel.selection.problem import Problem, Selection, gather_step
from streamkernel.selection.rounds import Rounds
from streamkernel.selection.row_cache import RowCache
from streamkernel.selection.scores import Mixture
from streamkernel.type_aliases import Float, Int

_DUAL = (22,)


def grown_sums(sums: PoolSums, order: Int) -> tuple[Float, Float]:
    """H and g of the basis with the candidates `order` appended; they add the features ``R_P L_S^-T``."""
    L = cholesky(sums.S[np.ix_(order, order)], "the residual matrix of the picks")
    cross = solve_lower(L, np.ascontiguousarray(sums.E[:, order].T))
    corner = solve_lower(L, solve_lower(L, sums.C[np.ix_(order, order)]).T)
    # The corner is symmetric up to the rounding of two solves.
    H = np.block([[sums.H, cross.T], [cross, 0.5 * (corner + corner.T)]])
    return H, np.concatenate([sums.g, solve_lower(L, sums.F[order])])


@dataclass(frozen=True)
class PosteriorGreedy(Greedy):
    """`Greedy` on all rows, in Gram form, with a score of targets. It records the gap after each pick.

    Parameters
    ----------
    score : Mixture of the gains.
    gap : stop when `DualityPath.relative` is at most this; 0 to continue to n. The ridge is that of the round.
    dual_rows : number of uniform rows in the sparse dual beside the basis; with more rows the bound is tighter.
    """

    score: Mixture
    gap: float = 0.0
    dual_rows: int = 0
    _none: ClassVar[DualityPath] = DualityPath(*np.zeros((4, 0)))

    def prefetch(self, problem: Problem) -> Int:
        return np.union1d(super().prefetch(problem), self._dual(problem))

    def _dual(self, problem: Problem) -> Int:
        return np.sort(uniform_rows(problem.table, self.dual_rows, problem.seed, _DUAL))

    def steps(self, problem: Problem) -> list[Step]:
        # The sums give the residual traces: a tolerance costs no extra sweep.
        steps = super().steps(replace(problem, tol=0.0))
        n, rows, table = problem.n, problem.n + min(self.dual_rows, problem.table.counted), problem.table
        p, item = table.width, table.dtype.itemsize
        pool = self.draw.pool_size(problem, self.take.count(0, n), 0)
        # The rows of the dual as they were fetched and joined to the basis, packed beside it as it was and is, and
        # beside the pool.
        sizes = (rows, n, n, pool)
        wide = 2 * (rows + pool) * item * p + sum(packed_bytes(each, p, problem.kernel.formulas) for each in sizes)
        held = 8 * (4 * n**2 + 3 * rows**2) + wide + filling_bytes(p)
        steps.append(driver_step("gap to the full fit", held))
        if self.dual_rows:
            more = gather_step(problem, self.dual_rows)
            steps = [
                replace(
                    step,
                    state_bytes=step.state_bytes + more.state_bytes,
                    held_bytes=step.held_bytes + more.held_bytes,
                    kept_bytes=step.kept_bytes + more.kept_bytes,
                )
                if step.name == more.name
                else step
                for step in steps
            ]
        return steps

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        basis, gaps = problem.empty_basis(), self._none
        gains: list[Float] = [np.zeros(0)]
        rounds: list[RoundRecord] = []
        ended, supply = "size", Rounds.of(self.take, problem.n)
        while len(basis) < problem.n and ended == "size":
            picks = self.take.count(len(basis), problem.n)
            drawn = self.draw.draw(problem, session, cache, basis, picks, len(rounds))
            if not len(drawn.pool):
                ended = "rank"
                break
            columns = self._columns(problem, basis, drawn.pool)
            sums = self._sums(self.form.reduction(columns), problem, session, drawn, len(basis))
            rho = projection_ridge(sums, self.score, problem.scale)
            unit = sums.trace / sums.weight
            score = replace(self.score, rho=rho / unit if unit > 0.0 else 1.0)
            found = replace(self, score=score)._picks(problem, columns, sums, drawn.groups, picks)
            del columns  # packed: of wide rows there is no room for them beside what follows
            grown, kept = basis.append(drawn.pool.points[found.order], drawn.pool.rows[found.order])
            found = found.take(kept)
            residual = max(0.0, sums.trace - float(np.trace(sums.H)))
            if len(kept):
                path, left = self._path(problem, cache, sums, rho, found, grown)
                within = (path.relative <= self.gap) | (left <= problem.tol * sums.trace)
                within &= (self.gap > 0.0) | (problem.tol > 0.0)
                if within.any():
                    ended, size = "tolerance", 1 + int(np.argmax(within))
                    grown, path = grown.take(np.arange(len(basis) + size)), path.part(slice(size))
                    found = found.take(np.arange(size))
                gaps = gaps.and_then(path)
                session.progress.note(f"{len(grown)} of {problem.n} basis functions, gap {path.relative[-1]:.3g}")
            rounds.append(RoundRecord(len(basis), len(grown), residual, len(drawn.pool), problem.table.n_rows))
            gains.append(found.gains)
            added, basis = len(grown) - len(basis), grown
            if ended == "size" and supply.exhausted(added, 1 if found.ended == "digits" else picks):
                ended = "rank"
        return Selection(basis, np.concatenate(gains), tuple(rounds), ended, gaps=gaps)

    def _path(
        self, problem: Problem, cache: RowCache, sums: PoolSums, rho: float, found: Picks, grown: Basis
    ) -> tuple[DualityPath, Float]:
        """Gap and residual trace after each of these picks."""
        n = len(grown) - len(found.order)
        scale = problem.scale
        with single_threaded_blas():
            H, g = grown_sums(sums, found.order)
            left = np.maximum(sums.trace - np.cumsum(np.diagonal(H)), 0.0)
            yy = float((np.diagonal(sums.YY) / scale**2).sum())
            others = self._dual(problem)
            K, Y = _dual_rows(problem, cache.get(others[~np.isin(others, grown.rows)]), cache.get(grown.rows), grown)
            path = duality_path(H, g / scale, yy, rho, left, K, Y)
        return path.part(slice(n, None)), left[n:]


def _dual_rows(problem: Problem, others: Sample, picked: Sample, basis: Basis) -> tuple[Float, Float]:
    """Kernel matrix and scaled targets of the rows of the dual, times the roots of their weights."""
    points = np.concatenate([others.X, basis.points]).astype(np.float64)
    # Weight 0 for rows of validation folds: without them the dual is a bound too, and their targets are not used.
    root = np.sqrt(np.concatenate([problem.training_weights(others), problem.training_weights(picked)]))[:, None]
    Y = (np.concatenate([others.Y, picked.Y]) - problem.centre) / problem.scale
    return root * problem.kernel(points) * root.T, root * Y
