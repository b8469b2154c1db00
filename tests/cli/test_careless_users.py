"""What a careless user of fit, update, evaluate and report meets: one line that says the way out, and nothing left."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import GaussianProcessClassifier, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import NumericalError, NumericRangeError
from streamkernel.models import RidgeModel

THREADS = ("--scheduler", "threads", "--quiet")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
F = X[:, 0] + X[:, 1]
LABELS = np.where(F > 0, "yes", "no")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("careless")
    targets = {"numbers": F, "codes": (F > 0).astype(int), "text": LABELS}
    for name, y in targets.items():
        ingest(open_table(X, y, classify=name == "text"), folder / name, dtype="float64", chunk_rows=100)
    return {name: folder / name for name in targets}


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of labels that are text."""
    folder = tmp_path_factory.mktemp("classifiers")
    given = {"lengthscale": 2.0, "signal_variance": 2.0}
    GaussianProcessClassifier(10, **given).fit(X, LABELS).save(folder / "gp-classifier")
    KernelRidgeClassifier(10).fit(X, LABELS).save(folder / "ridge-classifier")
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["gp-classifier", "ridge-classifier"])
@pytest.mark.parametrize("targets", ["numbers", "codes"])
def test_numbers_for_a_classifier_of_text(
    cli: Callable, stores: dict[str, Path], classifiers: dict[str, Path], kind: str, targets: str
) -> None:
    said = "the table's targets are numbers, the model's classes are text (no, yes); give targets with these labels"
    assert said in cli("evaluate", classifiers[kind], stores[targets], *THREADS).error
    if kind == "ridge-classifier":
        assert said in cli("update", classifiers[kind], stores[targets], *THREADS).error
    assert cli("evaluate", classifiers[kind], stores["text"], *THREADS).status == 0


def test_labels_for_a_regression(cli: Callable, tmp_path: Path, stores: dict[str, Path]) -> None:
    assert cli("fit", stores["numbers"], tmp_path / "m", "--basis", 10, *THREADS).status == 0
    for command in ("evaluate", "update"):
        error = cli(command, tmp_path / "m", stores["text"], *THREADS).error
        assert error.endswith("the model is a regression; give targets that are numbers, or a classifier")


def test_rows_of_a_report_without_data(cli: Callable, model: Path, tmp_path: Path) -> None:
    said = "--rows says which rows of --data are drawn; give --data, or leave it out"
    assert said in cli("report", model, tmp_path / "r.html", "--rows", "0:10").error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stale", ["nan", "inf"])
def test_a_factor_that_is_no_number(cli: Callable, model: Path, store: Path, stale: str) -> None:
    error = cli("update", model, store, "--stale", stale, *THREADS).error
    assert error == f"error: --stale must be a finite number >= 0, not {stale}"


def test_a_fit_that_fails_in_its_numbers_leaves_nothing_to_resume(
    cli: Callable, stores: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--estimator", "gp", "--basis", 10, "--signal-variance", 1e300, *THREADS)
    assert "unexpected" not in cli("fit", stores["numbers"], tmp_path / "m", *options).error
    assert list(tmp_path.iterdir()) == []


def test_an_update_that_fails_in_its_numbers_leaves_nothing_to_resume(
    cli: Callable, model: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(shutil.copytree(model, tmp_path / "m"))

    def failing(*arguments: Any) -> None:
        raise NumericalError("the sums are not finite")

    monkeypatch.setattr(RidgeModel, "with_sums", failing)
    assert "the sums are not finite" in cli("update", own, store, *THREADS).error
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_targets_near_the_end_of_their_range(cli: Callable, tmp_path: Path, stores: dict[str, Path]) -> None:
    """Squares that overflow are refused where the rows come in; what is let in has its error, and no warnings."""
    with pytest.raises(NumericRangeError, match="squares of such targets overflow"):
        ingest(open_table(X, 1e200 * F), tmp_path / "huge", dtype="float64", chunk_rows=100)
    assert cli("fit", stores["numbers"], tmp_path / "m", "--basis", 10, *THREADS).status == 0
    ingest(open_table(X, 1e139 * F / np.abs(F).max()), tmp_path / "large", dtype="float64", chunk_rows=100)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ran = cli("evaluate", tmp_path / "m", tmp_path / "large", *THREADS, "--json")
    assert ran.result["rmse"] == pytest.approx(1e139 * np.sqrt(np.mean((F / np.abs(F).max()) ** 2)), rel=1e-6)
    assert ran.err == ""


@pytest.mark.parametrize(("given", "meant"), [("fitt", "fit"), ("evalute", "evaluate"), ("job", "jobs")])
def test_a_mistyped_command(cli: Callable, given: str, meant: str) -> None:
    found = cli(given, "a", "b")
    assert found.status == 2
    assert f"No such command '{given}'. Did you mean '{meant}'?" in found.err
    assert "Did you mean" not in cli("xyzzy").err


def test_two_targets(cli: Callable, tmp_path: Path) -> None:
    """They are a y of two columns; the same one twice is a mistake."""
    (tmp_path / "rows.csv").write_text("a,u,v\n1,2,3\n4,5,6\n")
    arguments = ("ingest", tmp_path / "rows.csv", tmp_path / "t", "--quiet", "--json")
    found = cli(*arguments, "--target", "u", "--target", "u")
    assert "column 'u' is there twice as --target; leave one of them out" in found.error
    assert not (tmp_path / "t").exists()
    assert cli(*arguments, "--target", "u", "--target", "v").result["target_names"] == ["u", "v"]


@pytest.mark.parametrize(
    ("given", "meant"), [("--n-components", "--basis"), ("--random-state", "--seed"), ("--memory_limit", "--memory")]
)
def test_a_parameter_of_python(cli: Callable, given: str, meant: str) -> None:
    """Who comes from Python is told the flag, and not one that only looks like it, such as ``--components``."""
    found = cli("fit", "a", "b", given, 10)
    assert found.status == 2
    assert f"Did you mean '{meant}'?" in found.err
    assert "Did you mean" not in cli("fit", "a", "b", "--xyzzy", 10).err
    assert "Did you mean" not in cli("info", "a", "--random-state", 10).err  # which has no such flag


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "LONG.csv", "out"),
        ("fit", "STORE", "LONG", "--basis", "10", *THREADS),
        ("report", "LONG", "out.html"),
    ],
)
def test_a_path_that_is_longer_than_the_system_takes(
    cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    long = "/".join(["d" * 200] * 25)
    error = cli(*(each.replace("LONG", long).replace("STORE", str(store)) for each in command)).error
    assert "than this system takes" in error
    assert error.endswith("; choose a shorter one")
    assert len(error) < 300 + len(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [("fit", "LONG.zarr", "out"), ("ingest", "STORE", "LONG"), ("report", "STORE", "LONG"), ("plan", "LONG.zarr")],
)
def test_a_name_that_is_longer_than_the_system_takes(
    cli: Callable, store: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    error = cli(*(each.replace("LONG", "d" * 5000).replace("STORE", str(store)) for each in command)).error
    assert error.endswith("choose a shorter one")
    assert len(error) < 350
