"""synthetic:// URLs in the place of STORE: every command that reads a table takes them, the others refuse them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import KernelRidge, open_table
from streamkernel.models import RidgeModel

pytestmark = pytest.mark.usefixtures("bare_pages")

ROWS = "synthetic://friedman?rows=3000&features=5&seed=1"
THREADS = ("--scheduler", "threads", "--quiet")
FIT = ("--basis", 30, "--metric", "none", "--kernel", "gaussian", *THREADS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("synthetic") / "model.zarr"
    KernelRidge(30, metric="none", kernel="gaussian").fit(open_table(ROWS, rows=(0, 2000))).save(path)
    return path


def test_a_fit_is_that_of_the_same_rows_in_a_store(cli: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    found = cli("fit", ROWS, tmp_path / "m.zarr", "--rows", "0:2000", "--json", *FIT).result
    assert found["rows"] == 2000
    # The report's picture has other rows there, as the command knows those that were left out.
    kept = RidgeModel.load(model).arrays["dual_coef"], RidgeModel.load(tmp_path / "m.zarr").arrays["dual_coef"]
    assert kept[0].tobytes() == kept[1].tobytes()
    stored = tmp_path / "rows.zarr"
    assert cli("ingest", ROWS, stored, "--quiet").status == 0
    for store, name in ((ROWS, "a.zarr"), (stored, "b.zarr")):
        assert cli("fit", store, tmp_path / name, *FIT).status == 0
    a, b = (RidgeModel.load(tmp_path / name).arrays for name in ("a.zarr", "b.zarr"))
    # The statistics of the store are sums in another order: the scaled rows differ in the last digit.
    np.testing.assert_allclose(a["components"], b["components"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a["check_predicted"], b["check_predicted"], rtol=1e-3)


def test_every_command_that_reads_takes_it(cli: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    assert cli("info", ROWS, "--json").result["rows"] == 3000
    assert "friedman 1" in cli("info", ROWS).out
    assert cli("plan", ROWS, "--rows", "0:2500", "--json", *FIT).result["rows"] == 2500
    rest = ("--rows", "2000:3000", *THREADS)
    scores = cli("evaluate", model, ROWS, "--json", *rest).result
    assert scores["rows"] == 1000
    assert scores["r2"] > 0.7
    assert cli("predict", model, ROWS, tmp_path / "predicted.zarr", *rest).status == 0
    assert open_table(np.zeros((1000, 1)), tmp_path / "predicted.zarr" / "prediction").n_rows == 1000
    assert cli("compress", ROWS, tmp_path / "few.zarr", "--size", 50, *THREADS).status == 0
    assert open_table(tmp_path / "few.zarr").n_rows <= 50
    assert cli("factor", ROWS, tmp_path / "factor.zarr", "--basis", 10, *THREADS).status == 0
    assert cli("report", model, tmp_path / "report.html", "--data", ROWS, "--rows", "2000:3000").status == 0
    assert "rows 2000:3000 of synthetic://friedman" in (tmp_path / "report.html").read_text()


def test_an_update_folds_in_the_rows_of_a_larger_one(cli: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    grown = tmp_path / "grown.zarr"
    RidgeModel.load(model).save(grown)
    larger = ROWS.replace("rows=3000", "rows=4000")
    assert cli("update", grown, larger, "--json", *THREADS).result["rows_folded"] == 2000
    assert cli("update", grown, larger, "--json", *THREADS).result["rows_folded"] == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("follow", ROWS, "{model}"), "no rows are ever appended to synthetic://friedman"),
        (("info", "synthetic://fridman?rows=3"), "there is no generator 'fridman'; choose one of friedman, checkers"),
        (("plan", "synthetic://friedman?row=3"), "there is no option 'row'"),
        (("fit", "synthetic://checkers?rows=3000", "{out}"), "use the estimator ridge-classifier"),
        (("fit", ROWS, "synthetic://friedman?rows=9"), "is a table that is made when it is read, not a place"),
        (("predict", ROWS, ROWS, "{out}"), "synthetic://friedman"),
        (("predict", "{model}", ROWS, ROWS), "is a table that is made when it is read, not a place"),
        (("ingest", ROWS, ROWS), "is a table that is made when it is read, not a place"),
        (("compress", ROWS, ROWS), "is a table that is made when it is read, not a place"),
        (("evaluate", "{model}", ROWS, "--rows", "2000:4000"), "2000:4000"),
        (("update", "{model}", "synthetic://friedman?rows=10&features=6"), "features"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_in_a_line(
    cli: Callable[..., Any], model: Path, tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    arguments = [part.format(model=model, out=tmp_path / "out.zarr") for part in command]
    assert said in cli(*arguments).error
    assert list(tmp_path.iterdir()) == []
