"""States that come from workers: arrays that begin anywhere in a block of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import Cluster
from distributed import Client

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.kernels import Gaussian
from streamkernel.linalg import syrk
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import open_table


def test_sums_from_workers_are_where_blas_may_read_them(dask_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of BLAS without AVX ended the process at an array that began between two numbers."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    basis = Basis(Gaussian(1.0), X[:20], np.arange(20))
    monkeypatch.setattr(
        NormalEquations, "finalize", lambda _, state: [array.ctypes.data % array.itemsize for array in state.values()]
    )
    with Client(dask_cluster.address) as client:
        session = Session(ClusterExecutor(client))
        for targets in (1, 2, 3):
            work = NormalEquations(basis, np.zeros(targets))
            found: object = session.sweep(work, open_table(X, np.zeros((40, targets))), "sums")
            assert found == [0, 0]


@pytest.mark.parametrize("of", ["block", "sums"])
def test_blas_refuses_an_array_between_two_numbers(of: str) -> None:
    memory = np.zeros(8 * 16 + 1, np.uint8)
    between = np.ndarray((4, 4), np.float64, memory.data, 1)
    given = {"block": np.zeros((4, 4)), "sums": np.zeros((4, 4)), of: between}
    with pytest.raises(ValueError, match="an aligned float64 matrix"):
        syrk(given["block"], into=given["sums"])
