"""Solutions of large margin problems along a path of C: on a sample, without a validation fold, and on all rows.

1. On a sample of rows, with the first functions of the basis, all values of C are solved for in memory. They give the
   starts of the next solutions, and where C is searched for, its neighbourhood.
2. The values of C near the best one are solved for in the same sweeps, on the rows outside a validation fold; one more
   sweep gives their errors on the fold. Where the best value is at an end, the path goes on there.
3. The best one begins at its solution of step 2 and is solved for on all rows.

ALGORITHMS 20 and 22.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.engine import Session
from streamkernel.errors import DataError
from streamkernel.fits.margins._margin_problems import MarginProblems, Solutions
from streamkernel.models.certificate import path_of
from streamkernel.reductions import Sample, WithoutHeldOut
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.margins import TraceSums
from streamkernel.reductions.scores import HeldOutErrors, MarginErrors
from streamkernel.reductions.sums import Features
from streamkernel.settings.gap import GapSettings
from streamkernel.solvers import (
    Certified,
    MarginStart,
    warn_of_gap,
)
from streamkernel.table import Folds, Table, open_table
from streamkernel.type_aliases import Float
from streamkernel.wording import option

SAMPLE_FUNCTIONS = 300  # functions of the basis on the sample
PATH_GAP, _SAMPLE_GAP = 1e-3, 1e-2  # gaps from which errors on held-out rows change by less than their standard error
PATH_SWEEPS, _SAMPLE_SWEEPS = 40, 20
_AT_ONCE, _FURTHER = 3, 2  # values of C around the best of the sample, and those beyond the end of the path
_LEAST_C, _LARGEST_C = 1e-4, 1e5
_RATIO = 10.0**0.5


@dataclass(frozen=True)
class PathErrors:
    """Errors on the validation fold along C, in ascending order."""

    costs: tuple[float, ...]
    errors: Float
    errors_se: Float
    gaps: tuple[float, ...]
    rows: int
    effective: float


@dataclass(frozen=True)
class MarginFound:
    """The result of a search.

    Attributes
    ----------
    C : the chosen value.
    method : name of the solver.
    solutions : of the K functions, on all rows.
    coefficients : (K, n + 1), the last of each is the constant.
    residual_path : (n + 1,) residual traces of the basis.
    trace, count : sum of w k(x, x), and number of rows of weight > 0.
    path : errors along C; None without a validation fold.
    histogram : of the values or residuals on the fold, of K functions that were fitted without it; see `MarginErrors`.
    """

    C: float
    method: str
    solutions: tuple[Certified, ...]
    coefficients: Float
    residual_path: Float
    trace: float
    count: int
    path: PathErrors | None
    histogram: Float | None


def path_costs(costs: tuple[float, ...], settings: GapSettings) -> tuple[float, ...]:
    """The values of C that are solved for on the rows outside the fold, at first."""
    return costs[:_AT_ONCE] if settings.searches else costs


def find_margins(
    table: Table, problems: MarginProblems, session: Session, folds: Folds | None, sample: Sample | None
) -> MarginFound:
    """Solve for C that is given, or for the one of least error on a validation fold.

    Parameters
    ----------
    table : rows, scaled; with keys where there are folds.
    folds : one validation fold; None where C is one number and no held-out rows are needed.
    sample : rows on which solutions are found first (`uniform_sample`); None to begin with all rows.
    """
    settings, costs = problems.settings, problems.settings.costs(table)
    traces: list[TraceSums] = []

    def on_all(reduction: AnyReduction, name: str) -> Any:
        sums = session.sweep(reduction, table, name)
        if sums.trace is not None:
            traces.append(sums.trace)
        return sums

    started = None if sample is None else _on_sample(sample, table, problems, session, folds, costs)
    del sample
    if folds is None:
        C, path, histogram = costs[0], None, None
        starts = None if started is None else started.starts[C]
    else:
        assert started is not None
        first = started.around_best(costs) if settings.searches else costs
        C, path, histogram, starts = _by_fold(table, problems, session, folds, first, started.starts)
    [solutions] = problems.solve(
        on_all,
        [C],
        starts,
        tolerance=settings.gap_tol,
        most_sweeps=settings.max_sweeps,
        weight=table.weight,
        certificate=True,
    )
    warn_of_gap(solutions, settings.gap_tol, settings.easier)
    # The sums are the same in every sweep that has them.
    trace = traces[-1]
    return MarginFound(
        C,
        problems.method,
        solutions,
        np.array([solution.coefficients for solution in solutions]),
        path_of(trace.trace, trace.squares),
        trace.trace,
        trace.count,
        path,
        histogram,
    )


@dataclass(frozen=True)
class _OnSample:
    """Starts for each C by the solutions on a sample, and the errors of these on its held-out rows, if any."""

    starts: dict[float, list[MarginStart]]
    errors: Float | None

    def around_best(self, costs: tuple[float, ...]) -> tuple[float, ...]:
        """The values of C next to the best one on the sample; the middle ones where none was held out."""
        best = len(costs) // 2 if self.errors is None else int(np.argmin(self.errors))
        first = min(max(best - _AT_ONCE // 2, 0), max(len(costs) - _AT_ONCE, 0))
        return costs[first : first + _AT_ONCE]


def _on_sample(
    sample: Sample,
    table: Table,
    problems: MarginProblems,
    session: Session,
    folds: Folds | None,
    costs: tuple[float, ...],
) -> _OnSample:
    """Solve on a sample of rows, with the first functions of the basis."""
    basis = problems.features.basis
    assert basis is not None
    leading = basis.leading(min(len(basis), SAMPLE_FUNCTIONS))
    small = MarginProblems(Features.of_basis(leading), problems.settings, problems.targets, problems.classes)
    # Each row stands for so many of the table: C then means the same.
    times = table.weight / float(sample.weights.sum())
    out = np.zeros(len(sample), dtype=bool)
    if folds is not None:
        assert sample.keys is not None, "folds need a table with keys"
        out = folds.held_out(sample.keys) & (sample.weights > 0.0)
        out &= not out.all()
    trained = _in_memory(sample, ~out, times)
    solutions = small.solve(
        lambda reduction, name: session.local(reduction, trained),
        costs,
        None,
        tolerance=_SAMPLE_GAP,
        most_sweeps=_SAMPLE_SWEEPS,
        weight=table.weight,
        in_memory=True,
    )
    errors: Float | None = None
    if out.any():
        found = session.local(small.errors(costs, solutions, None), _in_memory(sample, out, times))
        # Losses break the ties of wrong classes: a small sample has many.
        errors = found.errors + 1e-6 * found.losses / max(float(found.losses.max()), np.finfo(np.float64).tiny)
        best = int(np.argmin(errors))
        session.progress.note(f"C near {costs[best]:.3g} on {len(sample)} sampled rows")
    starts = {C: [solution.start for solution in each] for C, each in zip(costs, solutions, strict=True)}
    return _OnSample(starts, errors)


def _in_memory(sample: Sample, chosen: Float, times: float) -> Table:
    part = sample.at_positions(np.flatnonzero(chosen))
    Y = part.Y if part.Y.shape[1] else None
    return open_table(np.ascontiguousarray(part.X), Y, weights=times * part.weights)


def _by_fold(
    table: Table,
    problems: MarginProblems,
    session: Session,
    folds: Folds,
    costs: tuple[float, ...],
    starts: dict[float, list[MarginStart]],
) -> tuple[float, PathErrors, Float, list[MarginStart]]:
    """C of least error on the validation fold, the errors along C, and histogram and start of this solution."""
    solved: dict[float, Solutions] = {}
    errors: dict[float, tuple[MarginErrors, int]] = {}

    def without_fold(reduction: AnyReduction, name: str) -> Any:
        sums = session.sweep(WithoutHeldOut(reduction, folds), table, f"{name} without fold")
        if sums.trace is not None:
            check_trained(sums.trace.count, problems.settings)
        return sums

    todo = costs
    while todo:
        given = [start for C in todo for start in starts[C]]
        found = problems.solve(
            without_fold,
            todo,
            given,
            tolerance=PATH_GAP,
            most_sweeps=PATH_SWEEPS,
            weight=table.weight,
            # Its sums count the rows, of which there must be some.
            certificate=True,
        )
        scores = held_out_errors(problems.errors(todo, found, folds), table, session, problems.settings)
        solved |= dict(zip(todo, found, strict=True))
        errors |= {C: (scores, position) for position, C in enumerate(todo)}
        best = min(sorted(solved), key=lambda C: _error(errors[C]))
        todo = _beyond(best, tuple(sorted(solved))) if problems.settings.searches else ()
        # Where the path goes on, it starts from its end.
        starts |= {C: [solution.start for solution in solved[best]] for C in todo if C not in starts}
    scores, position = errors[best]
    path = path_errors({C: max(each.relative_gap for each in solved[C]) for C in solved}, errors, best, session)
    return best, path, scores.histogram[position], [solution.start for solution in solved[best]]


def check_trained(count: int, settings: GapSettings) -> None:
    """Raise `DataError` where no row of weight > 0 is outside the validation fold."""
    if count == 0:
        raise DataError(
            "all rows of weight > 0 are in the validation fold, by which C is chosen: they are too few, or equal; give "
            f"{_without_fold(settings)}"
        )


def _without_fold(settings: GapSettings) -> str:
    """What needs no held-out rows, in words."""
    further = f" and {option('calibration', 'none')}" if hasattr(settings, "calibration") else ""
    return f"{option('C')} one number{further}"


def held_out_errors(errors: HeldOutErrors, table: Table, session: Session, settings: GapSettings) -> MarginErrors:
    """The errors on a validation fold.

    Raises
    ------
    DataError
        No row counts in it.
    """
    scores = session.sweep(errors, table, "held-out errors")
    if scores.rows == 0:
        raise DataError(
            f"no row of weight > 0 is in the validation fold, by which C is chosen; give {_without_fold(settings)}"
        )
    return scores


def path_errors(
    gaps: dict[float, float], errors: dict[float, tuple[MarginErrors, int]], best: float, session: Session
) -> PathErrors:
    """Errors along C; a note tells that of the best one.

    Parameters
    ----------
    gaps : largest relative duality gap for each C.
    errors : errors for each C, with its position in them.
    """
    tried = tuple(sorted(gaps))
    scores, _ = errors[best]
    se = [float(errors[C][0].errors_se[errors[C][1]]) for C in tried]
    path = PathErrors(
        costs=tried,
        errors=np.array([_error(errors[C]) for C in tried]),
        errors_se=np.array(se),
        gaps=tuple(gaps[C] for C in tried),
        rows=scores.rows,
        effective=scores.effective,
    )
    at = tried.index(best)
    session.progress.note(f"C {best:.4g}: held-out error {path.errors[at]:.4g} +- {se[at]:.2g} on {path.rows} rows")
    return path


def _error(at: tuple[MarginErrors, int]) -> float:
    return float(at[0].errors[at[1]])


def _beyond(best: float, tried: tuple[float, ...]) -> tuple[float, ...]:
    """Further values of C where the best one is the smallest or largest that was tried."""
    if best == tried[-1]:
        further = tuple(best * _RATIO**step for step in range(1, _FURTHER + 1))
    elif best == tried[0]:
        further = tuple(best / _RATIO**step for step in range(_FURTHER, 0, -1))
    else:
        return ()
    return tuple(C for C in further if _LEAST_C <= C <= _LARGEST_C)
