"""Weights of classes: balanced or given, in every classifier, from any input."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from problems import zarr_of_chunks
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight
from slow_cases import slow_but

from streamkernel import (
    GaussianProcessClassifier,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelRidge,
    KernelRidgeClassifier,
    open_table,
)
from streamkernel.errors import EmptyDataError, ParameterError, SingleClassError
from streamkernel.table.class_weights import class_counts, weighted_by_class, without_class_weights

RNG = np.random.default_rng(0)
M = 240
LABELS = RNG.permutation(np.repeat(["a", "b", "c"], [150, 70, 20]))
X = RNG.standard_normal((M, 2)) + 1.2 * np.array([[0, 0], [1, 0], [0, 1]])[np.unique(LABELS, return_inverse=True)[1]]
w = RNG.integers(0, 4, M).astype(np.float64)
CODES = np.searchsorted(["a", "b", "c"], LABELS)

CLASSIFIERS: dict[str, Any] = {
    "ridge": KernelRidgeClassifier(20, lengthscale=1.5, alpha=0.1),
    "cg": KernelRidgeClassifier(20, lengthscale=1.5, alpha=0.1, solver="cg"),
    "gp": GaussianProcessClassifier(10, lengthscale=1.5, signal_variance=4.0),
    "kmp": KernelMatchingPursuitClassifier(8, lengthscale=1.5),
    "kmp, logistic": KernelMatchingPursuitClassifier(8, lengthscale=1.5, loss="logistic", validation=None),
}


def decided(model: Any) -> Any:
    return model.predict_proba(X) if isinstance(model, GaussianProcessClassifier) else model.decision_function(X)


# Beside the others, "cg" has a solver of its own and "kmp, logistic" another loss: class weights are in neither.
@pytest.mark.parametrize("name", slow_but(["ridge", "gp", "kmp"], CLASSIFIERS))
def test_class_weights_are_row_weights(name: str) -> None:
    model = CLASSIFIERS[name]
    plain = decided(model.set_params(class_weight=None).fit(X, LABELS))
    for given in ("balanced", {"a": 1.0, "b": 0.5, "c": 7.0}, {"c": 7}):
        rows = compute_sample_weight(given, LABELS)
        expected = decided(model.set_params(class_weight=None).fit(X, LABELS, sample_weight=rows))
        found = decided(model.set_params(class_weight=given).fit(X, LABELS))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert np.abs(found - plain).max() > 1e-3
    model.set_params(class_weight=None)


@pytest.mark.parametrize("kind", slow_but(["numpy", "dask", "store"], ["numpy", "dask", "store", "table", "slice"]))
def test_balanced_from_any_input(kind: str, tmp_path: Path) -> None:
    model = KernelRidgeClassifier(20, lengthscale=1.5, alpha=0.1, class_weight="balanced")
    expected = model.fit(X, CODES).model_
    inputs = {
        "numpy": (X, CODES),
        "dask": (da.from_array(X, chunks=(50, 2)), da.from_array(CODES, chunks=64)),
        "table": (open_table(X, CODES), None),
        "slice": (open_table(np.tile(X, (2, 1)), np.append(CODES, np.zeros(M, int)), classify=True).slice(0, M), None),
    }
    given = (
        (zarr_of_chunks(tmp_path / "rows.zarr", X, CODES.astype(np.float64), 70), None)
        if kind == "store"
        else inputs[kind]
    )
    found = model.fit(*given).model_
    assert found.record.class_weights == expected.record.class_weights == (240 / 450, 240 / 210, 240 / 60)
    np.testing.assert_allclose(
        model.decision_function(X), KernelRidgeClassifier._taken(expected, "").decision_function(X)
    )


@pytest.mark.filterwarnings("ignore:only .* of 30 basis functions")
def test_balanced_counts_rows_as_often_as_their_weights_say() -> None:
    model = KernelRidgeClassifier(30, rule="uniform", lengthscale=1.5, alpha=0.1, class_weight="balanced")
    counts = np.bincount(CODES, w)
    found = model.fit(X, LABELS, sample_weight=w).model_.record
    assert found.class_weights == tuple(w.sum() / (3 * counts))
    assert found.totals.weight == pytest.approx(w.sum())
    rows = np.repeat(np.arange(M), w.astype(int))
    assert model.fit(X[rows], LABELS[rows]).model_.record.class_weights == pytest.approx(found.class_weights)
    # Rows of weight 0 are as if they were not there, and so is a class that has only such rows.
    only = np.where(LABELS == "c", 0.0, 1.0)
    assert model.fit(X, LABELS, sample_weight=only).model_.record.class_weights == (220 / 300, 220 / 140, 1.0)


@pytest.mark.parametrize("chunk", slow_but([30], [30, 100, M]))
def test_weights_are_computed_by_block(chunk: int) -> None:
    labels, weights = da.from_array(CODES, chunks=chunk), da.from_array(w, chunks=64)
    table = open_table(da.from_array(X, chunks=(90, 2)), labels, weights=weights, classify=True)
    np.testing.assert_array_equal(class_counts(table), np.bincount(CODES, w))
    np.testing.assert_array_equal(class_counts(table.slice(10, 50)), np.bincount(CODES[10:50], w[10:50]))
    whole = weighted_by_class(table, (1.0, 2.0, 0.5))
    expected = w * np.array([1.0, 2.0, 0.5])[CODES]
    for rows in (33, M):
        blocks = [block.weights for block in whole.blocks(0, M, rows)]
        np.testing.assert_array_equal(np.concatenate(blocks), expected)
    sent = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(sent.read(0, M).weights, expected)
    assert sent.fingerprint == whole.fingerprint
    assert without_class_weights(whole).fingerprint == table.fingerprint != whole.fingerprint
    assert weighted_by_class(table, None) is table
    with pytest.raises(EmptyDataError, match="all 240 weights are zero"):
        class_counts(open_table(X, labels, weights=da.zeros(M, chunks=9), classify=True))


def test_an_update_keeps_the_weights_of_the_classes() -> None:
    options: dict[str, Any] = {"lengthscale": 1.5, "alpha": 0.1, "scale": "none"}
    model = KernelRidgeClassifier(20, class_weight="balanced", **options).fit(X[:200], LABELS[:200])
    kept = model.model_.record.class_weights
    assert model.update(X[:200], LABELS[:200]).last_update_.rows_folded == 0
    model.update(X[200:], LABELS[200:])
    assert model.last_update_.rows_folded == 40
    assert model.model_.record.class_weights == kept
    by_row = np.array(kept)[CODES]
    by_rows = KernelRidgeClassifier(20, **options).fit(X[:200], LABELS[:200], sample_weight=by_row[:200])
    by_rows.update(X[200:], LABELS[200:], sample_weight=by_row[200:])
    np.testing.assert_allclose(model.decision_function(X), by_rows.decision_function(X), atol=1e-9)


def test_a_saved_model_has_them(tmp_path: Path) -> None:
    for given in ("balanced", {"c": 3.0, "a": 2}):
        model = KernelRidgeClassifier(10, class_weight=given).fit(X, LABELS)
        model.save(tmp_path / "model", overwrite=True)
        again = KernelRidgeClassifier.load(tmp_path / "model")
        assert again.model_.digest == model.model_.digest
        assert again.model_.record.class_weights == model.model_.record.class_weights
    stored = again.model_.record.settings.to_config()["class_weight"]
    assert stored == [["c", 3.0], ["a", 2.0]]
    assert "class_weight" not in KernelRidgeClassifier(10).fit(X, LABELS).model_.record.settings.to_config()


def test_other_rows_that_choose_the_size_are_weighted_too() -> None:
    outer = open_table(X[:100], LABELS[:100], classify=True)
    model = KernelMatchingPursuitClassifier(8, lengthscale=1.5, validation=outer, class_weight={"c": 5.0})
    model.fit(X[100:], LABELS[100:])
    assert model.path_.validation_rows == 100 + 4 * np.count_nonzero(LABELS[:100] == "c")


ERRORS: dict[str, tuple[Any, str]] = {
    "a word": ("even", "class_weight must be 'balanced' or a number for each class, not 'even'"),
    "a number": (2.0, "class_weight must be 'balanced' or a number for each class, not 2.0"),
    "numbers": ([1.0, 2.0], "class_weight must be 'balanced' or a number for each class"),
    "negative": ({"a": -1.0}, "class_weight of the class 'a' must be a finite number >= 0, not -1.0"),
    "NaN": ({"a": float("nan")}, "must be a finite number >= 0, not nan"),
    "text": ({"a": "much"}, "must be a finite number >= 0, not 'much'"),
    "no label": ({None: 1.0}, "class_weight names the class None"),
    "unknown": ({"a": 1.0, "z": 2.0}, "class_weight has a weight for 'z', which is no class, and none for 'b', 'c'"),
    "all zero": (dict.fromkeys("abc", 0.0), "class_weight is 0 for all classes"),
}


@pytest.mark.parametrize("case", ERRORS)
@pytest.mark.parametrize("name", ["ridge", "gp", "kmp"])
def test_wrong_class_weights(case: str, name: str) -> None:
    given, message = ERRORS[case]
    model = CLASSIFIERS[name]
    try:
        with pytest.raises(ParameterError, match=message):
            model.set_params(class_weight=given).fit(X, LABELS)
    finally:
        model.set_params(class_weight=None)


@pytest.mark.parametrize("name", ["ridge", "cg", "gp", "kmp"])
def test_one_class_with_weight(name: str) -> None:
    message = "the rows with a weight > 0 are of one class only, 'b'"
    with pytest.raises(SingleClassError, match=message):
        CLASSIFIERS[name].fit(X, LABELS, sample_weight=(LABELS == "b").astype(float))
    with pytest.raises(SingleClassError, match=message):
        clone(CLASSIFIERS[name]).set_params(class_weight={"a": 0.0, "c": 0.0}).fit(X, LABELS)


def test_more_labels_than_classes() -> None:
    """As in scikit-learn: a fold of a cross-validation may lack a rare class."""
    given = {"a": 1.0, "b": 2.0, "c": 3.0}
    some = LABELS != "c"
    model = KernelRidgeClassifier(10, class_weight=given).fit(X[some], LABELS[some])
    assert model.model_.record.class_weights == (1.0, 2.0)


def test_numbers_are_named_by_text_too() -> None:
    for given in ({0: 2.0, 1: 3.0, 2: 4.0}, {"0": 2.0, "1": 3.0, "2": 4.0}, [[0, 2.0], [1, 3.0], [2, 4.0]]):
        model = KernelRidgeClassifier(10, class_weight=given).fit(X, CODES)
        assert model.model_.record.class_weights == (2.0, 3.0, 4.0)


def test_regressions_have_none() -> None:
    for regression in (KernelRidge(), KernelMatchingPursuit()):
        assert "class_weight" not in regression.get_params()


@pytest.mark.parametrize("name", slow_but(["ridge", "gp", "kmp"], CLASSIFIERS))
def test_a_class_whose_rows_have_weight_0(name: str) -> None:
    """It is told of no row, whatever its weight; the weights of the others are those without its rows."""
    kept = LABELS != "c"
    rows = np.where(kept, w, 0.0)
    model = clone(CLASSIFIERS[name]).set_params(class_weight="balanced")
    without = clone(model).fit(X[kept], LABELS[kept], sample_weight=w[kept]).model_.record.class_weights
    found = model.fit(X, LABELS, sample_weight=rows)
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert set(found.predict(X)) == {"a", "b"}
    assert found.model_.record.class_weights == pytest.approx((*without, 1.0))
    heavy = clone(model).set_params(class_weight={"c": 1e6}).fit(X, LABELS, sample_weight=rows)
    plain = clone(model).set_params(class_weight=None).fit(X, LABELS, sample_weight=rows)
    np.testing.assert_array_equal(decided(heavy), decided(plain))
