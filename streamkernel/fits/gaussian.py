"""Gaussian process regression: table -> hyper-parameters by evidence -> basis -> one sweep of sums -> posterior."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from streamkernel.committee import QuerySetRule, cells_of, degrees_of_sample, least_ratio, query_set
from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan, step_of
from streamkernel.errors import NumericalError, warn_user
from streamkernel.fits._choose_basis import Chosen, choose_basis
from streamkernel.fits._gaussian_tuning import (
    FULL_EVALUATIONS,
    TUNING_BYTES,
    GaussianTuner,
    evidence_steps,
    tuning_arrays,
    tuning_record,
    tuning_steps,
)
from streamkernel.fits._plan_steps import check_step, steps_of_choice
from streamkernel.fits.supervised import SupervisedRun, check_numbers
from streamkernel.models.certificate import path_of
from streamkernel.models.gaussian import (
    GaussianModel,
    QuerySet,
    gaussian_arrays,
    gaussian_record,
    solved,
)
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions.members.weights import MemberWeights
from streamkernel.reductions.sums import (
    BlockNoise,
    ConstantNoise,
    DiagonalNoise,
    GaussianEquations,
    GaussianSums,
    RowNoise,
)
from streamkernel.selection.problem import gather_step, unfilled_basis
from streamkernel.settings.gaussian import (
    DEGREES_ROWS,
    EVIDENCE,
    CommitteeSettings,
    GaussianSettings,
)
from streamkernel.solvers import GaussianSystem
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float, Unchecked

_LIFTS = 6  # of the noise of members, each to ten times as much, at most


def fit_gaussian(
    table: Table, settings: GaussianSettings, session: Session, *, estimator: str = "gp", **options: Unchecked
) -> GaussianModel:
    """Fit a Gaussian process; options and errors are those of `SupervisedRun`."""
    check_numbers(table, estimator)
    settings = settings.matched(table)
    run = SupervisedRun(table, settings, session, plan_gaussian, estimator=estimator, **options)
    tuner = GaussianTuner(settings, session)
    with run.measured():
        chosen = choose_basis(table, settings, session, run.n, tuner if settings.tunes else None)
        chosen, sums = tuner.polished(chosen)
        chosen = _at_queries(chosen, settings)
        noise = _row_noise(settings, chosen, session)
        weights = None
        if isinstance(noise, BlockNoise):
            noise, sums, weights = _sums_of_members(chosen, noise, session, settings)
        elif sums is None or not settings.sums_of_polish:
            equations = GaussianEquations(chosen.selection.basis, chosen.centre, noise)
            sums = session.sweep(equations, chosen.table, "final sweep")
        solution = solved(
            GaussianSystem(chosen.selection.basis, sums, noise, scale=chosen.scale, independent=chosen.independent),
            settings.signal_variance,
            settings.noise_variance,
        )
        rule = _query_set(chosen, noise) if isinstance(noise, BlockNoise) else None
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


def _at_queries(chosen: Chosen, settings: GaussianSettings) -> Chosen:
    """The same choice, with the points that predictions are asked for added to its basis."""
    queries = _queries(settings)
    if queries is None:
        return chosen
    joined = query_set(chosen.selection.basis, chosen.table.scaled(queries))[0]
    return replace(chosen, selection=chosen.selection.joined(joined))


def _sums_of_members(
    chosen: Chosen, noise: BlockNoise, session: Session, settings: GaussianSettings
) -> tuple[BlockNoise, GaussianSums, Float]:
    """The noise of the final sweep, its sums, and the shares of blocks in them."""
    table = chosen.table
    equations = GaussianEquations(chosen.selection.basis, chosen.centre, noise)
    for last in [False] * (_LIFTS if settings.searches_variances else 0) + [True]:
        try:
            work = MemberWeights(replace(equations, row_noise=noise), table.n_rows)
            members = session.sweep(work, table, "final sweep")
            break
        except NumericalError:
            # The sampled rows did not tell how few digits this member has.
            if last or noise.noise >= noise.signal:
                raise
            noise = _lifted(noise, 10.0 * noise.noise / noise.signal, settings, session)
    return noise, members.sums, members.weights


def _lifted(noise: BlockNoise, ratio: float, settings: GaussianSettings, session: Session) -> BlockNoise:
    """Noise and signal of a larger ratio: of the two what was searched moves."""
    if settings.noise_variance == EVIDENCE:
        found = replace(noise, noise=ratio * noise.signal)
    else:
        found = replace(noise, signal=noise.noise / ratio)
    session.progress.note(
        f"noise variance / signal variance = {noise.noise / noise.signal:.3g} is lost in rounding: {ratio:.3g} "
        "instead, the least that the members' digits carry"
    )
    return found


def _queries(settings: GaussianSettings) -> AnyArray | None:
    """(q, p) points that predictions are asked for, or None."""
    asked = settings.queries if isinstance(settings, CommitteeSettings) else None
    return None if asked is None else asked.points


def _query_set(chosen: Chosen, noise: BlockNoise) -> QuerySetRule | None:
    """Check on sampled rows that the basis is large enough for members to be independent given f at its points."""
    sample = chosen.sample
    if sample is None or len(sample) == 0:
        return None
    X = sample.X[:DEGREES_ROWS]
    rows = max(round(chosen.independent * chosen.table.n_rows), len(X))
    degrees = degrees_of_sample(X, rows, chosen.kernel, noise.signal, noise.noise)
    rule = QuerySetRule(len(chosen.selection.basis), from_sample=degrees, sample=len(X))
    if rule.warning is not None:
        warn_user(rule.warning)
    return rule


def _row_noise(settings: GaussianSettings, chosen: Chosen, session: Session) -> RowNoise:
    """The model of cov(y | f at the basis); variances are in squared units of the targets' spread."""
    if not settings.whitens_rows:
        return ConstantNoise()
    variances = _variances(settings, chosen)
    assert variances is not None
    signal, noise = variances
    if settings.approximation == "fitc":
        return DiagonalNoise(signal, noise)
    cells = cells_of(settings.partition, chosen.table, chosen.kernel, session=session, seed=settings.seed)
    found = BlockNoise(signal, noise, settings.block_size, cells)
    if not settings.searches_variances or chosen.sample is None:
        return found
    size = min(settings.block_size, chosen.table.n_rows)
    least = least_ratio(chosen.selection.basis, chosen.sample.X[:DEGREES_ROWS], size, noise / signal)
    return _lifted(found, least, settings, session) if least > noise / signal else found


