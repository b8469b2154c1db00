"""Generalised regression by sweeps, against dense Newton steps on all coefficients, scikit-learn, and itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from likelihood_cases import EVERY, SIX, TIGHT, Case, Sweeps, overshooting
from problems import FLOAT64, basis_of, cut_session
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from strategies import cuts, few_examples

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import Bernoulli, Poisson, Softmax
from streamkernel.reductions.sums import Features
from streamkernel.solvers import solve_newton, solve_quasi_newton
from streamkernel.table import open_table

every = pytest.mark.parametrize("name", EVERY)


# ----------------------------------------------------------------------------------------------------------- the card
def test_logistic_regression_of_the_card() -> None:
    """ALGORITHMS 5.2: all rows as basis, no constant; w = K^-1 f = y - b'(f) at the minimum."""
    case = Case("bernoulli")
    fit = case.fit(intercept=False, **TIGHT)
    f = case.functions(fit)
    assert fit.objective == pytest.approx(15.7173, abs=5e-5)
    np.testing.assert_allclose(f[:4, 0], [1.49986, -0.907264, -1.7103, -0.882082], rtol=5e-6)
    w = np.linalg.solve(case.K, f)
    np.testing.assert_allclose(w, case.Y - case.likelihood.mean(f), atol=1e-8)
    np.testing.assert_array_equal(fit.latent.a, 0.0)


def test_logistic_regression_of_the_card_on_six_functions() -> None:
    fit = Case("bernoulli", SIX).fit(intercept=False)
    assert fit.objective == pytest.approx(16.1688, abs=5e-5)
    assert fit.converged


@every
@pytest.mark.parametrize("signal", [0.3, 4.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_every_row_as_basis_is_the_dense_minimum(name: str, intercept: bool, signal: float) -> None:
    case = Case(name)
    expected = naive.generalised(signal * case.K, case.codes, name, classes=case.likelihood.width, intercept=intercept)
    fit = case.fit(intercept=intercept, signal_variance=signal, **TIGHT)
    assert fit.objective == pytest.approx(expected.cost, rel=1e-10)
    assert fit.loss == pytest.approx(naive.negative_log_likelihood(name, case.codes, expected.f), rel=1e-8)
    # What is common to all classes says nothing.
    common = 0.0 if name != "softmax" else 1.0
    f, g = case.functions(fit), expected.f
    difference = f - g
    np.testing.assert_allclose(difference - common * difference.mean(axis=1, keepdims=True), 0.0, atol=1e-6)
    # Optimality: (s K)^-1 (f - b) = y - b'(f).
    w = np.linalg.solve(signal * case.K, f - fit.latent.a)
    np.testing.assert_allclose(w, case.Y - case.likelihood.mean(f), atol=1e-7)


@every
def test_few_functions_and_weights(name: str) -> None:
    """Weights count rows: a row of weight 2 is two rows."""
    case = Case(name, SIX)
    w = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(40), w.astype(int))
    weighted = solve_newton(case.sweeps(weights=w), case.features, case.likelihood, **TIGHT)
    repeated = solve_newton(Sweeps(case.X[twice], case.Y[twice]), case.features, case.likelihood, **TIGHT)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)
    np.testing.assert_allclose(weighted.u, repeated.u, atol=1e-8)
    K = case.G @ case.G.T + 1e-9 * np.eye(40)
    expected = naive.generalised(K, case.codes, name, classes=case.likelihood.width, intercept=True, weights=w)
    assert weighted.objective == pytest.approx(expected.cost, rel=1e-6)


def test_two_classes_of_a_softmax_are_a_bernoulli() -> None:
    case = Case("bernoulli", SIX)
    one = case.fit(signal_variance=2.0, **TIGHT)
    Y = np.hstack([1.0 - case.Y, case.Y])
    two = solve_newton(Sweeps(case.X, Y), case.features, Softmax(2), signal_variance=1.0, **TIGHT)
    indicators = solve_newton(Sweeps(case.X, Y), case.features, Bernoulli(), signal_variance=2.0, **TIGHT)
    assert one.objective == pytest.approx(two.objective, rel=1e-12)
    f = two.latent.values(case.G)
    np.testing.assert_allclose(f[:, 1] - f[:, 0], case.functions(one)[:, 0], atol=1e-10)
    np.testing.assert_array_equal(indicators.u, one.u)


# ------------------------------------------------------------------------------------------------------- scikit-learn
@pytest.mark.parametrize("signal", [0.5, 10.0])
def test_logistic_regression_of_scikit_learn_on_the_features(signal: float) -> None:
    case = Case("bernoulli", SIX)
    theirs = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=200)
    theirs.fit(np.sqrt(signal) * case.G, case.codes)
    fit = case.fit(signal_variance=signal, **TIGHT)
    np.testing.assert_allclose(fit.u[:, 0], theirs.coef_[0], atol=1e-7)
    np.testing.assert_allclose(fit.b, theirs.intercept_, atol=1e-7)


