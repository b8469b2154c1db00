"""Models of the covariance Om = cov(y | f at the basis), and the whitening of rows by it.

Prior ``f ~ GP(0, s k)``, noise variance ``noise``, unit whitened features G (m, n), ``R = K - G G^T`` (Tresp 2001,
appendix, eq. (11); ALGORITHMS 10.3). The sparse Gaussian processes differ only in the part of ``s R`` that they
include in Om::

    Om = noise I                              dtc     ConstantNoise
    Om = noise I + s diag(r),  r = diag R     fitc    DiagonalNoise
    Om = noise I + s R on blocks of rows      pitc    BlockNoise: the members of a Bayesian committee machine whose
                                                      query points are the basis (eqs. (8), (9), whitened: 6.1)

All other quantities follow from the rows ``Om^-1/2 G`` and ``Om^-1/2 Y`` and from ``log det Om``. A row of weight w
counts as w equal rows (ALGORITHMS 21). Sums over such copies are those over one row whose block of Om is::

    noise / w    dtc        (noise + s r) / w    fitc        noise diag(1 / w) + s R    pitc: copies share a block

The determinant of Om is that of all copies: ``w log(noise + s r)`` for fitc, and ``(w - 1) log noise + log w`` beyond
the block of pitc. A row of weight 0 has no effect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Kernel, packed_bytes, packing_bytes
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import InPlaceCholesky, add_to_diagonal, subtract_gram
from streamkernel.reductions.clusters import Clusters, feature_weights
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int

_TOGETHER = 1024  # rows of small members that are processed together: SYRK needs some hundreds for its full rate
_ASSIGNED = 1024  # rows whose distances to the centres of cells are in memory at once
SUPER_BLOCK = 16  # members among which rows are sorted by cells


@dataclass(frozen=True)
class Members:
    """Rows of a block that are whitened in one call.

    Attributes
    ----------
    rows : positions in the block.
    sizes : numbers of rows of the members, in order; they sum to the number of rows.
    """

    rows: slice | Int
    sizes: tuple[int, ...]


class RowNoise(ABC):
    """cov(y | f at the basis) of the rows of a table."""

    @property
    def row_multiple(self) -> int:
        """Number of rows in which members are formed; blocks start at its multiples, from the table's first row on."""
        return 1

    def members(self, X: AnyArray, kernel: Kernel) -> list[Members]:
        """Groups of the rows X (b, p) of a block, in the order in which they are whitened."""
        return [Members(slice(0, len(X)), (len(X),))]

    @abstractmethod
    def whiten(self, block: RowBlock, members: Members, kernel: Kernel, residual: Float, G: Float, Y: Float) -> float:
        """``G <- Om^-1/2 G`` (r, n) and ``Y <- Om^-1/2 Y`` (r, d) in place; returns log det Om.

        Parameters
        ----------
        block : block of rows; `members` are the positions of the rows of G and Y in it.
        residual : (r,) diagonal of R.
        """

    @abstractmethod
    def scratch_bytes(self, rows: int, n_features: int, formulas: int) -> int:
        """Bytes that `members` and `whiten` need in addition to their arguments, for a kernel of so many formulas."""

    @abstractmethod
    def flops_per_row(self, n: int, n_features: int) -> float:
        """Floating point operations per row, beyond those of its features and sums."""

    def held_rows(self, rows: int) -> int:
        """Largest number of rows whose features are in memory at once, for a block of `rows` rows."""
        return rows


@dataclass(frozen=True)
class ConstantNoise(RowNoise):
    """``Om = I / w``. The noise variance is one number, and the solver divides the sums by it.

    The solver also counts its logarithm in the determinant, once for each copy.
    """

    def whiten(self, block: RowBlock, members: Members, kernel: Kernel, residual: Float, G: Float, Y: Float) -> float:
        weights = _weights(block, members)
        if weights is None:
            return 0.0
        _scale(np.sqrt(weights), G, Y)
        return 0.0

    def scratch_bytes(self, rows: int, n_features: int, formulas: int) -> int:
        return 16 * rows

    def flops_per_row(self, n: int, n_features: int) -> float:
        return 0.0


