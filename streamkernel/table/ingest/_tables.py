"""Sources that are tables already (a Zarr store, or arrays in memory), read through `Table` with its checks."""

from __future__ import annotations

from collections.abc import Iterator

from streamkernel.errors import ParameterError
from streamkernel.table.ingest._reader import BATCH_BYTES, Batch, Reader
from streamkernel.table.rows import RowReader
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets, discover_classes
from streamkernel.wording import option


class TableReader(Reader):
    """Rows of a Table; `target` chooses a column where the table has no y."""

    def __init__(self, table: Table, target: str | int | None, place: str) -> None:
        self._place = place
        targets = table.targets
        if targets is not None and target is not None and target not in targets.names:
            raise ParameterError(f"{place} has its target {', '.join(targets.names)}; leave {option('target')} out")
        if targets is not None and targets.classes is None and targets.rows.dtype.kind in "UTO":
            targets = Targets(targets.rows, targets.names, discover_classes(targets.rows, targets.names))
        self._targets = targets
        self._table = table.without_targets()
        self._choose(table.columns, None if targets is not None else target, place)
        self.named = table.named
        if targets is not None:
            self.target_names = targets.names
            self.labelled = targets.classes is not None
        self.dtype = table.dtype
        self.n_rows = self.estimated_rows = self.total = table.n_rows

    def batches(self) -> Iterator[Batch]:
        table, targets = self._table, self._targets
        reader = None if targets is None else RowReader(targets.rows)
        rows = max(1, BATCH_BYTES // (8 * table.n_features))
        for block in table.blocks(table.start, table.stop, rows):
            if targets is None or reader is None:
                yield Batch(*self._split(block.X), None, len(block))
                continue
            values = reader.read(block.start, block.stop)
            if targets.classes is None:
                yield Batch(block.X, targets.encode(values, block.start), None, len(block))
            else:
                codes = targets.codes(values, block.start)
                yield Batch(block.X, codes, targets.classes.tolist(), len(block))
