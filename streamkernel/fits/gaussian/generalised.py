"""Generalised Gaussian process regression: hyper-parameters -> basis -> Newton's method over sweeps -> Laplace."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, driver_step, make_plan, step_of
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.plan_steps import TUNING_BYTES, check_step, points_step, steps_of_choice
from streamkernel.fits.steps.record import tuning_arrays, tuning_record
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_counts
from streamkernel.kernels import Kernel
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.generalised import (
    GeneralisedModel,
    GeneralisedSolutionRecord,
    GeneralisedTotals,
    NewtonIteration,
)
from streamkernel.reductions import Reweighted, Sample
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.likelihoods import Latent, Likelihood, NewtonStart, NewtonStep, StartSums, likelihood_of
from streamkernel.reductions.predictions import ClassProbabilities, LatentPosterior, PoissonPredictions
from streamkernel.reductions.sums import Features
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.gaussian import EVIDENCE
from streamkernel.settings.generalised import GeneralisedSettings
from streamkernel.solvers import LaplaceApproximation, calibrated, solve_generalised
from streamkernel.table import Table
from streamkernel.tuning import Tuning, tune_likelihood
from streamkernel.type_aliases import Float, Unchecked

SAMPLE_BASIS = 300  # points of the sparse process on the sample
_NEWTON_SWEEPS = 10  # expected
_CHOICES = 8  # of points on the sample, five of them a grid to start from
_MOST_UNKNOWNS = 1000  # of a Hessian on the sample


def fit_generalised(
    table: Table, settings: GeneralisedSettings, session: Session, *, estimator: str, **options: Unchecked
) -> GeneralisedModel:
    """Fit a classifier or a regression of counts; options and errors are those of `SupervisedRun`."""
    if estimator == "poisson":
        check_counts(table, estimator)
    run = SupervisedRun(table, settings, session, plan_generalised, estimator=estimator, **options)
    with run.measured():
        likelihood = likelihood_for(table)
        tuner = _Tuner(settings, likelihood, session)
        chosen = choose_basis(run.table, settings, session, run.n, tuner if settings.tunes else None)
        start, laplace, posterior = _laplace(chosen, settings, session, likelihood)
        poisson = likelihood.name == "poisson"
        check = run.check(chosen, PoissonPredictions(posterior) if poisson else ClassProbabilities(posterior))
    fit, squares = laplace.fit, np.diagonal(start.gram)[:-1]
    return run.model(
        GeneralisedModel,
        chosen,
        check,
        path_of(start.trace, squares),
        {
            "dual_coef": posterior.coefficients,
            "intercept": posterior.intercept,
            "contrasts": posterior.contrasts,
            **posterior.covariance.to_arrays(),
            **tuning_arrays(chosen),
        },
        likelihood=likelihood.name,
        signal_variance=fit.signal_variance,
        residual_share=posterior.residual_share,
        covariance_share=posterior.covariance_share,
        totals=GeneralisedTotals(
            rows=start.count,
            trace=start.trace,
            **({} if start.weight == start.count else {"weight": start.weight}),
        ),
        certificate=certificate_of(start.trace, start.residual_trace),
        tuning=tuning_record(chosen),
        solution=GeneralisedSolutionRecord(
            method=fit.method,
            loss=fit.loss,
            objective=fit.objective,
            decrement=fit.decrement,
            converged=fit.converged,
            path=tuple(NewtonIteration(**asdict(iteration)) for iteration in fit.iterations),
            iterations=len(fit.iterations),
            log_evidence=laplace.log_evidence,
            effective_df=laplace.effective_parameters,
        ),
    )


def likelihood_for(table: Table) -> Likelihood:
    """The likelihood of the table's targets: two classes, more classes, or counts."""
    if table.classes is None:
        return likelihood_of("poisson", 1)
    # A table of one class can be planned, but not fitted.
    return likelihood_of("softmax" if len(table.classes) > 2 else "bernoulli", len(table.classes))


@dataclass(frozen=True)
class _Tuner:
    """Find the lengthscales and signal variance that maximise Laplace's approximation of the evidence on a sample."""

    settings: GeneralisedSettings
    likelihood: Likelihood
    session: Session

    def __call__(self, sample: Sample, kernel: Kernel, centre: Float, scale: Float) -> Tuning:
        settings = self.settings
        given = settings.signal_variance
        fixed = [] if settings.tunes_lengthscale else ["lengthscale"]
        if given != EVIDENCE:
            fixed.append("signal")
        found = tune_likelihood(
            sample,
            kernel,
            self.likelihood,
            ard=settings.ard,
            n_basis=SAMPLE_BASIS,
            signal=None if given == EVIDENCE else float(given),
            fixed=fixed,
            seed=settings.seed,
            run=self.session.local,
        )
        self.session.progress.note(f"hyper-parameters of {len(found.points)} evaluations on {found.rows} sampled rows")
        return found


