"""Count, mean, deviation and range of every column, for tables that carry no stored statistics."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import ColumnStatistics, RowBlock, TableStatistics

__all__ = ["Moments"]

_NAMES = [field.name for field in fields(ColumnStatistics)]


def _to_state(prefix: str, statistics: ColumnStatistics) -> State:
    return {f"{prefix}_{name}": np.asarray(getattr(statistics, name)) for name in _NAMES}


def _of_state(prefix: str, state: State) -> ColumnStatistics:
    values: dict[str, Any] = {name: state[f"{prefix}_{name}"] for name in _NAMES}
    values["count"] = int(values["count"])
    return ColumnStatistics(**values)


@dataclass(frozen=True)
class Moments(Reduction[TableStatistics]):
    """Merged pairwise, so that a large offset costs no digits (Chan, Golub & LeVeque 1983, eq. (2.1)).

    Parameters
    ----------
    n_features, n_targets : of the table; 0 targets for none.
    """

    n_features: int
    n_targets: int

    @property
    def _prefixes(self) -> list[str]:
        return ["x", "y"] if self.n_targets else ["x"]

    def map_block(self, block: RowBlock) -> State:
        state = _to_state("x", ColumnStatistics.of(block.X))
        if self.n_targets:
            assert block.Y is not None
            state |= _to_state("y", ColumnStatistics.of(block.Y))
        return state

    def combine(self, left: State, right: State) -> State:
        merged: State = {}
        for prefix in self._prefixes:
            merged |= _to_state(prefix, _of_state(prefix, left).merge(_of_state(prefix, right)))
        return merged

    def finalize(self, state: State) -> TableStatistics:
        return TableStatistics(_of_state("x", state), _of_state("y", state) if self.n_targets else None)

    def state_bytes(self) -> int:
        return 32 * (self.n_features + self.n_targets) + 16

    def scratch_bytes(self, rows: int) -> int:
        return 16 * rows * self.n_features

    def flops_per_row(self) -> float:
        return 8.0 * (self.n_features + self.n_targets)
