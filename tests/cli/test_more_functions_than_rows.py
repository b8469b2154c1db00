"""More basis functions than rows on the command line: all rows, and one line that says so in its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamkernel import ingest, open_table

THREADS = ("--scheduler", "threads")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + RNG.standard_normal(60)])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.zarr"
    ingest(open_table(X, Y), path, chunk_rows=20, dtype="float64")
    return path


@pytest.mark.parametrize("kind", ["ridge", "kernel-pca", "kernel-cca"])
def test_fit_and_plan_say_it_once(cli: Callable, store: Path, tmp_path: Path, kind: str) -> None:
    chosen = ("--estimator", kind, "--basis", "100", "--lengthscale", "0.7", *THREADS, "--json")
    for command in (("plan", store), ("fit", store, tmp_path / "m")):
        ran = cli(*command, *chosen)
        assert ran.result["basis_size"] <= 60
        assert ran.err.count("more than the") == 1
        assert "--basis is 100, more than the 60 rows; the fit goes on with 60" in ran.err
    told = cli("info", tmp_path / "m", "--json").result
    assert told["requested_basis"] == 60
    assert cli("plan", store, *chosen[:2], "--basis", "60", *chosen[4:]).err.count("more than the") == 0


def test_rows_count_and_not_the_table(cli: Callable, store: Path, tmp_path: Path) -> None:
    ran = cli("fit", store, tmp_path / "m", "--rows", "10:40", "--basis", "50", "--alpha", "1", *THREADS, "--json")
    assert ran.result["basis_size"] == 30
    assert "--basis is 50, more than the 30 rows; the fit goes on with 30" in ran.err


def test_factor(cli: Callable, store: Path, tmp_path: Path) -> None:
    ran = cli("factor", store, tmp_path / "F", "--basis", "100", *THREADS, "--json")
    assert ran.result["basis_size"] <= 60
    assert ran.err.count("--basis is 100, more than the 60 rows; the fit goes on with 60") == 1
