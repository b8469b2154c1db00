"""Sums of one Newton step of generalised regression on whitened features, float64.

With features G (m, n), functions ``f = G A + a`` of coefficients A (n, c) and constants a (c,), and ``G~ = [G, 1]``::

    loss = sum_i w_i (-log p(y_i | f_i))    gradient = G~^T (A'(f) - y)    P_k = G~^T diag(w_k(f)) G~

The Hessian by A and a is ``sum_k e_k e_k^T kron P_k`` (`Likelihood`). One sweep computes the losses at several step
lengths along a direction, and the gradient and Hessian at its end. If the full step is accepted, no second sweep is
needed. If it is refused, the losses give a shorter step length. ALGORITHMS 5.2; Tresp 2001, section 2.3.

If f is constant, its curvature is constant too. One Gram matrix then gives the Hessian for every constant, so that the
first sweep does not need the constants (`NewtonStart`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import mirror_upper, syrk
from streamkernel.reductions.contract import Result, State, Sums
from streamkernel.reductions.likelihoods.likelihood import Likelihood
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

_EXPONENTIAL_FLOPS = 40  # operations in the time of one exponential and the work around it
_PANEL_ROWS = 1024  # few enough that the weighted copy stays in the cache, and enough for SYRK to run at its full rate


@dataclass(frozen=True)
class Latent:
    """Functions ``f = G A + a``.

    Parameters
    ----------
    A : (n, c) coefficients of the whitened features.
    a : (c,) constants.
    """

    A: Float
    a: Float

    def values(self, G: Float) -> Float:
        """Values f of the functions, (b, c)."""
        return np.asarray(G @ self.A + self.a)


@dataclass(frozen=True)
class StartSums:
    """Sums that give loss, gradient and Hessian at all constant functions.

    Attributes
    ----------
    gram : (n + 1, n + 1), ``G~^T diag(w) G~``
    targets : (n + 1, c), ``G~^T diag(w) y``
    base : loss of f = 0.
    trace : weighted sum of k(x, x); 0 for a stored factor.
    count : number of rows m.
    """

    gram: Float
    targets: Float
    base: float
    trace: float
    count: int

    @property
    def weight(self) -> float:
        """Sum of the row weights."""
        return float(self.gram[-1, -1])

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~)``, weighted; 0 for a stored factor."""
        return max(0.0, self.trace - float(np.trace(self.gram)) + self.weight)

    def times(self, factor: float) -> StartSums:
        """The sums as if every row occurred `factor` times."""
        return StartSums(factor * self.gram, factor * self.targets, factor * self.base, factor * self.trace, self.count)

    def loss(self, likelihood: Likelihood, a: Float) -> float:
        """Loss of the constants a (c,)."""
        both = likelihood.cumulant(np.stack([a, np.zeros_like(a)]))
        return float(self.base + self.weight * (both[0] - both[1]) - self.targets[-1] @ a)

    def gradient(self, likelihood: Likelihood, a: Float) -> Float:
        """``G~^T (A'(f) - y)`` at the constants a, (n + 1, c)."""
        return np.asarray(np.outer(self.gram[:, -1], likelihood.mean(a[None])[0]) - self.targets)

    def at(self, likelihood: Likelihood, a: Float) -> NewtonSums:
        """The sums at ``A = 0`` and the constants a (c,), with the curvature at `Likelihood.cautious`."""
        weights = likelihood.weights(likelihood.cautious(a)[None])[0]
        return NewtonSums(
            losses=np.array([self.loss(likelihood, a)]),
            gradient=self.gradient(likelihood, a),
            curvature=weights[:, None, None] * self.gram,
        )


@dataclass(frozen=True)
class NewtonSums:
    """Losses at several step lengths along a direction, and the derivatives at its end.

    Attributes
    ----------
    losses : (T,) loss of each step length.
    gradient : (n + 1, c), ``G~^T (A'(f) - y)``; the last row is the gradient by the constants.
    curvature : (K, n + 1, n + 1), the P_k.
    """

    losses: Float
    gradient: Float
    curvature: Float


@dataclass(frozen=True)
class NewtonStart(Sums[StartSums]):
    """Accumulate `StartSums`.

    Parameters
    ----------
    features : Features of n functions.
    likelihood : Likelihood of c functions.
    """

    features: Features
    likelihood: Likelihood

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, c = self.features.width, self.likelihood.width
        return {"gram": (n + 1, n + 1), "targets": (n + 1, c), "totals": (3,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"gram"})

    def fold(self, state: State, block: RowBlock) -> State:
        y = self.likelihood.targets(block.Y, block.start)
        G = self.features.of(block.X)
        weights = block.row_weights
        add_weighted_gram(G, np.ascontiguousarray(weights[:, None]), state["gram"][None])
        weighted = weights[:, None] * y
        state["targets"][:-1] += G.T @ weighted
        state["targets"][-1] += weighted.sum(axis=0)
        basis = self.features.basis
        trace = 0.0 if basis is None else weights @ basis.kernel.diagonal(block.X)
        state["totals"] += [len(G), weights @ self.likelihood.loss(y, np.zeros_like(y)), trace]
        return state

    def finalize(self, state: State) -> StartSums:
        count, base, trace = (float(value) for value in state["totals"])
        return StartSums(mirror_upper(state["gram"]), state["targets"], base, trace, int(count))

    def scratch_bytes(self, rows: int) -> int:
        return _scratch_bytes(self.features, rows, 4 * self.likelihood.width + 4)

    def flops_per_row(self) -> float:
        n = self.features.width
        return _feature_flops(self.features) + float((n + 1) ** 2 + 2 * n * self.likelihood.width)


