"""p(y | f): formulas, derivatives, far out, and what is refused."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import seeds

from streamkernel.errors import DataError, ParameterError
from streamkernel.reductions.likelihoods import LIKELIHOODS, Bernoulli, Likelihood, Poisson, Softmax, likelihood_of

EVERY: dict[str, Likelihood] = {"bernoulli": Bernoulli(), "poisson": Poisson(), "softmax": Softmax(4)}
every = pytest.mark.parametrize("name", EVERY)


def drawn(name: str, seed: int, m: int = 30, size: float = 2.0) -> tuple[Likelihood, Any, Any, Any]:
    """Likelihood, functions (m, c), targets (m, c), and the same as codes or counts (m,)."""
    likelihood, rng = EVERY[name], np.random.default_rng(seed)
    f = size * rng.standard_normal((m, likelihood.width))
    top = {"bernoulli": 2, "poisson": 9, "softmax": 4}[name]
    codes = rng.integers(0, top, m)
    return likelihood, f, naive.indicators(name, codes, likelihood.width), codes


@every
@given(seed=seeds)
def test_losses_are_the_definition(name: str, seed: int) -> None:
    likelihood, f, y, codes = drawn(name, seed)
    losses = likelihood.loss(y, f)
    for i in range(len(f)):
        expected = naive.negative_log_likelihood(name, codes[i : i + 1], f[i : i + 1])
        assert losses[i] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    mean, curvature = naive.response_moments(name, f)
    np.testing.assert_allclose(likelihood.mean(f), mean, rtol=1e-12)
    np.testing.assert_allclose(likelihood.curvature(f), curvature, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(likelihood.diagonal(f), np.einsum("icc->ic", curvature), rtol=1e-9, atol=1e-9)


@every
def test_derivatives_by_central_differences(name: str) -> None:
    likelihood, f, y, _ = drawn(name, 0)
    v = np.random.default_rng(1).standard_normal((len(f), likelihood.pair_count))
    h = 1e-5
    for c in range(likelihood.width):
        step = np.zeros(likelihood.width)
        step[c] = h

        def slope(function: Any, step: Any = step) -> Any:
            return (function(f + step) - function(f - step)) / (2 * h)

        np.testing.assert_allclose(slope(likelihood.cumulant), likelihood.mean(f)[:, c], rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(
            slope(lambda f: likelihood.loss(y, f)), (likelihood.mean(f) - y)[:, c], rtol=1e-6, atol=1e-7
        )
        np.testing.assert_allclose(slope(likelihood.mean), likelihood.curvature(f)[:, c], rtol=1e-6, atol=1e-8)
        weighted = slope(lambda f: (v * likelihood.weights(f)).sum(axis=1))
        np.testing.assert_allclose(likelihood.weights_slope(f, v)[:, c], weighted, rtol=1e-6, atol=1e-7)


@every
@given(seed=seeds)
def test_total_curvature_is_the_sum(name: str, seed: int) -> None:
    likelihood, f, _, _ = drawn(name, seed)
    w = np.random.default_rng(seed).uniform(0.5, 2.0, len(f))
    expected = np.einsum("i,icd->cd", w, likelihood.curvature(f))
    np.testing.assert_allclose(likelihood.total_curvature(f, w), expected, rtol=1e-7, atol=1e-7)


# ------------------------------------------------------------------------------------------------------------ far out
def test_bernoulli_far_out() -> None:
    f = np.array([[1e3], [-1e3], [1e3], [-1e3], [40.0]])
    y = np.array([[1.0], [0.0], [0.0], [1.0], [1.0]])
    np.testing.assert_array_equal(Bernoulli().loss(y, f)[:4], [0.0, 0.0, 1e3, 1e3])
    assert Bernoulli().loss(y, f)[4] == pytest.approx(np.exp(-40.0), rel=1e-10)
    np.testing.assert_array_equal(Bernoulli().mean(f)[:2, 0], [1.0, 0.0])
    assert (Bernoulli().weights(f) >= 1e-10).all()


def test_softmax_far_out() -> None:
    f = np.array([[1e3, 0.0, -1e3], [1e3, 0.0, -1e3], [1e3, 1e3, 0.0]])
    y = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    np.testing.assert_allclose(Softmax(3).loss(y, f), [0.0, 2e3, np.log(2.0)], rtol=1e-12)
    assert np.isfinite(Softmax(3).mean(f)).all()
    assert (Softmax(3).weights(f) >= 1e-10).all()


def test_poisson_is_a_log_likelihood_and_overflows_in_silence() -> None:
    f, y = np.linspace(-5, 5, 40)[:, None], np.arange(40.0)[:, None]
    expected = -stats.poisson.logpmf(y[:, 0], np.exp(f[:, 0]))
    np.testing.assert_allclose(Poisson().loss(y, f), expected, rtol=1e-10)
    far = np.array([[1e3], [-1e3], [800.0]])
    one = np.array([[1.0], [0.0], [1e6]])
    np.testing.assert_array_equal(Poisson().loss(one, far), [np.inf, 0.0, np.inf])
    assert np.isfinite(Poisson().mean(far)).all()
    assert np.isfinite(Poisson().weights(far)).all()
    assert (Poisson().weights(far) >= 1e-10).all()


# -------------------------------------------------------------------------------------------------------- coordinates
@given(classes=st.integers(2, 9))
def test_contrasts_leave_out_what_is_common_to_all_classes(classes: int) -> None:
    likelihood = Softmax(classes)
    Q = likelihood.contrasts
    assert Q.shape == (classes, classes - 1)
    assert likelihood.free == classes - 1
    np.testing.assert_allclose(Q.T @ Q, np.eye(classes - 1), atol=1e-14)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, atol=1e-14)
    assert likelihood.pairs.shape == (likelihood.pair_count, classes)


@every
def test_constants_have_the_shares(name: str) -> None:
    likelihood = EVERY[name]
    share = {"bernoulli": [0.3], "poisson": [7.5], "softmax": [0.1, 0.2, 0.3, 0.4]}[name]
    constants = likelihood.constants(np.array(share))
    np.testing.assert_allclose(likelihood.mean(constants[None])[0], share, rtol=1e-12)
    for total in (np.zeros(likelihood.width), np.full(likelihood.width, 50.0)):
        assert np.isfinite(likelihood.constants(likelihood.shares(total, 50.0))).all()


# ------------------------------------------------------------------------------------------------------------ targets
def test_two_columns_of_indicators_are_one_of_zeros_and_ones() -> None:
    Y = np.array([[1.0, 0], [0, 1.0], [0, 1.0]])
    np.testing.assert_array_equal(Bernoulli().targets(Y, 0), [[0.0], [1.0], [1.0]])
    np.testing.assert_array_equal(Bernoulli().targets(Y[:, 1:], 0), [[0.0], [1.0], [1.0]])


@pytest.mark.parametrize(
    ("likelihood", "Y", "message"),
    [
        (Bernoulli(), [[0.0], [0.5]], "takes 0 and 1, y holds 0.5 in row 101"),
        (Bernoulli(), [[1.0, 0], [1.0, 1.0]], "indicators, one 1 in each row and 0 elsewhere, y holds 1, 1 in row 101"),
        (Bernoulli(), [[0.0, 1.0, 0.0]], "has 3 columns; use softmax"),
        (Poisson(), [[3.0], [-1.0]], "finite counts >= 0, y holds -1 in row 101"),
        (Poisson(), [[3.0], [np.inf]], "finite counts >= 0, y holds inf in row 101"),
        (Poisson(), [[np.nan]], "finite counts >= 0, y holds nan in row 100"),
        (Poisson(), [[1.0, 2.0]], "one column of counts, Y has 2"),
        (Softmax(3), [[1.0, 0, 0], [0.5, 0.5, 0]], "y holds 0.5, 0.5, 0 in row 101"),
        (Softmax(3), [[1.0, 0]], "of 3 classes takes a column of indicators for each, Y has 2"),
    ],
)
def test_targets_of_another_kind_are_refused(likelihood: Likelihood, Y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        likelihood.targets(np.array(Y), 100)


@every
def test_rows_without_targets_are_refused(name: str) -> None:
    for Y in (None, np.zeros((3, 0))):
        with pytest.raises(DataError, match="needs targets"):
            EVERY[name].targets(Y, 0)


def test_names() -> None:
    assert [likelihood_of(name, 3).name for name in LIKELIHOODS] == list(LIKELIHOODS)
    assert likelihood_of("softmax", 3) == Softmax(3)
    with pytest.raises(ParameterError, match="choose one of bernoulli, poisson, softmax"):
        likelihood_of("probit", 2)
    with pytest.raises(ParameterError, match="at least two classes"):
        Softmax(1)
