"""Sweeps over a factor: whitened features G (m, n) with ``G G^T = K~``, recomputed from a basis or read from disk.

With ``L L^T = k(Z, Z)`` and the rows' kernel values ``F = k(X, Z)``, or, for a stored factor, ``L = I`` and ``F = G``::

    G = F L^-T        G^T V = L^-1 (F^T V)        G A = F (L^-T A)

The n x n triangular solve is done once, not for every row: a product with G costs no more than a product with kernel
blocks (Smola & Schoelkopf 2000, section 3; ALGORITHMS 1.1). The Gram matrix and the means take row weights; products
with G do not, because K~ is a matrix of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import block_array, mirror_upper, single_threaded_blas, solve_lower, syrk
from streamkernel.reductions.contract import State, Sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True)
class Features:
    """Source of the whitened features of a row block.

    Parameters
    ----------
    basis : Basis of the features; None if the rows are features themselves (a stored factor).
    width : number of features n.
    """

    basis: Basis | None
    width: int

    @classmethod
    def of_basis(cls, basis: Basis) -> Features:
        """Features recomputed from a basis."""
        return cls(basis, len(basis))

    def of(self, X: AnyArray, out: AnyArray | None = None) -> AnyArray:
        """G, (b, n): float64, perhaps a view of X; with `out`, in `out` and of its dtype."""
        if self.basis is not None:
            return self.basis.features(X, out)
        if out is None:
            return self.raw(X)
        out[...] = X
        return out

    def raw(self, X: AnyArray, out: Float | None = None) -> Float:
        """Kernel values F, (b, n) float64: in `out` where it is given, or else perhaps a view of X."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        if self.basis is not None:
            return self.basis.prepared.block(X, out)
        if out is None:
            return X
        out[...] = X
        return out

    def whiten(self, F: Float) -> None:
        """Overwrite kernel values F (b, n) by the features G of their rows."""
        if self.basis is not None:
            self.basis.whiten(F)

    def whitened(self, sums: Float) -> Float:
        """``G^T V = L^-1 S``, (n, q), from the sums ``S = F^T V``."""
        return sums if self.basis is None else np.ascontiguousarray(solve_lower(self.basis.L, sums))

    def coefficients(self, A: Float) -> Float:
        """Coefficients ``C = L^-T A`` (n, q) of the kernel values: ``F C = G A``."""
        return A if self.basis is None else self.basis.coefficients(A)

    def scratch_bytes(self, rows: int) -> int:
        """Bytes of F, and of the rows in float64."""
        return 8 * rows * (self.width + (0 if self.basis is None else self.basis.points.shape[1]))

    def raw_flops(self) -> float:
        """Floating point operations per row of F."""
        return 2.0 if self.basis is None else 2.0 * self.basis.points.size


@dataclass(frozen=True)
class FeatureSums:
    """Sums over the rows of a factor, float64.

    Attributes
    ----------
    H : (n, n), ``G^T W G``, which has the eigenvalues of K~; W are the row weights, 1 unless given
    G1 : (n,), ``G^T w``
    count : sum of the row weights: the number of rows m without them
    trace : ``sum_i w_i k(x_i, x_i)``, or None for a stored factor, which does not know the kernel
    """

    H: Float
    G1: Float
    count: float
    trace: float | None

    @property
    def squares(self) -> Float:
        """(n,) sum of squares of each column: the decrease of the residual trace by each function, in picking order."""
        return np.diagonal(self.H).copy()

    @property
    def residual_trace(self) -> float | None:
        """``tr(K - K~) = tr K - tr H``, exact; None for a stored factor."""
        return None if self.trace is None else max(0.0, self.trace - float(self.squares.sum()))


@dataclass(frozen=True)
class FeatureGram(Sums[FeatureSums]):
    """Accumulate `FeatureSums`; every block is whitened before the sum (`NormalEquations` may whiten less).

    Parameters
    ----------
    features : Features of n functions.
    """

    features: Features

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.features.width
        return {"H": (n, n), "G1": (n,), "totals": (2,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"H"})

    def fold(self, state: State, block: RowBlock) -> State:
        basis, w = self.features.basis, block.weights
        # Rows of a stored factor that have no weights are read where they are.
        out = None if basis is None and w is None else block_array("features", (len(block), self.features.width))
        F = self.features.of(block.X, out)
        diagonal = np.zeros(1) if basis is None else basis.kernel.diagonal(block.X)
        if w is None:
            syrk(F, into=state["H"])
            state["G1"] += F.sum(axis=0)
            state["totals"] += [len(F), diagonal.sum()]
        else:
            state["G1"] += w @ F
            F *= np.sqrt(w)[:, None]
            syrk(F, into=state["H"])
            state["totals"] += [w.sum(), 0.0 if basis is None else w @ diagonal]
        return state

    def finalize(self, state: State) -> FeatureSums:
        count, trace = (float(value) for value in state["totals"])
        return FeatureSums(mirror_upper(state["H"]), state["G1"], count, None if self.features.basis is None else trace)

    def scratch_bytes(self, rows: int) -> int:
        return self.features.scratch_bytes(rows) + 8 * rows

    def flops_per_row(self) -> float:
        n = self.features.width
        return self.features.raw_flops() + (1 if self.features.basis is None else 2) * n * n


@dataclass(frozen=True)
class FeatureTransposed(Sums[Float]):
    """``G^T V`` (n, q) for columns V in memory.

    Parameters
    ----------
    features : Features of n functions.
    V : (m, q) float64, one row for each row of the table.
    first : number of the first row of the table, which belongs to row 0 of V.
    """

    features: Features
    V: Float
    first: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"FV": (self.features.width, self.V.shape[1])}

    def fold(self, state: State, block: RowBlock) -> State:
        state["FV"] += self.features.raw(block.X).T @ self.V[block.start - self.first : block.stop - self.first]
        return state

    def finalize(self, state: State) -> Float:
        with single_threaded_blas():
            return self.features.whitened(state["FV"])

    def scratch_bytes(self, rows: int) -> int:
        return self.features.scratch_bytes(rows) + self.state_bytes()

    def flops_per_row(self) -> float:
        return float(self.features.raw_flops() + 2 * self.features.width * self.V.shape[1])
