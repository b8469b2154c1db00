"""Ids of rows as stored: UTF-8 in rows of 64 bytes, filled with zeros, which compress to nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.table.rows import RowArray, RowReader
from streamkernel.type_aliases import AnyArray, Float

ID_BYTES = 64


def as_rows(ids: Sequence[bytes]) -> AnyArray:
    """Rows (b, 64) uint8 of ids of at most 64 bytes."""
    return np.array(ids, dtype=f"S{ID_BYTES}").view(np.uint8).reshape(len(ids), ID_BYTES)


def codes_of(ids: RowArray) -> Float:
    """The place (m,) of each row's id among the sorted ids (m, 64), which are read chunk by chunk."""
    reader, known = RowReader(ids), dict[bytes, int]()
    codes = np.empty(ids.n_rows, dtype=np.int64)
    row = 0
    while row < ids.n_rows:
        first, last = ids.chunk_span(row)
        chunk = np.ascontiguousarray(reader.read(first, last)).view(f"S{ID_BYTES}")[:, 0]
        found, places = np.unique(chunk, return_inverse=True)
        numbers = np.array([known.setdefault(each, len(known)) for each in found.tolist()], dtype=np.int64)
        codes[first:last] = numbers[places]
        row = last
    # Sorted, they do not depend on the order of the rows.
    rank = np.empty(len(known))
    rank[[known[each] for each in sorted(known)]] = np.arange(len(known))
    return rank[codes]


def as_texts(rows: AnyArray) -> list[str]:
    """The ids of rows (b, 64) uint8."""
    return [each.decode("utf-8", "replace") for each in np.ascontiguousarray(rows).view(f"S{ID_BYTES}")[:, 0].tolist()]
