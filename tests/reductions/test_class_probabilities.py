"""Probabilities and rates from latent moments, against quadrature and random draws."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks
from scipy.special import expit

from streamkernel.kernels import Gaussian
from streamkernel.reductions import RowMap
from streamkernel.reductions.likelihoods import Softmax
from streamkernel.reductions.predictions import (
    ClassProbabilities,
    FullCovariance,
    KroneckerCovariance,
    LatentCovariance,
    LatentPosterior,
    PoissonPredictions,
)
from streamkernel.reductions.predictions.class_probabilities import logistic_normal


def posterior(width: int, signal: float = 2.0, kronecker: bool = False, seed: int = 0) -> tuple[LatentPosterior, Any]:
    """Any posterior on eight functions, and some rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 3))
    n, contrasts = 8, np.ones((1, 1)) if width == 1 else Softmax(width).contrasts
    r = contrasts.shape[1]
    covariance: LatentCovariance
    if kronecker:
        vectors, class_vectors = (np.linalg.qr(rng.standard_normal((size, size)))[0] for size in (n, r))
        covariance = KroneckerCovariance(vectors, class_vectors, rng.uniform(0.1, 1.0, (n, r)))
    else:
        root = np.tril(rng.standard_normal((n * r, n * r)))
        root /= np.linalg.norm(root, 2)
        blocks_ = [root[j * n : j * n + n, a * n : a * n + n] for j in range(r) for a in range(j + 1)]
        covariance = FullCovariance(np.stack(blocks_))
    coefficients = rng.standard_normal((n, width))
    basis = basis_of(X, range(n), Gaussian(1.5))
    return LatentPosterior(basis, coefficients, rng.standard_normal(width), contrasts, signal, covariance), X


# --------------------------------------------------------------------------------------------------------- two classes
@given(mean=st.floats(-30, 30), deviation=st.floats(0, 20))
def test_averages_of_the_logistic_function(mean: float, deviation: float) -> None:
    found = float(logistic_normal(np.array([mean]), np.array([deviation**2]))[0])
    assert found == pytest.approx(naive.average_logistic(mean, deviation**2), abs=1e-8)


def test_averages_far_out() -> None:
    """Never more certain than at the mean, symmetric, and 1/2 where nothing is known."""
    mean = np.array([-500.0, -40.0, 0.0, 40.0, 500.0])
    for variance in (0.0, 1.0, 1e6):
        p = logistic_normal(mean, np.full(5, variance))
        assert ((p >= 0.0) & (p <= 1.0)).all()
        assert p[2] == pytest.approx(0.5, abs=1e-12)
        np.testing.assert_allclose(p + p[::-1], 1.0, atol=1e-15)
        assert (p[:2] >= expit(mean[:2])).all()
    assert 0.0 < logistic_normal(np.array([-40.0]), np.array([1.0]))[0] < 1e-16


@pytest.mark.parametrize("kronecker", [False, True])
def test_two_classes(kronecker: bool) -> None:
    latent, X = posterior(1, kronecker=kronecker)
    mean, covariance = latent.moments(X)
    probabilities = ClassProbabilities(latent).probabilities(X)
    expected = [naive.average_logistic(m, v) for m, v in zip(mean[:, 0], covariance[:, 0, 0], strict=True)]
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)


def test_two_classes_of_a_softmax_are_as_exact() -> None:
    latent, X = posterior(2)
    mean, covariance = latent.moments(X)
    spread = latent.contrasts[1] - latent.contrasts[0]
    expected = [
        naive.average_logistic(m[1] - m[0], float(spread @ v @ spread)) for m, v in zip(mean, covariance, strict=True)
    ]
    np.testing.assert_allclose(ClassProbabilities(latent).probabilities(X)[:, 1], expected, atol=1e-8)