@dataclass(frozen=True)
class LikelihoodStep(Sums[Result]):
    """Base of the sums of losses along a direction, and of the derivatives at its end.

    Parameters
    ----------
    features : Features of n functions.
    likelihood : Likelihood of c functions.
    start, end : Latent at step lengths 0 and 1.
    steps : step lengths at which the loss is summed; the derivatives are at length 1.
    """

    features: Features
    likelihood: Likelihood
    start: Latent
    end: Latent
    steps: tuple[float, ...] = (1.0,)

    def _add_losses(self, block: RowBlock, end: Float, start: Float, into: Float) -> Float:
        """Add the losses of the block along the direction to `into` (T,); `end` and `start` are f (b, c) at its ends.

        Returns the weighted ``A'(f) - y`` (b, c) at the end of the direction.
        """
        y = self.likelihood.targets(block.Y, block.start)
        for position, step in enumerate(self.steps):
            f = end if step == 1.0 else start + step * (end - start)
            loss = self.likelihood.loss(y, f)
            into[position] += loss.sum() if block.weights is None else block.weights @ loss
        residual = self.likelihood.mean(end) - y
        return residual if block.weights is None else residual * block.weights[:, None]

    def _loss_flops(self) -> int:
        """Operations per row of the losses."""
        return _EXPONENTIAL_FLOPS * self.likelihood.width * len(self.steps)


@dataclass(frozen=True)
class NewtonStep(LikelihoodStep[NewtonSums]):
    """Accumulate `NewtonSums` from `start` to `end`."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, c, K = self.features.width, self.likelihood.width, self.likelihood.pair_count
        return {"losses": (len(self.steps),), "gradient": (n + 1, c), "curvature": (K, n + 1, n + 1)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"curvature"})

    def fold(self, state: State, block: RowBlock) -> State:
        G = self.features.of(block.X)
        f = self.end.values(G)
        residual = self._add_losses(block, f, self.start.values(G), state["losses"])
        state["gradient"][:-1] += G.T @ residual
        state["gradient"][-1] += residual.sum(axis=0)
        weights = self.likelihood.weights(f)
        if block.weights is not None:
            weights *= block.weights[:, None]
        add_weighted_gram(G, weights, state["curvature"])
        return state

    def finalize(self, state: State) -> NewtonSums:
        for gram in state["curvature"]:
            mirror_upper(gram)
        return NewtonSums(state["losses"], state["gradient"], state["curvature"])

    def scratch_bytes(self, rows: int) -> int:
        return _scratch_bytes(self.features, rows, 8 * self.likelihood.width + 4 * self.likelihood.pair_count)

    def flops_per_row(self) -> float:
        n, c, K = self.features.width, self.likelihood.width, self.likelihood.pair_count
        return _feature_flops(self.features) + float(K * (n + 1) ** 2 + 6 * n * c + self._loss_flops())


def add_weighted_gram(G: Float, weights: Float, into: Float) -> None:
    """Add ``[G, 1]^T diag(w_k) [G, 1]`` to the upper triangle of ``into[k]``.

    Parameters
    ----------
    G : (b, n), weights : (b, K) at least 0, into : (K, n + 1, n + 1)
    """
    n = G.shape[1]
    roots = np.sqrt(weights)
    scratch = np.empty((min(_PANEL_ROWS, len(G)), n + 1))
    for first in range(0, len(G), _PANEL_ROWS):
        panel = G[first : first + _PANEL_ROWS]
        for k in range(weights.shape[1]):
            root = roots[first : first + len(panel), k]
            rows: Float = panel
            counted = np.flatnonzero(root)
            if len(counted) < len(root):
                # Rows outside the margin have weight 0, often most of them, and SYRK is the largest cost of a step.
                rows, root = panel[counted], root[counted]
            if not len(root):
                continue
            weighted = scratch[: len(root)]
            # Roots of the weights on both factors: SYRK then sums G^T diag(w) G in half the operations of a product.
            np.multiply(rows, root[:, None], out=weighted[:, :n])
            weighted[:, n] = root
            syrk(weighted, into=into[k])


def _scratch_bytes(features: Features, rows: int, columns: int) -> int:
    """Bytes of G, of two panels of it (rows with a weight, and weighted), and of `columns` further columns."""
    panel = 2 * min(_PANEL_ROWS, rows) * (features.width + 1)
    return features.scratch_bytes(rows) + 8 * (panel + rows * columns)


def _feature_flops(features: Features) -> float:
    return features.raw_flops() + (0.0 if features.basis is None else float(features.width**2))
