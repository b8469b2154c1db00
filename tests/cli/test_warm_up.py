"""The command that compiles the kernels ahead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clusters import Cluster


def test_here_and_on_workers(cli: Callable, dask_cluster: Cluster) -> None:
    here = cli("warm-up", "--json").result
    assert here["workers"] == 0
    assert list(Path(here["cache"]).glob("*.compiled"))
    assert cli("warm-up", "--scheduler", dask_cluster.address, "--json").result["workers"] == 1


def test_an_address_is_checked_before_anything_is_compiled(cli: Callable) -> None:
    refused = cli("warm-up", "--scheduler", "tcp://10.0.0.1:8786")
    assert refused.status == 1
    assert "is not encrypted" in " ".join(refused.err.split())
