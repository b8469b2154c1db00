"""More rows for an ingested table: a new generation of its folder, in which unchanged chunks are links.

::

    STORE/X/c/0/0, .../1/0     full chunks: the same files, under both names while both generations are there
    STORE/X/c/2/0              the last chunk, if it is not full: written anew, with its old rows in front
    STORE/X/c/3/0, ...         new chunks
    STORE/COMPLETE             digests of all, and what the readers of the earlier generations pinned (`manifest.py`)

The new folder takes the store's name in one step, so that a process that opens the store finds the old rows or all
rows. A process that opened it before continues with the old rows: their chunks have the same keys, and begin with the
same rows.

Sparse rows are cut in two ways: into chunks of rows and of entries. The new generation goes on after the last full
chunk of rows, and after the full chunks of entries that end before it.
"""

from __future__ import annotations

from streamkernel.manifest import GROWN_SPARSE_VERSION, Ancestor
from streamkernel.table._sparse_rows import SparseRows
from streamkernel.table.ingest.writers._written_array import WrittenArray
from streamkernel.table.ingest.writers.locked_table import LockedTable
from streamkernel.table.ingest.writers.sparse_writer import SparseWriter
from streamkernel.table.ingest.writers.writer import ChunkWriter
from streamkernel.table.rows import RowReader
from streamkernel.table.statistics import ColumnStatistics
from streamkernel.table.table import Table
from streamkernel.type_aliases import Fields


class _Grown(ChunkWriter):
    """The next generation of a table, which begins with its rows; `finish` replaces the old generation."""

    _locked: LockedTable

    def _begin(self) -> dict[str, WrittenArray]:
        locked, table = self._locked, self._locked.table
        assert table.statistics is not None
        full, rows = locked.full_rows, table.n_rows
        for name, manifest in locked.manifest.arrays.items():
            self._digests[name] = list(manifest.digests[: locked.kept[name]])
        self._statistics = {"X": table.statistics.X, "y": table.statistics.y}
        self._history = (*locked.manifest.history, Ancestor.of(locked.manifest))
        self.n_rows, self._counted = full, rows
        if rows > full:
            # The rows of the last chunk, which is not full: they are written with the new ones.
            y = None if table.targets is None else RowReader(table.targets.rows).read(full, rows)
            w = None if table.weights is None else RowReader(table.weights).read(full, rows)
            ids = None if table.ids is None else RowReader(table.ids).read(full, rows)
            self.append(RowReader(table.features).read(full, rows), y, w, ids)
        return {name: WrittenArray(self._building.folder, name) for name in locked.manifest.arrays}

    def finish(self, attributes: Fields, *, overwrite: bool) -> None:
        """Write the last chunk, attributes and COMPLETE, and replace the old folder."""
        self._locked.check_current()
        super().finish(attributes, overwrite=overwrite)


class AppendingWriter(_Grown):
    """The next generation of a table of dense rows."""

    def __init__(self, locked: LockedTable) -> None:
        self._locked = locked
        table = locked.table
        super().__init__(
            locked.building(),
            table.n_features,
            _target_width(table),
            table.features.dtype,
            locked.chunk_rows,
            coded=_is_coded(table),
            weighted=table.weights is not None,
            named_rows=table.ids is not None,
        )


class SparseAppendingWriter(_Grown, SparseWriter):
    """The next generation of a table of sparse rows.

    Parameters
    ----------
    rows : the sparse rows of the table.
    most : most entries of a new row.
    """

    def __init__(self, locked: LockedTable, rows: SparseRows, most: int) -> None:
        self._locked, self._before = locked, rows
        table = locked.table
        super().__init__(
            locked.building(),
            table.n_features,
            _target_width(table),
            rows.parts.data.dtype,
            locked.chunk_rows,
            most=max(most, rows.most),
            coded=_is_coded(table),
            weighted=table.weights is not None,
        )

    def _begin(self) -> dict[str, WrittenArray]:
        arrays = super()._begin()
        self._version = GROWN_SPARSE_VERSION
        parts = self._before.parts
        sizes = self._before.sizes_at(self._locked.full_rows)
        for name, part in {"indptr": parts.indptr, "indices": parts.indices, "data": parts.data}.items():
            first, last = self._locked.kept[name] * arrays[name].chunks[0], sizes[name]
            # The numbers after the last chunk that stays are written with the new ones.
            self._parts[name] = [RowReader(part).read(first, last)] if last > first else []
            self._written[name] = first
            arrays[name].cut(first)
        self._entries = sizes["data"]
        return arrays

    def _described(self, statistics: ColumnStatistics) -> Fields:
        described = super()._described(statistics)
        # Rows are read in smaller chunks where the new ones are fuller.
        described["sparse"]["chunk_rows"] = self._before.with_room(self._most).chunk_rows
        return described

    def finish(self, attributes: Fields, *, overwrite: bool) -> None:
        super().finish({**attributes, "version": self._version}, overwrite=overwrite)


def appending_writer(locked: LockedTable, most: int | None) -> ChunkWriter:
    """The writer of the next generation of a table; `most` is the most entries of a new row, of sparse rows."""
    rows = locked.table.features
    if isinstance(rows, SparseRows):
        assert most is not None, "dense rows are refused before"
        return SparseAppendingWriter(locked, rows, most)
    return AppendingWriter(locked)


def _target_width(table: Table) -> int:
    return 0 if table.targets is None else table.targets.rows.width


def _is_coded(table: Table) -> bool:
    return table.targets is not None and table.targets.coded
