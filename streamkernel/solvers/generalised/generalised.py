"""Generalised regression by the cheaper of two methods.

Newton's method reads the rows 8 to 12 times, and sums a matrix of n^2 numbers for each pair of classes. L-BFGS reads
them 14 to 25 times at O(n c) operations per row. It sums the Hessian, which only the variance needs, in one or two
sweeps at its end. The numbers of operations decide; a number that is read counts as 1000 operations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import GradientStep, Latent, Likelihood, NewtonStart, NewtonStep
from streamkernel.reductions.sums import Features
from streamkernel.solvers.generalised.latent_coordinates import STEPS, GeneralisedFit, Sweep
from streamkernel.solvers.generalised.newton import solve_newton
from streamkernel.solvers.generalised.quasi_newton import solve_quasi_newton
from streamkernel.type_aliases import Fields

METHODS = ("auto", "newton", "quasi-newton")

_READ = 1000.0  # operations in the time of reading one number
_NEWTON_SWEEPS = {False: 8, True: 12}  # True: more than two classes
_QUASI_SWEEPS = {False: 14, True: 25}
_WORTH_MORE_SWEEPS = 0.6  # share of Newton's operations below which L-BFGS is taken: each sweep has an overhead
_HESSIAN_BYTES = 2 << 30
_ROUGH = 1e-7  # tolerance at which Newton's method takes over: it then needs one or two steps


@dataclass(frozen=True)
class GeneralisedCosts:
    """Costs of the two methods.

    Attributes
    ----------
    newton_flops, quasi_newton_flops : operations over all rows, including the reads; the latter with the Hessian at the
        end.
    hessian_bytes : bytes of the algebra on the driver, including the sums of the sweep.
    newton_sweeps, quasi_newton_sweeps : expected numbers of sweeps.
    """

    newton_flops: float
    quasi_newton_flops: float
    hessian_bytes: int
    newton_sweeps: int
    quasi_newton_sweeps: int

    @property
    def method(self) -> str:
        """The cheaper method, if the Hessian fits in memory and there is a sample."""
        cheap = self.quasi_newton_flops < _WORTH_MORE_SWEEPS * self.newton_flops
        return "quasi-newton" if cheap else "newton"


def generalised_costs(features: Features, likelihood: Likelihood, rows: int, sample_rows: int = 0) -> GeneralisedCosts:
    """Costs of a fit to `rows` rows. Each quasi-Newton step also costs the sums over a sample of `sample_rows` rows."""
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
    rows : number of rows that a sweep reads.
    sample : some of the rows, for the quasi-Newton method (`solve_quasi_newton`). Without a sample, "auto" takes
        Newton's method if its Hessian fits.
    method : "newton", "quasi-newton" or "auto".
    hessian_bytes : largest size of the Hessian. A larger Hessian is not summed, and the result has the mean curvature
        of the rows instead.
    most_iterations : largest number of iterations of each method; None for its own default.

    The other parameters, and the errors, are those of `solve_newton`.
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
    options: Fields = {"signal_variance": signal_variance, "intercept": intercept}
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
