"""The exact Gaussian process: printed numbers, the dense oracle, scikit-learn, and the gradient by differences."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import examples
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as processes
from strategies import rows, seeds

from streamkernel.errors import NumericalError, ParameterError, ResourceLimitError, ShapeError, ShapeMismatchError
from streamkernel.kernels import Gaussian, Matern, log_lengthscales, with_log_lengthscales
from streamkernel.solvers import ExactGP
from streamkernel.solvers.gaussian_processes.exact_gp import MOST_ROWS

Float = NDArray[np.float64]
C = naive.card()


def test_printed_numbers() -> None:
    process = ExactGP(C.X, C.y, Gaussian(1.0), noise=0.1)
    found = process.posterior(C.Xq)
    printed = [-0.463676, -0.475682, -0.138733, 0.260781, 0.440944, 0.358999]
    np.testing.assert_allclose(found.mean[:, 0], printed, atol=1e-6)
    np.testing.assert_allclose(
        found.variance, [0.0486935, 0.0509141, 0.0899311, 0.178532, 0.209779, 0.181893], atol=1e-6
    )
    assert process.log_evidence == pytest.approx(-16.5814, abs=1e-4)


@given(rows(min_rows=2, max_rows=30, dtype=np.float64), seeds, st.data())
def test_posterior_and_evidence_are_the_oracles(X: Float, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    Y, Xq = rng.standard_normal((len(X), 2)), rng.standard_normal((4, X.shape[1]))
    signal, noise = data.draw(st.floats(0.1, 10.0)), data.draw(st.floats(0.01, 1.0))
    kernel = data.draw(st.sampled_from([Gaussian(1.0), Matern(1.0, 0.5), Gaussian(1.0) + Matern(3.0)]))
    process = ExactGP(X, Y, kernel, signal=signal, noise=noise)
    found = process.posterior(Xq, covariance=True)
    total = 0.0
    for j in range(2):
        mean, variance, evidence = naive.gaussian_process(
            signal * kernel(X), Y[:, j], noise, signal * kernel(Xq, X), signal * kernel.diagonal(Xq)
        )
        np.testing.assert_allclose(found.mean[:, j], mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-7, atol=1e-9 * signal)
        total += evidence
    assert process.log_evidence == pytest.approx(total, rel=1e-9)
    assert found.covariance is not None
    np.testing.assert_allclose(np.diagonal(found.covariance), process.posterior(Xq).variance, atol=1e-9 * signal)
    assert np.linalg.eigvalsh(found.covariance)[0] >= -1e-9 * signal


def test_scikit_learn_has_the_same() -> None:
    reference = GaussianProcessRegressor(1.7 * processes.RBF([0.8, 1.3]) + processes.WhiteKernel(0.1), optimizer=None)
    reference.fit(C.X, C.y)
    process = ExactGP(C.X, C.y, Gaussian((0.8, 1.3)), signal=1.7, noise=0.1)
    found = process.posterior(C.Xq, covariance=True)
    mean, covariance = reference.predict(C.Xq, return_cov=True)
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-8)
    np.testing.assert_allclose(found.covariance + 0.1 * np.eye(6), covariance, atol=1e-8)
    value, gradient = reference.log_marginal_likelihood(reference.kernel_.theta, eval_gradient=True)
    assert process.log_evidence == pytest.approx(value)
    # scikit-learn's order: signal, lengthscales, noise.
    np.testing.assert_allclose(process.gradient, gradient[[1, 2, 0, 3]], rtol=1e-6)


@pytest.mark.parametrize("p", [1, 3])
def test_gradients_by_differences(p: int) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, p)), rng.standard_normal((40, 2))
    for kernel in filter(lambda kernel: kernel.positive_definite, examples(p)):

        def f(v: Float, kernel=kernel) -> float:
            K = with_log_lengthscales(kernel, v[:-2])(X)
            return naive.exact_evidence(K, Y, float(np.exp(v[-2])), float(np.exp(v[-1])))

        expected = naive.slopes(f, np.concatenate([log_lengthscales(kernel), np.log([1.7, 0.3])]), 1e-3)
        found = ExactGP(X, Y, kernel, signal=1.7, noise=0.3).gradient
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max(), err_msg=str(kernel))


def test_too_many_rows_are_refused_before_any_work() -> None:
    X = np.zeros((MOST_ROWS + 1, 1))
    with pytest.raises(ResourceLimitError, match="20001 rows holds 9 GiB and is for at most 20000 rows; take fewer"):
        ExactGP(X, np.zeros(MOST_ROWS + 1), Gaussian(1.0))


def test_what_cannot_be() -> None:
    X = np.random.default_rng(0).standard_normal((5, 2))
    with pytest.raises(ShapeMismatchError, match=r"X has 5 rows, Y the shape \(4,\)"):
        ExactGP(X, np.zeros(4), Gaussian(1.0))
    with pytest.raises(ParameterError, match="noise = 0"):
        ExactGP(X, np.zeros(5), Gaussian(1.0), noise=0.0)
    with pytest.raises(NumericalError, match=r"X has . values that are NaN"):
        ExactGP(np.where(X > 1.0, np.nan, X), np.zeros(5), Gaussian(1.0))
    with pytest.raises(NumericalError, match="the covariance of the targets is not positive definite"):
        ExactGP(np.zeros((50, 1)), np.zeros(50), Gaussian(1.0), noise=1e-18)
    with pytest.raises(ShapeError, match="3 columns"):
        ExactGP(X, np.zeros(5), Gaussian(1.0)).posterior(np.zeros((2, 3)))
