"""Weighted rows on a cluster of real processes: jobs, updates and followers find what threads of this process find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import Cluster

from streamkernel import KernelRidge, KernelRidgeClassifier, append_rows, connect, follow, ingest, open_table
from streamkernel.engine import Session
from streamkernel.jobs import JobsSession
from streamkernel.table import with_weights_of
from streamkernel.updating.update import new_rows, update_model

M = 1200
RNG = np.random.default_rng(8)
X, W = RNG.standard_normal((M, 2)), RNG.integers(0, 4, M).astype(float)
Y = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(M)
COLUMNS = np.column_stack([X[:, 0], W, X[:, 1], Y])
OPTIONS: dict[str, Any] = {"n_components": 25, "alpha": "cv", "lengthscale": "auto"}


@pytest.fixture
def session(dask_cluster: Cluster, tmp_path: Path) -> Iterator[JobsSession]:
    with connect(dask_cluster.address, jobs=tmp_path / "jobs") as session:
        yield session


def stored(path: Path, first: int, last: int, weight: str | None, *, append: bool = False) -> str:
    """Rows of a file with the columns a, n, b, y."""
    source = path.with_suffix(f".{first}.csv")
    np.savetxt(source, COLUMNS[first:last], delimiter=",", header="a,n,b,y", comments="")
    if append:
        append_rows(source, path, target="y", **({} if weight is None else {"weight": weight}))
    else:
        ingest(source, path, target="y", weight=weight, dtype="float64", chunk_rows=100)
    return str(path)


@pytest.mark.parametrize(
    ("stored_as", "weight"),
    [("n", None), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((None, "n"), ("n", "none")))],
)
def test_a_job_counts_the_weights(
    session: JobsSession, tmp_path: Path, stored_as: str | None, weight: str | None
) -> None:
    """Of the store, of a column, or none."""
    store = stored(tmp_path / "rows", 0, 1000, stored_as)
    job = session.submit(KernelRidge(**OPTIONS), store, tmp_path / "model", rows=(0, 700), weight=weight)
    local = KernelRidge(**OPTIONS).fit(with_weights_of(open_table(store), weight).slice(0, 700))
    made = job.result(60).model_
    for name in ("component_indices", "dual_coef", "intercept", "sum_H"):
        np.testing.assert_array_equal(made.arrays[name], local.model_.arrays[name])
    table, rows = open_table(store), new_rows(made, store)
    assert (rows.weights is None) == (weight == "none")
    assert (rows.n_features, table.n_features) == (2, 2 if stored_as else 3)


def test_class_weights_multiply_those_of_the_rows(session: JobsSession, tmp_path: Path) -> None:
    ingest(open_table(X, Y > 0.8, classify=True, weights=W), tmp_path / "classes", chunk_rows=100)
    classifier = KernelRidgeClassifier(20, class_weight="balanced")
    job = session.submit(classifier, tmp_path / "classes", tmp_path / "model")
    assert job.result(60).model_.digest == classifier.fit(tmp_path / "classes").model_.digest


@pytest.mark.parametrize(
    ("stored_as", "weight"),
    [("n", None), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((None, "n"), ("n", "none")))],
)
def test_updates_and_followers_on_workers(
    dask_cluster: Cluster, cli: Callable[..., Any], tmp_path: Path, stored_as: str | None, weight: str | None
) -> None:
    store = stored(tmp_path / "rows", 0, 500, stored_as)
    fitted = KernelRidge(**{**OPTIONS, "alpha": "gcv"}).fit(with_weights_of(open_table(store), weight))
    for name in ("updated", "followed", "threads"):
        fitted.save(tmp_path / name)
    stored(tmp_path / "rows", 500, 800, stored_as, append=True)
    address = ("--scheduler", dask_cluster.address)
    given = () if weight is None else ("--weight", weight)
    updated = cli("update", tmp_path / "updated", store, *given, *address, "--json")
    assert updated.status == 0, updated.err
    assert (updated.result["rows_folded"], updated.result["rows"]) == (300, 800)
    followed = cli("follow", store, tmp_path / "followed", "--once", *address)
    assert followed.status == 0, followed.err
    done = follow(store, tmp_path / "threads", once=True)
    assert (done.rows_folded, done.rows) == (300, 800)
    here = update_model(fitted.model_, new_rows(fitted.model_, store), Session()).model
    digests = {KernelRidge.load(tmp_path / name).model_.digest for name in ("updated", "followed", "threads")}
    assert digests == {here.digest}
    counted = np.ones(800) if weight == "none" else W[:800]
    assert here.record.totals.weight == counted.sum()


def test_the_command_line_submits_a_column_of_weights(
    dask_cluster: Cluster, cli: Callable[..., Any], tmp_path: Path
) -> None:
    store = stored(tmp_path / "rows", 0, 400, None)
    options = ("--basis", 15, "--lengthscale", 1.0, "--alpha", 0.1, "--kernel", "gaussian")
    address = ("--scheduler", dask_cluster.address)
    submitted = cli("submit", store, tmp_path / "job", *options, "--weight", "n", *address, "--json")
    assert submitted.status == 0, submitted.err
    assert cli("status", tmp_path / "job", "--follow").status == 0
    local = cli("fit", store, tmp_path / "local", *options, "--weight", "n", "--scheduler", "threads", "--json")
    assert local.status == 0, local.err
    loaded = KernelRidge.load(tmp_path / "job").model_
    assert loaded.digest == local.result["digest"]
    assert (loaded.record.columns, loaded.record.weight_column) == (("a", "b"), "n")
    wrong = cli("submit", store, tmp_path / "other", *options, "--weight", "z", *address)
    assert wrong.status == 1
    assert "there is no column 'z'" in wrong.err


def test_a_factor_on_workers(dask_cluster: Cluster, cli: Callable[..., Any], tmp_path: Path) -> None:
    store = stored(tmp_path / "rows", 0, 400, None)
    digests = []
    for name, place in (("workers", dask_cluster.address), ("threads", "threads")):
        made = cli("factor", store, tmp_path / name, "--basis", 12, "--weight", "n", "--scheduler", place, "--json")
        assert made.status == 0, made.err
        digests.append(made.result["digest"])
    assert digests[0] == digests[1]
