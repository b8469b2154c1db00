"""Ridge leverage scores estimated from a sample of rows, and rows drawn in proportion to the scores.

With a sample S of the rows, drawn with probabilities p, and a ridge lam::

    tau_i = min(1, ( k_ii - k_iS (K_SS + lam diag(p))^-1 k_Si ) / lam )

For p = 1, tau is never below the exact score ``(K (K + lam I)^-1)_ii``, and equals it if S is all rows. The
probabilities weight S so that it represents the rows that it was drawn from (Musco & Musco 2017, section 3; ALGORITHMS
12.2).

A row of weight w counts as w rows, and each of them has the score tau_i: the draw is by ``w_i tau_i``, and in the
formula the probability of a row of S is divided by its weight.

The rows are drawn without replacement: those with the smallest keys ``E_i / tau_i``, E_i exponential (Efraimidis &
Spirakis 2006), from a counter-based generator keyed by (seed, stream, row). Given the smallest key that was not drawn,
the probability of each row was ``1 - exp(-tau_i key)`` (Cohen & Kaplan 2007, rank conditioning).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import Whitener, add_to_diagonal, cholesky, single_threaded_blas
from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.reductions.row_random import row_uniforms
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int

# Least ridge, relative to the trace of K_SS: with it the Cholesky factor of a singular K_SS exists despite rounding.
_FLOOR = 1e-13


@dataclass(frozen=True)
class SampledKernel(SentAsFields):
    """A sample that represents the rows it was drawn from, and a ridge.

    Parameters
    ----------
    sample : the rows S, as an unwhitened basis.
    probabilities : (s,) probabilities with which they were drawn.
    ridge : lam > 0.
    """

    sample: Basis
    probabilities: Float
    ridge: float

    @cached_property
    def L(self) -> Float:
        """Lower triangular, ``L L^T = K_SS + lam diag(p)``."""
        gram = self.sample.gram()
        floor = _FLOOR * float(np.trace(gram))
        add_to_diagonal(gram, np.maximum(self.ridge * self.probabilities, floor))
        with single_threaded_blas():
            return np.ascontiguousarray(cholesky(gram, "the ridged kernel matrix of the sample"))

    @cached_property
    def whiten(self) -> Whitener:
        return Whitener(self.L)

    def scores(self, X: AnyArray) -> Float:
        """Score tau of each row, (b,)."""
        diagonal = self.sample.kernel.diagonal(X)
        features = self.sample.block(X)
        self.whiten(features)
        left = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
        return np.asarray(np.minimum(left / self.ridge, 1.0), np.float64)


@dataclass(frozen=True)
class LeverageDraw:
    """Result of the sweep.

    Attributes
    ----------
    total : sum of tau over the rows that were scored, by their weights.
    scored : number of these rows.
    rows, X, scores, probabilities : (k,), (k, p), (k,), (k,) the drawn rows, in the order of the draw (that of
        successive sampling), their tau and their probabilities of being drawn, divided by their weights.
    """

    total: float
    scored: int
    rows: Int
    X: AnyArray
    scores: Float
    probabilities: Float


@dataclass(frozen=True)
class RidgeLeverage(Reduction[LeverageDraw]):
    """Accumulate a `LeverageDraw`.

    Parameters
    ----------
    kernel : SampledKernel
    count : number of rows to draw.
    seed, stream : key of the draw.
    share : share of the rows to score: those with the smallest variates of ``stream[:1]``, so that a smaller share is a
        subset of a larger one.
    """

    kernel: SampledKernel
    count: int
    seed: int
    stream: tuple[int, ...]
    share: float = 1.0

    def map_block(self, block: RowBlock) -> State:
        b = len(block.X)
        scored = np.arange(b)
        if self.share < 1.0:
            scored = np.flatnonzero(row_uniforms(self.seed, self.stream[:1], block.start, b)[:, 0] < self.share)
        X = np.ascontiguousarray(block.X[scored])
        scores = self.kernel.scores(X)
        variates = row_uniforms(self.seed, self.stream, block.start, b)[scored, 0]
        weights = None if block.weights is None else block.weights[scored]
        share = scores if weights is None else weights * scores
        alive = np.flatnonzero(share > 0.0)
        state: State = {
            "totals": np.array([share.sum(), float(len(scored))]),
            "keys": -np.log(variates[alive]) / share[alive],
            **({} if weights is None else {"weights": weights[alive]}),
            "rows": block.start + scored[alive].astype(np.int64),
            "scores": scores[alive],
            "X": X[alive],
        }
        return self._smallest(state)

    def combine(self, left: State, right: State) -> State:
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name != "totals"}
        return self._smallest({"totals": left["totals"] + right["totals"], **both})

    def _smallest(self, state: State) -> State:
        """The `count` + 1 rows with the smallest keys, ties by row number; the last key is the threshold."""
        kept = np.lexsort((state["rows"], state["keys"]))[: self.count + 1]
        return {name: values if name == "totals" else values[kept] for name, values in state.items()}

    def finalize(self, state: State) -> LeverageDraw:
        k = self.count
        scores = state["scores"][:k]
        threshold = float(state["keys"][k]) if len(state["keys"]) > k else np.inf
        weights = state["weights"][:k] if "weights" in state else np.ones(len(scores))
        return LeverageDraw(
            float(state["totals"][0]),
            int(state["totals"][1]),
            state["rows"][:k],
            state["X"][:k],
            scores,
            -np.expm1(-scores * weights * threshold) / weights,
        )

    def state_bytes(self) -> int:
        points = self.kernel.sample.points
        return int((self.count + 1) * (32 + points.shape[1] * points.dtype.itemsize) + 16)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.kernel.sample.points.shape
        # By chance a block has more rows to score than its share.
        scored = min(1.0, 1.5 * self.share + 0.02)
        return int(8 * rows * (scored * (n + 2 * p) + 16))

    def flops_per_row(self) -> float:
        n, p = self.kernel.sample.points.shape
        return float(self.share * (n * n + 2 * n * p) + 100)
