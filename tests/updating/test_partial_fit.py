"""`partial_fit`: the fit of the first batch's basis to the rows of all batches, each as often as it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import naive
import numpy as np
import pytest

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.errors import DataError, ParameterError, ShapeMismatchError, StreamKernelWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (1000, 2))
F = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2
Y = F + 0.1 * RNG.standard_normal(1000)
LABELS = np.array(["high", "low", "middle"])[np.digitize(F, [0.5, 2.0])]
BATCHES = [slice(start, start + 200) for start in range(0, 1000, 200)]
OPTIONS: dict[str, Any] = {"kernel": "gaussian", "lengthscale": 1.0, "metric": "none", "scale": "none"}


def whole(model: Any, targets: Any, weights: Any, at: Any) -> Any:
    """Predictions of the fit of this basis to all rows at once, in plain NumPy."""
    Z = model.components_
    K, W, new = (naive.gaussian(A, Z, 1.0) for A in (X, Z, at))
    found = naive.reduced_ridge(K, W, targets, model.alpha_, intercept=True, weights=weights, raw=False)
    return new @ found.alpha + found.intercept


@pytest.mark.parametrize("alpha", [0.1, "gcv"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_are_one_fit_of_their_basis_to_all_rows(alpha: Any, targets: int, weighted: bool) -> None:
    T = Y if targets == 1 else np.column_stack([Y, 3.0 - 2.0 * F])
    w = RNG.integers(1, 4, 1000).astype(float) if weighted else None
    model = KernelRidge(25, alpha=alpha, **OPTIONS)
    for batch in BATCHES:
        assert model.partial_fit(X[batch], T[batch], None if w is None else w[batch]) is model
    at = RNG.uniform(-2.0, 2.0, (50, 2))
    expected = whole(model, T, w, at)
    np.testing.assert_allclose(model.predict(at).reshape(50, -1), expected, rtol=1e-6, atol=1e-8)
    assert model.model_.record.totals.rows == 1000
    np.testing.assert_array_equal(model.components_, KernelRidge(25, alpha=alpha, **OPTIONS).fit(
        X[:200], T[:200], None if w is None else w[:200]).components_)  # fmt: skip


def test_updates_with_the_same_rows_give_the_same_bits() -> None:
    by_parts, updated = (KernelRidge(25, alpha=0.1, **OPTIONS).fit(X[:200], Y[:200]) for _ in range(2))
    for batch in BATCHES[1:]:
        by_parts.partial_fit(X[batch], Y[batch])
        updated.update(X[batch], Y[batch])
    np.testing.assert_array_equal(by_parts.dual_coef_, updated.dual_coef_)


def test_a_batch_that_is_given_twice_counts_twice_and_update_knows_it() -> None:
    model = KernelRidge(25, alpha=0.1, **OPTIONS)
    for _ in range(3):
        model.partial_fit(X, Y)
    assert model.model_.record.totals.rows == 3000
    np.testing.assert_allclose(model.predict(X), whole(model, Y, np.full(1000, 3.0), X)[:, 0], rtol=1e-6, atol=1e-6)
    before = model.dual_coef_
    model.update(X, Y)
    assert not model.last_update_.changed
    np.testing.assert_array_equal(model.dual_coef_, before)
    model.fit(X, Y)  # anew
    assert model.model_.record.totals.rows == 1000


def test_classes_that_come_later() -> None:
    order = np.argsort(LABELS, kind="stable")  # the first batch has one class only
    classes = np.unique(LABELS)
    model = KernelRidgeClassifier(25, alpha=0.1, objective="trace", **OPTIONS)
    given = classes[::-1].tolist()
    model.partial_fit(X[order[:200]], LABELS[order[:200]], classes=given)
    with pytest.warns(StreamKernelWarning, match="stale"):
        model.partial_fit(X[order[200:600]], LABELS[order[200:600]], classes=given)
    with pytest.warns(StreamKernelWarning, match="stale"):
        model.partial_fit(X[order[600:]], LABELS[order[600:]])
    assert model.classes_.tolist() == classes.tolist()
    expected = whole(model, (LABELS[:, None] == classes).astype(float), None, X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-6)


def test_several_labels_files_and_rows_outside_memory(tmp_path: Path) -> None:
    marks = np.column_stack([F > 0.5, F > 2.0]).astype(int)
    model = KernelRidgeClassifier(25, alpha=0.1, **OPTIONS).partial_fit(X[:200], marks[:200])
    model.save(tmp_path / "model")
    loaded = KernelRidgeClassifier.load(tmp_path / "model")
    loaded.partial_fit(da.from_array(X[200:], chunks=(300, 2)), da.from_array(marks[200:], chunks=(300, 2)))
    expected = whole(model, marks.astype(float), None, X)
    np.testing.assert_allclose(loaded.decision_function(X), 2.0 * expected - 1.0, rtol=1e-5, atol=1e-6)


def test_bad_batches_leave_the_model_as_it_was() -> None:
    model = KernelRidge(25, alpha=0.1, **OPTIONS).partial_fit(X[:200], Y[:200])
    before = model.model_
    with pytest.raises(ValueError, match="X has 1 features, but KernelRidge is expecting 2"):
        model.partial_fit(X[:, :1], Y)
    with pytest.raises(ShapeMismatchError):
        model.partial_fit(X, np.column_stack([Y, Y]))
    assert model.model_ is before
    labels = KernelRidgeClassifier(25, alpha=0.1, **OPTIONS)
    with pytest.raises(ParameterError, match="classes lacks 'high', which y holds; give all labels"):
        labels.partial_fit(X, LABELS, classes=["low", "middle"])
    with pytest.raises(ParameterError, match="classes is a list of the labels of one column, and y has several"):
        labels.partial_fit(X, np.column_stack([F > 0, F > 1]), classes=[0, 1])
    assert not hasattr(labels, "model_")
    labels.partial_fit(X[:200], LABELS[:200])
    with pytest.raises(ParameterError, match="classes are not those of the first call"):
        labels.partial_fit(X, LABELS, classes=["low", "middle"])
    with pytest.raises(DataError, match="'huge'"):
        labels.partial_fit(X[:3], ["low", "huge", "low"])


def test_conjugate_gradients_keep_no_sums_and_have_no_such_method() -> None:
    for kind in (KernelRidge, KernelRidgeClassifier):
        model = kind(25, alpha=0.1, solver="cg", **OPTIONS)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
            model.partial_fit(X[:200], Y[:200])
        assert "take solver='direct'" in str(caught.value.__cause__)
        assert hasattr(model.set_params(solver="direct"), "partial_fit")
