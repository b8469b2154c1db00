"""Nearest neighbours in the kernel's feature space, in one sweep, with codes of n + 1 numbers per row.

For a Gaussian kernel their order is the Euclidean one; the method is useful for kernels that are expensive to evaluate.
Each block's rows are visited in the order of their lower bounds, and true distances are computed only while a bound is
at most the k-th best distance known (Smola & Schoelkopf 2000, section 6.3; ALGORITHMS 13.3). The result does not depend
on the number of distances that this saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.factors.codes import Codes
from streamkernel.factors.features import FeatureRows
from streamkernel.kernels import PreparedKernel
from streamkernel.kernels.parameters import checked_integer
from streamkernel.reductions import Reduction, State
from streamkernel.reductions.contract import SentAsFields
from streamkernel.table import KnownColumns, RowBlock, open_table
from streamkernel.type_aliases import Float, Int, Unchecked

_QUERIES = 256  # queries handled together: limits the memory of their bounds against a block of rows
_FIRST = 512  # number of rows whose bounds give the first limit
# Distances of codes are sums whose last bits depend on the block. They are rounded to a grid in units of k(q, q), so
# that equal rows get equal distances. The grid is as fine as rounding allows, within these limits.
_FINEST, _COARSEST = 2.0**-33, 2.0**-20
_NOBODY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of each query, nearest first, ties by row number.

    Attributes
    ----------
    rows : (q, k) int64 row numbers in the table.
    distances : (q, k) ``d = sqrt(k(x, x) + k(q, q) - 2 k(x, q))``, or distances of the codes.
    evaluations : number of kernel values computed, without those of the codes (n per row).
    pairs : q times the number of the table's rows: the number of kernel values that brute force needs.
    """

    rows: Int
    distances: Float
    evaluations: int
    pairs: int

    @property
    def saved(self) -> float:
        """Share of the pairs without a computed kernel value."""
        return 1.0 - self.evaluations / self.pairs


