"""Predictions of rows in memory: the bits of `predict`, in blocks and one by one, for every model and kind of row."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import data_sets
import numpy as np
import pytest

from streamkernel import (
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelRidge,
    KernelRidgeClassifier,
)
from streamkernel.errors import DTypeError, NonFiniteDataError, NumericRangeError, ShapeError
from streamkernel.models.few_rows import DirectPredictions

ROWS = data_sets.friedman(3000, 5, 0.5, 0)
LABELS = np.array(["low", "middle", "high"])[np.digitize(ROWS.y, [12.0, 17.0])]
TARGETS = {"real": ROWS.y, "two": np.column_stack([ROWS.y, -ROWS.y]), "label": LABELS}
# Blocks of rows are what these tests are about, not what a search finds.
GIVEN: dict[str, Any] = {"lengthscale": 2.0, "signal_variance": 4.0}
FITTED = {
    "ridge": (KernelRidge(60), "real"),
    "two targets": (KernelRidge(60, scale="none"), "two"),
    "ridge-classifier": (KernelRidgeClassifier(60), "label"),
    "gp": (GaussianProcessRegressor(40, noise_variance=0.3, **GIVEN), "real"),
    "gp-classifier": (GaussianProcessClassifier(30, **GIVEN), "label"),
    "poisson": (GaussianProcessPoissonRegressor(30, **GIVEN), "count"),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    targets = {**TARGETS, "count": np.random.default_rng(0).poisson(np.exp(ROWS.X[:, 0]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: estimator.fit(ROWS.X[:600], targets[y][:600]) for name, (estimator, y) in FITTED.items()}


def through(direct: DirectPredictions, X: np.ndarray) -> dict[str, np.ndarray]:
    parts = [direct.of_block(direct.prepared(X[a:b], a)) for a, b in direct.blocks(len(X), X.dtype)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def expected(estimator: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    found = {"prediction": estimator.predict(X)}
    if hasattr(estimator, "predict_proba"):
        found["probability"] = estimator.predict_proba(X)
    return found


# Blocks are cut and cast before a model sees them: each dtype with one model, or two.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, np.float64) for name in FITTED), ("ridge", np.float32), ("gp", np.float32), ("ridge", np.int16)],
)
def test_blocks_have_the_bits_of_predict(fitted: dict[str, Any], name: str, dtype: Any) -> None:
    estimator = fitted[name]
    direct = DirectPredictions(estimator.model_)
    for m in (1, 7, 2500):
        X = (3 * ROWS.X[:m]).astype(dtype)
        found = through(direct, X)
        for column, values in expected(estimator, X).items():
            got = found[column]
            if column == "prediction" and estimator.model_.classes is not None:
                got = estimator.model_.classes[got]
            np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize("name", FITTED)
def test_rows_that_came_together_are_answered_as_if_alone(fitted: dict[str, Any], name: str) -> None:
    estimator = fitted[name]
    direct = DirectPredictions(estimator.model_)
    found = direct.each_alone(direct.prepared(ROWS.X[:40]))
    for i in range(40):
        for column, values in through(direct, ROWS.X[i : i + 1]).items():
            np.testing.assert_array_equal(found[column][i : i + 1], values)


def test_deviations_have_the_bits_of_predict(fitted: dict[str, Any]) -> None:
    for name in ("gp", "poisson"):
        estimator = fitted[name]
        direct = DirectPredictions(estimator.model_, estimator.model_.outputs(std=True))
        for m in (1, 1500):
            found, wanted = through(direct, ROWS.X[:m]), estimator.predict(ROWS.X[:m], return_std=True)
            np.testing.assert_array_equal(found["prediction"], wanted[0])
            np.testing.assert_array_equal(found["std"], wanted[1])


def test_blocks_cover_the_rows_once(fitted: dict[str, Any]) -> None:
    direct = DirectPredictions(fitted["ridge"].model_)
    for m in (1, 4095, 4096, 10_000, 1_000_000):
        edges = direct.blocks(m, np.dtype(np.float64))
        assert edges[0][0] == 0
        assert edges[-1][1] == m
        assert all(a[1] == b[0] for a, b in pairwise(edges))


def test_rows_that_cannot_be_used_are_named(fitted: dict[str, Any]) -> None:
    direct = DirectPredictions(fitted["ridge"].model_)
    X = ROWS.X[:10].copy()
    X[3, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"row 103, column 'x2', in the request"):
        direct.prepared(X, 100)
    X[3, 2] = 1e300
    with pytest.raises(NumericRangeError, match="row 3"):
        direct.prepared(X)
    with pytest.raises(ShapeError, match="5 columns"):
        direct.prepared(X[:, :4])
    with pytest.raises(DTypeError):
        direct.prepared(X.astype(str))
