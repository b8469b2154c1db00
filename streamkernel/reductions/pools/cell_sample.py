"""The distinct rows of a few random cells of a table: near copies come into the sample together, or not at all.

A sample of rows would have few copies of its rows, unless each stands many times. Here the cells are sampled, by
their keys (`streamkernel.table.cell_keys`), which are practically random: the s rows of the smallest keys are whole
cells, but for the last one. Where one cell has more rows than that, as of few columns, a part of it is taken by finer
cells.

Rows that are equal in all digits count once, and a row of weight w is w rows: the sample is the same for any chunks,
any order of the rows, and for rows that stand w times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock
from streamkernel.table.cell_keys import SUMS, Cells
from streamkernel.table.row_keys import PANEL, joined_keys, row_keys, sparse_row_keys
from streamkernel.type_aliases import Float

# Widths of cells, in units of the deviations, and how many digits of a key they give.
_WIDTHS = ((0.25, 20), (2.0**-6, 22), (2.0**-10, 22))


@dataclass(frozen=True)
class CellRows:
    """Sums (`Cells.sums_of`) of features (s, k) and targets (s, k') of distinct rows, in the order of their cells."""

    features: Float
    targets: Float


@dataclass(frozen=True)
class CellSample(Reduction[CellRows]):
    """Accumulate `CellRows`.

    Parameters
    ----------
    features, targets : cells of the columns and of the targets.
    rows : the largest number of rows s.
    width : numbers of a row of a block.
    sparse : whether these are pairs of sparse rows.
    """

    features: Cells
    targets: Cells
    rows: int
    width: int
    sparse: bool = False

    def map_block(self, block: RowBlock) -> State:
        return self._of_block(block, None)

    def fold(self, state: State, block: RowBlock) -> State:
        # Few rows of later blocks have keys that are small enough: only these are compared.
        largest = state["cells"][-1] if len(state["cells"]) == self.rows else None
        return self.combine(state, self._of_block(block, largest))

    def _of_block(self, block: RowBlock, largest: np.uint64 | None) -> State:
        assert block.Y is not None
        features = self.features.sums_of_pairs(block.X) if self.sparse else self.features.sums_of(block.X)
        sums = np.concatenate([features, self.targets.sums_of(block.Y)], axis=1)
        cells = np.zeros(len(sums), np.uint64)
        for edges, (width, digits) in enumerate(_WIDTHS, 1):
            keys = self.features.at(width, edges).keys_of_sums(sums)
            cells = (cells << np.uint64(digits)) | (keys >> np.uint64(64 - digits))
        # Keys of all rows, and then those of some: a copy of these rows may have no room.
        whole = sparse_row_keys(block.X, len(self.features.unit)) if self.sparse else row_keys(block.X)
        whole = joined_keys(whole, row_keys(block.Y))
        kept = np.ones(len(cells), np.bool_) if block.weights is None else block.weights > 0.0
        if largest is not None:
            kept &= cells <= largest
        return self._least({"cells": cells[kept], "whole": whole[kept], "sums": sums[kept]})

    def combine(self, left: State, right: State) -> State:
        return self._least({name: np.concatenate([left[name], right[name]]) for name in left})

    def _least(self, state: State) -> State:
        """The rows of the smallest keys, each once."""
        order = np.lexsort((state["whole"], state["cells"]))
        cells, whole = state["cells"][order], state["whole"][order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (cells[1:] != cells[:-1]) | (whole[1:] != whole[:-1])
        kept = order[first][: self.rows]
        return {name: values[kept] for name, values in state.items()}

    def finalize(self, state: State) -> CellRows:
        k = self.features.sums
        return CellRows(state["sums"][:, :k], state["sums"][:, k:])

    def state_bytes(self) -> int:
        return 8 * self.rows * (self.features.sums + self.targets.sums + 2)

    def scratch_bytes(self, rows: int) -> int:
        # Sums and their keys, and a panel of columns.
        return 8 * rows * (8 * SUMS + 4 * min(self.width, PANEL)) + 3 * self.state_bytes()

    def flops_per_row(self) -> float:
        return 20.0 * self.width + 300.0
