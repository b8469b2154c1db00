"""fit --estimator committee --queries STORE: rows that predictions are asked for join the query points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from streamkernel import BayesianCommitteeMachine, ingest, open_table
from streamkernel.models import GaussianModel

M, Q, N = 600, 12, 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (M, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(M)
ASKED = RNG.uniform(-2, 2, (Q, 2))
GIVEN = {"lengthscale": 0.7, "signal_variance": 1.5, "noise_variance": 0.02, "block_size": 100}
OPTIONS = [word for name, value in GIVEN.items() for word in (f"--{name.replace('_', '-')}", value)]
THREADS = ("--scheduler", "threads", "--quiet")
FIT = ("--estimator", "committee", "--basis", N, *OPTIONS)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queries") / "rows"
    ingest(open_table(X, Y), path, dtype="float64")
    return path


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With targets, which are not looked at."""
    path = tmp_path_factory.mktemp("queries") / "asked"
    ingest(open_table(ASKED, np.full(Q, 1e6)), path, dtype="float64")
    return path


def foreign(path: Path, values: np.ndarray) -> Path:
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=values, chunks=values.shape)
    return path


def test_they_join_the_query_points(cli: Callable, rows: Path, asked: Path, tmp_path: Path) -> None:
    told = cli("fit", rows, tmp_path / "m", *FIT, "--queries", asked, *THREADS, "--json").result
    assert told["basis_size"] == N + Q
    expected = BayesianCommitteeMachine(N, queries=ASKED, **GIVEN).fit(str(rows))
    assert told["digest"] == expected.model_.digest
    np.testing.assert_allclose(GaussianModel.load(tmp_path / "m").points[N:], ASKED, rtol=0, atol=1e-12)
    assert cli("predict", tmp_path / "m", asked, tmp_path / "p", "--std", *THREADS).status == 0
    for name, values in zip(("prediction", "std"), expected.predict(ASKED, return_std=True), strict=True):
        np.testing.assert_allclose(zarr.open_group(tmp_path / "p", mode="r")[name][:], values, rtol=1e-9)


def test_the_plan_counts_them(cli: Callable, rows: Path, asked: Path) -> None:
    plain, more = (
        cli("plan", rows, *FIT, *queries, *THREADS, "--json").result for queries in ((), ("--queries", asked))
    )
    assert more["kernel_entries"] > plain["kernel_entries"]
    assert more["disk_bytes"] > plain["disk_bytes"]


def bad(case: str, folder: Path) -> tuple[Path, str]:
    """A store that cannot be asked for, and what is said of it."""
    path, values = folder / "bad", ASKED.copy()
    if case == "missing":
        return path, "there is no store at"
    if case == "width":
        return foreign(path, np.ones((5, 3))), "queries have 3 features, the table 2; give points of its kind"
    if case == "many":
        return foreign(path, np.ones((5001, 2))), "has 5001 rows; query points cost as basis functions do"
    if case == "text":
        path.write_text("a,b\n1,2\n")
        return path, "is a file, not a Zarr store"
    values[7, 1] = {"nan": np.nan, "infinity": np.inf}[case]
    return foreign(path, values), "in row 7, column 'x1'"


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
@pytest.mark.parametrize("case", ["missing", "width", "many", "text", "nan", "infinity"])
def test_bad_ones_are_refused_before_any_work(
    cli: Callable, rows: Path, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No executor is started, and nothing written; `plan` says the same."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr("streamkernel.cli.execution.ExecutionTarget.executor", refuse)
    path, said = bad(case, tmp_path)
    for command in (("fit", rows, tmp_path / "m"), ("plan", rows)):
        assert said in cli(*command, *FIT, "--queries", path).error
    assert {entry.name for entry in tmp_path.iterdir()} <= {"bad"}


@pytest.mark.parametrize("estimator", ["ridge", "ridge-classifier", "gp", "gp-classifier", "poisson"])
def test_other_estimators_have_none(cli: Callable, rows: Path, tmp_path: Path, estimator: str) -> None:
    """Said without a look at them: they need not be there."""
    options = ("--estimator", estimator, "--basis", 10, "--queries", tmp_path / "missing", *THREADS)
    error = cli("fit", rows, tmp_path / "m", *options).error
    assert error == f"error: --queries means nothing to the estimator {estimator}; it is an option of committee"
    assert list(tmp_path.iterdir()) == []