# -------------------------------------------------------------------------------------------------------- more classes
@pytest.mark.parametrize("kronecker", [False, True])
@pytest.mark.parametrize("classes", [3, 6])
@pytest.mark.parametrize(("signal", "off"), [(0.2, 2e-3), (2.0, 6e-3), (20.0, 3e-2)])
def test_more_classes_against_random_draws(classes: int, kronecker: bool, signal: float, off: float) -> None:
    latent, X = posterior(classes, signal, kronecker)
    probabilities = ClassProbabilities(latent).probabilities(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    rng = np.random.default_rng(5)
    draws = rng.standard_normal((40_000, classes - 1))
    for i in (0, 20, 49):
        mean, covariance = latent.moments(X[i : i + 1])
        f = np.exp(mean[0] + draws @ (latent.contrasts @ np.linalg.cholesky(covariance[0])).T)
        expected = (f / f.sum(axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(probabilities[i], expected, atol=off + 2e-3)


def test_without_variance_probabilities_are_those_of_the_mean() -> None:
    latent, X = posterior(4, signal=1e-12)
    f = np.exp(latent.mean(X))
    expected = f / f.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ClassProbabilities(latent).probabilities(X), expected, atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3, 40])
@pytest.mark.parametrize("kronecker", [False, True])
def test_rows_are_predicted_one_by_one(width: int, kronecker: bool) -> None:
    latent, X = posterior(width, kronecker=kronecker)
    work = ClassProbabilities(latent)
    whole = work.map_block(next(blocks(X, None, [50])))
    assert {name: dtype for name, (_, dtype) in work.columns.items()} == {
        "probability": np.dtype(np.float64),
        "prediction": np.dtype(np.int64),
    }
    assert whole["probability"].shape == (50, work.classes) == (50, work.columns["probability"][0])
    np.testing.assert_array_equal(whole["prediction"], whole["probability"].argmax(axis=1))
    for i in (0, 7):
        np.testing.assert_allclose(work.probabilities(X[i : i + 1])[0], whole["probability"][i], rtol=1e-9)


def test_covariances_are_the_formula() -> None:
    """s (k(x, x) - z'z) I + s (I kron z)' (W'W) (I kron z), W lower in blocks."""
    latent, X = posterior(3, signal=1.7)
    assert isinstance(latent.covariance, FullCovariance)
    W = np.zeros((16, 16))
    W[:8, :8], W[8:, :8], W[8:, 8:] = latent.covariance.blocks
    Z = latent.basis.features(X)
    _, covariance = latent.moments(X)
    for i in range(len(X)):
        wide = np.kron(np.eye(2), Z[i][:, None])
        expected = 1.7 * ((1.0 - Z[i] @ Z[i]) * np.eye(2) + wide.T @ W.T @ W @ wide)
        np.testing.assert_allclose(covariance[i], expected, atol=1e-10)


# --------------------------------------------------------------------------------------------------------------- counts
def test_counts() -> None:
    latent, X = posterior(1, signal=0.5)
    mean, covariance = latent.moments(X)
    v = covariance[:, 0]
    work = PoissonPredictions(latent, std=True)
    np.testing.assert_allclose(work.values(X), np.exp(mean + v / 2), rtol=1e-12)
    np.testing.assert_array_equal(work.rate(X), work.values(X)[:, 0])
    columns = work.map_block(next(blocks(X, None, [50])))
    np.testing.assert_array_equal(columns["prediction"], work.rate(X))
    rate = columns["prediction"]
    np.testing.assert_allclose(columns["std"] ** 2, rate + rate**2 * np.expm1(v[:, 0]), rtol=1e-12)
    assert (
        set(PoissonPredictions(latent).columns)
        == set(PoissonPredictions(latent).map_block(next(blocks(X, None, [50]))))
        == {"prediction"}
    )


def test_rates_beyond_all_numbers_are_bounded_in_silence() -> None:
    latent, X = posterior(1, signal=1e5)
    mean, variance = PoissonPredictions(latent).moments(X)
    assert np.isfinite(mean).all()
    assert not np.isnan(variance).any()


@pytest.mark.parametrize(
    "work",
    [ClassProbabilities(posterior(1)[0]), ClassProbabilities(posterior(5)[0]), PoissonPredictions(posterior(1)[0])],
)
def test_what_the_plan_asks(work: RowMap) -> None:
    assert work.flops_per_row() > 0.0
    assert work.scratch_bytes(2000) > work.scratch_bytes(1000) > 0
