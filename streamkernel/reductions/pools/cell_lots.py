"""Lots of near copies among rows that were sampled by cells, and the cells that hold copies together.

At a width w, rows belong to one lot where their features and targets lie in one cell of any of several grids. The
number N(w) of lots falls with w. Copies that differ by s are one lot each from about 4 s on, until w is the distance
of distinct rows: between the two the number stays. Of rows that are no copies the number falls ever faster. So there
are copies where

    N(w) <= .9 N(0)        N(4 w) >= .9 N(w)

for a width w up to 1/64 of a deviation; N(0) is the number of distinct rows. No distance has to be known beforehand.
"""

from __future__ import annotations

import numpy as np

from streamkernel.reductions.pools.cell_sample import CellRows
from streamkernel.table.cell_keys import Cells
from streamkernel.table.row_keys import FEW, Keys
from streamkernel.type_aliases import Float, Int

_GRIDS = 8  # of which one holds nearly all copies: a lot is parted by all with a probability below 1e-4
_WIDEST, _FINEST, _WIDER = 2.0**-6, 2.0**-44, 4.0
_FOLD_WIDTHS = [2.0**digit for digit in range(-40, 0)]  # of cells by which copies are grouped
_PARTED = 0.01  # share of the copies that may be apart from others of their lot
_BY_CHANCE, _AGREEING = 0.05, 0.9  # as of equal rows (`distinct_rows`)


def cells_of_copies(cells: Cells, rows: CellRows) -> Cells | None:
    """Cells of features in which copies lie together and distinct rows do not; None where there are hardly any copies.

    The narrowest cells in which at most one copy in a hundred is apart from its lot, or wider ones as long as copies
    are apart and no more distinct rows come together. Nine of ten rows that are apart where the copies show stay so.

    Parameters
    ----------
    cells : those of the features of the sample, of any width.
    """
    features = rows.features
    found = _lots(cells, rows) if len(features) > 1 else None
    if found is None:
        return None
    width, of = found
    first = of == np.arange(len(of))
    copies = np.flatnonzero(~first)
    best = cells.at(width)
    least = FEW * len(np.unique(best.keys_of_sums(features)[first]))
    together = False
    for each in map(cells.at, _FOLD_WIDTHS):
        keys = each.keys_of_sums(features)
        distinct = len(np.unique(keys[first]))
        if (together or each.width > width) and distinct < least:
            break
        best, apart = each, np.mean(keys[copies] != keys[of[copies]])
        if apart <= _PARTED and not together:
            together, least = True, distinct
        if not apart:
            break
    return best


def _lots(cells: Cells, rows: CellRows) -> tuple[float, Int] | None:
    """The widest cells that show copies, and the position (s,) of the first row of the lot of each row."""
    both = np.concatenate([rows.features, rows.targets], axis=1)
    width = _WIDEST
    wider = _lots_at(cells, both, _WIDER * width)
    while width >= _FINEST:
        of = _lots_at(cells, both, width)
        lots = _number(of)
        if lots > FEW * len(both):
            return None  # nor are there copies in finer cells
        if _number(wider) >= FEW * lots and _agree(cells, rows, of, width):
            return width, of
        width, wider = width / _WIDER, of
    return None


def _lots_at(cells: Cells, sums: Float, width: float) -> Int:
    """(s,) position of the first row of the lot of each row, where rows in one cell of any grid are of one lot."""
    of = np.arange(len(sums))
    left = of
    for edges in range(1, 1 + _GRIDS):
        keys = cells.at(width, edges).keys_of_sums(sums[left])
        first, place = np.unique(keys, return_index=True, return_inverse=True)[1:]
        of[left] = left[first][place]
        left = np.sort(left[first])
    while not np.array_equal(of, of[of]):  # the first row of a lot may have joined another one later
        of = of[of]
    return of


def _number(of: Int) -> int:
    return int(np.count_nonzero(of == np.arange(len(of))))


def _agree(cells: Cells, rows: CellRows, lots: Int, width: float) -> bool:
    """Whether rows of like features have like targets, far more often than chance has it.

    Targets of few values agree by chance. Rows of one class that are near each other are no copies, unless hardly any
    such rows are of two classes.
    """
    keys: Keys = cells.at(width).keys_of_sums(rows.targets)
    of = _lots_at(cells, rows.features, width)
    first = np.flatnonzero(of == np.arange(len(of)))
    same, n = np.unique(keys[first], return_counts=True)[1].astype(np.float64), float(len(first))
    by_chance = float((same * (same - 1.0)).sum()) / (n * (n - 1.0)) if n > 1.0 else 1.0
    if by_chance < _BY_CHANCE:
        return True
    repeated = np.flatnonzero(np.bincount(of, minlength=len(of)) > 1)
    apart = np.zeros(len(of), np.bool_)
    apart[of[lots != lots[of]]] = True
    agreeing = float(np.mean(~apart[repeated])) if len(repeated) else 0.0
    return agreeing - by_chance >= _AGREEING * (1.0 - by_chance) > 0.0
