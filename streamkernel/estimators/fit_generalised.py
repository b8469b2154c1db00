"""Generalised Gaussian process regression: hyper-parameters -> basis -> Newton's method over sweeps -> Laplace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan, step_of
from streamkernel.errors import ParameterError
from streamkernel.estimators.choosing import choose_basis
from streamkernel.estimators.gaussian_settings import EVIDENCE, GeneralisedSettings
from streamkernel.estimators.generalised_fitted import GeneralisedFitted
from streamkernel.estimators.generalised_model import GeneralisedModel
from streamkernel.estimators.plan import check_step, steps_of_choice
from streamkernel.estimators.supervised import fit_supervised
from streamkernel.estimators.tuning import TUNING_BYTES, points_step
from streamkernel.kernels import Kernel
from streamkernel.reductions import (
    Features,
    Latent,
    Likelihood,
    NewtonStart,
    NewtonStep,
    Reduction,
    Sample,
    StartSums,
    Weighed,
    likelihood_of,
)
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.solvers import (
    LaplaceApproximation,
    LikelihoodTuning,
    calibrated,
    solve_generalised,
    tune_likelihood,
)
from streamkernel.table import Table

__all__ = ["check_counts", "fit_generalised", "plan_generalised"]

Float = NDArray[np.float64]

SAMPLE_BASIS = 300  # points of the sparse process on the sample
_NEWTON_SWEEPS = 10  # expected
_CHOICES = 8  # of points on the sample, five of them to look around
_MOST_UNKNOWNS = 1000  # of a Hessian on the sample


def fit_generalised(
    table: Table, settings: GeneralisedSettings, session: Session, *, estimator: str, **options: Any
) -> GeneralisedModel:
    """Fit a classifier or a regression of counts; parameters and errors are those of `fit_supervised`."""
    if estimator == "poisson":
        check_counts(table, estimator)
    parts = fit_supervised(
        table,
        settings,
        session,
        lambda n: _fit(table, settings, session, n),
        lambda machine, n: plan_generalised(table, settings, machine, n),
        estimator=estimator,
        **options,
    )
    return GeneralisedModel(parts.config, parts.arrays)


def check_counts(table: Table, estimator: str) -> None:
    """Raise ParameterError unless the targets are one column of numbers."""
    if table.classes is not None:
        raise ParameterError(f"the target holds class labels, {estimator} is a regression of counts; use gp-classifier")
    if table.n_targets > 1:
        raise ParameterError(f"{estimator} takes one target, the table has {table.n_targets}; fit one at a time")


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

    def __call__(self, sample: Sample, kernel: Kernel, centre: Float, scale: Float) -> LikelihoodTuning:
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
        self.session.progress.note(f"hyper-parameters of {len(found.points)} looks at {found.rows} sampled rows")
        return found


def _fit(table: Table, settings: GeneralisedSettings, session: Session, n: int) -> GeneralisedFitted:
    """Find the hyper-parameters, basis, the minimum and its covariance."""
    likelihood = likelihood_for(table)
    tuner = _Tuner(settings, likelihood, session)
    chosen = choose_basis(table, settings, session, n, tuner if settings.tunes else None)
    basis, table = chosen.selection.basis, chosen.table
    started: list[StartSums] = []
    share = chosen.independent

    def sweep(reduction: Reduction[Any], name: str) -> Any:
        if isinstance(reduction, NewtonStart):
            # The model's totals and certificate count every row with weight 1.
            started.append(session.sweep(reduction, table, name))
            return started[-1] if share == 1.0 else started[-1].times(share)
        return session.sweep(reduction if share == 1.0 else Weighed(reduction, share), table, name)

    tuning = chosen.tuning
    signal = tuning.signal if isinstance(tuning, LikelihoodTuning) else float(settings.signal_variance)
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
    return GeneralisedFitted(
        chosen, settings, n, likelihood, started[0], laplace, posterior, sweeps=len(session.records)
    )


def _tuning_steps(problem: Problem, rows: int, likelihood: Likelihood) -> list[Step]:
    """Some 60 modes on the sample, each found in some 8 steps, with the Hessian, its factors and their derivatives."""
    n = min(SAMPLE_BASIS, rows)
    features = Features.of_basis(unfilled_basis(problem, n))
    nothing = Latent(np.zeros((n, likelihood.width)), np.zeros(likelihood.width))
    hessian = 8 * min(likelihood.free * (n + 1), _MOST_UNKNOWNS) ** 2
    held = 8 * hessian + 8 * rows * (n + 1) * 4
    step = NewtonStep(features, likelihood, nothing, nothing, (1.0,))
    p, item = problem.table.n_features, problem.table.dtype.itemsize
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
            packings=2,  # of the kernel that is looked at, and of its slopes
            # And the points that were chosen, as they are joined to a basis for each kernel that is looked at.
            rows_bytes=wide + 2 * n * p * item,
        ),
    ]


def plan_generalised(table: Table, settings: GeneralisedSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    n = settings.components(table) if n is None else n
    problem, steps = steps_of_choice(table, settings, n)
    likelihood = likelihood_for(table)
    if settings.tunes:
        machine = replace(machine, driver_base=machine.driver_base + TUNING_BYTES)
        steps += _tuning_steps(problem, settings.sampled_rows(table), likelihood)
    features = Features.of_basis(unfilled_basis(problem, n))
    nothing = Latent(np.zeros((n, likelihood.width)), np.zeros(likelihood.width))
    step = NewtonStep(features, likelihood, nothing, nothing, (1.0,) * 7)
    hessian = 8 * (likelihood.free * (n + 1)) ** 2
    steps.append(step_of("newton start", NewtonStart(features, likelihood), table, kernel_columns=n))
    # The sums at the end of a step, and the factor of their Hessian. Steps by the Hessian of a sample also hold its
    # features, weighted for each class, and its factors.
    rows, c = settings.sampled_rows(table), likelihood.width
    held = 3 * hessian + 2 * step.state_bytes() + 8 * (n + 1) * (3 * rows + 4 * c * (n + 1))
    steps.append(step_of("newton step", step, table, kernel_columns=n, times=_NEWTON_SWEEPS - 1, held_bytes=held))
    steps.append(Step("solve", "driver", 0, 1, 0.0, 0, 0, 0, 0, 4 * hessian))
    disk = 2 * hessian + step.state_bytes()
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)
