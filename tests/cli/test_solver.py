"""A ridge model by conjugate gradients on the command line: fitted, told of, drawn, and not updated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamkernel import KernelRidge, open_table
from streamkernel.cli import main
from streamkernel.models import RidgeModel

pytestmark = pytest.mark.usefixtures("bare_pages")

THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture(scope="module")
def solved(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cg") / "m"
    options = ("--basis", "60", "--rows", "0:5000", "--solver", "cg", "--alpha", "0.5", "--lengthscale", "2")
    assert main(["fit", str(store), str(path), *options, *THREADS]) == 0
    return path


def test_what_is_not_known_is_null(cli: Callable, solved: Path, store: Path, tmp_path: Path) -> None:
    options = ("--basis", 60, "--rows", "0:5000", "--alpha", 0.5, "--lengthscale", 2, "--json", *THREADS)
    told = cli("fit", store, tmp_path / "m", "--solver", "cg", *options).result
    assert told["digest"] == RidgeModel.load(solved).digest
    assert (told["alpha"], told["solver"], told["gcv"], told["effective_df"]) == (0.5, "cg", None, None)
    assert 5 < told["iterations"] < 100
    direct = cli("fit", store, tmp_path / "d", *options).result
    assert direct["solver"] == "direct"
    assert direct["gcv"] > 0
    assert "iterations" not in direct
    for name in ("trace", "residual_trace", "relative_residual_trace"):
        assert told[name] == pytest.approx(direct[name], rel=1e-9)
    rows = open_table(store).slice(5000, 6000)
    both = [KernelRidge.load(path).predict(rows).compute() for path in (solved, tmp_path / "d")]
    np.testing.assert_allclose(*both, rtol=1e-6)


def test_info_and_report(cli: Callable, solved: Path, tmp_path: Path) -> None:
    told = cli("info", solved, "--json").result
    assert (told["solver"], told["gcv"], told["effective_df"]) == ("cg", None, None)
    assert "cg" in cli("info", solved).out
    assert cli("report", solved, tmp_path / "r.html", "--png", tmp_path / "r.png").status == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a GCV error needs the sums of the direct solve" in page
    assert "not known to conjugate gradients" in page
    assert "conjugate gradients, " in page
    assert 'id="gcv"' not in page


def test_it_is_not_updated(cli: Callable, solved: Path, store: Path) -> None:
    before = (solved / "COMPLETE").read_bytes()
    assert "keeps no sums" in cli("update", solved, store, *THREADS).error
    assert (solved / "COMPLETE").read_bytes() == before
    assert [path.name for path in solved.parent.iterdir()] == ["m"]


def test_an_alpha_has_to_be_given(cli: Callable, store: Path, tmp_path: Path) -> None:
    for command in (("fit", store, tmp_path / "m"), ("plan", store)):
        assert "give --alpha 'cv' or a number > 0" in cli(*command, "--solver", "cg", "--alpha", "gcv", *THREADS).error
    assert not list(tmp_path.iterdir())
    said = cli("fit", store, tmp_path / "m", "--estimator", "gp", "--solver", "cg", *THREADS).error
    assert "--solver means nothing to the estimator gp; it is an option of ridge, ridge-classifier" in said


def test_the_plan_shows_the_iterations(cli: Callable, store: Path) -> None:
    options = ("--basis", 60, "--alpha", 0.5, "--json", *THREADS)
    steps = {step["name"]: step for step in cli("plan", store, "--solver", "cg", *options).result["steps"]}
    assert steps["product with G^T G"]["times"] > 10
    assert steps["rows for the preconditioner"]["where"] == "driver", "they are fetched with those of the choice"
    assert "final sweep" not in steps
    assert "final sweep" in {step["name"] for step in cli("plan", store, *options).result["steps"]}
