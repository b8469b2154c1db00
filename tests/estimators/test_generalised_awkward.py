"""Classes and counts that are none, or hardly any, and wrong parameters."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from generalised_rows import COUNTS, GIVEN, TWO, F, X

from streamkernel import GaussianProcessClassifier, GaussianProcessPoissonRegressor, open_table
from streamkernel.errors import (
    DataError,
    DTypeError,
    ParameterError,
    SingleClassError,
)

pytestmark = pytest.mark.usefixtures("few_points")

# --- what is refused ----------------------------------------------------------------------------------------------


def test_targets_that_are_no_counts() -> None:
    for bad, said in ((-1, "holds -1"), (-0.5, "holds -0.5")):
        y = COUNTS.astype(float)
        y[17] = bad
        with pytest.raises(DataError, match=rf"takes finite counts >= 0, y {said} in row 17"):
            GaussianProcessPoissonRegressor(10, **GIVEN).fit(X, y)
    with pytest.raises(DTypeError, match="text"):
        GaussianProcessPoissonRegressor(10, **GIVEN).fit(X, TWO)
    with pytest.raises(ParameterError, match="class labels, poisson is a regression of counts"):
        GaussianProcessPoissonRegressor(10, **GIVEN).fit(open_table(X, TWO, classify=True))
    with pytest.raises(ParameterError, match="poisson takes one target, the table has 2"):
        GaussianProcessPoissonRegressor(10, **GIVEN).fit(X, np.c_[COUNTS, COUNTS])


def test_targets_that_are_no_classes() -> None:
    for rows, labels in ((X, TWO[:1].repeat(300)), (da.from_array(X), da.from_array(np.ones(300, int)))):
        with pytest.raises(SingleClassError, match="one class only"):
            GaussianProcessClassifier(10, **GIVEN).fit(rows, labels)
    with pytest.raises(ValueError, match="Unknown label type"):
        GaussianProcessClassifier(10, **GIVEN).fit(X, F)
    with pytest.raises(ParameterError, match="needs targets"):
        GaussianProcessClassifier(10, **GIVEN).fit(da.from_array(X))


def test_a_class_of_one_row_and_classes_that_a_line_parts() -> None:
    rare = np.where(np.arange(300) == 7, "rare", "usual")
    P = GaussianProcessClassifier(10, **GIVEN).fit(X, rare).predict_proba(X)
    assert P[:, 0].max() < 0.5
    parted = np.where(X[:, 0] > 0, 1, 0)
    model = GaussianProcessClassifier(20, **{**GIVEN, "signal_variance": 1e4}).fit(X, parted)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, parted) > 0.98


def test_counts_that_are_all_zero() -> None:
    rate, std = GaussianProcessPoissonRegressor(10, **GIVEN).fit(X, np.zeros(300)).predict(X, return_std=True)
    assert (rate < 0.01).all()
    assert np.isfinite(std).all()


BAD: dict[str, list[Any]] = {
    "signal_variance": [0.0, -1.0, np.nan, np.inf, "much", True, None],
    "tune": ["full", "yes", None],
    "newton_tol": [0.0, -1.0, np.nan, "tight", True],
    "max_iterations": [0, -1, 2.5, True, "many"],
    "lengthscale": [0.0, "long"],
    "n_components": [0, 1.5],
}


# Both have the same settings.
@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        *((GaussianProcessClassifier, name, value) for name, values in BAD.items() for value in values),
        *((GaussianProcessPoissonRegressor, name, values[0]) for name, values in BAD.items()),
    ],
)
def test_bad_parameters_before_any_io(estimator: Any, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=name) as caught:
        estimator(**{name: value}).fit(object(), object())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_a_row_at_which_nothing_is_uncertain(kernel: str, classes: int) -> None:
    """The kernel is 0 there: the latent functions are their means, and the other rows what they are without it."""
    y = np.digitize(F, np.quantile(F, np.linspace(0.0, 1.0, classes + 1)[1:-1]))
    model = GaussianProcessClassifier(2, kernel=kernel, scale="none", signal_variance=1.0).fit(X, y)
    at_zero = model.predict_proba(np.zeros((1, X.shape[1])))
    rows = np.concatenate([X[:3], np.zeros((1, X.shape[1])), X[3:6]])
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found[3:4], at_zero, rtol=1e-12)
    np.testing.assert_allclose(np.delete(found, 3, axis=0), model.predict_proba(X[:6]), rtol=1e-12)
    nearly = model.predict_proba(np.full((1, X.shape[1]), 1e-9)) if kernel == "linear" else at_zero
    np.testing.assert_allclose(at_zero, nearly, atol=1e-6)
