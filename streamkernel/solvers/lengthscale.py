"""Lengthscale from a sample of rows: their median distance, or a value on a grid around it, chosen by GCV."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.basis import Basis
from streamkernel.errors import DegenerateBandwidthError, NumericRangeError
from streamkernel.kernels import (
    Gaussian,
    Kernel,
    LengthscaleKernel,
    columns_of_pairs,
    filling_bytes,
    free_parts,
    packed_bytes,
    sparse_distances,
    with_lengthscales,
)
from streamkernel.linalg import RidgePath, single_threaded_blas
from streamkernel.records import LengthscaleChoice
from streamkernel.reductions import Sample
from streamkernel.table.row_keys import distinct_rows, distinct_sparse_rows
from streamkernel.type_aliases import AnyArray, Float

MEDIAN_ROWS = 1000  # rows whose distances have their median taken: the first ones
_SEARCH_BASIS = 400
_STEPS = tuple(float(2.0**power) for power in np.arange(-3.0, 4.01, 0.5))

# Scores within this ratio count as equal: m squared errors determine their mean to sqrt(2 / m), 2 % for 4000 rows.
_EQUAL = 1.01


def median_lengthscale(X: AnyArray, kernel: Kernel, sparse_columns: int | None = None) -> float:
    """Median distance between pairs of distinct rows, in the metric of the kernel (city block for the Laplacian).

    It is Euclidean for a kernel that has no lengthscale.

    Parameters
    ----------
    sparse_columns : number of columns of sparse rows in pairs; None for dense rows.

    Raises
    ------
    DegenerateBandwidthError
        All rows are equal.
    NumericRangeError
        Squares of the distances underflow or overflow.
    """
    seen = X[:MEDIAN_ROWS]
    distinct = distinct_rows(seen) if sparse_columns is None else distinct_sparse_rows(seen, sparse_columns)
    rows = seen[distinct].astype(np.float64)
    if len(rows) < 2:
        raise DegenerateBandwidthError(
            "1 sampled row has no distance to another; give a lengthscale as a number"
            if len(seen) == 1
            else f"all {len(seen)} sampled rows are equal, so that their median distance is 0; give a lengthscale as a "
            "number"
        )
    # A kernel without a lengthscale has no distance of its own.
    own = kernel if isinstance(kernel, LengthscaleKernel) else Gaussian()
    if sparse_columns is None:
        distances = scipy.spatial.distance.pdist(own.coordinates(rows), own.distance)
    else:
        distances = sparse_distances(rows, own.distance, sparse_columns)
    median = float(np.median(distances))
    if own.distance == "hamming":  # SciPy has the share of columns that differ
        median *= rows.shape[1]
    if not 0.0 < median < np.inf:
        raise NumericRangeError(
            f"the median distance of distinct rows is {median}: squares leave the range of float64; scale the columns"
        )
    return median


def part_medians(X: AnyArray, kernel: Kernel) -> list[float]:
    """`median_lengthscale` of each part of a kernel whose lengthscale is searched for, in the features that it sees."""
    for sparse_columns in columns_of_pairs(kernel):  # one number, or none
        return [median_lengthscale(X, part.kernel, sparse_columns) for part in free_parts(kernel, X.shape[1])]
    found, p = [], X.shape[1]
    for part in free_parts(kernel, p):
        some = len(part.columns) < p
        try:
            found.append(median_lengthscale(X[:MEDIAN_ROWS, part.columns] if some else X, part.kernel))
        except (DegenerateBandwidthError, NumericRangeError) as error:
            if not some:
                raise
            places = ", ".join(map(str, part.columns))
            raise type(error)(f"columns {places}, which {part.kernel.name} sees: {error.message}") from None
    return found


def with_choice(kernel: Kernel, choice: LengthscaleChoice, X: AnyArray) -> Kernel:
    """The kernel with the lengthscale that was chosen on the sampled rows X.

    Of several parts each has its own median distance, times the same step.
    """
    if len(free_parts(kernel, X.shape[1])) == 1:
        return with_lengthscales(kernel, [choice.value])
    step = choice.value / choice.median
    return with_lengthscales(kernel, [step * median for median in part_medians(X, kernel)])


def choice_bytes(rows: int, features: int, itemsize: int, *, formulas: int = 1, search: bool = False) -> int:
    """Bytes that `choose_lengthscale` needs beside a sample of `rows` rows."""
    s = min(rows, MEDIAN_ROWS)
    # The distinct rows, as they are and in float64; their distances, and a copy to find the middle of.
    median = s * features * (itemsize + 8) + 8 * s**2
    if not search:
        return median
    # All rows in float64; points of the basis as given, joined, reduced to independent ones, and packed; the features,
    # their centred copy, and the copy for the product.
    n = _basis_rows(rows)
    return max(
        median,
        8 * rows * features
        + packed_bytes(n, features, formulas)
        + filling_bytes(features)
        + 24 * n * features
        + 8 * n * (3 * rows + 4 * n),
    )


def choose_lengthscale(
    sample: Sample, kernel: Kernel, *, search: bool, intercept: bool, scale: Float
) -> LengthscaleChoice:
    """The median distance, or with `search` the lengthscale nearest to it with a GCV score within 1 % of the smallest.

    The search fits ridge regressions on the sample (some hundred of its rows as basis, alpha by GCV for each
    lengthscale) at the median times 1/8 to 16 in steps of sqrt 2.

    The smallest score itself is not used: for a smooth target the score is flat towards long lengthscales (with Matern
    kernels it always decreases a little, towards splines), while digits are lost and functions become dependent.

    Of a kernel of several parts each has its own median distance, and the search takes one step for all. The choice
    has the lengthscale of the first one; `with_choice` gives the kernel.

    Parameters
    ----------
    sample : rows in random order; the scores count their weights.
    kernel : Kernel, whose lengthscales are replaced: those that a search may change.
    search : True to search a grid around the median.
    intercept : True to centre rows and targets.
    scale : (d,) standard deviation of each target.
    """
    medians = part_medians(sample.X, kernel)
    median = medians[0]
    if not search:
        return LengthscaleChoice(median, median, min(len(sample), MEDIAN_ROWS), (), ())
    kernels = [with_lengthscales(kernel, [step * each for each in medians]) for step in _STEPS]
    scores = [_gcv(sample, each, intercept, scale) for each in kernels]
    grid = [step * median for step in _STEPS]
    equal = np.asarray(scores) <= _EQUAL * min(scores)
    # Of equal scores the one nearest to the median, on the logarithmic scale.
    away = np.where(equal, np.abs(np.log(_STEPS)), np.inf)
    return LengthscaleChoice(grid[int(np.argmin(away))], median, len(sample), tuple(grid), tuple(map(float, scores)))


def _basis_rows(rows: int) -> int:
    """Number of the sampled rows that are the basis of the search."""
    return min(_SEARCH_BASIS, max(1, rows // 4))


def _gcv(sample: Sample, kernel: Kernel, intercept: bool, scale: Float) -> float:
    X = sample.X.astype(np.float64)
    w = None if (sample.weights == 1.0).all() else sample.weights
    Y = (sample.Y - np.average(sample.Y, axis=0, weights=w) if intercept else sample.Y) / scale
    first = np.arange(_basis_rows(len(X)))
    with single_threaded_blas():
        basis, _ = Basis.empty(kernel, X.shape[1], X.dtype).append(X[first], sample.rows[first])
        G = basis.features(X)
        if intercept:
            G = G - np.average(G, axis=0, weights=w)
        count: float = len(X)
        if w is not None:
            # Rows times the roots of their weights have the weighted sums.
            root, count = np.sqrt(w)[:, None], float(w.sum())
            G, Y = G * root, Y * root
        path = RidgePath.of(G.T @ G, G.T @ Y, (Y**2).sum(axis=0), count, int(intercept))
    return path.gcv(path.choose())
