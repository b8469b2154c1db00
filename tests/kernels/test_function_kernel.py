"""Kernels that are plain functions of two blocks of rows."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
)
from streamkernel.errors import DTypeError, ModelFormatError, NonFiniteDataError, ParameterError, ShapeError
from streamkernel.jobs.requests import requested
from streamkernel.kernels import FunctionKernel, Gaussian, OfColumns, as_kernel
from streamkernel.models import RidgeModel

pytestmark = pytest.mark.usefixtures("few_points")

X = np.random.default_rng(0).standard_normal((200, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
OPTIONS: dict[str, Any] = {"alpha": 0.1, "rule": "rpcholesky"}


def gaussian(A: Any, B: Any) -> Any:
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2) / 4.0)


def quadratic(A: Any, B: Any) -> Any:
    return (1.0 + A @ B.T) ** 2


quadratic.diag = lambda A: (1.0 + (A**2).sum(axis=1)) ** 2  # type: ignore[attr-defined]


def one_sided(A: Any, B: Any) -> Any:
    return A[:, :1] + 0.0 * B[:, 0]


def vector(A: Any, B: Any) -> Any:
    return gaussian(A, B)[0]


def infinite(A: Any, B: Any) -> Any:
    return np.full((len(A), len(B)), np.inf)


def indefinite(A: Any, B: Any) -> Any:
    return -gaussian(A, B)


def complex_values(A: Any, B: Any) -> Any:
    """Its imaginary parts were dropped, with a warning for each block."""
    return gaussian(A, B) + 0.0j


def of_the_block(A: Any, B: Any) -> Any:
    return gaussian(A, B) * len(A) * len(B)


def wrong_diagonal(A: Any, B: Any) -> Any:
    return gaussian(A, B)


wrong_diagonal.diag = lambda A: np.full(len(A), 2.0)  # type: ignore[attr-defined]


def test_it_is_the_kernel_of_its_formula() -> None:
    ours = KernelRidge(30, kernel=gaussian, **OPTIONS).fit(X, Y)
    named = KernelRidge(30, kernel=Gaussian(2.0), **OPTIONS).fit(X, Y)
    np.testing.assert_array_equal(ours.component_indices_, named.component_indices_)
    np.testing.assert_allclose(ours.predict(X), named.predict(X), rtol=1e-8)
    assert ours.residual_trace_ == pytest.approx(named.residual_trace_, rel=1e-6)
    assert KernelRidge(10, kernel=quadratic, **OPTIONS).fit(X, X[:, 0] * X[:, 1]).score(X, X[:, 0] * X[:, 1]) > 0.99
    single = KernelRidge(30, kernel=gaussian, **OPTIONS).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), ours.predict(X), atol=1e-3)


def test_it_is_a_part_of_others_and_a_kernel_of_every_estimator() -> None:
    both = 2.0 * OfColumns(FunctionKernel(gaussian), [0, 2]) + FunctionKernel(quadratic)
    expected = 2.0 * gaussian(X[:, [0, 2]], X[:, [0, 2]]) + quadratic(X, X)
    np.testing.assert_allclose(both(X), expected, rtol=1e-12)
    np.testing.assert_allclose(both.diagonal(X), np.diagonal(expected), rtol=1e-12)
    assert KernelRidge(20, kernel=both, **OPTIONS).fit(X, Y).score(X, Y) > 0.9
    assert KernelRidgeClassifier(20, kernel=gaussian).fit(X, Y > 0.0).score(X, Y > 0.0) > 0.9
    assert KernelPCA(2, basis_size=20, kernel=gaussian).fit_transform(X).shape == (200, 2)
    assert Nystroem(15, kernel=gaussian).fit_transform(X).shape == (200, 15)


def test_evidence_finds_the_variances_of_processes() -> None:
    """A function has no lengthscale to search for, so that no slope is missing; these were refused."""
    A, y = X[:90], Y[:90]  # a search takes the cube of the rows
    for kind in (GaussianProcessRegressor, BayesianCommitteeMachine):
        options = {"block_size": 45} if kind is BayesianCommitteeMachine else {}
        # A committee warns of few query points.
        with warnings.catch_warnings(action="ignore"):
            ours, named = (kind(30, kernel=kernel, **options).fit(A, y) for kernel in (gaussian, Gaussian(2.0)))
        np.testing.assert_allclose(ours.signal_variance_, named.signal_variance_, rtol=1e-4)
        np.testing.assert_allclose(ours.predict(A), named.predict(A), atol=1e-4)
    both, other = FunctionKernel(gaussian) + Gaussian(1.0), Gaussian(2.0) + Gaussian(1.0)
    found, wanted = (GaussianProcessRegressor(30, kernel=kernel).fit(A, y).predict(A) for kernel in (both, other))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    kinds = (GaussianProcessClassifier(30, kernel=kernel).fit(A, y > 0.0) for kernel in (gaussian, Gaussian(2.0)))
    found, wanted = (kind.predict_proba(A) for kind in kinds)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_saved_by_its_place_and_handed_over_to_load(tmp_path: Path) -> None:
    model = KernelRidge(20, kernel=gaussian, **OPTIONS).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = KernelRidge.load(tmp_path / "m", kernels=[Gaussian, quadratic, gaussian])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for kernels in ([], [quadratic]):
        with pytest.raises(
            ModelFormatError, match=r"its kernel is \S*:gaussian, .* load\(path, kernels=\[gaussian\]\)"
        ):
            RidgeModel.load(tmp_path / "m", kernels=kernels)
    with pytest.raises(ParameterError, match="or functions, not 3"):
        RidgeModel.load(tmp_path / "m", kernels=[3])  # type: ignore[list-item]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match="a job cannot fit with the kernel gaussian"):
        requested(KernelRidge(20, kernel=gaussian))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda A, B: gaussian(A, B), ParameterError, "is a lambda, or a function within another one"),
        (one_sided, ParameterError, "one_sided is not symmetric"),
        (vector, ShapeError, r"vector returned the shape \(8,\) for 8 and 8 rows; return a matrix \(8, 8\)"),
        (infinite, NonFiniteDataError, "infinite has values that are not finite"),
        (indefinite, ParameterError, "indefinite is not positive definite: that of 8 rows"),
        (of_the_block, ParameterError, "of_the_block has other values for one row than for several"),
        (complex_values, DTypeError, "complex_values returned values of complex128; return real numbers"),
        (wrong_diagonal, ParameterError, "wrong_diagonal.diag has other values than the diagonal"),
    ],
)
def test_what_is_no_kernel_is_told_before_the_basis_is_chosen(function: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        KernelRidge(20, kernel=function, **OPTIONS).fit(X, Y)


def test_other_parameters_of_kernels() -> None:
    assert as_kernel(gaussian) == FunctionKernel(gaussian)
    assert hash(as_kernel(gaussian)) == hash(FunctionKernel(gaussian))
    with pytest.raises(ParameterError, match=r"gamma = 2\.0 cannot change a kernel object"):
        KernelRidge(kernel=gaussian, gamma=2.0).fit(X, Y)
