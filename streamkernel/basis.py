"""The basis: n selected rows as functions, with whitened features and residuals.

A basis is a kernel k and points Z (n, p), the selected rows. With ``L L^T = k(Z, Z)``

- whitened features  ``G = k(X, Z) L^-T``  (b, n),  so that  ``G G^T = K~``;
- residual           ``r(x) = k(x, x) - |L^-1 k(Z, x)|^2 >= 0``,

where K~ is the Nystroem approximation of K on these points (Smola & Schoelkopf 2000, section 3; ALGORITHMS 1.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.errors import SingularKernelError
from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.linalg import (
    PANEL_ROWS,
    Whitener,
    even_panels,
    independent_rows,
    inverse_norm,
    single_threaded_blas,
    solve_lower_t,
)
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float, Int

# A row with a pivot at or below this share of k_ii depends on the basis (ALGORITHMS 1.1).
PIVOT_TOLERANCE = 1e-12
# So does one whose pivot is rounding, by this many eps of it: some percent.
PIVOT_ROUNDING = 1e14

_DOUBLE = np.dtype(np.float64)


def unfilled(*shape: int, dtype: AnyDType = _DOUBLE) -> AnyArray:
    """An array of this shape without memory behind it: plans need shapes only."""
    return np.broadcast_to(np.zeros((), dtype), shape)


@dataclass(frozen=True)
class Basis:
    """Rows of a table as basis functions.

    Parameters
    ----------
    kernel : Kernel
    points : (n, p)
        The selected rows, scaled and with the dtype of the table.
    rows : (n,) int64
        Their row numbers in the table, in the order of picking.
    """

    kernel: Kernel
    points: AnyArray
    rows: Int

    @classmethod
    def empty(cls, kernel: Kernel, n_features: int, dtype: AnyDType) -> Basis:
        return cls(kernel, np.zeros((0, n_features), dtype), np.zeros(0, np.int64))

    @classmethod
    def unfilled(cls, kernel: Kernel, n: int, n_features: int, dtype: AnyDType = _DOUBLE) -> Basis:
        """A basis with the shapes of n functions but without their memory, for plans."""
        return cls(kernel, unfilled(n, n_features, dtype=dtype), unfilled(n, dtype=np.dtype(np.int64)))

    def __len__(self) -> int:
        return len(self.points)

    def __getstate__(self) -> Fields:
        # The factor and the packed points are cheap to compute again and expensive to send.
        return {"kernel": self.kernel, "points": self.points, "rows": self.rows}

    def __setstate__(self, state: Fields) -> None:
        self.__dict__.update(state)

    @cached_property
    def prepared(self) -> PreparedKernel:
        """The kernel with the points packed for the block loops, in float64."""
        return self.kernel.prepare(self.points.astype(np.float64))

    @cached_property
    def L(self) -> Float:
        """Lower triangular, ``L L^T = k(Z, Z)``, (n, n) float64."""
        with single_threaded_blas():
            found = independent_rows(self.gram(), 0.0)
        if len(found.kept) < len(self):
            raise SingularKernelError(
                f"{len(self) - len(found.kept)} of {len(self)} basis points are dependent, so that their kernel matrix "
                "has no factor; fit again (Basis.append leaves such points out)"
            )
        return np.ascontiguousarray(found.L)

    @cached_property
    def whiten(self) -> Whitener:
        """Function that overwrites kernel values ``K`` (b, n) by ``K L^-T``."""
        return Whitener(self.L)

    def _partly(self, leading: int) -> Whitener:
        """The whitener of the first functions, made once; threads that come at once make it twice."""
        made: dict[int, Whitener] = self.__dict__.setdefault("_whiteners", {})
        if leading not in made:
            made[leading] = Whitener(self.L, leading)
        return made[leading]

    def gram(self) -> Float:
        """``k(Z, Z)``, (n, n) float64."""
        return self.block(self.points)

    def append(self, points: AnyArray, rows: Int) -> tuple[Basis, Int]:
        """This basis with more points appended, without those that depend on earlier points.

        The functions of this basis stay, in their order.

        Returns
        -------
        basis : Basis
        kept : (r,) int64
            Positions in `points` of those that were appended.
        """
        n = len(self)
        Z = np.concatenate([self.points, np.asarray(points, dtype=self.points.dtype)])
        numbers = np.concatenate([self.rows, np.asarray(rows, dtype=np.int64)])
        with single_threaded_blas():
            grown = Basis(self.kernel, Z, numbers)
            found = independent_rows(grown.gram(), PIVOT_TOLERANCE, self.L, PIVOT_ROUNDING)
            kept, whole = found.kept, found.at_once
            # The rounding of small pivots depends on the algorithm. The new basis must have a factor by the algorithm
            # of `L`, which every worker runs: the bits are then equal everywhere.
            while not whole and len(kept) > n:
                grown = Basis(self.kernel, np.ascontiguousarray(Z[kept]), numbers[kept])
                S = grown.gram()
                found = independent_rows(S, 0.0)
                lost = np.setdiff1d(np.arange(len(kept)), found.kept)
                if len(lost) == 0:
                    lost = n + np.flatnonzero(np.diagonal(found.L)[n:] ** 2 <= PIVOT_TOLERANCE * np.diagonal(S)[n:])
                whole = len(lost) == 0
                if not whole:
                    # If rounding made the pivot of an old point too small, the last half of the new points is left out.
                    kept = np.delete(kept, lost) if lost[0] >= n else kept[: n + (len(kept) - n) // 2]
        if len(kept) == n:
            return self, np.zeros(0, np.int64)
        grown.__dict__["L"] = np.ascontiguousarray(found.L)
        return grown, kept[n:] - n

    def take(self, positions: Int) -> Basis:
        """The basis of some of these points."""
        return Basis(self.kernel, np.ascontiguousarray(self.points[positions]), self.rows[positions])

    def leading(self, count: int) -> Basis:
        """The basis of the first points, whose factor is the leading part of this one."""
        part = Basis(self.kernel, np.ascontiguousarray(self.points[:count]), self.rows[:count])
        part.__dict__["L"] = np.ascontiguousarray(self.L[:count, :count])
        return part

    def unpacked(self) -> Basis:
        """The same basis with its factor but without the packed points, which take three times the points' memory."""
        plain = Basis(self.kernel, self.points, self.rows)
        if "L" in self.__dict__:
            plain.__dict__["L"] = self.L
        return plain

    def block(self, X: AnyArray, out: Float | None = None) -> Float:
        """``k(X, Z)``, (b, n) float64 for every dtype of X; in `out` where it is given, an array of contiguous rows.

        Whitening and sums multiply the rounding of an entry by 1 / pivot, so that float32 values would lose all digits.
        Kernel values in float64 cost a tenth of the sums that follow.
        """
        return self.prepared.block(np.ascontiguousarray(X, dtype=np.float64), out)

    def features(self, X: AnyArray, out: AnyArray | None = None, *, leading: int | None = None) -> AnyArray:
        """Whitened features ``G = k(X, Z) L^-T``, (b, n): float64, or in `out` and its dtype.

        With a number of `leading` functions, the features of these only; in place of the others stand kernel values
        without what the leading functions explain, ``K2 - G1 L21^T``.

        Rows are taken in panels whose kernel values stay in the cache until they are whitened.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        G = np.empty((len(X), len(self))) if out is None else out
        whiten = self.whiten if leading is None else self._partly(leading)
        direct = G.dtype == np.float64 and G.strides[-1] == G.itemsize
        scratch = np.empty((0 if direct else min(PANEL_ROWS, len(X)), len(self)))
        for panel in even_panels(len(X)):
            K = self.prepared.block(X[panel], out=G[panel] if direct else scratch[: panel.stop - panel.start])
            whiten(K)
            if not direct:
                G[panel] = K
        return G

    def coefficients(self, beta: Float) -> Float:
        """Coefficients ``L^-T beta`` of the kernel functions, given those of the whitened features, (n, d).

        They are contiguous, as after a read from disk: the bits of a product depend on the memory order of its factors.
        """
        return np.ascontiguousarray(solve_lower_t(self.L, beta))

    @property
    def least_pivot(self) -> float:
        """Smallest pivot of k(Z, Z), relative to k(z, z); 1 for an empty basis."""
        if len(self) == 0:
            return 1.0
        return float(np.min(np.diagonal(self.L) ** 2 / self.kernel.diagonal(self.points)))

    def unexplained(self, leading: int) -> float:
        """Share of k(z, z) that the first functions leave, as a mean over the points of the others; 1 for none."""
        if not 0 < leading < len(self):
            return 1.0 if leading == 0 else 0.0
        L22 = self.L[leading:, leading:]
        return float(np.einsum("ij,ij->", L22, L22) / len(L22) / self.kernel.diagonal(self.points).mean())

    def lift(self, leading: int = 0, most: float = math.inf) -> float:
        """Factor by which whitening lifts the rounding of sums of kernel values, relative to k(z, z); at least 1.

        It is ``1 / least_pivot``, or half the largest eigenvalue of ``k(Z, Z)^-1`` if that is larger (for two near
        points both are equal). In the order of descending pivots the two are near each other. In the order of a rule
        that uses targets, functions may be dependent without a single small pivot. The eigenvalue is computed by power
        iteration, to some percent.

        With `leading` functions, that of the sums of `features(leading=...)`. The kernel is then what these leave
        of k, ``L22 L22^T`` at the other points, and rows have as small a share of it as these points (`unexplained`).
        A factor above `most` is not computed further than that.
        """
        found: dict[int, float] = self.__dict__.setdefault("_lifts", {})
        if leading in found:
            return found[leading]
        L = self.L[leading:, leading:]
        if len(L) == 0:
            return 1.0
        diagonal = np.einsum("ij,ij->i", L, L) if leading else self.kernel.diagonal(self.points)
        left = self.unexplained(leading)
        lift = max(1.0, left * float((diagonal / np.diagonal(L) ** 2).max()))
        if len(L) < 2 or lift > most:
            return lift
        with single_threaded_blas():
            lift = max(lift, 0.5 * left * inverse_norm(np.ascontiguousarray(L), diagonal, 2.0 * most / left))
        if lift <= most:
            found[leading] = lift
        return lift

    def residual(self, X: AnyArray) -> Float:
        """``k(x, x) - |L^-1 k(Z, x)|^2`` of each row, clipped at 0; (b,) float64."""
        diagonal = self.kernel.diagonal(X)
        if len(self) == 0:
            return np.asarray(diagonal, dtype=np.float64)
        G = self.features(X)
        residual: Float = np.maximum(diagonal - np.einsum("ij,ij->i", G, G), 0.0)
        return residual
