"""The direct solve of a ridge fit: the sums of one sweep, decomposed; alpha by GCV or by held-out folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamkernel.engine import Session, Step, driver_step, factor_flops, step_of, tridiagonal_flops
from streamkernel.fits.ridge._iterations import Solved
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.fits.steps.kernel_matrix import final_work
from streamkernel.fits.steps.plan_steps import points_bytes
from streamkernel.fits.steps.validation import left_out_rows, validation_record, words_of
from streamkernel.models.ridge import solution_arrays, solution_record
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers import FoldSystem, RidgeSystem
from streamkernel.table import Folds
from streamkernel.type_aliases import Fields, Float

_FACTORS_OF_A_FOLD = 8  # alphas that a search tries with all functions, and those with fewer as shares of one


def by_decomposition(
    chosen: Chosen, settings: RidgeSettings, session: Session, swept: RidgeSums | FoldSums, folds: Folds | None
) -> Solved:
    """Alpha and coefficients from the sums of the final sweep."""
    scale = None if chosen.table.classes is not None else chosen.scale**2
    basis, intercept = chosen.selection.basis, settings.fit_intercept
    sums = swept.total if isinstance(swept, FoldSums) else swept
    system = RidgeSystem(basis, sums, intercept=intercept, scale=scale, independent=chosen.independent)
    alpha, own, curves = settings.given_alpha, dict[str, Any](), dict[str, Float]()
    if alpha is None:
        alpha = system.choose_alpha()
        if isinstance(swept, FoldSums) and folds is not None:
            alpha, own, curves = _by_folds(chosen, settings, session, swept, folds, system, alpha)
        elif settings.alpha == "cv":
            session.progress.note(f"alpha {alpha:.6g} by GCV: {chosen.table.counted} rows are too few to hold some out")
    solution = system.solve(alpha)
    arrays = {**solution_arrays(sums, system, solution, scale), **curves}
    return Solved(system.residual_path, arrays, {**solution_record(sums, system, solution), **own})


def _by_folds(
    chosen: Chosen,
    settings: RidgeSettings,
    session: Session,
    sums: FoldSums,
    folds: Folds,
    system: RidgeSystem,
    by_gcv: float,
) -> tuple[float, Fields, dict[str, Float]]:
    """Alpha of least error on the held-out folds, the record of these errors, and the arrays of classes' curves.

    If folds say nothing, alpha is that of GCV.
    """
    classes = chosen.table.classes is not None
    scale = None if classes else chosen.scale**2
    by_fold = FoldSystem(sums, intercept=settings.fit_intercept, scale=scale, classes=classes)
    if by_fold.lacking:
        session.progress.note(f"alpha {by_gcv:.6g} by GCV: {by_fold.lacking}")
        return by_gcv, {}, {}
    alphas = system.path.grid()
    choice = by_fold.choose(by_gcv, float(alphas[0]), float(alphas[-1]))
    assert chosen.held is not None
    basis = chosen.selection.basis
    rows = left_out_rows(choice, basis, folds, chosen.held)
    record = validation_record(choice, by_gcv, rows, folds, scale=scale, classes=classes)
    for line in words_of(record, choice.alpha):
        session.progress.note(line)
    return choice.alpha, {"validation": record}, rows.calibration() if classes else {}


def decomposition_steps(
    problem: Problem, n: int, remedy: str, alpha: float | None, *, models: int = 0
) -> tuple[list[Step], int]:
    """Steps and bytes on disk of the direct solve.

    Parameters
    ----------
    remedy : words for a user whose memory is too small for it.
    models : number of further models, each without one fold, that are made of the sums; 0 for the one of all rows.
    """
    table, d = problem.table, problem.table.n_targets
    plain = NormalEquations(unfilled_basis(problem, n), problem.centre)
    usual = NormalEquations.usual(plain.basis, problem.centre)
    final: NormalEquations | FoldEquations = plain
    count = 0
    if problem.folds is not None:
        final, count = FoldEquations(plain, problem.folds), problem.folds.count
    # The sums and those of each fold are whitened. The sums of a model are reduced once, those of a fold that it holds
    # out have a factor for each alpha.
    factors = count * max(models, 1) * _FACTORS_OF_A_FOLD
    operations = (1 + count) * 2.0 * n**3 + (1 + models) * tridiagonal_flops(n) + factors * factor_flops(n)
    # The sums, their whitened copy, the reflections of its tridiagonal form, and matrices on the way to all of these.
    # With folds also the sums of each, twice, and those of all other rows. Each further model keeps its sums, and two
    # more are made on the way to it.
    more = models + 2 if models else 0
    algebra = 8 * n * ((7 + 3 * count + more) * n + 4 * d)
    # The squares of many targets take more memory than all of these; those of a fold are made beside its Gram matrix.
    squares = 8 * (1 + count + more) * d * (d + n)
    sweep = step_of(
        "sums by fold" if models else "final sweep",
        final if models else final_work(final, table, plain.basis),
        table,
        kernel_columns=n,
        held_bytes=8 * (2 + count) * n * n + squares + 8 * d * (d + n),
    )
    leaves = step_of("", usual, table, kernel_columns=n).leaves
    steps = [
        replace(sweep, usual=replace(sweep, flops_per_row=usual.flops_per_row(), spans=leaves)),
        driver_step("solve", algebra + squares, remedy, operations),
    ]
    return steps, final.state_bytes() + plain.state_bytes() + points_bytes(problem, n)
