"""The linear program of one function: its rows and columns between sweeps, and the best bounds so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkernel.errors import NumericRangeError, ResourceLimitError
from streamkernel.kernels import Kernel
from streamkernel.reductions import Sample
from streamkernel.reductions.margins import PiecewiseLinear, PricedFunction, Prices, Target, violations
from streamkernel.solvers.linear_programs._linear_machine import LinearLimits, LinearMachine, LinearRound, LinearState
from streamkernel.solvers.linear_programs._sifted_program import SiftedProgram
from streamkernel.solvers.margins.smo import Boxes
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_CANDIDATES = 2000  # rows of a program that are candidates in memory
_AT_ONCE, _ALIKE = 50, 0.9  # columns that join at once, and the correlation from which two are alike
_WORTH = 0.1  # price above 1 of a column that joins between two sweeps, as a share of the gap
_IDLE_SHARE, _FALLEN = 0.15, 1e-12  # share of the columns that may be idle; fall of the objective that is no rounding
_MOST_LOCAL = 60  # programs between two sweeps
# Tolerances of violations and prices, as a share of that of the gap; their factor where nothing violates by more and
# the gap is too large; and the least.
_MOST_BOX = 1e19  # HiGHS has no end of a box, and no cost, from 1e20 on
_SHARE, _TIGHTER, _LEAST_TOLERANCE = 0.25, 0.1, 1e-9
_NOTHING = 1e-15  # least objective to which a gap is compared, as a share of C for each row


@dataclass
class LinearFunction:
    """The program of one function, and the best bounds so far."""

    table: Table
    kernel: Kernel
    loss: PiecewiseLinear
    target: Target
    intercept: bool
    limits: LinearLimits
    gap_tol: float
    ended: bool = False
    capped: bool = False
    fixed: Sample | None = None  # the candidates, where they are not all rows
    primal: float = np.inf
    dual: float = 0.0
    iterations: list[LinearRound] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tolerance = max(_SHARE * self.gap_tol, _LEAST_TOLERANCE)
        self.times = 1.0
        self.band = 1.0  # distance from the margin up to which rows join
        self.unsettled = True  # whether the last sweep has found rows or columns

    def begin(self, sample: Sample, times: float) -> None:
        """Begin with some rows, each of which stands for so many, and no column."""
        self.times = times
        rows = self.with_target(sample)
        self._set_up(rows.at_positions(np.zeros(0, np.intp)))
        self._add_rows(rows)

    def go_on(self, start: LinearMachine) -> None:
        """Begin with the rows, the columns and the basis of another machine."""
        state = start.state
        self._set_up(state.columns)
        self._add_rows(state.rows)
        self.program.start_from(state.program)

    def with_target(self, sample: Sample) -> Sample:
        return Sample(sample.rows, sample.X, self.target.of(sample.Y)[:, None], sample.weights)

    def _set_up(self, columns: Sample) -> None:
        sums = self.table.weight_sums
        largest = 1.0 if sums is None else float(sums.largest.max(initial=0.0))
        widest = self.loss.C * largest
        if widest * max(self.times, 1.0) > _MOST_BOX:
            raise NumericRangeError(
                f"C = {self.loss.C:.3g} times the largest row weight, {largest:.3g}, is {widest:.3g}, and the solver "
                "takes such costs for infinite; give a smaller C, or divide the weights by their largest"
            )
        self.program = SiftedProgram(min(widest, 1.0) or 1.0, intercept=self.intercept)
        self.rows, self.columns = columns.at_positions(np.zeros(0, np.intp)), columns.at_positions(np.zeros(0, np.intp))
        self.found = self.columns
        if len(columns):
            self.columns = columns
            self.program.add_columns(np.zeros((0, len(columns))))

    def _boxes(self, rows: Sample) -> Boxes:
        y = np.ascontiguousarray(rows.Y[:, 0])
        return Boxes.of(self.loss, y, self.times * rows.weights, intercept=self.intercept)

    def _values(self, left: Sample, right: Sample) -> Float:
        """Kernel values (l, r)."""
        if not (len(left) and len(right)):
            return np.zeros((len(left), len(right)))
        return np.asarray(self.kernel.prepare(_double(right.X)).block(_double(left.X)))

    def _add_rows(self, rows: Sample) -> None:
        """Add the kinks of rows, those of a row together."""
        if not len(rows):
            return
        boxes, K = self._boxes(rows), self._values(rows, self.columns)
        kinks = self.loss.kink_count
        targets, low, high = (np.ascontiguousarray(each.T).ravel() for each in (boxes.targets, boxes.low, boxes.high))
        self.program.add_rows(targets, low, high, np.repeat(K, kinks, axis=0))
        self.rows = _joined(self.rows, rows)

    def _add_columns(self, columns: Sample) -> None:
        K = np.repeat(self._values(self.rows, columns), self.loss.kink_count, axis=0)
        self.program.add_columns(K)
        self.columns = _joined(self.columns, columns)

    @property
    def row_duals(self) -> Float:
        """(r,) sums of the dual variables of each row."""
        return np.asarray(self.program.duals.reshape(-1, self.loss.kink_count).sum(axis=1))

    def generate(self) -> None:
        """Solve the program, with columns from the candidates in memory, until none lowers its objective."""
        pool = self.fixed
        if pool is None:
            spread = np.linspace(0, len(self.rows) - 1, min(_CANDIDATES, len(self.rows))).astype(np.intp)
            pool = _joined(_without(self.rows.at_positions(spread), self.found.rows), self.found)
        # While rows or columns are still to come, those of a small gain can wait.
        enough = 1.0 + max(self.tolerance, _WORTH * _few_digits(self.relative_gap) * self.unsettled)
        objective = np.inf
        for number in range(_MOST_LOCAL):
            self.program.solve()
            c = self.row_duals
            some = self.rows.at_positions(np.flatnonzero(c))
            price = np.abs(self._prices(pool, some, c[c != 0.0]))
            self.largest = float(price.max(initial=0.0))
            above = ~np.isin(pool.rows, self.columns.rows) & (price > enough)
            value = float(self.program.targets @ self.program.duals)
            if above.any() and value < objective * (1.0 - _FALLEN):
                # Columns may leave only after the objective has fallen, so that none comes and goes for ever.
                objective = value
                pool, leaving = self._drop_idle_columns(pool)
                price, above = (np.concatenate([each, np.zeros(leaving, each.dtype)]) for each in (price, above))
            joining = self._diverse(pool, np.where(above, price, 0.0), enough)
            if not len(joining) or number == _MOST_LOCAL - 1:
                break
            self._add_columns(pool.at_positions(joining))
        self.program.polish()

    def _prices(self, pool: Sample, rows: Sample, duals: Float) -> Float:
        """``sum_i u_i k(x, x_i)`` of a pool, in parts of bounded memory."""
        total = np.zeros(len(pool))
        for first in range(0, len(rows), 1024):
            part = rows.at_positions(np.arange(first, min(first + 1024, len(rows))))
            total += self._values(pool, part) @ duals[first : first + 1024]
        return total

    @property
    def relative_gap(self) -> float:
        """The present gap as a share of the objective; 1 before the first sweep."""
        return (self.primal - self.dual) / abs(self.primal) if 0.0 < self.primal < np.inf else 1.0

    def _diverse(self, pool: Sample, price: Float, enough: float) -> Int:
        """Positions of the largest prices that are more than enough, no two of which are alike."""
        order = np.argsort(-price, kind="stable")
        order = order[price[order] > enough]
        room = self.limits.columns - len(self.columns)
        self.capped = bool(len(order)) and room == 0
        order = order[: 10 * _AT_ONCE]
        candidates = pool.at_positions(order)
        K = self._values(candidates, candidates)
        size = np.sqrt(np.abs(np.diag(K)))
        likeness = np.abs(K) / np.maximum(np.outer(size, size), np.finfo(np.float64).tiny)
        taken: list[int] = []
        for at in range(len(order)):
            if len(taken) == min(room, _AT_ONCE):
                break
            if not taken or likeness[at, taken].max() < _ALIKE:
                taken.append(at)
        return order[taken]

    def _drop_idle_columns(self, pool: Sample) -> tuple[Sample, int]:
        """Let columns without a coefficient leave, where there are many of them or no room for others.

        Returns
        -------
        pool : the candidates, and those columns that were not among them.
        added : number of these.
        """
        idle = self.program.coefficients == 0.0
        short = len(idle) + _AT_ONCE > self.limits.columns
        if not idle.any() or (idle.sum() <= _IDLE_SHARE * len(idle) + _AT_ONCE and not short):
            return pool, 0
        leaving = self.columns.at_positions(np.flatnonzero(idle))
        self.program.drop_columns(idle)
        self.columns = self.columns.at_positions(np.flatnonzero(~idle))
        fresh = _without(leaving, pool.rows)
        return _joined(pool, fresh), len(fresh)

    def priced(self) -> PricedFunction:
        """The present solution, for a sweep."""
        # Prices of candidates in memory are known already.
        c = self.row_duals / self.times if self.fixed is None else np.zeros(len(self.rows))
        active, used = np.flatnonzero(c), np.flatnonzero(self.program.coefficients)
        rows, columns = self.rows.rows[active], self.columns.rows[used]
        both = np.isin(rows, columns)
        order = np.concatenate([active[~both], active[both]])
        place = {row: at for at, row in enumerate(self.columns.rows[used].tolist())}
        shared = np.array([place[row] for row in rows[both].tolist()], np.intp)
        alone = np.setdiff1d(np.arange(len(used)), shared)
        points = np.concatenate([self.rows.X[order], self.columns.X[used[alone]]])
        return PricedFunction(
            _double(points),
            np.concatenate([c[active[~both]], c[active[both]]]),
            self.program.coefficients[used[np.concatenate([shared, alone])]],
            self.program.offset,
            self.loss,
            self.target,
            np.sort(self.rows.rows),
            np.sort(self.columns.rows),
        )

    def join(self, found: Prices) -> None:
        """Keep the bounds of a sweep, and let its rows and columns into the program."""
        solution, price = self.program, found.largest
        if self.fixed is not None:
            price = max(self.largest, 1.0 if len(self.columns) else 0.0) / self.times
        used = np.flatnonzero(solution.coefficients)
        primal = float(np.abs(solution.coefficients).sum()) + found.loss
        dual = float(self.program.targets @ solution.duals) / self.times / max(1.0, price)
        self.weight, self.trace, self.count = found.weight, found.trace, found.rows
        if primal < self.primal:
            self.primal = primal
            best = self.columns.at_positions(used)
            order = np.argsort(best.rows)
            self.best = best.at_positions(order), solution.coefficients[used[order]], solution.offset
        self.dual = max(self.dual, dual)
        self.iterations.append(
            LinearRound(primal, dual, self.primal - self.dual, len(self.rows), len(self.columns), len(used), price)
        )
        gap = self.primal - self.dual
        if gap <= max(self.gap_tol * abs(self.primal), _NOTHING * self.loss.C * self.weight):
            self.ended = True
            return
        if self.times > 1.0:
            self.times = 1.0
            boxes = self._boxes(self.rows)
            self.program.set_boxes(*(np.ascontiguousarray(each.T).ravel() for each in (boxes.low, boxes.high)))
        elif not found.violators and (self.capped or not (found.priced or price > 1.0 + self.tolerance)):
            if self.capped or self.tolerance <= _LEAST_TOLERANCE:
                self.ended = True
                return
            self.tolerance = max(_TIGHTER * self.tolerance, _LEAST_TOLERANCE)
        # The next function will have others beyond the margin, the fewer the smaller the gap is.
        self.band = _few_digits(min(self.relative_gap, 1.0) * found.loss / (self.loss.C * found.weight))
        self.unsettled = bool(found.violators or found.priced)
        self.found = found.candidates
        # Where the last function violates: these must join, others of the band may.
        violation = self._violation(found.joining)
        order = np.argsort(-violation, kind="stable")
        missing = int((violation > self.tolerance).sum())
        self._make_room(missing)
        room = self.limits.rows - len(self.rows)
        self._add_rows(found.joining.at_positions(np.sort(order[: max(missing, room)])))

    def _violation(self, rows: Sample) -> Float:
        """By how much rows violate their margin, below 0 on the other side."""
        f = self._values(rows, self.columns) @ self.program.coefficients + self.program.offset
        return violations(self.loss, np.ascontiguousarray(rows.Y[:, 0]), f)

    def _make_room(self, joining: int) -> None:
        """Let idle rows leave where there is no room, those farthest from a violation first.

        Raises
        ------
        ResourceLimitError
            There is none.
        """
        missing = len(self.rows) + joining - self.limits.rows
        if missing <= 0:
            return
        idle = np.flatnonzero(self.row_duals == 0.0)
        if len(idle) < missing:
            raise ResourceLimitError(
                f"{len(self.rows) - len(idle)} rows with a dual variable fill the {self.limits.rows} rows of a linear "
                f"program, and more violate their margin; give a larger {option('working_rows')}, or change "
                f"{option('C')} so that fewer rows are inside the margin"
            )
        dropped = np.zeros(len(self.rows), dtype=bool)
        far = np.argsort(self._violation(self.rows.at_positions(idle)), kind="stable")
        dropped[idle[far[:missing]]] = True
        self.program.drop_rows(np.repeat(dropped, self.loss.kink_count))
        self.rows = self.rows.at_positions(np.flatnonzero(~dropped))

    def result(self) -> LinearMachine:
        vectors, coefficients, offset = self.best
        gap = self.primal - self.dual
        converged = gap <= max(self.gap_tol * abs(self.primal), _NOTHING * self.loss.C * self.weight)
        return LinearMachine(
            vectors=vectors,
            coefficients=coefficients,
            offset=offset,
            primal=self.primal,
            dual=self.dual,
            iterations=tuple(self.iterations),
            converged=bool(converged),
            C=self.loss.C,
            trace=self.trace,
            count=self.count,
            capped=self.capped,
            candidates=None if self.fixed is None else len(self.fixed),
            state=LinearState(self.rows, self.columns, self.program.state),
        )


def _double(X: Any) -> Float:
    return np.ascontiguousarray(X, dtype=np.float64)


def _few_digits(value: float) -> float:
    """A number without the rounding of sums, which depends on how the rows are cut: what is chosen by it should not."""
    return float(f"{value:.3g}")


def _without(sample: Sample, rows: Int) -> Sample:
    """The rows of a sample that are not among others."""
    return sample.at_positions(np.flatnonzero(~np.isin(sample.rows, rows)))


def _joined(left: Sample, right: Sample) -> Sample:
    """Both samples, one after the other."""
    names = ("rows", "X", "Y", "weights")
    return Sample(*(np.concatenate([getattr(left, name), getattr(right, name)]) for name in names))
