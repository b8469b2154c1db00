"""Sums of 512 functions and more wait and travel as triangles: the same bits everywhere, from checkpoints, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from thread_clients import thread_client

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import DASK_CONFIG, ClusterExecutor
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.store import Checkpoints
from streamkernel.table import Table, open_table

FUNCTIONS, WIDTH = 520, 522


def of_rows(rows: int = 30_000) -> tuple[NormalEquations, Table]:
    X = np.random.default_rng(0).standard_normal((rows, 8)).astype(np.float32)
    basis = Basis(Gaussian(2.0), X[:FUNCTIONS], np.arange(FUNCTIONS))
    return NormalEquations(basis, np.zeros(1), 0), open_table(X, X[:, 0])


@pytest.fixture(scope="module")
def expected() -> Any:
    work, table = of_rows()
    session = Session(ThreadExecutor(1))
    found = session.sweep(work, table, "sums")
    assert session.records[0].tasks > 4
    return found


def require_same(found: Any, expected: Any) -> None:
    for field, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, field), value, err_msg=field)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_send_triangles(expected: Any, workers: int) -> None:
    work, table = of_rows()
    with dask.config.set(DASK_CONFIG), thread_client(workers, 1) as client:
        require_same(Session(ClusterExecutor(client, remote=False)).sweep(work, table, "sums"), expected)


def test_a_checkpoint_holds_the_triangle(expected: Any, tmp_path: Path) -> None:
    work, table = of_rows()
    with Checkpoints(tmp_path / "run", {"seed": 0}) as checkpoints:
        require_same(Session(ThreadExecutor(2), checkpoints=checkpoints).sweep(work, table, "sums"), expected)
        saved = checkpoints.load(0, "sums")
        assert saved is not None
        assert {name: values.shape for name, values in saved.items()} == {
            "gram_triangle": (WIDTH * (WIDTH + 1) // 2,),
            "totals": (3,),
        }
    with Checkpoints(tmp_path / "run", {"seed": 0}) as checkpoints:
        again = Session(checkpoints=checkpoints)
        require_same(again.sweep(work, table, "sums"), expected)
        assert again.records[0].resumed
