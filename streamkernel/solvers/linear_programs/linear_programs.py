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

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel
from streamkernel.reductions import Gather, Sample, WithoutHeldOut, draw_rows
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.margins import PiecewiseLinear, PricedFunction, PriceRows, Target
from streamkernel.solvers.linear_programs._highs import ENTRY_BYTES
from streamkernel.solvers.linear_programs._linear_function import LinearFunction
from streamkernel.solvers.linear_programs._linear_machine import LinearLimits, LinearMachine
from streamkernel.solvers.linear_programs._sifted_program import free_rows
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Int

LINEAR_SWEEPS = 10  # expected sweeps of a solution
_FIRST_ROWS = 2000  # of the first program
_COLUMN_POOL = 1000  # columns that a sweep finds for each function
_POOL_BYTES = 32 << 20
_STREAM = 40


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
    fetch: Callable[[Int], Sample] | None = None,
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
    fetch : function of numbers of rows: these rows, as the table's blocks have them; None to fetch them in sweeps. The
        numbers are those of `drawn_numbers`.
    name : words for the names of the sweeps.

    Raises
    ------
    ResourceLimitError
        The rows with a dual variable do not fit into the programs.
    """
    functions = [
        LinearFunction(table, kernel, loss, target, intercept, limits, gap_tol)
        for loss, target in zip(losses, targets, strict=True)
    ]
    bounded = _candidates(table, limits, seed)
    if bounded is not None:
        drawn, _ = _drawn_rows(table, bounded, folds, fetch or _sweeping(table, session, f"candidates{name}"))
        for each in functions:
            each.fixed = each.with_target(drawn)
    if starts is None:
        numbers = _first_rows(table, limits, seed)
        sample, times = _drawn_rows(table, numbers, folds, fetch or _sweeping(table, session, f"first rows{name}"))
        for each in functions:
            each.begin(sample, times)
    else:
        for each, start in zip(functions, starts, strict=True):
            each.go_on(start)
    rooms = _pools(table, limits.rows, len(functions))
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
            *rooms,
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


def drawn_numbers(table: Table, limits: LinearLimits, seed: int) -> Int:
    """Numbers of the rows that `solve_linear_machines` draws: known before there is a kernel."""
    candidates = _candidates(table, limits, seed)
    first = _first_rows(table, limits, seed)
    return first if candidates is None else np.union1d(first, candidates)


def most_drawn(limits: LinearLimits, rows: int) -> int:
    """At most so many rows of a table of so many are drawn."""
    candidates = limits.candidates if limits.candidates is not None and limits.candidates < rows else 0
    return min(rows, min(limits.rows, _FIRST_ROWS) + candidates)


def _first_rows(table: Table, limits: LinearLimits, seed: int) -> Int:
    count = min(limits.rows, _FIRST_ROWS)
    return draw_rows(table, count, seed, (_STREAM, 0)).ascending().rows


def _candidates(table: Table, limits: LinearLimits, seed: int) -> Int | None:
    """Numbers of the rows that may be functions; None for all."""
    if limits.candidates is None or limits.candidates >= table.counted:
        return None
    return draw_rows(table, limits.candidates, seed, (_STREAM, 1)).ascending().rows


def _sweeping(table: Table, session: Session, name: str) -> Callable[[Int], Sample]:
    """The function that fetches rows in a sweep."""
    return lambda rows: session.sweep(Gather.of(rows, table), table, name)


def _drawn_rows(
    table: Table, numbers: Int, folds: Folds | None, fetch: Callable[[Int], Sample]
) -> tuple[Sample, float]:
    """Rows that were drawn by their weights, but for those in a fold; and how many rows each stands for."""
    sample = fetch(numbers)
    times = max(table.weight / max(float(sample.weights.sum()), np.finfo(np.float64).tiny), 1.0)
    # All rows, but for the rounding of their sum.
    times = times if len(sample) < table.counted else 1.0
    if folds is None:
        return sample, times
    assert sample.keys is not None, "folds need a table with keys"
    return sample.at_positions(np.flatnonzero(~folds.held_out(sample.keys))), times


def _pools(table: Table, rows: int, functions: int) -> tuple[int, int]:
    """Numbers of rows and of columns of each function that may join after a sweep: fewer where rows are wide."""
    fitting = max(1, _POOL_BYTES // (functions * PriceRows.row_bytes(table.width)))
    return min(rows, fitting), min(_COLUMN_POOL, table.n_rows, fitting)


def linear_program_step(
    table: Table,
    kernel: Kernel,
    loss: PiecewiseLinear,
    functions: int,
    limits: LinearLimits,
    *,
    solutions: int = 1,
    kept: int = 0,
    name: str = "prices",
) -> Step:
    """Costs of `solve_linear_machines` with rows that are fetched already, for a plan.

    Parameters
    ----------
    functions : number of functions.
    solutions : number of solutions, one after another.
    kept : number of machines that the driver holds beside.
    """
    p, K, rows, columns = table.width, functions, min(limits.rows, table.n_rows), min(limits.columns, table.n_rows)
    points = columns if limits.candidates is not None else rows + columns
    numbers = unfilled(rows, dtype=np.dtype(np.int64))
    each = PricedFunction(
        unfilled(points, p), unfilled(points - columns), unfilled(columns), 0.0, loss, Target(0), numbers, numbers
    )
    work = PriceRows(kernel, (each,) * K, 0.0, 0.0, 0.0, *_pools(table, rows, K), 0, (0,))
    # Of each function its rows, and their kernel values with its columns; these are copied while they grow.
    sample = rows * (2 * p * table.dtype.itemsize + 8 * (12 * loss.kink_count + 8))
    values = 8 * rows * loss.kink_count * columns
    free = min(rows * loss.kink_count, 2 * free_rows(columns))
    held = K * (sample + values + ENTRY_BYTES * free * columns) + values + 16 * p * rows
    # Copies of those that are fetched.
    drawn = most_drawn(limits, table.n_rows) * (p * table.dtype.itemsize + 8 * (table.n_targets + 2))
    machines = kept * rows * (p * table.dtype.itemsize + 8 * (loss.kink_count + 3))
    return step_of(
        name,
        work,
        table,
        kernel_columns=K * points,
        times=solutions * LINEAR_SWEEPS,
        held_bytes=held,
        rows_bytes=machines + held + drawn,
    )