def _variances(settings: GaussianSettings, chosen: Chosen) -> tuple[float, float] | None:
    """Signal and noise variance before the final sweep, found or given; None for "dtc" where neither is the case."""
    if chosen.tuning is not None:
        assert chosen.tuning.noise is not None
        return chosen.tuning.signal, chosen.tuning.noise
    signal, noise = settings.signal_variance, settings.noise_variance
    return None if EVIDENCE in (signal, noise) else (float(signal), float(noise))


def plan_gaussian(table: Table, settings: GaussianSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    n, settings = settings.components(table) if n is None else n, settings.matched(table)
    problem, steps = steps_of_choice(table, settings, n)
    if settings.tunes:
        steps += tuning_steps(problem, settings.sampled_rows(table), ard=settings.ard)
        machine = replace(machine, driver_base=machine.driver_base + TUNING_BYTES)
    queries = _queries(settings)
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
            cells = np.zeros((1, table.n_features))
            steps.append(gather_step(problem, settings.sampled_rows(table)))
        noise = BlockNoise(1.0, 1.0, min(settings.block_size, table.n_rows), cells)
    final = GaussianEquations(basis, problem.centre, noise)
    algebra = 8 * n * (8 * n + 4 * table.n_targets)
    if not settings.sums_of_polish:
        steps.append(step_of("final sweep", final, table, kernel_columns=n, held_bytes=held))
    steps.append(Step("solve", "driver", 0, 1, 0.0, 0, 0, 0, 0, algebra))
    if isinstance(noise, BlockNoise):
        # The kernel matrix of the sample for the degrees of freedom, and LAPACK's copies of it.
        asked = 24 * min(DEGREES_ROWS, table.n_rows) ** 2
        steps.append(Step("degrees of freedom", "driver", 0, 1, 0.0, 0, 0, 0, 0, asked))
    disk = final.state_bytes() * 3 + n * table.n_features * 8
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)
