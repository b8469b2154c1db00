"""What a sweep accumulates: a reduction is data, not a loop.

A sweep takes every row block of a table to a small state, combines the states in a fixed tree, and finalizes the
last one::

    finalize( combine( combine(map_block(0), map_block(1)), combine(map_block(2), map_block(3)) ) )

The engine owns the loop: which process maps which block is its business, and never changes the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from streamkernel.table import RowBlock

__all__ = ["Reduction", "SentAsFields", "State", "add_states"]

State = dict[str, NDArray[Any]]
"""Named arrays: what travels between processes, and what a checkpoint keeps."""

Result = TypeVar("Result", covariant=True)


class SentAsFields:
    """Of dataclasses that derive more from their fields: that is cheap to make again and dear to send, and stays."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class Reduction(ABC, Generic[Result]):
    """One idea a subclass, a frozen dataclass of what the blocks need (a basis, row numbers, coefficients).

    Subclasses are pure: the same block gives the same state, in any process, however often it is asked.
    """

    @abstractmethod
    def map_block(self, block: RowBlock) -> State:
        """State of one row block."""

    @abstractmethod
    def combine(self, left: State, right: State) -> State:
        """State of two neighbouring runs of rows, `left` before `right`; neither argument is changed."""

    @abstractmethod
    def finalize(self, state: State) -> Result:
        """What the sweep was for, from the state of all rows, whose arrays it may use up."""

    def fold(self, state: State, block: RowBlock) -> State:
        """``combine(state, map_block(block))``; a subclass with large sums may add into `state` in place."""
        return self.combine(state, self.map_block(block))

    @property
    def row_multiple(self) -> int:
        """Rows that belong together: every block begins at a whole multiple of them, from the table's first row on."""
        return 1

    # --- what the plan needs to know, before any work ------------------------------------------------------------

    @abstractmethod
    def state_bytes(self) -> int:
        """Bytes of one state."""

    @abstractmethod
    def scratch_bytes(self, rows: int) -> int:
        """Bytes that `map_block` needs beside the block and the state, for a block of `rows` rows."""

    @abstractmethod
    def flops_per_row(self) -> float:
        """Floating point operations per row, the currency in which spans are cut."""


def add_states(left: State, right: State) -> State:
    """Elementwise sum, the `combine` of every reduction that only sums."""
    return {name: left[name] + right[name] for name in left}
