"""Gradients of weighted sums of kernel values by the logarithms of the lengthscales.

For rows X (a, p), points Z (n, p) and weights W (a, n), ``f = sum_ij W_ij k(x_i, z_j)``. The slope of a kernel of
``s = sum_k (x_k - z_k)^2 / l_k^2`` is again a formula of the loops, times a constant::

    dk / d log l_k = S(s) (x_k - z_k)^2 / l_k^2,    S = -2 dk/ds

    kernel                              S
    exp(-s / 2)                         exp(-s / 2)
    (1 + r) exp(-r),   r^2 = 3 s        3 exp(-r)
    (1 + r + r^2/3) exp(-r), r^2 = 5 s  (5 / 3) (1 + r) exp(-r)
    (1 + s / 2c)^-c                     (1 + s / 2c)^-(c + 1)
    exp(-r),           r^2 = s          exp(-r) / r, no contribution where r = 0

The Laplacian has ``k |x_k - z_k| / l_k``, and the Hamming kernel ``k [x_k != z_k] / l_k``. A kernel of mapped rows has
the gradient of its inner kernel.

The same compiled loops therefore fill it. With ``P = W o S`` (elementwise) the sum over pairs is a matrix product::

    df / d log l_k = ( sum_i P_i. x_ik^2 + sum_j P_.j z_jk^2 - 2 sum_i x_ik (P Z)_ik ) / l_k^2

It is computed on centred rows, so that an offset loses no digits. ``k(x, x)`` does not depend on a lengthscale of these
kernels: the gradient of a diagonal is 0. Rasmussen & Williams 2006, section 5.4.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ShapeError
from streamkernel.kernels.base import Fixed, Kernel, Pair, Product, Scaled, Sum
from streamkernel.kernels.formulas.formula_kernels import StationaryKernel
from streamkernel.kernels.formulas.hamming import Hamming
from streamkernel.kernels.function_kernel import FunctionKernel
from streamkernel.kernels.gradients._slopes import CHUNK_ROWS, Slopes, chunks, formula_kernel
from streamkernel.kernels.lengthscales import log_lengthscales
from streamkernel.kernels.loops.formula import POWER, Formula, Metric
from streamkernel.kernels.parameters import checked_rows
from streamkernel.kernels.rows.mapped import MappedKernel
from streamkernel.kernels.rows.precomputed import Precomputed
from streamkernel.kernels.rows.sparse import PreparedSparse, SparseKernel
from streamkernel.type_aliases import Float

STRIP = 4096  # features that are centred at once: a full centred copy of a wide table would need too much memory


class LengthscaleGradient(ABC):
    """``d / d log l  sum_ij W_ij k(x_i, z_j)`` for fixed points Z (n, p). Threads may share one."""

    size: int
    """Number of lengthscales t."""

    def __init__(self, points: Float) -> None:
        self.points = points

    def __call__(self, X: NDArray[np.floating], W: Float) -> Float:
        """The gradient, (t,) float64, for rows X (a, p) and weights W (a, n)."""
        rows = checked_rows(X, "X", self.points.shape[1]).astype(np.float64, copy=False)
        if W.shape != (len(rows), len(self.points)):
            raise ShapeError(f"W has shape {W.shape}; give one weight for each of {(len(rows), len(self.points))}")
        return self.of_rows(rows, W)

    @abstractmethod
    def of_rows(self, X: Float, W: Float) -> Float:
        """`__call__` without checks."""


def prepare_gradient(kernel: Kernel, Z: NDArray[np.floating]) -> LengthscaleGradient:
    """The gradient of a kernel with points Z (n, p), packed once for many blocks of rows.

    Raises
    ------
    ParameterError
        The kernel is not one of this package, so that its slope is not known.
    """
    points = checked_rows(Z, "Z").astype(np.float64, copy=False)
    kernel.check_features(points.shape[1])
    # A function has no lengthscale that a search could change.
    if isinstance(kernel, Fixed | Precomputed | FunctionKernel):
        return _NoGradient(points)
    if isinstance(kernel, Scaled):
        return _ScaledGradient(kernel, points)
    if isinstance(kernel, Sum):
        return _SumGradient(kernel, points)
    if isinstance(kernel, Product):
        return _ProductGradient(kernel, points)
    if isinstance(kernel, SparseKernel):
        return _SparseGradient(kernel, points) if isinstance(kernel.part, StationaryKernel) else _NoGradient(points)
    if isinstance(kernel, MappedKernel):
        return _MappedGradient(kernel, points)
    known = formula_kernel(kernel, "its lengthscale")
    if isinstance(known, Hamming):
        return _HammingGradient(known, points)
    if not isinstance(known, StationaryKernel):
        return _NoGradient(points)
    absolute = known.formula(points.shape[1]).metric == Metric.ABSOLUTE
    return _AbsoluteGradient(known, points) if absolute else _SquaredGradient(known, points)


def lengthscale_gradient(kernel: Kernel, X: NDArray[np.floating], Z: NDArray[np.floating], W: Float) -> Float:
    """``d / d log l  sum_ij W_ij k(x_i, z_j)``, (t,); t is 1, or p, or the sum over the parts of the kernel."""
    return prepare_gradient(kernel, Z)(X, W)


class _NoGradient(LengthscaleGradient):
    """Gradient of a kernel without lengthscales: empty."""

    size = 0

    def of_rows(self, X: Float, W: Float) -> Float:
        return np.zeros(0)


class _StationaryGradient(LengthscaleGradient):
    """Gradient of one formula; the loops fill the block of the slope, a few rows at a time."""

    def __init__(self, kernel: StationaryKernel | Hamming, points: Float) -> None:
        super().__init__(points)
        self.shared = not isinstance(kernel.lengthscale, tuple)
        self.size = 1 if self.shared else points.shape[1]
        self.slopes = Slopes(kernel, points)

    def strips(self, X: Float) -> Iterator[tuple[slice, Float, Float]]:
        """Strips of features: their positions, and the rows and points in these features, centred and scaled."""
        for start in range(0, X.shape[1], STRIP):
            s = slice(start, start + STRIP)
            centre, weights = self.slopes.centre[s], self.slopes.weights[s]
            yield s, (X[:, s] - centre) * weights, (self.points[:, s] - centre) * weights

    def of_rows(self, X: Float, W: Float) -> Float:
        by_feature = np.zeros(X.shape[1])
        scratch = np.empty((min(CHUNK_ROWS, len(X)), len(self.points)))
        for rows in chunks(len(X)):
            part = scratch[: rows.stop - rows.start]
            if part.size:
                by_feature += self.contracted(X[rows], W[rows], part)
        return by_feature.sum(keepdims=True) if self.shared else by_feature

    @abstractmethod
    def contracted(self, X: Float, W: Float, scratch: Float) -> Float:
        """Gradient of some rows, per feature, (p,)."""


class _SquaredGradient(_StationaryGradient):
    """Gradient for squared differences, by a matrix product."""

    def contracted(self, X: Float, W: Float, scratch: Float) -> Float:
        P = scratch
        self.slopes.fill(X, P)
        P *= W
        of_rows, of_points = P.sum(axis=1), P.sum(axis=0)
        total = np.empty(X.shape[1])
        for s, rows, Z in self.strips(X):
            squares = of_rows @ rows**2 + of_points @ Z**2
            total[s] = self.slopes.constant * (squares - 2.0 * np.einsum("ik,ik->k", rows, P @ Z))
        return total


class _AbsoluteGradient(_StationaryGradient):
    """Gradient for absolute differences: ``dk / d log l_k = k |x_k - z_k| / l_k``, one feature at a time."""

    def contracted(self, X: Float, W: Float, scratch: Float) -> Float:
        self.slopes.fill(X, scratch)
        scratch *= W
        difference = np.empty_like(scratch)
        total = np.empty(X.shape[1])
        for s, rows, Z in self.strips(X):
            for k in range(rows.shape[1]):
                np.subtract.outer(rows[:, k], Z[:, k], out=difference)
                np.abs(difference, out=difference)
                total[s.start + k] = np.vdot(scratch, difference)
        return self.slopes.constant * total


class _HammingGradient(_StationaryGradient):
    """Gradient for columns that differ: ``dk / d log l_k = k [x_k != z_k] / l_k``, one feature at a time."""

    def contracted(self, X: Float, W: Float, scratch: Float) -> Float:
        self.slopes.fill(X, scratch)
        scratch *= W
        pairs = zip(X.T, self.points.T, strict=True)
        # Not of centred rows, as above: rounding could make two codes equal.
        sums = [np.sum(scratch, where=np.not_equal.outer(x, z)) for x, z in pairs]
        return self.slopes.constant * self.slopes.weights * np.array(sums)


class _MappedGradient(LengthscaleGradient):
    """Gradient of a kernel of mapped rows: that of its inner kernel.

    A lengthscale of the kernel may be that of several mapped columns, which then come one after the other, in turns.
    """

    def __init__(self, kernel: MappedKernel, points: Float) -> None:
        super().__init__(points)
        self.mapped, self.size = kernel.mapped, len(log_lengthscales(kernel))
        self.inner = prepare_gradient(kernel.inner, kernel.mapped(points))

    def of_rows(self, X: Float, W: Float) -> Float:
        total = np.zeros(self.inner.size)
        for rows in chunks(len(X)):
            total += self.inner.of_rows(self.mapped(X[rows]), W[rows])
        summed: Float = total.reshape(-1, self.size).sum(axis=0) if self.size else total
        return summed


class _SparseGradient(LengthscaleGradient):
    """Gradient for sparse rows, whose one lengthscale makes the sum over features that of the distance itself:
    ``dk / d log l = S(s) s``, without a number for each feature.
    """

    size = 1

    def __init__(self, kernel: SparseKernel, points: Float) -> None:
        super().__init__(points)
        assert isinstance(kernel.part, StationaryKernel)
        formula = kernel.part.formula(kernel.n_columns)
        slope, constant = kernel.part.slope(formula)
        weight = float(formula.weights[0])
        self.factor = constant * (weight if formula.metric == Metric.ABSOLUTE else weight * weight)
        self.slopes = PreparedSparse(kernel, slope, points)
        self.distances = PreparedSparse(kernel, Formula(formula.metric, POWER, np.ones(kernel.n_columns)), points)

    def of_rows(self, X: Float, W: Float) -> Float:
        total = np.zeros(1)
        for rows in chunks(len(X)):
            part = self.slopes.block(X[rows]) * self.distances.block(X[rows])
            total += self.factor * np.vdot(part, W[rows])
        return total


class _ScaledGradient(LengthscaleGradient):
    """Gradient of ``factor part``."""

    def __init__(self, kernel: Scaled, points: Float) -> None:
        super().__init__(points)
        self.part, self.factor = prepare_gradient(kernel.part, points), kernel.factor
        self.size = self.part.size

    def of_rows(self, X: Float, W: Float) -> Float:
        return self.factor * self.part.of_rows(X, W)


class _PairGradient(LengthscaleGradient):
    """Gradient of two kernels."""

    def __init__(self, kernel: Pair, points: Float) -> None:
        super().__init__(points)
        self.left, self.right = (prepare_gradient(part, points) for part in kernel.parts)
        self.size = self.left.size + self.right.size


class _SumGradient(_PairGradient):
    """Gradient of ``left + right``: both parts with the same weights."""

    def of_rows(self, X: Float, W: Float) -> Float:
        return np.concatenate([self.left.of_rows(X, W), self.right.of_rows(X, W)])


class _ProductGradient(_PairGradient):
    """Gradient of ``left right``: the weights of each part are multiplied by the values of the other."""

    def __init__(self, kernel: Product, points: Float) -> None:
        super().__init__(kernel, points)
        self.values = kernel.left.prepare(points), kernel.right.prepare(points)

    def of_rows(self, X: Float, W: Float) -> Float:
        total = np.zeros(self.size)
        for rows in chunks(len(X)):
            left, right = (values.block(X[rows]) for values in self.values)
            part = [self.left.of_rows(X[rows], right * W[rows]), self.right.of_rows(X[rows], left * W[rows])]
            total += np.concatenate(part)
        return total
