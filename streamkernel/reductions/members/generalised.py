"""Sums of a Bayesian committee machine for generalised Gaussian process regression.

Each member of b rows finds its own mode under the prior ``f ~ GP(mu, s k)`` (`laplace_mode`). At the mode its rows are
equivalent to normal targets z with noise variances W^-1. These enter the sums as in a committee for regression (Tresp
2001, section 3.1.2; Tresp 2000b; ALGORITHMS 6.2). With whitened features ``G = k(X, Z) L^-T`` at the query points Z, ::

    Om = s (k(X, X) - G G^T) + W^-1
    H += G^T Om^-1 G          g += G^T Om^-1 (z - mu)

The code factors ``W^1/2 Om W^1/2``, all of whose eigenvalues are 1 or more, because W^-1 does not exist for rows
without information (W = 0). A committee of one member is Laplace's approximation of the whole process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import add_to_diagonal, mirror_upper, subtract_gram, syrk
from streamkernel.reductions._mergeable import MergeableSums
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.likelihoods.families import Bernoulli
from streamkernel.reductions.likelihoods.laplace_mode import find_mode
from streamkernel.reductions.likelihoods.likelihood import Likelihood
from streamkernel.reductions.members._members import each_member, factor_member, where_of
from streamkernel.reductions.sums.row_noise import BlockNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int

_STEPS = 7  # usual number of Newton steps of a member, for the plan


@dataclass(frozen=True)
class GeneralisedSums(MergeableSums):
    """Sums over the members, for each of c functions.

    Attributes
    ----------
    H : (c, n, n), g : (n, c), for the features of the unit kernel.
    centre : (c,) prior means.
    count, members, steps : numbers of rows, of members, and of Newton steps of all members together.
    """

    H: Float
    g: Float
    centre: Float
    count: int
    members: int
    steps: int


@dataclass(frozen=True)
class GeneralisedMembers(Sums[GeneralisedSums]):
    """Accumulate `GeneralisedSums` over the members of a table.

    Parameters
    ----------
    basis : Basis of n functions, the query points.
    likelihood : Bernoulli or Poisson; with Bernoulli and more than two classes, each class is fitted against the rest.
    signal : signal variance s.
    centre : (c,) prior means mu; c is 1 for two classes.
    members : BlockNoise that forms the members; its variances are not used.
    """

    basis: Basis
    likelihood: Likelihood
    signal: float
    centre: Float
    members: BlockNoise

    @property
    def row_multiple(self) -> int:
        return self.members.row_multiple

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, c = len(self.basis), len(self.centre)
        return {"H": (c, n, n), "g": (n, c), "totals": (3,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"H"})

    def fold(self, state: State, block: RowBlock) -> State:
        y = self._targets(block)
        for rows in each_member(self.members, block, self.basis.kernel):
            weights = None if block.weights is None else block.weights[rows]
            self._add(state, block, rows, y[rows], weights)
        return state

    def _targets(self, block: RowBlock) -> Float:
        """Targets of each function, (b, c)."""
        if isinstance(self.likelihood, Bernoulli) and len(self.centre) > 1:
            assert block.Y is not None
            columns = [self.likelihood.targets(column[:, None], block.start) for column in block.Y.T]
            return np.concatenate(columns, axis=1)
        return self.likelihood.targets(block.Y, block.start)

    def _add(self, state: State, block: RowBlock, rows: Int, y: Float, weights: Float | None) -> None:
        X = np.ascontiguousarray(block.X[rows], np.float64)
        K = self.basis.kernel.prepare(X).block(X)
        G = self.basis.features(X)
        residual = K.copy()
        subtract_gram(G, into=residual)
        K *= self.signal
        for j, centre in enumerate(self.centre.tolist()):
            mode = find_mode(K, y[:, j], self.likelihood, centre, weights, where_of(block.start + rows))
            roots = np.sqrt(self.signal) * mode.roots
            C = residual * roots[:, None]
            C *= roots
            add_to_diagonal(C, 1.0)
            factor = factor_member(C, block.start + rows, "look at the scale of the features and the kernel")
            white, z = G * mode.roots[:, None], mode.scaled[:, None].copy()
            factor.solve(white)
            factor.solve(z)
            syrk(white, into=state["H"][j])
            state["g"][:, j] += (white.T @ z)[:, 0]
            state["totals"][2] += mode.steps
        state["totals"][:2] += [len(rows), 1.0]

    def finalize(self, state: State) -> GeneralisedSums:
        for H in state["H"]:
            mirror_upper(H)
        count, members, steps = (int(value) for value in state["totals"])
        return GeneralisedSums(state["H"], state["g"], self.centre, count, members, steps)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        b = min(self.members.block_size, rows)
        own = 8 * (b * (4 * b + 2 * n + 9 * p + 224) + rows * len(self.centre))
        return int(own) + self.members.scratch_bytes(rows, p, self.basis.kernel.formulas)

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        b, c = self.members.block_size, len(self.centre)
        each = (_STEPS + 1) * (b * b / 3 + 8 * b) + b * n + n * n
        return float(c * each + b * (n + 2 * p) + n * n + 2 * n * p)
