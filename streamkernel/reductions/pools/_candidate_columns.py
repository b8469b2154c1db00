"""The columns of a row block for greedy picks: basis functions, a constant, candidates, targets."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import PreparedKernel
from streamkernel.reductions.contract import SentAsFields
from streamkernel.type_aliases import AnyDType, Float


class CandidateColumns(SentAsFields):
    """Base of dataclasses with these fields."""

    basis: Basis
    pool: Basis
    centre: Float
    precision: AnyDType
    constant: bool

    @property
    def projected(self) -> int:
        """Number of columns of the model, which are projected out of the others: the basis, and the constant."""
        return len(self.basis) + int(self.constant)

    @property
    def width(self) -> int:
        """Number of all columns."""
        return self.projected + len(self.pool) + len(self.centre)

    @cached_property
    def prepared(self) -> PreparedKernel:
        """The kernel with the points of the basis and of the pool packed together: one pass fills both."""
        points = np.concatenate([self.basis.points, self.pool.points])
        return self.pool.kernel.prepare(points.astype(self.precision))

    def coordinates(self, coefficients: Float) -> Float:
        """Coefficients (n, d) of the first n columns, given those of the kernel functions: the same for raw columns."""
        return coefficients
