"""One sweep for the rows and the columns that linear programming machines lack, of several functions at once.

A function ``f = sum_j a_j k(x, x_j) + b`` and dual variables u of some rows are given. Each row is looked at twice:

- as a constraint: its loss, and by how much its margin is violated (see `ViolatingRows`);
- as a column: the price ``pi = |sum_i u_i k(x, x_i)|`` of the function k(., x). Above 1 it lowers the objective.

The largest price over all rows makes ``u / max(1, pi)`` feasible for the program of all columns: a lower bound.

Most violators are outliers, and the largest prices are those of one cluster: so the rows that are kept are drawn, in
proportion to their violation, and to the square of (price - 1) (with keys as in `DrawnRows`); the
column of the largest price is always kept. Sums over points are taken in one order, as in `Violators`: equal bits for
any chunking, and equal rows.

Smola & Schoelkopf 2000, section 6.2; ALGORITHMS 13.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.margins.losses import PiecewiseLinear
from streamkernel.reductions.margins.targets import Target
from streamkernel.reductions.row_random import row_uniforms
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int

# Kernel values of so many rows and points stay in the second-level cache until they are summed.
_PANEL_ROWS, _PANEL_POINTS = 64, 1024
_ROW_FLOPS = 120.0  # time of losses, keys and pools, in operations


@dataclass(frozen=True)
class PricedFunction:
    """A function, and the dual variables that price columns.

    Parameters
    ----------
    points : (n, p) rows Z, float64: first those with a dual variable alone, last those with a coefficient alone.
    duals : (c,) sums of the dual variables u of the first c points.
    coefficients : (s,) a of the last s points.
    offset : b.
    loss, target : piecewise linear loss, and its targets.
    inside : (r,) row numbers of the constraints that there are, ascending.
    columns : (q,) row numbers of the columns that there are, ascending.
    """

    points: Float
    duals: Float
    coefficients: Float
    offset: float
    loss: PiecewiseLinear
    target: Target
    inside: Int
    columns: Int


@dataclass(frozen=True)
class Prices:
    """Result of the sweep, of one function.

    Attributes
    ----------
    loss : ``sum w loss(y, f)`` over all rows.
    weight, trace, rows : sums of w and of w k(x, x), and number of rows of weight > 0.
    violators : number of rows outside that violate by more than the tolerance.
    priced : number of columns outside whose price is above 1 by more than the tolerance.
    largest : the largest price of all rows of weight > 0.
    joining : some of the violators, and of the rows in the band, with the targets of the function alone.
    candidates : some of the priced columns.
    """

    loss: float
    weight: float
    trace: float
    rows: int
    violators: int
    priced: int
    largest: float
    joining: Sample
    candidates: Sample


@dataclass(frozen=True)
class PriceRows(SentAsFields, Reduction[tuple[Prices, ...]]):
    """Accumulate `Prices` of each function.

    Parameters
    ----------
    kernel : symmetric Kernel k.
    functions : the functions.
    band : distance from the margin up to which rows on the right side of it may join.
    row_tolerance, column_tolerance : largest violation, and largest price above 1, that do not count.
    row_pool, column_pool : largest numbers of rows and of columns in a result.
    seed, stream : of the draws.
    """

    kernel: Kernel
    functions: tuple[PricedFunction, ...]
    band: float
    row_tolerance: float
    column_tolerance: float
    row_pool: int
    column_pool: int
    seed: int
    stream: tuple[int, ...]

    @cached_property
    def prepared(self) -> list[list[PreparedKernel]]:
        """The kernel with some of the points of each function packed at a time."""
        return [
            [self.kernel.prepare(each.points[first : first + _PANEL_POINTS]) for first in _parts(len(each.points))]
            for each in self.functions
        ]

    def values(self, number: int, X: AnyArray) -> tuple[Float, Float]:
        """f (b,) and ``sum_i u_i k(x, x_i)`` (b,) of one function."""
        each = self.functions[number]
        f, price = np.full(len(X), each.offset), np.zeros(len(X))
        priced, first_column = len(each.duals), len(each.points) - len(each.coefficients)
        for start in range(0, len(X), _PANEL_ROWS):
            rows = slice(start, start + _PANEL_ROWS)
            panel = np.ascontiguousarray(X[rows], np.float64)
            for first, prepared in zip(_parts(len(each.points)), self.prepared[number], strict=True):
                K = prepared.block(panel)
                stop = first + K.shape[1]
                # Products of BLAS would have bits that depend on the number of rows.
                if first < priced:
                    some = each.duals[first : min(stop, priced)]
                    price[rows] += (K[:, : len(some)] * some).sum(axis=1)
                if stop > first_column:
                    at = max(first, first_column)
                    some = each.coefficients[at - first_column : stop - first_column]
                    f[rows] += (K[:, at - first :] * some).sum(axis=1)
        return f, price

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        w = block.row_weights
        counted, rows = w > 0.0, np.arange(block.start, block.stop)
        exponential = -np.log(row_uniforms(self.seed, self.stream, block.start, len(block))[:, :2])
        state: State = {"totals": np.array([w.sum(), w @ self.kernel.diagonal(block.X), counted.sum()])}
        for number, each in enumerate(self.functions):
            y = each.target.of(block.Y)
            f, price = self.values(number, block.X)
            violation, price = violations(each.loss, y, f), np.abs(price)
            free = counted & ~np.isin(rows, each.inside)
            near = violation + self.band
            outside = np.flatnonzero(free & (violation > self.row_tolerance - self.band))
            above = np.flatnonzero(counted & (price > 1.0 + self.column_tolerance) & ~np.isin(rows, each.columns))
            draws = {
                "row": (outside, exponential[outside, 0] / (w * near)[outside]),
                "column": (above, exponential[above, 1] / (price[above] - 1.0) ** 2),
                "top": (above, -price[above]),
            }
            for kind, (at, keys) in draws.items():
                kept = _smallest(keys, rows[at], self._size(kind))
                at, keys = at[kept], keys[kept]
                of_rows = (rows[at], keys, block.X[at], y[at], w[at])
                state |= zip(self._fields(kind, number), of_rows, strict=True)
            state[f"sums{number}"] = np.array(
                [w @ each.loss.loss(y, f), (free & (violation > self.row_tolerance)).sum(), len(above)]
            )
            state[f"largest{number}"] = np.array([price.max(where=counted, initial=0.0)])
        return state

    @staticmethod
    def _fields(kind: str, number: int) -> list[str]:
        return [f"{kind}{number}_{field}" for field in ("rows", "keys", "X", "Y", "weights")]

    def _size(self, kind: str) -> int:
        return {"row": self.row_pool, "column": self.column_pool, "top": 1}[kind]

    def combine(self, left: State, right: State) -> State:
        state: State = {"totals": left["totals"] + right["totals"]}
        for number in range(len(self.functions)):
            state[f"sums{number}"] = left[f"sums{number}"] + right[f"sums{number}"]
            state[f"largest{number}"] = np.maximum(left[f"largest{number}"], right[f"largest{number}"])
            for kind in ("row", "column", "top"):
                names = self._fields(kind, number)
                both = [np.concatenate([left[name], right[name]]) for name in names]
                kept = _smallest(both[1], both[0], self._size(kind))
                state |= {name: values[kept] for name, values in zip(names, both, strict=True)}
        return state

    def finalize(self, state: State) -> tuple[Prices, ...]:
        weight, trace, counted = state["totals"].tolist()
        found = []
        for number in range(len(self.functions)):
            loss, violators, priced = state[f"sums{number}"].tolist()
            rows, candidates, top = (self._sample(state, kind, number) for kind in ("row", "column", "top"))
            missing = ~np.isin(top.rows, candidates.rows)
            found.append(
                Prices(
                    loss=loss,
                    weight=weight,
                    trace=trace,
                    rows=int(counted),
                    violators=int(violators),
                    priced=int(priced),
                    largest=float(state[f"largest{number}"][0]),
                    joining=rows,
                    candidates=candidates.merged(top.at_positions(np.flatnonzero(missing))),
                )
            )
        return tuple(found)

    def _sample(self, state: State, kind: str, number: int) -> Sample:
        rows, _, X, y, w = (state[name] for name in self._fields(kind, number))
        return Sample(rows, X, y[:, None], w)

    def state_bytes(self) -> int:
        width = self.functions[0].points.shape[1]
        return int(len(self.functions) * ((self.row_pool + self.column_pool + 1) * self.row_bytes(width) + 64) + 24)

    @staticmethod
    def row_bytes(width: int) -> int:
        """Bytes of a row of a pool, at most."""
        return 40 + 8 * width

    def scratch_bytes(self, rows: int) -> int:
        p = self.functions[0].points.shape[1]
        panel = min(rows, _PANEL_ROWS) * (2 * min(_PANEL_POINTS, max(len(each.points) for each in self.functions)) + p)
        return int(8 * (rows * 24 + panel))

    def flops_per_row(self) -> float:
        p = self.functions[0].points.shape[1]
        return float(sum(len(each.points) for each in self.functions) * (2 * p + 4) + _ROW_FLOPS * len(self.functions))


def _parts(count: int) -> Iterator[int]:
    """First points of the panels."""
    return iter(range(0, count, _PANEL_POINTS))


def violations(loss: PiecewiseLinear, y: Float, f: Float) -> Float:
    """By how much rows (b,) whose dual variables are 0 violate their margin; below 0 on the other side of it."""
    violation = np.full(len(f), -np.inf)
    for kink in loss.kinks(y):
        v = kink.targets - f
        np.maximum(violation, np.where(kink.low + loss.C > 0.0, v, -np.inf), out=violation)
        np.maximum(violation, np.where(kink.low < 0.0, -v, -np.inf), out=violation)
    return violation


def _smallest(keys: Float, rows: Int, count: int) -> Int:
    """Positions of the smallest keys, ascending by row; a tie goes to the lowest row number."""
    order = np.lexsort((rows, keys))[:count]
    return order[np.argsort(rows[order])]
