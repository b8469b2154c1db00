"""The command line, run in this process: what it prints and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from report.rendered import without_figures

from streamkernel.cli import main


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one error line on stderr."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert self.status == 1, (self.status, self.out, self.err)
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def bare_pages() -> Iterator[None]:
    """Pages have nothing in the places of their figures, for tests that are about their text and their command.

    `test_commands.py` has whole pages, and tests/report each figure.
    """
    with without_figures():
        yield


@pytest.fixture(scope="session")
def friedman_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "friedman.csv"
    rows = data_sets.friedman(6000, 6, 0.5, 0)
    header = ",".join([*(f"x{j}" for j in range(6)), "target"])
    np.savetxt(path, np.column_stack([rows.X, rows.y]), delimiter=",", header=header, comments="")
    return path


@pytest.fixture(scope="session")
def store(friedman_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "table.zarr"
    arguments = ["ingest", friedman_csv, path, "--target", "target", "--shuffle", "--chunk-rows", 1024, "--quiet"]
    assert main([str(argument) for argument in arguments]) == 0
    return path


@pytest.fixture(scope="session")
def of_model() -> tuple[object, ...]:
    """Options of the fit of `model`. Its kernel is given: the search for one takes six times as long as the rest."""
    return ("--basis", 100, "--rows", "0:5000", "--kernel", "gaussian")


@pytest.fixture(scope="session")
def model(store: Path, of_model: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.zarr"
    arguments = ["fit", store, path, *of_model, "--scheduler", "threads", "--quiet"]
    assert main([str(argument) for argument in arguments]) == 0
    return path
