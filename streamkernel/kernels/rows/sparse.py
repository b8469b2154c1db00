"""Kernels of sparse rows, whose entries alone are stored: those that follow from inner products and norms of two rows.

A kernel of dense rows becomes one of sparse rows by `sparse_kernel`; its values are the same, to rounding. Kernels of
which a sum over common entries does not tell the value are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels.base import Composite, Fixed, Kernel, PreparedKernel, Product, Scaled, Sum, with_gaps
from streamkernel.kernels.formulas.cosine import Cosine
from streamkernel.kernels.formulas.formula_kernels import Distance, FormulaKernel, LengthscaleKernel
from streamkernel.kernels.formulas.gaussian import Gaussian
from streamkernel.kernels.formulas.laplacian import Laplacian
from streamkernel.kernels.formulas.linear import Linear
from streamkernel.kernels.formulas.matern import Matern
from streamkernel.kernels.formulas.polynomial import Polynomial
from streamkernel.kernels.formulas.rational_quadratic import RationalQuadratic
from streamkernel.kernels.loops.compiled import SPARSE_FILL, SPARSE_NORMS, writer_of
from streamkernel.kernels.loops.formula import POWER, Formula, Metric
from streamkernel.kernels.loops.prepared import constants
from streamkernel.kernels.parameters import Lengthscale, checked_integer, checked_rows
from streamkernel.pairs import are_pairs, csr_parts, values_in
from streamkernel.type_aliases import AnyArray, FieldsView, Float, Int, Unchecked
from streamkernel.wording import option

OF_ENTRIES: tuple[type[FormulaKernel], ...] = (
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
    Linear,
    Polynomial,
    Cosine,
)
"""The kernels that sparse rows can have."""

_COMPOSITES: tuple[type[Composite], ...] = (Sum, Product, Scaled, Fixed)


def sparse_kernel(kernel: Kernel, n_columns: int) -> Kernel:
    """The kernel for sparse rows of so many columns; of sums, products and multiples each part becomes one.

    Raises
    ------
    ParameterError
        It cannot be computed from the entries of two rows alone; or it has a lengthscale for each column.
    """
    if isinstance(kernel, _COMPOSITES):
        return kernel.with_parts([sparse_kernel(part, n_columns) for part in kernel.parts])
    if isinstance(kernel, SparseKernel):
        return kernel
    if type(kernel) not in OF_ENTRIES:
        raise ParameterError(
            f"{option('kernel')} {kernel.name!r} is not computed for sparse rows; give one of "
            f"{', '.join(kind.name for kind in OF_ENTRIES)}, a sum or product of these, or dense rows"
        )
    if isinstance(kernel, LengthscaleKernel) and isinstance(kernel.lengthscale, tuple):
        raise ParameterError(
            f"{option('lengthscale')} has {len(kernel.lengthscale)} entries, one for each column, and the rows are "
            "sparse; give one number, or dense rows"
        )
    if isinstance(kernel, Polynomial) and kernel.gamma is None:
        kernel = replace(kernel, gamma=1.0 / n_columns)
    return SparseKernel(kernel, n_columns)


@dataclass(frozen=True)
class SparseKernel(Composite):
    """``k(x, z) = part(x, z)`` of sparse rows in pairs (`streamkernel.pairs`) of ``n_columns`` columns.

    Parameters
    ----------
    part : Kernel
        One of `OF_ENTRIES`, with one lengthscale for all columns.
    n_columns : int
        Columns of the rows, most of which have no entry.
    """

    part: Kernel
    n_columns: int

    name: ClassVar[str] = "sparse"
    PARTS: ClassVar[tuple[str, ...]] = ("part",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "n_columns", checked_integer("n_columns", self.n_columns))
        if type(self.part) not in OF_ENTRIES:
            raise ParameterError(f"{self.part!r} is not computed for sparse rows; make the kernel by `sparse_kernel`")

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.part.stationary

    @property
    def of_pairs(self) -> bool:
        return True

    @property
    def lengthscale(self) -> Lengthscale | None:
        """The lengthscale of its part; None for a kernel without one."""
        return getattr(self.part, "lengthscale", None)

    def check_features(self, n_features: int) -> None:
        if n_features % 2:
            raise ShapeError(f"rows of {n_features} numbers are no pairs of columns and values")

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        assert isinstance(self.part, FormulaKernel)
        return PreparedSparse(self, self.part.formula(self.n_columns), checked_rows(Z, "Z"))

    def diagonal(self, X: Unchecked) -> Float:
        # Entries as a dense row have the same norm.
        rows = np.asarray(X)
        return self.part.diagonal(values_in(rows))


def columns_of_pairs(kernel: Kernel) -> set[int]:
    """The numbers of columns of sparse rows that a kernel and its parts take; none of a kernel of dense rows."""
    if isinstance(kernel, SparseKernel):
        return {kernel.n_columns}
    return {columns for part in kernel.parts for columns in columns_of_pairs(part)}


def is_kernel_of_pairs(config: FieldsView) -> bool:
    """Whether a configuration of a kernel (`Kernel.to_config`) is that of one of sparse rows."""
    parts = (value for value in config.values() if isinstance(value, Mapping))
    return config.get("kernel") == SparseKernel.name or any(map(is_kernel_of_pairs, parts))


class PreparedSparse(PreparedKernel):
    """A kernel of sparse rows with an inverted list of the entries of its points for each column.

    Raises
    ------
    ShapeError
        The points are no rows in pairs of these columns.
    """

    def __init__(self, kernel: SparseKernel, formula: Formula, points: AnyArray) -> None:
        super().__init__(kernel, points)
        if not are_pairs(points, kernel.n_columns):
            raise ShapeError(f"the points are no sparse rows of {kernel.n_columns} columns; give rows in pairs")
        self._points = _read_only(points)
        weight = float(formula.weights[0])
        factor = formula.factor
        if formula.metric == Metric.SQUARED:
            factor *= weight * weight
        elif formula.metric == Metric.ABSOLUTE:
            factor *= weight
        self._metric, self._transform = formula.metric, formula.transform
        self._constants = constants(formula, factor, np.dtype(np.float64))
        self._degree = int(formula.shape) if formula.transform.power else 1
        self._lists = inverted_lists(points, kernel.n_columns)
        self._norms = np.zeros(len(points))
        SPARSE_NORMS.of(np.dtype(np.float64))(self._points, int(self._metric), self._norms)

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        rows = _read_only(X)
        if rows.shape[1] % 2:
            raise ShapeError(f"rows of {rows.shape[1]} numbers are no pairs of columns and values")
        dtype = np.dtype(np.float64)
        target = out if out.dtype == dtype else np.empty(out.shape)
        SPARSE_FILL.of(dtype)(
            rows, int(self._metric), writer_of(self._transform).of(dtype).address, self._constants, self._degree,
            self._points, self._lists, self._norms, with_gaps(target),
        )  # fmt: skip
        if target is not out:
            out[...] = target


def inverted_lists(points: AnyArray, n_columns: int) -> tuple[Int, Int, Float]:
    """(starts (n_columns + 1,), points, values) of the entries of points in pairs, column by column."""
    indptr, columns, values = csr_parts(points)
    numbers = np.repeat(np.arange(len(points), dtype=np.int64), np.diff(indptr))
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(n_columns + 1)).astype(np.int64)
    return starts, numbers[order], np.ascontiguousarray(values[order], dtype=np.float64)


def sparse_distances(pairs: AnyArray, distance: Distance, n_columns: int) -> Float:
    """Distances of all pairs of different rows, (m (m - 1) / 2,): Euclidean ones, or sums of absolute differences."""
    metric = Metric.ABSOLUTE if distance == "cityblock" else Metric.SQUARED
    formula = Formula(metric, POWER, np.ones(n_columns))
    found = PreparedSparse(SparseKernel(Linear(), n_columns), formula, checked_rows(pairs, "X")).block(pairs)
    upper: Float = found[np.triu_indices(len(pairs), 1)]
    return upper if metric == Metric.ABSOLUTE else np.sqrt(upper)


def _read_only(rows: AnyArray) -> AnyArray:
    # One compiled version for rows that may and may not be written.
    view = np.ascontiguousarray(rows, dtype=np.float64).view()
    view.flags.writeable = False
    return view
