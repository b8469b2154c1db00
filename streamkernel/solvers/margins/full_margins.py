"""Support vector machines on the full kernel matrix, out of core: exact where the support vectors fit into memory.

A working set of rows is solved in memory (`solve_smo`). A sweep with its machine finds the rows outside that violate
the margin (`reductions.margins.Violators`); the worst of them join, and where there is no room, rows whose dual
variables are 0 leave. The machine is that of all rows when none violates (chunking: Boser, Guyon & Vapnik 1992;
Osuna, Freund & Girosi 1997; Tresp 2001, section 2.5; ALGORITHMS 5.3).

The dual variables of all rows outside are 0, so that the dual objective of the working set is one of all rows; the
sweep gives the loss of all rows. The gap of both is exact after every sweep.

It ends. The dual objective never falls, because each working set starts from the variables before, and a row leaves
only after the objective has risen since the last row left. Between two of these times the working set grows in every
sweep, by one row at least; and the working sets at these times differ, because their objectives do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan, step_of
from streamkernel.errors import ResourceLimitError, warn_user
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.reductions import Gather, Sample, WithoutHeldOut, uniform_rows
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.margins import PiecewiseLinear, Target, ViolatingRows, Violators
from streamkernel.solvers.margins.margin_solution import Certified, MarginIteration
from streamkernel.solvers.margins.smo import CACHE_BYTES, Boxes, SMOSolution, check_problem, solve_boxes
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Bool, Float, Int
from streamkernel.wording import option

# Sweeps with a machine: on spambase, a9a and covtype with up to 10,000 rows 3 to 6, for C from 1 to 100; with more
# support vectors one for each time that the working set doubles.
FULL_SWEEPS = 8
_FIRST_ROWS = 1000
# Violators of half the tolerance from b: then no pair of all rows violates by more. The working set is solved further,
# so that a violator changes more than b.
_OUTSIDE, _INSIDE = 0.5, 0.25
# Where a gap is to be reached: the first tolerance, as a multiple of it and at most, and its factor where no row
# violates by more and the gap is too large.
_TOLERANCE_OF_GAP, _MOST_TOLERANCE, _TIGHTER = 10.0, 1e-2, 0.2
# Least objective to which a gap is compared, as a share of C for each row: a tube around all rows has the minimum 0.
_NOTHING = 1e-15
_RISEN = 1e-13  # share of the dual objective that is no rounding
_MOST_STEPS = 100_000_000  # of one working set
_POOL_BYTES = 32 << 20  # of the rows that may join after one sweep
_PRODUCT_ROWS = 384  # of the kernel matrix, that the solver of the working set computes at once


@dataclass(frozen=True)
class SupportVectorSolution(Certified):
    """A machine of support vectors: ``f(x) = k(x, points) coefficients + offset``.

    Attributes
    ----------
    vectors : Sample of the n support vectors, ascending by row: scaled, in the table's dtype, each with its target in
        the units of the solver.
    duals : (kinks, n) dual variables.
    offset : b.
    primal, dual : the objectives over all rows.
    iterations : one record for each sweep with a machine; its gap is that of this machine.
    steps : number of steps of all working sets.
    converged : whether the gap, or the violation of a pair of all rows, is within the tolerance.
    C : that of the loss.
    trace, count : sum of w k(x, x), and number of rows of weight > 0.
    """

    vectors: Sample
    duals: Float
    offset: float
    primal: float
    dual: float
    iterations: tuple[MarginIteration, ...]
    steps: int
    converged: bool
    C: float
    trace: float
    count: int

    @property
    def rows(self) -> Int:
        """(n,) row numbers of the support vectors."""
        return self.vectors.rows

    @property
    def points(self) -> Float:
        """(n, p) the support vectors, float64."""
        return np.ascontiguousarray(self.vectors.X, dtype=np.float64)

    @property
    def coefficients(self) -> Float:
        """(n,) c."""
        return np.asarray(self.duals.sum(axis=0))


def working_set_bytes(table: Table, kernel: Kernel, loss: PiecewiseLinear, rows: int) -> int:
    """Bytes of a working set of so many rows on the driver, with its rows of the kernel matrix."""
    p = table.width
    # Samples before and after others join, the pool, the rows in float64 and packed; variables, boxes and values.
    own = 3 * (p * table.dtype.itemsize + 8 * (table.n_targets + 3)) + 8 * p * (2 + 4 * kernel.formulas)
    own += 8 * (12 * loss.kink_count + 8 + min(rows, _PRODUCT_ROWS))
    return int(rows * own + max(16 * rows, min(8 * rows**2, CACHE_BYTES)))


def full_margin_steps(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    n: int,
    *,
    solutions: int = 1,
    kept: int = 0,
    first_rows: int = _FIRST_ROWS,
    sweeps: int = FULL_SWEEPS,
    name: str = "violators",
) -> list[Step]:
    """Costs of `solve_full_margins`, for a plan.

    Parameters
    ----------
    n : largest number of rows of the working set.
    solutions : number of problems, one after another.
    kept : number of machines that the driver holds beside.
    sweeps : expected number of sweeps of one problem; their true number depends on the rows.
    """
    first, p = min(n, first_rows, table.n_rows), table.width
    gather = Gather(unfilled(first, dtype=np.dtype(np.int64)), p, table.n_targets, np.dtype(table.dtype))
    start = step_of("first working set", gather, table, kernel_columns=0, times=solutions)
    target = Target(0) if table.n_targets else None
    rows = unfilled(n, dtype=np.dtype(np.int64))
    work = Violators(
        kernel, unfilled(n, p), unfilled(n), 0.0, loss, target, rows, 0.0, min(n, _most_joining(p))
    )  # fmt: skip
    machines = kept * n * (p * table.dtype.itemsize + 8 * (loss.kink_count + 3))
    held = working_set_bytes(table, kernel, loss, n)
    # The working set is there during the sweeps, too; of the memory of its solution the rows and variables are.
    rows_bytes = machines + n * (2 * p * table.dtype.itemsize + 8 * (p + 4 * loss.kink_count + 8))
    sweep = step_of(
        name, work, table, kernel_columns=n, times=solutions * sweeps, held_bytes=held, rows_bytes=rows_bytes
    )
    return [start, sweep]


def plan_full_margins(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    machine: Machine,
    *,
    n_components: int | None = None,
    first_rows: int = _FIRST_ROWS,
    sweeps: int = FULL_SWEEPS,
) -> Plan:
    """Plan of `solve_full_margins`: sweeps, bytes, operations and memory; parameters as there and in its steps."""
    n = min(table.n_rows, n_components or table.n_rows)
    steps = full_margin_steps(table, kernel, loss, n, first_rows=first_rows, sweeps=sweeps)
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=0, kernel=kernel)


def _most_joining(width: int) -> int:
    return max(1, _POOL_BYTES // Violators.row_bytes(width))


def solve_full_margins(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    session: Session,
    *,
    target: Target | None = None,
    intercept: bool = True,
    n_components: int | None = None,
    tolerance: float = 1e-3,
    gap_tol: float | None = None,
    folds: Folds | None = None,
    start: SupportVectorSolution | None = None,
    first_rows: int = _FIRST_ROWS,
    seed: int = 0,
    most_sweeps: int = 200,
    name: str = "",
) -> SupportVectorSolution:
    """Solve one problem over all rows of a table.

    Parameters
    ----------
    table : rows (scaled); a row weight multiplies the loss of its row.
    kernel : positive semi-definite Kernel.
    loss : piecewise linear loss for which 0 is an end of each box, or all rows are support vectors.
    session : Session that runs and counts the sweeps.
    target : the targets; None for a loss of f alone, that of one class.
    intercept : False for b = 0.
    n_components : largest number of rows of the working set, which holds the support vectors; None for all rows.
        `plan_full_margins` tells its memory.
    tolerance : largest violation of a pair of rows, as in `solve_smo`.
    gap_tol : relative duality gap to reach instead: the tolerance is made smaller until it is.
    folds : folds of the rows, whose table has keys: rows of validation folds are left out; None to use all.
    start : machine to start from, of another C or of some of the rows.
    first_rows, seed : without a start the first working set is so many rows, drawn in proportion to their weights.
    most_sweeps : largest number of sweeps with a machine; without convergence a warning is issued, but for a gap.
    name : words for the names of the sweeps, of several machines.

    Raises
    ------
    ResourceLimitError
        The support vectors do not fit into the working set.
    ParameterError, DataError
        As `solve_smo`.
    """
    tolerance = checked_number("tolerance", tolerance)
    most_sweeps, first = checked_integer("most_sweeps", most_sweeps), checked_integer("first_rows", first_rows, 2)
    capacity = table.n_rows if n_components is None else checked_integer("n_components", n_components, 2)
    kernel.check_features(table.width)
    if gap_tol is not None:
        gap_tol = checked_number("gap_tol", gap_tol)
        tolerance = min(_TOLERANCE_OF_GAP * gap_tol, _MOST_TOLERANCE)
    run = _Run(table, kernel, loss, session, target, intercept, min(capacity, table.n_rows), folds, name, tolerance)
    run.begin(first, seed, start)
    converged = False
    for number in range(1, most_sweeps + 1):
        run.solve()
        found = run.look(number)
        converged = found.count == 0 and run.solution.converged if gap_tol is None else run.within(gap_tol)
        if converged or number == most_sweeps:
            break
        if found.count:
            run.join(found)
        elif gap_tol is None or not run.solution.converged:
            break
        else:
            run.tolerance *= _TIGHTER
    if not converged and gap_tol is None:
        warn_user(
            f"{len(run.iterations)} sweeps ended with rows that violate the margin by more than half the tolerance of "
            f"{tolerance:g}; the relative duality gap is {run.result(False).relative_gap:.3g}; allow more sweeps, or a "
            "larger tolerance"
        )
    return run.result(converged)


@dataclass
class _Run:
    """The working set and its machine."""

    table: Table
    kernel: Kernel
    loss: PiecewiseLinear
    session: Session
    target: Target | None
    intercept: bool
    capacity: int
    folds: Folds | None
    name: str
    tolerance: float
    iterations: list[MarginIteration] = field(default_factory=list)
    steps: int = 0
    left_at: float = -np.inf  # dual objective when rows left last

    def begin(self, count: int, seed: int, start: SupportVectorSolution | None) -> None:
        """Take the support vectors of the start, or draw rows."""
        self.duals: Float | None = None
        if start is None:
            self.sample = self._drawn(count, seed)
            if not self._boxes().reaches() and len(self.sample) == self.capacity < self.table.n_rows:
                raise ResourceLimitError(
                    f"a one-class machine has at least {int(1.0 / self.loss.C)} support vectors here, and "
                    f"{option('n_components')} is {self.capacity}; give more, or a smaller nu"
                )
        else:
            self.sample = start.vectors
            # Variables at an end of their boxes stay there.
            self.duals = start.duals * (self.loss.C / start.C)
        check_problem(self.kernel, self._boxes())

    def _drawn(self, count: int, seed: int) -> Sample:
        """The first working set, which must have room for the sum of the dual variables."""
        table, slope = self.table, self.loss.constant_slope
        if slope and self.intercept:
            # Each row holds at most its weight: drawn rows are of all weights, and heavier ones more often.
            count = max(count, int(1.1 * slope / (self.loss.C * table.weight) * table.n_rows) + 1)
        rows = np.sort(uniform_rows(table, min(count, self.capacity), seed, (0,)))
        gather = Gather(rows, table.width, table.n_targets, np.dtype(table.dtype))
        sample = self.session.sweep(gather, table, self._named("first working set"))
        if self.folds is not None:
            assert sample.keys is not None, "folds need a table with keys"
            sample = sample.at_positions(np.flatnonzero(~self.folds.held_out(sample.keys)))
        y = np.zeros(len(sample)) if self.target is None else self.target.of(sample.Y)
        return Sample(sample.rows, sample.X, y[:, None], sample.weights)

    def _named(self, sweep: str) -> str:
        return f"{sweep}{self.name}"

    def _boxes(self) -> Boxes:
        y = np.ascontiguousarray(self.sample.Y[:, 0])
        return Boxes.of(self.loss, y, self.sample.weights, intercept=self.intercept)

    @property
    def points(self) -> Float:
        return np.ascontiguousarray(self.sample.X, dtype=np.float64)

    def solve(self) -> None:
        """Solve the working set, from the variables before."""
        if len(self.sample):
            inside = _INSIDE * self.tolerance
            self.solution: SMOSolution = solve_boxes(
                self.kernel, self.points, self._boxes(), self.duals, inside, CACHE_BYTES, _MOST_STEPS
            )
        else:
            # No row was drawn outside the validation fold.
            self.solution = SMOSolution(np.zeros((self.loss.kink_count, 0)), 0.0, 0.0, 0.0, 0.0, 0, True)
        self.duals = self.solution.duals
        self.steps += self.solution.iterations

    def look(self, number: int) -> ViolatingRows:
        """Sweep with the present machine."""
        solution = self.solution
        # As many rows may join as there are: the working set doubles, until nearly all support vectors are in it.
        room = min(max(len(self.sample), _FIRST_ROWS), self.capacity - len(solution.vectors))
        machine: AnyReduction = self._machine(max(1, min(room, _most_joining(self.table.width))))
        if self.folds is not None:
            machine = WithoutHeldOut(machine, self.folds)
        found: Any = self.session.sweep(machine, self.table, self._named(f"violators {number}"))
        norm = float((self._boxes().targets * solution.duals).sum()) - solution.dual
        slope = self.loss.constant_slope if self.intercept else 0.0
        primal = norm + found.loss + slope * solution.offset
        self.iterations.append(MarginIteration(primal, solution.dual, primal - solution.dual))
        self.weight, self.trace, self.count = found.weight, found.trace, found.rows
        return found  # type: ignore[no-any-return]  # the result of `Violators`, with or without folds

    def within(self, gap_tol: float) -> bool:
        """Whether the relative duality gap is small enough."""
        last = self.iterations[-1]
        return bool(last.gap <= max(gap_tol * abs(last.primal), _NOTHING * self.loss.C * self.weight))

    def join(self, found: ViolatingRows) -> None:
        """Let violators into the working set; idle rows leave where there is no room."""
        missing = len(self.sample) + len(found.sample) - self.capacity
        dual = self.solution.dual
        if missing > 0 and dual > self.left_at + _RISEN * abs(dual):
            stay = np.ones(len(self.sample), dtype=bool)
            stay[self._idle()[:missing]] = False
            if not stay.all():
                self.left_at = dual
            self._keep(stay)
        room = self.capacity - len(self.sample)
        if room == 0:
            raise ResourceLimitError(
                f"{len(self.solution.vectors)} support vectors fill the {self.capacity} rows of the working set, and "
                f"{found.count} rows outside violate the margin; give a larger {option('n_components')}, change C (or "
                f"epsilon, nu) so that fewer rows are inside the margin, or take {option('machine', 'reduced')}"
            )
        joining = np.sort(np.argsort(-found.worst, kind="stable")[:room])
        fresh = found.sample.at_positions(joining)
        assert self.duals is not None
        order = np.argsort(np.concatenate([self.sample.rows, fresh.rows]))
        zeros = np.zeros((len(self.duals), len(fresh)))
        self.duals = np.ascontiguousarray(np.concatenate([self.duals, zeros], axis=1)[:, order])
        self.sample = self.sample.merged(fresh)

    def _idle(self) -> Int:
        """Rows whose variables are 0, those farthest from a violation first."""
        assert self.duals is not None
        boxes, idle = self._boxes(), np.flatnonzero(~(self.duals != 0.0).any(axis=0))
        v = boxes.targets[:, idle] - self._machine(0).values(self.sample.X[idle])
        violation = np.maximum(
            np.where(boxes.high[:, idle] > 0.0, v, -np.inf), np.where(boxes.low[:, idle] < 0.0, -v, -np.inf)
        )
        return idle[np.argsort(violation.max(axis=0), kind="stable")]

    def _keep(self, stay: Bool) -> None:
        assert self.duals is not None
        self.sample, self.duals = self.sample.at_positions(np.flatnonzero(stay)), self.duals[:, stay]

    def _machine(self, pool: int) -> Violators:
        """The sweep with the present machine."""
        solution, some = self.solution, self.solution.vectors
        return Violators(
            self.kernel, self.points[some], solution.coefficients[some], solution.offset, self.loss, self.target,
            self.sample.rows, _OUTSIDE * self.tolerance, pool,
        )  # fmt: skip

    def result(self, converged: bool) -> SupportVectorSolution:
        solution, some, last = self.solution, self.solution.vectors, self.iterations[-1]
        return SupportVectorSolution(
            self.sample.at_positions(some), np.ascontiguousarray(solution.duals[:, some]), solution.offset,
            last.primal, last.dual, tuple(self.iterations), self.steps, converged, self.loss.C, self.trace, self.count,
        )  # fmt: skip
