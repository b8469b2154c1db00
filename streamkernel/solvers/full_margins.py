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

import numpy as np

from streamkernel.engine import Session, format_bytes
from streamkernel.errors import ParameterError, ResourceLimitError, warn_user
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.reductions import Gather, Sample, uniform_rows
from streamkernel.reductions.margins import PiecewiseLinear, ViolatingRows, Violators
from streamkernel.solvers.margin_solution import MarginIteration
from streamkernel.solvers.smo import Boxes, SMOSolution, check_problem, solve_boxes
from streamkernel.table import Table
from streamkernel.type_aliases import Bool, Float, Int
from streamkernel.wording import estimator, option

_FIRST_ROWS = 1000
# Violators of half the tolerance from b: then no pair of all rows violates by more. The working set is solved further,
# so that a violator changes more than b.
_OUTSIDE, _INSIDE = 0.5, 0.25
_RISEN = 1e-13  # share of the dual objective that is no rounding
_MOST_STEPS = 100_000_000  # of one working set


@dataclass(frozen=True)
class SupportVectorSolution:
    """A machine of support vectors: ``f(x) = k(x, points) coefficients + offset``.

    Attributes
    ----------
    rows : (n,) row numbers of the support vectors, ascending.
    points : (n, p) these rows, scaled, float64.
    coefficients : (n,) c.
    offset : b.
    primal, dual : the objectives over all rows.
    iterations : one record for each sweep with a machine.
    steps : number of steps of all working sets.
    converged : whether no pair of all rows violates by more than the tolerance.
    """

    rows: Int
    points: Float
    coefficients: Float
    offset: float
    primal: float
    dual: float
    iterations: tuple[MarginIteration, ...]
    steps: int
    converged: bool

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from the minimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the primal objective's size."""
        return self.gap / abs(self.primal) if self.primal != 0.0 else 0.0


