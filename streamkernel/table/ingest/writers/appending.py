"""More rows for an ingested table: a new generation of its folder, in which unchanged chunks are links.

::

    STORE/X/c/0/0, .../1/0     full chunks: the same files, under both names while both generations are there
    STORE/X/c/2/0              the last chunk, if it is not full: written anew, with its old rows in front
    STORE/X/c/3/0, ...         new chunks
    STORE/COMPLETE             digests of all, and what the readers of the earlier generations pinned (`manifest.py`)

The new folder takes the store's name in one step, so that a process that opens the store finds the old rows or all
rows. A process that opened it before continues with the old rows: their chunks have the same keys, and begin with the
same rows.
"""

from __future__ import annotations

import zarr
from zarr.storage import LocalStore

from streamkernel.manifest import Ancestor
from streamkernel.table.ingest.writers.locked_table import LockedTable
from streamkernel.table.ingest.writers.writer import ChunkWriter
from streamkernel.table.rows import RowReader
from streamkernel.table.stored.metadata import ZarrArray
from streamkernel.type_aliases import Fields


class AppendingWriter(ChunkWriter):
    """The next generation of a table, which begins with its rows; `finish` replaces the old generation."""

    def __init__(self, locked: LockedTable) -> None:
        self._locked = locked
        table = locked.table
        targets = table.targets
        super().__init__(
            locked.building(),
            table.n_features,
            0 if targets is None else targets.rows.width,
            table.features.dtype,
            locked.chunk_rows,
            coded=targets is not None and targets.coded,
            weighted=table.weights is not None,
            named_rows=table.ids is not None,
        )

    def _begin(self) -> tuple[zarr.Group, dict[str, ZarrArray]]:
        locked, table = self._locked, self._locked.table
        assert table.statistics is not None
        full, rows = locked.full_rows, table.n_rows
        group = zarr.open_group(LocalStore(self._building.folder), mode="r+")
        for name, manifest in locked.manifest.arrays.items():
            self._digests[name] = list(manifest.digests[: full // self._chunk_rows])
        self._statistics = {"X": table.statistics.X, "y": table.statistics.y}
        self._history = (*locked.manifest.history, Ancestor.of(locked.manifest))
        self.n_rows, self._counted = full, rows
        if rows > full:
            # The rows of the last chunk, which is not full: they are written with the new ones.
            y = None if table.targets is None else RowReader(table.targets.rows).read(full, rows)
            w = None if table.weights is None else RowReader(table.weights).read(full, rows)
            ids = None if table.ids is None else RowReader(table.ids).read(full, rows)
            self.append(RowReader(table.features).read(full, rows), y, w, ids)
        arrays: Fields = {name: group[name] for name in locked.manifest.arrays}
        return group, arrays

    def finish(self, attributes: Fields, *, overwrite: bool) -> None:
        """Write the last chunk, attributes and COMPLETE, and replace the old folder."""
        self._locked.check_current()
        super().finish(attributes, overwrite=overwrite)
