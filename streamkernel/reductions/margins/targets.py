"""The targets of one problem."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class Target:
    """One column of Y in the units of a solver, ``(y - centre) / scale``.

    Parameters
    ----------
    column : number of the column.
    centre, scale : origin and unit, such as mean and standard deviation; 0 and 1 for indicators of a class.
    """

    column: int
    centre: float = 0.0
    scale: float = 1.0

    def of(self, Y: Float) -> Float:
        """The targets (b,) of a block's Y (b, d)."""
        y = np.ascontiguousarray(Y[:, self.column])
        return y if self.centre == 0.0 and self.scale == 1.0 else (y - self.centre) / self.scale

    def weights(self, Y: Float, w: Float) -> Float:
        """Weights (b,) of the rows in the problem: w, and 0 for rows that have no part in it."""
        return w


@dataclass(frozen=True)
class PairTarget(Target):
    """The indicator of one class among the rows of it and of one other class.

    Parameters
    ----------
    other : column of the other class.
    """

    other: int = 0

    def weights(self, Y: Float, w: Float) -> Float:
        return w * (Y[:, self.column] + Y[:, self.other])


def class_pairs(classes: int) -> list[tuple[int, int]]:
    """All pairs of classes (i, j), i < j, in the order of the functions of one against one."""
    return list(combinations(range(classes), 2))
