"""Gaussian process regression: table -> hyper-parameters by evidence -> basis -> one sweep of sums -> posterior."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Plan, Session, Step, TableShape, driver_step, eigen_flops, make_plan, step_of
from streamkernel.fits.gaussian._members import (
    at_queries,
    noise_of_members,
    query_points,
    query_set_rule,
    sums_of_members,
)
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.kernel_matrix import final_sums, final_work
from streamkernel.fits.steps.plan_steps import TUNING_BYTES, check_step, points_bytes, points_step, steps_of_choice
from streamkernel.fits.steps.record import tuning_arrays, tuning_record
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_numbers
from streamkernel.kernels import Kernel, log_lengthscales, per_feature
from streamkernel.models.certificate import path_of
from streamkernel.models.gaussian import GaussianModel, QuerySet, gaussian_arrays, gaussian_record, solved
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import (
    BlockNoise,
    ConstantNoise,
    DiagonalNoise,
    EvidenceGradient,
    GaussianEquations,
    GaussianSums,
    RowNoise,
)
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, unfilled_basis
from streamkernel.settings.gaussian import DEGREES_ROWS, EVIDENCE, GaussianSettings
from streamkernel.solvers import GaussianSystem
from streamkernel.table import Table
from streamkernel.tuning import Tuning, polish, tune
from streamkernel.type_aliases import Float, Int, Unchecked

SAMPLE_BASIS = 400  # points of the sparse process on the sample
FULL_EVALUATIONS = 10  # evaluations of the evidence over all rows, two sweeps each

_ROUNDS, _EVALUATIONS = 4, 60  # of a search on the sample, about
_MOST_EVALUATIONS = 80  # that are kept
_CLIMB = 40  # numbers of a lengthscale that L-BFGS-B holds: ten pairs of steps and slopes, and as much again


def fit_gaussian(
    table: Table, settings: GaussianSettings, session: Session, *, estimator: str = "gp", **options: Unchecked
) -> GaussianModel:
    """Fit a Gaussian process; options and errors are those of `SupervisedRun`."""
    check_numbers(table, estimator)
    settings = settings.matched(table)
    run = SupervisedRun(table, settings, session, plan_gaussian, estimator=estimator, **options)
    tuner = GaussianTuner(settings, session)
    with run.measured():
        chosen = choose_basis(run.table, settings, session, run.n, tuner if settings.tunes else None)
        chosen, sums = tuner.polished(chosen)
        chosen = at_queries(chosen, settings)
        noise = row_noise_of(settings, chosen, session)
        weights = None
        if isinstance(noise, BlockNoise):
            noise, sums, weights = sums_of_members(chosen, noise, session, settings)
        elif sums is None or not settings.sums_of_polish:
            equations = GaussianEquations(chosen.selection.basis, chosen.centre, noise)
            found = session.sweep(final_work(equations, chosen.table, equations.basis), chosen.table, "final sweep")
            sums = final_sums(found, chosen.table, told=chosen.indefinite)
        solution = solved(
            GaussianSystem(chosen.selection.basis, sums, noise, scale=chosen.scale, independent=chosen.independent),
            settings.signal_variance,
            settings.noise_variance,
        )
        rule = query_set_rule(chosen, noise) if isinstance(noise, BlockNoise) else None
        check = run.check(chosen, solution.predictions(chosen.selection.basis))
    blocks = {"member_weights": weights, "cells": noise.cells if isinstance(noise, BlockNoise) else None}
    return run.model(
        GaussianModel,
        chosen,
        check,
        path_of(sums.trace, sums.squares),
        {
            **gaussian_arrays(sums, solution),
            **tuning_arrays(chosen),
            **{name: values for name, values in blocks.items() if values is not None},
        },
        approximation=settings.approximation,
        row_noise=(noise.signal, noise.noise) if isinstance(noise, (DiagonalNoise, BlockNoise)) else None,
        block_size=settings.block_size if isinstance(noise, BlockNoise) else None,
        tuning=tuning_record(chosen),
        query_set=None if rule is None else QuerySet(**asdict(rule)),
        seen=seen_by_fit(chosen.table),
        updates=None,
        **gaussian_record(sums, solution),
    )


def row_noise_of(settings: GaussianSettings, chosen: Chosen, session: Session) -> RowNoise:
    """The model of cov(y | f at the basis); variances are in squared units of the targets' spread."""
    if not settings.whitens_rows:
        return ConstantNoise()
    if chosen.tuning is not None:
        signal, noise = chosen.tuning.signal, chosen.tuning.noise
        assert noise is not None
    else:
        signal, noise = float(settings.signal_variance), float(settings.noise_variance)
    if settings.approximation == "fitc":
        return DiagonalNoise(signal, noise)
    return noise_of_members(signal, noise, chosen, session, settings)


