"""The lengthscales of a kernel that a search may change: those of its parts, from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ShapeError
from streamkernel.kernels.base import Composite, Fixed, Kernel
from streamkernel.kernels.formulas.formula_kernels import LengthscaleKernel
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True, eq=False)
class FreePart:
    """A part of a kernel whose lengthscale a search may change.

    Attributes
    ----------
    columns : (q,) the features that it sees.
    """

    kernel: LengthscaleKernel
    columns: Int


def free_parts(kernel: Kernel, n_features: int) -> list[FreePart]:
    """Parts of a kernel of `n_features` features whose lengthscales a search may change, from left to right."""

    def found(part: Kernel, columns: Int) -> Iterator[FreePart]:
        if isinstance(part, LengthscaleKernel):
            yield FreePart(part, columns)
        for each in _searched(part):
            yield from found(each, part.seen(columns))

    return list(found(kernel, np.arange(n_features)))


def has_free_lengthscale(kernel: Kernel) -> bool:
    """Whether a search may change a lengthscale of the kernel."""
    return bool(_kernels(kernel))


def with_free_parts(kernel: Kernel, parts: Sequence[Kernel]) -> Kernel:
    """The kernel with other kernels in place of its `free_parts`."""
    rest = iter(parts)

    def changed(part: Kernel) -> Kernel:
        if isinstance(part, LengthscaleKernel):
            return next(rest)
        if isinstance(part, Composite) and _searched(part):
            return part.with_parts([changed(each) for each in part.parts])
        return part

    return changed(kernel)


def with_lengthscales(kernel: Kernel, lengthscales: Sequence[float]) -> Kernel:
    """The kernel with one lengthscale for each of its `free_parts`."""
    pairs = zip(_kernels(kernel), lengthscales, strict=True)
    return with_free_parts(kernel, [part.with_lengthscale(value) for part, value in pairs])


def log_lengthscales(kernel: Kernel) -> Float:
    """Logarithms of the lengthscales of a kernel, (t,): one or one per feature; those of parts from left to right."""
    logs = [np.log(np.atleast_1d(np.asarray(part.lengthscale, dtype=np.float64))) for part in _kernels(kernel)]
    return np.concatenate([np.zeros(0), *logs])


def with_log_lengthscales(kernel: Kernel, values: Float) -> Kernel:
    """The kernel whose `log_lengthscales` are `values` (t,)."""
    size = len(log_lengthscales(kernel))
    if len(values) != size:
        raise ShapeError(f"{len(values)} lengthscales for a kernel that has {size}; give one for each")
    parts, start = [], 0
    for part in _kernels(kernel):
        count = len(log_lengthscales(part))
        lengths = np.exp(values[start : start + count]).tolist()
        parts.append(part.with_lengthscale(tuple(lengths) if isinstance(part.lengthscale, tuple) else lengths[0]))
        start += count
    return with_free_parts(kernel, parts)


def per_feature(kernel: Kernel, n_features: int) -> Kernel:
    """The same function, with one lengthscale per feature in each part that has one for all."""
    found = []
    for part in free_parts(kernel, n_features):
        shared = not isinstance(part.kernel.lengthscale, tuple)
        lengths = (part.kernel.lengthscale,) * len(part.columns)
        found.append(part.kernel.with_lengthscale(lengths) if shared else part.kernel)
    return with_free_parts(kernel, found)


def _kernels(kernel: Kernel) -> list[LengthscaleKernel]:
    """The kernels of `free_parts`."""
    if isinstance(kernel, LengthscaleKernel):
        return [kernel]
    return [found for part in _searched(kernel) for found in _kernels(part)]


def _searched(kernel: Kernel) -> tuple[Kernel, ...]:
    """Parts of a kernel that a search looks into."""
    return kernel.parts if isinstance(kernel, Composite) and not isinstance(kernel, Fixed) else ()
