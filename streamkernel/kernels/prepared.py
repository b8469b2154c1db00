"""A kernel prepared with its basis points, to fill blocks of kernel values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ShapeError
from streamkernel.kernels._compiled import compiled
from streamkernel.kernels._loops import GROUP
from streamkernel.kernels._tile import BLOCK, ROWS, columns
from streamkernel.kernels.base import Formula, FormulaKernel, Kernel, Metric, Transform
from streamkernel.kernels.parameters import checked_rows

__all__ = ["PreparedFormula", "PreparedKernel", "packed_bytes", "packing_bytes", "workspace_bytes"]


# log2(e) = LOG2E + LOG2E_TAIL, more digits than one float64 has.
LOG2E = 1.4426950408889634
LOG2E_TAIL = 2.0355273740931033e-17


class PreparedKernel(ABC):
    """``k(., Z)`` for fixed Z (n, p). Threads may share one object. Only the kernel and Z are pickled."""

    def __init__(self, kernel: Kernel, points: NDArray[Any]) -> None:
        self.kernel = kernel
        self.points = points

    def __reduce__(self) -> tuple[Any, ...]:
        return prepare, (self.kernel, self.points)

    def block(self, X: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """``K_bn = k(X_b, Z)``, (b, n) in the dtype of X (float32 or float64).

        Parameters
        ----------
        X : (b, p) rows.
        out : (b, n), optional
            C-contiguous array with the dtype of X, which is filled and returned.
        """
        rows = checked_rows(X, "X", self.points.shape[1])
        shape = (len(rows), len(self.points))
        if out is None:
            out = np.empty(shape, rows.dtype)
        elif out.shape != shape or out.dtype != rows.dtype or not out.flags.c_contiguous:
            raise ShapeError(f"out is {out.shape} {out.dtype}; give a C-contiguous {shape} {rows.dtype} array")
        if out.size:
            self.fill(rows, out)
        return out

    @abstractmethod
    def fill(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """`block` without checks."""


def prepare(kernel: Kernel, points: NDArray[Any]) -> PreparedKernel:
    return kernel.prepare(points)


def packed_bytes(n: int, p: int, formulas: int = 1) -> int:
    """Bytes of n points of p features in a prepared kernel: the points, and two copies in panels per formula."""
    width = columns(np.dtype(np.float64))
    return 8 * p * (n + 2 * formulas * width * -(-n // width))


def packing_bytes(p: int) -> int:
    """What packing takes beside: a panel as points, before and after it is moved, or its rows for their norms."""
    width = columns(np.dtype(np.float64))
    return 8 * p * (ROWS * -(-width // ROWS) + width)


def workspace_bytes(p: int) -> int:
    """Bytes of a thread that fills blocks: a group of rows, scaled and centred."""
    return 8 * p * 2 * GROUP


# The measured error of |x|^2 + |z|^2 - 2 x.z is at most 1.9 times (p = 8; 1.3 times from p = 20 on)
# eps / 4 (|x|^2 + |z|^2) sqrt(min(p, BLOCK) + p / BLOCK), for p up to 784 and points in clusters.
PRODUCT_ERROR = 1.7

# Largest error of a kernel value from inner products; the documented accuracy is 1e-6 and 1e-14.
BUDGET = {np.dtype(np.float32): 7e-7, np.dtype(np.float64): 7e-15}

# Number of features from which on inner products are faster than differences (equal weights, unequal weights), as
# measured by `scripts/benchmarks/kernels.py` with AVX-512. For equal weights the times cross at 8 to 10, but with few
# features more rows exceed `limit` and need both. Inner products use the tiles of `_tile.py`: np.dot and a fused pass
# over its result took 0.98 to 1.15 of their time for p from 20 to 784, with the best chunks of 64 to 2048 rows, and the
# bits of np.dot change with the number of rows.
CROSSOVER = {np.dtype(np.float32): (12, 4), np.dtype(np.float64): (12, 4)}


def panelled(points: NDArray[Any], prepared: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """Points (n, p), mapped by `prepared`, as (panels, p, columns), padded with zeros, in the dtype of the map.

    It maps one panel at a time, because a second copy of all points of wide rows may not fit in memory.
    """
    n, p = points.shape
    dtype = prepared(points[:0]).dtype
    width = columns(dtype)
    shape = (-(-n // width), p, width)
    memory = np.zeros(math.prod(shape) + 64 // dtype.itemsize, dtype)
    skipped = -memory.ctypes.data % 64 // dtype.itemsize  # a vector across two cache lines costs twice
    panels = memory[skipped : skipped + math.prod(shape)].reshape(shape)
    for k, panel in enumerate(panels):
        part = points[k * width : (k + 1) * width]
        panel[:, : len(part)] = prepared(part).T
    return panels


class Packed:
    """Basis points and constants as the loops read them, in one dtype."""

    def __init__(self, formula: Formula, points: NDArray[Any], dtype: np.dtype[Any]) -> None:
        p = points.shape[1]
        exponents = np.zeros(p)
        if formula.metric != Metric.INNER:
            # Powers of two move from the weights to the rows. This is exact, and distances do not over- or underflow.
            limit = 60 if dtype == np.float32 else 400
            exponents = np.clip(np.round(np.log2(formula.weights)), -limit, limit)
        scale = np.exp2(exponents)
        rest = formula.weights / scale
        factor, self.metric = formula.factor, int(formula.metric)
        equal = p == 0 or bool(np.all(formula.weights == formula.weights[0]))
        if self.metric == Metric.SQUARED:
            rest = rest**2
            if equal and p:
                factor, rest, self.metric = factor * float(rest[0]), np.ones(p), 3
        self.weights, self.scale = rest.astype(dtype), scale.astype(dtype)
        self.constants, self.degree = constants(formula, factor, dtype), int(formula.shape)
        self.transform = int(formula.transform)
        self.panels = panelled(points, lambda some: some.astype(dtype) * self.scale)
        self.limit = dtype.type(-1.0)
        nothing = [np.zeros((0,) * d, t) for d, t in [(1, float), (1, float), (3, dtype), (2, dtype), (1, dtype)]]
        self.centred: tuple[NDArray[Any], ...] = tuple(nothing)
        slope = SLOPES.get(formula.transform)
        if formula.metric == Metric.SQUARED and slope is not None and p >= CROSSOVER[dtype][0 if equal else 1]:
            shape = formula.shape if formula.transform == Transform.RATIONAL else 1.0
            unit = PRODUCT_ERROR * float(np.finfo(dtype).eps) / 4 * math.sqrt(min(p, BLOCK) + p / BLOCK)
            self.limit = dtype.type(min(BUDGET[dtype] / (unit * slope * shape * factor), 1e30))
            self.centred = centred(points, scale * np.sqrt(rest), dtype)

    def fill(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        view = X.view()
        view.flags.writeable = False  # one compiled version for rows that may and may not be written
        compiled.fill(
            view, self.metric, self.transform, self.constants, self.degree, self.scale, self.weights, self.panels,
            self.limit, self.centred, out,
        )  # fmt: skip


# The largest |d k / d t| of each transform, to be multiplied by the shape for RATIONAL; for MATERN12 it is infinite.
SLOPES = {Transform.EXP: 1.0, Transform.MATERN32: 0.5, Transform.MATERN52: 1 / 6, Transform.RATIONAL: 1.0}


def constants(formula: Formula, factor: float, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Constants (factor, offset, high, low, cut, shape, largest) of `_loops.write`."""
    single = dtype == np.float32
    rate = {Transform.EXP: factor * LOG2E, Transform.RATIONAL: 1.0}.get(formula.transform, LOG2E)
    high = dtype.type(-rate)
    low = dtype.type(-(rate + float(high))) if single else dtype.type(-LOG2E_TAIL * rate / LOG2E)
    # From here on the result is below the normal numbers.
    cut = np.nextafter(dtype.type((126.0 if single else 1022.0) / rate), dtype.type(np.inf))
    largest = 1e4 if single else 1e6
    shape = 1.0 / 3.0
    if formula.transform == Transform.RATIONAL:
        largest, shape = (1e38 if single else 1e308), formula.shape
    return tuple(dtype.type(v) for v in (factor, formula.offset, high, low, cut, shape, largest))


