"""Preconditioned conjugate gradients on several right sides in step, one product an iteration for all of them.

For ``A X = B``, A positive definite, and a preconditioner P (Hestenes & Stiefel 1952; Concus, Golub & O'Leary 1976)::

    alpha = r^T z / p^T A p;   x += alpha p;   r -= alpha A p;   z = P^-1 r;   p = z + (r^T z)_new / (r^T z)_old p

Each column has an alpha of its own: the columns' iterates are those of one solve each. What is dear is A p, a sweep,
and that is shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ConjugateGradients", "Ended", "column_products", "iterate"]

Float = NDArray[np.float64]
Map = Callable[[Float], Float]
Columns = NDArray[np.bool_]
Ended = Literal["tolerance", "rounding", "iterations"]

_RESTARTS = 3
_FURTHER = 0.9  # of the tolerance by recurrence, so that the true residual holds what that has promised


def column_products(A: Float, B: Float) -> Float:
    """``a_j^T b_j`` of each column, (d,)."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


class ConjugateGradients:
    """The state of the iteration.

    Parameters
    ----------
    B : (m, d) right sides.
    product : ``A V`` for columns V.
    precondition : ``P^-1 V``.

    Attributes
    ----------
    X : (m, d) the iterates, 0 at first.
    R : (m, d) ``B - A X``, by recurrence.
    rz : (d,) ``r^T P^-1 r``.
    stuck : (d,) columns whose direction has no curvature left but rounding: they stay where they are.
    """

    def __init__(self, B: Float, product: Map, precondition: Map) -> None:
        self._B, self._product, self._precondition = B, product, precondition
        self.X, self.R, self._P = np.zeros_like(B), B.copy(), np.empty_like(B)
        self.rz, self.stuck = np.empty(B.shape[1]), np.zeros(B.shape[1], dtype=bool)
        self._begin(np.ones(B.shape[1], dtype=bool))

    def _begin(self, columns: Columns) -> None:
        R = _some(self.R, columns)
        Z = self._precondition(R)
        self._P[:, columns] = Z
        self.rz[columns] = column_products(R, Z)

    def advance(self, columns: Columns) -> None:
        """One iteration of some columns: one product, one preconditioning."""
        P = _some(self._P, columns)
        AP = self._product(P)
        before, curvature = self.rz[columns], column_products(P, AP)
        going = (curvature > 0.0) & (before > 0.0)
        step = np.divide(before, curvature, out=np.zeros_like(before), where=going)
        self.stuck[columns] = ~going
        self.X[:, columns] += step * P
        AP *= -step
        AP += self.R[:, columns]
        self.R[:, columns] = AP
        Z = self._precondition(AP)
        after = column_products(AP, Z)
        self._P[:, columns] = Z + np.divide(after, before, out=np.zeros_like(after), where=going) * P
        self.rz[columns] = after

    def refresh(self, columns: Columns) -> None:
        """Begin anew from ``R = B - A X`` itself, one product: what the recurrence has lost of it is put right."""
        self.R[:, columns] = self._B[:, columns] - self._product(_some(self.X, columns))
        self.stuck[columns] = False
        self._begin(columns)


def iterate(cg: ConjugateGradients, note: Callable[[bool], Float], tol: float, most: int) -> tuple[int, Ended]:
    """Iterate each column until it is within the tolerance, and see to it that it truly is.

    The recurrence loses sight of the residual. So at the end it is computed, one product; where it is beyond the
    tolerance the iteration begins anew from there, as long as that halves it.

    Parameters
    ----------
    note : of each state, what is held against `tol` (d,); its argument says that the last state is looked at again.
    most : iterations after which to stop in any case.

    Returns
    -------
    iterations : how many.
    ended : "rounding" where the tolerance is beyond what products of this system can tell.
    """
    now, iterations = note(False), 0
    for _ in range(1 + _RESTARTS):
        began = now
        while iterations < most and (open_ := (now > _FURTHER * tol) & ~cg.stuck).any():
            cg.advance(open_)
            iterations += 1
            now = note(False)
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
