"""Linear programming machines out of core: columns and rows are generated, a sweep a round.

For K functions ``f = sum_j a_j k(., x_j) + b``, each of which minimises over all rows as columns::

    sum_j |a_j| + sum_i w_i loss(y_i, f(x_i))

A program of some rows S and some columns J is solved in memory (`SiftedProgram`). A sweep with its solution finds rows
outside S that violate their margin and columns outside J with a price above 1, of all functions (`PriceRows`); the next
program has them, too, and begins at the last basis. Between two sweeps, columns among some candidates in memory are
generated until none of them lowers the objective: those that the sweep has found, and some of S.

The gap is exact after every sweep, whatever was generated: f has an objective over all rows, which is an upper bound;
and dual variables that are 0 outside S, divided by the largest price of all columns, are feasible for the program of
all rows and columns, which gives a lower bound (Smola & Schoelkopf 2000, section 6.2; ALGORITHMS 13.2).

The first program has a sample of the rows, each of which stands for several: its solution is near that of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.errors import ResourceLimitError
from streamkernel.kernels import Kernel
from streamkernel.reductions import Gather, Sample, WithoutHeldOut, draw_rows
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.margins import PiecewiseLinear, PricedFunction, PriceRows, Prices, Target, violations
from streamkernel.solvers._highs import ENTRY_BYTES
from streamkernel.solvers._sifted_program import SiftedProgram, SiftedState, free_rows
from streamkernel.solvers.margin_solution import Certified, MarginIteration
from streamkernel.solvers.smo import Boxes
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

LINEAR_SWEEPS = 10  # expected sweeps of a solution
_FIRST_ROWS = 2000  # of the first program
_CANDIDATES = 2000  # rows of a program that are candidates in memory
_COLUMN_POOL = 1000  # columns that a sweep finds for each function
_AT_ONCE, _ALIKE = 50, 0.9  # columns that join at once, and the correlation from which two are alike
_WORTH = 0.1  # price above 1 of a column that joins between two sweeps, as a share of the gap
_IDLE_SHARE, _FALLEN = 0.15, 1e-12  # share of the columns that may be idle; fall of the objective that is no rounding
_MOST_LOCAL = 60  # programs between two sweeps
# Tolerances of violations and prices, as a share of that of the gap; their factor where nothing violates by more and
# the gap is too large; and the least.
_SHARE, _TIGHTER, _LEAST_TOLERANCE = 0.25, 0.1, 1e-9
_POOL_BYTES = 32 << 20
_NOTHING = 1e-15  # least objective to which a gap is compared, as a share of C for each row
_STREAM = 40


@dataclass(frozen=True)
class LinearRound(MarginIteration):
    """What a sweep has found: objectives and gap as in `MarginIteration`.

    Attributes
    ----------
    rows, columns : of the program.
    functions : number of coefficients that are not 0.
    price : the largest price of all columns.
    """

    rows: int
    columns: int
    functions: int
    price: float


@dataclass(frozen=True)
class LinearMachine(Certified):
    """A linear programming machine: ``f(x) = k(x, points) coefficients + offset``.

    Attributes
    ----------
    vectors : Sample of the n points with a coefficient, ascending by row.
    coefficients : (n,) a.
    offset : b.
    primal, dual : the least objective over all rows, which is that of the function, and the largest bound.
    iterations : one record for each sweep.
    converged : whether the gap is within the tolerance.
    C : that of the loss.
    trace, count : sum of w k(x, x), and number of rows of weight > 0.
    capped : whether the largest number of columns ended it.
    candidates : number of rows that were drawn as candidates for columns; None where all rows were.
    state : the last program, from which another C or other rows start.
    """

    vectors: Sample
    coefficients: Float
    offset: float
    primal: float
    dual: float
    iterations: tuple[LinearRound, ...]
    converged: bool
    C: float
    trace: float
    count: int
    capped: bool
    candidates: int | None
    state: LinearState

    @property
    def rows(self) -> Int:
        """(n,) row numbers of the points."""
        return self.vectors.rows


@dataclass(frozen=True)
class LinearState:
    """Rows and columns of a program, in its order, and its basis."""

    rows: Sample
    columns: Sample
    program: SiftedState


@dataclass(frozen=True)
class LinearLimits:
    """Limits of the programs of a fit.

    Attributes
    ----------
    columns : largest number of columns of one function.
    rows : largest number of rows of one function.
    candidates : number of rows that are drawn as candidates for columns; None for all rows, priced in the sweeps.
    """

    columns: int
    rows: int
    candidates: int | None = None


def solve_linear_machines(
    table: Table,
    kernel: Kernel,
    losses: Sequence[PiecewiseLinear],
    targets: Sequence[Target],
    session: Session,
    *,
    limits: LinearLimits,
    intercept: bool = True,
    gap_tol: float = 1e-3,
    folds: Folds | None = None,
    starts: Sequence[LinearMachine] | None = None,
    seed: int = 0,
    most_sweeps: int = 100,
    name: str = "",
) -> tuple[LinearMachine, ...]:
    """Solve the programs of K functions over all rows of a table, in the same sweeps.

    Parameters
    ----------
    table : rows (scaled); a row weight multiplies the loss of its row.
    kernel : symmetric Kernel; it need not be positive definite.
    losses, targets : piecewise linear loss and targets of each function; 0 is in each box of a dual variable.
    session : Session that runs and counts the sweeps.
    intercept : False for b = 0.
    gap_tol : relative gap to reach.
    folds : folds of the rows, whose table has keys: rows of validation folds are left out; None to use all.
    starts : machines to start from, of another C or of some of the rows.
    most_sweeps : largest number of sweeps with the machines.
    name : words for the names of the sweeps.

    Raises
    ------
    ResourceLimitError
        The rows with a dual variable do not fit into the programs.
    """
    functions = [
        _Function(table, kernel, loss, target, intercept, limits, gap_tol)
        for loss, target in zip(losses, targets, strict=True)
    ]
    if limits.candidates is not None and limits.candidates < table.counted:
        drawn, _ = _drawn_rows(table, session, folds, seed, (_STREAM, 1), limits.candidates, f"candidates{name}")
        for each in functions:
            each.fixed = each.with_target(drawn)
    if starts is None:
        count = min(limits.rows, _FIRST_ROWS)
        sample, times = _drawn_rows(table, session, folds, seed, (_STREAM, 0), count, f"first rows{name}")
        for each in functions:
            each.begin(sample, times)
    else:
        for each, start in zip(functions, starts, strict=True):
            each.go_on(start)
    room = _most_joining(table.width, limits.rows, len(functions))
    for number in range(1, most_sweeps + 1):
        live = [each for each in functions if not each.ended]
        for each in live:
            each.generate()
        tolerance = min(each.tolerance for each in live)
        work: AnyReduction = PriceRows(
            kernel,
            tuple(each.priced() for each in live),
            max(each.band for each in live),
            tolerance,
            tolerance,
            room,
            _COLUMN_POOL,
            seed,
            (_STREAM, 2, number),
        )
        if folds is not None:
            work = WithoutHeldOut(work, folds)
        found: Any = session.sweep(work, table, f"prices {number}{name}")
        for each, prices in zip(live, found, strict=True):
            each.join(prices)
        if all(each.ended for each in functions):
            break
    return tuple(each.result() for each in functions)


def _drawn_rows(
    table: Table, session: Session, folds: Folds | None, seed: int, stream: tuple[int, ...], count: int, name: str
) -> tuple[Sample, float]:
    """Drawn rows, in proportion to their weights, but for those in a fold; and how many rows each stands for."""
    rows = draw_rows(table, count, seed, stream).ascending().rows
    gather = Gather(rows, table.width, table.n_targets, np.dtype(table.dtype))
    sample = session.sweep(gather, table, name)
    times = max(table.weight / max(float(sample.weights.sum()), np.finfo(np.float64).tiny), 1.0)
    # All rows, but for the rounding of their sum.
    times = times if len(sample) < table.counted else 1.0
    if folds is None:
        return sample, times
    assert sample.keys is not None, "folds need a table with keys"
    return sample.at_positions(np.flatnonzero(~folds.held_out(sample.keys))), times


def _most_joining(width: int, rows: int, functions: int) -> int:
    """Number of rows of each function that may join after a sweep."""
    return max(1, min(rows, _POOL_BYTES // (functions * PriceRows.row_bytes(width))))


def linear_program_steps(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    functions: int,
    limits: LinearLimits,
    *,
    solutions: int = 1,
    kept: int = 0,
    name: str = "prices",
) -> list[Step]:
    """Costs of `solve_linear_machines`, for a plan.

    Parameters
    ----------
    functions : number of functions.
    solutions : number of solutions, one after another.
    kept : number of machines that the driver holds beside.
    """
    p, K, rows, columns = table.width, functions, min(limits.rows, table.n_rows), min(limits.columns, table.n_rows)
    steps: list[Step] = []
    for words, count in (("first rows", min(rows, _FIRST_ROWS)), ("candidates", limits.candidates)):
        if count is None or count >= table.n_rows:
            continue
        gather = Gather(unfilled(count, dtype=np.dtype(np.int64)), p, table.n_targets, np.dtype(table.dtype))
        steps.append(step_of(words, gather, table, kernel_columns=0, times=1 if words == "first rows" else solutions))
    points = columns if limits.candidates is not None else rows + columns
    numbers = unfilled(rows, dtype=np.dtype(np.int64))
    each = PricedFunction(
        unfilled(points, p), unfilled(points - columns), unfilled(columns), 0.0, loss, Target(0), numbers, numbers
    )
    room = _most_joining(p, rows, K)
    work = PriceRows(kernel, (each,) * K, 0.0, 0.0, 0.0, room, _COLUMN_POOL, 0, (0,))
    # Of each function its rows, and their kernel values with its columns; these are copied while they grow.
    sample = rows * (2 * p * table.dtype.itemsize + 8 * (12 * loss.kink_count + 8))
    values = 8 * rows * loss.kink_count * columns
    free = min(rows * loss.kink_count, 2 * free_rows(columns))
    held = K * (sample + values + ENTRY_BYTES * free * columns) + values + 16 * p * rows
    machines = kept * rows * (p * table.dtype.itemsize + 8 * (loss.kink_count + 3))
    sweep = step_of(
        name,
        work,
        table,
        kernel_columns=K * points,
        times=solutions * LINEAR_SWEEPS,
        held_bytes=held,
        rows_bytes=machines + held,
    )
    return [*steps, sweep]


@dataclass
class _Function:
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
        self.program = SiftedProgram(min(self.loss.C, 1.0), intercept=self.intercept)
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
        enough = 1.0 + max(self.tolerance, _WORTH * self.relative_gap * self.unsettled)
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
        self.band = min(self.relative_gap, 1.0) * found.loss / (self.loss.C * found.weight)
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


def _without(sample: Sample, rows: Int) -> Sample:
    """The rows of a sample that are not among others."""
    return sample.at_positions(np.flatnonzero(~np.isin(sample.rows, rows)))


def _joined(left: Sample, right: Sample) -> Sample:
    """Both samples, one after the other."""
    names = ("rows", "X", "Y", "weights")
    return Sample(*(np.concatenate([getattr(left, name), getattr(right, name)]) for name in names))
