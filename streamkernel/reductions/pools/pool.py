"""THE PASS: one accumulator that serves every greedy rule over a pool of candidates (ALGORITHMS 1.3).

For a basis of n functions with whitened features G and a pool M of k candidates with residual columns
``R = k(X, M) - G G_M^T``, one sweep over rows X with weights w accumulates::

    C = R^T W R (k, k)    E = G^T W R (n, k)    F = R^T W Y (k, d)    H = G^T W G (n, n)    g = G^T W Y (n, d)

Any number of picks follow from these sums, without another sweep. ``S = R[M, M]`` needs no rows at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import block_array, mirror_upper, solve_lower_t, subtract_gram, subtract_product, syrk
from streamkernel.reductions.contract import Reduction, State, below_diagonal, cleared
from streamkernel.reductions.pools.dictionary_columns import CandidateColumns, DictionaryColumns
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float

_PANEL_ROWS = 128


def without_denormals(values: AnyArray, precision: AnyDType) -> AnyArray:
    """The values, with 0 in place of those that are too small for `precision`; they are overwritten.

    Rows of two far groups have kernel values such as 1e-41, which float32 holds as denormal numbers: half of the
    entries of a block may be such, and some processors take a hundred times as long to multiply them.
    """
    # Well above the smallest normal number, so that products by numbers somewhat below 1 are none either.
    least = np.finfo(precision).tiny * 2.0**24
    # By panels, whose marks stay in the cache; most have no such value, and nothing to write.
    for first in range(0, len(values), _PANEL_ROWS):
        panel = values[first : first + _PANEL_ROWS]
        denormal = panel < least
        denormal &= panel > -least
        if denormal.any():
            panel[denormal] = 0.0
    return values


@dataclass(frozen=True)
class PoolColumns(CandidateColumns):
    """The columns ``[G, 1, R, Yc]`` of a row block, for the Gram form and the square-root form.

    Parameters
    ----------
    basis : the n functions chosen so far.
    pool : the k candidates, as an unwhitened basis.
    centre : (d,) constant subtracted from the targets; d = 0 for rules that do not use targets.
    precision : dtype of the columns: float32 for scores on sampled rows, float64 for exact sweeps.
    constant : True for a column of ones after the columns of the basis; it is projected out with them (centring).
    units : (d,) powers of two by which the targets are divided, without rounding: float32 holds neither the square of
        1e20 nor that of 1e-25. The sums are those of ``Yc / units``.
    """

    basis: Basis
    pool: Basis
    centre: Float
    precision: AnyDType
    constant: bool = False
    units: Float | float = 1.0

    @cached_property
    def features_of_pool(self) -> Float:
        """``G_M``, (k, n) float64."""
        if len(self.basis) == 0:
            return np.zeros((len(self.pool), 0))
        return self.basis.features(self.pool.points)

    @cached_property
    def _pool_factor(self) -> AnyArray:
        """``G_M`` in the dtype of the columns."""
        factor = without_denormals(self.features_of_pool.copy(), self.precision)
        return np.ascontiguousarray(factor, dtype=self.precision)

    def coefficients_of_pool(self) -> Float:
        """``T_M = G_M L^-1``: coefficients of the candidates' kernel functions in the basis, (k, n) float64."""
        return solve_lower_t(self.basis.L, self.features_of_pool.T).T

    def pool_residual(self) -> Float:
        """``S = k(M, M) - G_M G_M^T``, (k, k) float64."""
        # In place: with 2,000 candidates each matrix is 32 MB, and this is where a selection needs the most memory.
        S = self.pool.gram()
        subtract_gram(self.features_of_pool, S)
        mirror_upper(S.T)  # the product is in the lower triangle
        return S

    def of(self, block: RowBlock, out: AnyArray | None = None) -> AnyArray:
        """``sqrt(w) [G, 1, R, Yc]``, (b, n + k + d), one wider with the constant; in `out` where it is given."""
        n, k, first = len(self.basis), len(self.pool), self.projected
        columns = self.raw(block, out)
        if n:
            # Whitening divides by small pivots, so it is in float64 for either precision of the columns.
            G = block_array("features", (len(block), n))
            G[:] = columns[:, :n]
            self.basis.whiten(G)
            columns[:, :n] = without_denormals(G, self.precision)
            R = columns[:, first : first + k]
            subtract_product(columns[:, :n], self._pool_factor, into=R)
            without_denormals(R, self.precision)
        return self.weigh(columns, block)

    def targets(self, block: RowBlock) -> Float:
        Y = super().targets(block)
        Y /= self.units
        return Y

    def coordinates(self, coefficients: Float) -> Float:
        """Coefficients (n, d) of the first n columns, given those of the kernel functions: ``L^T A``."""
        found: Float = self.basis.L.T @ coefficients
        return found

    def totals(self, block: RowBlock) -> Float:
        """Sums of the row weights, and of ``w k(x, x)``."""
        diagonal = self.pool.kernel.diagonal(block.X)
        weights = np.ones(len(diagonal)) if block.weights is None else block.weights
        return np.array([weights.sum(), weights @ diagonal])

    def scratch_bytes(self, rows: int) -> int:
        item, n = self.precision.itemsize, len(self.basis)
        return int(rows * (item * (self.width + self.pool.points.shape[1]) + 8 * n))

    def flops_per_row(self) -> float:
        n, k, p = len(self.basis), len(self.pool), self.pool.points.shape[1]
        return float(self.width**2 + n * n + 2 * n * k + 2 * (n + k) * p)


