"""The targets of one problem."""

from __future__ import annotations

from dataclasses import dataclass

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
