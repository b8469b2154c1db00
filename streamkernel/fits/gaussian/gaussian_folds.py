"""Gaussian processes without each fold in turn, of the sums of one sweep.

Hyper-parameters and basis are chosen on rows of no fold (`FoldRows`). With the sums H, g of all rows and H_v, g_v of
fold v, each with Om^-1 in it, the posterior without fold v follows from ``H - H_v`` and ``g - g_v`` as that of all rows
from H and g: Om is diagonal, so that rows of one fold say nothing of those of another (ALGORITHMS 10.1, 20). By
time the sums of the folds before v are added to those of the part beside them.
"""

from __future__ import annotations

from dataclasses import replace

from streamkernel.engine import Machine, Plan, Session, TableShape, driver_step, eigen_flops, make_plan, step_of
from streamkernel.fits.gaussian.gaussian import GaussianTuner, row_noise_of, tuning_steps
from streamkernel.fits.steps.choose_basis import choose_basis
from streamkernel.fits.steps.fold_rows import FoldRows, SharedSums, rows_are_enough
from streamkernel.fits.steps.plan_steps import TUNING_BYTES, fold_scores_step, points_bytes, steps_of_choice
from streamkernel.fits.steps.record import tuning_arrays, tuning_record
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_numbers
from streamkernel.models.certificate import path_of
from streamkernel.models.gaussian import GaussianModel, gaussian_arrays, gaussian_record, solved
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions.sums import ConstantNoise, DiagonalNoise, EachFold, GaussianEquations, RowNoise
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.gaussian import GaussianSettings
from streamkernel.solvers import GaussianSystem
from streamkernel.table import Table


def gaussian_shares_sums(table: Table, settings: GaussianSettings, share: float) -> bool:
    """Whether these fits can be made of the sums of one sweep, with the choices on a share of the rows.

    Not where hyper-parameters are searched for over all rows, nor with blocks, whose rows are of several folds.
    """
    if settings.polishes or settings.approximation == "pitc":
        return False
    return rows_are_enough(table, settings, share)


def fit_gaussian_folds(
    rows: FoldRows,
    settings: GaussianSettings,
    session: Session,
    *,
    estimator: str = "gp",
    memory_limit: int | None = None,
) -> tuple[GaussianModel, ...]:
    """K Gaussian processes, each fitted without one fold.

    Raises
    ------
    ResourceLimitError
        The plan exceeds a limit.
    StreamKernelError
        As of `fit_gaussian`.
    """
    check_numbers(rows.whole, estimator)
    settings = rows.resolved(settings)
    run = SupervisedRun(
        rows.whole,
        settings,
        session,
        lambda _, given, machine, n: plan_gaussian_folds(rows, given, machine, n),
        estimator=estimator,
        memory_limit=memory_limit,
    )
    found = []
    with run.measured():
        tuner = GaussianTuner(settings, session) if settings.tunes else None
        chosen = choose_basis(rows.chosen_on, settings, session, run.n, tuner, of_rows=rows.count)
        basis, noise = chosen.selection.basis, row_noise_of(settings, chosen, session)
        work = EachFold(GaussianEquations(basis, chosen.centre, noise), rows.folds)
        parts = session.sweep(work, run.table.with_scaler(chosen.scaler).with_keys(), "sums by fold")
        for fold, fitted in enumerate(rows.fitted):
            sums = parts.trained
            for other, each in enumerate(parts.held):
                sums = sums if other in rows.unseen(fold) else sums.merge(each)
            system = GaussianSystem(basis, sums, noise, scale=chosen.scale, independent=chosen.independent)
            solution = solved(system, settings.signal_variance, settings.noise_variance)
            found.append((replace(chosen, table=fitted.with_scaler(chosen.scaler)), sums, solution))
    made = (noise.signal, noise.noise) if isinstance(noise, DiagonalNoise) else None
    return tuple(
        run.model(
            GaussianModel,
            own,
            None,
            path_of(sums.trace, sums.squares),
            {**gaussian_arrays(sums, solution), **tuning_arrays(own)},
            approximation=settings.approximation,
            row_noise=made,
            block_size=None,
            tuning=tuning_record(own),
            query_set=None,
            seen=seen_by_fit(own.table),
            updates=None,
            **gaussian_record(sums, solution),
        )
        for own, sums, solution in found
    )


def plan_gaussian_folds(rows: FoldRows, settings: GaussianSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of `fit_gaussian_folds` and of the scores of its models; parameters are those of `plan_ridge`."""
    settings = rows.resolved(settings)
    n, count = settings.components(rows.whole) if n is None else n, rows.models
    problem, steps = steps_of_choice(rows.chosen_on, settings, n, of_rows=rows.count)
    if settings.tunes:
        steps += tuning_steps(problem, settings.tuning_rows(rows.chosen_on), ard=settings.ard)
        machine = replace(machine, driver_base=machine.driver_base + TUNING_BYTES)
    problem = replace(problem, table=rows.whole.with_scaler(problem.table.scaler))
    noise: RowNoise = DiagonalNoise(1.0, 1.0) if settings.whitens_rows else ConstantNoise()
    final = EachFold(GaussianEquations(unfilled_basis(problem, n), problem.centre, noise), rows.folds)
    # Beside the sums of each fold a model keeps its own, and its eigenvectors.
    algebra = 8 * n * ((8 + 3 * count) * n + 4 * problem.table.n_targets)
    held = 8 * (count + 2) * n * n
    steps += [
        step_of("sums by fold", final, problem.table, kernel_columns=n, held_bytes=held),
        driver_step("solve", algebra, algebra=count * 2 * eigen_flops(n)),
        fold_scores_step(problem, n, count),
    ]
    disk = final.state_bytes() + points_bytes(problem, n)
    return make_plan(steps, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)


GAUSSIAN_FOLDS = SharedSums(gaussian_shares_sums, fit_gaussian_folds, plan_gaussian_folds)