def _laplace(
    chosen: Chosen, settings: GeneralisedSettings, session: Session, likelihood: Likelihood
) -> tuple[StartSums, LaplaceApproximation, LatentPosterior]:
    """The sums of the first sweep, the minimum with the normal distribution around it, and the calibrated posterior."""
    basis, table = chosen.selection.basis, chosen.table
    started: list[StartSums] = []
    share = chosen.independent

    def sweep(reduction: AnyReduction, name: str) -> Any:
        if isinstance(reduction, NewtonStart):
            # The model's totals and certificate count every row with weight 1.
            started.append(session.sweep(reduction, table, name))
            return started[-1] if share == 1.0 else started[-1].times(share)
        return session.sweep(reduction if share == 1.0 else Reweighted(reduction, share), table, name)

    tuning = chosen.tuning
    signal = float(settings.signal_variance) if tuning is None else tuning.signal
    fit = solve_generalised(
        sweep,
        Features.of_basis(basis),
        likelihood,
        table.n_rows,
        signal_variance=signal,
        intercept=settings.fit_intercept,
        tolerance=settings.newton_tol,
        most_iterations=settings.max_iterations,
        sample=chosen.sample or None,
    )
    laplace = LaplaceApproximation.of(fit)
    posterior, sample = laplace.posterior(basis), chosen.sample
    if sample is not None:
        posterior = calibrated(posterior, likelihood, sample)
    return started[0], laplace, posterior


def _tuning_steps(problem: Problem, rows: int, likelihood: Likelihood) -> list[Step]:
    """Some 60 modes on the sample, each found in some 8 steps, with the Hessian, its factors and their derivatives."""
    n = min(SAMPLE_BASIS, rows)
    features = Features.of_basis(unfilled_basis(problem, n))
    nothing = Latent(np.zeros((n, likelihood.width)), np.zeros(likelihood.width))
    hessian = 8 * min(likelihood.free * (n + 1), _MOST_UNKNOWNS) ** 2
    held = 8 * hessian + 8 * rows * (n + 1) * 4
    step = NewtonStep(features, likelihood, nothing, nothing, (1.0,))
    p, item = problem.table.width, problem.table.dtype.itemsize
    # The sample in float64, that of the points before too until the next are chosen.
    wide = 8 * rows * p
    points = points_step(problem, n, rows, times=3 * _CHOICES)
    return [
        replace(points, rows_bytes=points.rows_bytes + wide),
        step_of(
            "tuning",
            step,
            problem.table,
            sampled=rows,
            kernel_columns=n,
            where="sample",
            times=480,
            held_bytes=held,
            packings=2,  # of the kernel that is evaluated, and of its slopes
            # And the points that were chosen, as they are joined to a basis for each kernel that is evaluated.
            rows_bytes=wide + 2 * n * p * item,
        ),
    ]


def plan_generalised(table: Table, settings: GeneralisedSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    n = settings.components(table) if n is None else n
    problem, steps = steps_of_choice(table, settings, n)
    table = problem.table
    likelihood = likelihood_for(table)
    if settings.tunes:
        machine = replace(machine, driver_base=machine.driver_base + TUNING_BYTES)
        steps += _tuning_steps(problem, settings.tuning_rows(table), likelihood)
    features = Features.of_basis(unfilled_basis(problem, n))
    nothing = Latent(np.zeros((n, likelihood.width)), np.zeros(likelihood.width))
    step = NewtonStep(features, likelihood, nothing, nothing, (1.0,) * 7)
    hessian = 8 * (likelihood.free * (n + 1)) ** 2
    steps.append(step_of("newton start", NewtonStart(features, likelihood), table, kernel_columns=n))
    # The sums at the end of a step, and the factor of their Hessian. Steps by the Hessian of a sample also hold its
    # features, weighted for each class, and its factors.
    rows, c = settings.tuning_rows(table), likelihood.width
    held = 3 * hessian + 2 * step.state_bytes() + 8 * (n + 1) * (3 * rows + 4 * c * (n + 1))
    cost = (likelihood.free * (n + 1)) ** 3 / 3.0  # of the factor of the Hessian
    steps.append(
        step_of("newton step", step, table, kernel_columns=n, times=_NEWTON_SWEEPS - 1, held_bytes=held, algebra=cost)
    )
    steps.append(driver_step("solve", 4 * hessian))
    disk = 2 * hessian + step.state_bytes()
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)
