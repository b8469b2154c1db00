"""How many rows a chunk of a table has, where nobody says."""

from __future__ import annotations

_CHUNK_BYTES = 1 << 23
_LEAST_ROWS, _MOST_ROWS = 1 << 10, 1 << 16
_LEAST_SPARSE = 32
# With fewer chunks than this, two workers would get unequal shares.
_LEAST_CHUNKS = 16


def default_chunk_rows(row_bytes: int, n_rows: int | None) -> int:
    """Rows of a chunk: a power of two, about 8 MiB of X, between 1,024 and 65,536 rows, and at least 16 chunks where
    the table has enough rows; never more than `n_rows` rounded up to a power of two."""
    rows = min(max(_floor_power(_CHUNK_BYTES // max(1, row_bytes)), _LEAST_ROWS), _MOST_ROWS)
    if n_rows is None:
        return rows
    rows = min(rows, max(_LEAST_ROWS, _floor_power(n_rows // _LEAST_CHUNKS)))
    return min(rows, 1 << max(0, (max(1, n_rows) - 1).bit_length()))


def sparse_chunk_rows(most: int, rows: int) -> int:
    """At most so many rows of a chunk of sparse rows: fewer than 1,024 where a row of many entries, for which each has
    room when it is read, would make chunks of more than 8 MiB."""
    return max(_LEAST_SPARSE, min(rows, _floor_power(_CHUNK_BYTES // (16 * most))))


def _floor_power(value: int) -> int:
    return 1 << max(0, max(1, value).bit_length() - 1)
