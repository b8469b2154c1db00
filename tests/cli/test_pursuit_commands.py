"""Matching pursuit at the command line: plan, fit, predict, evaluate, info, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from streamkernel import KernelMatchingPursuit, KernelMatchingPursuitClassifier, PursuitModel, ingest, open_table

pytestmark = pytest.mark.usefixtures("bare_pages")

THREADS = ("--scheduler", "threads", "--quiet")
M, FITTED = 700, 500
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (M, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(M)
TARGETS: dict[str, Any] = {"numbers": Y, "labels": np.where(Y > 0.2, "yes", "no")}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pursuit")
    for name, y in TARGETS.items():
        ingest(open_table(X, y, classify=name == "labels"), folder / name, dtype="float64", chunk_rows=200)
    return {name: folder / name for name in TARGETS}


def test_a_regression(cli: Callable[..., Any], stores: dict[str, Path], tmp_path: Path) -> None:
    pool = ("--pool", "split", "--candidates", 15)
    options = ("--estimator", "kmp", "--basis", 24, "--rows", f"0:{FITTED}", *pool, "--validation", 0)
    plan = cli("plan", stores["numbers"], *options, "--scheduler", "threads", "--json").result
    told = cli("fit", stores["numbers"], tmp_path / "model", *options, *THREADS, "--json").result
    # The store brings means and deviations; candidates are gathered; five picks a sweep.
    assert told["sweeps"] == plan["sweeps"] == 1 + 5
    assert told["terms"] == 24
    assert told["variant"] == "pre-fitting"
    assert 0 < told["least_weakness"] < 1
    assert told["peak_memory_bytes"] <= told["planned_memory_bytes"]
    model = KernelMatchingPursuit.load(tmp_path / "model")
    cli("predict", tmp_path / "model", stores["numbers"], tmp_path / "out", *THREADS)
    np.testing.assert_allclose(zarr.open_group(tmp_path / "out")["prediction"][:], model.predict(X), rtol=1e-12)
    rest = ("--rows", f"{FITTED}:")
    scores = cli("evaluate", tmp_path / "model", stores["numbers"], *rest, *THREADS, "--json").result
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((model.predict(X[FITTED:]) - Y[FITTED:]) ** 2)))
    assert cli("info", tmp_path / "model", "--json").result["terms"] == 24
    assert cli("report", tmp_path / "model", tmp_path / "page.html").status == 0


def test_labels_are_classes(cli: Callable[..., Any], stores: dict[str, Path], tmp_path: Path) -> None:
    options = ("--estimator", "kmp", "--basis", 15, "--loss", "logistic", "--validation", 0.2, "--rows", f"0:{FITTED}")
    told = cli("fit", stores["labels"], tmp_path / "model", *options, *THREADS, "--json").result
    assert told["estimator"] == "kmp-classifier"
    model = KernelMatchingPursuitClassifier.load(tmp_path / "model")
    scores = cli("evaluate", tmp_path / "model", stores["labels"], "--rows", f"{FITTED}:", *THREADS, "--json").result
    assert scores["accuracy"] == pytest.approx(model.score(X[FITTED:], TARGETS["labels"][FITTED:]))
    assert scores["accuracy"] > 0.9
    P = model.predict_proba(X[FITTED:])[:, 1]
    chance = np.where(TARGETS["labels"][FITTED:] == "yes", P, 1.0 - P)
    assert scores["log_loss"] == pytest.approx(-np.log(chance).mean())
    assert scores["brier"] == pytest.approx(((1.0 - chance) ** 2).mean())
    cli("predict", tmp_path / "model", stores["labels"], tmp_path / "out", *THREADS)
    np.testing.assert_allclose(zarr.open_group(tmp_path / "out")["probability"][FITTED:, 1], P, rtol=1e-12)
    assert cli("info", tmp_path / "model", "--json").result["classes"] == ["no", "yes"]
    assert cli("report", tmp_path / "model", tmp_path / "page.html").status == 0


def test_a_store_of_held_out_rows(cli: Callable[..., Any], stores: dict[str, Path], tmp_path: Path) -> None:
    rest = tmp_path / "rest"
    ingest(open_table(X[FITTED:], TARGETS["labels"][FITTED:], classify=True), rest, dtype="float64", chunk_rows=64)
    options = ("--estimator", "kmp", "--basis", 15, "--validation", rest, "--choose-by", "error")
    options = (*options, "--rows", f"0:{FITTED}")
    plan = cli("plan", stores["labels"], *options, "--scheduler", "threads", "--json").result
    told = cli("fit", stores["labels"], tmp_path / "model", *options, *THREADS, "--json").result
    assert told["sweeps"] == plan["sweeps"]
    scores = cli("evaluate", tmp_path / "model", rest, *THREADS, "--json").result
    assert told["validation_error"] == pytest.approx(1.0 - scores["accuracy"])
    assert told["bound_is_vacuous"] is True
    assert cli("report", tmp_path / "model", tmp_path / "page.html", "--png", tmp_path / "page.png").status == 0
    none = cli("fit", stores["labels"], tmp_path / "no", *options[:4], "--validation", tmp_path / "none", *THREADS)
    assert "none" in none.error
    gamma = ("--estimator", "kmp", "--basis", 8, "--bound-gamma", 0.5)
    told = cli("fit", stores["numbers"], tmp_path / "numbers", *gamma, *THREADS, "--json").result
    assert 0 < told["training_error"] < 1


def test_a_function_that_is_not_positive_definite(
    cli: Callable[..., Any], stores: dict[str, Path], tmp_path: Path
) -> None:
    kernel = ("--kernel", "sigmoid", "--gamma", 0.3, "--coef0", -0.2)
    options = ("--estimator", "kmp", "--variant", "basic", "--basis", 10, *kernel)
    cli("fit", stores["numbers"], tmp_path / "model", *options, *THREADS)
    model = PursuitModel.load(tmp_path / "model")
    assert model.config["kernel"] == {"kernel": "sigmoid", "gamma": 0.3, "coef0": -0.2}
    assert "not positive definite" in cli("fit", stores["numbers"], tmp_path / "no", *kernel, *THREADS).error
    assert "cannot be updated" in cli("update", tmp_path / "model", stores["numbers"], *THREADS).error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--estimator", "kmp", "--rule", "uniform"), "--rule uniform means nothing"),
        (("--estimator", "kmp", "--block", 3), "--rule-option block means nothing"),
        (("--estimator", "kmp", "--pool", "single"), "pool must be one of"),
        (("--estimator", "kmp", "--patience", 5, "--validation", 0), "give --validation"),
        (("--estimator", "kmp", "--loss", "logistic"), "is of classes"),
        (("--variant", "basic"), "an option of kmp"),
    ],
)
def test_refused(cli: Callable[..., Any], stores: dict[str, Path], tmp_path: Path, options: Any, words: str) -> None:
    assert words in cli("fit", stores["numbers"], tmp_path / "model", *options, *THREADS).error
