"""Three ways to sum the inner products of the columns ``[D_I, 1, D_M, Y]`` over rows.

- `TriangularFactor`: a streaming QR of the raw columns (TSQR, Demmel et al. 2012), for any function of two rows.
- `GramMatrix`: the Gram matrix of ``[G, 1, R, Y]``, for half the work or less. A Gram matrix squares the condition
  number, but whitened columns are well conditioned and keep nearly all their digits. ``D_I = G L^T`` and
  ``D_M = R + G G_M^T`` give the raw columns.
- `GramBeyond`: the same matrix, if the Gram matrix of ``[G, 1, Y]`` is known. Every function picked since the previous
  sweep was one of its candidates, ``G_new = R_picks L_new^-T``. The new inner products are therefore combinations of
  the previous ones (`Gram.grown`). Only ``R^T [D_I, 1, R, Y]`` is summed, with ``R = D_M - D_I T^T``. No row is
  whitened, which saves two fifths of the work.

An inner product of `GramBeyond` loses the digits that L^-1 costs. It loses at most five, because no function is picked
whose residual is below the share `DEPENDENT`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import add_product, independent_rows, mirror_upper, pivoted_factor, solve_lower, syrk
from streamkernel.reductions.pools.dictionary_columns import DictionaryColumns
from streamkernel.reductions.pools.pool import PoolColumns, ResidualColumns
from streamkernel.reductions.pools.pool_root import triangular_factor
from streamkernel.type_aliases import Float, Int

_ROUNDING = 1e-13  # of a column's square: below it a Gram matrix holds rounding only


@dataclass(frozen=True)
class Gram:
    """Inner products of ``[G, 1, R, Y]``, over the rows of the fit and over the held-out rows, if there are any.

    Without candidates R it is the part that the next sweep need not sum again.
    """

    fit: Float
    check: Float | None

    def grown(self, n: int, first: int, k: int, picks: Int, L_new: Float) -> Gram:
        """Inner products of ``[G, R_picks L_new^-T, 1, Y]``, the columns after some picks.

        Parameters
        ----------
        n, first, k : numbers of functions, of columns before the candidates, and of candidates.
        picks : positions of the picked candidates.
        L_new : (picks, picks) the diagonal block that the picks add to the Cholesky factor of the kernel matrix.
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


@dataclass(frozen=True)
class InnerProducts(ABC):
    """Sums of inner products of the columns, in one array."""

    columns: PoolColumns | DictionaryColumns

    def shape(self) -> tuple[int, int]:
        """Largest shape of the sums."""
        return self.columns.width, self.columns.width

    def empty(self) -> Float:
        """The sums over no rows."""
        return np.zeros(self.shape())

    @abstractmethod
    def add(self, sums: Float, rows: Float) -> Float:
        """`sums` with the columns of some rows added; `sums` may be overwritten."""

    @abstractmethod
    def both(self, left: Float, right: Float) -> Float:
        """Sums of two neighbouring runs of rows, `left` before `right`; neither is changed."""

    @abstractmethod
    def gram(self, sums: Float, known: Float | None) -> Float | None:
        """All inner products of ``[G, 1, R, Y]``, given the `known` ones of ``[G, 1, Y]``; None for raw columns."""


@dataclass(frozen=True)
class TriangularFactor(InnerProducts):
    """The factor of raw columns."""

    def empty(self) -> Float:
        return np.zeros((0, self.columns.width))

    def add(self, sums: Float, rows: Float) -> Float:
        return triangular_factor(np.concatenate([sums, rows]) if len(sums) else rows)

    def both(self, left: Float, right: Float) -> Float:
        return triangular_factor(np.concatenate([left, right]))

    def gram(self, sums: Float, known: Float | None) -> None:
        return None


@dataclass(frozen=True)
class GramMatrix(InnerProducts):
    """The upper triangle of the Gram matrix of whitened columns."""

    def add(self, sums: Float, rows: Float) -> Float:
        syrk(rows, into=sums)
        return sums

    def both(self, left: Float, right: Float) -> Float:
        return left + right

    def gram(self, sums: Float, known: Float | None) -> Float:
        return mirror_upper(sums)


@dataclass(frozen=True)
class GramBeyond(GramMatrix):
    """The rows of the candidates in this matrix; the others are known."""

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
        # R^T G = (R^T D) L^-T: the sums of raw columns become those of whitened ones.
        gram[first:last, :n] = solve_lower(self.columns.basis.L, sums[:, :n].T).T
        gram[others, first:last] = gram[first:last, others].T
        return gram

    def shape(self) -> tuple[int, int]:
        return len(self.columns.pool), self.columns.width

    def _candidates(self) -> tuple[int, int]:
        first = self.columns.projected
        return first, first + len(self.columns.pool)


def inner_products(columns: PoolColumns | DictionaryColumns) -> InnerProducts:
    """The sums for columns of this type."""
    if isinstance(columns, DictionaryColumns):
        return TriangularFactor(columns)
    return GramBeyond(columns) if isinstance(columns, ResidualColumns) else GramMatrix(columns)


def root_of_gram(gram: Float, first: int) -> tuple[Float, int]:
    """U with ``U^T U = gram``, triangular in the `first` columns; and the rank of these columns.

    The other columns are factored with pivoting, which is stable for dependent columns. Then they return to their own
    order, because only the inner products of these columns are used.
    """
    # Columns of unit length: a pivot is then relative to its own column, for columns of any scale.
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    scaled = gram / np.outer(unit, unit)
    leading = independent_rows(scaled[:first, :first], _ROUNDING)
    below = len(leading.kept)
    across = solve_lower(leading.L, scaled[leading.kept]) if below else np.zeros((0, len(gram)))
    rest = scaled[first:, first:] - across[:, first:].T @ across[:, first:]
    factor, order = pivoted_factor(rest)
    U = np.zeros((below + len(factor), len(gram)))
    U[:below] = across
    U[below:, first + order] = factor
    return U * unit, below
