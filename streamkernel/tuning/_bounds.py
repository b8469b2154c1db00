"""Bounds of hyper-parameters: lengthscales relative to distances between rows, variances relative to the targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import (
    Composite,
    Kernel,
    StationaryKernel,
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
        spread = _spread(X)
        parts = _parts(kernel)
        # The root mean square distance of two rows, or ``sqrt(2 p) spread`` for each feature.
        together = np.sqrt(2.0 * np.sum(spread**2, keepdims=True))
        each = np.sqrt(2.0 * len(spread)) * spread
        typical = np.log(np.concatenate([np.zeros(0), *(each if own else together for _, own in parts)]))
        shared = np.concatenate(
            [np.zeros(0, bool), *(np.full(len(lengths), not own) for lengths, own in parts), [True, True]]
        )
        diagonal = float(kernel.diagonal(X).mean())
        unit = -np.log(diagonal) if diagonal > 0.0 else 0.0
        return cls(
            low=np.concatenate([typical - _LENGTHS, [unit - _SIGNAL, _NOISE[0]]]),
            high=np.concatenate([typical + _LENGTHS, [unit + _SIGNAL, _NOISE[1]]]),
            typical=np.concatenate([typical, [unit, 0.0]]),
            shared=shared,
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
    spread = _spread(X)
    share = np.log(spread / np.sqrt(np.mean(spread**2)))
    split = per_feature(kernel, X.shape[1])
    moved = [np.log(lengths) if own else np.log(lengths) + share for lengths, own in _parts(kernel)]
    return with_log_lengthscales(split, np.concatenate([np.zeros(0), *moved]))


def _spread(X: NDArray[np.floating]) -> Float:
    """Standard deviation of each feature; for a constant feature the root mean square of the others."""
    spread = np.asarray(X.std(axis=0, dtype=np.float64))
    moving = spread > 8.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0, initial=0.0)
    others = float(np.sqrt(np.mean(spread[moving] ** 2))) if moving.any() else 1.0
    return np.where(moving, spread, others)


def _parts(kernel: Kernel) -> list[tuple[Float, bool]]:
    """Lengthscales of each part of the kernel that has any, from left to right, and whether they are of one feature."""
    if isinstance(kernel, Composite):
        return _parts(kernel.left) + _parts(kernel.right)
    if isinstance(kernel, StationaryKernel):
        return [(np.exp(log_lengthscales(kernel)), isinstance(kernel.lengthscale, tuple))]
    return []
