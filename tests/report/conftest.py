"""Fitted models to draw: small, real, and with names that a careless page would choke on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import data_sets
import gaussian_models
import numpy as np
import pytest

from streamkernel import (
    KernelBoostingClassifier,
    KernelMatchingPursuitClassifier,
    KernelOneClass,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
    PursuitModel,
)
from streamkernel.engine import Session
from streamkernel.errors import StreamKernelWarning
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.models.boosting import BoostingModel
from streamkernel.models.margins import MarginClassifierModel, MarginRegressorModel, OneClassModel, QuantileModel
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table

Changed = Callable[..., RidgeModel]

NASTY = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "$$\\frac{1}{2}$$",
    "a & b \" ' \u202e\x00",
)


def _fitted(X: Any, y: Any, *, rows: int | None = None, classify: bool = False, **settings: Any) -> RidgeModel:
    """A model of the first `rows` rows; the others are held out."""
    whole = open_table(X, y, classify=classify)
    table = whole if rows is None else whole.slice(0, rows)
    kind = "ridge-classifier" if classify else "ridge"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        return fit_ridge(
            table,
            RidgeSettings(**{"n_components": 40, **settings}),
            Session(),
            whole=whole,
            estimator=kind,
            targets_are_2d=np.ndim(y) == 2,
        )


@pytest.fixture(scope="session")
def fitted() -> Callable[..., RidgeModel]:
    """``fitted(X, y, rows=..., classify=..., **settings)``"""
    return _fitted


@pytest.fixture(scope="session")
def nasty() -> tuple[str, ...]:
    """The labels of `classifier`."""
    return NASTY


@pytest.fixture(scope="session")
def regression() -> RidgeModel:
    """Held-out rows, a lengthscale that was searched for, and measured rounds."""
    rows = data_sets.friedman(2000)
    return _fitted(rows.X, rows.y, rows=1500, lengthscale="auto", objective="trace")


@pytest.fixture(scope="session")
def classifier() -> RidgeModel:
    """Four classes whose labels are HTML, JavaScript, TeX and control characters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 3))
    labels = np.array(NASTY)[(X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)]
    return _fitted(X, labels, rows=700, classify=True)


@pytest.fixture(scope="session")
def several() -> RidgeModel:
    """Six targets."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    return _fitted(X, np.stack([np.sin(k * X[:, 0]) for k in range(1, 7)], axis=1), rows=500)


@pytest.fixture(scope="session")
def gaussian() -> gaussian_models.Drawn:
    """A Gaussian process with a lengthscale for each feature, whose intervals hold what they should."""
    rows = data_sets.friedman(3000)
    X, held_out = rows.X[:2000], rows.X[2000:]
    ridge = _fitted(rows.X, rows.y, rows=2000, n_components=120, lengthscale=6.0)
    found = gaussian_models.gaussian_of(ridge, X, rows.y[:2000, None], held_out, signal=200.0, noise=1.5)
    return gaussian_models.with_tuning(found, lengthscales=10)


@pytest.fixture(scope="session")
def committee(gaussian: gaussian_models.Drawn) -> gaussian_models.Drawn:
    """The same as a committee of 40 members."""
    return gaussian_models.committee_of(gaussian)


@pytest.fixture(scope="session")
def labels(classifier: RidgeModel) -> gaussian_models.Drawn:
    """Probabilities of the classes of `classifier`."""
    return gaussian_models.labels_of(classifier)


@pytest.fixture(scope="session")
def counts(regression: RidgeModel) -> gaussian_models.Drawn:
    """A Poisson model of counts that spread more than it says."""
    return gaussian_models.counts_of(regression, spread=0.5)


@pytest.fixture(scope="session")
def pursuit() -> PursuitModel:
    """Two classes by matching pursuit: rows watched, a bound, sub-pools of their own."""
    rows = data_sets.friedman(1500)
    labels = np.where(rows.y > np.median(rows.y), "above", "below")
    X, y = rows.X[1000:], labels[1000:]
    fitted = KernelMatchingPursuitClassifier(40, loss="logistic", validation=(X, y), pool="split", candidates=20)
    return fitted.fit(rows.X[:1000], labels[:1000]).model_


@pytest.fixture(scope="session")
def svc() -> MarginClassifierModel:
    """Support vector machines of three classes and two features, C by held-out rows, probabilities."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2200, 2)) * [3.0, 0.01] + [12.0, 0.0]
    height = np.sin(X[:, 0]) + 100.0 * X[:, 1] + 0.3 * rng.standard_normal(len(X))
    labels = np.array(NASTY[:3])[np.digitize(height, [-0.7, 0.7])]
    fitted = KernelSVC(25, C=[0.1, 1.0, 10.0], kernel="gaussian", metric="none", random_state=0).fit(X, labels)
    return fitted.model_


@pytest.fixture(scope="session")
def one_class() -> OneClassModel:
    """One class of two features."""
    X = np.random.default_rng(4).standard_normal((600, 2)) * [2.0, 30.0]
    return KernelOneClass(25, nu=0.1, random_state=0).fit(X).model_


@pytest.fixture(scope="session")
def boosting() -> BoostingModel:
    """A vote of three classes and two features, with held-out rows and probabilities."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((1500, 2))
    labels = np.array(NASTY[:3])[np.digitize(np.sin(2.0 * X[:, 0]) + X[:, 1], [-0.7, 0.7])]
    given: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "random_state": 0}
    fitted = KernelBoostingClassifier(members=6, member_rows=60, C=10.0, calibration="platt", **given)
    return fitted.fit(X, labels).model_


@pytest.fixture(scope="session")
def quantiles() -> QuantileModel:
    """Quantiles of three levels, of two features, with shifts by held-out rows and weights."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((700, 2))
    y = 30.0 + 5.0 * np.sin(2.0 * X[:, 0]) + (0.5 + np.abs(X[:, 1])) * rng.standard_normal(700)
    given: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "random_state": 0}
    model = KernelQuantileRegressor(25, quantile=(0.1, 0.5, 0.9), C=[1.0, 10.0], **given)
    return model.fit(X, y, 1.0 + rng.integers(0, 3, 700)).model_


@pytest.fixture(scope="session")
def svr() -> MarginRegressorModel:
    """A support vector regression of two features."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 2))
    y = 30.0 + 5.0 * np.sin(2.0 * X[:, 0]) + 0.7 * rng.standard_normal(600)
    return KernelSVR(30, C=10.0, kernel="gaussian", metric="none", random_state=0).fit(X, y).model_


@pytest.fixture(scope="session")
def changed() -> Changed:
    """``changed(model, config={...}, arrays={...}, without=[...])``: the model with parts replaced or missing."""

    def change(
        model: RidgeModel,
        config: dict[str, Any] | None = None,
        arrays: dict[str, Any] | None = None,
        without: tuple[str, ...] = (),
    ) -> RidgeModel:
        kept = {name: array for name, array in {**model.arrays, **(arrays or {})}.items() if name not in without}
        settings = {name: value for name, value in {**model.config, **(config or {})}.items() if name not in without}
        return type(model).from_config(settings, kept)

    return change