def test_multinomial_regression_of_scikit_learn_on_the_features() -> None:
    case = Case("softmax", SIX)
    theirs = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=200)
    theirs.fit(np.sqrt(3.0) * case.G, case.codes)
    fit = case.fit(signal_variance=3.0, **TIGHT)
    np.testing.assert_allclose(fit.u @ case.likelihood.contrasts.T, theirs.coef_.T, atol=1e-6)
    np.testing.assert_allclose(fit.latent.a, theirs.intercept_ - theirs.intercept_.mean(), atol=1e-6)


def test_poisson_regression_of_scikit_learn_on_the_features() -> None:
    case = Case("poisson", SIX)
    # Theirs is the mean deviance / 2 + alpha |w|^2 / 2.
    theirs = PoissonRegressor(alpha=1 / 40, solver="newton-cholesky", tol=1e-12, max_iter=200).fit(case.G, case.codes)
    fit = case.fit(**TIGHT)
    np.testing.assert_allclose(fit.u[:, 0], theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(fit.b, theirs.intercept_, atol=1e-7)


def test_a_real_data_set(shared_data: Callable[[str], Any]) -> None:
    data = shared_data("a9a")
    X, y = data["X"][:4000].astype(np.float64), (data["y"][:4000] > 0).astype(int)
    features = Features.of_basis(basis_of(X, range(0, 4000, 40), Gaussian(4.0)))
    G = features.of(X)
    theirs = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12).fit(np.sqrt(5.0) * G, y)
    sweeps = Sweeps(X, y[:, None].astype(np.float64), chunks=(1000,))
    fit = solve_newton(sweeps, features, Bernoulli(), signal_variance=5.0)
    assert len(sweeps.names) <= 8
    np.testing.assert_allclose(
        G @ fit.latent.A + fit.latent.a, theirs.decision_function(np.sqrt(5.0) * G)[:, None], atol=1e-5
    )


# ------------------------------------------------------------------------------------------------------------- sweeps
@every
@few_examples(0.25)
@given(chunks=cuts(40), block=st.integers(1, 16))
def test_any_chunking_has_the_same_minimum(name: str, chunks: Any, block: int) -> None:
    case = Case(name, SIX)
    expected = case.fit()
    table = open_table(case.X, case.Y)
    session = cut_session(chunks, block)

    def sweep(reduction: Any, name: str, /) -> Any:
        return session.sweep(reduction, table, name)

    found = solve_newton(sweep, case.features, case.likelihood)
    np.testing.assert_allclose(found.u, expected.u, atol=1e-8)
    np.testing.assert_allclose(found.b, expected.b, atol=1e-8)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)


@every
@pytest.mark.parametrize("solve", [solve_newton, solve_quasi_newton])
def test_a_full_step_that_is_accepted_costs_one_sweep(name: str, solve: Any) -> None:
    case = Case(name, SIX)
    sweeps = case.sweeps()
    fit = solve(sweeps, case.features, case.likelihood)
    shortened = sum(iteration.step < 1.0 for iteration in fit.iterations)
    assert len(sweeps.names) == 1 + len(fit.iterations) + shortened
    assert len(set(sweeps.names)) == len(sweeps.names)
    assert [name for name in sweeps.names if name.endswith("shortened")] == [
        f"{sweeps.names[0].split()[0]} step {i + 1} shortened"
        for i, iteration in enumerate(fit.iterations)
        if iteration.step < 1.0
    ]
    objectives = [iteration.objective for iteration in fit.iterations] + [fit.objective]
    assert (np.diff(objectives) < 1e-9).all()


@pytest.mark.parametrize("method", ["newton", "quasi-newton"])
def test_a_step_that_is_too_long_is_shortened(method: str) -> None:
    sweeps, features, G, counts = overshooting()
    options: dict[str, Any] = {"signal_variance": 9.0, "tolerance": 1e-12}
    if method == "newton":
        fit = solve_newton(sweeps, features, Poisson(), **options)
    else:
        everything = Sample(np.arange(60), np.linspace(0.0, 10.0, 60)[:, None], np.zeros((60, 1)), np.ones(60))
        fit = solve_quasi_newton(sweeps, features, Poisson(), sample=everything, **options)
    assert any(iteration.step < 1.0 for iteration in fit.iterations)
    assert fit.converged
    expected = naive.generalised(9.0 * G @ G.T + 1e-10 * np.eye(60), counts, "poisson", intercept=True)
    assert fit.objective == pytest.approx(expected.cost, rel=1e-6)


