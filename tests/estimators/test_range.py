"""Numbers out of range end in one typed error, never in a warning of NumPy's alone or in a constant model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamkernel import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    Nystroem,
)
from streamkernel.errors import NumericRangeError

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (120, 3))
y = X[:, 0] + 0.2 * rng.standard_normal(120)
STEEP: dict[str, Any] = {"kernel": "polynomial", "degree": 100, "scale": "none"}

CALLS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: KernelRidge(20, **STEEP).fit(1e3 * X, y),
    "ridge in float32": lambda: KernelRidge(20, **STEEP | {"degree": 30}).fit((1e3 * X).astype(np.float32), y),
    "gp": lambda: GaussianProcessRegressor(20, **STEEP).fit(1e3 * X, y),
    "classifier": lambda: GaussianProcessClassifier(20, **STEEP).fit(1e3 * X, y > 0),
    "pursuit": lambda: KernelMatchingPursuit(10, **STEEP).fit(1e3 * X, y),
    "linear pca on rows": lambda: KernelPCA(2, kernel="linear", scale="none", basis_size=2).fit(1e120 * X),
    "nystroem": lambda: Nystroem(10, kernel="linear", scale="none").fit(1e120 * X),
    "tiny rows": lambda: Nystroem(10, kernel="linear", scale="none").fit(1e-160 * X),
    "tiny rows with weights": lambda: Nystroem(10, kernel="linear", scale="none").fit(
        1e-160 * X, sample_weight=np.ones(120)
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numbers_out_of_range_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(NumericRangeError, match=r"range of floating point.*scale"):
        call()


def test_the_columns_themselves_have_a_wider_range() -> None:
    """The linear kernel on the columns squares them once, on rows of the table twice."""
    usual, large = (KernelPCA(2, kernel="linear", scale="none").fit(size * X) for size in (1.0, 1e120))
    # The signs of eigenvectors are arbitrary.
    found, expected = np.abs(large.transform(1e120 * X[:5])) / 1e120, np.abs(usual.transform(X[:5]))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("size", [1e100, 1e130])
def test_large_targets_are_fitted_as_others_are(size: float) -> None:
    usual, large = (KernelRidge(20).fit(X, each * y) for each in (1.0, size))
    np.testing.assert_allclose(large.predict(X) / size, usual.predict(X), atol=1e-9)


def test_targets_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(NumericRangeError, match=r"squares of such targets overflow; scale y"):
        KernelRidge(20).fit(X, 1e150 * y)


@pytest.mark.parametrize("size", [1e-150, 1e-200])
@pytest.mark.parametrize("estimator", [KernelRidge(20), GaussianProcessRegressor(20), KernelMatchingPursuit(10)])
def test_targets_whose_squares_vanish_are_refused(estimator: Any, size: float) -> None:
    """Underflow raises no flag: choices by squares that have lost their digits would be wrong without a word."""
    with pytest.raises(NumericRangeError, match=r"standard deviation of .* squares .* vanish; scale y"):
        estimator.fit(X, size * y)


def test_constant_targets_however_small_are_fitted() -> None:
    np.testing.assert_allclose(KernelRidge(20).fit(X, np.full(len(X), 1e-200)).predict(X[:3]), 1e-200)
