"""The contract of a reduction: three pure functions that a sweep calls. A reduction holds data, not a loop.

A sweep maps every row block of a table to a small state, combines the states in a fixed tree, and finalizes the last
state::

    finalize( combine( combine(map_block(0), map_block(1)), combine(map_block(2), map_block(3)) ) )

The engine owns the loop. It decides which process maps which block, and this never changes the result.

A reduction says how states are combined once, in `combine`, which changes neither of them: Dask may hold a state, and
ask for the same sum again. Within a task nobody else holds the states; there the engine calls `absorb`, the same sum in
the memory of one of them, which a reduction defines only where it is made of others.

Blocks are folded into an open state. A state that waits for its neighbour, travels or is stored is sealed: of its large
symmetric matrices it holds the upper triangle alone, which is half the memory and half the bytes on a network. The
engine seals a state after its last block, and opens the last one of the sweep.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from streamkernel.linalg import from_upper_triangle, upper_triangle
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Fields

State = dict[str, AnyArray]
"""Named arrays: processes exchange them, and a checkpoint stores them."""

Result = TypeVar("Result", covariant=True)

_LEAST_SEALED = 512  # rows of a matrix: of smaller ones the calls take longer than the bytes are worth
_TRIANGLE = "_triangle"  # end of the name of an array that holds upper triangles


class SentAsFields:
    """Mixin of dataclasses that cache derived values: only the fields are pickled.

    Derived values are cheap to compute again and expensive to send.
    """

    def __getstate__(self) -> Fields:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: Fields) -> None:
        self.__dict__.update(state)


class Divided(NamedTuple, Generic[Result]):
    """A reduction whose rows come several times over, each time for another part of the sums.

    Attributes
    ----------
    reduction : the reduction over the repeated rows (`Table.repeated`); its state of all of them is that of the whole.
    parts : number of parts, and of times.
    kernel_columns : number of kernel entries of a row of a part.
    """

    reduction: Reduction[Result]
    parts: int
    kernel_columns: int


class Reduction(ABC, Generic[Result]):
    """Base class. A subclass is one idea: a frozen dataclass of the data that its blocks need (a basis, coefficients).

    Subclasses are pure: the same block gives the same state, in every process and at every call.
    """

    def empty(self) -> State | None:
        """State of no rows, to which `fold` adds; None for a reduction that makes its first state from a block."""
        return None

    def map_block(self, block: RowBlock) -> State:
        """State of one row block; a reduction without an `empty` state defines it."""
        state = self.empty()
        if state is None:
            raise NotImplementedError(f"{type(self).__name__} has neither map_block nor empty and fold")
        return self.fold(state, block)

    def combine(self, left: State, right: State) -> State:
        """State of two neighbouring runs of rows, `left` before `right`; neither argument is changed.

        The default adds the arrays.
        """
        return add_states(left, right)

    @property
    def adds_arrays(self) -> bool:
        """Whether `combine` adds the arrays of two states, and does nothing else."""
        return type(self).combine is Reduction.combine

    def absorb(self, left: State, right: State) -> State:
        """`combine` with the same bits, for states that nobody else holds: it may overwrite both.

        Sums of arrays are made in place: in new arrays they take three times as long, as their pages are filled with
        zeros first.
        """
        if not self.adds_arrays:
            return self.combine(left, right)
        for name, values in right.items():
            left[name] += values
        return left

    def emptied(self, state: State) -> State | None:
        """`empty` in the memory of a state that nobody needs, which is overwritten; None where it is to be made anew.

        Parameters
        ----------
        state : a state whose sums `absorb` has added to another one.
        """
        return None

    @property
    def symmetric(self) -> frozenset[str]:
        """Names of the arrays (..., w, w) of a state of which only the upper triangles are added to and read."""
        return frozenset()

    def sealed(self, state: State, memory: State | None = None) -> State:
        """The state as it waits and travels: upper triangles in place of large `symmetric` arrays.

        `combine` and `absorb` take it, since it has the same sums, and `opened` gives the state back. Arrays of other
        names are those of `state`.

        Parameters
        ----------
        memory : a sealed state of this reduction that nobody needs, whose triangles are overwritten.
        """
        found = dict(state)
        for name in self.symmetric:
            if state[name].shape[-1] >= _LEAST_SEALED:
                packed = name + _TRIANGLE
                found[packed] = upper_triangle(found.pop(name), None if memory is None else memory[packed])
        return found

    def opened(self, state: State) -> State:
        """The open state of a sealed one, which is used up; its matrices have zeros below the diagonal."""
        for name in self.symmetric:
            if name + _TRIANGLE in state:
                state[name] = from_upper_triangle(state.pop(name + _TRIANGLE))
        return state

    @abstractmethod
    def finalize(self, state: State) -> Result:
        """Result of the sweep, from the open state of all rows. It may overwrite the arrays of the state."""

    def fold(self, state: State, block: RowBlock) -> State:
        """``combine(state, map_block(block))``; a reduction with an `empty` state adds to it in place."""
        return self.combine(state, self.map_block(block))

    def divided(self, rows: int) -> Divided[Result] | None:
        """The same sums of so many rows, with the same bits, in parts for many workers; None if there are no parts."""
        return None

    @property
    def row_multiple(self) -> int:
        """Number of rows that must stay in one block: every block starts at a multiple of it, from the first row on."""
        return 1

    # --- costs: the plan needs them before any work --------------------------------------------------------------

    @property
    def precision(self) -> AnyDType:
        """Dtype of the products that are most of the operations: those of float32 take about half the time."""
        return np.dtype(np.float64)

    @abstractmethod
    def state_bytes(self) -> int:
        """Bytes of one open state: of all rows, if states grow with them."""

    @property
    def lower_bytes(self) -> int:
        """Bytes of an open state that a sealed one does not have: below the diagonals of large `symmetric` arrays."""
        return 0

    def sealed_bytes(self) -> int:
        """Bytes of one sealed state: of all rows, if states grow with them."""
        return self.state_bytes() - self.lower_bytes

    def share_bytes(self, share: float) -> int:
        """Bytes of the sealed state of a share of the rows, from 0 to 1: fewer where a state holds rows.

        If these are spread evenly: a number for the schedule of a sweep, and no promise.
        """
        return self.sealed_bytes()

    @abstractmethod
    def scratch_bytes(self, rows: int) -> int:
        """Bytes that `map_block` needs in addition to the block and the state, for a block of `rows` rows."""

    @abstractmethod
    def flops_per_row(self) -> float:
        """Floating point operations per row; spans are cut to equal numbers of them."""


class Sums(Reduction[Result]):
    """A reduction whose state is float64 sums over the rows: they begin at 0, and `fold` adds each block in place."""

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each sum."""

    def empty(self) -> State:
        return {name: np.zeros(shape) for name, shape in self.shapes.items()}

    def emptied(self, state: State) -> State:
        return cleared(state)

    @abstractmethod
    def fold(self, state: State, block: RowBlock) -> State: ...

    def state_bytes(self) -> int:
        return 8 * sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def lower_bytes(self) -> int:
        return 8 * sum(below_diagonal(self.shapes[name]) for name in self.symmetric)


def below_diagonal(shape: tuple[int, ...]) -> int:
    """Number of values below the diagonals of matrices of this shape (..., w, w) that a sealed state does not have."""
    *leading, w, _ = shape
    return math.prod(leading) * (w * (w - 1) // 2) if w >= _LEAST_SEALED else 0


def cleared(state: State) -> State:
    """The state with 0 in all its arrays."""
    for values in state.values():
        values.fill(0)
    return state


def add_states(left: State, right: State) -> State:
    """Elementwise sum."""
    return {name: left[name] + right[name] for name in left}


AnyReduction: TypeAlias = Reduction[Any]
"""A reduction with any result."""
