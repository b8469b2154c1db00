"""A Dask client whose two workers are threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

__all__ = ["thread_client"]


@contextmanager
def thread_client() -> Iterator[Client]:
    """Two workers of one thread; the scheduler's HTTP server on any free port, as other tests run at the same time."""
    with (
        LocalCluster(
            processes=False,
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
