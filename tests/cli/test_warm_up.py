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


def test_it_says_whether_anything_was_compiled(cli: Callable) -> None:
    cli("warm-up", "--json")
    again = cli("warm-up", "--scheduler", "threads")
    assert "the kernels were compiled before, nothing was to do" in again.out
    assert "workers" not in again.out
    assert cli("warm-up", "--scheduler", "threads", "--json").result["compiled"] is False


def test_an_address_is_checked_before_anything_is_compiled(cli: Callable) -> None:
    refused = cli("warm-up", "--scheduler", "tcp://10.0.0.1:8786")
    assert refused.status == 1
    assert "is not encrypted" in " ".join(refused.err.split())