def plan_gaussian(table: Table, settings: GaussianSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    n, settings = settings.components(table) if n is None else n, settings.matched(table)
    problem, steps = steps_of_choice(table, settings, n)
    table = problem.table
    if settings.tunes:
        steps += tuning_steps(problem, settings.tuning_rows(table), ard=settings.ard)
        machine = replace(machine, driver_base=machine.driver_base + TUNING_BYTES)
    queries = query_points(settings)
    basis = unfilled_basis(problem, n + (0 if queries is None else len(queries)))
    n = len(basis)
    held = 16 * n * n
    if settings.polishes:
        steps += evidence_steps(problem, n, table.n_rows, times=FULL_EVALUATIONS)
    noise: RowNoise = ConstantNoise()
    if settings.approximation == "fitc":
        noise = DiagonalNoise(1.0, 1.0)
    elif settings.approximation == "pitc":
        cells = None
        if settings.partition == "cells":
            cells = np.zeros((1, table.width))
            steps.append(gather_step(problem, settings.tuning_rows(table)))
        noise = BlockNoise(1.0, 1.0, min(settings.block_size, table.n_rows), cells)
    final = GaussianEquations(basis, problem.centre, noise)
    algebra = 8 * n * (8 * n + 4 * table.n_targets)
    if not settings.sums_of_polish:
        work = final if isinstance(noise, BlockNoise) else final_work(final, table, basis)
        steps.append(step_of("final sweep", work, table, kernel_columns=n, held_bytes=held))
    steps.append(driver_step("solve", algebra, algebra=2 * eigen_flops(n)))
    if isinstance(noise, BlockNoise):
        # The kernel matrix of the sample for the degrees of freedom, and LAPACK's copies of it.
        asked = 24 * min(DEGREES_ROWS, table.n_rows) ** 2
        steps.append(driver_step("degrees of freedom", asked))
    disk = final.state_bytes() * 3 + points_bytes(problem, n)
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)


