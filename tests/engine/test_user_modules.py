"""Classes of a user on a cluster that does not have their module."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from clusters import Cluster
from distributed import Client

from streamkernel import open_table
from streamkernel.engine import Session
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import ClusterError
from streamkernel.reductions import Moments

MODULE = """
from streamkernel.reductions import Moments

class OwnMoments(Moments):
    pass
"""


def test_a_module_that_the_cluster_lacks(
    dask_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler is not lost, and to start it again would not help."""
    (tmp_path / "only_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = import_module("only_here").OwnMoments
    monkeypatch.setitem(sys.modules, "only_here", sys.modules["only_here"])  # gone again after the test
    table = open_table(np.arange(40.0).reshape(20, 2))
    with Client(dask_cluster.address) as client:
        session = Session(ClusterExecutor(client))
        with pytest.raises(ClusterError, match=r"No module named 'only_here'.*on the scheduler and on all workers"):
            session.sweep(own(2, 0), table, "sums")
        # The cluster goes on.
        assert session.sweep(Moments(2, 0), table, "sums").X.mean == pytest.approx([19.0, 20.0])
