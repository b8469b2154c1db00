"""K~ and operators derived from it, on vectors of m numbers that fit in memory.

With a factor ``K~ = G G^T``, ``H = G^T G`` and a ridge rho > 0 (Sherman-Morrison-Woodbury)::

    K~ v                = G (G^T v)
    (K~ + rho I)^-1 v   = (v - G (rho I + H)^-1 G^T v) / rho

Each product takes two sweeps over the rows, counted in the session; H takes one more, once. ``P = K~ + rho I`` is a
preconditioner for ``K + rho I``: the residual K - K~ is positive semidefinite, so the eigenvalues of
``P^-1 (K + rho I)`` lie in ``[1, 1 + |K - K~|_2 / rho]``, hence in ``[1, 1 + tr(K - K~) / rho]`` (Smola & Schoelkopf
2000, section 6.4; ALGORITHMS 13.4).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.sparse.linalg import LinearOperator

from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.factors.features import FeatureRows
from streamkernel.kernels.parameters import checked_columns
from streamkernel.linalg import add_to_diagonal, cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.sums import FeatureSums
from streamkernel.type_aliases import AnyArray, Float


def checked_ridge(rho: float) -> float:
    """Check rho, and return it as a float.

    Raises
    ------
    ParameterError
        rho is not a finite number > 0.
    """
    if isinstance(rho, (bool, np.bool_)) or not isinstance(rho, (int, float, np.integer, np.floating)):
        raise ParameterError(f"rho must be a number > 0, not {rho!r}")
    if not math.isfinite(rho) or rho <= 0.0:
        raise ParameterError(f"rho must be finite and > 0, not {rho!r}: K~ itself has no inverse")
    return float(rho)


class RidgeFactor:
    """Solves with ``rho I + H``, which is factorised once.

    Raises
    ------
    ParameterError
        rho is not a finite number > 0.
    NumericalError
        rho is smaller than the rounding of H.
    """

    def __init__(self, H: Float, rho: float) -> None:
        self.rho = checked_ridge(rho)
        shifted = H.copy()
        add_to_diagonal(shifted, self.rho)
        with single_threaded_blas():
            self._L = cholesky(shifted, f"G^T G + rho I with rho = {self.rho:g}", "give a larger rho")

    def solve(self, B: Float) -> Float:
        """``(rho I + H)^-1 B``, (n, q)."""
        with single_threaded_blas():
            return solve_lower_t(self._L, solve_lower(self._L, B))


class _SymmetricOperator(LinearOperator, ABC):
    """A symmetric m x m matrix, defined by its products with columns."""

    def __init__(self, rows: FeatureRows, session: Session) -> None:
        m = rows.shape[0]
        super().__init__(np.dtype(np.float64), (m, m))  # type: ignore[call-arg]  # of SciPy, which has no types
        self.rows = rows
        self.session = session

    @abstractmethod
    def _columns(self, V: Float) -> Float: ...

    def _matmat(self, V: AnyArray) -> Float:
        return self._columns(checked_columns(V, self.rows.shape[0], "the vector"))

    def _matvec(self, v: AnyArray) -> Float:
        return self._matmat(np.reshape(v, (-1, 1)))[:, 0]

    def _adjoint(self) -> _SymmetricOperator:
        return self

    def _transpose(self) -> _SymmetricOperator:
        return self


class KernelOperator(_SymmetricOperator):
    """``K~ + shift I``, (m, m); a product takes two sweeps, for any number of columns.

    Parameters
    ----------
    rows : the factor.
    session : session that runs and counts the sweeps.
    shift : 0 for K~ itself.
    """

    def __init__(self, rows: FeatureRows, session: Session, shift: float = 0.0) -> None:
        super().__init__(rows, session)
        self.shift = shift

    def _columns(self, V: Float) -> Float:
        # Two thin products, G^T V and then G (...): K~ of (m, m) is never formed.
        product = self.rows.times(self.rows.transposed_times(V, self.session), self.session)
        return product + self.shift * V if self.shift else product

    def inverse(self) -> WoodburyInverse:
        """``(K~ + shift I)^-1``, for a shift > 0."""
        return preconditioner(self.rows, self.shift, self.session)


class WoodburyInverse(_SymmetricOperator):
    """``(K~ + rho I)^-1 v = (v - G (rho I + H)^-1 G^T v) / rho``, (m, m); a product takes two sweeps.

    Rounding is amplified by ``|H| / rho``. `preconditioner` makes one.
    """

    def __init__(self, rows: FeatureRows, session: Session, factor: RidgeFactor) -> None:
        super().__init__(rows, session)
        self._factor = factor
        self.rho = factor.rho

    def _columns(self, V: Float) -> Float:
        inner = self._factor.solve(self.rows.transposed_times(V, self.session))
        return (V - self.rows.times(inner, self.session)) / self.rho


def kernel_operator(rows: FeatureRows, session: Session, rho: float = 0.0) -> KernelOperator:
    """``K~``, or ``K~ + rho I``, as a `scipy.sparse.linalg.LinearOperator`."""
    return KernelOperator(rows, session, 0.0 if rho == 0 else checked_ridge(rho))


def preconditioner(rows: FeatureRows, rho: float, session: Session, sums: FeatureSums | None = None) -> WoodburyInverse:
    """``P^-1 = (K~ + rho I)^-1``, for solves with K~ and as a preconditioner for ``K + rho I``.

    Parameters
    ----------
    rows : the factor.
    rho : ridge > 0 of the system.
    session : session that runs and counts the sweeps.
    sums : result of `FeatureRows.gram`; None to compute them now, in one sweep.

    Raises
    ------
    ParameterError, NumericalError
        See `RidgeFactor`.
    """
    rho = checked_ridge(rho)
    return WoodburyInverse(rows, session, RidgeFactor((sums or rows.gram(session)).H, rho))
