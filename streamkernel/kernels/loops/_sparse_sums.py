"""Blocks of kernel values of sparse rows in pairs (`streamkernel.pairs`): products of CSR rows with inverted lists.

The points are held twice: as an inverted list of each column (the points that have an entry there, and their values),
and as pairs. A row is added up over its own entries only::

    x.z_j = sum over the columns c of x:  x_c z_jc   for the points j in the list of c

and the number of the metric follows from this sum and from what each row has alone::

    |x - z|^2 = |x|^2 + |z|^2 - 2 x.z                     Euclidean
    sum |x - z| = |x|_1 + |z|_1 - sum over common columns (|x_c| + |z_c| - |x_c - z_c|)     city block

Where x is near to z the difference would lose digits. Then both rows are merged, and their differences summed. Which of
the two a value has depends on its row and point only: same operations, same order, same bits in every block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamkernel.kernels.loops._writer import call_writer
from streamkernel.kernels.loops.formula import Metric
from streamkernel.kernels.loops.functions import INNER
from streamkernel.kernels.loops.instructions import stay_separate

# Below this share of |x|^2 + |z|^2 a difference is summed from the merged rows: above it the rounding of an inner
# product, some eps of the norms, changes no kernel value by more than ten times as much.
NEAR = 0.1


@njit(**INNER)
def alone(metric, pairs, i):  # type: ignore[no-untyped-def]  # Numba infers them
    """What the metric takes of row i alone: the sum of its absolute values, or of its squares."""
    width = pairs.shape[1] // 2
    total = 0.0
    for k in range(width):
        if pairs[i, k] < 0.0:
            break
        value = pairs[i, width + k]
        if metric == Metric.ABSOLUTE:
            total += abs(value)
        else:
            total += value * value
    return total


@njit(**INNER)
def sparse_norms_of(pairs, metric, out):  # type: ignore[no-untyped-def]  # Numba infers them
    """``out[i] = alone(metric, pairs, i)``."""
    stay_separate()
    for i in range(len(pairs)):
        out[i] = alone(metric, pairs, i)


@njit(**INNER)
def merged(metric, X, i, Z, j):  # type: ignore[no-untyped-def]  # Numba infers them
    """Sum of the squared, or absolute, differences of two rows, column by column."""
    stay_separate()
    v, w = X.shape[1] // 2, Z.shape[1] // 2
    a, b, total = 0, 0, 0.0
    while True:
        left, right = a < v and X[i, a] >= 0.0, b < w and Z[j, b] >= 0.0
        if not (left or right):
            return total
        if left and (not right or X[i, a] < Z[j, b]):
            difference = X[i, v + a]
            a += 1
        elif right and (not left or Z[j, b] < X[i, a]):
            difference = Z[j, w + b]
            b += 1
        else:
            difference = X[i, v + a] - Z[j, w + b]
            a += 1
            b += 1
        if metric == Metric.ABSOLUTE:
            total += abs(difference)
        else:
            total += difference * difference


@njit(**INNER)
def fill_sparse_block(X, metric, writer, constants, degree, Z, lists, norms, sums, scratch, ones, out):  # type: ignore[no-untyped-def]  # Numba infers them
    """``out[i, j] = transform(metric(x_i, z_j))``; the transform is that of the writer, an address.

    `lists` = (starts (d + 1,), points, values): the entries of column c of all points stand from ``starts[c]`` on.
    `norms` are those of the points.
    """
    stay_separate()
    starts, points, values = lists
    n, width = len(Z), X.shape[1] // 2
    n_columns = len(starts) - 1
    for i in range(len(X)):
        for j in range(n):
            sums[j] = 0.0
        for k in range(width):
            if X[i, k] < 0.0:
                break
            column, x = int(X[i, k]), X[i, width + k]
            if column >= n_columns:  # memory beyond the lists is never read, whatever the caller gives
                continue
            for at in range(starts[column], starts[column + 1]):
                z = values[at]
                if metric == Metric.ABSOLUTE:
                    sums[points[at]] += abs(x) + abs(z) - abs(x - z)
                else:
                    sums[points[at]] += x * z
        own = alone(metric, X, i)
        if metric == Metric.COSINE:
            for j in range(n):
                product = own * norms[j]
                sums[j] = min(max(sums[j] / np.sqrt(product), -1.0), 1.0) if product > 0.0 else 0.0
        elif metric != Metric.INNER:
            times = 1.0 if metric == Metric.ABSOLUTE else 2.0
            for j in range(n):
                both = own + norms[j]
                difference = both - times * sums[j]
                sums[j] = merged(metric, X, i, Z, j) if difference < NEAR * both else difference
        call_writer(writer, sums, scratch, ones, 1, n, n, out, i, 0, constants, degree, norms, norms, 0)
