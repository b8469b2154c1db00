"""Coefficients of kernel ridge by conjugate gradients, with a given alpha or with one by errors on a held-out fold."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Session, Step, driver_step
from streamkernel.errors import ParameterError, warn_user
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.fits.steps.plan_steps import points_bytes
from streamkernel.fits.steps.validation import left_out_rows, validation_record, words_of
from streamkernel.models.ridge import falkon_arrays, falkon_record
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import NormalEquations, RidgeSums
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, unfilled_basis
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers import (
    FalkonFolds,
    FalkonSolution,
    FalkonSystem,
    alpha_of_sample,
    falkon_steps,
    features_in_memory,
    functions_of_sample,
)
from streamkernel.table import Folds, Table, open_table
from streamkernel.type_aliases import AnyArray, Fields, Float
from streamkernel.wording import option

# Largest root mean square error of fitted values without a warning, in deviations of the target.
_ENOUGH = 1e-3


class Solved(NamedTuple):
    """Residual traces (n + 1,) of the basis, and what a model stores of the solution, which depends on the solver."""

    residual_path: Float
    arrays: dict[str, AnyArray]
    fields: Fields


def by_iterations(
    chosen: Chosen, settings: RidgeSettings, session: Session, sample: Sample, folds: Folds | None
) -> Solved:
    """Coefficients by conjugate gradients, and the exact certificate from their first sweep.

    Parameters
    ----------
    sample : rows of the preconditioner (`uniform_sample`).
    """
    alpha, own, curves = settings.given_alpha, Fields(), dict[str, Float]()
    if alpha is None:
        system, solution, own, curves = _by_iterations_and_folds(chosen, settings, session, sample, folds)
    else:
        system = _falkon(chosen, settings, session, features_in_memory(sample, chosen.table))
        solution = system.solve(alpha)
    _warn_of_error(system, solution, chosen.scale)
    assert system.residual_path is not None
    arrays = {**falkon_arrays(solution), **curves}
    return Solved(system.residual_path, arrays, {**falkon_record(system, solution), **own})


def _by_iterations_and_folds(
    chosen: Chosen, settings: RidgeSettings, session: Session, sample: Sample, folds: Folds | None
) -> tuple[FalkonSystem, FalkonSolution, Fields, dict[str, Float]]:
    """The solution for the alpha of least error on a held-out fold, from the search's own.

    Also the record of the errors, and the arrays of classes' curves.
    """
    classes = chosen.table.classes is not None
    scale = None if classes else chosen.scale**2
    basis = chosen.selection.basis
    sample = _weighted(sample)
    trained, held = _sums_of_sample(sample, basis, chosen.centre, session, folds)
    first = alpha_of_sample(
        trained,
        held,
        _independent(sample, folds),
        chosen.table.weight / float(sample.weights.sum()),
        intercept=settings.fit_intercept,
        scale=scale,
        classes=classes,
        independent=chosen.independent,
    )
    session.progress.note(f"alpha {first.alpha:.3g} on {len(sample)} sampled rows")
    del sample, held
    system = _falkon(chosen, settings, session, trained, folds)
    if folds is None:
        session.progress.note(
            f"alpha {first.alpha:.6g} by GCV: {chosen.table.counted} rows are too few to hold some out"
        )
        return system, system.solve(first.alpha), {}, {}
    by_fold = FalkonFolds(system, scale=scale, classes=classes)
    if by_fold.lacking:
        session.progress.note(f"alpha {first.alpha:.6g} on sampled rows: {by_fold.lacking}")
        return system, system.solve(first.alpha), {}, {}
    choice = by_fold.choose(first.alpha, first.low, first.high)
    assert chosen.held is not None
    rows_left_out = left_out_rows(choice, basis, folds, chosen.held)
    record = validation_record(choice, None, rows_left_out, folds, scale=scale, classes=classes)
    for line in words_of(record, choice.alpha):
        session.progress.note(line)
    # Its factor is as large as the one that follows.
    del by_fold
    curves = rows_left_out.calibration() if classes else {}
    return system, system.solve(choice.alpha, start=choice.solutions[0].beta), {"validation": record}, curves


def _falkon(
    chosen: Chosen,
    settings: RidgeSettings,
    session: Session,
    sample: Table | RidgeSums,
    folds: Folds | None = None,
) -> FalkonSystem:
    return FalkonSystem(
        chosen.selection.basis,
        chosen.table,
        session,
        centre=chosen.centre,
        intercept=settings.fit_intercept,
        sample=sample,
        folds=folds,
    )


def _sums_of_sample(
    sample: Sample, basis: Basis, centre: Float, session: Session, folds: Folds | None
) -> tuple[RidgeSums, RidgeSums | None]:
    """The sums of the sampled rows that are trained on, and of the others for as many functions as are solved for."""
    out = np.zeros(len(sample), dtype=bool)
    if folds is not None:
        assert sample.keys is not None, "folds need a table with keys"
        out = folds.held_out(sample.keys)
        out &= not out.all()
    trained = session.local(NormalEquations(basis, centre), _in_memory(sample.at_positions(np.flatnonzero(~out))))
    if not out.any():
        return trained, None
    leading = basis.leading(functions_of_sample(len(basis)))
    rows = _in_memory(sample.at_positions(np.flatnonzero(out)))
    return trained, session.local(NormalEquations(leading, centre), rows)


def _weighted(sample: Sample) -> Sample:
    """The rows with a weight above 0."""
    say = sample.weights > 0.0
    if not say.any():
        raise ParameterError(
            f"none of {len(sample)} sampled rows has a weight above 0, and alpha cannot be chosen; give "
            f"{option('alpha')} a number > 0, or {option('solver', 'direct')}"
        )
    return sample if say.all() else sample.at_positions(np.flatnonzero(say))


def _in_memory(sample: Sample) -> Table:
    weights = None if (sample.weights == 1.0).all() else sample.weights
    return open_table(np.ascontiguousarray(sample.X), sample.Y, weights=weights)


def _independent(sample: Sample, folds: Folds | None) -> float:
    """Effective number of independent rows of a sample in validation folds."""
    if folds is None or sample.keys is None:
        return 0.0
    out = folds.held_out(sample.keys)
    _, of = np.unique(sample.keys[out], return_inverse=True)
    shares = np.bincount(of, sample.weights[out])
    return float(shares.sum() ** 2 / max(float((shares**2).sum()), np.finfo(np.float64).tiny))


def _warn_of_error(system: FalkonSystem, solution: FalkonSolution, scale: Float) -> None:
    """Warn where the iterations ended before they reached the solution: by their number, or by rounding."""
    # |f - f*|^2 over the rows is at most the excess of the regularised risk.
    off = np.sqrt(solution.excess / max(system.sums.weight, np.finfo(np.float64).tiny)) / scale
    if solution.converged and (off <= _ENOUGH).all():
        return
    stopped = "by rounding" if solution.converged else "by their number"
    warn_user(
        f"conjugate gradients were ended {stopped} after {solution.iterations} iterations, at a relative residual of "
        f"{solution.residuals[-1].max():.2g}: fitted values may be off by {off.max():.2g} deviations of the target; "
        f"give a larger {option('alpha')}, or {option('solver', 'direct')}"
    )


def iteration_steps(problem: Problem, n: int, settings: RidgeSettings, machine: Machine) -> tuple[list[Step], int]:
    """Steps and bytes on disk of conjugate gradients, for the usual number of iterations."""
    table = problem.table
    sample = settings.preconditioner_rows(table, n)
    basis, d = unfilled_basis(problem, n), table.n_targets
    # Copies of the cached rows: mapped, and in two parts.
    copied = driver_step("rows for the preconditioner", 3 * gather_step(problem, sample).state_bytes + 8 * n * n)
    search = settings.given_alpha is None
    steps = [copied, *falkon_steps(basis, table, d, sample=sample, folds=problem.folds, search=search)]
    # Threads end with their sweep; what the allocator holds for them does not, and the factors come on top of it.
    here = [step for step in steps if step.where == "sample" or not machine.workers]
    kept = machine.driver_threads * sum(step.scratch_bytes for step in here)
    steps[-1] = replace(steps[-1], held_bytes=steps[-1].held_bytes + kept)
    states = sum(step.times * step.state_bytes for step in steps if step.where == "sweep")
    return steps, states + points_bytes(problem, n) + 8 * n * d
