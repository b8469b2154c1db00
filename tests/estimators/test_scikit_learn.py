"""scikit-learn's manners: its own checks, pipelines, searches, clones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scikit_learn_checks import with_checks
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_fit2d_1feature,
    check_fit2d_1sample,
    check_regressors_int,
    check_regressors_train,
)

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelOneClass,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
)

pytestmark = pytest.mark.usefixtures("few_points")

# The checks are about the classes. What is found by evidence takes its time: `FOUND` does it on the poorest rows.
GIVEN: dict[str, Any] = {"tune": "none", "signal_variance": 4.0}
FOUND = [check_fit2d_1feature, check_fit2d_1sample, check_regressors_int, check_regressors_train]
OTHERS = [
    KernelRidge(alpha="cv"),
    KernelRidgeClassifier(alpha="cv"),
    KernelSVC(),
    KernelSVC(C=2.0, loss="hinge"),
    KernelSVR(),
    KernelOneClass(),
    # Few members, each made as those before it. Fifty of ridge fit rows of a share of 1e-7, too, which the check of
    # class weights wants to be given up.
    KernelBoostingClassifier(members=10),
    KernelBoostingClassifier(learner="ridge", members=10),
    KernelLPClassifier(),
    KernelLPRegressor(),
    KernelQuantileRegressor(),
    GaussianProcessRegressor(noise_variance=0.1, **GIVEN),
    BayesianCommitteeMachine(noise_variance=0.1, **GIVEN),
    GaussianProcessClassifier(**GIVEN),
    GaussianProcessPoissonRegressor(**GIVEN),
]


# The checks fit sets of a few rows, constant columns and copies of rows: what we warn of there is wanted elsewhere.
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(KernelRidge(), KernelRidgeClassifier(), others=OTHERS)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize("check", FOUND)
def test_checks_of_hyper_parameters_that_are_found(check: Any) -> None:
    check("GaussianProcessRegressor", GaussianProcessRegressor())


def data(m: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(m)


@pytest.mark.parametrize("alpha", [0.05, 2.0])
@pytest.mark.parametrize("targets", [1, 2])
def test_all_rows_as_basis_are_scikit_learns_kernel_ridge(alpha: float, targets: int) -> None:
    X, y = data(80)
    Y = y if targets == 1 else np.column_stack([y, 3 + 2 * y])
    options: dict[str, Any] = {"alpha": alpha, "kernel": "rbf", "gamma": 0.7}
    ours = KernelRidge(80, rule="uniform", scale="none", fit_intercept=False, **options).fit(X, Y)
    theirs = Reference(**options).fit(X, Y)
    order = ours.component_indices_
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_[order], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7, atol=1e-8)
    assert ours.predict(X).shape == Y.shape
    np.testing.assert_array_equal(ours.intercept_, 0.0)
    np.testing.assert_array_equal(ours.components_, X[order])
    assert ours.relative_residual_trace_ < 1e-9


def test_grid_search_over_pipelines() -> None:
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), KernelRidge(40))
    grid = {"kernelridge__lengthscale": [0.01, 1.0], "kernelridge__alpha": ["gcv", 0.1]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
    search.fit(X, y)
    assert search.best_params_["kernelridge__lengthscale"] == 1.0
    assert search.best_score_ > 0.65
    assert search.predict(X).shape == (300,)


def test_grid_search_over_a_classifier() -> None:
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, class_sep=3.0, random_state=0)
    labels = np.array(["no", "yes"])[y]
    search = GridSearchCV(KernelRidgeClassifier(30), {"lengthscale": [0.5, 2.0]}, cv=3, error_score="raise")
    search.fit(X, labels)
    assert search.best_score_ > 0.9
    assert set(search.predict(X)) == {"no", "yes"}
    assert cross_val_score(KernelRidgeClassifier(30), X, labels, cv=3, scoring="roc_auc").mean() > 0.9


def test_clones_and_pickles() -> None:
    X, y = data()
    model = KernelRidge(25, kernel="laplacian", lengthscale=[1.0, 2.0, 3.0], random_state=5)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    first, second = model.fit(X, y).predict(X), pickle.loads(pickle.dumps(twin.fit(X, y))).predict(X)
    np.testing.assert_array_equal(first, second)
    assert model.fit(X, y).model_.digest == twin.model_.digest


@pytest.mark.parametrize("y_shape", [(), (1,), (2,)])
def test_predictions_have_the_shape_of_the_targets(y_shape: tuple[int, ...]) -> None:
    X, y = data(120)
    Y = np.broadcast_to(y.reshape(-1, *[1] * len(y_shape)), (120, *y_shape)).copy()
    model = KernelRidge(20).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.dual_coef_.shape == (20, *y_shape)
    assert np.shape(model.intercept_) == y_shape
    assert model.score(X, Y) > 0.5
    if Y.ndim == 2:
        np.testing.assert_allclose(model.predict(X)[:, 0], KernelRidge(20).fit(X, y).predict(X), rtol=1e-6)


def test_attributes_of_a_fit() -> None:
    X, y = data()
    model = KernelRidge(30).fit(X, y)
    assert model.components_.shape == (30, 3)
    np.testing.assert_allclose(model.components_, X[model.component_indices_], rtol=1e-12)
    assert model.n_features_in_ == 3
    assert 0 < model.alpha_ < np.inf
    assert model.lengthscale_ > 0
    assert 0 <= model.relative_residual_trace_ <= 1
    assert model.residual_trace_ == pytest.approx(300 * model.relative_residual_trace_)
    assert model.n_sweeps_ <= 4
    with pytest.raises(AttributeError):
        KernelRidge().model_


def test_default_basis_sizes() -> None:
    X, y = data(100)
    assert len(KernelRidge().fit(X, y).components_) == 47  # ceil(sqrt(100) log 100)
