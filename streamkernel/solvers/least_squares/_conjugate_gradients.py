"""Preconditioned conjugate gradients for several right sides at once, with one product per iteration for all of them.

For ``A X = B``, A positive definite, and a preconditioner P (Hestenes & Stiefel 1952; Concus, Golub & O'Leary 1976)::

    alpha = r^T z / p^T A p;   x += alpha p;   r -= alpha A p;   z = P^-1 r;   p = z + (r^T z)_new / (r^T z)_old p

Each column has its own alpha, so that its iterates are those of a separate solve. The product A p, a sweep, is
expensive, and all columns share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from streamkernel.type_aliases import Bool, Float

Columns = Bool
Map = Callable[[Float], Float]
Product = Callable[[Float, Columns], Float]
Ended = Literal["tolerance", "rounding", "iterations"]

_RESTARTS = 3
_STALLED = 40  # iterations in which no column lowers its least value by a tenth: the rest is rounding
_FURTHER = 0.9  # of the tolerance, for the residual by recurrence, so that the true residual satisfies the tolerance


def column_products(A: Float, B: Float) -> Float:
    """Inner products ``a_j^T b_j`` of the columns, (d,)."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


class ConjugateGradients:
    """The state of the iteration.

    Parameters
    ----------
    B : (m, d) right sides.
    product : function of some columns V and of which they are (a mask over all columns) -> ``A V``. Each column may
        have its own A.
    precondition : function V -> ``P^-1 V``.
    start : X and ``B - A X`` to begin with; None for X = 0.

    Attributes
    ----------
    X : (m, d) the iterates.
    R : (m, d) ``B - A X``, by recurrence.
    rz : (d,) ``r^T P^-1 r``.
    stuck : (d,) True for columns whose direction has only rounding as curvature; they no longer change.
    """

    def __init__(self, B: Float, product: Product, precondition: Map, start: tuple[Float, Float] | None = None) -> None:
        self._B, self._product, self._precondition = B, product, precondition
        X, R = (np.zeros_like(B), B) if start is None else start
        self.X, self.R, self._P = X.copy(), R.copy(), np.empty_like(B)
        self.rz, self.stuck = np.empty(B.shape[1]), np.zeros(B.shape[1], dtype=bool)
        self._begin(np.ones(B.shape[1], dtype=bool))

    def _begin(self, columns: Columns) -> None:
        R = _some(self.R, columns)
        Z = self._precondition(R)
        self._P[:, columns] = Z
        self.rz[columns] = column_products(R, Z)

    def advance(self, columns: Columns) -> Float:
        """One iteration of some columns: one product, one preconditioning.

        Returns
        -------
        array
            Steps of these columns: ``x += step p``, p being the columns that the product was asked for.
        """
        P = _some(self._P, columns)
        AP = self._product(P, columns)
        before, curvature = self.rz[columns], column_products(P, AP)
        going = (curvature > 0.0) & (before > 0.0)
        step = np.divide(before, curvature, out=np.zeros_like(before), where=going)
        self.stuck[columns] = ~going
        self.X[:, columns] += step * P
        # The memory of the product becomes the residual: vectors of m rows are large.
        AP *= -step
        AP += self.R[:, columns]
        self.R[:, columns] = AP
        Z = self._precondition(AP)
        after = column_products(AP, Z)
        self._P[:, columns] = Z + np.divide(after, before, out=np.zeros_like(after), where=going) * P
        self.rz[columns] = after
        return step

    def refresh(self, columns: Columns) -> None:
        """Restart from the true residual ``R = B - A X``, one product. It removes the drift of the recurrence."""
        self.R[:, columns] = self._B[:, columns] - self._product(_some(self.X, columns), columns)
        self.stuck[columns] = False
        self._begin(columns)


def iterate(cg: ConjugateGradients, note: Callable[[bool], Float], tol: float, most: int) -> tuple[int, Ended]:
    """Iterate each column until its true residual satisfies the tolerance.

    The residual by recurrence drifts from the true one. Therefore the true residual is computed at the end, by one
    product. If it is above the tolerance, the iteration restarts from it, as long as a restart halves it.

    Parameters
    ----------
    cg : the state.
    note : function that records the state and returns the values (d,) that are compared with `tol`. Its argument is
        True if the state is the last one again, with its true residual.
    tol : tolerance.
    most : largest number of iterations.

    Returns
    -------
    iterations : number of iterations.
    ended : "tolerance", "iterations", or "rounding" if rounding of the products keeps the residual above the tolerance.
    """
    now, iterations = note(False), 0
    for _ in range(1 + _RESTARTS):
        began = now
        least, since = now.copy(), 0
        while iterations < most and since < _STALLED and (open_ := (now > _FURTHER * tol) & ~cg.stuck).any():
            cg.advance(open_)
            iterations += 1
            now = note(False)
            lower = now < 0.9 * least
            least, since = np.where(lower, now, least), 0 if lower.any() else since + 1
        if iterations:
            cg.refresh(np.ones(len(now), dtype=bool))
            now = note(True)
        beyond = now > tol
        if not beyond.any():
            return iterations, "tolerance"
        if iterations >= most:
            return iterations, "iterations"
        if (now[beyond] > 0.5 * began[beyond]).all():
            break
    return iterations, "rounding"


def _some(A: Float, columns: Columns) -> Float:
    return A if columns.all() else np.ascontiguousarray(A[:, columns])
