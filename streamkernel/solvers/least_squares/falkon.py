"""Reduced kernel ridge regression by conjugate gradients, preconditioned by k(Z, Z): one sweep per iteration.

The system is that of `RidgeSystem`, in whitened coordinates ``G = k(X, Z) L^-T`` (m, n), ``L L^T = k(Z, Z)``::

    (G^T W G + alpha I) beta = G^T W Y,    coefficients = L^-T beta

The preconditioner P estimates the sum over m rows from the n basis points, whose features are L::

    P = (m / n) L^T L + alpha I

(Falkon: Rudi, Carratino & Rosasco 2017; their lambda is alpha / m, and their two triangular factors give the same
iterates; ALGORITHMS 12.3). No n x n matrix is summed or sent. A sweep computes ``G^T W (G v)``, n d numbers, in O(m n)
operations: for large n some tens of sweeps are less work than the m n^2 of the direct solve. An unpenalised intercept
is projected out of the product, by column sums of the first sweep, and out of P.

The basis points estimate the sum well if they are like a uniform sample of the rows and alpha is not small. Otherwise
the number of iterations grows, and a larger sample of rows (`sample`) gives a better P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import (
    add_to_diagonal,
    cholesky,
    require_finite,
    single_threaded_blas,
    solve_lower,
    solve_lower_t,
)
from streamkernel.reductions import DrawnRows, Gather, Sample, draw_rows
from streamkernel.reductions.sums import (
    EachFold,
    FeatureGram,
    Features,
    FoldParts,
    NormalProduct,
    NormalTargets,
    RidgeSums,
    TargetSums,
)
from streamkernel.solvers.least_squares._conjugate_gradients import ConjugateGradients, Ended, column_products, iterate
from streamkernel.table import Folds, Table, open_table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_SAMPLE_STREAM = (21,)
_RIGHT_SIDE = "right side of the normal equations"


@dataclass(frozen=True)
class FalkonSolution:
    """A ridge regression fitted by conjugate gradients.

    Attributes
    ----------
    alpha, coefficients (n, d), intercept (d,), residual_square (d,) : as in `RidgeSolution`.
    residuals : (iterations + 1, d) ``|g - A beta| / |g|`` in the norm of P^-1 after each iteration; the last one is
        that of the true residual, computed by one more sweep.
    excess : (d,) upper bound ``|r|^2 / alpha`` of the distance of ``|Y - f|^2 + alpha |f|^2`` from its minimum.
    iterations, sweeps : numbers of iterations and sweeps of this solve, without the first sweep of the system.
    ended : "tolerance", "iterations", or "rounding" if rounding of the sums keeps the residual above the tolerance.
    """

    alpha: float
    coefficients: Float
    intercept: Float
    residual_square: Float
    residuals: Float
    excess: Float
    iterations: int
    sweeps: int
    ended: Ended

    @property
    def converged(self) -> bool:
        """True if the residual of every target reached the tolerance or the rounding level."""
        return self.ended != "iterations"


class FalkonSystem:
    """The reduced system. One sweep computes its right side; each alpha then takes some more sweeps.

    Parameters
    ----------
    basis : Basis of n functions.
    table : m rows with targets; row weights are used.
    session : Session that runs and counts the sweeps.
    centre : (d,) constant near the mean of each target; zeros by default.
    intercept : True to fit an unpenalised constant.
    sample : uniform rows in memory (`sampled_rows`) from which P estimates the sum, or their sums, which are used up;
        None for the basis points. A few times n rows make P good for every alpha and basis, at n^2 operations each.
    residual_trace : True to compute the exact residual trace. It needs whitened features, n^2 operations per row in the
        first sweep, as many as the direct solve takes in its only sweep.
    folds : folds of the rows whose sums are kept apart (`parts`); the table then has keys.

    Attributes
    ----------
    sums : TargetSums of all rows; parts : those of each fold, or None without folds.
    residual_path : (n + 1,) exact residual traces, as in `RidgeSystem`; None without `residual_trace`.
    """

    def __init__(
        self,
        basis: Basis,
        table: Table,
        session: Session,
        *,
        centre: ArrayLike | None = None,
        intercept: bool = True,
        sample: Table | RidgeSums | None = None,
        residual_trace: bool = True,
        folds: Folds | None = None,
    ) -> None:
        if table.n_targets == 0:
            raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
        taken = np.zeros(table.n_targets) if centre is None else np.asarray(centre, dtype=np.float64)
        self.basis, self.table, self.session = basis, table, session
        self.intercept, self.folds, self._sample = intercept, folds, sample
        work = NormalTargets(basis, taken, whiten=residual_trace)
        self.parts: FoldParts[TargetSums] | None = None
        if folds is None:
            self.sums: TargetSums = session.sweep(work, table, _RIGHT_SIDE)
        else:
            self.parts = session.sweep(EachFold(work, folds), table, _RIGHT_SIDE)
            self.sums = self.parts.trained
            for held in self.parts.held:
                self.sums = self.sums.merge(held)
        require_finite(self.sums.g, "the sum g")
        self.residual_path = self.sums.residual_path
        self._g, self._square = self.sums.least_squares(intercept)

    @property
    def residual_trace(self) -> float | None:
        """``tr(K - K~)``, exact (Smola & Schoelkopf 2000, eq. (22)); None if it was not requested."""
        return None if self.residual_path is None else float(self.residual_path[-1])

    @cached_property
    def _guess(self) -> Float:
        """Estimate of ``G^T W G`` from the sample or the basis points; centred if there is an intercept."""
        with single_threaded_blas():
            if self._sample is None:
                L = self.basis.L
                H, G1, weight = L.T @ L, L.sum(axis=0), float(max(len(L), 1))
            elif isinstance(self._sample, RidgeSums):
                H, G1, weight = self._sample.H, self._sample.G1, self._sample.weight
                self._sample = None
            else:
                seen = self.session.local(FeatureGram(Features.of_basis(self.basis)), self._sample)
                H, G1, weight = seen.H, seen.G1, float(seen.count)
            if self.intercept:
                H -= np.outer(G1, G1) / weight
            # From the sum over the sample to that over all rows.
            H *= self.sums.weight / weight
        return H

    def preconditioner(self, alpha: float, share: float = 1.0) -> Float:
        """Lower Cholesky factor of P, (n, n), for a share of the rows."""
        P = self._guess * share
        add_to_diagonal(P, alpha)
        with single_threaded_blas():
            return cholesky(P, f"the preconditioner with alpha = {alpha:g}", "give a larger alpha, or solve directly")

    def product(self, beta: Float, alpha: float) -> Float:
        """``A beta``, (n, d), with A the matrix of the system: one sweep."""
        coefficients = self.basis.coefficients(beta)
        H = self.session.sweep(NormalProduct(self.basis, coefficients), self.table, "product with G^T G")
        H += alpha * beta
        if self.intercept:
            H -= np.outer(self.sums.G1, self.sums.G1 @ beta) / self.sums.weight
        return H

    def solve(self, alpha: float, *, tol: float = 1e-10, most: int = 300, start: Float | None = None) -> FalkonSolution:
        """Coefficients for one alpha.

        Parameters
        ----------
        alpha : ridge > 0 on the diagonal.
        tol : stop at ``|g - A beta| <= tol |g|`` in the norm of P^-1, for each target.
        most : largest number of iterations.
        start : beta (n, d) to begin with, which takes one more sweep; None for 0.

        Raises
        ------
        ParameterError
            A parameter is out of range.
        NumericalError
            alpha is lost in the rounding of P, or the solution is not finite.
        """
        alpha, tol, most = checked_number("alpha", alpha), checked_number("tol", tol), checked_integer("most", most)
        before = len(self.session.records)
        factor = self.preconditioner(alpha)
        with single_threaded_blas():

            def precondition(R: Float) -> Float:
                return solve_lower_t(factor, solve_lower(factor, R))

            begun = None if start is None else (start, self._g - self.product(start, alpha))
            cg = ConjugateGradients(self._g, lambda V, _: self.product(V, alpha), precondition, begun)
            first, path = column_products(self._g, precondition(self._g)), list[Float]()

            def note(again: bool) -> Float:
                now = relative_residual(cg.rz, first)
                if again:
                    path.pop()
                elif path:
                    self.session.progress.note(f"iteration {len(path)}: relative residual {now.max():.3g}")
                path.append(now)
                return now

            iterations, ended = iterate(cg, note, tol, most)
            if begun is not None and (worse := path[-1] > path[0]).any():
                # Rounding left no better solution than the one to begin with.
                cg.X[:, worse], cg.R[:, worse] = begun[0][:, worse], begun[1][:, worse]
                path[-1] = np.where(worse, path[0], path[-1])
            return self._solution(alpha, cg, np.array(path), iterations, len(self.session.records) - before, ended)

    def _solution(
        self, alpha: float, cg: ConjugateGradients, path: Float, iterations: int, sweeps: int, ended: Ended
    ) -> FalkonSolution:
        beta, sums = cg.X, self.sums
        coefficients = self.basis.coefficients(beta)
        require_finite(coefficients, f"the solution for alpha = {alpha:g}")
        intercept = np.zeros_like(sums.centre)
        if self.intercept:
            intercept = sums.centre + (sums.Y1 - sums.G1 @ beta) / sums.weight
        # |Y - G beta|^2 = |Y|^2 - 2 beta^T g + beta^T H beta, with H beta = g - r - alpha beta.
        explained = column_products(beta, self._g + cg.R) + alpha * column_products(beta, beta)
        return FalkonSolution(
            alpha=alpha,
            coefficients=coefficients,
            intercept=intercept,
            residual_square=np.maximum(self._square - explained, 0.0),
            residuals=path,
            excess=column_products(cg.R, cg.R) / alpha,
            iterations=iterations,
            sweeps=sweeps,
            ended=ended,
        )


def relative_residual(rz: Float, first: Float) -> Float:
    """``sqrt(rz / first)``; 0 where the right side is 0."""
    share = np.divide(np.maximum(rz, 0.0), first, out=np.zeros_like(rz), where=first > 0.0)
    return np.asarray(np.sqrt(share))


def sampled_rows(table: Table, session: Session, count: int, seed: int = 0) -> Table:
    """The features of up to `count` uniform rows of a table, without replacement, as a table in memory: one sweep."""

    def fetch(rows: Int) -> Sample:
        return session.sweep(Gather.of(rows, table), table, "rows for the preconditioner")

    return features_in_memory(uniform_sample(uniform_draw(table, count, seed), fetch), table)


def features_in_memory(sample: Sample, table: Table) -> Table:
    """The features of sampled rows of a table as a table, with weights where it has them."""
    return open_table(np.ascontiguousarray(sample.X), weights=None if table.weights is None else sample.weights)


def uniform_draw(table: Table, count: int, seed: int = 0) -> DrawnRows:
    """Up to `count` rows of a table in ascending order, drawn in proportion to their weights, without replacement."""
    return draw_rows(table, count, seed, _SAMPLE_STREAM).ascending()


def uniform_sample(drawn: DrawnRows, fetch: Callable[[Int], Sample]) -> Sample:
    """Drawn rows, with weights with which the sample stands for all rows: in sum the number of drawn rows.

    They are the row weights where all rows are drawn.

    Parameters
    ----------
    fetch : function of numbers of rows: these rows, with their row weights.
    """
    sample = fetch(drawn.rows)
    if drawn.weights is None or drawn.complete:
        return sample
    return replace(sample, weights=drawn.importance * (min(len(drawn), drawn.total) / drawn.total))
