"""A kernel of one formula with its basis points packed, to fill blocks of kernel values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from streamkernel.kernels.base import Kernel, PreparedKernel, with_gaps
from streamkernel.kernels.loops._loops import GROUP
from streamkernel.kernels.loops._tile import BLOCK, ROWS, columns
from streamkernel.kernels.loops.compiled import FILL, norms, writer_of
from streamkernel.kernels.loops.formula import Formula, Metric
from streamkernel.kernels.loops.functions import LOG2E, LOG2E_TAIL
from streamkernel.type_aliases import AnyArray, AnyDType, Float


def packed_bytes(n: int, p: int, formulas: int = 1) -> int:
    """Bytes of n points of p features in a prepared kernel: the points, and two copies in panels per formula.

    Each formula also has its weights and four vectors more of a number a feature, which a basis of few points notices.
    """
    width = columns(np.dtype(np.float64))
    return 8 * p * (n + formulas * (2 * width * -(-n // width) + 5))


def packing_bytes(p: int) -> int:
    """Further bytes during packing: a panel as points, before and after it is moved, or its rows for their norms."""
    width = columns(np.dtype(np.float64))
    return 8 * p * (ROWS * -(-width // ROWS) + width)


def workspace_bytes(p: int) -> int:
    """Bytes of a thread that fills blocks: a group of rows, scaled and centred."""
    return 8 * p * 2 * GROUP


def filling_bytes(p: int) -> int:
    """Further bytes of one thread that packs points, and then fills blocks.

    Packing needs more than filling where the processor has wide vectors, and less elsewhere.
    """
    return max(packing_bytes(p), workspace_bytes(p))


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


def panelled(points: AnyArray, prepared: Callable[[AnyArray], AnyArray]) -> AnyArray:
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

    def __init__(self, formula: Formula, points: AnyArray, dtype: AnyDType) -> None:
        p, factor, metric = points.shape[1], formula.factor, formula.metric
        exponents = np.zeros(p)
        if metric in (Metric.SQUARED, Metric.ABSOLUTE):
            # Powers of two move from the weights to the rows. This is exact, and distances do not over- or underflow.
            limit = 60 if dtype == np.float32 else 400
            exponents = np.clip(np.round(np.log2(formula.weights)), -limit, limit)
        scale = np.exp2(exponents)
        rest = formula.weights / scale
        equal = p == 0 or bool(np.all(formula.weights == formula.weights[0]))
        if metric == Metric.SQUARED:
            rest = rest**2
            if equal and p:
                factor, rest, metric = factor * float(rest[0]), np.ones(p), Metric.EQUAL_SQUARED
        self.weights, self.scale = rest.astype(dtype), scale.astype(dtype)
        self.metric, self.transform = metric, formula.transform
        self.constants = constants(formula, factor, dtype)
        self.degree = int(formula.shape) if formula.transform.power else 1
        # The compiled function has one signature: arrays of no entries stand for what a formula does not need.
        nothing = [np.zeros((0,) * d, t) for d, t in [(1, float), (1, float), (3, dtype), (2, dtype), (1, dtype)]]
        self.centred: tuple[AnyArray, ...] = tuple(nothing)
        self.limit = dtype.type(-1.0)
        if metric.is_angle:
            self.panels, *angular = directions(points, metric, dtype)
        else:
            self.panels = panelled(points, lambda some: some.astype(dtype) * self.scale)
            angular = [np.zeros((len(self.panels), self.panels.shape[2]), dtype)] * 2
        self.angular = tuple(angular)
        slope = formula.transform.slope
        if formula.metric == Metric.SQUARED and slope is not None and p >= CROSSOVER[dtype][0 if equal else 1]:
            unit = PRODUCT_ERROR * float(np.finfo(dtype).eps) / 4 * math.sqrt(min(p, BLOCK) + p / BLOCK)
            self.limit = dtype.type(min(BUDGET[dtype] / (unit * slope(formula.shape) * factor), 1e30))
            self.centred = centred(points, scale * np.sqrt(rest), dtype)


def constants(formula: Formula, factor: float, dtype: AnyDType) -> AnyArray:
    """Constants (factor, offset, high, low, cut, shape, largest) of a transform."""
    single = dtype == np.float32
    rate = formula.transform.rate(factor)
    # The rate in two parts, of twice the digits: a large exponent would lose as many of its own as it has before the
    # point. In float32 the second part is the rounding error; in float64 log2(e) itself needs the digits.
    high = dtype.type(-rate)
    low = dtype.type(-(rate + float(high))) if single else dtype.type(-LOG2E_TAIL * rate / LOG2E)
    # From here on the result is below the normal numbers.
    cut = np.nextafter(dtype.type((126.0 if single else 1022.0) / rate), dtype.type(np.inf))
    largest = formula.transform.largest[0 if single else 1]
    return np.array([factor, formula.offset, high, low, cut, formula.shape, largest], dtype)


def squared_norms(rows: AnyArray) -> AnyArray:
    """|x|^2 of each row, with the bits that the loops compute for an equal row."""
    padded = np.zeros((ROWS * -(-len(rows) // ROWS), rows.shape[1]), rows.dtype)
    padded[: len(rows)] = rows
    squares = np.zeros(len(padded), rows.dtype)
    norms(padded, squares)
    return squares[: len(rows)]


def centred(points: AnyArray, scale: Float, dtype: AnyDType) -> tuple[AnyArray, ...]:
    """(centre, scale, panels, squared norms, largest norm of each panel) for the inner products of centred rows."""
    centre = points.mean(axis=0, dtype=np.float64) if len(points) else np.zeros(points.shape[1])

    def moved(some: AnyArray) -> AnyArray:
        return np.asarray(((some - centre) * scale).astype(dtype, copy=False))

    panels = panelled(points, moved)
    per_panel = np.zeros((len(panels), panels.shape[2]), dtype)
    for squares, panel in zip(per_panel, panels, strict=True):
        squares[:] = squared_norms(panel.T)
    return centre, scale, panels, per_panel, per_panel.max(axis=1)


def directions(points: AnyArray, metric: Metric, dtype: AnyDType) -> tuple[AnyArray, ...]:
    """(panels, squared norms, norms) of points for an angle, by the operations of `_loops.directions`."""
    width = columns(dtype)
    squares, norms = np.zeros((2, -(-len(points) // width), width), dtype)

    def divided(some: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        rows = some.astype(dtype)
        largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
        rows /= np.where(largest > 0, largest, 1)[:, None]
        lengths = squared_norms(rows)
        roots = np.sqrt(lengths)
        if metric == Metric.HALF_ANGLE:
            rows /= np.where(roots > 0, roots, 1)[:, None]
        return rows, lengths, largest * roots

    for k in range(len(squares)):
        _, lengths, of_points = divided(points[k * width : (k + 1) * width])
        squares[k, : len(lengths)], norms[k, : len(lengths)] = lengths, of_points
    return panelled(points, lambda some: divided(some)[0]), squares, norms


class PreparedFormula(PreparedKernel):
    """A kernel of one formula, with its points packed once for each dtype of X."""

    def __init__(self, kernel: Kernel, formula: Formula, points: AnyArray) -> None:
        super().__init__(kernel, points)
        self.formula = formula
        self.packed: dict[AnyDType, Packed] = {}
        self.pack(points.dtype)

    def pack(self, dtype: AnyDType) -> Packed:
        # Two threads may both pack. Their results are equal, and one of them is stored.
        if dtype not in self.packed:
            self.packed[dtype] = Packed(self.formula, self.points, dtype)
        return self.packed[dtype]

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        packed, view = self.pack(X.dtype), X.view()
        view.flags.writeable = False  # one compiled version for rows that may and may not be written
        write = writer_of(packed.transform).of(X.dtype).address
        FILL.of(X.dtype)(
            view, int(packed.metric), write, packed.constants, packed.degree, packed.scale, packed.weights,
            packed.panels, packed.limit, packed.centred, packed.angular, out.shape[1], with_gaps(out),
        )  # fmt: skip
