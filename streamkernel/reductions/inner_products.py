"""Three ways to the inner products of the columns ``[D_I, 1, D_M, Y]``, summed over rows.

- `TriangularFactor`: a streaming QR of the raw columns (TSQR, Demmel et al. 2012), for any function of two rows.
- `GramMatrix`: that of ``[G, 1, R, Y]``, half the work or less: whitened, the columns have nearly all the digits in
  half as many, and ``D_I = G L^T, D_M = R + G G_M^T``.
- `GramBeyond`: the same matrix, where that of ``[G, 1, Y]`` is known: what was picked since was among the candidates of
  the sweep before, ``G_new = R_picks L_new^-T``, and so its products are combinations of those (`Gram.grown`). Only
  ``R^T [D_I, 1, R, Y]`` is summed, with ``R = D_M - D_I T^T``; no row is whitened, two fifths of the work is gone.

An inner product of the third has lost the digits that L^-1 costs: at most five, as no function is picked of which less
than `DEPENDENT` is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from streamkernel.linalg import add_product, independent_rows, mirror_upper, solve_lower, syrk
from streamkernel.reductions.dictionary_columns import DictionaryColumns
from streamkernel.reductions.pool import PoolColumns
from streamkernel.reductions.residual_columns import ResidualColumns

__all__ = ["Gram", "InnerProducts", "inner_products", "root_of_gram"]

Float = NDArray[np.float64]
Int = NDArray[np.int64]

_ROUNDING = 1e-13  # of a column's square: what a Gram matrix knows nothing of


@dataclass(frozen=True)
class Gram:
    """Inner products of ``[G, 1, R, Y]`` over the rows of the fit and, where there are any, those held out.

    Of no candidates it is what a sweep after it need not sum again.
    """

    fit: Float
    check: Float | None

    def grown(self, n: int, first: int, k: int, picks: Int, L_new: Float) -> Gram:
        """The same of ``[G, R_picks L_new^-T, 1, Y]``.

        Parameters
        ----------
        n, first, k : functions, columns before those of the candidates, and candidates.
        picks : positions of the candidates that the basis has grown by.
        L_new : (picks, picks) the block of the kernel matrix' factor that they have added on its diagonal.
        """
        order = np.concatenate([np.arange(n), first + picks, np.arange(n, first), np.arange(first + k, len(self.fit))])
        new = slice(n, n + len(picks))

        def taken(gram: Float) -> Float:
            part: Float = gram[np.ix_(order, order)]
            if len(picks) == 0:
                return part
            part[new] = solve_lower(L_new, part[new])
            part[:, new] = solve_lower(L_new, part[:, new].T).T
            return part

        return Gram(taken(self.fit), None if self.check is None else taken(self.check))


class InnerProducts(Protocol):
    """Sums of one kind, an array each."""

    def empty(self) -> Float: ...

    def add(self, sums: Float, rows: Float) -> Float:
        """With the columns of some rows; `sums` may be changed."""

    def both(self, left: Float, right: Float) -> Float:
        """Of two runs of rows, `left` before `right`; neither is changed."""

    def gram(self, sums: Float, known: Float | None) -> Float | None:
        """All inner products of ``[G, 1, R, Y]``, with those `known` of ``[G, 1, Y]``; None of raw columns."""

    def shape(self) -> tuple[int, int]:
        """Of the sums, at most."""


@dataclass(frozen=True)
class TriangularFactor:
    columns: DictionaryColumns

    def empty(self) -> Float:
        return np.zeros((0, self.columns.width))

    def add(self, sums: Float, rows: Float) -> Float:
        return _triangular(np.concatenate([sums, rows]) if len(sums) else rows)

    def both(self, left: Float, right: Float) -> Float:
        return _triangular(np.concatenate([left, right]))

    def gram(self, sums: Float, known: Float | None) -> None:
        return None

    def shape(self) -> tuple[int, int]:
        return self.columns.width, self.columns.width


@dataclass(frozen=True)
class GramMatrix:
    columns: PoolColumns

    def empty(self) -> Float:
        return np.zeros(self.shape())

    def add(self, sums: Float, rows: Float) -> Float:
        syrk(rows, into=sums)
        return sums

    def both(self, left: Float, right: Float) -> Float:
        return left + right

    def gram(self, sums: Float, known: Float | None) -> Float:
        return mirror_upper(sums)

    def shape(self) -> tuple[int, int]:
        return self.columns.width, self.columns.width


@dataclass(frozen=True)
class GramBeyond(GramMatrix):
    columns: ResidualColumns

    def add(self, sums: Float, rows: Float) -> Float:
        first, last = self._candidates()
        R = rows[:, first:last]
        add_product(R, rows[:, :first], into=sums[:, :first])
        syrk(R, into=sums[:, first:last])
        add_product(R, rows[:, last:], into=sums[:, last:])
        return sums

    def gram(self, sums: Float, known: Float | None) -> Float:
        assert known is not None
        first, last = self._candidates()
        n, width = len(self.columns.basis), self.columns.width
        others = np.r_[0:first, last:width]
        gram = np.zeros((width, width))
        gram[np.ix_(others, others)] = known
        gram[first:last] = sums
        mirror_upper(gram[first:last, first:last])
        gram[first:last, :n] = solve_lower(self.columns.basis.L, sums[:, :n].T).T
        gram[others, first:last] = gram[first:last, others].T
        return gram

    def shape(self) -> tuple[int, int]:
        return len(self.columns.pool), self.columns.width

    def _candidates(self) -> tuple[int, int]:
        first = self.columns.projected
        return first, first + len(self.columns.pool)


def inner_products(columns: PoolColumns | DictionaryColumns) -> InnerProducts:
    """The way that columns of a kind ask for."""
    if isinstance(columns, DictionaryColumns):
        return TriangularFactor(columns)
    return GramBeyond(columns) if isinstance(columns, ResidualColumns) else GramMatrix(columns)


def _triangular(A: Float) -> Float:
    """Upper triangular (or trapezoidal) U with ``U^T U = A^T A``."""
    U: Float = np.linalg.qr(A, mode="r")  # type: ignore[assignment]
    return U


def root_of_gram(gram: Float, first: int) -> tuple[Float, int]:
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