def centred(points: NDArray[Any], scale: NDArray[np.float64], dtype: np.dtype[Any]) -> tuple[NDArray[Any], ...]:
    """(centre, scale, panels, squared norms, largest norm of each panel) for the inner products of centred rows."""
    centre = points.mean(axis=0, dtype=np.float64) if len(points) else np.zeros(points.shape[1])

    def moved(some: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(((some - centre) * scale).astype(dtype, copy=False))

    panels = panelled(points, moved)
    width = panels.shape[2]
    per_panel = np.zeros((len(panels), width), dtype)
    rows = np.zeros((ROWS * -(-width // ROWS), points.shape[1]), dtype)
    squares = np.zeros(len(rows), dtype)
    for k, panel in enumerate(panels):
        rows[:width] = panel.T
        compiled.norms(rows, squares)
        per_panel[k] = squares[:width]
    return centre, scale, panels, per_panel, per_panel.max(axis=1)


class PreparedFormula(PreparedKernel):
    """A kernel of one formula, with its points packed once for each dtype of X."""

    def __init__(self, kernel: FormulaKernel, points: NDArray[Any]) -> None:
        super().__init__(kernel, points)
        self.formula = kernel.formula(points.shape[1])
        self.packed: dict[np.dtype[Any], Packed] = {}
        self.pack(points.dtype)

    def pack(self, dtype: np.dtype[Any]) -> Packed:
        # Two threads may both pack. Their results are equal, and one of them is stored.
        if dtype not in self.packed:
            self.packed[dtype] = Packed(self.formula, self.points, dtype)
        return self.packed[dtype]

    def fill(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        self.pack(X.dtype).fill(X, out)
