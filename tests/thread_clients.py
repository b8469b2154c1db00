"""A Dask client whose workers are threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

__all__ = ["thread_client"]


@contextmanager
def thread_client(workers: int = 2, threads: int = 1) -> Iterator[Client]:
    """Workers of so many threads; the scheduler's HTTP server on any free port, as other tests run at the same time.

    They have no memory limit: it would be the machine's memory over their number, and each would compare it with the
    memory of the whole process. 64 workers then pause for what earlier tests have left, and never answer.
    """
    with (
        LocalCluster(
            processes=False,
            n_workers=workers,
            threads_per_worker=threads,
            memory_limit=0,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
