"""Every row of the registry through every command: plan, fit, info, predict, evaluate, report, update, follow; served.

`tests/jobs/test_every_kind.py` submits each of them as a job.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pytest
import zarr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from report.rendered import without_figures
from service.live import Live

from streamkernel import ingest, open_table
from streamkernel.cli import main
from streamkernel.kinds import PREDICTORS, Predictor
from streamkernel.service import Settings

THREADS = ("--scheduler", "threads", "--quiet")
GIVEN = {"lengthscale": 1.5, "signal-variance": 1.0, "noise-variance": 0.1, "tune": "none", "block-size": 40}
M, OLD = 160, 120

RNG = np.random.default_rng(3)
X = RNG.standard_normal((M, 3))
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The same rows: with labels, and with counts, which every regression takes."""
    folder = tmp_path_factory.mktemp("tables")
    source = folder / "labels.csv"
    lines = [",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), LABELS, strict=True)]
    source.write_text("\n".join(["a,b,c,class", *lines]))
    ingest(source, folder / "labels", target="class", chunk_rows=50, dtype="float64")
    ingest(open_table(X, COUNTS), folder / "counts", chunk_rows=50, dtype="float64")
    return {True: folder / "labels", False: folder / "counts"}


@pytest.fixture(scope="module", params=PREDICTORS.values(), ids=PREDICTORS)
def kind(request: pytest.FixtureRequest) -> Predictor:
    return request.param  # type: ignore[no-any-return]


def same(found: Any, expected: Any) -> None:
    """Equal labels, or equal numbers but for the blocks in which rows were multiplied."""
    found, expected = np.asarray(found).ravel(), np.asarray(expected).ravel()
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    else:
        assert found.tolist() == expected.tolist()


def options(kind: Predictor) -> list[object]:
    given = [(name, value) for name, value in GIVEN.items() if name.replace("-", "_") in kind.options]
    if "approximation" in kind.options:
        given = [each for each in given if each[0] != "block-size"]
    return ["--estimator", kind.name, "--basis", 12, *(part for name, value in given for part in (f"--{name}", value))]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, each of which has the name of its kind."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def once(kind: Predictor, tables: dict[bool, Path], models: Path) -> Path:
    """A model of the first rows."""
    path = models / kind.name
    command = ["fit", tables[kind.classify], path, *options(kind), "--rows", f"0:{OLD}", *THREADS]
    assert main([str(part) for part in command]) == 0
    return path


@pytest.fixture
def fitted(once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(once, tmp_path / "models" / "m"))


def test_a_plan(cli: Callable, kind: Predictor, tables: dict[bool, Path]) -> None:
    plan = cli("plan", tables[kind.classify], *options(kind), "--scheduler", "threads", "--json").result
    assert (plan["rows"], plan["basis_size"]) == (M, 12)
    assert plan["planned_memory_bytes"] > 0
    assert {step["where"] for step in plan["steps"]} >= {"sweep"}


def test_what_is_read_back_is_what_was_fitted(
    cli: Callable, kind: Predictor, fitted: Path, tables: dict[bool, Path], tmp_path: Path
) -> None:
    table = tables[kind.classify]
    info = cli("info", fitted, "--json").result
    assert (info["estimator"], info["rows"], info["classes"] is not None) == (kind.name, OLD, kind.classify)
    assert cli("predict", fitted, table, tmp_path / "rows", *THREADS).status == 0
    found = zarr.open_group(tmp_path / "rows", mode="r")
    estimator = kind.estimator.load(fitted)
    predicted = found["prediction"][:]
    same(np.asarray(info["classes"])[predicted] if kind.classify else predicted, estimator.predict(table))
    assert ("probability" in found) <= kind.probabilities
    assert ("decision" in found) == (not kind.model.SUPERVISED)
    assert cli("evaluate", fitted, table, *THREADS, "--json").result["rows"] == M
    deviations = cli("predict", fitted, table, tmp_path / "std", "--std", *THREADS)
    if kind.std:
        std = zarr.open_group(tmp_path / "std", mode="r")["std"]
        same(std[:], estimator.predict(table, return_std=True)[1])
    else:
        assert "--std" in deviations.error
    # The figures of the picture are made, and not painted: tests/report has pixels.
    with without_figures(), patch.object(FigureCanvasAgg, "print_png"):
        drawn = cli("report", fitted, tmp_path / "r.html", "--data", table, "--png", tmp_path / "r.png", "--quiet")
    assert drawn.status == 0
    assert (tmp_path / "r.png").exists()
    page = (tmp_path / "r.html").read_text()
    assert f"<h1>{kind.title[:1].upper()}{kind.title[1:]}</h1>" in page


@pytest.mark.parametrize("command", ["update", "follow"])
def test_new_rows(cli: Callable, kind: Predictor, fitted: Path, tables: dict[bool, Path], command: str) -> None:
    table, digest = tables[kind.classify], cli("info", fitted, "--json").result["digest"]
    if command == "update":
        ran = cli("update", fitted, table, *THREADS, "--json")
    else:
        ran = cli("follow", table, fitted, "--once", "--scheduler", "threads", "--json")
    if not kind.updates:
        assert f"is a {kind.name} model, which cannot be updated" in ran.error
        assert cli("info", fitted, "--json").result["digest"] == digest
        return
    assert ran.status == 0, ran.err
    info = cli("info", fitted, "--json").result
    assert (info["rows_seen"], info["updates"]) == (M, 1)
    assert info["digest"] != digest


@pytest.fixture(scope="module")
def service(models: Path) -> Iterator[Live]:
    """One for all kinds, which looks for their models when it is told to."""
    with Live(Settings(models, poll_seconds=3600.0)) as running:
        yield running


@pytest.fixture(scope="module")
def client(service: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=30) as client:
        yield client


def test_it_is_served(
    kind: Predictor, once: Path, service: Live, client: httpx.Client, tables: dict[bool, Path]
) -> None:
    service.service.scan_models()
    place = f"/v1/models/{once.name}"
    told = client.get(place).raise_for_status().json()
    assert (told["estimator"], told["title"], told["std"]) == (kind.name, kind.title, kind.std)
    assert told["probabilities"] <= kind.probabilities
    answer = client.post(f"{place}/predict", json={"rows": X[:3].tolist()}).raise_for_status().json()
    assert ("decision" in answer) == (not kind.model.SUPERVISED)
    if not kind.model.SUPERVISED:
        # Sides are whole numbers, as everywhere.
        assert all(type(each) is int for each in answer["prediction"])
    same(answer["prediction"], kind.estimator.load(once).predict(tables[kind.classify])[:3])
