"""One sweep of matching pursuit: a matrix of few rows whose columns have the inner products of the m-row columns.

For functions D_I of the model, candidates D_M and targets Y over m rows, the sweep computes U with ::

    U^T U = [D_I, 1, D_M, Y]^T [D_I, 1, D_M, Y]

Matching pursuit on the few rows of U makes the same picks as on the m rows (ALGORITHMS 1.3, 4).
`inner_products` has three ways to compute U.

The same sweep computes a second U of the held-out rows. It gives the exact held-out error at every size of the path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.special

from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.pools.dictionary_columns import DictionaryColumns
from streamkernel.reductions.pools.dictionary_rows import HeldOut, ResidualReservoir
from streamkernel.reductions.pools.inner_products import Gram, InnerProducts, inner_products, root_of_gram
from streamkernel.reductions.pools.pool import PoolColumns
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Bool, Fields, Float

_LEAST_CURVATURE = 1e-5  # of the logistic loss: the weight of a row that is nearly certain, which divides its response


@dataclass(frozen=True)
class Roots:
    """Result of `DictionarySums`.

    Attributes
    ----------
    U : (r, width) root of the Gram matrix of the raw columns ``[D_I, 1, D_M, Y]`` over the rows of the fit; its rows
        from `below` on are the part orthogonal to D_I and 1.
    below : rank of ``[D_I, 1]``.
    check : (r', width) root over the held-out rows; None without held-out rows.
    rows, check_rows : sums of the weights of the rows of the fit, and of the held-out rows.
    trace : sum of k(x, x) over the rows of the fit.
    loss, wrong : (2,) sum of the losses, and weight of the misclassified rows, of the model at the start of the sweep;
        on the rows of the fit and on the held-out rows.
    squares : (n,) sums of squares of the whitened columns of the model over the rows of the fit, if curvatures weight
        the rows of U; else None.
    drawn : candidates for the next sweep; None without `draw`.
    gram : Gram matrix of the whitened columns, of which U is a root; None for raw columns and for curvature weights.
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
    columns : raw columns, for a triangular factor, or whitened columns, for the Gram matrix; `ResidualColumns` if the
        Gram matrix of ``[G, 1, Y]`` is `known`.
    beta : (projected, d) coefficients of the current model, in the coordinates of `columns`; None if no residuals are
        needed.
    coding : (classes, d) map from class indicators to targets; None to use the targets as they are.
    held_out : HeldOut, which selects the held-out rows; None for none.
    draw : ResidualReservoir, which draws candidates for the next sweep by the size of their residuals; None for none.
    scale : (d,) units in which residuals are measured.
    logistic : True to sum a step of the logistic loss at the current model f, in place of least squares. For two
        classes it is a Newton step: with p the probability of the wrong class, a row has the weight ``w = p (1 - p)``
        and the target ``f + t p / w`` (ALGORITHMS 5.2). For more classes, with p their softmax, ``w = max_c 2 p_c (1 -
        p_c)`` and the target is ``f + (y - p) / w``. No eigenvalue of ``diag p - p p^T`` exceeds w (Gershgorin), so
        that one weight serves all classes.
    known : Gram matrix of ``[G, 1, Y]`` over the same rows; needed with `ResidualColumns`.
    """

    columns: PoolColumns | DictionaryColumns
    beta: Float | None = None
    coding: Float | None = None
    held_out: HeldOut | None = None
    draw: ResidualReservoir | None = None
    scale: Float | None = None
    logistic: bool = False
    known: Gram | None = None

    def __getstate__(self) -> Fields:
        # Only `finalize`, on the driver, reads `known`: workers do not need it.
        return {**self.__dict__, "known": None}

    @property
    def _sums_squares(self) -> bool:
        # Otherwise the diagonal of the Gram matrix has these squares, because no curvature weights its rows.
        return self.logistic and isinstance(self.columns, PoolColumns)

    @property
    def _products(self) -> InnerProducts:
        return inner_products(self.columns)

    def map_block(self, block: RowBlock) -> State:
        wide, state = self._parts_of(block)
        return {name: self._products.add(self._products.empty(), part) for name, part in wide.items()} | state

    def fold(self, state: State, block: RowBlock) -> State:
        wide, fresh = self._parts_of(block)
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

    def _parts_of(self, block: RowBlock) -> tuple[dict[str, Float], State]:
        """Columns of the rows of the fit and of the held-out rows, and the other arrays of a state."""
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
                if self._sums_squares:
                    own = columns[fitted, : len(self.columns.basis)]
                    if block.weights is None:
                        state["squares"] = np.einsum("ij,ij->j", own, own)
                    else:
                        state["squares"] = np.einsum("ij,ij,i->j", own, own, weights[fitted])
                left, weights = self._newton(columns, Y, left, weights, fitted, totals)
            if self.draw is not None:
                size = np.sqrt(((left / (1.0 if self.scale is None else self.scale)) ** 2).sum(axis=1))
                if block.weights is not None:
                    size *= block.weights
                state |= self.draw.of(block.start, block.X, np.where(fitted, size, 0.0))
        if block.weights is not None or self.logistic:
            columns *= np.sqrt(weights)[:, None]
        if self.held_out is None:
            return {"fit": columns}, state
        return {"fit": columns[fitted], "check": columns[~fitted]}, state

    def _newton(
        self, columns: Float, Y: Float, left: Float, weights: Float, fitted: Bool, totals: Float
    ) -> tuple[Float, Float]:
        """Slope of the loss by f, and weights of the rows; the targets in `columns` become responses.

        The losses are added to `totals`.
        """
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
        """Root of the Gram matrix of the raw columns, and the rank of the `first` columns."""
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
        sums = 56 + (8 * len(self.columns.basis) if self._sums_squares else 0)
        return parts * 8 * math.prod(self._products.shape()) + sums + (0 if self.draw is None else self.draw.bytes())

    def scratch_bytes(self, rows: int) -> int:
        width = self.columns.width
        copies = 8 * rows * width * (1 if self.held_out is None else 2)
        stacked = 16 * (rows + width) * width if isinstance(self.columns, DictionaryColumns) else 0
        return self.columns.scratch_bytes(rows) + copies + stacked

    def flops_per_row(self) -> float:
        root = 2.0 * self.columns.width**2 if isinstance(self.columns, DictionaryColumns) else 0.0
        return self.columns.flops_per_row() + root  # `columns` already counts the Gram matrix
