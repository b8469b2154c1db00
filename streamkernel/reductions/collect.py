"""The values of a row map as one array in memory, for outputs that fit there."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.row_map import RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray


@dataclass(frozen=True)
class Collect(Reduction[NDArray[Any]]):
    """Values of every row, in the order of the rows.

    Parameters
    ----------
    work : the row map.
    name : name of the output to collect.
    rows : number of rows m of the table, for the plan.
    """

    work: RowMap
    name: str
    rows: int

    # A state holds pieces, named by their first row. They are joined once, at the end; each is freed after its copy.

    def map_block(self, block: RowBlock) -> State:
        return {f"rows_{block.start}": self.work.map_block(block)[self.name]}

    def combine(self, left: State, right: State) -> State:
        return left | right

    def finalize(self, state: State) -> AnyArray:
        names = sorted(state, key=lambda name: int(name[5:]))
        values = np.empty((sum(map(len, state.values())), *state[names[0]].shape[1:]), state[names[0]].dtype)
        first = 0
        for name in names:
            piece = state.pop(name)
            values[first : first + len(piece)] = piece
            first += len(piece)
        return values

    def state_bytes(self) -> int:
        width, dtype = self.work.columns[self.name]
        return self.rows * dtype.itemsize * (1 if width is None else width)

    def share_bytes(self, share: float) -> int:
        return ceil(share * self.state_bytes())

    def scratch_bytes(self, rows: int) -> int:
        return self.work.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.work.flops_per_row()
