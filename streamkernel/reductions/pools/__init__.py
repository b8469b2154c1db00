"""Pools of candidates and samples of rows: the sums by which selection rules pick a basis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.pools.cell_lots import cells_of_copies
    from streamkernel.reductions.pools.cell_sample import CellRows, CellSample
    from streamkernel.reductions.pools.cross_pool import CrossPool, CrossSums
    from streamkernel.reductions.pools.dictionary import DictionarySums, Roots
    from streamkernel.reductions.pools.dictionary_columns import DictionaryColumns
    from streamkernel.reductions.pools.dictionary_rows import HeldOut, ResidualReservoir
    from streamkernel.reductions.pools.distinct_rows import CountRepeats, Origins, Repeats
    from streamkernel.reductions.pools.inner_products import Gram
    from streamkernel.reductions.pools.near_copies import Lots, LotSizes
    from streamkernel.reductions.pools.pool import PoolColumns, PoolGram, PoolSums, ResidualColumns
    from streamkernel.reductions.pools.pool_blocks import PoolBlocks
    from streamkernel.reductions.pools.pool_root import PoolRoot, RootSums
    from streamkernel.reductions.pools.residual_sample import ResidualSample, ResidualSampleResult
else:
    __getattr__ = on_demand(
        __name__,
        {
            "cell_lots": "cells_of_copies",
            "cell_sample": "CellRows CellSample",
            "cross_pool": "CrossPool CrossSums",
            "dictionary": "DictionarySums Roots",
            "dictionary_columns": "DictionaryColumns",
            "dictionary_rows": "HeldOut ResidualReservoir",
            "distinct_rows": "CountRepeats Origins Repeats",
            "inner_products": "Gram",
            "near_copies": "Lots LotSizes",
            "pool": "PoolColumns PoolGram PoolSums ResidualColumns",
            "pool_blocks": "PoolBlocks",
            "pool_root": "PoolRoot RootSums",
            "residual_sample": "ResidualSample ResidualSampleResult",
        },
    )

__all__ = [
    "CellRows",
    "CellSample",
    "CountRepeats",
    "CrossPool",
    "CrossSums",
    "DictionaryColumns",
    "DictionarySums",
    "Gram",
    "HeldOut",
    "LotSizes",
    "Lots",
    "Origins",
    "PoolBlocks",
    "PoolColumns",
    "PoolGram",
    "PoolRoot",
    "PoolSums",
    "Repeats",
    "ResidualColumns",
    "ResidualReservoir",
    "ResidualSample",
    "ResidualSampleResult",
    "RootSums",
    "Roots",
    "cells_of_copies",
]
