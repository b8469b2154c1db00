"""``--metric`` of fit, plan, factor and submit: words, matrices in files, what is printed, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import Cluster

from streamkernel import KernelRidge, open_table
from streamkernel.models import RidgeModel

ROWS = ("--basis", 40, "--rows", "0:2000")
THREADS = ("--scheduler", "threads", "--quiet")
T = np.diag([1.0, 2.0, 0.5, 1.0, 0.0, 0.25])[:, :4]


def _written(folder: Path, name: str, matrix: np.ndarray = T) -> Path:
    """The matrix in a file, in the form that the name says."""
    path = folder / name
    if path.suffix == ".npy":
        np.save(path, matrix)
    else:
        np.savetxt(path, matrix, delimiter="," if path.suffix == ".csv" else " ")
    return path


def _same(one: RidgeModel, other: RidgeModel) -> None:
    """Equal but for the rows of the picture: the command has those of the store that the fit left out."""
    for name in ("metric", "components", "points", "dual_coef"):
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)


def test_a_metric_is_learned_and_told(cli: Callable, store: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    result = cli("fit", store, model, *ROWS, "--metric", "learned", *THREADS, "--json").result
    fitted = KernelRidge(40, metric="learned").fit(open_table(store).slice(0, 2000))
    _same(RidgeModel.load(model), fitted.model_)
    choice = fitted.model_.record.metric_choice
    assert choice is not None
    assert result["metric"] == {
        "form": choice.chosen.form,
        "columns": choice.chosen.columns,
        "held_out_error": choice.chosen.error,
        "plain_error": choice.plain_error,
    }
    assert choice.chosen.error < choice.plain_error
    assert cli("info", model, "--json").result["metric"] == result["metric"]
    line = next(line for line in cli("info", model).out.splitlines() if line.startswith("metric"))
    assert (
        f"{choice.chosen.form}, {choice.chosen.columns} columns: {choice.chosen.error:.6g} on held-out rows, " in line
    )
    assert f"{choice.plain_error:.6g} without it" in line


def test_a_rank_is_the_number_of_columns(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--metric", "diagonal", "--metric-rank", 5)
    result = cli("fit", store, tmp_path / "m", *ROWS, *options, *THREADS, "--json").result
    assert result["metric"]["columns"] == 5
    assert result["metric"]["form"].startswith("diagonal")
    metric = RidgeModel.load(tmp_path / "m").metric
    assert metric is not None
    assert ((metric != 0.0).sum(axis=0) == 1).all()


@pytest.fixture(scope="module")
def of_given(store: Path) -> RidgeModel:
    """The model of Python for `T`."""
    return KernelRidge(40, metric=T, kernel="gaussian").fit(open_table(store).slice(0, 2000)).model_


@pytest.mark.parametrize("name", ["metric.npy", "metric.csv", "metric.txt"])
def test_a_metric_in_a_file(cli: Callable, store: Path, of_given: RidgeModel, tmp_path: Path, name: str) -> None:
    given = ("--metric", _written(tmp_path, name), "--kernel", "gaussian")
    result = cli("fit", store, tmp_path / "m", *ROWS, *given, *THREADS, "--json").result
    assert result["metric"] == {"form": "given", "columns": 4, "held_out_error": None, "plain_error": None}
    _same(RidgeModel.load(tmp_path / "m"), of_given)
    assert "given, 4 columns" in cli("info", tmp_path / "m").out


def test_a_metric_that_is_no_better_is_not_taken(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--kernel", "gaussian", "--metric", "diagonal", "--metric-rank", 1)  # and five columns matter
    result = cli("fit", store, tmp_path / "m", *ROWS, *options, *THREADS, "--json").result
    assert result["metric"]["form"] == "none"
    assert result["metric"]["held_out_error"] == result["metric"]["plain_error"] > 0.0
    assert RidgeModel.load(tmp_path / "m").metric is None
    assert "none was better than the plain kernel" in cli("info", tmp_path / "m").out


def test_no_metric_is_null(cli: Callable, store: Path, tmp_path: Path) -> None:
    result = cli("fit", store, tmp_path / "m", *ROWS, "--metric", "none", *THREADS, "--json").result
    assert result["metric"] is None


def test_a_factor_in_a_given_metric(cli: Callable, store: Path, tmp_path: Path) -> None:
    file = _written(tmp_path, "metric.npy")
    options = ("--rows", "0:500", "--basis", 20, *THREADS)
    result = cli("factor", store, tmp_path / "f", *options, "--metric", file, "--json").result
    assert result["metric"]["form"] == "given"
    assert cli("info", tmp_path / "f", "--json").result["metric"] == result["metric"]


def test_the_plan_counts_the_search(cli: Callable, store: Path) -> None:
    plans = [
        cli("plan", store, *ROWS, "--metric", metric, "--kernel", "gaussian", "--json").result
        for metric in ("none", "learned")
    ]
    assert plans[1]["planned_memory_bytes"] > plans[0]["planned_memory_bytes"]
    assert "regressions for the metric" in cli("plan", store, "--metric", "learned").out


@pytest.mark.parametrize(
    ("make", "status", "said"),
    [
        (lambda folder: folder / "none.npy", 2, "is neither none, learned, diagonal nor a file"),
        (lambda folder: "learnt", 2, "'learnt' is neither none, learned, diagonal nor a file"),
        (lambda folder: _written(folder, "a.npy", np.ones((4, 2))), 1, "--metric has 4 rows and the table 6 features"),
        (lambda folder: _written(folder, "a.npy", np.full((6, 2), np.nan)), 1, "finite numbers"),
        (lambda folder: _written(folder, "a.npy", np.zeros((6, 2))), 1, "--metric is 0 in all its 6 x 2 numbers"),
        (lambda folder: _written(folder, "a.npy", np.ones((6, 2), dtype=complex)), 2, "no matrix of numbers"),
        (lambda folder: _written(folder, "a.npy", np.ones((2, 2, 2))), 1, "shape (2, 2, 2)"),
    ],
    ids=["no file", "misspelt", "other features", "not finite", "zeros", "complex", "three axes"],
)
def test_what_is_refused(
    cli: Callable, store: Path, tmp_path: Path, make: Callable[[Path], Any], status: int, said: str
) -> None:
    ran = cli("fit", store, tmp_path / "m", *ROWS, "--metric", make(tmp_path), *THREADS)
    assert ran.status == status, ran.err
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert not (tmp_path / "m").exists()


def test_text_that_is_no_matrix(cli: Callable, store: Path, tmp_path: Path) -> None:
    for text in ("", "1 2\n3\n", "a b\nc d\n", "\x93NUMPY"):
        (tmp_path / "t.txt").write_text(text)
        ran = cli("fit", store, tmp_path / "m", *ROWS, "--metric", tmp_path / "t.txt", *THREADS)
        assert ran.status == 2, (text, ran.err)
        assert "no matrix of numbers" in " ".join(ran.err.split()), text


@pytest.mark.parametrize("metric", [pytest.param("learned", marks=pytest.mark.slow), "file"])
def test_a_job_gives_the_model_of_fit(
    cli: Callable, dask_cluster: Cluster, store: Path, tmp_path: Path, metric: str
) -> None:
    """The workers of a cluster, and the specification as JSON, change no bit."""
    of_file = ("--metric", _written(tmp_path, "metric.npy"), "--kernel", "gaussian")
    given = of_file if metric == "file" else ("--metric", metric)
    submitted = cli("submit", store, tmp_path / "m", *ROWS, *given, "--scheduler", dask_cluster.address)
    assert submitted.status == 0, submitted.err
    job, place = submitted.out.strip(), ("--jobs", tmp_path / ".jobs", "--scheduler", dask_cluster.address)
    told = cli("status", job, *place, "--follow", "--json").result
    assert told["status"] == "done", told
    alone = cli("fit", store, tmp_path / "alone", *ROWS, *given, *THREADS, "--json").result
    assert told["result"]["digest"] == alone["digest"]
    assert told["result"]["metric"] == alone["metric"]
    assert cli("status", tmp_path / "m").status == 0
