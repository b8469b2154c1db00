"""Bounds of hyper-parameters: lengthscales relative to distances between rows, variances relative to the targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import (
    Kernel,
    StationaryKernel,
    free_parts,
    log_lengthscales,
    per_feature,
    with_log_lengthscales,
)
from streamkernel.type_aliases import Bool, Float

# A feature has no effect if its lengthscale is 100 typical distances; with 1/100 of one, all rows are uncorrelated.
_LENGTHS = np.log(100.0)
_SIGNAL = np.log(1e4)
_NOISE = np.log([1e-6, 10.0])
_AROUND = np.log(10.0)


@dataclass(frozen=True)
class Bounds:
    """Bounds of (log lengthscales, log signal, log noise), (t + 2,) each.

    Attributes
    ----------
    low, high : lower and upper bounds.
    typical : log of the typical distance between rows in the features of each lengthscale; of 1 for the variances.
    shared : (t + 2,) False for lengthscales of a single feature; True for others, and for the variances.
    unit : log of the signal variance at which the prior variance is 1.
    """

    low: Float
    high: Float
    typical: Float
    shared: Bool
    unit: float

    @classmethod
    def of(cls, kernel: Kernel, X: NDArray[np.floating]) -> Bounds:
        """Relative to rows (a, p), and to targets of variance 1."""
        parts = _parts(kernel, X)
        typical = np.log(np.concatenate([np.zeros(0), *(part.distances for part in parts)]))
        shared = [np.full(len(part.logs), not part.own) for part in parts]
        diagonal = float(kernel.diagonal(X).mean())
        unit = -np.log(diagonal) if diagonal > 0.0 else 0.0
        return cls(
            low=np.concatenate([typical - _LENGTHS, [unit - _SIGNAL, _NOISE[0]]]),
            high=np.concatenate([typical + _LENGTHS, [unit + _SIGNAL, _NOISE[1]]]),
            typical=np.concatenate([typical, [unit, 0.0]]),
            shared=np.concatenate([np.zeros(0, bool), *shared, [True, True]]),
            unit=unit,
        )

    @classmethod
    def around(cls, values: Float) -> Bounds:
        """Bounds of a factor of 10 around `values`; the noise is not below the bound of `of` unless it starts there."""
        low = values - _AROUND
        low[-1] = max(low[-1], min(values[-1], _NOISE[0]))
        return cls(low, values + _AROUND, values, np.ones(len(values), bool), float(values[-2]))

    def called_back(self, values: Float, felt: float) -> Float:
        """`values` with the lengthscale of each single feature at most `felt` typical distances."""
        return np.where(self.shared, values, np.minimum(values, self.typical + np.log(felt)))


def spread_lengthscales(kernel: Kernel, X: NDArray[np.floating]) -> Kernel:
    """The kernel with one lengthscale per feature, in proportion to the standard deviations, if it has one for all."""
    split = per_feature(kernel, X.shape[1])
    moved = [part.logs if part.own else part.logs + part.shares for part in _parts(kernel, X)]
    return with_log_lengthscales(split, np.concatenate([np.zeros(0), *moved]))


def _spread(X: NDArray[np.floating]) -> Float:
    """Standard deviation of each feature; for a constant feature the root mean square of the others."""
    spread = np.asarray(X.std(axis=0, dtype=np.float64))
    moving = spread > 8.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0, initial=0.0)
    others = float(np.sqrt(np.mean(spread[moving] ** 2))) if moving.any() else 1.0
    return np.where(moving, spread, others)


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a kernel that has lengthscales.

    Attributes
    ----------
    logs : logarithms of its lengthscales.
    own : whether they are of one feature each.
    spread : standard deviations of the features that it sees, (q,); 1 where distances have units of their own.
    """

    logs: Float
    own: bool
    spread: Float

    @property
    def distances(self) -> Float:
        """Typical distance of two rows for each lengthscale.

        It is the root mean square distance, or ``sqrt(2 q) spread`` for each feature.
        """
        each: Float = np.sqrt(2.0 * len(self.spread)) * self.spread
        return each if self.own else np.sqrt(2.0 * np.sum(self.spread**2, keepdims=True))

    @property
    def shares(self) -> Float:
        """Logarithms of the spread of each feature in units of that of all."""
        shares: Float = np.log(self.spread / np.sqrt(np.mean(self.spread**2)))
        return shares


def _parts(kernel: Kernel, X: NDArray[np.floating]) -> list[_Part]:
    """The parts of the kernel whose lengthscales are searched for, from left to right."""
    spread, parts = _spread(X), []
    for part in free_parts(kernel, X.shape[1]):
        of_columns = spread[part.columns] if isinstance(part.kernel, StationaryKernel) else np.ones(len(part.columns))
        parts.append(_Part(log_lengthscales(part.kernel), isinstance(part.kernel.lengthscale, tuple), of_columns))
    return parts
