"""Sparse rows on the command line: a libsvm file, its store, a model, its predictions; and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.usefixtures("bare_pages")

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")


def write_svm(path: Path, rows: int, columns: int, entries: int) -> Path:
    """Rows with so many entries, whose target is a function of all of them."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(columns)
    with open(path, "w") as lines:
        for _ in range(rows):
            found, values = np.unique(rng.integers(0, columns, entries)), rng.random(entries)
            pairs = " ".join(f"{c + 1}:{v:.4f}" for c, v in zip(found, values, strict=False))
            lines.write(f"{np.sin(values[: len(found)] @ truth[found]):.4f} {pairs}\n")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_svm(tmp_path_factory.mktemp("svm") / "rows.svm", 600, 3000, 12)


def test_from_a_file_to_predictions(cli: Run, source: Path, tmp_path: Path) -> None:
    store, model, out = tmp_path / "rows", tmp_path / "model", tmp_path / "out"
    told = cli("ingest", source, store, "--shuffle", "--quiet").out
    assert "sparse: " in told
    info = cli("info", store, "--json").result
    assert (info["rows"], info["features"], info["dtype"]) == (600, 3000, "float32")
    assert 6500 < info["entries"] <= 7200
    basis = ("--basis", "50", "--rows", "0:500", "--alpha", "0.1")
    assert cli("plan", store, *basis, "--json").result["planned_memory_bytes"] < 2 * 10**9
    fitted = cli("fit", store, model, *basis, *THREADS, "--json").result
    assert fitted["peak_memory_bytes"] < fitted["planned_memory_bytes"]
    scores = cli("evaluate", model, store, "--rows", "500:600", *THREADS, "--json").result
    assert cli("predict", model, store, out, "--rows", "500:600", *THREADS).status == 0
    predicted = np.asarray(zarr.open_group(out, mode="r")["prediction"])
    truth = np.asarray(zarr.open_group(store, mode="r")["y"])[500:]
    assert scores["rmse"] == pytest.approx(float(np.sqrt(np.mean((predicted - truth) ** 2))))
    assert cli("predict", model, store, tmp_path / "out.csv", *THREADS).status == 0
    assert cli("info", model).status == 0
    assert cli("report", model, tmp_path / "page.html").status == 0
    # The dense copy has the same rows and the same answers.
    dense = tmp_path / "dense"
    assert "sparse" not in cli("ingest", source, dense, "--dense", "--shuffle", "--quiet").out
    again = cli(
        "fit", dense, tmp_path / "of_dense", *basis, "--kernel", "gaussian", "--metric", "none", *THREADS, "--json"
    ).result
    assert again["residual_trace"] == pytest.approx(fitted["residual_trace"], rel=1e-6)
    # A model takes rows of the other kind.
    turned = cli("evaluate", model, dense, "--rows", "500:600", *THREADS, "--json").result
    assert turned["rmse"] == pytest.approx(scores["rmse"], rel=1e-9)


def test_components_of_sparse_rows(cli: Run, source: Path, tmp_path: Path) -> None:
    store, model, out = tmp_path / "rows", tmp_path / "model", tmp_path / "out"
    assert cli("ingest", source, store, "--quiet").status == 0
    assert cli("fit", store, model, "--estimator", "kernel-pca", "--basis", "20", *THREADS).status == 0
    assert cli("transform", model, store, out, *THREADS).status == 0
    assert np.isfinite(np.asarray(zarr.open_group(out, mode="r")["scores"])).all()


def test_a_factor_and_its_page(cli: Run, source: Path, tmp_path: Path) -> None:
    store, factor = tmp_path / "rows", tmp_path / "factor"
    assert cli("ingest", source, store, "--quiet").status == 0
    made = cli("factor", store, factor, "--basis", "30", *THREADS, "--json").result
    assert made["peak_memory_bytes"] < made["planned_memory_bytes"]
    assert np.asarray(zarr.open_group(factor / "rows", mode="r")["G"]).shape == (600, 30)
    assert cli("report", factor, tmp_path / "page.html", "--data", store).status == 0


def test_appended_rows_are_followed(cli: Run, source: Path, tmp_path: Path) -> None:
    store, model, part = tmp_path / "rows", tmp_path / "model", tmp_path / "part.svm"
    lines = source.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[:400]))
    assert cli("ingest", part, store, "--columns", "3000", "--sparse", "--quiet").status == 0
    assert cli("fit", store, model, "--basis", "10", *THREADS).status == 0
    for start, stop in ((400, 450), (450, 600)):
        part.write_text("".join(lines[start:stop]))
        assert cli("ingest", part, store, "--append", "--quiet").status == 0
        assert cli("follow", store, model, "--once", *THREADS).status == 0
        assert cli("info", model, "--json").result["rows_seen"] == stop
    info = cli("info", store, "--json").result
    assert (info["rows"], info["features"]) == (600, 3000)


