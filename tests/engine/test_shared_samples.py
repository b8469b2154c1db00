"""Passes over samples in memory: on the workers of a cluster where there is enough work, with the bits of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from thread_clients import thread_client

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Session, TableShape, ThreadExecutor, layout, make_plan, plan, session, step_of
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.engine.layout import Layout
from streamkernel.engine.session import layout_of
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.kernels import Gaussian
from streamkernel.reductions import State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.pools import PoolBlocks, PoolColumns, PoolGram
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table, open_table
from streamkernel.timing import BUILT_IN, Slots, plan_seconds
from streamkernel.timing.scaling import sweep_cost
from streamkernel.type_aliases import AnyArray

SINGLE = np.dtype(np.float32)
Rows = tuple[AnyArray, AnyArray]


class Watched(ClusterExecutor):
    """A cluster that notes the tables of its passes."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, remote=False)
        self.rows: list[int] = []

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: object) -> State:
        self.rows.append(table.n_rows)
        return super().reduce(reduction, table, layout, lambda rows: None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with thread_client(2) as client:
        yield client


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any work is worth its way."""
    monkeypatch.setattr(layout, "_WORTH_SENDING", 1.0)
    monkeypatch.setattr(layout, "_WORTH_DIVIDING", 1.0)


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 3)).astype(np.float32)
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))


def pool_of(X: AnyArray) -> PoolGram:
    kernel = Gaussian(1.0)
    basis, pool = Basis(kernel, X[:20], np.arange(20)), Basis(kernel, X[20:60], np.arange(20, 60))
    return PoolGram(PoolColumns(basis, pool, np.zeros(1), SINGLE))


def test_a_pass_has_the_same_bits_on_workers(cluster: Client, eager: None, rows: Rows) -> None:
    X, y = rows
    work, table, executor = pool_of(X), open_table(X, y), Watched(cluster)
    assert len(layout_of(work, table).spans) > 1
    here, there = Session(ThreadExecutor(1)).local(work, table), Session(executor).shared(work, table)
    assert executor.rows == [len(X)]
    for name in ("C", "E", "F", "H", "g", "S"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    assert not Session(executor).records  # it is no sweep over the data


def test_parts_of_the_sums_have_the_same_bits_on_workers(
    cluster: Client, eager: None, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    work, table, executor = PoolBlocks(pool_of(X).columns), open_table(X, y), Watched(cluster)
    monkeypatch.setattr(layout.Parts, "pay", lambda *of: True)
    there = Session(executor).shared(work, table)
    assert executor.rows == [15 * len(X)]
    here = Session(ThreadExecutor(1)).shared(work, table)
    for name in ("C", "E", "F", "H", "g", "S", "weight", "trace"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    plain = Session(ThreadExecutor(2)).local(pool_of(X), table)
    np.testing.assert_allclose(here.C, plain.C, rtol=1e-4, atol=1e-3)


def test_sums_without_parts_are_not_divided(
    cluster: Client, eager: None, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    executor = Watched(cluster)
    monkeypatch.setattr(layout.Parts, "pay", lambda *of: True)
    Session(executor).shared(pool_of(X), open_table(X, y))
    assert executor.rows == [len(X)]


@pytest.mark.parametrize(
    ("leaves", "threads", "workers", "pay"),
    [
        (4, 1, 1, False),  # three times the work
        (4, 16, 16, False),
        (4, 64, 64, True),
        (4, 1000, 1000, True),
        (3, 1000, 1000, False),  # other sums than those of a part
        (4, 64, 16, True),
        (4, 64, 8, False),  # eight threads of a worker, whose memory is planned for four leaves
        (4, 64, 0, False),
    ],
)
def test_parts_are_for_many_workers(leaves: int, threads: int, workers: int, pay: bool) -> None:
    assert layout.Parts(15, 2e6, 1500).pay(leaves, 8.6e6, threads, workers) is pay


def test_little_work_stays_on_the_driver(cluster: Client, rows: Rows) -> None:
    X, y = rows
    executor = Watched(cluster)
    Session(executor).shared(pool_of(X), open_table(X, y))
    assert not executor.rows


def test_a_fit_that_scores_on_workers_is_that_of_threads(
    cluster: Client, eager: None, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    table = open_table(da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=1000))
    settings = RidgeSettings(n_components=30, kernel="gaussian", metric="none", alpha="gcv", objective="prediction")
    executor = Watched(cluster)
    there = fit_ridge(table, settings, Session(executor))
    assert any(count < len(X) for count in executor.rows)  # the samples that score candidates
    alone = fit_ridge(table, settings, Session(ThreadExecutor(2)))
    assert there.digest == alone.digest
    monkeypatch.setattr(layout.Parts, "pay", lambda *of: bool(of[-1]))
    divided = Watched(cluster)
    assert fit_ridge(table, settings, Session(divided)).digest == alone.digest
    assert any(count > len(X) for count in divided.rows)


def test_the_plan_knows_where_candidates_are_scored() -> None:
    table = open_table(
        da.zeros((10_000_000, 20), chunks=(50_000, -1), dtype=SINGLE), da.zeros(10_000_000, chunks=50_000)
    )
    settings = RidgeSettings(n_components=1000, kernel="gaussian", metric="none", alpha="gcv")
    planned = plan_ridge(table, settings, Machine(16, 1))
    scored = [step for step in planned.steps if step.name.startswith("score")]
    # Rounds of few candidates are not worth it; the last ones are most of the work.
    assert {step.where for step in scored} == {"sample", "shared"}
    assert sum(step.flops for step in scored if step.where == "shared") > 0.6 * sum(step.flops for step in scored)
    many, few = (
        plan_seconds(plan_ridge(table, settings, Machine(count, 1)), BUILT_IN, Slots(count)) for count in (16, 1)
    )
    for step, there, alone in zip(planned.steps, many.steps, few.steps, strict=True):
        if step.where == "shared":
            picks = step.algebra / BUILT_IN.algebra_flops  # the driver's
            assert there - picks < 0.5 * (alone - picks)


def test_a_worker_holds_the_sample_and_the_sums() -> None:
    rng = np.random.default_rng(0)
    shape = TableShape(rows=10**6, features=20, width=20, targets=1, itemsize=4, chunk_rows=1000, in_memory=False)
    kernel, X = Gaussian(1.0), rng.standard_normal((2500, 20)).astype(SINGLE)
    columns = PoolColumns(
        Basis(kernel, X[:500], np.arange(500)), Basis(kernel, X[500:], np.arange(2000)), np.zeros(1), SINGLE
    )
    options = {"kernel_columns": 2500, "sampled": 16_384, "rows_bytes": 10**6}
    shared = step_of("score", PoolGram(columns), 10**6, where="shared", **options)  # type: ignore[arg-type]
    assert (shared.where, shared.in_memory) == ("shared", True)
    on_driver = replace(shared, where="sample")
    there, here = (make_plan([step], shape, Machine(4, 1), disk_bytes=0) for step in (shared, on_driver))
    assert there.worker_bytes - here.worker_bytes > shared.state_bytes + shared.scratch_bytes + 16_384 * 88
    assert there.driver_bytes < here.driver_bytes
    # Threads of one process hold it as before.
    alone = [make_plan([step], shape, Machine(0, 2), disk_bytes=0).memory_bytes for step in (shared, on_driver)]
    assert alone[0] == alone[1]


def test_the_plan_counts_the_parts_that_a_session_would_run() -> None:
    table = open_table(
        da.zeros((10_000_000, 20), chunks=(50_000, -1), dtype=SINGLE), da.zeros(10_000_000, chunks=50_000)
    )
    settings = RidgeSettings(n_components=1000, kernel="gaussian", metric="none", alpha="gcv")
    planned = plan_ridge(table, settings, Machine(1000, 1))
    step = next(step for step in planned.steps if step.where == "shared")
    X = np.random.default_rng(0).standard_normal((2500, 20)).astype(SINGLE)
    kernel = Gaussian(1.0)
    basis, pool = Basis(kernel, X[:500], np.arange(500)), Basis(kernel, X[500:], np.arange(2000))
    work = PoolBlocks(PoolColumns(basis, pool, np.zeros(1), SINGLE))
    assert (step.flops_per_row, step.state_bytes, step.kernel_columns) == (
        work.flops_per_row(),
        work.state_bytes(),
        2500,
    )
    found = work.divided(step.rows)
    assert step.parts == layout.Parts(found.parts, found.reduction.flops_per_row(), found.kernel_columns)
    cost = sweep_cost(step, planned, BUILT_IN, step.parts)
    assert cost.leaves == found.parts * step.leaves
    assert cost.node_bytes(1) == pytest.approx(found.reduction.share_bytes(1 / cost.leaves), abs=1.0)
    assert cost.node_bytes(8) == pytest.approx(found.reduction.share_bytes(8 / cost.leaves), abs=1.0)
    # Each of the parts has less work, all together have more.
    whole = sweep_cost(step, planned, BUILT_IN)
    assert 0.05 < cost.work / whole.work < 0.4
    assert cost.leaves * cost.work > 2.0 * whole.leaves * whole.work


def test_session_and_plan_ask_the_same_question() -> None:
    assert session.worth_sending is plan.worth_sending is layout.worth_sending
