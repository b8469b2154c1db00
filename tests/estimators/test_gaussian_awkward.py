"""Gaussian process regression on constant, repeated, few and wrong rows, and with wrong parameters."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from gaussian_rows import APPROXIMATIONS, ASKED, GIVEN, NOISE, SIGNAL, X, Y

from streamkernel import GaussianProcessRegressor, KernelRidge, open_table
from streamkernel.engine import Machine
from streamkernel.errors import (
    DataError,
    DegenerateBandwidthError,
    DTypeError,
    NumericRangeError,
    ParameterError,
    StreamKernelWarning,
)
from streamkernel.fits.gaussian.gaussian import plan_gaussian
from streamkernel.settings.gaussian import GaussianSettings

pytestmark = pytest.mark.usefixtures("few_points")

# --- awkward data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 3.0, -1e8])
def test_constant_targets(constant: float) -> None:
    targets = np.full(400, constant)
    with pytest.raises(DataError, match=r"constant, and no evidence tells .* give these as numbers"):
        GaussianProcessRegressor(20).fit(X, targets)
    for options in (GIVEN, {**GIVEN, "approximation": "dtc"}, {"tune": "none", "approximation": "dtc"}):
        mean, std = GaussianProcessRegressor(20, **options).fit(X, targets).predict(ASKED, return_std=True)
        np.testing.assert_allclose(mean, constant, rtol=1e-9, atol=1e-9)
        assert np.isfinite(std).all()


@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_the_units_of_targets_are_their_own(approximation: str) -> None:
    both = np.column_stack([X[:, 0] + 0.1 * np.sin(40.0 * X[:, 1]), np.cos(X[:, 1])])
    fits = [
        GaussianProcessRegressor(20, approximation=approximation, tune="none", lengthscale=1.0).fit(X, both * units)
        for units in ([1.0, 1.0], [1.0, 1e6], [1e-6, 1e6])
    ]
    for found, units in zip(fits[1:], ([1.0, 1e6], [1e-6, 1e6]), strict=True):
        np.testing.assert_allclose(found.predict(ASKED) / units, fits[0].predict(ASKED), atol=1e-3)


@pytest.mark.slow
def test_a_constant_target_beside_another() -> None:
    mixed = GaussianProcessRegressor(20).fit(X, np.column_stack([np.full(400, -1e8), Y]))
    np.testing.assert_allclose(mixed.predict(ASKED)[:, 0], -1e8, rtol=1e-6)
    np.testing.assert_allclose(
        mixed.predict(ASKED)[:, 1], GaussianProcessRegressor(20).fit(X, Y).predict(ASKED), atol=0.02
    )


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_duplicate_rows(approximation: str) -> None:
    copies, targets = np.repeat(X[:20], 5, axis=0), np.repeat(Y[:20], 5) + 0.1 * np.tile([-2, -1, 0, 1, 2], 20)
    model = GaussianProcessRegressor(60, approximation=approximation, block_size=10)
    with pytest.warns(StreamKernelWarning, match="only 20 of 60 basis functions are linearly independent"):
        model.fit(copies, targets)
    assert len(model.components_) == 20
    assert model.noise_variance_[0] == pytest.approx(0.02, rel=0.7)  # of the copies, 0.02
    assert model.score(copies, targets) > 0.9


def test_more_functions_than_the_kernel_has() -> None:
    options: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    with pytest.warns(StreamKernelWarning, match=r"only 1\d of 30"):
        model = GaussianProcessRegressor(30, **options).fit(X, 1.0 + X[:, 0] * X[:, 1] + 0.1 * Y)
    assert 10 <= len(model.components_) <= 12  # 10, and what rounding tells apart
    assert model.relative_residual_trace_ < 1e-9
    np.testing.assert_allclose(model.predict(ASKED), 1.0 + ASKED[:, 0] * ASKED[:, 1], atol=1.0)


@pytest.mark.filterwarnings("ignore:.*columns are constant")
def test_equal_rows_have_no_median_lengthscale() -> None:
    with pytest.raises(DegenerateBandwidthError, match="give a lengthscale as a number"):
        GaussianProcessRegressor(5).fit(np.ones((50, 3)), Y[:50])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_very_few_rows(m: int) -> None:
    mean, std = GaussianProcessRegressor(1, scale="none", **GIVEN).fit(X[:m], Y[:m]).predict(ASKED, return_std=True)
    assert np.isfinite(mean).all()
    assert (std**2 >= NOISE * (1 - 1e-12)).all()
    assert (std**2 <= SIGNAL + NOISE + 1e-12).all()


class Untouchable:
    """Rows that fail the test when anything is asked of them."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the rows before the parameters were checked")


BAD: dict[str, list[Any]] = {
    "n_components": [0, 2.5, "10", True],
    "signal_variance": [0.0, -1.0, np.nan, np.inf, "gcv", True, None, [1.0]],
    "noise_variance": [0.0, -1.0, np.nan, np.inf, "much", True, None, [1.0]],
    "lengthscale": [0.0, -1.0, np.nan, "long", [1.0, -1.0, 1.0]],
    "tune": ["yes", None, True, 3],
    "approximation": ["vfe", "exact", None],
    "block_size": [0, -5, 2.5, True, "many", None],
    "partition": ["order", None],
    "ard": ["yes", None, 2],
    "kernel": ["gauss", 3],
    "memory_limit": ["lots"],
    "random_state": [-1],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name, values in BAD.items() for v in values], ids=repr)
def test_bad_parameters_before_any_io(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        GaussianProcessRegressor(**{name: value}).fit(Untouchable(), Untouchable())
    message = str(caught.value)
    assert "\n" not in message
    assert "random_state" in message or name.partition("_")[0] in message


@pytest.mark.parametrize(
    "given", [{"lengthscale": 1.0}, {"gamma": 1.0}, {"tune": "none"}, {"kernel": "linear"}], ids=str
)
def test_lengthscales_that_are_given_are_not_found_for_each_feature(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="ard has lengthscales found by evidence"):
        GaussianProcessRegressor(ard=True, **given).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("estimator", [KernelRidge, GaussianProcessRegressor])
def test_targets_whose_squares_overflow_are_refused_before_any_sum(estimator: Any) -> None:
    huge = np.where(np.arange(400) == 7, 1e200, Y)
    with pytest.raises(NumericRangeError, match=r"y holds 1e\+200 in row 7, column 'y'.*scale y"):
        estimator(20).fit(X, huge)
    with pytest.raises(NumericRangeError, match=r"scale y"):
        estimator(20).fit(X, np.column_stack([Y, -huge]))


def test_a_block_is_planned_as_no_larger_than_the_table() -> None:
    table = open_table(X, Y)

    def planned(size: int) -> Any:
        settings = GaussianSettings(20, approximation="pitc", block_size=size, lengthscale=1.0)
        return plan_gaussian(table, settings, Machine(1, 1)).to_config()

    assert planned(10**11) == planned(400)
    assert planned(400) != planned(100)


def test_bad_rows_and_targets() -> None:
    with pytest.raises(DTypeError, match="text"):
        GaussianProcessRegressor(5).fit(X, np.where(Y > 0, "a", "b"))
    with pytest.raises(ParameterError, match="class labels, gp is a regression; use gp-classifier"):
        GaussianProcessRegressor(5).fit(open_table(X, np.where(Y > 0, "a", "b"), classify=True))
    with pytest.raises(ParameterError, match="no targets"):
        GaussianProcessRegressor(5).fit(da.from_array(X))
