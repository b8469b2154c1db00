"""Matching pursuit as estimators: scikit-learn's manners, stages, what is kept, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from memory import measured, measured_from
from scikit_learn_checks import with_checks
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from streamkernel import (
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelRidge,
    PursuitModel,
    ingest,
    open_table,
)
from streamkernel.engine import Machine
from streamkernel.engine.plan import BASE_BYTES
from streamkernel.errors import ModelFormatError, ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.fits.pursuit import plan_pursuit
from streamkernel.settings.pursuit import PursuitSettings

RNG = np.random.default_rng(1)
X = RNG.standard_normal((400, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], 3 + X[:, 2] ** 2]) + 0.1 * RNG.standard_normal((400, 2))
y = Y[:, 0]
TWO = np.where(y > 0.3, "yes", "no")
THREE = np.digitize(y, [-0.5, 0.5]) * 10

MODELS: dict[str, Any] = {
    "pre-fitting": lambda: KernelMatchingPursuit(20, validation=None).fit(X, y),
    "basic, two targets": lambda: KernelMatchingPursuit(20, variant="basic", shrinkage=0.7).fit(X, Y),
    "back-fitting, watched": lambda: KernelMatchingPursuit(30, variant="back-fitting", validation=0.3).fit(X, Y),
    "sigmoid": lambda: KernelMatchingPursuit(12, kernel="sigmoid", gamma=0.2, coef0=-0.1).fit(X, y),
    "one column, no constant": lambda: KernelMatchingPursuit(9, fit_intercept=False).fit(X, Y[:, 1:]),
    "split, by residual": lambda: KernelMatchingPursuit(12, pool="split", draw="residual", candidates=20).fit(X, y),
    "two classes": lambda: KernelMatchingPursuitClassifier(15, validation=0.2).fit(X, TWO),
    "logistic": lambda: KernelMatchingPursuitClassifier(12, loss="logistic", validation=0.3).fit(X, TWO),
    "three classes": lambda: KernelMatchingPursuitClassifier(15, variant="basic").fit(X, THREE),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {name: make() for name, make in MODELS.items()}


# The checks fit sets of a few rows, constant columns and copies of rows: what we warn of there is wanted elsewhere.
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(others=[KernelMatchingPursuit(), KernelMatchingPursuitClassifier()])
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded(name: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    model = fitted[name]
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).shape == model.predict(X).shape
    for attribute in ("components_", "active_set_", "dual_coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
    np.testing.assert_array_equal(again.path_.rss, model.path_.rss)
    assert again.path_.validation_rows == model.path_.validation_rows
    assert again.model_.digest == model.model_.digest
    assert hasattr(again, "predict_proba") == (name == "logistic")
    for mine, theirs in zip(model.staged_predict(X), again.staged_predict(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ModelFormatError):
        KernelRidge.load(tmp_path / "model")


@pytest.mark.parametrize("name", MODELS)
def test_stages_end_with_the_prediction_and_are_those_of_stored_rows(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name]
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.active_set_) > 0
    expected = model.predict(X)
    lazy = list(model.staged_predict(da.from_array(X, chunks=(150, 3))))
    middle = len(stages) // 2
    assert stages[0].shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(stages[-1], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(lazy[middle].compute(), stages[middle], rtol=1e-7, atol=1e-7)
    else:
        assert (stages[-1] == expected).mean() > 0.99
        assert (lazy[middle].compute() == stages[middle]).mean() > 0.99


def test_what_is_left_along_the_path(fitted: dict[str, Any]) -> None:
    model = fitted["pre-fitting"]
    errors = [((y - stage) ** 2).sum() for stage in model.staged_predict(X)]
    np.testing.assert_allclose(model.path_.rss[1:, 0], errors, rtol=1e-6)
    assert model.path_.rss[0, 0] == pytest.approx(400 * y.var())
    np.testing.assert_allclose(model.components_, X[model.active_set_], rtol=1e-12, atol=1e-14)
    assert model.residual_trace_ == pytest.approx(400 * model.relative_residual_trace_)
    assert 0 < model.relative_residual_trace_ < 1
    assert fitted["sigmoid"].relative_residual_trace_ == 1.0


def test_the_best_size_is_kept_and_the_path_whole(fitted: dict[str, Any]) -> None:
    model = fitted["back-fitting, watched"]
    watched = model.path_.validation / Y.var(axis=0)
    assert model.path_.terms >= len(model.active_set_) == watched.sum(axis=1).argmin()
    assert model.path_.validation_rows + model.path_.fitted_rows == 400
    assert len(model.path_.rows) == model.path_.terms


def test_two_classes_are_told_by_a_sign(fitted: dict[str, Any]) -> None:
    model = fitted["two classes"]
    assert model.decision_function(X).shape == (400,)
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no"))
    assert model.score(X, TWO) > 0.9
    assert fitted["three classes"].decision_function(X).shape == (400, 3)
    assert fitted["three classes"].score(X, THREE) > 0.6


def test_basic_may_have_a_function_twice() -> None:
    model = KernelMatchingPursuit(40, variant="basic", pool="full", validation=None).fit(X, y)
    assert len(model.active_set_) == 40 > len(model.components_)
    assert set(model.active_set_) == set(model.component_indices_)


def test_equal_seeds_equal_bits_and_a_clone(fitted: dict[str, Any]) -> None:
    model = fitted["pre-fitting"]
    assert clone(model).fit(X, y).model_.digest == model.model_.digest
    assert KernelMatchingPursuit(20, random_state=4).fit(X, y).model_.digest != model.model_.digest


def test_a_search() -> None:
    search = GridSearchCV(KernelMatchingPursuit(15), {"lengthscale": [0.01, 1.0]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_params_ == {"lengthscale": 1.0}


def test_a_store(tmp_path: Path, fitted: dict[str, Any]) -> None:
    """Chunks of another size than the rows in memory have: the same path."""
    ingest(open_table(X, y), tmp_path / "rows", dtype="float64", chunk_rows=70)
    model = KernelMatchingPursuit(20, validation=None).fit(str(tmp_path / "rows"))
    np.testing.assert_array_equal(model.active_set_, fitted["pre-fitting"].active_set_)
    np.testing.assert_allclose(model.predict(X), fitted["pre-fitting"].predict(X), rtol=1e-6, atol=1e-8)


def test_the_plan_and_its_limit() -> None:
    table = open_table(X, y)
    plan = plan_pursuit(table, PursuitSettings(20), Machine(0, 1))
    assert plan.sweeps == KernelMatchingPursuit(20).fit(X, y).n_sweeps_
    assert plan_pursuit(table, PursuitSettings(400), Machine(0, 1)).memory_bytes > plan.memory_bytes
    with pytest.raises(ResourceLimitError):
        KernelMatchingPursuit(20, memory_limit="10MB").fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "orthogonal"}, "variant must be one of"),
        ({"shrinkage": 0.5}, "means nothing to pre-fitting"),
        ({"variant": "basic", "shrinkage": 0.0}, "shrinkage"),
        ({"pool": "single"}, "pool must be one of"),
        ({"draw": "best"}, "draw must be one of"),
        ({"validation": 1.0}, "leaves no rows"),
        ({"validation": -0.1}, "validation"),
        ({"patience": 3, "validation": None}, "give validation"),
        ({"patience": 0, "validation": 0.1}, "patience"),
        ({"picks": 0}, "picks"),
        ({"tol": 2.0}, "tol"),
        ({"variant": "basic", "shrinkage": "half"}, "shrinkage must be a number"),
        ({"eps": 0.01}, "mean nothing to the pool 'shared'"),
        ({"validation": X}, "^validation is of type ndarray; give"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelMatchingPursuit(**{"n_components": 5, **options}).fit(X, y)


def test_constant_targets_are_told_of() -> None:
    with pytest.warns(StreamKernelWarning, match="is that constant, and has no functions"):
        model = KernelMatchingPursuit(5).fit(X, np.full(len(X), 3.0))
    assert len(model.active_set_) == 0
    assert model.predict(X[:2]).tolist() == [3.0, 3.0]


def test_std_is_not_to_be_had(fitted: dict[str, Any]) -> None:
    model: PursuitModel = fitted["pre-fitting"].model_
    with pytest.raises(ParameterError, match="no standard deviations"):
        model.outputs(std=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 200},
        {"n_components": 200, "draw": "residual", "validation": 0.2},
        {"n_components": 150, "kernel": "sigmoid", "gamma": 0.05, "coef0": -0.2},
    ],
)
def test_the_promise_of_memory_is_kept(tmp_path: Path, options: dict[str, Any]) -> None:
    planned, peak, before = measured_from(tmp_path, "kmp", 20_000, **options)
    assert peak <= planned
    # Libraries take what they do on the machine, and are planned at their most, with a compiler.
    assert planned - BASE_BYTES < 3.5 * (peak - before)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peaks = []
    for rows in (100_000, 800_000):
        (tmp_path / str(rows)).mkdir()
        planned, peak = measured(tmp_path / str(rows), "kmp", rows, n_components=100, picks=20, draw="residual")
        assert peak <= planned
        peaks.append(peak)
    assert peaks[1] < 1.1 * peaks[0]


def test_the_validation_error_is_that_of_each_target() -> None:
    """They may be in different units, in which an average is none."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 2))
    targets = np.sin(rows) * [1.0, 1e6]
    one = KernelMatchingPursuit(8).fit(rows, targets[:, 0]).model_.solution_fields()
    both = KernelMatchingPursuit(8).fit(rows, targets).model_.solution_fields()
    assert isinstance(one["validation_rmse"], float)
    length, mass = both["validation_rmse"]
    assert 1e5 < mass / length < 1e7