def working_rows(table: Table, kernel: Kernel, loss: PiecewiseLinear, memory_limit: int) -> int:
    """Most rows of a working set: half of the memory is for them, the other half for rows of the kernel matrix."""
    p = table.width
    # Samples before and after others join, the pool, the rows in float64 and packed; variables, boxes and values.
    own = 3 * (p * table.dtype.itemsize + 8 * (table.n_targets + 3)) + 8 * p * (2 + 4 * kernel.formulas)
    return int(memory_limit // 2 // (own + 8 * (12 * loss.kink_count + 8)))


def solve_full_margins(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    session: Session,
    *,
    column: int | None = 0,
    nu: float | None = None,
    tolerance: float = 1e-3,
    memory_limit: int = 1 << 30,
    first_rows: int = _FIRST_ROWS,
    seed: int = 0,
    most_sweeps: int = 200,
) -> SupportVectorSolution:
    """Solve one problem over all rows of a table.

    Parameters
    ----------
    table : rows (scaled); a row weight multiplies the loss of its row.
    kernel : positive semi-definite Kernel.
    loss : piecewise linear loss for which 0 is an end of each box, or all rows are support vectors.
    session : Session that runs and counts the sweeps.
    column : column of Y with the targets; None for targets of 0.
    nu : share of the rows outside, of the one-class machine, with ``Below(1.0)`` and ``column=None``; None for others.
    tolerance : largest violation of a pair of rows, as in `solve_smo`.
    memory_limit : bytes of the working set on the driver, with its rows of the kernel matrix.
    first_rows, seed : the first working set is so many rows, drawn in proportion to their weights.
    most_sweeps : largest number of sweeps with a machine; without convergence a warning is issued.

    Raises
    ------
    ResourceLimitError
        The support vectors do not fit into the memory.
    ParameterError, DataError
        As `solve_smo`.
    """
    tolerance, limit = checked_number("tolerance", tolerance), checked_integer("memory_limit", memory_limit)
    most_sweeps, first = checked_integer("most_sweeps", most_sweeps), checked_integer("first_rows", first_rows, 2)
    kernel.check_features(table.width)
    total = 0.0
    if nu is not None:
        if checked_number("nu", nu) > 1.0:
            raise ParameterError(f"nu = {nu!r} is out of range; give a share between 0 and 1", value=nu)
        total = float(nu) * table.weight * loss.C
    run = _Run(table, kernel, loss, session, column, total, tolerance, limit)
    run.begin(first, seed)
    converged = False
    for number in range(1, most_sweeps + 1):
        run.solve()
        found = run.look(number)
        converged = found.count == 0 and run.solution.converged
        if found.count == 0 or number == most_sweeps:
            break
        run.join(found)
    if not converged:
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
    column: int | None
    total: float
    tolerance: float
    limit: int
    iterations: list[MarginIteration] = field(default_factory=list)
    steps: int = 0
    left_at: float = -np.inf  # dual objective when rows left last

    def __post_init__(self) -> None:
        self.capacity = working_rows(self.table, self.kernel, self.loss, self.limit)
        if self.capacity < 2:
            raise ResourceLimitError(
                f"{option('memory_limit')} of {format_bytes(self.limit)} has no room for two rows of "
                f"{self.table.width} features; give more"
            )

    def begin(self, count: int, seed: int) -> None:
        """Draw the first working set, which must have room for the sum of the dual variables."""
        table = self.table
        if self.total:
            # Each row holds at most its weight: drawn rows are of all weights, and heavier ones more often.
            count = max(count, int(1.1 * self.total / (self.loss.C * table.weight) * table.n_rows) + 1)
        count = min(count, self.capacity)
        rows = np.sort(uniform_rows(table, count, seed, (0,)))
        gather = Gather(rows, table.width, table.n_targets, np.dtype(table.dtype))
        sample = self.session.sweep(gather, table, "first working set")
        y = np.zeros((len(sample), 1)) if self.column is None else sample.Y[:, self.column, None]
        self.sample = Sample(sample.rows, sample.X, y, sample.weights)
        self.duals: Float | None = None
        boxes = self._boxes()
        if not boxes.reaches() and count == self.capacity < table.n_rows:
            raise ResourceLimitError(
                f"a one-class machine has at least {int(self.total / self.loss.C)} support vectors here, and "
                f"{format_bytes(self.limit)} of {option('memory_limit')} hold {self.capacity} rows of {table.width} "
                "features; give more memory or a smaller nu"
            )
        check_problem(self.kernel, boxes)

    def _boxes(self) -> Boxes:
        return Boxes.of(self.loss, np.ascontiguousarray(self.sample.Y[:, 0]), self.sample.weights, self.total)

    @property
    def points(self) -> Float:
        return np.ascontiguousarray(self.sample.X, dtype=np.float64)

    def solve(self) -> None:
        """Solve the working set, from the variables before."""
        self.solution: SMOSolution = solve_boxes(
            self.kernel, self.points, self._boxes(), self.duals, _INSIDE * self.tolerance, self.limit // 2, _MOST_STEPS
        )
        self.duals = self.solution.duals
        self.steps += self.solution.iterations

    def look(self, number: int) -> ViolatingRows:
        """Sweep with the present machine."""
        solution = self.solution
        # As many rows may join as there are: the working set doubles, until nearly all support vectors are in it.
        pool = max(1, min(len(self.sample), self.capacity - len(solution.vectors)))
        found = self.session.sweep(self._machine(pool), self.table, f"violators {number}")
        norm = float((self._boxes().targets * solution.duals).sum()) - solution.dual
        primal = norm + found.loss + self.total * solution.offset
        self.iterations.append(MarginIteration(primal, solution.dual, primal - solution.dual))
        return found

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
                f"{len(self.solution.vectors)} support vectors of {self.table.width} features fill the "
                f"{self.capacity} rows that {format_bytes(self.limit)} of {option('memory_limit')} hold, and "
                f"{found.count} rows outside violate the margin; give more memory, change C (or epsilon, nu) so that "
                "fewer rows are inside the margin, or fit the machine on a basis "
                f"({estimator('KernelSVC')}, {estimator('KernelSVR')})"
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
            self.kernel, self.points[some], solution.coefficients[some], solution.offset, self.loss, self.column,
            self.sample.rows, _OUTSIDE * self.tolerance, pool,
        )  # fmt: skip

    def result(self, converged: bool) -> SupportVectorSolution:
        solution, some, last = self.solution, self.solution.vectors, self.iterations[-1]
        return SupportVectorSolution(
            self.sample.rows[some], self.points[some], solution.coefficients[some], solution.offset, last.primal,
            last.dual, tuple(self.iterations), self.steps, converged,
        )  # fmt: skip
