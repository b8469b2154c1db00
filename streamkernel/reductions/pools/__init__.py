"""Pools of candidates and samples of rows: the sums by which selection rules pick a basis."""

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
