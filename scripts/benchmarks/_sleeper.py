"""A reduction that sleeps instead of computing, with states as real ones; and a process that is many workers.

``python _sleeper.py ADDRESS COUNT`` joins so many workers of one thread each to a scheduler.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.engine.layout import Layout
from streamkernel.reductions import State
from streamkernel.reductions.contract import Sums
from streamkernel.table import RowBlock, Table, open_table

__all__ = ["Sleeper", "rows_of"]


@dataclass(frozen=True)
class Sleeper(Sums[float]):
    """A leaf of one row takes `seconds`, and its state is (n, n)."""

    n: int
    seconds: float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"H": (self.n, self.n)}

    def fold(self, state: State, block: RowBlock) -> State:
        time.sleep(self.seconds)
        state["H"] += 1.0
        return state

    def finalize(self, state: State) -> float:
        return float(np.trace(state["H"]))

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        return 4e10 * self.seconds  # what a core does meanwhile, by the cut


def rows_of(leaves: int) -> tuple[Table, Layout]:
    """A table of a row a leaf, and its layout."""
    return open_table(np.zeros((leaves, 1))), Layout([(leaf, leaf + 1) for leaf in range(leaves)], 1)


async def _join(address: str, count: int) -> None:
    from distributed import Worker

    def worker(number: int) -> Any:
        return Worker(address, nthreads=1, memory_limit=0, dashboard=False, dashboard_address="127.0.0.1:0")

    workers = await asyncio.gather(*(worker(number) for number in range(count)))
    print("joined", flush=True)
    await asyncio.gather(*(each.finished() for each in workers))


if __name__ == "__main__":
    # Tasks are looked up in this module by its name, not in __main__.
    asyncio.run(_join(sys.argv[1], int(sys.argv[2])))
