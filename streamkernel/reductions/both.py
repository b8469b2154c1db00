"""Two reductions over the same row blocks, in one sweep."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

from streamkernel.reductions.contract import AnyReduction, Reduction, State
from streamkernel.table import RowBlock

_PREFIXES = "first_", "second_"  # of the names of the arrays of each


@dataclass(frozen=True)
class Both(Reduction[tuple[Any, Any]]):
    """A pair of reductions, whose result is the pair of their results.

    Parameters
    ----------
    first, second : the reductions; both map the same blocks.
    """

    first: AnyReduction
    second: AnyReduction

    @property
    def row_multiple(self) -> int:
        return lcm(self.first.row_multiple, self.second.row_multiple)

    def empty(self) -> State | None:
        first, second = self.first.empty(), self.second.empty()
        return None if first is None or second is None else _joined(first, second)

    def map_block(self, block: RowBlock) -> State:
        return _joined(self.first.map_block(block), self.second.map_block(block))

    def combine(self, left: State, right: State) -> State:
        parts = zip(_parted(left), _parted(right), strict=True)
        states = [work.combine(*pair) for work, pair in zip((self.first, self.second), parts, strict=True)]
        return _joined(*states)

    @property
    def symmetric(self) -> frozenset[str]:
        parts = zip(_PREFIXES, (self.first, self.second), strict=True)
        return frozenset(f"{prefix}{name}" for prefix, work in parts for name in work.symmetric)

    @property
    def lower_bytes(self) -> int:
        return self.first.lower_bytes + self.second.lower_bytes

    @property
    def adds_arrays(self) -> bool:
        return self.first.adds_arrays and self.second.adds_arrays

    def absorb(self, left: State, right: State) -> State:
        if self.adds_arrays:
            return super().absorb(left, right)
        # Another state than `left`: what does not add may hold arrays of the right one, whose memory stays as it is.
        parts = zip(_parted(left), _parted(right), strict=True)
        return _joined(*(work.absorb(*pair) for work, pair in zip((self.first, self.second), parts, strict=True)))

    def emptied(self, state: State) -> State | None:
        first, second = (
            work.emptied(part) for work, part in zip((self.first, self.second), _parted(state), strict=True)
        )
        return None if first is None or second is None else _joined(first, second)

    def fold(self, state: State, block: RowBlock) -> State:
        # By the folds of both, which may be far cheaper than to map the block and combine (`CountRepeats`).
        first, second = _parted(state)
        return _joined(self.first.fold(first, block), self.second.fold(second, block))

    def finalize(self, state: State) -> tuple[Any, Any]:
        first, second = _parted(state)
        return self.first.finalize(first), self.second.finalize(second)

    def state_bytes(self) -> int:
        return self.first.state_bytes() + self.second.state_bytes()

    def share_bytes(self, share: float) -> int:
        return self.first.share_bytes(share) + self.second.share_bytes(share)

    def scratch_bytes(self, rows: int) -> int:
        return self.first.scratch_bytes(rows) + self.second.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.first.flops_per_row() + self.second.flops_per_row()


def _joined(first: State, second: State) -> State:
    """One state; a prefix of each name says which reduction the array belongs to."""
    parts = zip(_PREFIXES, (first, second), strict=True)
    return {f"{prefix}{name}": values for prefix, state in parts for name, values in state.items()}


def _parted(state: State) -> tuple[State, State]:
    first, second = (
        {name.removeprefix(prefix): values for name, values in state.items() if name.startswith(prefix)}
        for prefix in _PREFIXES
    )
    return first, second
