"""Laplace's approximation against dense matrices, scikit-learn, and central differences; tuning by its evidence."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, blocks
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Gaussian, Kernel, Linear, Matern, log_lengthscales, with_log_lengthscales
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import Bernoulli, Likelihood, Poisson, Softmax
from streamkernel.reductions.predictions import ClassProbabilities, PoissonPredictions, covariance_of
from streamkernel.reductions.sums import Features
from streamkernel.solvers import LaplaceApproximation, solve_newton, solve_quasi_newton
from streamkernel.tuning import LaplaceEvidence, Tuning, tune_likelihood

EVERY: dict[str, Likelihood] = {"bernoulli": Bernoulli(), "poisson": Poisson(), "softmax": Softmax(3)}
every = pytest.mark.parametrize("name", EVERY)


def case(name: str) -> tuple[Likelihood, Any, Any, Any]:
    """Likelihood, rows, codes and targets of the card."""
    card, likelihood = naive.card(), EVERY[name]
    codes = {
        "bernoulli": (card.t > 0).astype(int),
        "poisson": np.round(np.exp(card.y)).astype(int),
        "softmax": np.digitize(card.y, [-0.5, 0.6]),
    }[name]
    return likelihood, card.X, codes, naive.indicators(name, codes, likelihood.width)


def fitted(name: str, basis: Basis, solve: Any = solve_newton, **options: Any) -> LaplaceApproximation:
    likelihood, X, _, Y = case(name)

    def sweep(reduction: Any, name: str, /) -> Any:
        return reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)]))))

    options = {"tolerance": 1e-13, **options}
    return LaplaceApproximation.of(solve(sweep, Features.of_basis(basis), likelihood, **options))


# ----------------------------------------------------------------------------------------------------------- posterior
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@every
def test_moments_and_evidence_are_those_of_dense_matrices(name: str, intercept: bool, few: bool) -> None:
    likelihood, X, codes, _ = case(name)
    Xq, s, c = naive.card().Xq, 2.5, likelihood.width
    basis = basis_of(X, [17, 4, 27, 33, 29, 20] if few else range(40))
    found = fitted(name, basis, signal_variance=s, intercept=intercept)
    # What the basis leaves open is prior variance, at the rows as at the queries: K~ + diag r.
    G, Z = basis.features(X), basis.features(Xq)
    K = s * G @ G.T if few else s * naive.card().K
    K_qm, K_qq = s * Z @ G.T, s * np.eye(len(Xq))
    fit = naive.generalised(K + 1e-10 * np.eye(40), codes, name, classes=c, intercept=intercept)
    mean, covariance, evidence = naive.laplace_posterior(K, codes, name, fit, K_qm, K_qq)
    Q = likelihood.contrasts
    latent_mean, latent_covariance = found.posterior(basis).moments(Xq)
    np.testing.assert_allclose(latent_mean @ Q, mean @ Q, atol=1e-5)
    np.testing.assert_allclose(latent_covariance, np.einsum("qcd,ca,db->qab", covariance, Q, Q), atol=1e-6)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-5)
    np.testing.assert_allclose(found.posterior(basis).mean(Xq), latent_mean, atol=1e-9)
    assert 0.0 < found.effective_parameters < len(basis) * likelihood.free


def test_laplace_classification_of_scikit_learn() -> None:
    """Theirs has no constant; their integral of the logistic function is a mixture of five."""
    _, X, codes, _ = case("bernoulli")
    Xq = naive.card().Xq
    theirs = GaussianProcessClassifier(ConstantKernel(4.0) * RBF(1.0), optimizer=None, max_iter_predict=1000)
    theirs.fit(X, codes)
    basis = basis_of(X, range(40))
    found = fitted("bernoulli", basis, signal_variance=4.0, intercept=False)
    assert found.log_evidence == pytest.approx(theirs.log_marginal_likelihood(), abs=1e-4)
    probabilities = ClassProbabilities(found.posterior(basis)).probabilities(Xq)
    np.testing.assert_allclose(probabilities, theirs.predict_proba(Xq), atol=1e-3)


@every
def test_a_product_stands_for_the_hessian_where_the_curvature_is_constant(name: str) -> None:
    _, X, _, _ = case(name)
    basis = basis_of(X, [17, 4, 27, 33, 29, 20])
    # So little signal that the functions are constants.
    exact, product = (fitted(name, basis, solve, signal_variance=1e-5) for solve in (solve_newton, solve_quasi_newton))
    assert product.fit.curvature is None
    assert product.log_evidence == pytest.approx(exact.log_evidence, abs=1e-7)
    assert product.effective_parameters == pytest.approx(exact.effective_parameters, rel=1e-3)
    Xq = naive.card().Xq
    (G,) = (basis.features(Xq),)
    np.testing.assert_allclose(product.covariance.explained(G), exact.covariance.explained(G), atol=1e-6)


@pytest.mark.parametrize("solve", [solve_newton, solve_quasi_newton])
def test_covariances_are_kept_as_arrays(solve: Any) -> None:
    likelihood, X, _, _ = case("softmax")
    basis = basis_of(X, [17, 4, 27, 33, 29, 20])
    covariance = fitted("softmax", basis, solve).covariance
    again = covariance_of(covariance.to_arrays())
    G = basis.features(X)
    np.testing.assert_array_equal(again.explained(G), covariance.explained(G))
    assert again.free == likelihood.free
    assert np.linalg.eigvalsh(covariance.explained(G)).min() > 0.0


def test_counts_are_predicted_with_what_is_not_known_of_their_rate() -> None:
    _, X, _, _ = case("poisson")
    basis = basis_of(X, [17, 4, 27])
    posterior = fitted("poisson", basis).posterior(basis)
    near, far = PoissonPredictions(posterior).moments(np.array([X[17], [50.0, 50.0]]))[1]
    mean, covariance = posterior.moments(X[17:18])
    # By quadrature over the log normal rate: E y = E r, var y = E r + var r.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    rates = np.exp(mean[0, 0] + np.sqrt(covariance[0, 0, 0]) * nodes)
    first, second = (float(weights @ rates**power / weights.sum()) for power in (1, 2))
    assert near[0] == pytest.approx(first + second - first**2, rel=1e-9)
    assert far[0] > near[0]


# ------------------------------------------------------------------------------------------------------------ gradient
def problem(name: str, m: int = 150) -> tuple[Likelihood, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 3))
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1]
    codes = {
        "bernoulli": rng.uniform(size=m) < 1 / (1 + np.exp(-f)),
        "poisson": rng.poisson(np.exp(f / 2)),
        "softmax": np.digitize(f + rng.standard_normal(m), [-1.0, 1.0]),
    }[name]
    return EVERY[name], X, naive.indicators(name, codes.astype(int), EVERY[name].width)


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Matern((1.0, 2.0, 1.5)), Gaussian(1.3) + Matern(0.7)])
@pytest.mark.parametrize("weighted", [False, True])
@every
def test_gradient_of_the_evidence_by_central_differences(name: str, weighted: bool, kernel: Kernel) -> None:
    likelihood, X, Y = problem(name)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    at = np.append(log_lengthscales(kernel), np.log(2.0))

    def evidence(values: Any) -> tuple[LaplaceEvidence, Any]:
        made = LaplaceEvidence(X, Y, w, likelihood, basis_of(X, range(15), kernel), tolerance=1e-13)
        return made, made.at(with_log_lengthscales(kernel, values[:-1]), float(np.exp(values[-1])))

    made, value = evidence(at)
    gradient = made.gradient(value)
    for j in range(len(at)):
        step = np.zeros(len(at))
        step[j] = 1e-4
        slope = (evidence(at + step)[1].value - evidence(at - step)[1].value) / 2e-4
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-4)


def test_the_evidence_does_not_depend_on_where_the_last_one_ended() -> None:
    likelihood, X, Y = problem("softmax")
    points = basis_of(X, range(15))
    walked = LaplaceEvidence(X, Y, None, likelihood, points)
    for lengthscale in (0.5, 3.0, 1.0):
        value = walked.at(Gaussian(lengthscale), 2.0)
    fresh = LaplaceEvidence(X, Y, None, likelihood, points).at(Gaussian(1.0), 2.0)
    assert value.value == pytest.approx(fresh.value, abs=1e-4)


# -------------------------------------------------------------------------------------------------------------- tuning
def sample_of(X: Any, Y: Any, weights: Any = None) -> Sample:
    return Sample(np.arange(len(X)), X, Y, np.ones(len(X)) if weights is None else weights)


def tuned(name: str, kernel: Kernel | None = None, m: int = 400, **options: Any) -> Tuning:
    likelihood, X, Y = problem(name, m)
    return tune_likelihood(sample_of(X, Y), kernel or Gaussian(2.0), likelihood, **{"n_basis": 60, **options})


@every
def test_tuning_finds_the_largest_evidence(name: str) -> None:
    found = tuned(name)
    assert found.value == max(point.value for point in found.points)
    assert {point.stage for point in found.points} == {"grid", "search"}
    best = max(found.points, key=lambda point: point.value)
    assert (best.signal, best.lengthscales) == (found.signal, tuple(np.exp(log_lengthscales(found.kernel))))
    likelihood, X, Y = problem(name, 400)
    evidence = LaplaceEvidence(X, Y, None, likelihood, basis_of(X, range(0, 400, 3)))
    values = {
        (step, factor): evidence.at(Gaussian(step * found.kernel.lengthscale), factor * found.signal).value / 400
        for step in (0.5, 1.0, 2.0)
        for factor in (0.3, 1.0, 3.0)
    }
    assert max(values.values()) < values[1.0, 1.0] + 3e-3


def test_tuning_sees_which_features_matter() -> None:
    found = tuned("bernoulli", ard=True, m=800)
    first, _, irrelevant = found.kernel.lengthscale
    assert irrelevant > 4.0 * first
    assert found.value > tuned("bernoulli", m=800).value


def test_what_is_fixed_stays() -> None:
    found = tuned("bernoulli", fixed=["lengthscale"], signal=3.0)
    assert found.kernel == Gaussian(2.0)
    assert found.signal != 3.0
    assert found.moved == ("signal",)
    found = tuned("bernoulli", fixed=["signal"], signal=3.0)
    assert found.signal == pytest.approx(3.0)
    assert found.kernel != Gaussian(2.0)
    found = tuned("bernoulli", fixed=["signal", "lengthscale"], signal=3.0)
    assert (found.kernel, found.moved) == (Gaussian(2.0), ())
    found = tuned("bernoulli", Linear())
    assert found.kernel == Linear()
    assert found.signal > 0.0


def test_the_same_seed_gives_the_same_bits() -> None:
    assert tuned("poisson", seed=3).points == tuned("poisson", seed=3).points


def test_of_many_classes_the_commonest_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    codes = np.minimum((np.abs(X[:, 0]) * 8).astype(int), 14)
    found = tune_likelihood(sample_of(X, np.eye(15)[codes]), Gaussian(1.0), Softmax(15), n_basis=20, rounds=1)
    kept = np.sort(np.bincount(codes, minlength=15))[::-1][:12]
    assert found.rows == kept.sum() < 300
    assert np.isfinite(found.value)


@pytest.mark.parametrize("looks", [0, 10])
def test_where_digits_end_at_once(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first point of a round it stays where it is; everywhere, there is nothing to find."""
    at, asked = LaplaceEvidence.at, iter(range(10**6))

    def cut(self: LaplaceEvidence, *where: Any) -> Any:
        if next(asked) >= looks:
            raise NumericalError("too far")
        return at(self, *where)

    monkeypatch.setattr(LaplaceEvidence, "at", cut)
    if looks == 0:
        with pytest.raises(NumericalError, match="evidence of the 400 sampled rows is not finite at any point"):
            tuned("bernoulli")
        return
    found = tuned("bernoulli")
    assert {point.stage for point in found.points} == {"grid"}
    assert found.value == max(point.value for point in found.points)
    assert next(asked) == looks + 1


def test_wrong_arguments() -> None:
    with pytest.raises(ParameterError, match="fixed = \\['noise'\\] names what cannot move"):
        tuned("bernoulli", fixed=["noise"])
    with pytest.raises(ParameterError, match="n_basis"):
        tuned("bernoulli", n_basis=0)
    with pytest.raises(ParameterError, match="signal"):
        tuned("bernoulli", signal=-1.0)
