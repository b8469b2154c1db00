"""Rows in: open, pin, check, ingest. A `Table` yields `RowBlock`s; nothing else here reaches a kernel.

::

    SOURCE --ingest--> STORE (Zarr, COMPLETE) --open_table--> Table --blocks--> RowBlock(start, X, Y, weights)
    NumPy, pandas, Dask, xarray, foreign Zarr --open_table--^
"""

from __future__ import annotations

# Only code that ingests imports `streamkernel.table.ingest`: its parsers would cost every worker 100 MB.
from streamkernel.table._sparse_rows import check_pairs
from streamkernel.table._sparse_scaler import SparseScaler
from streamkernel.table.block import RowBlock
from streamkernel.table.bounded_scalers import ClippedScaler, RankScaler
from streamkernel.table.columns import KnownColumns, with_weights_of
from streamkernel.table.info import TableInfo, table_info
from streamkernel.table.open import open_table, weights_in_memory
from streamkernel.table.parts.folds import Folds, PartFolds
from streamkernel.table.repeated import repeated
from streamkernel.table.scaler import RowScaler, Scaler
from streamkernel.table.statistics import ColumnStatistics, TableStatistics
from streamkernel.table.table import Table
from streamkernel.table.weight_sums import WeightSums

__all__ = [
    "ClippedScaler",
    "ColumnStatistics",
    "Folds",
    "PartFolds",
    "KnownColumns",
    "RankScaler",
    "RowBlock",
    "RowScaler",
    "Scaler",
    "SparseScaler",
    "Table",
    "TableInfo",
    "TableStatistics",
    "WeightSums",
    "check_pairs",
    "open_table",
    "repeated",
    "table_info",
    "weights_in_memory",
    "with_weights_of",
]
