"""What one sweep of matching pursuit brings: a matrix of few rows whose columns have the inner products of long ones.

For functions D_I that are in the model, candidates D_M and targets Y over m rows, U with ::

    U^T U = [D_I, 1, D_M, Y]^T [D_I, 1, D_M, Y]

has all that a pursuit asks for: matching pursuit of the m rows is that of U's few (ALGORITHMS 1.3, 4). Two ways to it:

- **root**: a streaming QR of the raw columns (TSQR, Demmel et al. 2012), for any function of two rows;
- **gram**: for positive definite kernels the Gram matrix of ``[G, 1, R, Y]``, half the work or less: whitened, the
  columns have nearly all the digits in half as many, and ``D_I = G L^T, D_M = R + G G_M^T``.

Rows that are held out get a U of their own, from the same sweep: the error of every size of the path on them is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from streamkernel.linalg import independent_rows, mirror_upper, solve_lower, syrk
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.dictionary_columns import DictionaryColumns
from streamkernel.reductions.dictionary_rows import HeldOut, ResidualReservoir
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.pool import PoolColumns
from streamkernel.table import RowBlock

__all__ = ["DictionarySums", "Roots"]

Float = NDArray[np.float64]

_LEAST_CURVATURE = 1e-5  # of the logistic loss: rows that are certain count for next to nothing, and divide by no zero
_ROUNDING = 1e-13  # of a column's square: what a Gram matrix knows nothing of


@dataclass(frozen=True)
class Roots:
    """What `DictionarySums` brings.

    Attributes
    ----------
    U : (r, width) root of the raw columns ``[D_I, 1, D_M, Y]`` over the rows of the fit; from row `below` on what is
        left of them beyond D_I and 1.
    below : rank of ``[D_I, 1]``.
    check : (r', width) the same of the held-out rows; None where there are none.
    rows, check_rows : sums of the weights of both.
    trace : sum of k(x, x) over the rows of the fit.
    loss, wrong : (2,) of the model that the sweep began with, on the rows of the fit and on those held out: sum of the
        losses, and how many classes it gets wrong.
    squares : (n,) of the columns of the model over the rows of the fit, as of `DictionarySums.columns`; where U is
        weighted by curvatures, else None.
    drawn : candidates for the next sweep, where these were asked for.
    """

    U: Float
    below: int
    check: Float | None
    rows: float
    check_rows: float
    trace: float
    loss: Float
    wrong: Float
    squares: Float | None
    drawn: Sample | None


@dataclass(frozen=True)
class DictionarySums(Reduction[Roots]):
    """Accumulate `Roots`.

    Parameters
    ----------
    columns : raw ones, for the root, or whitened ones, for the Gram matrix.
    beta : (projected, d) coefficients of the model so far, as of `columns`; None where nothing asks for what it leaves.
    coding : (classes, d) takes indicators of classes to targets; None for targets as they are.
    held_out : rows that stay out.
    draw : candidates for the next sweep, by what the model leaves of their targets.
    scale : (d,) in whose units that is measured.
    logistic : of two classes, the sums of a step of Newton's method for the logistic loss in place of the targets' own:
        with f of the model so far and p the probability of the wrong class, rows weigh ``w = p (1 - p)`` and their
        target is ``f + t p / w`` (ALGORITHMS 5.2).
    """

    columns: PoolColumns | DictionaryColumns
    beta: Float | None = None
    coding: Float | None = None
    held_out: HeldOut | None = None
    draw: ResidualReservoir | None = None
    scale: Float | None = None
    logistic: bool = False

    @property
    def _by_gram(self) -> bool:
        return isinstance(self.columns, PoolColumns)

    def map_block(self, block: RowBlock) -> State:
        wide, state = self._looked_at(block)
        return {name: self._root(part) for name, part in wide.items()} | state

    def fold(self, state: State, block: RowBlock) -> State:
        wide, fresh = self._looked_at(block)
        for name, part in wide.items():
            if self._by_gram:
                syrk(part, into=state[name])
            else:
                state[name] = _triangular(np.concatenate([state[name], part]))
        return {name: state[name] for name in wide} | self._merged(state, fresh)

    def combine(self, left: State, right: State) -> State:
        merged = self._merged(left, right)
        for name in ("fit", "check"):
            if name in left:
                both = (
                    left[name] + right[name]
                    if self._by_gram
                    else _triangular(np.concatenate([left[name], right[name]]))
                )
                merged[name] = both
        return merged

    def _merged(self, left: State, right: State) -> State:
        merged: State = {name: left[name] + right[name] for name in ("totals", "squares") if name in left}
        if self.draw is not None:
            merged |= self.draw.merged(left, right)
        return merged

    def _root(self, part: Float) -> Float:
        if not self._by_gram:
            return _triangular(part)
        gram = np.zeros((part.shape[1], part.shape[1]))
        syrk(part, into=gram)
        return gram

    def _looked_at(self, block: RowBlock) -> tuple[dict[str, Float], State]:
        """Columns of the rows of the fit and of those held out, and all else of a state."""
        assert block.Y is not None
        Y = block.Y if self.coding is None else block.Y @ self.coding
        columns: Float = self.columns.of(RowBlock(block.start, block.X, Y))
        d, p = Y.shape[1], self.columns.projected
        weights = np.ones(len(Y)) if block.weights is None else block.weights
        fitted = np.ones(len(Y), dtype=np.bool_)
        if self.held_out is not None:
            fitted = ~self.held_out.mask(block.start, len(Y))
        diagonal = self.columns.pool.kernel.diagonal(block.X)
        totals = np.zeros(7)
        totals[:3] = weights[fitted].sum(), weights[~fitted].sum(), (weights * diagonal)[fitted].sum()
        state: State = {"totals": totals}
        if self.beta is not None:
            left = columns[:, -d:] - columns[:, :p] @ self.beta
            if self.coding is not None:
                predicted = Y - left
                wrong = (predicted.argmax(axis=1) != Y.argmax(axis=1)) if d > 1 else ((predicted > 0) != (Y > 0))[:, 0]
                totals[5:] = (weights * wrong)[fitted].sum(), (weights * wrong)[~fitted].sum()
            if self.logistic:
                left, weights, state["squares"] = self._newton(columns, Y, left, weights, fitted, totals)
            if self.draw is not None:
                size = np.sqrt(((left / (1.0 if self.scale is None else self.scale)) ** 2).sum(axis=1))
                state |= self.draw.of(block.start, block.X, np.where(fitted, size, 0.0))
        if block.weights is not None or self.logistic:
            columns *= np.sqrt(weights)[:, None]
        if self.held_out is None:
            return {"fit": columns}, state
        return {"fit": columns[fitted], "check": columns[~fitted]}, state

    def _newton(
        self, columns: Float, Y: Float, left: Float, weights: Float, fitted: NDArray[np.bool_], totals: Float
    ) -> tuple[Float, Float, Float]:
        """Responses in place of the targets, losses into the totals.

        Gives the slope of the loss by f, the weights of the rows, and
        squares of the columns of the model, as they are without these weights.
        """
        n = len(self.columns.basis)
        squares: Float = np.einsum("ij,ij->j", columns[fitted, :n], columns[fitted, :n])
        f = Y - left
        margin = (Y * f)[:, 0]
        losses = weights * np.logaddexp(0.0, -margin)
        totals[3:5] = losses[fitted].sum(), losses[~fitted].sum()
        p = scipy.special.expit(-margin)[:, None]
        curvature = np.maximum(p * (1.0 - p), _LEAST_CURVATURE)
        columns[:, -1:] = f + Y * p / curvature
        return Y * p, weights * curvature[:, 0], squares

    def finalize(self, state: State) -> Roots:
        totals = state["totals"]
        U, below = self._raw(state["fit"], self.columns.projected)
        return Roots(
            U=U,
            below=below,
            check=self._raw(state["check"], 0)[0] if "check" in state else None,
            rows=float(totals[0]),
            check_rows=float(totals[1]),
            trace=float(totals[2]),
            loss=totals[3:5],
            wrong=totals[5:],
            squares=state.get("squares"),
            drawn=None if self.draw is None else self.draw.sample(state),
        )

    def _raw(self, sums: Float, first: int) -> tuple[Float, int]:
        """The root of the raw columns, and how many of its rows the `first` of them need."""
        columns, p = self.columns, self.columns.projected
        if not isinstance(columns, PoolColumns):
            return sums, min(first, len(sums))
        U, below = _root_of_gram(mirror_upper(sums), first)
        n, k = len(columns.basis), len(columns.pool)
        if n:
            U[:, p : p + k] += U[:, :n] @ columns.features_of_pool.T
            U[:, :n] = U[:, :n] @ columns.basis.L.T
        return U, below

    def state_bytes(self) -> int:
        parts = 1 if self.held_out is None else 2
        sums = 56 + (8 * len(self.columns.basis) if self.logistic else 0)
        return parts * 8 * self.columns.width**2 + sums + (0 if self.draw is None else self.draw.bytes())

    def scratch_bytes(self, rows: int) -> int:
        width = self.columns.width
        copies = 8 * rows * width * (1 if self.held_out is None else 2)
        stacked = 0 if self._by_gram else 16 * (rows + width) * width
        return self.columns.scratch_bytes(rows) + copies + stacked

    def flops_per_row(self) -> float:
        # Of `PoolColumns` the Gram matrix is counted already.
        return self.columns.flops_per_row() + (0.0 if self._by_gram else 2.0 * self.columns.width**2)


def _triangular(A: Float) -> Float:
    """Upper triangular (or trapezoidal) U with ``U^T U = A^T A``."""
    U: Float = np.linalg.qr(A, mode="r")  # type: ignore[assignment]
    return U


def _root_of_gram(gram: Float, first: int) -> tuple[Float, int]:
    """U with ``U^T U = gram``, triangular in the order of the `first` columns; and their rank.

    The others are factored with pivoting, which is stable whatever depends on what; their order is their own again
    afterwards, as nothing is asked of it.
    """
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    scaled = gram / np.outer(unit, unit)
    leading = independent_rows(scaled[:first, :first], _ROUNDING)
    below = len(leading.kept)
    across = solve_lower(leading.L, scaled[leading.kept]) if below else np.zeros((0, len(gram)))
    rest = scaled[first:, first:] - across[:, first:].T @ across[:, first:]
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(rest, lower=0)
    U = np.zeros((below + rank, len(gram)))
    U[:below] = across
    U[below:, first + order - 1] = np.triu(factor)[:rank]
    return U * unit, below
