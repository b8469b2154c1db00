"""Kernel matching pursuit as Popovici, Bengio & Thiran 2005 print it (Algorithm 1), full and stochastic, in memory.

Basic pursuit of targets y = +-1, no constant: of the columns d_j = k(X, x_j) that compete, the one with the largest
``|d_j^T r| / |d_j|`` gets ``a = d_j^T r / |d_j|^2``, and ``r <- r - a d_j``. All compete (KMP), or s rows drawn anew
for every term (SKMP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import Gaussian
from streamkernel.linalg import single_threaded_blas
from streamkernel.pursuit import Stages

Float = NDArray[np.float64]
Int = NDArray[np.int64]

BLOCK = 512  # rows of the kernel matrix that are at work at a time
AHEAD = 64  # columns of K^2 that full KMP makes together
KEPT = 4000  # of them that it holds: 1.6 GB of 50,000 rows


@dataclass(frozen=True)
class Path:
    """To the coefficient of row ``order[t]`` is added ``steps[t]``; ``rss[t]`` is |r|^2 before, the last one after."""

    order: Int
    steps: Float
    rss: Float


class Dictionary:
    """The columns ``d_j = k(X, x_j)``: rows of the symmetric matrix K (m, m), in the precision that is asked for.

    In single precision K is rounded as it is stored, and `times` sums in it; columns are summed in double.
    """

    def __init__(self, X: Float, gamma: float, precision: type[np.floating[Any]] = np.float64) -> None:
        self.X = X
        self.kernel = Gaussian(lengthscale=float(np.sqrt(0.5 / gamma)))
        self._matrix = np.empty((len(X), len(X)), dtype=precision)
        points = self.kernel.prepare(X)
        for rows in self._parts:
            self._matrix[rows] = points.block(X[rows])
        parts = (self._matrix[rows].astype(np.float64, copy=False) for rows in self._parts)
        self.norms: Float = np.sqrt(np.concatenate([np.einsum("ij,ij->i", part, part) for part in parts]))

    def columns(self, rows: Int, out: Float | None = None) -> Float:
        """(s, m), a column in each row."""
        found: Float = np.empty((len(rows), len(self.X))) if out is None else out
        for row, column in zip(rows, found, strict=True):
            column[:] = self._matrix[row]
        return found

    def times(self, V: Float) -> Float:
        """``K V``, (m, k)."""
        V = V.astype(self._matrix.dtype)
        return np.concatenate([self._matrix[rows] @ V for rows in self._parts]).astype(np.float64)

    @property
    def _parts(self) -> list[slice]:
        return [slice(first, first + BLOCK) for first in range(0, len(self.X), BLOCK)]


@single_threaded_blas()
def stochastic(dictionary: Dictionary, y: Float, size: int, terms: int, generator: np.random.Generator) -> Path:
    """SKMP: each term from an active set of its own, drawn uniformly without replacement."""
    m = len(y)
    r, columns = y.copy(), np.empty((min(size, m), m))
    order, steps, rss = np.empty(terms, np.int64), np.empty(terms), np.empty(terms + 1)
    rss[0] = r @ r
    for t in range(terms):
        active = generator.choice(m, len(columns), replace=False)
        dictionary.columns(active, out=columns)
        products = columns @ r
        best = int(np.argmax(np.abs(products) / dictionary.norms[active]))
        order[t] = active[best]
        steps[t] = products[best] / dictionary.norms[active[best]] ** 2
        r -= steps[t] * columns[best]
        rss[t + 1] = r @ r
    return Path(order, steps, rss)


def full(dictionary: Dictionary, y: Float, terms: int, ahead: int = AHEAD, kept: int = KEPT) -> Path:
    """KMP: all columns compete for each term.

    The products p = K r change by ``p <- p - a K d_j``. Columns of K^2 are made for the pick and for those that come
    next by their scores, which the next picks are likely to be: the same picks in fewer sweeps over K, each of which
    makes p anew, too.
    """
    r, products = y.copy(), np.empty(0)
    order, steps, rss = np.empty(terms, np.int64), np.empty(terms), np.empty(terms + 1)
    rss[0] = r @ r
    squared: dict[int, Float] = {}
    products = dictionary.times(r[:, None])[:, 0]
    for t in range(terms):
        scores = np.abs(products) / dictionary.norms
        j = int(np.argmax(scores))
        if j not in squared:
            ranked = np.argsort(-scores)
            wanted = np.array([i for i in ranked[: ahead + len(squared)] if int(i) not in squared][:ahead])
            found = dictionary.times(np.column_stack([dictionary.columns(wanted).T, r]))
            if len(squared) > kept:
                # Those far from being picked are made again if ever they come near.
                near = set(ranked[: kept // 2].tolist())
                squared = {i: column for i, column in squared.items() if i in near}
            squared.update({int(i): found[:, k].copy() for k, i in enumerate(wanted)})
            products = found[:, -1].copy()
        order[t] = j
        # The scores have the precision of K; the step is the column's own.
        column = dictionary.columns(np.array([j]))[0]
        steps[t] = (column @ r) / dictionary.norms[j] ** 2
        r -= steps[t] * column
        products -= steps[t] * squared[j]
        rss[t + 1] = r @ r
    return Path(order, steps, rss)


def functions(path: Path, marks: Sequence[int]) -> list[int]:
    """Different rows among the first so many terms: a row may come again."""
    return [len(np.unique(path.order[:mark])) for mark in marks]


def error_rates(dictionary: Dictionary, path: Path, X: Float, y: Float, marks: Sequence[int]) -> Float:
    """Share of the rows X with the wrong sign, after so many terms."""
    rows, inverse = np.unique(path.order, return_inverse=True)
    coefficients = np.zeros((len(rows), len(marks)))
    for k, mark in enumerate(marks):
        np.add.at(coefficients[:, k], inverse[:mark], path.steps[:mark])
    chosen = dictionary.kernel.prepare(dictionary.X[rows])
    wrong = np.zeros(len(marks))
    for first in range(0, len(X), BLOCK):
        predicted = chosen.block(X[first : first + BLOCK]) @ coefficients
        wrong += ((predicted > 0.0) != (y[first : first + BLOCK, None] > 0.0)).sum(axis=0)
    return wrong / len(X)


def fitted_again(
    dictionary: Dictionary, path: Path, y: Float, X: Float, y_test: Float, marks: Sequence[int]
) -> tuple[Float, Float]:
    """The functions of the first so many terms by least squares on y: shares of wrong signs, and |r|^2."""
    _, first = np.unique(path.order, return_index=True)
    rows = path.order[np.sort(first)]
    stages = Stages.least_squares(dictionary.columns(rows).T, y[:, None], constant=False)
    sizes = functions(path, marks)
    chosen = dictionary.kernel.prepare(dictionary.X[rows])
    wrong = np.zeros(len(sizes))
    for start in range(0, len(X), BLOCK):
        predicted = stages.values(chosen.block(X[start : start + BLOCK]))[:, sizes, 0]
        wrong += ((predicted > 0.0) != (y_test[start : start + BLOCK, None] > 0.0)).sum(axis=0)
    left = y @ y - np.cumsum(stages.amounts[:, 0] ** 2)
    return wrong / len(X), left[np.asarray(sizes) - 1]
