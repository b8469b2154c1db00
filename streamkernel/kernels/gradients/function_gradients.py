"""Gradients by x of functions ``f_o(x) = sum_j a_jo k(x, z_j)``, for rows X (b, p), points Z (n, p) and a (n, d).

The gradient of every kernel of this package but the Laplacian is a combination of the row and the point::

    dk(x, z) / dx = alpha z - beta x        so that        grad f_o(x) = sum_j alpha_j a_jo z_j - x sum_j beta_j a_jo

A kernel of ``s = sum_k (x_k - z_k)^2 / l_k^2`` has ``alpha = beta = S / l_k^2`` in the units of its metric, with the
slope ``S = -2 dk/ds`` that also gives the gradient by a lengthscale (`gradients`). With ``P = S(X, Z)`` (c, n), for
some rows c at a time, the gradients of all functions are one product::

    [P (a_o o Z)]_o  -  (P a)_o o X,        a_o o Z: the points times their coefficients, side by side, (n, d p)

It is computed on centred rows, so that an offset loses no digits. The Laplacian has
``dk / dx_k = -k sign(x_k - z_k) / l_k``. Where a kernel has a kink, at equal coordinates (Laplacian) or equal rows
(Matern 1/2), the gradient is the mean of those on both sides: 0.

The gradient of a sum of kernels is the sum of gradients; of a product ``dk = right dleft + left dright``; of a multiple
the same multiple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ShapeError
from streamkernel.kernels.base import Composite, Fixed, Kernel, Product, Scaled, Sum
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, StationaryKernel
from streamkernel.kernels.gradients._slopes import CHUNK_ROWS, Slopes, chunks, formula_kernel
from streamkernel.kernels.loops.compiled import signed
from streamkernel.kernels.loops.formula import Metric
from streamkernel.kernels.parameters import checked_rows
from streamkernel.kernels.rows.mapped import MappedKernel
from streamkernel.type_aliases import Float

# Bytes of the right factor (n, g p), and of the gradients (c, g p), of the g functions that are computed together. One
# product of all functions is fastest; this bounds its memory. From here on the right factor is far larger than a
# cache, and building it anew for each chunk of rows costs some hundredths of its product.
PIECE_BYTES = 2**24

# Rows whose slopes stay in the second-level cache beside a second array of their size: measured for n = 400, 10
# functions took .6 of the time, and one function 1.05 of it.
SIGNED_ROWS = 128


def functions_at_once(n: int, p: int, d: int) -> int:
    """Number g of functions whose gradients are computed by one product."""
    return max(1, min(d, PIECE_BYTES // (8 * max(1, p) * max(n, CHUNK_ROWS))))


def function_gradient_bytes(kernel: Kernel, rows: int, n: int, p: int, d: int) -> int:
    """Bytes that the gradients of d functions on n points need for `rows` rows of p features, beside packed points."""
    c, g = min(rows, CHUNK_ROWS), functions_at_once(n, p, d)
    rights = p * (1 + kernel.formulas * g)  # the points as they are moved, and times coefficients
    return 8 * (n * (rights + 2 * g) + c * (_pair_arrays(kernel, p) * n + 2 * g * p + 3 * p + 2 * g))


def _pair_arrays(kernel: Kernel, p: int) -> int:
    """Number of (c, n) arrays in memory during the gradients of a chunk of rows."""
    if isinstance(kernel, Composite) and not isinstance(kernel, MappedKernel):
        parts = sum(_pair_arrays(part, p) for part in kernel.parts)
        return parts + (2 if isinstance(kernel, Product) else 0)  # the values of both parts
    if isinstance(kernel, MappedKernel):
        return _pair_arrays(kernel.inner, p)
    metric = formula_kernel(kernel, "a row").formula(p).metric
    if metric.is_angle:
        return 4  # alpha, beta, inner products and values
    return 2 if metric in (Metric.ABSOLUTE, Metric.INNER) else 1  # slopes, and a copy of them as it is computed


class FunctionGradient:
    """``grad_x sum_j a_jo k(x, z_j)`` for fixed points Z (n, p) and coefficients a (n, d). Threads may share one."""

    def __init__(self, kernel: Kernel, points: Float, coefficients: Float) -> None:
        self.points, self.coefficients = points, coefficients
        self._terms = _terms(kernel, points)

    def __call__(self, X: NDArray[np.floating]) -> Float:
        """The gradients of all functions at rows X (b, p), (b, d, p) float64."""
        rows = checked_rows(X, "X", self.points.shape[1])
        out = np.zeros((len(rows), self.coefficients.shape[1], rows.shape[1]))
        for some, functions, gradients in self.pieces(rows):
            out[some, functions] = gradients
        return out

    def pieces(self, X: NDArray[np.floating]) -> Iterator[tuple[slice, slice, Float]]:
        """Gradients of some rows and some functions at a time, so that they need little memory.

        Yields
        ------
        rows, functions : slices
        gradients : (c, g, p) float64, C-contiguous
            The next piece is written in the same memory; the caller may overwrite it.
        """
        (n, p), d = self.points.shape, self.coefficients.shape[1]
        g = functions_at_once(n, p, d)
        groups = [slice(first, min(first + g, d)) for first in range(0, d, g)]
        rights: dict[int, list[Float]] = {}
        memory = np.empty(min(CHUNK_ROWS, len(X)) * g * p)
        for rows in chunks(len(X)):
            # The loops take contiguous rows only.
            some = np.ascontiguousarray(X[rows], dtype=np.float64)
            pairs = self._terms.pairs(some, None)
            for functions in groups:
                a = np.ascontiguousarray(self.coefficients[:, functions])
                if functions.start not in rights:
                    rights.clear()  # before the next ones need memory
                    rights[functions.start] = [term.right(a) for term in self._terms.leaves]
                gradients = memory[: len(some) * a.shape[1] * p].reshape(len(some), a.shape[1], p)
                self._fill(some, pairs, a, rights[functions.start], gradients)
                yield rows, functions, gradients
            del pairs  # before those of the next rows need memory

    def _fill(self, X: Float, pairs: list[Pairs], a: Float, rights: list[Float], out: Float) -> None:
        out.fill(0.0)
        for term, pair, right in zip(self._terms.leaves, pairs, rights, strict=True):
            term.add(X, pair, a, right, out)


def prepare_function_gradient(kernel: Kernel, Z: NDArray[np.floating], coefficients: Float) -> FunctionGradient:
    """The gradient of functions with points Z (n, p) and coefficients (n, d), packed once for many blocks of rows.

    Raises
    ------
    ParameterError
        The kernel is not one of this package, so that its slope is not known, or it has no gradient.
    ShapeError
        There is not one row of coefficients for each point.
    """
    points = checked_rows(Z, "Z").astype(np.float64, copy=False)
    kernel.check_features(points.shape[1])
    if coefficients.ndim != 2 or len(coefficients) != len(points):
        raise ShapeError(
            f"coefficients have shape {coefficients.shape}; give one row for each of {len(points)} points, one column "
            "for each function"
        )
    return FunctionGradient(kernel, points, np.asarray(coefficients, dtype=np.float64))


class _Terms(ABC):
    """A kernel as terms of its gradient, one for each formula."""

    leaves: list[_Term]

    @abstractmethod
    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        """What each term knows of all pairs of rows X (c, p) and points, times the `factor` (c, n)."""


class _Term(_Terms):
    """The gradient of a kernel of one formula."""

    def __init__(self) -> None:
        self.leaves = [self]

    @abstractmethod
    def slopes(self, X: Float) -> Pairs:
        """(alpha, beta) of all pairs of rows and points, (c, n) each: the same array twice if they are equal."""

    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        alpha, beta = self.slopes(X)
        if factor is not None:
            alpha *= factor
            if beta is not None and beta is not alpha:
                beta *= factor
        return [(alpha, beta)]

    @abstractmethod
    def right(self, a: Float) -> Float:
        """The right factor of functions with coefficients a (n, g), for all rows."""

    @abstractmethod
    def add(self, X: Float, pairs: Pairs, a: Float, right: Float, out: Float) -> None:
        """Add the gradients at rows X (c, p) to `out` (c, g, p)."""


class _CombinedTerm(_Term):
    """``alpha z - beta x``, in coordinates of the term."""

    def __init__(self, points: Float) -> None:
        super().__init__()
        self.points = points

    def moved(self, rows: Float) -> Float:
        """The rows in the coordinates of the term, (c, p)."""
        return rows

    def right(self, a: Float) -> Float:
        n, p = self.points.shape
        return (self.moved(self.points)[:, None, :] * a[:, :, None]).reshape(n, a.shape[1] * p)

    def add(self, X: Float, pairs: Pairs, a: Float, right: Float, out: Float) -> None:
        alpha, beta = pairs
        out += (alpha @ right).reshape(out.shape)
        if beta is not None:
            out -= (beta @ a)[:, :, None] * self.moved(X)[:, None, :]


class _SquaredTerm(_CombinedTerm):
    """Gradient for squared differences: alpha and beta are the slopes, on centred rows."""

    def __init__(self, kernel: StationaryKernel, points: Float) -> None:
        super().__init__(points)
        self._slopes = Slopes(kernel, points)
        self._scale = self._slopes.constant * self._slopes.weights**2

    def moved(self, rows: Float) -> Float:
        centred: Float = rows - self._slopes.centre
        centred *= self._scale
        return centred

    def slopes(self, X: Float) -> Pairs:
        P = np.empty((len(X), len(self.points)))
        self._slopes.fill(X, P)
        return P, P


class _InnerTerm(_CombinedTerm):
    """Gradient for inner products and angles: the kernel knows its alpha and beta."""

    def __init__(self, kernel: FormulaKernel, points: Float) -> None:
        super().__init__(points)
        self._row_slopes = kernel.row_slopes(points)

    def slopes(self, X: Float) -> Pairs:
        return self._row_slopes(X)


class _AbsoluteTerm(_Term):
    """Gradient for absolute differences: ``-S sign(x_k - z_k) / l_k``, one feature at a time."""

    def __init__(self, kernel: StationaryKernel, points: Float) -> None:
        super().__init__()
        self.points = points
        # The memory of a second set of panels, which only squared differences have.
        self._features = np.ascontiguousarray(points.T)
        self._slopes = Slopes(kernel, points)

    def slopes(self, X: Float) -> Pairs:
        P = np.empty((len(X), len(self.points)))
        self._slopes.fill(X, P)
        return P, None

    def right(self, a: Float) -> Float:
        return -self._slopes.constant * a

    def add(self, X: Float, pairs: Pairs, a: Float, right: Float, out: Float) -> None:
        P, _ = pairs
        columns = np.ascontiguousarray(X.T)
        scratch = np.empty((min(SIGNED_ROWS, len(P)), P.shape[1]))
        for start in range(0, len(P), SIGNED_ROWS):
            rows = slice(start, min(start + SIGNED_ROWS, len(P)))
            values = scratch[: rows.stop - start]
            for k, weight in enumerate(self._slopes.weights):
                # One pass: difference, sign and product in NumPy took seven times as long.
                signed(P[rows], columns[k, rows], self._features[k], values)
                out[rows, :, k] += weight * (values @ right)


class _MappedTerm(_Term):
    """A term of functions of mapped rows."""

    def __init__(self, kernel: MappedKernel, inner: _Term) -> None:
        super().__init__()
        self.kernel, self.inner = kernel, inner

    def slopes(self, X: Float) -> Pairs:
        return self.inner.slopes(self.kernel.mapped(X))

    def right(self, a: Float) -> Float:
        return self.inner.right(a)

    def add(self, X: Float, pairs: Pairs, a: Float, right: Float, out: Float) -> None:
        rows = self.kernel.mapped(X)
        gradients = np.zeros((len(rows), a.shape[1], rows.shape[1]))
        self.inner.add(rows, pairs, a, right, gradients)
        out += self.kernel.pulled_back(X, gradients)


class _MappedTerms(_Terms):
    """Terms of a kernel of mapped rows."""

    def __init__(self, kernel: MappedKernel, points: Float) -> None:
        self.kernel, self.inner = kernel, _terms(kernel.inner, kernel.mapped(points))
        self.leaves = [_MappedTerm(kernel, leaf) for leaf in self.inner.leaves]

    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        return self.inner.pairs(self.kernel.mapped(X), factor)


class _ScaledTerms(_Terms):
    """Terms of ``factor part``."""

    def __init__(self, kernel: Scaled, points: Float) -> None:
        self.part, self.factor = _terms(kernel.part, points), kernel.factor
        self.leaves = self.part.leaves

    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        found = self.part.pairs(X, factor)
        for alpha, beta in found:
            alpha *= self.factor
            if beta is not None and beta is not alpha:
                beta *= self.factor
        return found


class _SumTerms(_Terms):
    """Terms of ``left + right``."""

    def __init__(self, kernel: Sum, points: Float) -> None:
        self.left, self.right = (_terms(part, points) for part in (kernel.left, kernel.right))
        self.leaves = self.left.leaves + self.right.leaves

    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        return self.left.pairs(X, factor) + self.right.pairs(X, factor)


class _ProductTerms(_Terms):
    """Terms of ``left right``: the slopes of each part are multiplied by the values of the other."""

    def __init__(self, kernel: Product, points: Float) -> None:
        self.values = kernel.left.prepare(points), kernel.right.prepare(points)
        self.left, self.right = (_terms(part, points) for part in (kernel.left, kernel.right))
        self.leaves = self.left.leaves + self.right.leaves

    def pairs(self, X: Float, factor: Float | None) -> list[Pairs]:
        left, right = (values.block(X) for values in self.values)
        if factor is not None:
            left *= factor
            right *= factor
        return self.left.pairs(X, right) + self.right.pairs(X, left)


def _terms(kernel: Kernel, points: Float) -> _Terms:
    if isinstance(kernel, MappedKernel):
        return _MappedTerms(kernel, points)
    if isinstance(kernel, Fixed):
        return _terms(kernel.part, points)
    if isinstance(kernel, Scaled):
        return _ScaledTerms(kernel, points)
    if isinstance(kernel, Sum):
        return _SumTerms(kernel, points)
    if isinstance(kernel, Product):
        return _ProductTerms(kernel, points)
    known = formula_kernel(kernel, "a row")
    if not isinstance(known, StationaryKernel):
        return _InnerTerm(known, points)
    absolute = known.formula(points.shape[1]).metric == Metric.ABSOLUTE
    return _AbsoluteTerm(known, points) if absolute else _SquaredTerm(known, points)
