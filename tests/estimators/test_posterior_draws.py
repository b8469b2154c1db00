"""`sample_y`: draws whose mean and covariance are those of the posterior, as scikit-learn's."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from gaussian_rows import ASKED, FEW, FEW_Y, GIVEN, LENGTH, NOISE, PLAIN, SIGNAL
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from streamkernel import GaussianProcessRegressor
from streamkernel.errors import ParameterError


@pytest.fixture(scope="module", params=[1, 2])
def model(request: pytest.FixtureRequest) -> GaussianProcessRegressor:
    y = FEW_Y if request.param == 1 else np.column_stack([FEW_Y, 3 - 2 * FEW_Y])
    return GaussianProcessRegressor(80, **GIVEN, **PLAIN).fit(FEW, y)


def test_the_formula(model: GaussianProcessRegressor) -> None:
    mean, cov = model.predict(ASKED, return_cov=True)
    mean, cov = mean.reshape(40, -1), cov.reshape(40, 40, -1)
    z = np.random.RandomState(7).standard_normal((len(ASKED), mean.shape[1], 3))
    expected = np.stack([mean[:, [t]] + scipy.linalg.sqrtm(cov[:, :, t]).real @ z[:, t] for t in range(z.shape[1])], 1)
    found = model.sample_y(ASKED, 3, random_state=7)
    assert found.shape == ((40, 3) if mean.shape[1] == 1 else (40, 2, 3))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-7)
    np.testing.assert_array_equal(model.sample_y(ASKED, 3, random_state=7), found)
    assert model.sample_y(ASKED[:1]).shape == (1, *found.shape[1:-1], 1)


@pytest.mark.parametrize("noise", [True, False])
def test_draws_have_the_moments_of_scikit_learns(model: GaussianProcessRegressor, noise: bool) -> None:
    asked, r = ASKED[:6], 20_000
    draws = model.sample_y(asked, r, noise=noise).reshape(6, -1, r)[:, 0]
    theirs = Reference(ConstantKernel(SIGNAL, "fixed") * RBF(LENGTH, "fixed") + WhiteKernel(NOISE, "fixed"), alpha=0.0)
    theirs.set_params(optimizer=None).fit(FEW, FEW_Y)
    mean, cov = theirs.predict(asked, return_cov=True)
    cov -= 0.0 if noise else NOISE * np.eye(6)
    spread = np.sqrt(np.diag(cov))
    assert (np.abs(draws.mean(axis=1) - mean) < 5.0 * spread / np.sqrt(r)).all()
    # Of normal draws the variance of a product is at most twice that of its factors.
    assert (np.abs(np.cov(draws) - cov) < 5.0 * np.sqrt(2.0 / r) * np.outer(spread, spread)).all()


def test_functions_at_rows_that_repeat_are_equal(model: GaussianProcessRegressor) -> None:
    """A covariance of rank 1, whose smallest eigenvalues rounding leaves below 0."""
    draws = model.sample_y(np.repeat(ASKED[:1], 9, axis=0), 5, noise=False)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws, np.broadcast_to(draws[:1], draws.shape), atol=1e-5)
    assert np.ptp(draws[0], axis=-1).min() > 0.0


def test_a_loaded_model_draws_the_same(model: GaussianProcessRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    loaded = GaussianProcessRegressor.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.sample_y(ASKED, 2), model.sample_y(ASKED, 2))


def test_what_is_refused(model: GaussianProcessRegressor) -> None:
    for number in (0, -1, 1.5, True, "two"):
        with pytest.raises(ParameterError, match="n_samples must be a whole number > 0"):
            model.sample_y(ASKED, number)
    with pytest.raises(ParameterError, match="sample_y is for rows in memory; give"):
        model.sample_y(da.from_array(ASKED))
