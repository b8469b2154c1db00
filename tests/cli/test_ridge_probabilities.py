"""Probabilities of a ridge classifier, from the same curves wherever it predicts, is scored, drawn or served."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import zarr
from sklearn.metrics import log_loss

from streamkernel import KernelRidgeClassifier, ingest, open_table
from streamkernel.comparison import cross_validate
from streamkernel.service.loaded_model import load

pytestmark = pytest.mark.usefixtures("bare_pages")

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
OPTIONS: dict[str, Any] = {"alpha": "cv", "kernel": "gaussian", "lengthscale": 1.0, "metric": "none"}
NAMES = {2: np.array(["no", "yes"]), 3: np.array(["high", "low", "middle"])}


def rows(classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((900, 2))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.6 * rng.standard_normal(900)
    return X, NAMES[classes][np.digitize(f, [0.3] if classes == 2 else [-0.6, 0.7])]


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_commands_and_service_say_what_predict_proba_says(cli: Run, tmp_path: Path, classes: int) -> None:
    X, y = rows(classes)
    model, store = KernelRidgeClassifier(30, **OPTIONS).fit(X[:700], y[:700]), tmp_path / "xy"
    model.save(tmp_path / "model")
    ingest(open_table(X, y, classify=True), store, dtype="float64")
    expected, labels = model.predict_proba(X[700:]), model.classes_.tolist()
    for out in ("o", "o.csv", "o.parquet"):
        cli("predict", tmp_path / "model", store, tmp_path / out, "--rows", "700:900", *THREADS)
    group = zarr.open_group(tmp_path / "o")
    np.testing.assert_allclose(group["probability"][:], expected, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[group["prediction"][:]], model.predict(X[700:]))
    header = ["row", "prediction", *(f"probability_{label}" for label in labels)]
    with (tmp_path / "o.csv").open(newline="") as file:
        first, *lines = csv.reader(file)
    assert sorted(first) == sorted(header)
    found = [[float(line[first.index(name)]) for name in header[2:]] for line in lines]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    table = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    np.testing.assert_allclose(np.column_stack([table[name] for name in header[2:]]), expected, rtol=1e-12)
    scores = cli("evaluate", tmp_path / "model", store, "--rows", "700:900", "--json", *THREADS).result
    assert scores["accuracy"] == model.score(X[700:], y[700:])
    assert scores["log_loss"] == pytest.approx(log_loss(y[700:], expected, labels=labels), rel=1e-10)
    squares = ((expected - (y[700:, None] == model.classes_)) ** 2).sum(axis=1).mean()
    assert scores["brier"] == pytest.approx(squares * (0.5 if classes == 2 else 1.0), rel=1e-10)
    assert 0.0 <= scores["calibration_error"] < 0.2
    served = load(tmp_path / "model", "model", 0)
    direct = served.outputs(probabilities=True).direct
    np.testing.assert_allclose(direct.each_alone(direct.prepared(X[700:]))["probability"], expected, rtol=1e-9)
    page = tmp_path / "page.html"
    assert cli("report", tmp_path / "model", page, "--data", store, "--rows", "700:900", "--quiet").status == 0
    text = page.read_text()
    assert 'id="reliability"' in text
    assert "Log loss" in text


def test_the_fit_keeps_the_probabilities_of_its_check_rows_and_an_update_those_of_its_own() -> None:
    X, y = rows(3)
    model = KernelRidgeClassifier(30, **OPTIONS).fit(X[:700], y[:700])
    arrays = model.model_.arrays
    assert "check_predicted" not in arrays
    assert arrays["check_probability"].shape == arrays["check_true"].shape
    np.testing.assert_allclose(arrays["check_probability"].sum(axis=1), 1.0, rtol=1e-12)
    model.update(X[700:], y[700:])
    assert "check_probability" in model.model_.arrays
    # Another alpha has no curve: the values are compared with indicators again.
    model.update(X[:5] + 0.5, y[:5], stale=1e3, alpha=model.alpha_ * 100.0)
    assert "check_probability" not in model.model_.arrays
    assert "check_predicted" in model.model_.arrays


def test_without_curves_there_are_labels_and_the_accuracy(cli: Run, tmp_path: Path) -> None:
    X, y = rows(2)
    KernelRidgeClassifier(30, **{**OPTIONS, "alpha": 1.0}).fit(X, y).save(tmp_path / "model")
    ingest(open_table(X, y, classify=True), tmp_path / "xy")
    assert cli("predict", tmp_path / "model", tmp_path / "xy", tmp_path / "o", *THREADS).status == 0
    assert list(zarr.open_group(tmp_path / "o").array_keys()) == ["prediction"]
    scores = cli("evaluate", tmp_path / "model", tmp_path / "xy", "--json", *THREADS).result
    assert scores.keys() == {"rows", "accuracy", "accuracy_se"}


def test_classifiers_are_compared_by_log_loss() -> None:
    X, y = rows(2)
    pair = {"few": KernelRidgeClassifier(3, **OPTIONS), "many": KernelRidgeClassifier(40, **OPTIONS)}
    found = cross_validate(X, pair, 2, y=y, error="log_loss")
    assert found.best.name == "many"