@dataclass(frozen=True)
class PoolSums:
    """The sums of `PoolGram`; `weight` is the sum of the row weights, `trace` the sum of ``w k(x, x)``.

    C has the dtype of the columns, because a copy in float64 of sums in float32 has no more digits; the others are
    float64.
    """

    C: AnyArray
    E: Float
    F: Float
    H: Float
    g: Float
    YY: Float
    S: Float
    weight: float
    trace: float

    @classmethod
    def of(cls, columns: PoolColumns, gram: AnyArray, totals: Float) -> PoolSums:
        """The parts of the Gram matrix of the columns, whose upper triangle is read; it is overwritten.

        Parameters
        ----------
        totals : as of `PoolColumns.totals`.
        """
        n, k = columns.projected, len(columns.pool)
        basis, pool, targets = slice(0, n), slice(n, n + k), slice(n + k, None)

        def doubles(part: AnyArray) -> Float:
            return np.asarray(part, dtype=np.float64)

        return cls(
            C=mirror_upper(gram[pool, pool]),
            E=doubles(gram[basis, pool]),
            F=doubles(gram[pool, targets]),
            H=mirror_upper(doubles(gram[basis, basis])),
            g=doubles(gram[basis, targets]),
            YY=mirror_upper(doubles(gram[targets, targets])),
            S=columns.pool_residual(),
            weight=float(totals[0]),
            trace=float(totals[1]),
        )


@dataclass(frozen=True)
class PoolGram(Reduction[PoolSums]):
    """Accumulate the Gram matrix of ``[G, R, Yc]``."""

    columns: PoolColumns

    def empty(self) -> State:
        width = self.columns.width
        # Sums have the dtype of the columns: where float32 columns are accurate enough, so are float32 sums.
        return {"gram": np.zeros((width, width), self.columns.precision), "totals": np.zeros(2)}

    def emptied(self, state: State) -> State:
        return cleared(state)

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"gram"})

    @property
    def lower_bytes(self) -> int:
        return self.columns.precision.itemsize * below_diagonal((self.columns.width,) * 2)

    def fold(self, state: State, block: RowBlock) -> State:
        columns = block_array("columns", (len(block), self.columns.width), self.columns.precision)
        syrk(self.columns.of(block, columns), into=state["gram"])
        state["totals"] += self.columns.totals(block)
        return state

    def finalize(self, state: State) -> PoolSums:
        return PoolSums.of(self.columns, state["gram"], state["totals"])

    @property
    def precision(self) -> AnyDType:
        return self.columns.precision

    def state_bytes(self) -> int:
        return self.columns.precision.itemsize * self.columns.width**2 + 16

    def scratch_bytes(self, rows: int) -> int:
        return self.columns.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.columns.flops_per_row()


@dataclass(frozen=True)
class ResidualColumns(PoolColumns):
    """Columns ``[D_I, 1, R, Yc]`` with ``R = D_M - D_I T_M^T``, the same R as in `PoolColumns`.

    The columns of the basis are not whitened, which saves n^2 operations per row. The parameters are those of
    `PoolColumns`.
    """

    @cached_property
    def _raw(self) -> DictionaryColumns:
        return DictionaryColumns(self.basis, self.pool, self.centre, self.constant)

    @cached_property
    def _of_pool(self) -> Float:
        return np.ascontiguousarray(self.coefficients_of_pool())

    def of(self, block: RowBlock, out: AnyArray | None = None) -> Float:
        """``sqrt(w) [D_I, 1, R, Yc]``, (b, n + c + k + d); in `out` where it is given."""
        n, first, columns = len(self.basis), self.projected, self._raw.of(block, out)
        subtract_product(columns[:, :n], self._of_pool, into=columns[:, first : first + len(self.pool)])
        return columns

    def coordinates(self, coefficients: Float) -> Float:
        return coefficients

    def scratch_bytes(self, rows: int) -> int:
        return self._raw.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        n, k, p = len(self.basis), len(self.pool), self.pool.points.shape[1]
        return float(2 * n * k + k * (2 * (self.width - k) + k) + 2 * (n + k) * p)
