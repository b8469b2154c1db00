"""What one sweep of matching pursuit brings: a matrix of few rows whose columns have the inner products of long ones.

For functions D_I that are in the model, candidates D_M and targets Y over m rows, U with ::

    U^T U = [D_I, 1, D_M, Y]^T [D_I, 1, D_M, Y]

has all that a pursuit asks for: matching pursuit of the m rows is that of U's few (ALGORITHMS 1.3, 4).
The three ways to it are those of `inner_products`.

Rows that are held out get a U of their own, from the same sweep: the error of every size of the path on them is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.dictionary_columns import DictionaryColumns
from streamkernel.reductions.dictionary_rows import HeldOut, ResidualReservoir
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.inner_products import Gram, InnerProducts, inner_products, root_of_gram
from streamkernel.reductions.pool import PoolColumns
from streamkernel.table import RowBlock

__all__ = ["DictionarySums", "Roots"]

Float = NDArray[np.float64]

_LEAST_CURVATURE = 1e-5  # of the logistic loss: rows that are certain count for next to nothing, and divide by no zero


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
    squares : (n,) of the whitened columns of the model over the rows of the fit; where U is weighted by curvatures,
        else None.
    drawn : candidates for the next sweep, where these were asked for.
    gram : what U is a root of, of whitened columns; where it came from these, and no row was weighted by curvature.
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
    gram: Gram | None


@dataclass(frozen=True)
class DictionarySums(Reduction[Roots]):
    """Accumulate `Roots`.

    Parameters
    ----------
    columns : raw ones, for the root, or whitened ones, for the Gram matrix; of `ResidualColumns` for what is not known.
    beta : (projected, d) coefficients of the model so far, as of `columns`; None where nothing asks for what it leaves.
    coding : (classes, d) takes indicators of classes to targets; None for targets as they are.
    held_out : rows that stay out.
    draw : candidates for the next sweep, by what the model leaves of their targets.
    scale : (d,) in whose units that is measured.
    logistic : the sums of a step for the logistic loss in place of the targets' own, with f of the model so far. Of two
        classes it is Newton's: p being the probability of the wrong one, rows weigh ``w = p (1 - p)`` and their target
        is ``f + t p / w`` (ALGORITHMS 5.2). Of more, p their softmax, ``w = max_c 2 p_c (1 - p_c)`` and
        ``f + (y - p) / w``: no eigenvalue of ``diag p - p p^T`` is larger (Gershgorin), one weight serves all classes.
    known : of ``[G, 1, Y]``, over the same rows; where the columns are `ResidualColumns`.
    """

    columns: PoolColumns | DictionaryColumns
    beta: Float | None = None
    coding: Float | None = None
    held_out: HeldOut | None = None
    draw: ResidualReservoir | None = None
    scale: Float | None = None
    logistic: bool = False
    known: Gram | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Whoever sums rows need not know; it is asked for where the sums are put together.
        return {**self.__dict__, "known": None}

    @property
    def _tells_squares(self) -> bool:
        # Else they are those of the sums, which no curvature weighs.
        return self.logistic and isinstance(self.columns, PoolColumns)

    @property
    def _products(self) -> InnerProducts:
        return inner_products(self.columns)

    def map_block(self, block: RowBlock) -> State:
        wide, state = self._looked_at(block)
        return {name: self._products.add(self._products.empty(), part) for name, part in wide.items()} | state

    def fold(self, state: State, block: RowBlock) -> State:
        wide, fresh = self._looked_at(block)
        return {name: self._products.add(state[name], part) for name, part in wide.items()} | self._merged(state, fresh)

    def combine(self, left: State, right: State) -> State:
        merged = self._merged(left, right)
        return merged | {
            name: self._products.both(left[name], right[name]) for name in ("fit", "check") if name in left
        }

    def _merged(self, left: State, right: State) -> State:
        merged: State = {name: left[name] + right[name] for name in ("totals", "squares") if name in left}
        if self.draw is not None:
            merged |= self.draw.merged(left, right)
        return merged

    def _looked_at(self, block: RowBlock) -> tuple[dict[str, Float], State]:
        """Columns of the rows of the fit and of those held out, and all else of a state."""
        assert block.Y is not None
        Y = block.Y if self.coding is None else block.Y @ self.coding
        columns: Float = self.columns.of(RowBlock(block.start, block.X, Y))
        d, p = Y.shape[1], self.columns.projected
        weights = np.ones(len(Y)) if block.weights is None else block.weights
        fitted = np.ones(len(Y), dtype=np.bool_)
        if self.held_out is not None:
            fitted = ~self.held_out.of(block)
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
                if self._tells_squares:
                    own = columns[fitted, : len(self.columns.basis)]
                    state["squares"] = np.einsum("ij,ij->j", own, own)
                left, weights = self._newton(columns, Y, left, weights, fitted, totals)
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
    ) -> tuple[Float, Float]:
        """Responses in place of the targets, losses into the totals; the slope of the loss by f, and rows' weights."""
        f = Y - left
        if Y.shape[1] == 1:
            margin = Y * f
            losses = np.logaddexp(0.0, -margin)[:, 0]
            p = scipy.special.expit(-margin)
            slope, curvature = Y * p, p * (1.0 - p)
        else:
            losses = scipy.special.logsumexp(f, axis=1) - (Y * f).sum(axis=1)
            p = scipy.special.softmax(f, axis=1)
            slope, curvature = Y - p, (2.0 * p * (1.0 - p)).max(axis=1, keepdims=True)
        losses = weights * losses
        totals[3:5] = losses[fitted].sum(), losses[~fitted].sum()
        curvature = np.maximum(curvature, _LEAST_CURVATURE)
        columns[:, -Y.shape[1] :] = f + slope / curvature
        return slope, weights * curvature[:, 0]

    def finalize(self, state: State) -> Roots:
        totals, known = state["totals"], self.known
        fit = self._products.gram(state["fit"], None if known is None else known.fit)
        check = None
        if "check" in state:
            check = self._products.gram(state["check"], None if known is None else known.check)
        U, below = self._raw(state["fit"], fit, self.columns.projected)
        return Roots(
            U=U,
            below=below,
            check=self._raw(state["check"], check, 0)[0] if "check" in state else None,
            rows=float(totals[0]),
            check_rows=float(totals[1]),
            trace=float(totals[2]),
            loss=totals[3:5],
            wrong=totals[5:],
            squares=state.get("squares"),
            drawn=None if self.draw is None else self.draw.sample(state),
            gram=None if fit is None or self.logistic else Gram(fit, check),
        )

    def _raw(self, sums: Float, gram: Float | None, first: int) -> tuple[Float, int]:
        """The root of the raw columns, and how many of its rows the `first` of them need."""
        columns, p = self.columns, self.columns.projected
        if gram is None or isinstance(columns, DictionaryColumns):
            return sums, min(first, len(sums))
        U, below = root_of_gram(gram, first)
        n, k = len(columns.basis), len(columns.pool)
        if n:
            U[:, p : p + k] += U[:, :n] @ columns.features_of_pool.T
            U[:, :n] = U[:, :n] @ columns.basis.L.T
        return U, below

    def state_bytes(self) -> int:
        parts = 1 if self.held_out is None else 2
        sums = 56 + (8 * len(self.columns.basis) if self._tells_squares else 0)
        return parts * 8 * math.prod(self._products.shape()) + sums + (0 if self.draw is None else self.draw.bytes())

    def scratch_bytes(self, rows: int) -> int:
        width = self.columns.width
        copies = 8 * rows * width * (1 if self.held_out is None else 2)
        stacked = 16 * (rows + width) * width if isinstance(self.columns, DictionaryColumns) else 0
        return self.columns.scratch_bytes(rows) + copies + stacked

    def flops_per_row(self) -> float:
        root = 2.0 * self.columns.width**2 if isinstance(self.columns, DictionaryColumns) else 0.0
        return self.columns.flops_per_row() + root  # Gram matrices are counted already
