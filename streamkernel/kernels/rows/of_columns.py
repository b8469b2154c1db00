"""A kernel that sees some of the columns, for sums and products over groups of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.base import Composite, Kernel
from streamkernel.kernels.parameters import checked_integer, checked_rows
from streamkernel.kernels.rows.mapped import MappedKernel
from streamkernel.type_aliases import AnyArray, Float, Int, Unchecked

_SHOWN = 20

Find = Callable[[str, Sequence[str]], Sequence[int]]
"""Finds the columns that a name stands for among the names of columns: their positions there, none if it is unknown."""


def checked_columns_seen(value: Unchecked) -> tuple[int | str, ...]:
    """Positions of columns, counted from 0, as ints, and names as they are; raises ParameterError otherwise."""
    given = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    columns = tuple(
        str(each) if isinstance(each, str) else checked_integer(f"columns[{k}]", each, least=0)
        for k, each in enumerate(given)
    )
    if not columns:
        raise ParameterError("columns are empty; give the positions of some, from 0 on, or their names")
    if len(set(columns)) < len(columns):
        raise ParameterError(f"columns = {list(columns)} have one twice; give each once")
    return columns


@dataclass(frozen=True)
class OfColumns(MappedKernel, Composite):
    """``k(x, z) = part(x[columns], z[columns])``: a kernel that sees some of the columns only.

    Sums of such kernels are additive models, each term a function of its own columns; their products let a kernel of
    one kind see some columns, and one of another kind the others.

    Parameters
    ----------
    part : Kernel
        One lengthscale per feature is one for each of `columns`.
    columns : positions of columns, counted from 0, or their names
        A fit finds the columns of a name in its table (`located`), and its model has positions only. Until then the
        kernel has no values.

    References
    ----------
    Duvenaud, Nickisch & Rasmussen 2011, "Additive Gaussian processes".
    """

    part: Kernel
    columns: tuple[int | str, ...]

    name: ClassVar[str] = "of_columns"
    PARTS: ClassVar[tuple[str, ...]] = ("part",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", checked_columns_seen(self.columns))

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.part.stationary

    @property
    def formulas(self) -> int:
        return self.part.formulas + 1  # the columns of the points are a copy

    @property
    def inner(self) -> Kernel:
        return self.part

    @property
    def positions(self) -> list[int]:
        """The columns as positions.

        Raises
        ------
        ParameterError
            Some of them are names.
        """
        found = [each for each in self.columns if not isinstance(each, str)]
        if len(found) < len(self.columns):
            name = next(each for each in self.columns if isinstance(each, str))
            raise ParameterError(
                f"the kernel {self.part.name} sees a column by its name, {name!r}, and these rows have no names; give "
                "positions, from 0 on"
            )
        return found

    def seen(self, columns: Int) -> Int:
        return columns[self.positions]

    def check_features(self, n_features: int) -> None:
        last = max(self.positions)
        if last >= n_features:
            raise ParameterError(
                f"the kernel {self.part.name} sees column {last}, and the rows have {n_features} features;"
                f" give columns from 0 to {n_features - 1}"
            )
        self.part.check_features(len(self.columns))

    def check_values(self, X: AnyArray) -> None:
        self.part.check_values(self.mapped(X))

    def mapped(self, X: AnyArray) -> AnyArray:
        return np.ascontiguousarray(X[:, self.positions])

    def pulled_back(self, X: Float, gradients: Float) -> Float:
        found = np.zeros((*gradients.shape[:2], X.shape[1]))
        found[:, :, self.positions] = gradients
        return found

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X)
        self.check_features(rows.shape[1])
        return self.part.diagonal(self.mapped(rows))


def sees_names(kernel: Kernel) -> bool:
    """Whether a part of the kernel sees a column by its name."""
    own = isinstance(kernel, OfColumns) and any(isinstance(each, str) for each in kernel.columns)
    return own or any(map(sees_names, kernel.parts))


def located(kernel: Kernel, names: Sequence[str], find: Find) -> Kernel:
    """The same kernel for rows whose columns have these names: each part sees positions, and no names.

    Parameters
    ----------
    names : names of the p columns.
    find : finds the columns that one name stands for.

    Raises
    ------
    ParameterError
        A name stands for no column, or a part sees one twice.
    """
    if not isinstance(kernel, Composite) or not sees_names(kernel):
        return kernel
    if not isinstance(kernel, OfColumns):
        return kernel.with_parts([located(part, names, find) for part in kernel.parts])
    positions: list[int] = []
    for each in kernel.columns:
        found = find(each, names) if isinstance(each, str) else [each]
        if not isinstance(each, str) and each >= len(names):  # the check of all kernels says so
            OfColumns(kernel.part, (each,)).check_features(len(names))
        if not found:
            raise ParameterError(
                f"the kernel {kernel.part.name} sees a column {each!r}, which is not there; give some of "
                f"{_shown(names)}"
            )
        twice = next((position for position in found if position in positions), None)
        if twice is not None:
            raise ParameterError(
                f"the kernel {kernel.part.name} sees column {twice} ({_shown(names[twice : twice + 1])}) twice, the "
                f"second time by {each!r}; give each once"
            )
        positions.extend(found)
    return OfColumns(located(kernel.part, [names[position] for position in positions], find), tuple(positions))


def _shown(names: Sequence[str]) -> str:
    """Names for a message, the first ones of many."""
    return ", ".join(map(repr, names[:_SHOWN])) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")
