"""Least squares classification by class indicators."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from slow_cases import slow_but

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.errors import DataError, ParameterError, SingleClassError


def blobs(classes: int, m: int = 240) -> tuple[Any, Any]:
    X, y = make_blobs(m, 3, centers=classes, cluster_std=0.8, random_state=classes)
    return X, y


LABELS: dict[str, Any] = {
    "strings": lambda y: np.array([f"class {c}" for c in "bacd"])[y],
    "integers": lambda y: np.array([10, -3, 7, 0])[y],
    "small integers": lambda y: y.astype(np.int8),
    "objects": lambda y: np.array(["b", "a", "c", "d"], dtype=object)[y],
}


@pytest.mark.parametrize(
    ("kind", "classes"), slow_but([("strings", 2), *product(LABELS, [4])], product(LABELS, [2, 4]))
)
def test_labels_of_any_kind(classes: int, kind: str) -> None:
    X, codes = blobs(classes)
    y = LABELS[kind](codes)
    model = KernelRidgeClassifier(40).fit(X, y)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert model.score(X, y) > 0.95
    assert set(model.predict(X).tolist()) <= set(y.tolist())


def test_booleans() -> None:
    X, codes = blobs(2)
    model = KernelRidgeClassifier(30).fit(X, codes == 1)
    assert ((model.predict(X) == 1) == (codes == 1)).mean() > 0.95


def test_decision_function() -> None:
    X, y = blobs(2)
    two = KernelRidgeClassifier(30).fit(X, y)
    values = two.decision_function(X)
    assert values.shape == (240,)
    np.testing.assert_array_equal(two.predict(X), (values > 0).astype(int))
    X, y = blobs(4)
    four = KernelRidgeClassifier(30).fit(X, y)
    assert four.decision_function(X).shape == (240, 4)
    np.testing.assert_array_equal(four.predict(X), four.decision_function(X).argmax(axis=1))
    # Indicators sum to one, and so do their fits: constants are in the model.
    np.testing.assert_allclose(four.decision_function(X).sum(axis=1), 1.0, atol=1e-8)


def test_two_indicators_are_one_regression_on_signs() -> None:
    X, y = blobs(2)
    options: dict[str, Any] = {"alpha": 0.1, "rule": "uniform", "lengthscale": 2.0}
    signs = KernelRidge(30, **options).fit(X, 2.0 * y - 1)
    classifier = KernelRidgeClassifier(30, **options).fit(X, y)
    np.testing.assert_allclose(classifier.decision_function(X), signs.predict(X), atol=1e-8)


def test_one_class_is_refused() -> None:
    X, _ = blobs(2)
    with pytest.raises(SingleClassError, match="one class only, 'a'"):
        KernelRidgeClassifier().fit(X, np.full(240, "a"))


def test_regression_targets_are_refused() -> None:
    X, _ = blobs(2)
    with pytest.raises((DataError, ValueError), match=r"(?i)continuous|class"):
        KernelRidgeClassifier().fit(X, np.random.default_rng(0).standard_normal(240))


def test_classes_in_a_regression_are_refused() -> None:
    from streamkernel.table import open_table

    X, y = blobs(2)
    with pytest.raises(ParameterError, match="class labels"):
        KernelRidge(10).fit(open_table(X, y, classify=True))


def test_rare_classes_are_found() -> None:
    X, codes = blobs(3, 3000)
    y = np.where(codes == 2, 2, codes)
    keep = np.concatenate([np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:15]])
    model = KernelRidgeClassifier(60).fit(X[keep], y[keep])
    assert model.classes_.tolist() == [0, 1, 2]
    rare = y[keep] == 2
    assert (model.predict(X[keep][rare]) == 2).mean() > 0.5
