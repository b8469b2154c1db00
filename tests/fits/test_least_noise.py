"""Noise that is searched on targets without any: a fit ends with the least that the digits of its members carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import streamkernel.fits.gaussian._members
from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor
from streamkernel.basis import Basis
from streamkernel.committee import least_ratio
from streamkernel.errors import NumericalError
from streamkernel.kernels import Gaussian

Float = NDArray[np.float64]

pytestmark = [
    pytest.mark.filterwarnings("ignore:only .* basis functions"),
    pytest.mark.filterwarnings("ignore:the committee has .* query points"),
]


def _sine(X: Float) -> Float:
    return np.sin(3.0 * X[:, 0])


def _quadratic(X: Float) -> Float:
    return (X**2).sum(axis=1)


def _exponential(X: Float) -> Float:
    return np.exp(X.sum(axis=1) / 2.0)


def _pitc(n: int, **options: Any) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(n, approximation="pitc", **options)


CASES: list[Any] = [
    # seed, features, targets, estimator, n, options: of each, members had no factor with the noise that was found
    (0, 2, _quadratic, _pitc, 100, {}),
    pytest.param(0, 2, _sine, _pitc, 300, {}, marks=pytest.mark.slow),
    pytest.param(0, 2, _sine, _pitc, 300, {"block_size": 50}, marks=pytest.mark.slow),
    pytest.param(0, 2, _exponential, _pitc, 300, {}, marks=pytest.mark.slow),
    (0, 2, _exponential, BayesianCommitteeMachine, 300, {"block_size": 100, "scale": "none"}),
    (1, 1, _exponential, _pitc, 300, {}),
]


def _rows(seed: int, p: int) -> tuple[Float, Float]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (500, p)), rng.uniform(-1.0, 1.0, (200, p))


@pytest.mark.parametrize(("seed", "p", "of", "estimator", "n", "options"), CASES)
def test_fit_ends(
    seed: int, p: int, of: Callable[[Float], Float], estimator: Callable[..., Any], n: int, options: dict[str, Any]
) -> None:
    X, asked = _rows(seed, p)
    model = estimator(n, **options).fit(X, of(X))
    mean, std = model.predict(asked, return_std=True)
    truth = of(asked)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.01 * truth.std()
    assert np.isfinite(std).all()
    assert (np.abs(mean - truth) < 5.0 * std).mean() > 0.95


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("gaussian", np.float32),
        *(
            pytest.param(kernel, dtype, marks=pytest.mark.slow)
            for kernel in ("gaussian", "matern52", "rational_quadratic")
            for dtype in (np.float32, np.float64)
            if (kernel, dtype) != ("gaussian", np.float32)
        ),
    ],
)
def test_every_smooth_kernel(kernel: str, dtype: type) -> None:
    X, asked = _rows(0, 2)
    model = _pitc(150, kernel=kernel).fit(X.astype(dtype), _sine(X))
    assert np.sqrt(np.mean((model.predict(asked.astype(dtype)) - _sine(asked)) ** 2)) < 0.01


def test_sampled_rows_that_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamkernel.fits.gaussian._members, "least_ratio", lambda basis, X, size, ratio: ratio)
    X, asked = _rows(0, 2)
    model = _pitc(300).fit(X, _sine(X))
    assert np.sqrt(np.mean((model.predict(asked) - _sine(asked)) ** 2)) < 0.01


def test_signal_beside_noise_that_is_given() -> None:
    X = np.random.default_rng(3).standard_normal((500, 2))
    model = _pitc(200, noise_variance=1e-6).fit(X, _quadratic(X))
    assert model.noise_variance_[0] == pytest.approx(1e-6)
    assert model.score(X, _quadratic(X)) > 0.999


def test_noise_that_is_given_is_not_lifted() -> None:
    X, _ = _rows(0, 2)
    with pytest.raises(NumericalError, match=r"give a noise variance of .* or more"):
        _pitc(300, lengthscale=2.5, signal_variance=1.0, noise_variance=1e-15).fit(X, _sine(X))


def test_least_ratio() -> None:
    """Of members that have digits it is what was asked for; else R has a factor with it."""
    X, _ = _rows(0, 2)
    grid = Basis.empty(Gaussian(1.0), 2, X.dtype).append(X[:100], np.arange(100))[0]
    assert least_ratio(grid, X, 500, 0.1) == 0.1
    # Points close together: what lies far away is extrapolated, with weights |w| of 1e4 and more.
    close = Basis.empty(Gaussian(4.0), 2, X.dtype).append(0.2 * X[:100], np.arange(100))[0]
    found = least_ratio(close, X, 500, 1e-12)
    G = close.features(X)
    lowest = np.linalg.eigvalsh(close.kernel(X) - G @ G.T)[0]
    assert lowest < -1e-9
    assert found == pytest.approx(-4.0 * lowest, rel=1e-3)
    assert least_ratio(close, X[:100], 500, 1e-12) > 1e-9
    assert least_ratio(close, X[:0], 500, 1e-12) == 1e-12
