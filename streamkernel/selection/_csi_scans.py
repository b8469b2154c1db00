"""How look-ahead CSI scans its scores for the best row: by a plain argmax, or as the published programs do."""

from __future__ import annotations

import numpy as np

from streamkernel.type_aliases import Bool, Float

_TIE = 1e-9  # relative difference of equal values
# A published scan replaces the best row so far by a later one whose value is larger by 1 / share.
_AHEAD_SHARE, _PICK_SHARE = 0.99, 0.9


class LargestScan:
    """Scans that take the row with the largest value; the lowest of rows whose values are equal to rounding."""

    def best_ahead(self, values: Float, among: Bool) -> int:
        """The row that look-ahead adds, of the mask `among` (m,) with at least one row."""
        return _first_largest(values, among)

    def best_pick(self, values: Float, among: Bool) -> int:
        """The row that is picked, of the mask `among` (m,) with at least one row."""
        return _first_largest(values, among)

    def looked_at(self, j: int) -> None:
        """Row j is in the look-ahead from now on."""

    def picked(self, j: int) -> None:
        """Row j is picked from now on."""


class PublishedScan(LargestScan):
    """Scans of csi.m (F. Bach, 2005) and of kernlab's ``csi``, which copies it.

    A scan begins with the first row and keeps the best row so far, unless a later one is larger by 1/.99 (columns of
    look-ahead) or by 1/.9 (picks). So the answer depends on the order of the rows, which changes: rows of the
    look-ahead change places with the first row outside it, and a pick moves to the front.

    Parameters
    ----------
    m : number of rows.
    """

    def __init__(self, m: int) -> None:
        self._order = np.arange(m)  # picks, then rows of the look-ahead, then all others
        self._picks = self._ahead = 0

    def best_ahead(self, values: Float, among: Bool) -> int:
        return self._scan(values, among, self._picks + self._ahead, _AHEAD_SHARE)

    def best_pick(self, values: Float, among: Bool) -> int:
        return self._scan(values, among, self._picks, _PICK_SHARE)

    def looked_at(self, j: int) -> None:
        self._swap(self._position(j), self._picks + self._ahead)
        self._ahead += 1

    def picked(self, j: int) -> None:
        # A pick from outside the look-ahead was looked at first, and leaves the look-ahead again.
        place = self._position(j)
        self._order[self._picks + 1 : place + 1] = self._order[self._picks : place]
        self._order[self._picks] = j
        self._picks, self._ahead = self._picks + 1, self._ahead - 1

    def _scan(self, values: Float, among: Bool, start: int, share: float) -> int:
        rows = self._order[start:]
        rows = rows[among[rows]]
        left = values[rows]
        best = 0
        # From one replacement to the next: the value grows by 1 / share each time, so there are few.
        while (later := left[best + 1 :] > left[best] / share).any():
            best += 1 + int(later.argmax())
        return int(rows[best])

    def _position(self, j: int) -> int:
        return int(np.flatnonzero(self._order == j)[0])

    def _swap(self, a: int, b: int) -> None:
        self._order[[a, b]] = self._order[[b, a]]


def _first_largest(values: Float, among: Bool) -> int:
    floor = np.where(among, values, -np.inf)
    return int(np.flatnonzero(floor >= (1.0 - _TIE) * floor.max())[0])
