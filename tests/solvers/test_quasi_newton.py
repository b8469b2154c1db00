"""Quasi-Newton steps against Newton's, and the choice between them."""

from __future__ import annotations

import numpy as np
import pytest
from likelihood_cases import EVERY, SIX, TIGHT, Case, Sweeps, mixture
from problems import basis_of

from streamkernel.errors import ParameterError
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import Bernoulli, Softmax
from streamkernel.reductions.sums import Features
from streamkernel.solvers import generalised_costs, solve_generalised, solve_newton, solve_quasi_newton

every = pytest.mark.parametrize("name", EVERY)


# ------------------------------------------------------------------------------------------------------- quasi-Newton
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("classes", [2, 4, 9])
def test_quasi_newton_has_newtons_minimum(classes: int, sampled: bool) -> None:
    X, Y, features = mixture(classes)
    likelihood = Bernoulli() if classes == 2 else Softmax(classes)
    rows = np.arange(0, len(X), 5)
    sample = Sample(rows, X[rows], Y[rows], np.ones(len(rows))) if sampled else None
    exact = solve_newton(Sweeps(X, Y, chunks=(500,)), features, likelihood, signal_variance=2.0, **TIGHT)
    sweeps = Sweeps(X, Y, chunks=(500,))
    cheap = solve_quasi_newton(sweeps, features, likelihood, signal_variance=2.0, tolerance=1e-13, sample=sample)
    assert cheap.converged
    assert cheap.objective == pytest.approx(exact.objective, rel=1e-11)
    np.testing.assert_allclose(cheap.u, exact.u, atol=2e-4)
    assert len(sweeps.names) < (30 if sampled else 70)


@every
@pytest.mark.parametrize("intercept", [False, True])
def test_quasi_newton_of_the_card(name: str, intercept: bool) -> None:
    case = Case(name, SIX)
    exact, cheap = (
        case.fit(solve, intercept=intercept, tolerance=1e-13) for solve in (solve_newton, solve_quasi_newton)
    )
    assert cheap.objective == pytest.approx(exact.objective, rel=1e-11)
    np.testing.assert_allclose(cheap.u, exact.u, atol=2e-5)
    np.testing.assert_allclose(cheap.b, exact.b, atol=2e-5)


# ------------------------------------------------------------------------------------------------------ the cheaper way
@pytest.mark.parametrize("method", ["auto", "newton", "quasi-newton"])
def test_every_way_leads_to_the_minimum(method: str) -> None:
    X, Y, features = mixture(4)
    exact = solve_newton(Sweeps(X, Y), features, Softmax(4), **TIGHT)
    rows = np.arange(0, len(X), 5)
    sample = Sample(rows, X[rows], Y[rows], np.ones(len(rows)))
    fit = solve_generalised(Sweeps(X, Y), features, Softmax(4), len(X), sample=sample, method=method)
    assert fit.curvature is not None
    assert fit.converged
    assert fit.objective == pytest.approx(exact.objective, rel=1e-8)
    if method != "auto":
        assert fit.method == method


def test_a_hessian_that_does_not_fit_is_not_summed() -> None:
    X, Y, features = mixture(4)
    exact = solve_newton(Sweeps(X, Y), features, Softmax(4), **TIGHT)
    fit = solve_generalised(Sweeps(X, Y), features, Softmax(4), len(X), hessian_bytes=10_000)
    assert fit.method == "quasi-newton"
    assert fit.curvature is None
    assert fit.objective == pytest.approx(exact.objective, rel=1e-7)
    with pytest.raises(ParameterError, match="take fewer basis functions, or method 'quasi-newton'"):
        solve_generalised(Sweeps(X, Y), features, Softmax(4), 1, method="newton", hessian_bytes=10_000)
    with pytest.raises(ParameterError, match="choose one of auto, newton, quasi-newton"):
        solve_generalised(Sweeps(X, Y), features, Softmax(4), 1, method="bfgs")


def test_costs_choose() -> None:
    """Few functions of two classes: few sweeps. Many functions or classes: few operations."""
    X = np.random.default_rng(0).standard_normal((2000, 10))
    few, many = (Features.of_basis(basis_of(X, range(n))) for n in (200, 2000))
    assert generalised_costs(few, Bernoulli(), 10**6, 4000).method == "newton"
    assert generalised_costs(many, Bernoulli(), 10**6, 4000).method == "quasi-newton"
    assert generalised_costs(few, Softmax(10), 10**6, 4000).method == "quasi-newton"
    costs = generalised_costs(few, Softmax(10), 10**6, 4000)
    assert costs.hessian_bytes > 8 * (45 * 201**2 + 3 * (9 * 201) ** 2)