@dataclass(frozen=True)
class GaussianTuner:
    """The search on the sample for the hyper-parameters of the largest evidence; `choose_basis` calls it."""

    settings: GaussianSettings
    session: Session

    def __call__(self, sample: Sample, kernel: Kernel, centre: Float, scale: Float) -> Tuning:
        settings, unit = self.settings, float((scale**2).mean())
        given = {
            name: None if value == EVIDENCE else float(value) / unit
            for name, value in (("signal", settings.signal_variance), ("noise", settings.noise_variance))
        }
        fixed = [name for name, value in given.items() if value is not None]
        if not settings.tunes_lengthscale:
            fixed.append("lengthscale")
        found = tune(
            sample,
            kernel,
            scale=scale,
            centre=centre,
            ard=settings.ard,
            n_basis=SAMPLE_BASIS,
            signal=given["signal"],
            noise=given["noise"],
            fixed=fixed,
            seed=settings.seed,
            run=self.session.local,
        )
        self.session.progress.note(f"hyper-parameters of {len(found.points)} evaluations on {found.rows} sampled rows")
        return found

    def polished(self, chosen: Chosen) -> tuple[Chosen, GaussianSums | None]:
        """The same basis points with hyper-parameters optimised over all rows, where the settings ask for it.

        Also returns the sums at the optimum, which equal those of the final sweep of "fitc"; None without such a
        search.
        """
        if not self.settings.polishes or chosen.tuning is None:
            return chosen, None
        count = iter(range(1, 10**6))

        def sweep(reduction: Any) -> Any:
            sums = self.session.sweep(reduction, chosen.table, f"evidence {next(count)}")
            return sums if chosen.independent == 1.0 else sums.times(chosen.independent)

        found = polish(
            chosen.tuning,
            sweep,
            chosen.selection.basis,
            centre=chosen.centre,
            scale=chosen.scale,
            evaluations=FULL_EVALUATIONS,
        )
        selection = replace(chosen.selection, basis=found.basis)
        if len(found.basis) < len(chosen.selection.basis):
            selection = chosen.selection.left(found.basis, _places(found.basis, chosen.selection.basis))
        chosen = replace(chosen, kernel=found.basis.kernel, selection=selection, tuning=found.tuning)
        return chosen, found.sums if chosen.independent == 1.0 else found.sums.times(1.0 / chosen.independent)


def _places(part: Basis, whole: Basis) -> Int:
    """Positions in `whole` of the points of `part`, a subsequence; by value, because centres have no row numbers."""
    points = enumerate(whole.points)
    return np.asarray([next(i for i, z in points if np.array_equal(z, point)) for point in part.points], np.int64)


def tuning_steps(problem: Problem, rows: int, *, ard: bool = False) -> list[Step]:
    """What a search on so many sampled rows costs: points chosen for each round, and some 60 evaluations of two passes.

    Parameters
    ----------
    ard : whether each feature gets a lengthscale of its own.
    """
    n = min(SAMPLE_BASIS, rows)
    if ard:
        problem = replace(problem, kernel=per_feature(problem.kernel, problem.table.width))
    points = points_step(problem, n, rows, times=3 * _ROUNDS)
    # The record of every evaluation: each lengthscale costs a Python float and an entry of a tuple.
    lengths = len(log_lengthscales(problem.kernel))
    history_bytes = _MOST_EVALUATIONS * (32 * lengths) + _CLIMB * 8 * lengths if lengths > 1 else 0
    return [
        replace(points, kept_bytes=history_bytes),
        *evidence_steps(problem, n, rows, times=_EVALUATIONS, where="sample"),
    ]


def evidence_steps(problem: Problem, n: int, rows: int, *, times: int, where: str = "sweep") -> list[Step]:
    """The steps of this many evaluations of the evidence and its gradient, two passes each."""
    basis, d = unfilled_basis(problem, n), max(len(problem.centre), 1)
    ones = np.ones(d)
    sums = GaussianEquations(basis, np.zeros(d), DiagonalNoise(1.0, 1.0))
    slopes = EvidenceGradient(basis, np.zeros(d), ones, 1.0, 1.0, np.zeros((n, n)), np.zeros((n, d)), True)
    held = 8 * 10 * n * n  # the precision, its factors, its inverse, and their products
    # Slopes have panels of their own; beside a sweep those of the basis that was chosen stay.
    sampled, chosen = (rows, 0) if where == "sample" else (None, 1)
    return [
        step_of(
            name,
            work,
            problem.table,
            sampled=sampled,
            kernel_columns=n,
            where=where,
            times=times,
            held_bytes=held,
            packings=packings + chosen,
            # The points that were chosen, and as they are joined to a basis for each kernel that is evaluated.
            rows_bytes=2 * basis.points.dtype.itemsize * basis.points.size,
        )
        for name, work, packings in (("evidence", sums, 1), ("its gradient", slopes, 2))
    ]
