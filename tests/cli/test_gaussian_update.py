"""update --variances: what becomes of the variances of a process when rows are folded in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor, ingest, open_table
from streamkernel.cli import main
from streamkernel.models import GaussianModel

M, FITTED = 900, 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (M, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + np.where(np.arange(M) < FITTED, 0.05, 0.5) * RNG.standard_normal(M)
GIVEN = {"signal_variance": 2.0, "noise_variance": 0.04}
THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose last rows are noisier, and models of its first: variances given, and found."""
    folder = tmp_path_factory.mktemp("variances")
    ingest(open_table(X, Y), folder / "store", dtype="float64", chunk_rows=150)
    given = [word for name, value in GIVEN.items() for word in (f"--{name.replace('_', '-')}", value)]
    options = ["--estimator", "gp", "--basis", 40, "--lengthscale", 1.5, "--approximation", "dtc"]
    for name, more in (("given", given), ("found", [])):
        arguments = ["fit", folder / "store", folder / name, *options, *more, "--rows", f"0:{FITTED}", *THREADS]
        assert main([str(argument) for argument in arguments]) == 0
    return folder


def update(cli: Callable, kept: Path, name: str, folder: Path, *options: Any) -> dict[str, Any]:
    shutil.copytree(kept / name, folder / "m")
    result: dict[str, Any] = cli("update", folder / "m", kept / "store", *options, *THREADS, "--json").result
    assert result["rows_folded"] == M - FITTED
    assert result["digest"] == GaussianModel.load(folder / "m").digest
    return result


def test_those_that_were_found_are_found_again_or_kept(cli: Callable, kept: Path, tmp_path: Path) -> None:
    before = GaussianModel.load(kept / "found").solution_fields()
    for choice in ("keep", "evidence", None):
        folder = tmp_path / str(choice)
        folder.mkdir()
        told = update(cli, kept, "found", folder, *(() if choice is None else ("--variances", choice)))
        if choice == "keep":
            assert told["noise_variance"] == before["noise_variance"]
            assert told["signal_variance"] == before["signal_variance"]
        else:
            assert told["noise_variance"][0] > 10 * before["noise_variance"][0]


def test_those_that_were_given_stay_unless_evidence_is_asked_for(cli: Callable, kept: Path, tmp_path: Path) -> None:
    for choice, stay in ((None, True), ("keep", True), ("evidence", False)):
        folder = tmp_path / str(choice)
        folder.mkdir()
        told = update(cli, kept, "given", folder, *(() if choice is None else ("--variances", choice)))
        assert (told["signal_variance"] == [2.0]) == stay
        assert (told["noise_variance"] == [0.04]) == stay
        if not stay:
            # The mean square of the noise of all rows.
            assert told["noise_variance"][0] == pytest.approx((0.05**2 + 2 * 0.5**2) / 3, rel=0.15)
            again = GaussianProcessRegressor.load(kept / "given").update(X, Y, variances="evidence")
            assert again.noise_variance_[0] == pytest.approx(told["noise_variance"][0], rel=1e-9)


def test_bad_choices(cli: Callable, kept: Path, model: Path, store: Path) -> None:
    assert cli("update", kept / "found", kept / "store", "--variances", "kept", *THREADS).status == 2
    before = GaussianModel.load(kept / "found").digest
    assert (
        "has no 'variances' to choose; it has alpha"
        in cli("update", model, store, "--variances", "keep", *THREADS).error
    )
    assert (
        "has no 'alpha' to choose; it has variances"
        in cli("update", kept / "found", kept / "store", "--alpha", "keep", *THREADS).error
    )
    assert GaussianModel.load(kept / "found").digest == before
    assert [path.name for path in kept.iterdir() if path.name.startswith(".")] == []
