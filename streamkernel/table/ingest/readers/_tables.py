"""Sources that are tables already (a Zarr store, or arrays in memory), read through `Table` with its checks."""

from __future__ import annotations

from collections.abc import Iterator

from streamkernel.errors import ParameterError
from streamkernel.table._sparse_rows import SparseRows
from streamkernel.table.ingest.readers.reader import BATCH_BYTES, Batch, Reader
from streamkernel.table.rows import RowReader
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets, discover_classes
from streamkernel.wording import option


class TableReader(Reader):
    """Rows of a Table; `target` chooses a column where the table has no y, `weight` one where it has no weights.

    Parameters
    ----------
    weight_name
        Name of the weights that the table has.
    """

    def __init__(
        self,
        table: Table,
        target: str | int | None,
        weight: str | int | None,
        place: str,
        weight_name: str = "w",
    ) -> None:
        self._place, self._source = place, table
        targets = table.targets
        if table.weights is not None and weight not in (None, weight_name):
            raise ParameterError(f"{place} has row weights, {weight_name}; leave {option('weight')} out")
        if targets is not None and target is not None and target not in targets.names:
            raise ParameterError(f"{place} has its target {', '.join(targets.names)}; leave {option('target')} out")
        if targets is not None and targets.classes is None and targets.rows.dtype.kind in "UTO":
            targets = Targets(targets.rows, targets.names, discover_classes(targets.rows, targets.names))
        if table.sparse and (target if targets is None else weight if table.weights is None else None) is not None:
            raise ParameterError(
                f"{place} has sparse rows, of which no column is apart; give y and weights beside them "
                f"(open_table(X, y, weights=w, sparse=True))"
            )
        self._targets = targets
        self._table = table.without_targets()
        weighted = table.weights is not None
        self._choose(table.columns, None if targets is not None else target, None if weighted else weight, place)
        if weighted:
            self.weight = weight_name
        self.named = table.named
        if isinstance(table.features, SparseRows):
            self.most_entries = table.features.most
        if targets is not None:
            self.target_names = targets.names
            self.labelled = targets.classes is not None
        self.dtype = table.dtype
        self.n_rows = self.estimated_rows = self.total = table.n_rows

    def batches(self) -> Iterator[Batch]:
        table, targets = self._table, self._targets
        reader = None if targets is None else RowReader(targets.rows)
        rows = max(1, BATCH_BYTES // (8 * table.stored_width))
        for block in table.blocks(table.start, table.stop, rows):
            X, y, w = (block.X, None, None) if table.sparse else self._split(block.X)
            w = w if block.weights is None else block.weights
            if targets is None or reader is None:
                yield Batch(X, y, None, len(block), w)
                continue
            values = reader.read(block.start, block.stop)
            if targets.classes is None:
                yield Batch(X, targets.encode(values, block.start), None, len(block), w)
            else:
                codes = targets.codes(values, block.start)
                yield Batch(X, codes, targets.classes.tolist(), len(block), w)
        # The first rows may be those of a store that another one has replaced since.
        self._source.check_read()