def test_rows_of_a_longer_store_are_folded_in_once(cli: Run, source: Path, tmp_path: Path) -> None:
    store, model, part = tmp_path / "rows", tmp_path / "model", tmp_path / "part.svm"
    lines = source.read_text().splitlines(keepends=True)

    def ingested(rows: int) -> None:
        part.write_text("".join(lines[:rows]))
        assert cli("ingest", part, store, "--columns", "3000", "--overwrite", "--quiet").status == 0

    ingested(300)
    assert cli("fit", store, model, "--basis", "10", *THREADS).status == 0
    for rows, command in ((300, "update"), (450, "update"), (450, "update"), (600, "follow"), (600, "follow")):
        ingested(rows)
        if command == "update":
            assert cli("update", model, store, *THREADS).status == 0
        else:
            assert cli("follow", store, model, "--once", *THREADS).status == 0
        assert cli("info", model, "--json").result["rows_seen"] == rows


def test_a_fit_that_is_killed_goes_on(cli: Run, source: Path, tmp_path: Path) -> None:
    store = tmp_path / "rows"
    assert cli("ingest", source, store, "--quiet").status == 0
    wanted = cli("fit", store, tmp_path / "one", "--basis", "20", *THREADS, "--json").result
    found = cli("fit", store, tmp_path / "two", "--basis", "20", "--resume", *THREADS, "--json").result
    assert found["digest"] == wanted["digest"]


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "{store}", "{out}", "--estimator", "kernel-cca", "--components", "1", "--scale", "robust"),
        ("fit", "{store}", "{out}", "--estimator", "committee", "--partition", "cells"),
        ("fit", "{store}", "{out}", "--kernel", "hamming"),
        ("fit", "{store}", "{out}", "--scale", "rank"),
        ("fit", "{store}", "{out}", "--metric", "learned"),
        ("compress", "{store}", "{out}", "--method", "precluster"),
        ("compare", "{store}", "--estimators", "ridge,committee", "--set", "committee.partition=cells"),
    ],
    ids=" ".join,
)
def test_what_needs_dense_rows_says_so(cli: Run, source: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    store, out = tmp_path / "rows", tmp_path / "out"
    assert cli("ingest", source, store, "--quiet").status == 0
    words = [word.format(store=store, out=out) for word in command]
    assert "sparse" in cli(*words).error
    assert not out.exists()


def test_options_of_libsvm_are_of_libsvm(cli: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    assert "--sparse is for libsvm text" in cli("ingest", tmp_path / "rows.csv", tmp_path / "store", "--sparse").error
    assert "--columns is for libsvm text" in cli("ingest", tmp_path / "rows.csv", tmp_path / "s", "--columns", 3).error
    error = cli("ingest", source, tmp_path / "narrow", "--columns", "10").error
    assert "rows.svm:1:" in error
    assert "(--columns)" in error
    assert cli("ingest", source, tmp_path / "rows", "--columns", "4000", "--quiet").status == 0
    assert (
        "--dense means nothing with --append" in cli("ingest", source, tmp_path / "rows", "--append", "--dense").error
    )


MEASURED = """
import json, sys
from streamkernel.cli import main
from streamkernel.engine.peak_memory import peak_resident_bytes  # not ru_maxrss, which begins with the parent's size
source, store, model, basis = sys.argv[1:]
peaks = []
run = ["--scheduler", "threads"]
for words in (
    ["ingest", source, store],
    ["fit", store, model, "--basis", basis, "--alpha", "1", *run],
    ["evaluate", model, store, *run],
    ["predict", model, store, model + ".out", *run],
    ["compare", store, "--estimators", "ridge", "--folds", "2", "--set", "basis=" + basis, "--set", "alpha=1", *run],
):
    assert main([*words, "--quiet"]) == 0, words
    peaks.append(peak_resident_bytes())
print(json.dumps(peaks))
"""


def peaks_of(tmp_path: Path, rows: int, columns: int, basis: int) -> list[int]:
    """Peak bytes of one process after ingest, fit, evaluate, predict and compare."""
    source = write_svm(tmp_path / "rows.svm", rows, columns, 50)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", MEASURED, source, tmp_path / "rows", tmp_path / "model", str(basis)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(peak) for peak in done.stdout.splitlines()[-1].strip("[]").split(",")]


def test_memory_is_that_of_the_entries(tmp_path: Path) -> None:
    """Dense rows would be 1.6 GB as float64, a basis of them 24 MB a copy."""
    peaks = peaks_of(tmp_path, 2000, 100_000, 30)
    assert max(peaks) < 600 << 20, peaks


@pytest.mark.slow
def test_a_hundred_thousand_columns_in_two_gigabytes(tmp_path: Path) -> None:
    """The promise of docs/guide.md: 20,000 x 100,000 with 50 entries a row, 500 functions, in under 2 GB."""
    peaks = peaks_of(tmp_path, 20_000, 100_000, 500)
    assert max(peaks) < 2 * 10**9, peaks
