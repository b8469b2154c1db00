"""The same columns in another order, on the command line: as in the right order, to the last bit, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from report.rendered import without_figures

pytestmark = pytest.mark.usefixtures("bare_pages")

M = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (M, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * X[:, 1] ** 2 + 0.05 * RNG.standard_normal(M)
THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture
def stores(cli: Callable, tmp_path: Path) -> dict[str, Path]:
    """Of CSV files whose columns are in one order or the other; `case` has other names."""
    found = {}
    for name, header, columns in (
        ("right", "age,income,y", [X[:, 0], X[:, 1], Y]),
        ("other", "income,y,age", [X[:, 1], Y, X[:, 0]]),
        ("case", "Age,income,y", [X[:, 0], X[:, 1], Y]),
    ):
        source = tmp_path / f"{name}.csv"
        np.savetxt(source, np.column_stack(columns), delimiter=",", header=header, comments="", fmt="%.17g")
        assert cli("ingest", source, tmp_path / name, "--target", "y", "--chunk-rows", 100, "--quiet").status == 0
        found[name] = tmp_path / name
    return found


def written(path: Path) -> dict[str, Any]:
    return {name: array[:] for name, array in zarr.open_group(path, mode="r").arrays()}


@pytest.mark.parametrize("kind", [("ridge",), ("gp", "--tune", "none", "--noise-variance", 0.01)], ids=["ridge", "gp"])
def test_scores_predictions_and_updates(
    cli: Callable, stores: dict[str, Path], tmp_path: Path, kind: tuple[object, ...]
) -> None:
    fit = ("fit", stores["right"], "--estimator", *kind, "--basis", 20, "--rows", ":300", *THREADS)
    model = tmp_path / "model"
    assert cli(*fit[:2], model, *fit[2:]).status == 0
    expected = cli("evaluate", model, stores["right"], "--rows", "300:", *THREADS, "--json").result
    told = cli("evaluate", model, stores["other"], "--rows", "300:", *THREADS, "--json").result
    assert {name: told[name] for name in ("rmse", "r2")} == {name: expected[name] for name in ("rmse", "r2")}
    for name in ("right", "other"):
        assert cli("predict", model, stores[name], tmp_path / f"of-{name}", *THREADS).status == 0
        with without_figures():
            drawn = cli("report", model, tmp_path / f"{name}.html", "--data", stores[name], "--rows", "300:")
        assert drawn.status == 0
    for name, values in written(tmp_path / "of-right").items():
        np.testing.assert_array_equal(written(tmp_path / "of-other")[name], values)
    words = "missing 'age'; extra 'Age'"
    for command in (
        ("evaluate", model, stores["case"], *THREADS),
        ("predict", model, stores["case"], tmp_path / "bad", *THREADS),
        ("update", model, stores["case"], *THREADS),
        ("follow", stores["case"], model, "--once", *THREADS),
        ("report", model, tmp_path / "bad.html", "--data", stores["case"]),
    ):
        assert words in cli(*command).error, command
    assert not (tmp_path / "bad").exists()
    assert not (tmp_path / "bad.html").exists()
    followed = cli("follow", stores["other"], model, "--once", *THREADS, "--json")
    assert followed.status == 0, followed.err
    told = cli("update", model, stores["right"], *THREADS, "--json").result
    assert (told["rows_folded"], told["rows"]) == (0, M), "they were all seen, in the other order"


def test_held_out_rows_and_query_points(cli: Callable, stores: dict[str, Path], tmp_path: Path) -> None:
    given = ("--lengthscale", 0.7, "--signal-variance", 1.5, "--noise-variance", 0.02, "--block-size", 100)
    for option, kind in (("--validation", ("kmp", "--basis", 20)), ("--queries", ("committee", "--basis", 50, *given))):
        digests, coefficients = [], []
        for name in ("right", "other"):
            fit = ("fit", stores["right"], tmp_path / f"{kind[0]}-{name}", "--estimator", *kind, option, stores[name])
            digests.append(cli(*fit, "--rows", ":300", *THREADS, "--json").result["digest"])
            coefficients.append(written(fit[2])["dual_coef"])
        np.testing.assert_array_equal(*coefficients)
        # Held-out rows are known by their table, query points by their values.
        assert kind[0] == "kmp" or digests[0] == digests[1]
        bad = ("fit", stores["right"], tmp_path / "bad", "--estimator", *kind, option, stores["case"], *THREADS)
        assert "missing 'age'; extra 'Age'" in cli(*bad).error


def test_factors(cli: Callable, stores: dict[str, Path], tmp_path: Path) -> None:
    assert cli("factor", stores["right"], tmp_path / "factor", "--basis", 10, *THREADS).status == 0
    for name in ("right", "other"):
        told = cli("report", tmp_path / "factor", tmp_path / f"{name}.html", "--data", stores[name])
        assert told.status == 0, told.err
    bad = ("report", tmp_path / "factor", tmp_path / "bad.html", "--data", stores["case"])
    assert "missing 'age'; extra 'Age'" in cli(*bad).error
