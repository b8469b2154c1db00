"""Generalised regression by the cheaper of two ways.

Newton's method reads the rows some 8 to 12 times, and sums a matrix of n^2 numbers for each pair of classes; L-BFGS
reads them 14 to 25 times at O(n c) operations a row, and leaves the Hessian, which only the variance needs, to a sweep
or two at its end. The operations of both decide, a number that is read counted as so many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.reductions import Features, GradientStep, Latent, Likelihood, NewtonStart, NewtonStep, Sample
from streamkernel.solvers.latent_coordinates import STEPS, GeneralisedFit, Sweep
from streamkernel.solvers.newton import solve_newton
from streamkernel.solvers.quasi_newton import solve_quasi_newton

__all__ = ["METHODS", "GeneralisedCosts", "generalised_costs", "solve_generalised"]

METHODS = ("auto", "newton", "quasi-newton")

_READ = 1000.0  # operations in the time that a number is read in
_NEWTON_SWEEPS = {False: 8, True: 12}  # by whether there are more than two classes
_QUASI_SWEEPS = {False: 14, True: 25}
_WORTH_MORE_SWEEPS = 0.6  # share of Newton's operations: each sweep has its own cost beside them
_HESSIAN_BYTES = 2 << 30
_ROUGH = 1e-7  # what Newton's method takes over at: a step or two from its end


@dataclass(frozen=True)
class GeneralisedCosts:
    """What the two ways cost.

    Attributes
    ----------
    newton_flops, quasi_newton_flops : of all rows, reading included; the latter with the Hessian at the end.
    hessian_bytes : of the algebra on the driver, the sums of the sweep included.
    newton_sweeps, quasi_newton_sweeps : that are expected.
    """

    newton_flops: float
    quasi_newton_flops: float
    hessian_bytes: int
    newton_sweeps: int
    quasi_newton_sweeps: int

    @property
    def method(self) -> str:
        """The cheaper one, for a Hessian that fits and a sample to begin from."""
        cheap = self.quasi_newton_flops < _WORTH_MORE_SWEEPS * self.newton_flops
        return "quasi-newton" if cheap else "newton"


def generalised_costs(features: Features, likelihood: Likelihood, rows: int, sample_rows: int = 0) -> GeneralisedCosts:
    """Costs of a fit to so many rows; sums of a sample of `sample_rows` are counted at every quasi-Newton step."""
    n, c, r = features.width, likelihood.width, likelihood.free
    many = c > 2
    nothing = Latent(np.zeros((0, c)), np.zeros(c))
    step = NewtonStep(features, likelihood, nothing, nothing, STEPS)
    read = _READ * (n if features.basis is None else features.basis.points.shape[1])
    algebra = (r * (n + 1.0)) ** 3 / 3.0
    start = rows * (NewtonStart(features, likelihood).flops_per_row() + read)
    full = rows * (step.flops_per_row() + read) + algebra
    gradient = rows * (GradientStep(features, likelihood, nothing, nothing, STEPS).flops_per_row() + read)
    of_sample = c * (sample_rows * (n + 1.0) ** 2 + (n + 1.0) ** 3 / 3.0)
    newton, quasi = _NEWTON_SWEEPS[many], _QUASI_SWEEPS[many]
    return GeneralisedCosts(
        newton_flops=start + (newton - 1) * full,
        quasi_newton_flops=start + (quasi - 1) * (gradient + of_sample) + 2 * full,
        hessian_bytes=step.state_bytes() + 24 * (r * (n + 1)) ** 2,
        newton_sweeps=newton,
        quasi_newton_sweeps=quasi + 2,
    )


def solve_generalised(
    sweep: Sweep,
    features: Features,
    likelihood: Likelihood,
    rows: int,
    *,
    signal_variance: float = 1.0,
    intercept: bool = True,
    tolerance: float = 1e-8,
    sample: Sample | None = None,
    method: str = "auto",
    hessian_bytes: int = _HESSIAN_BYTES,
    most_iterations: int | None = None,
) -> GeneralisedFit:
    """Minimise ``-log p(y | f) + |u|^2 / 2``.

    Parameters
    ----------
    rows : that a sweep reads.
    sample : some of them, for the quasi-Newton method (`solve_quasi_newton`); without, it is not chosen while the
        Hessian fits.
    method : "newton", "quasi-newton" or "auto".
    hessian_bytes : most that the Hessian may take. One that takes more is not summed: the result has the mean
        curvature of the rows in its place.
    most_iterations : of each method; None for its own default.

    Other parameters, and errors, are those of `solve_newton`.
    """
    if method not in METHODS:
        raise ParameterError(f"method = {method!r} is not known; choose one of {', '.join(METHODS)}")
    costs = generalised_costs(features, likelihood, rows, 0 if sample is None else len(sample))
    fits = costs.hessian_bytes <= hessian_bytes
    if method == "auto":
        method = "newton" if fits and (sample is None or costs.method == "newton") else "quasi-newton"
    if method == "newton" and not fits:
        raise ParameterError(
            f"Newton's method needs {costs.hessian_bytes / 1e6:.0f} MB for its Hessian, allowed are "
            f"{hessian_bytes / 1e6:.0f}; take fewer basis functions, or method 'quasi-newton'"
        )
    problem = (sweep, features, likelihood)
    options: dict[str, Any] = {"signal_variance": signal_variance, "intercept": intercept}
    if most_iterations is not None:
        options["most_iterations"] = most_iterations
    if method == "newton":
        return solve_newton(*problem, tolerance=tolerance, **options)
    rough_enough = max(tolerance, _ROUGH) if fits else tolerance
    rough = solve_quasi_newton(*problem, tolerance=rough_enough, sample=sample, **options)
    if not fits:
        return rough
    fit = solve_newton(*problem, tolerance=tolerance, start=rough.latent, **options)
    return replace(fit, iterations=rough.iterations + fit.iterations, method=rough.method)