@dataclass(frozen=True)
class DiagonalNoise(RowNoise):
    """``Om = (noise + s r) / w``, one number per row (Snelson & Ghahramani 2006; ALGORITHMS 10.2).

    Parameters
    ----------
    signal, noise : variances s and noise, > 0.
    """

    signal: float
    noise: float

    def __post_init__(self) -> None:
        _check_variances(self)

    def whiten(self, block: RowBlock, members: Members, kernel: Kernel, residual: Float, G: Float, Y: Float) -> float:
        weights = _weights(block, members)
        if weights is None:
            variance = self.noise + self.signal * residual
            _scale(1.0 / np.sqrt(variance), G, Y)
            return float(np.log(variance).sum())
        variance = self.noise + self.signal * residual
        _scale(np.sqrt(weights / variance), G, Y)
        return float(weights @ np.log(variance))

    def scratch_bytes(self, rows: int, n_features: int, formulas: int) -> int:
        return 48 * rows

    def flops_per_row(self, n: int, n_features: int) -> float:
        return 3.0 * n


@dataclass(frozen=True)
class BlockNoise(RowNoise):
    """``Om_b = noise diag(1 / (share w)) + s (k(X_b, X_b) - G_b G_b^T)``, one matrix per member (ALGORITHMS 6.1).

    The assignment of rows to members is part of the model. Rows are counted from the table's first row, and the
    assignment does not depend on chunks or workers.

    Parameters
    ----------
    signal, noise : variances s and noise, > 0.
    block_size : largest number of rows of a member.
    cells : (c, p) centres, in the units of the rows. The rows of 16 members are then sorted by their nearest centre,
        measured in the kernel's lengthscales; rows of one cell stay in the order of the table. A member ends at the end
        of a cell, or at `block_size` rows.
    share : share of the rows whose errors are independent (`Repeats.share`). Where every row occurs k times, or has the
        weight k, it is 1 / k, and the noise of one is k times as large. The sums are then those of `share` copies of
        the rows times ``1 / share``: times `share`, as `GaussianSystem` takes them, they are those of each row once.
    """

    signal: float
    noise: float
    block_size: int
    cells: AnyArray | None = None
    share: float = 1.0

    def __post_init__(self) -> None:
        _check_variances(self)
        object.__setattr__(self, "block_size", checked_integer("block_size", self.block_size))
        if self.cells is not None and (
            np.ndim(self.cells) != 2 or len(self.cells) == 0 or not np.isfinite(self.cells).all()
        ):
            raise ParameterError("cells are no centres; give finite numbers of shape (centres, features)")

    @property
    def row_multiple(self) -> int:
        return self.block_size * (1 if self.cells is None else SUPER_BLOCK)

    def members(self, X: AnyArray, kernel: Kernel) -> list[Members]:
        b, size = len(X), self.block_size
        if self.cells is None:
            sizes = [min(size, b - first) for first in range(0, b, size)]
            starts = np.cumsum([0, *sizes])
            return [
                Members(slice(int(starts[first]), int(starts[last])), tuple(sizes[first:last]))
                for first, last in _together(sizes)
            ]
        found: list[Members] = []
        for first in range(0, b, self.row_multiple):
            nearest = self._nearest(X[first : first + self.row_multiple], kernel)
            order = first + np.argsort(nearest, kind="stable")
            # Sizes are in ascending order of the cells, as the rows are sorted; an empty cell has no members.
            sizes = [min(size, count - at) for count in np.bincount(nearest).tolist() for at in range(0, count, size)]
            starts = np.cumsum([0, *sizes])
            found += [
                Members(order[starts[start] : starts[stop]], tuple(sizes[start:stop]))
                for start, stop in _together(sizes)
            ]
        return found

    def _nearest(self, X: AnyArray, kernel: Kernel) -> Int:
        """The nearest centre of each row."""
        assert self.cells is not None
        p = X.shape[1]
        if self.cells.shape[1] != p:
            raise ParameterError(
                f"cells have {self.cells.shape[1]} features, the rows {p}; give centres of rows of this table"
            )
        weights = feature_weights(kernel, p)
        clusters = Clusters(np.asarray(self.cells, np.float64) * weights, weights, np.dtype(np.float64))
        parts = [X[first : first + _ASSIGNED] for first in range(0, len(X), _ASSIGNED)]
        return np.concatenate([clusters.assign(part * weights - clusters.origin)[0] for part in parts])

    def whiten(self, block: RowBlock, members: Members, kernel: Kernel, residual: Float, G: Float, Y: Float) -> float:
        weights = _weights(block, members)
        if weights is not None and not weights.all():
            return self._whiten_positive(block, members, kernel, weights, residual, G, Y)
        if self.share != 1.0:
            weights = np.full(len(G), self.share) if weights is None else self.share * weights
        X = np.ascontiguousarray(block.X[members.rows], np.float64)
        largest = max(members.sizes)
        memory = np.empty(largest * largest)
        # C is Om / s: a multiplication by s would be one more pass over the largest matrix.
        log_det, first = len(X) * float(np.log(self.signal)), 0
        if weights is not None:
            log_det += float((weights - 1.0).sum() * np.log(self.noise) + np.log(weights).sum())
        for size in members.sizes:
            rows = slice(first, first + size)
            C = memory[: size * size].reshape(size, size)
            kernel.prepare(X[rows]).block(X[rows], out=C)
            subtract_gram(G[rows], into=C)
            add_to_diagonal(C, self.noise / self.signal / (1.0 if weights is None else weights[rows]))
            factor = InPlaceCholesky(C)
            if factor.failed is not None:
                self._refuse(block, members, rows, factor.failed, weights)
            log_det += factor.log_det()
            factor.solve(G[rows])
            factor.solve(Y[rows])
            first += size
        _scale(1.0 / np.sqrt(self.signal * self.share), G, Y)
        return log_det / self.share

    def _whiten_positive(
        self, block: RowBlock, members: Members, kernel: Kernel, weights: Float, residual: Float, G: Float, Y: Float
    ) -> float:
        """`whiten`, of members without their rows of weight 0, which become 0 in G and Y."""
        kept = np.flatnonzero(weights)
        ends = np.cumsum(members.sizes)
        sizes = np.diff(np.searchsorted(kept, ends), prepend=0)
        positions = np.arange(len(block), dtype=np.int64)[members.rows][kept]
        part = Members(positions, tuple(sizes[sizes > 0].tolist()))
        G_kept, Y_kept = np.ascontiguousarray(G[kept]), np.ascontiguousarray(Y[kept])
        log_det = BlockNoise.whiten(self, block, part, kernel, residual[kept], G_kept, Y_kept) if len(kept) else 0.0
        G[:], Y[:] = 0.0, 0.0
        G[kept], Y[kept] = G_kept, Y_kept
        return log_det

    def _refuse(self, block: RowBlock, members: Members, rows: slice, failed: int, weights: Float | None) -> NoReturn:
        numbers = block.start + np.arange(len(block))[members.rows][rows]
        largest = 1.0 if weights is None else float(weights[rows].max())
        least = 100.0 * len(numbers) * float(np.finfo(np.float64).eps) * self.signal * largest
        by, way = ("", "") if weights is None else (f" by row weights up to {largest:.3g}", ", or smaller weights")
        raise NumericalError(
            f"the covariance of a member, {len(numbers)} rows of {numbers.min()}:{numbers.max() + 1}, is not positive "
            f"definite at row {numbers[failed]}: noise variance {self.noise:.3g}{by} is lost in the rounding of "
            f"signal variance {self.signal:.3g}; give a noise variance of {max(least, 10.0 * self.noise):.1g} or "
            f"more{way}"
        )

    def scratch_bytes(self, rows: int, n_features: int, formulas: int) -> int:
        size = min(self.block_size, rows)
        # The rows, those of a member packed, its covariance.
        found = 8 * (size * (size + 128) + self.held_rows(rows) * n_features + 2 * rows)
        found += packed_bytes(size, n_features, formulas) + packing_bytes(n_features)
        if self.cells is not None:
            assigned = min(_ASSIGNED, rows)
            found += int(8 * (6 * rows + assigned * (2.25 * len(self.cells) + 4 * n_features + 10)))
            found += 8 * 4 * int(np.size(self.cells))
        return found

    def flops_per_row(self, n: int, n_features: int) -> float:
        size = self.block_size
        cells = 0 if self.cells is None else 2 * int(np.size(self.cells))
        return float(size * size / 3 + 2 * size * n + 2 * size * n_features + cells)

    def held_rows(self, rows: int) -> int:
        return min(rows, _TOGETHER + self.block_size)


def _together(sizes: list[int]) -> list[tuple[int, int]]:
    """Runs of members, as positions (first, last): small members are joined to runs of `_TOGETHER` rows or more."""
    runs, first, rows = [], 0, 0
    for last, size in enumerate(sizes, start=1):
        rows += size
        if rows >= _TOGETHER or last == len(sizes):
            runs.append((first, last))
            first, rows = last, 0
    return runs


def _check_variances(noise: DiagonalNoise | BlockNoise) -> None:
    for name in ("signal", "noise"):
        object.__setattr__(noise, name, checked_number(name, getattr(noise, name)))


def _weights(block: RowBlock, members: Members) -> Float | None:
    return None if block.weights is None else block.weights[members.rows]


def _scale(roots: Float | float, G: Float, Y: Float) -> None:
    """Multiply the rows in place, by one number per row or one for all."""
    # In place: a scaled copy of G would double the memory of the block.
    column = np.reshape(roots, (-1, 1))
    G *= column
    Y *= column
