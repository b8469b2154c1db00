"""Exact posterior of each committee member at the queries, combined one member at a time.

The state is a few numbers per query. A member has b rows X with targets Y, the prior ``f ~ GP(mu, s k)`` and the noise
variance ``noise``. For a query x (Rasmussen & Williams 2006, eqs. (2.25), (2.26); ALGORITHMS 5.1)::

    C = k(X, X) + (noise / s) I = L L^T        v = L^-1 k(X, x)
    mu_i = mu + v^T L^-1 (Y - mu)              v_i = s (k(x, x) - |v|^2)

If the members share rows X_c (`grbcm`), with ``C_c = L_c L_c^T`` and ``v_c = L_c^-1 k(X_c, x)``, the base is the
posterior given these rows. The Schur complement gives the contribution of a member: with ``A = L_c^-1 k(X_c, X)``::

    C <- C - A^T A     k(X, x) <- k(X, x) - A^T v_c     Y - mu <- Y - mu - A^T L_c^-1 (Y_c - mu)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.linalg import InPlaceCholesky, add_to_diagonal, single_threaded_blas
from streamkernel.reductions.contract import SentAsFields, State, Sums
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.members._members import each_member, factor_member
from streamkernel.reductions.members.combiners import Combiner
from streamkernel.reductions.sums.row_noise import BlockNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int

_LEAST_PANEL, _PANEL_VALUES = 512, 1 << 21  # fewest queries of a panel, and kernel values of a panel with a member


@dataclass(frozen=True)
class CommitteePosterior:
    """Posterior of f at the queries, by the committee.

    Attributes
    ----------
    mean : (q, d), variance : (q,), the same for all targets.
    members : number of members.
    """

    mean: Float
    variance: Float
    members: int


@dataclass(frozen=True)
class _Panel:
    """A panel of queries: packed, with the posterior of the base at them."""

    at: slice
    queries: PreparedKernel
    features: Float  # v_c (c, q)
    left: Float  # v / s (q,)
    mean: Float  # minus the prior mean (q, d)


@dataclass(frozen=True)
class _Shared:
    """The rows that all members share: the packed points, the factor L_c, and ``L_c^-1 (Y_c - mu)``."""

    points: PreparedKernel
    factor: InPlaceCholesky
    targets: Float


@dataclass(frozen=True)
class MemberPredictions(SentAsFields, Sums[CommitteePosterior]):
    """Accumulate S, E and N of `combiners` over the members of a table.

    Parameters
    ----------
    kernel : unit kernel k.
    queries : (q, p) float64, in the units of the rows.
    centre : (d,) prior mean mu.
    noise : BlockNoise with the signal and noise variances, which forms the members. A row of weight w has the noise
        variance ``noise / w``.
    combiner : rule that combines the members.
    first : number of the first row of the table. `grbcm` gives weight 1 to the member of the first row that is not
        shared.
    shared : rows of weights > 0 that all members share; None if the combiner uses none.
    """

    kernel: Kernel
    queries: Float
    centre: Float
    noise: BlockNoise
    combiner: Combiner
    first: int = 0
    shared: Sample | None = None

    def __post_init__(self) -> None:
        if self.combiner.shares_rows != (self.shared is not None):
            raise ValueError(f"{self.combiner.name} and rows that members share do not go together")

    @property
    def row_multiple(self) -> int:
        return self.noise.row_multiple

    @cached_property
    def _base(self) -> _Shared | None:
        if self.shared is None:
            return None
        points = self.kernel.prepare(np.ascontiguousarray(self.shared.X, np.float64))
        C = points.block(points.points)
        factor = self._factor(C, self.shared.weights, self.shared.rows)
        Y = self.shared.Y - self.centre
        factor.solve(Y)
        return _Shared(points, factor, Y)

    @cached_property
    def _panels(self) -> list[_Panel]:
        size = max(_LEAST_PANEL, _PANEL_VALUES // self.noise.block_size)
        return [self._panel(slice(i, min(i + size, len(self.queries)))) for i in range(0, len(self.queries), size)]

    def _panel(self, at: slice) -> _Panel:
        queries = self.kernel.prepare(np.ascontiguousarray(self.queries[at]))
        prior = self.kernel.diagonal(queries.points)
        if self._base is None:
            return _Panel(at, queries, np.zeros((0, len(prior))), prior, np.zeros((len(prior), len(self.centre))))
        V = queries.block(self._base.points.points)
        self._base.factor.solve(V)
        return _Panel(at, queries, V, _left(prior, V), V.T @ self._base.targets)

    @cached_property
    def _leader(self) -> int:
        """Number of the row whose member has weight 1 in `grbcm`."""
        rows = np.zeros(0, np.int64) if self.shared is None else self.shared.rows
        others = np.flatnonzero(rows != self.first + np.arange(len(rows)))
        return int(self.first + (others[0] if len(others) else len(rows)))

    def _factor(self, C: Float, weights: Float | None, rows: Int) -> InPlaceCholesky:
        signal, noise = self.noise.signal, self.noise.noise
        add_to_diagonal(C, noise / signal if weights is None else noise / signal / weights)
        # The factor of b rows has a rounding of about b eps of the signal variance; 100 is a margin.
        least = max(100.0 * len(C) * float(np.finfo(np.float64).eps) * signal, 10.0 * noise)
        return factor_member(
            C,
            rows,
            f"noise variance {noise:.3g} is lost in the rounding of signal variance {signal:.3g}; give a noise "
            f"variance of {least:.1g} or more",
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        q, d = len(self.queries), len(self.centre)
        return {"S": (q,), "E": (q,), "N": (q, d), "members": (1,)}

    def fold(self, state: State, block: RowBlock) -> State:
        without = None if self.shared is None else self.shared.rows
        for rows in each_member(self.noise, block, self.kernel, without):
            self._add(state, block, rows)
        return state

    def _add(self, state: State, block: RowBlock, rows: Int) -> None:
        assert block.Y is not None
        X, Y, base = np.ascontiguousarray(block.X[rows], np.float64), block.Y[rows] - self.centre, self._base
        C = self.kernel.prepare(X).block(X)
        A = np.zeros((0, len(X)))
        if base is not None:
            A = np.ascontiguousarray(base.points.block(X).T)
            base.factor.solve(A)
            C -= A.T @ A
            Y -= A.T @ base.targets
        factor = self._factor(C, None if block.weights is None else block.weights[rows], block.start + rows)
        factor.solve(Y)
        leads = base is not None and bool((block.start + rows == self._leader).any())
        # One buffer for the kernel values of all panels, one after the other.
        memory = np.empty(max(len(panel.left) for panel in self._panels) * len(X))
        for panel in self._panels:
            V = memory[: len(X) * len(panel.left)].reshape(len(X), -1)
            panel.queries.block(X, out=V)
            if base is not None:
                # Schur complement: what the shared rows explain is taken out of the covariances with the queries.
                V -= A.T @ panel.features
            factor.solve(V)
            left = _left(panel.left, V)
            excess = np.divide(panel.left - left, left, out=np.zeros_like(left), where=left > 0.0)
            weights = np.ones_like(excess) if leads else self.combiner.weights(excess)
            state["S"][panel.at] += weights
            state["E"][panel.at] += weights * excess
            state["N"][panel.at] += (weights * (1.0 + excess))[:, None] * (V.T @ Y)
        state["members"] += 1.0

    def finalize(self, state: State) -> CommitteePosterior:
        P, shift = self.combiner.combined(state["S"], state["E"], state["N"])
        with single_threaded_blas():
            left = np.concatenate([panel.left for panel in self._panels])
            mean = self.centre + np.concatenate([panel.mean for panel in self._panels]) + shift
        return CommitteePosterior(mean, self.noise.signal * left / P, int(state["members"][0]))

    def scratch_bytes(self, rows: int) -> int:
        (q, p), d = self.queries.shape, len(self.centre)
        b, c = min(self.noise.block_size, rows), 0 if self.shared is None else len(self.shared)
        panel = min(max(_LEAST_PANEL, _PANEL_VALUES // self.noise.block_size), q)
        member = b * ((2 if c else 1) * b + 2 * c + 9 * p + 2 * d + 192) + panel * ((2 if c else 1) * b + d + 8)
        # Queries and shared rows packed, and the posterior of the base at the queries.
        shared = q * (4 * p + c + d + 2) + c * (c + 5 * p + 192)
        return int(8 * (member + shared)) + self.noise.scratch_bytes(rows, p, self.kernel.formulas)

    def flops_per_row(self) -> float:
        (q, p), d = self.queries.shape, len(self.centre)
        b, c = self.noise.block_size, 0 if self.shared is None else len(self.shared)
        return float(b * b / 3 + 2 * b * p + q * (b + 2 * p + 2 * d) + c * (c + 2 * b + 2 * p + 2 * q))


def _left(variance: Float, V: Float) -> Float:
    """``variance - |v|^2`` for each column v of V, at least ``eps * variance`` despite rounding."""
    explained = np.einsum("ij,ij->j", V, V)
    return np.asarray(np.maximum(variance - explained, np.finfo(np.float64).eps * variance))
