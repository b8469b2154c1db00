"""The two decompositions of look-ahead CSI, and their updates by a pick (Bach & Jordan 2005).

For the kernel matrix K (m, m), with t picked rows and at most delta + 1 columns of look-ahead::

    K ~ G G^T + A A^T      G = Q R (m, t) of the picks      A (m, delta) of incomplete Cholesky of K - G G^T
    B = (I - Q Q^T) A      D = diag(K - G G^T)              unseen = D - diag(A A^T)

``S = A A^T`` approximates the residual, so that it gives a part of each residual column. The predicted gain of row i
is, with c_i (d,)::

    predicted_i = lambda (a_i + D_i^2 - (D_i - unseen_i)^2) / D_i + mu |c_i|^2 / b_i
    a_i = |S_i|^2 = A_i (A^T A) A_i^T      b_i = |(I - Q Q^T) S_i|^2 = A_i (B^T B) A_i^T      c_i = Y^T B A_i^T

S does not change when A is rotated from the right. The paper moves a pick j to the front by permuting rows and factors
again. Here one reflection does this: it makes one column of A equal to the residual column ``g = S_j / sqrt(D_j)``,
which moves to G. All other quantities change by terms of rank one: O(m (t + delta)) operations per column, the bound of
the paper (ALGORITHMS 3.4). For a row in the look-ahead, S has the exact residual column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE
from streamkernel.selection._csi_scans import LargestScan
from streamkernel.type_aliases import Bool, Float

BLOCK = 8192  # rows of a QR decomposition
_SMALLEST_SQUARE = 1e-12  # of S_i orthogonal to Q, in units of mean(k_ii)^2: below it, its direction is rounding
_SMALLEST_SHARE = 1e-12  # of |g|^2 orthogonal to Q: the same bound, for a column that is known exactly
_ORTHOGONAL = 1e-14  # share of a new direction along Q, above which it is projected out once more
_DIGITS = 1e-5  # of a_i and b_i when they were last recomputed: below it, subtraction has left rounding
_ROUNDING = 1e-15  # of k_ii: the unseen part of a row in the span of others is rounding


class LookAhead:
    """The state after some picks. All arrays of m rows are transposed, so that a column of the formulas is contiguous.

    Parameters
    ----------
    column : function j -> K[:, j], (m,).
    diagonal : (m,) diagonal of K.
    Y : (d, m) targets.
    n : largest number of picks.
    delta : number of columns of look-ahead.
    constant : (m,) unit vector that Q begins with, or None.
    scan : how the row that look-ahead adds is found.

    Attributes
    ----------
    scan : as given.
    D : (m,) residual diagonal, exact; 0 on the picks.
    unseen : (m,) part of D that the columns of look-ahead do not explain.
    columns : number of columns of K that were computed.
    """

    def __init__(
        self,
        column: Callable[[int], Float],
        diagonal: Float,
        Y: Float,
        *,
        n: int,
        delta: int,
        constant: Float | None = None,
        scan: LargestScan | None = None,
    ) -> None:
        m = len(diagonal)
        self.columns = 0
        self.scan = scan or LargestScan()
        self.D, self.unseen = diagonal.copy(), diagonal.copy()
        self._column = column
        self._Y = Y
        self._floor, self._rounding = PIVOT_TOLERANCE * diagonal, _ROUNDING * diagonal
        self._exact = np.zeros(m, dtype=np.bool_)  # rows whose residual column S has exactly
        self._smallest = _SMALLEST_SQUARE * float(diagonal.mean()) ** 2
        self._A, self._B = np.empty((delta + 1, m)), np.empty((delta + 1, m))
        self._delta, self._r = delta, 0
        # G = Q R and A = Q H + B. A direction that is rounding is in Q only for G = Q R, and is not `sound`.
        self._Q, self._R, self._H = np.empty((n + 1, m)), np.zeros((n + 1, n)), np.zeros((n + 1, delta + 1))
        self._sound = np.zeros(n + 1)
        self._u = self._t = 0
        self._a, self._b = np.zeros(m), np.zeros(m)
        self._most_a, self._most_b = np.zeros(m), np.zeros(m)
        self._c = np.zeros((len(Y), m))
        if constant is not None:
            self._Q[0], self._sound[0], self._u = constant, 1.0, 1
        for _ in range(delta):
            self._look_further()

    @property
    def alive(self) -> Bool:
        """Mask (m,) of the rows that are independent of the picks."""
        return np.asarray(np.greater(self.D, self._floor))

    def trace_gains(self) -> Float:
        """Predicted decrease of tr(K - G G^T), (m,)."""
        known = np.maximum(self._a, 0.0) + self.unseen * (2.0 * self.D - self.unseen)
        return np.asarray(np.divide(known, self.D, out=known, where=self.D > 0.0))

    def target_gains(self) -> Float:
        """Predicted decrease of ``|Y - Q Q^T Y|^2``, (m,); it is not a bound."""
        explained = np.einsum("ij,ij->j", self._c, self._c)
        seen = self._b > self._smallest
        explained[~seen] = 0.0
        return np.asarray(np.divide(explained, self._b, out=explained, where=seen))

    def worn(self, j: int) -> bool:
        """True if the prediction of row j has lost its digits, so that `refresh` must precede the pick."""
        worn_b = self._smallest < self._b[j] < _DIGITS * self._most_b[j]
        return bool(worn_b or self._a[j] < _DIGITS * self._most_a[j])

    def refresh(self) -> None:
        """Recompute a, b and c from their definitions, by the triangular factors of A and B: O(m delta^2)."""
        A, B = self._A[: self._r], self._B[: self._r]
        for values, factor in ((self._a, _triangular(A)), (self._b, _triangular(B))):
            for rows in _blocks(A):
                S = factor @ A[:, rows]
                values[rows] = np.einsum("ij,ij->j", S, S)
        self._c = (self._Y @ B.T) @ A
        self._most_a, self._most_b = self._a.copy(), self._b.copy()

    def pick(self, j: int) -> tuple[float, float] | None:
        """Make row j a pivot.

        Returns
        -------
        The exact decreases of ``tr(K - G G^T)`` and of ``|Y - Q Q^T Y|^2``, or None if row j depends on the picks up to
        rounding.
        """
        known = bool(self._exact[j])
        if not known:
            self._look_at(j)
        v = self._A[: self._r, j].copy()
        pivot = float(v @ v)
        if pivot <= self._floor[j]:
            self.D[j] = 0.0
            return None
        g, p, h = self._rotate(v / np.sqrt(pivot))
        along = self._A[: self._r] @ g
        self._a -= g * ((g @ g) * g + 2.0 * (along @ self._A[: self._r]))
        gains = float(g @ g), self._extend_Q(g, p, h)
        np.maximum(self.D - g**2, 0.0, out=self.D)
        self.D[j] = 0.0
        self.scan.picked(j)
        if known:
            self._look_further()
        return gains

    def _rotate(self, v: Float) -> tuple[Float, Float, Float]:
        """Reflect A, B and H so that their last column is ``A v``, ``B v`` and ``H v``; remove and return it."""
        last = self._r - 1
        sign = 1.0 if v[last] >= 0.0 else -1.0
        images = []
        for M in (self._A, self._B, self._H.T[:, : self._u]):
            image = v @ M[: self._r]
            # I - u u^T / (1 + |v_last|), u = v + sign e_last, maps e_last to -sign v.
            along = (image + sign * M[last]) / (1.0 + abs(v[last]))
            # Row by row: the outer product of v and `along` would be one more array of (r, m).
            for k in range(last):
                M[k] -= v[k] * along
            images.append(image)
        self._r = last
        g, p, h = images
        return g, p, h

    def _extend_Q(self, g: Float, p: Float, h: Float) -> float:
        """Append ``g = Q h + p`` to G = Q R. Returns the part of |Y|^2 that the new direction explains."""
        Q, u = self._Q[: self._u], self._u
        missed = self._sound[:u] * (Q @ p)
        if missed @ missed > _ORTHOGONAL**2 * (p @ p):
            p, h = p - missed @ Q, h + missed
        norm = float(np.sqrt(p @ p))
        sound = norm**2 > _SMALLEST_SHARE * float(g @ g)
        q = self._Q[u]
        np.divide(p, norm or 1.0, out=q)
        self._R[:u, self._t], self._R[u, self._t], self._sound[u] = h, norm, float(sound)
        self._u, self._t = u + 1, self._t + 1
        A, B = self._A[: self._r], self._B[: self._r]
        t = B @ q if sound else np.zeros(self._r)
        self._H[u, : self._r] = t
        if not sound:
            # B has lost the column p, which is rounding relative to the other columns.
            self.refresh()
            return 0.0
        w = norm * g + t @ A
        explained = self._Y @ q
        np.maximum(self._b - w**2, 0.0, out=self._b)
        for k, target in enumerate(explained):
            self._c[k] -= target * w
        for k in range(self._r):
            B[k] -= t[k] * q
        return float(explained @ explained)

    def _look_further(self) -> None:
        """Add the column of the row with the largest unseen part to the look-ahead."""
        among = self.alive & (self.unseen > self._floor)
        if among.any():
            self._look_at(self.scan.best_ahead(self.unseen, among))

    def _look_at(self, j: int) -> None:
        """One more column of incomplete Cholesky, ``e = (K - G G^T - A A^T)[:, j] / sqrt(e_jj)``, appended to A."""
        Q, R, A, B = self._Q[: self._u], self._R[: self._u], self._A[: self._r], self._B[: self._r]
        self.columns += 1
        self.scan.looked_at(j)
        e = self._column(j) - (R @ (Q[:, j] @ R)) @ Q - A[:, j] @ A
        pivot = float(e[j])
        self.unseen[j], self._exact[j] = 0.0, True
        if pivot <= self._rounding[j]:
            return
        e /= np.sqrt(pivot)
        h = self._sound[: self._u] * (Q @ e)
        beyond = e - h @ Q
        self._a += 2.0 * e * ((A @ e) @ A) + (e @ e) * e**2
        self._b += 2.0 * e * ((B @ beyond) @ A) + (beyond @ beyond) * e**2
        np.maximum(self._b, 0.0, out=self._b)
        np.maximum(self._most_a, self._a, out=self._most_a)
        np.maximum(self._most_b, self._b, out=self._most_b)
        for k, target in enumerate(self._Y @ beyond):
            self._c[k] += target * e
        self._A[self._r], self._B[self._r], self._H[: self._u, self._r] = e, beyond, h
        self._r += 1
        np.maximum(self.unseen - e**2, 0.0, out=self.unseen)
        self.unseen[j] = 0.0


def _blocks(M: Float) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, M.shape[1], BLOCK)]


def _triangular(M: Float) -> Float:
    """T (r, r) upper triangular with ``T^T T = M M^T``, from M (r, m), by QR of blocks: a Gram matrix loses digits."""
    T = np.zeros((0, len(M)))
    for rows in _blocks(M):
        T = np.asarray(np.linalg.qr(np.vstack([T, M[:, rows].T]), mode="r"))
    return T
