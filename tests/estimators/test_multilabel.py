"""Rows with several labels: a ridge classifier of indicators is `KernelRidge` of them, cut at one half."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from report.rendered import without_figures
from sklearn.metrics import accuracy_score, hamming_loss
from sklearn.model_selection import cross_val_score
from slow_cases import slow_but

from streamkernel import KernelRidge, KernelRidgeClassifier, KernelSVC, ingest, open_table, plan
from streamkernel.cli import main
from streamkernel.errors import DataError, DTypeError, ParameterError, ShapeMismatchError
from streamkernel.service.loaded_model import load

OPTIONS: dict[str, Any] = {"kernel": "gaussian", "lengthscale": 1.5, "metric": "none"}


def rows(m: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    f = np.column_stack([X[:, 0], np.sin(2.0 * X[:, 1]), X[:, 0] * X[:, 2] - 1.0])
    return X, (f + 0.2 * rng.standard_normal((m, 3)) > 0.0).astype(np.int64)


@pytest.mark.parametrize(
    ("alpha", "dtype"),
    slow_but(
        [(0.5, bool), ("gcv", np.int8), ("cv", np.float32)],
        product([0.5, "gcv", "cv"], [bool, np.int8, np.float32]),
    ),
)
def test_it_is_the_ridge_of_the_indicators(alpha: Any, dtype: type) -> None:
    X, Y = rows()
    ours = KernelRidgeClassifier(40, alpha=alpha, **OPTIONS).fit(X, Y.astype(dtype))
    numbers = KernelRidge(40, alpha=alpha, **OPTIONS).fit(X, Y.astype(float))
    values = numbers.predict(X)
    np.testing.assert_allclose(ours.decision_function(X), 2.0 * values - 1.0, rtol=1e-9, atol=1e-12)
    labels = ours.predict(X)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, values > 0.5)
    np.testing.assert_array_equal(ours.classes_, [[0, 1]] * 3)
    assert ours.score(X, Y) == accuracy_score(Y, labels) > 0.6
    assert not hasattr(ours, "predict_proba")


def test_one_column_of_two_classes_is_as_before() -> None:
    X, Y = rows()
    both = KernelRidgeClassifier(40, alpha=1.0, **OPTIONS, objective="trace").fit(X, Y[:, :2])
    one = KernelRidgeClassifier(40, alpha=1.0, **OPTIONS, objective="trace").fit(X, Y[:, 0])
    assert one.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(both.decision_function(X)[:, 0], one.decision_function(X), rtol=1e-6, atol=1e-9)


def test_rows_outside_memory_weights_and_files(tmp_path: Path) -> None:
    X, Y = rows()
    w = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    model = KernelRidgeClassifier(40, alpha=1.0, **OPTIONS).fit(X, Y, sample_weight=w)
    lazy_X, lazy_Y = da.from_array(X, chunks=(70, 3)), da.from_array(Y, chunks=(70, 3))
    lazy = KernelRidgeClassifier(40, alpha=1.0, **OPTIONS).fit(lazy_X, lazy_Y, sample_weight=w)
    np.testing.assert_allclose(lazy.dual_coef_, model.dual_coef_, rtol=1e-9)
    model.save(tmp_path / "model")
    loaded = KernelRidgeClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(lazy_X).compute(), model.predict(X))
    assert loaded.score(lazy_X, lazy_Y, w) == pytest.approx(accuracy_score(Y, model.predict(X), sample_weight=w))
    assert model.score(X, Y, w) == pytest.approx(loaded.score(lazy_X, lazy_Y, w))


def test_an_update_is_the_fit_to_all_rows() -> None:
    X, Y = rows()
    whole = KernelRidgeClassifier(30, alpha=1.0, **OPTIONS, scale="none").fit(X, Y)
    part = KernelRidgeClassifier(30, alpha=1.0, **OPTIONS, scale="none").fit(X[:250], Y[:250])
    before = part.predict(X)
    part.update(X[250:], Y[250:])
    assert part.model_.multilabel
    assert part.predict(X).shape == before.shape == whole.predict(X).shape
    assert part.model_.record.totals.rows == 300
    with pytest.raises(DataError, match="y holds 2 in row 1, column 'y0'"):
        part.update(X[:5] + 9.0, np.where(np.arange(5)[:, None] == 1, 2, Y[:5]))
    with pytest.raises(ShapeMismatchError):
        part.update(X[:5] + 9.0, Y[:5, :2])


def test_the_command_line_and_the_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = rows()
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    ingest(tmp_path / "rows.npz", tmp_path / "xy", dtype="float64")
    options = ("--basis", "40", "--alpha", "1", "--lengthscale", "1.5", "--rows", "0:250")

    def run(*arguments: object) -> int:
        return main([*map(str, arguments), "--scheduler", "threads", "--quiet"])

    assert run("fit", tmp_path / "xy", tmp_path / "m", "--estimator", "ridge-classifier", *options) == 0
    model = KernelRidgeClassifier.load(tmp_path / "m")
    again = KernelRidgeClassifier(40, alpha=1.0, lengthscale=1.5).fit(open_table(tmp_path / "xy").slice(0, 250))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert run("predict", tmp_path / "m", tmp_path / "xy", tmp_path / "o") == 0
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "o")["prediction"][:], model.predict(X))
    assert run("predict", tmp_path / "m", tmp_path / "xy", tmp_path / "o.csv") == 0
    assert (tmp_path / "o.csv").read_text().splitlines()[0] == '"row","prediction_y0","prediction_y1","prediction_y2"'
    capsys.readouterr()
    assert run("evaluate", tmp_path / "m", tmp_path / "xy", "--rows", "250:300", "--json") == 0
    scores, found = json.loads(capsys.readouterr().out), model.predict(X[250:])
    assert scores["accuracy"] == accuracy_score(Y[250:], found)
    assert scores["hamming_loss"] == pytest.approx(hamming_loss(Y[250:], found))
    np.testing.assert_allclose(scores["label_accuracy"], (Y[250:] == found).mean(axis=0))
    with without_figures():
        assert main(["report", str(tmp_path / "m"), str(tmp_path / "page.html"), "--quiet"]) == 0
    served = load(tmp_path / "m", "m", 0)
    direct = served.outputs().direct
    np.testing.assert_array_equal(direct.of_block(direct.prepared(X))["prediction"], model.predict(X))


def test_bad_labels(tmp_path: Path) -> None:
    X, Y = rows(60)
    wrong = Y.copy()
    wrong[7, 1] = 2
    with pytest.raises(DataError, match=r"y holds 2 in row 7, column 'y1': several columns of a classifier are labels"):
        KernelRidgeClassifier().fit(X, wrong)
    with pytest.raises(DataError, match="y holds 2 in row 7"):  # found when they are read
        KernelRidgeClassifier(10, **OPTIONS).fit(X, da.from_array(wrong, chunks=(20, 3)))
    with pytest.raises(DataError, match=r"y holds 0\.5 in row 0"):
        KernelRidgeClassifier().fit(open_table(X, np.full((60, 2), 0.5)))
    with pytest.raises(DTypeError, match="y holds text"):
        KernelRidgeClassifier().fit(X, np.where(Y, "a", "b"))
    with pytest.raises(ParameterError, match="class_weight means nothing to rows that may have several labels"):
        KernelRidgeClassifier(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        KernelSVC().fit(X, Y)


def test_labels_that_no_row_or_every_row_has() -> None:
    X, Y = rows(80)
    Y[:, 0], Y[:, 1] = 0, 1
    model = KernelRidgeClassifier(20, alpha=1.0, **OPTIONS).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, :2], [[0, 1]] * 80)


def test_searches_and_plans() -> None:
    X, Y = rows(120)
    assert cross_val_score(KernelRidgeClassifier(20, **OPTIONS), X, Y, cv=3).mean() > 0.4
    assert plan(KernelRidgeClassifier(20, **OPTIONS), X, Y).seconds > 0.0
