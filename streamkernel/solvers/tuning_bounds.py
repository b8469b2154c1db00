"""Where hyper-parameters may go: lengthscales around the distances between rows, variances around the targets'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import Kernel, log_lengthscales, per_feature, with_log_lengthscales
from streamkernel.kernels.base import StationaryKernel
from streamkernel.kernels.composite import Composite

__all__ = ["Bounds", "spread_lengthscales"]

Float = NDArray[np.float64]

# A feature a hundred typical distances long says nothing; one of a hundredth makes all rows strangers.
_LENGTHS = np.log(100.0)
_SIGNAL = np.log(1e4)
_NOISE = np.log(1e-6), np.log(10.0)
_AROUND = np.log(10.0)


@dataclass(frozen=True)
class Bounds:
    """Of (log lengthscales, log signal, log noise), (t + 2,) each.

    Attributes
    ----------
    low, high : ends.
    typical : log of the typical distance between rows along what each lengthscale measures.
    shared : (t + 2,) whether it is a lengthscale of several features together.
    unit : log of the signal variance at which the prior variance is 1.
    """

    low: Float
    high: Float
    typical: Float
    shared: NDArray[np.bool_]
    unit: float

    @classmethod
    def of(cls, kernel: Kernel, X: NDArray[np.floating]) -> Bounds:
        """Relative to rows (a, p) and to targets of variance 1."""
        spread = _spread(X)
        typical = np.log(np.concatenate([np.zeros(0), *_typical(kernel, spread)]))
        shared = np.concatenate([np.zeros(0, bool), *_shared(kernel), [True, True]])
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
        """A factor of ten either way of where a sample has led; noise not below what is allowed anywhere."""
        low = values - _AROUND
        low[-1] = max(low[-1], min(values[-1], _NOISE[0]))
        return cls(low, values + _AROUND, values, np.ones(len(values), bool), float(values[-2]))

    def called_back(self, values: Float, felt: float) -> Float:
        """`values` with the lengthscales of single features at most `felt` typical distances long."""
        return np.where(self.shared, values, np.minimum(values, self.typical + np.log(felt)))


def spread_lengthscales(kernel: Kernel, X: NDArray[np.floating]) -> Kernel:
    """A lengthscale for each feature, in proportion to its spread, where the kernel has one for all."""
    spread = _spread(X)
    share = np.log(spread / np.sqrt(np.mean(spread**2)))
    split = per_feature(kernel, X.shape[1])
    parts = zip(_own_lengthscales(kernel), _per_feature(kernel), strict=True)
    moved = [np.log(lengths) if own else np.log(lengths) + share for lengths, own in parts]
    return with_log_lengthscales(split, np.concatenate([np.zeros(0), *moved]))


def _spread(X: NDArray[np.floating]) -> Float:
    """Deviation of each feature; that of the others together where it is constant."""
    spread = np.asarray(X.std(axis=0, dtype=np.float64))
    moving = spread > 8.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0, initial=0.0)
    others = float(np.sqrt(np.mean(spread[moving] ** 2))) if moving.any() else 1.0
    return np.where(moving, spread, others)


def _own_lengthscales(kernel: Kernel) -> list[Float]:
    """Of each part that has any, from left to right."""
    if isinstance(kernel, Composite):
        return _own_lengthscales(kernel.left) + _own_lengthscales(kernel.right)
    return [np.exp(log_lengthscales(kernel))] if isinstance(kernel, StationaryKernel) else []


def _per_feature(kernel: Kernel) -> list[bool]:
    if isinstance(kernel, Composite):
        return _per_feature(kernel.left) + _per_feature(kernel.right)
    return [isinstance(kernel.lengthscale, tuple)] if isinstance(kernel, StationaryKernel) else []


def _typical(kernel: Kernel, spread: Float) -> list[Float]:
    """Root mean square distance of two rows, or of each feature its share of it: ``sqrt(2 p) spread``."""
    together = np.sqrt(2.0 * np.sum(spread**2, keepdims=True))
    each = np.sqrt(2.0 * len(spread)) * spread
    return [each if own else together for own in _per_feature(kernel)]


def _shared(kernel: Kernel) -> list[NDArray[np.bool_]]:
    sizes = [len(lengths) for lengths in _own_lengthscales(kernel)]
    return [np.full(size, not own) for size, own in zip(sizes, _per_feature(kernel), strict=True)]
