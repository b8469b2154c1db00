"""Sums of a Bayesian committee of support vector machines. Experimental: there is no published formula.

Schwaighofer & Tresp (2001) combine SVMs by Tresp 2001, eqs. (8), (9). The review does not give the covariances. The
choice here (ALGORITHMS 6.3): the kernel is ``kappa = s k + offset``, and its constant replaces the bias. Member i of b
rows is the machine without a bias that minimises ``|f|^2 / 2 + C sum_j w_j (1 - t_j f(x_j))_+``. Its mean at the query
points Z is f(Z). Its covariance is that of the prior given f at the support vectors S inside the box, ``0 < a < C w``,
which lie at the kink of the loss. With ``L L^T = kappa(Z, Z)`` and ``V = L^-1 kappa(Z, S)``::

    Om = kappa(S, S) - V^T V + tau I        D = V Om^-1 V^T
    A += D                                  c += (I + D) L^-1 f(Z)          (A starts at I)

A member without support vectors inside the box has D = 0. A dual value counts as at an end of the box if it is within
``1e-6 C w`` of it.

With ``u_j = t_j a_j`` its dual is ``max t^T u - u^T K u / 2`` in the boxes between 0 and ``C w t`` (`box_maximum`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import (
    add_to_diagonal,
    box_maximum,
    cholesky,
    mirror_upper,
    single_threaded_blas,
    solve_lower,
    subtract_gram,
)
from streamkernel.reductions._mergeable import MergeableSums
from streamkernel.reductions.contract import SentAsFields, State, Sums
from streamkernel.reductions.likelihoods.families import Bernoulli
from streamkernel.reductions.members._members import each_member, factor_member
from streamkernel.reductions.sums.row_noise import BlockNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int

_TOLERANCE = 1e-8  # of the derivatives of the dual
_AT_BOUND = 1e-6
_JITTER = 1e-12  # of the mean of the diagonal: rounding limits the independence of points to about this


@dataclass(frozen=True)
class SVMSums(MergeableSums):
    """Sums over the members.

    Attributes
    ----------
    A : (n, n), without the I of the prior; c : (n,)
    count, members : numbers of rows and of members.
    vectors, inside : numbers of support vectors, and of those inside the box.
    """

    A: Float
    c: Float
    count: int
    members: int
    vectors: int
    inside: int


@dataclass(frozen=True)
class SVMMembers(SentAsFields, Sums[SVMSums]):
    """Accumulate `SVMSums` over the members of a table of two classes.

    Parameters
    ----------
    basis : Basis of n functions, the query points Z, with the unit kernel k.
    signal, offset : variances of the function (s) and of its constant.
    C : cost of a row.
    tau : remaining variance of the function at a support vector inside the box.
    members : BlockNoise that forms the members; its variances are not used.
    """

    basis: Basis
    signal: float
    offset: float
    C: float
    tau: float
    members: BlockNoise

    @property
    def row_multiple(self) -> int:
        return self.members.row_multiple

    @cached_property
    def points(self) -> Float:
        """Query points Z, (n, p) float64."""
        return np.ascontiguousarray(self.basis.points, np.float64)

    @cached_property
    def L(self) -> Float:
        """Lower factor of ``kappa(Z, Z)``, (n, n)."""
        with single_threaded_blas():
            prior = self.covariance(self.points, self.points)
            add_to_diagonal(prior, _JITTER * float(np.diagonal(prior).mean()))
            return cholesky(prior, "the covariance of the query points")

    def covariance(self, X: Float, Z: Float) -> Float:
        """``kappa(X, Z)``, (b, n)."""
        K: Float = self.basis.kernel.prepare(Z).block(X)
        K *= self.signal
        K += self.offset
        return K

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n = len(self.basis)
        return {"A": (n, n), "c": (n,), "totals": (4,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"A"})

    def fold(self, state: State, block: RowBlock) -> State:
        t = 2.0 * Bernoulli().targets(block.Y, block.start)[:, 0] - 1.0
        for rows in each_member(self.members, block, self.basis.kernel):
            weights = np.ones(len(rows)) if block.weights is None else block.weights[rows]
            self._add(state, np.ascontiguousarray(block.X[rows], np.float64), t[rows], weights, block.start + rows)
        return state

    def _add(self, state: State, X: Float, t: Float, weights: Float, rows: Int) -> None:
        K = self.covariance(X, X)
        a = dual_values(K, t, self.C, weights)
        G = solve_lower(self.L, self.covariance(self.points, X)).T
        mean = G.T @ (a * t)
        state["c"] += mean
        box = self.C * weights
        inside = (a > _AT_BOUND * box) & (a < (1.0 - _AT_BOUND) * box)
        if inside.any():
            V = np.ascontiguousarray(G[inside])
            Om = np.ascontiguousarray(K[np.ix_(inside, inside)])
            subtract_gram(V, into=Om)
            add_to_diagonal(Om, self.tau)
            # V <- L^-1 V in place: then V^T V is V^T Om^-1 V, a sum of squares.
            factor_member(Om, rows[inside], "give a larger tau").solve(V)
            D = V.T @ V
            state["A"] += D
            state["c"] += D @ mean
        state["totals"] += [len(rows), 1.0, np.count_nonzero(a > _AT_BOUND * box), np.count_nonzero(inside)]

    def finalize(self, state: State) -> SVMSums:
        count, members, vectors, inside = (int(value) for value in state["totals"])
        return SVMSums(mirror_upper(state["A"]), state["c"], count, members, vectors, inside)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        b = min(self.members.block_size, rows)
        # The kernel matrix, and that of the variables with their mirror images.
        own = 8 * (b * (6 * b + 3 * n + 9 * p + 64) + n * (n + 4 * p) + 8 * rows)
        return int(own) + self.members.scratch_bytes(rows, p, self.basis.kernel.formulas)

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        b = self.members.block_size
        return float(40 * b + 2 * b * p + b * b / 3 + 2 * n * (n + p))


def dual_values(K: Float, t: Float, C: float, weights: Float) -> Float:
    """Dual values a (b,) in ``[0, C w]`` that maximise ``sum a - (t a)^T K (t a) / 2``."""
    end = C * weights * t
    return np.asarray(t * box_maximum(K, t, np.minimum(end, 0.0), np.maximum(end, 0.0), _TOLERANCE))
