"""A reduction that sleeps instead of computing, and notes where; and layouts of as many leaves as a test wants."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.engine.layout import LONG_SPAN, Layout
from streamkernel.reductions import State
from streamkernel.reductions.contract import Sums
from streamkernel.table import RowBlock, Table, open_table

__all__ = ["ROWS", "Sleeper", "layout", "noted", "table"]

ROWS = 4  # of a leaf


@dataclass(frozen=True)
class Sleeper(Sums[Any]):
    """Sums whose digits tell the order of adding.

    Parameters
    ----------
    seconds : of each leaf.
    notes : folder in which each leaf leaves a file when it begins, named by its number and process.
    slow : process whose leaves take `slow_seconds`, if it is named in this file.
    """

    seconds: float = 0.0
    notes: str = ""
    slow: str = ""
    slow_seconds: float = 0.0
    size: int = 3
    heavy: bool = True

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"sums": (self.size,)}

    def fold(self, state: State, block: RowBlock) -> State:
        if self.notes:
            (Path(self.notes) / f"{block.start // ROWS}-{os.getpid()}-{time.monotonic_ns()}").touch()
        is_slow = self.slow and Path(self.slow).exists() and str(os.getpid()) in Path(self.slow).read_text().split()
        time.sleep(self.slow_seconds if is_slow else self.seconds)
        state["sums"] += np.random.default_rng(block.start).standard_normal(self.size) * 10.0 ** (block.start % 7)
        return state

    def finalize(self, state: State) -> Any:
        return state["sums"]

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        """So much that each leaf counts as five seconds, or as nothing."""
        return LONG_SPAN / ROWS if self.heavy else 1.0


def table(leaves: int) -> Table:
    return open_table(np.zeros((leaves * ROWS, 1)))


def layout(leaves: int) -> Layout:
    return Layout([(first, first + ROWS) for first in range(0, leaves * ROWS, ROWS)], ROWS)


def noted(folder: Path) -> Counter[int]:
    """How often each leaf began."""
    return Counter(int(path.name.partition("-")[0]) for path in folder.iterdir())
