"""Sparse rows as a plain array: row i holds the columns and the values of its entries, in pairs.

Rows of d columns with at most w entries each are an array (b, 2 w) of float64::

    columns  P[i, :w]   ascending column numbers of the entries, then -1
    values   P[i, w:]   their values, then 0

Such rows are cut, gathered, stored and sent as all rows are. Only what reads them as points of a space must know: the
kernels (`kernels.rows.sparse`), the scaler, the statistics and the keys of a table. Two arrays may differ in w.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used

from streamkernel.type_aliases import AnyArray, Float, Int

NO_COLUMN = -1.0


def pairs_of(indptr: AnyArray, indices: AnyArray, values: AnyArray, width: int) -> Float:
    """Rows in pairs, (b, 2 width), of rows in CSR: the entries of row i are ``indptr[i] .. indptr[i + 1]``.

    Parameters
    ----------
    indptr : (b + 1,) whole numbers; the first may be above 0, and is then that of the first entry given.
    indices, values : (entries,) columns, ascending in each row, and values.
    width : w, at least the most entries of a row.
    """
    counts = np.diff(indptr).astype(np.int64)
    b = len(counts)
    pairs = np.zeros((b, 2 * width))
    pairs[:, :width] = NO_COLUMN
    first = np.repeat(np.cumsum(counts) - counts, counts)
    place = np.repeat(np.arange(b, dtype=np.int64) * 2 * width, counts) + np.arange(len(first)) - first
    flat = pairs.reshape(-1)
    flat[place] = indices
    flat[place + width] = values
    return pairs


def columns_in(pairs: AnyArray) -> AnyArray:
    """(b, w) columns, a view."""
    return pairs[:, : pairs.shape[1] // 2]


def values_in(pairs: AnyArray) -> AnyArray:
    """(b, w) values, a view."""
    return pairs[:, pairs.shape[1] // 2 :]


def csr_parts(pairs: AnyArray) -> tuple[Int, Int, Float]:
    """(indptr (b + 1,), columns (entries,), values (entries,)) of rows in pairs."""
    there = columns_in(pairs) >= 0.0
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(there.sum(axis=1, dtype=np.int64))])
    return indptr, columns_in(pairs)[there].astype(np.int64), values_in(pairs)[there]


def as_csr(pairs: AnyArray, n_columns: int) -> Any:
    """Rows in pairs as SciPy's CSR array (b, n_columns)."""
    indptr, indices, values = csr_parts(pairs)
    return scipy.sparse.csr_array((values, indices, indptr), shape=(len(pairs), n_columns))


def widened(pairs: AnyArray, width: int) -> AnyArray:
    """The same rows with room for `width` numbers each, at least as many as they have room for now."""
    more = (width - pairs.shape[1]) // 2
    if not more:
        return pairs
    empty = np.full((len(pairs), more), NO_COLUMN)
    return np.concatenate([columns_in(pairs), empty, values_in(pairs), np.zeros_like(empty)], axis=1)


def of_some_columns(pairs: AnyArray, columns: tuple[int, ...]) -> Float:
    """The same rows with these columns alone, which are numbered anew in this order; with as much room."""
    known = columns_in(pairs).astype(np.int64)
    number = np.full(max(columns) + 2, -1)  # the last one is of all columns that come later
    number[list(columns)] = np.arange(len(columns))
    found = np.where(known < 0, -1, number[np.minimum(known, len(number) - 1)])
    # Entries in the order of their new columns, those of no column at the end.
    order = np.argsort(np.where(found < 0, len(columns), found), axis=1, kind="stable")
    found = np.take_along_axis(found, order, axis=1)
    values = np.take_along_axis(values_in(pairs), order, axis=1)
    return np.concatenate([found, np.where(found < 0, 0.0, values)], axis=1, dtype=np.float64)


def plain_entries(pairs: AnyArray) -> Float:
    """Numbers that tell the content of rows: how many values each has that are not 0, their columns, and these values.

    They do not depend on the room of the rows, nor on zeros among the entries.
    """
    there = values_in(pairs) != 0.0
    return np.concatenate([there.sum(axis=1), columns_in(pairs)[there], values_in(pairs)[there]]).astype(np.float64)


def are_pairs(pairs: AnyArray, n_columns: int) -> bool:
    """Whether an array (b, 2 w) is rows in pairs, of so many columns."""
    if pairs.ndim != 2 or pairs.shape[1] % 2 or not pairs.shape[1]:
        return False
    columns, values = columns_in(pairs), values_in(pairs)
    there = columns >= 0.0
    after = there[:, :-1] & (columns[:, 1:] > columns[:, :-1])
    rising = np.where(there[:, 1:], after, columns[:, 1:] == NO_COLUMN).all()
    whole = (columns == np.floor(columns)).all() and (columns >= NO_COLUMN).all() and (columns < n_columns).all()
    return bool(rising and whole and np.isfinite(values).all() and not values[~there].any())