@dataclass(frozen=True)
class NearestRows(SentAsFields, Reduction[Neighbours]):
    """Find the `count` nearest rows of each query.

    Parameters
    ----------
    basis : basis of the codes.
    queries : (q, p), scaled like the table's rows.
    count : k.
    exact : whether to compute true distances if the codes do not decide; if False, distances of the codes are used.
    """

    basis: Basis
    queries: Float
    count: int
    exact: bool = True

    @cached_property
    def codes(self) -> Codes:
        return Codes.of(self.basis, self.queries)

    @cached_property
    def _prepared(self) -> list[PreparedKernel]:
        # Each query is prepared alone: the bits of a kernel value depend on the points prepared with it.
        return [self.basis.kernel.prepare(query[None]) for query in self.queries]

    def empty(self) -> State:
        shape = (len(self.queries), self.count)
        return {"squares": np.full(shape, np.inf), "rows": np.full(shape, _NOBODY), "totals": np.zeros(2, np.int64)}

    def fold(self, state: State, block: RowBlock) -> State:
        X = np.ascontiguousarray(block.X, dtype=np.float64)
        codes = Codes.of(self.basis, X, self.codes.margin)
        found = 0
        for first in range(0, len(self.queries), _QUERIES):
            queries = self.codes[first : first + _QUERIES]
            limits = self._limits(state["squares"][first : first + _QUERIES, -1], queries, codes)
            lower = queries.lower(codes) if self.exact else queries.distances(codes)
            near = lower <= limits[:, None]
            for j in np.flatnonzero(near.any(axis=1)):
                rows = np.flatnonzero(near[j])
                found += self._scan(state, first + int(j), rows, lower[j], X, codes.diagonal, block.start)
        state["totals"] += [len(X), found]
        return state

    def _limits(self, best: Float, queries: Codes, codes: Codes) -> Float:
        """Limits of ``d^2``, (q,), for the nearest rows: the k-th best so far, or the k-th best upper bound of some."""
        some = codes[: max(_FIRST, 2 * self.count)]
        if np.isfinite(best).all() or len(some.r) < self.count:
            return best if self.exact else best + self._unit(queries)
        squares = queries.upper(some) if self.exact else queries.distances(some)
        limits = np.minimum(best, np.partition(squares, self.count - 1, axis=1)[:, self.count - 1])
        return limits if self.exact else limits + self._unit(queries)

    @staticmethod
    def _unit(queries: Codes) -> Float:
        grid = min(max(queries.margin, _FINEST), _COARSEST)
        return np.asarray(grid * np.where(queries.diagonal > 0.0, queries.diagonal, 1.0))

    def _scan(self, state: State, j: int, near: Int, lower: Float, X: Float, diagonal: Float, start: int) -> int:
        """Merge those of the rows `near` that are nearest to query j into the state; return the kernel values taken."""
        found, step = 0, max(2 * self.count, 32)
        if not self.exact:
            unit = self._unit(self.codes[j : j + 1])[0]
            self._put(state, j, np.maximum(np.round(lower[near] / unit), 0.0) * unit, start + near)
            return 0
        # Least lower bounds first, in growing steps: each step lowers the limit that the next rows must meet.
        while len(near):
            order = np.argpartition(lower[near], step) if len(near) > step else np.arange(len(near))
            some, near = near[order[:step]], near[order[step:]]
            self._put(state, j, self._squares(j, X[some], diagonal[some]), start + some)
            near = near[lower[near] <= state["squares"][j, -1]]
            found, step = found + len(some), 4 * step
        return found

    def _put(self, state: State, j: int, squares: Float, rows: Int) -> None:
        kept = squares <= state["squares"][j, -1]
        both = np.concatenate([state["squares"][j], squares[kept]])
        numbers = np.concatenate([state["rows"][j], rows[kept]])
        best = np.lexsort((numbers, both))[: self.count]
        state["squares"][j], state["rows"][j] = both[best], numbers[best]

    def _squares(self, j: int, X: Float, diagonal: Float) -> Float:
        """``d^2`` of query j to some rows, (s,)."""
        values = self._prepared[j].block(X)[:, 0]
        return np.asarray(np.maximum(diagonal + self.codes.diagonal[j] - 2.0 * values, 0.0))

    def combine(self, left: State, right: State) -> State:
        squares = np.concatenate([left["squares"], right["squares"]], axis=1)
        rows = np.concatenate([left["rows"], right["rows"]], axis=1)
        best = np.lexsort((rows, squares), axis=1)[:, : self.count]
        return {
            "squares": np.take_along_axis(squares, best, axis=1),
            "rows": np.take_along_axis(rows, best, axis=1),
            "totals": left["totals"] + right["totals"],
        }

    def finalize(self, state: State) -> Neighbours:
        count, evaluations = (int(value) for value in state["totals"])
        return Neighbours(state["rows"], np.sqrt(state["squares"]), evaluations, count * len(self.queries))

    def state_bytes(self) -> int:
        return 16 * len(self.queries) * self.count + 16

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * (2 * n + 2 * p + 2 * min(_QUERIES, len(self.queries))))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * (p + len(self.queries)))


def nearest_neighbours(
    rows: FeatureRows, queries: Unchecked, count: int, session: Session, *, exact: bool = True
) -> Neighbours:
    """The `count` nearest rows of each query, in one sweep.

    Parameters
    ----------
    rows : table and basis; a row of the table that equals a query is its own neighbour.
    queries : (q, p) raw rows of any type that `open_table` accepts; they are held in memory and scaled like the table.
        Of a table of sparse rows they become such.
    count : k.
    exact : if False, only codes are compared: no kernel value is computed beyond the n per row of the codes.

    Raises
    ------
    ParameterError
        count is not in 1 .. m, or the factor has no basis: stored features alone do not give the residuals.
    ShapeError
        The queries have another width.
    """
    if rows.basis is None:
        raise ParameterError("neighbours need the basis of the factor; give the table of the rows, and the basis")
    count = checked_integer("count", count)
    if count > rows.shape[0]:
        raise ParameterError(f"{count} neighbours among {rows.shape[0]} rows; give at most {rows.shape[0]}")
    table = rows.table
    known = KnownColumns(
        table.columns, table.named, "the table of the rows has", "give rows with the same columns", "the queries' table"
    )
    matched = known.matched(open_table(queries, sparse=True)).as_sparse(table.sparse)
    asked = matched.with_scaler(table.scaler).without_targets()
    wanted = FeatureRows(asked, rows.basis).table.read(asked.start, asked.stop)
    points = np.ascontiguousarray(wanted.X, dtype=np.float64)
    return session.sweep(NearestRows(rows.basis, points, count, exact), rows.table, "nearest neighbours")