def test_a_sweep_is_a_function_of_the_states_before() -> None:
    """What a resumed fit relies on: the same states in, the same reductions out."""
    sweeps, features, _, _ = overshooting()
    returned: list[Any] = []

    def remembering(reduction: Any, name: str, /) -> Any:
        returned.append((name, reduction, sweeps(reduction, name)))
        return returned[-1][2]

    first = solve_newton(remembering, features, Poisson())
    recorded = iter(returned)

    def replaying(reduction: Any, name: str, /) -> Any:
        then, earlier, sums = next(recorded)
        assert name == then
        for end in ("start", "end") if hasattr(reduction, "end") else ():
            np.testing.assert_array_equal(getattr(reduction, end).A, getattr(earlier, end).A)
            np.testing.assert_array_equal(getattr(reduction, end).a, getattr(earlier, end).a)
        return sums

    again = solve_newton(replaying, features, Poisson())
    np.testing.assert_array_equal(again.u, first.u)
    assert again.objective == first.objective


@every
def test_a_start_at_the_minimum_costs_one_sweep(name: str) -> None:
    case = Case(name, SIX)
    there = case.fit()
    sweeps = case.sweeps()
    again = solve_newton(sweeps, case.features, case.likelihood, start=there.latent)
    assert sweeps.names == ["newton start"]
    np.testing.assert_allclose(again.u, there.u, atol=1e-6)
    assert again.objective == pytest.approx(there.objective, rel=1e-9)


@pytest.mark.parametrize("solve", [solve_newton, solve_quasi_newton])
def test_too_few_iterations_are_said(solve: Any) -> None:
    case = Case("bernoulli", SIX)
    with pytest.warns(StreamKernelWarning, match="made 1 iterations and another would take"):
        fit = case.fit(solve, most_iterations=1)
    assert not fit.converged
    assert fit.decrement > 0.0


def test_sums_that_are_not_finite_are_named() -> None:
    case = Case("bernoulli", SIX)
    case.X = case.X.copy()
    case.X[3] = np.nan
    with pytest.raises(NumericalError, match="the Hessian of the likelihood has"):
        case.fit()


# ---------------------------------------------------------------------------------------------------------- hard cases
def separable(classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(classes), 30)
    X = 4.0 * np.stack([np.cos(2.1 * codes), np.sin(2.1 * codes)], axis=1) + 0.2 * rng.standard_normal((len(codes), 2))
    return X, np.eye(classes)[codes]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("signal", [1.0, 1e4])
def test_separable_classes(signal: float, classes: int) -> None:
    X, Y = separable(classes)
    likelihood = Bernoulli() if classes == 2 else Softmax(3)
    features = Features.of_basis(basis_of(X, range(0, len(X), 6)))
    fit = solve_newton(Sweeps(X, Y), features, likelihood, signal_variance=signal)
    assert fit.converged
    assert len(fit.iterations) < 20
    f = fit.latent.values(features.of(X))
    assert (np.where(f > 0, 1, 0)[:, 0] == Y[:, 1]).all() if classes == 2 else (f.argmax(1) == Y.argmax(1)).all()
    assert fit.loss < 0.5 * len(X)


@pytest.mark.parametrize("present", [0, 1])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_that_is_almost_or_quite_absent(classes: int, present: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    codes = np.where(X[:, 0] > 0, classes - 2, 0)
    codes[:present] = classes - 1
    features = Features.of_basis(basis_of(X, range(0, 400, 25)))
    likelihood = Bernoulli() if classes == 2 else Softmax(3)
    sweeps = Sweeps(X, np.eye(classes)[codes], chunks=(100,))
    fit = solve_newton(sweeps, features, likelihood)
    assert fit.converged
    assert len(sweeps.names) < 25
    probability = likelihood.mean(fit.latent.values(features.of(X)))[:, -1]
    assert probability.sum() == pytest.approx(present, abs=0.02)
    cheap = solve_quasi_newton(sweeps, features, likelihood, tolerance=1e-9)
    assert cheap.objective == pytest.approx(fit.objective, abs=2e-3)


def test_counts_that_are_all_zero() -> None:
    case = Case("poisson", SIX)
    fit = solve_newton(Sweeps(case.X, np.zeros((40, 1))), case.features, Poisson())
    assert fit.loss < 2e-3
    assert np.isfinite(fit.latent.A).all()


def test_duplicate_rows_and_an_empty_basis() -> None:
    case = Case("bernoulli", SIX)
    X, Y = np.repeat(case.X[:1], 30, axis=0), np.repeat(case.Y, 1)[:30, None]
    fit = solve_newton(Sweeps(X, Y), case.features, Bernoulli(), **TIGHT)
    p = case.likelihood.mean(fit.latent.values(case.features.of(X[:1])))
    assert p[0, 0] == pytest.approx(Y.mean(), rel=1e-8)
    empty = Features.of_basis(Basis.empty(Gaussian(1.0), 2, FLOAT64))
    constant = solve_newton(case.sweeps(), empty, Bernoulli())
    assert constant.u.shape == (0, 1)
    share = case.Y.mean()
    assert constant.b[0] == pytest.approx(np.log(share / (1 - share)), rel=1e-8)
