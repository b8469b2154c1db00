"""The parts of a table's rows that cross-validation leaves out in turn, found in a few passes over one column.

Weights count as repetitions: the parts are those of the table in which row i stands w_i times.
"""

from __future__ import annotations

import heapq

import numpy as np

from streamkernel.errors import DataError, ParameterError
from streamkernel.table.parts._weighted_values import weighted_values
from streamkernel.table.parts.row_parts import ContentParts, GroupParts, TimeParts, checked_column
from streamkernel.table.row_keys import NO_ROUNDING, Keys, RowRounding, row_keys
from streamkernel.table.rows import RowArray
from streamkernel.table.table import Table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

MOST_GROUPS = 100_000  # whose weights are counted; the parts of more are about equal without
LEAST_GROUPS_BESIDE = 10  # of which a choice for all others is made
_DIGIT, _DIGITS = 16, 4  # of a time as a whole number of 64 bits
_GRAIN = 2.0**-40  # of the total weight: sums that differ by less, as those of other chunks do, are equal


def content_parts(table: Table, count: int, rounding: RowRounding = NO_ROUNDING) -> ContentParts:
    """Parts by content, of rounded features where near copies are to be in one part; nothing is read."""
    return ContentParts(table.features, count, rounding)


def group_parts(table: Table, groups: RowArray, count: int, *, beside: bool = False) -> GroupParts:
    """Parts of about equal weight that hold whole groups, in one pass.

    Parameters
    ----------
    beside : whether there is to be a part more, the last one, if it then holds enough groups to show how these differ.

    Raises
    ------
    ParameterError
        There are fewer groups than parts.
    DataError
        A value is NaN or infinite.
    """
    keys, weights = np.zeros(0, np.uint64), np.zeros(0)
    for start, values, w in weighted_values(groups, table):
        # NaN is refused in a row of weight 0, too: it is one of a column that must name groups.
        fresh = row_keys(checked_column(values, start, groups).reshape(-1, 1))[w > 0.0]
        if len(keys) <= MOST_GROUPS:
            keys, weights = _counted(np.concatenate([keys, fresh]), np.concatenate([weights, w[w > 0.0]]))
    if len(keys) > MOST_GROUPS:
        return GroupParts(groups, count + beside, None, None)
    if len(keys) < count:
        raise ParameterError(
            f"{option('groups')}: {groups.name} has {len(keys)} groups, too few for {count} folds; give "
            f"{option('folds', len(keys))} or fewer" if len(keys) > 1 else
            f"{option('groups')}: {groups.name} is the same in all rows, so that no group can be left out; leave it out"
        )  # fmt: skip
    if beside:
        parts = _filled(keys, weights, count + 1)
        if np.count_nonzero(parts == count) >= LEAST_GROUPS_BESIDE:
            return GroupParts(groups, count + 1, keys, parts)
    return GroupParts(groups, count, keys, _filled(keys, weights, count))


def _counted(keys: Keys, weights: Float) -> tuple[Keys, Float]:
    """Distinct keys, ascending, and the sums of their weights."""
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, weights, minlength=len(distinct)).astype(np.float64)


def _filled(keys: Keys, weights: Float, count: int) -> Int:
    """Parts (g,) of the groups: the heaviest group first, each into the lightest part."""
    grains = np.round(weights / (weights.sum() * _GRAIN)).astype(np.int64)
    parts = np.zeros(len(keys), np.int64)
    filled = [(0, 0, part) for part in range(count)]
    for group in np.lexsort((keys, -grains)).tolist():
        weight, groups, part = filled[0]
        parts[group] = part
        # Groups that weigh nothing in grains are spread, too.
        heapq.heapreplace(filled, (weight + int(grains[group]), groups + 1, part))
    return parts


def time_parts(table: Table, times: RowArray, count: int) -> TimeParts:
    """Parts of about equal weight in the order of time.

    The thresholds are the least times t with ``W(t) >= j W / count``, W(t) the weight of the rows at or before t. They
    are found digit by digit, of 16 bits each, in four passes over the column: exact, in a memory that does not grow
    with the number of rows.

    Raises
    ------
    DataError
        A value is NaN or infinite; or there are so few times that a part is empty.
    """
    prefixes, above = np.zeros(count - 1, np.uint64), np.zeros(count - 1)
    for digit in reversed(range(_DIGITS)):
        tallies, total = np.zeros((count - 1, 1 << _DIGIT)), 0.0
        shift = np.uint64(_DIGIT * digit)
        for start, values, w in weighted_values(times, table):
            words = _ordered(checked_column(values, start, times))
            digits = ((words >> shift) & np.uint64((1 << _DIGIT) - 1)).astype(np.int64)
            # NumPy shifts a word by 64 bits no further than by 0.
            heads = (words >> shift) >> np.uint64(_DIGIT)
            total += w.sum()
            for j in range(count - 1):
                own = heads == prefixes[j]
                tallies[j] += np.bincount(digits[own], w[own], minlength=1 << _DIGIT)
        for j in range(count - 1):
            wanted = (j + 1) * total / count - _GRAIN * total
            reached = above[j] + np.cumsum(tallies[j])
            found = int(np.argmax(reached >= wanted))
            above[j] = reached[found] - tallies[j, found]
            prefixes[j] = (prefixes[j] << np.uint64(_DIGIT)) | np.uint64(found)
    thresholds = _times(prefixes)
    return TimeParts(times, count, thresholds)


def check_filled(counted: Int, parts: str, folds: int) -> None:
    """Raise `DataError` where a part has no row of weight > 0, for numbers (count,) of such rows in each part."""
    if counted.all():
        return
    raise DataError(
        f"{int(counted.sum())} rows are too few, or too many of them are equal in {parts}, for {folds} folds: a fold "
        f"would have no rows; give fewer by {option('folds')}"
    )


def _ordered(times: Float) -> Keys:
    """Words whose order is that of the numbers."""
    words = (times + 0.0).view(np.uint64)  # -0.0 is 0.0
    negative = words >> np.uint64(63) == 1
    return np.where(negative, ~words, words | np.uint64(1 << 63))


def _times(words: Keys) -> Float:
    """The numbers of `_ordered` words."""
    positive = words >> np.uint64(63) == 1
    return np.where(positive, words & np.uint64((1 << 63) - 1), ~words).view(np.float64)
