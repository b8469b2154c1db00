"""Sums whose digits tell the order of adding, and layouts of as many leaves as a test wants."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.engine.layout import Layout
from streamkernel.reductions import State
from streamkernel.reductions.contract import Sums
from streamkernel.table import RowBlock, Table, open_table

__all__ = ["NotedSums", "OrderedSums", "layout", "table"]

ROWS = 4  # of a leaf


@dataclass(frozen=True)
class OrderedSums(Sums[Any]):
    """Sums of numbers of different sizes: another order of adding gives other last digits."""

    size: int = 3

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"sums": (self.size,)}

    def fold(self, state: State, block: RowBlock) -> State:
        state["sums"] += np.random.default_rng(block.start).standard_normal(self.size) * 10.0 ** (block.start % 7)
        return state

    def finalize(self, state: State) -> Any:
        return state["sums"]

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        return 1.0


@dataclass(frozen=True)
class NotedSums(OrderedSums):
    """Sums whose leaves take `seconds`, and of each of which a file tells where it ran: ``leaf.process.number``."""

    folder: str = ""
    seconds: float = 0.2

    def fold(self, state: State, block: RowBlock) -> State:
        name = f"{block.start // ROWS}.{os.getpid()}.{time.monotonic_ns()}"
        Path(self.folder, name).touch()
        time.sleep(self.seconds)
        return super().fold(state, block)

    def flops_per_row(self) -> float:
        return self.seconds * 4e10 / ROWS  # a core of the cut does so many in a second

    def runs(self) -> list[tuple[int, int]]:
        """The leaves that were begun, each time with its process, in their order of time."""
        found = [path.name.split(".") for path in Path(self.folder).iterdir()]
        return [(int(leaf), int(process)) for leaf, process, _ in sorted(found, key=lambda parts: int(parts[2]))]


def table(leaves: int) -> Table:
    return open_table(np.zeros((leaves * ROWS, 1)))


def layout(leaves: int) -> Layout:
    return Layout([(first, first + ROWS) for first in range(0, leaves * ROWS, ROWS)], ROWS)
