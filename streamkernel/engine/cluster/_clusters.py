"""Clusters for sweeps: workers on this machine, or those of a scheduler at an address."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker

import dask
from distributed import Client, LocalCluster
from distributed.security import Security

from streamkernel.byte_counts import format_bytes
from streamkernel.engine.cluster._executor import ClusterExecutor
from streamkernel.engine.cluster.cluster_state import a_worker_failed, kill_workers
from streamkernel.engine.cluster.lost_cluster import dask_is_silent, translated_loss
from streamkernel.engine.cluster.worker_warm_up import silent, warm_up_workers
from streamkernel.engine.compiling import Notify
from streamkernel.engine.peak_memory import forget_peak
from streamkernel.engine.plan import WORKER_BYTES
from streamkernel.engine.security import connect_client
from streamkernel.engine.threads import available_cpus
from streamkernel.errors import ClusterError, ResourceLimitError

_LEAST_WORKER = WORKER_BYTES // 2  # with the libraries loaded and no work
_PATIENCE = 120.0  # seconds for the start of local workers, which takes a few on an idle machine

DASK_CONFIG = {
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.allowed-failures": 3,
    "distributed.scheduler.no-workers-timeout": "60s",
    # It deletes the payload's copies on idle workers, down to one. If the worker with the last copy is stopped, the
    # others wait for it (`_leaf_tasks`).
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,  # takes a few percent of a core for each worker, for a dashboard
    # The watch over an event loop wakes it 50 times a second, which takes one or two percent of a core in each process.
    "distributed.admin.tick.interval": "500ms",
    # Our payload is a few n x n matrices, sent once: the warning is for graphs that carry data.
    "distributed.admin.large-graph-warning-threshold": "4GiB",
    # One thread for each library: tasks are the parallelism, and bits must not depend on a number of threads.
    "distributed.nanny.pre-spawn-environ.NUMBA_NUM_THREADS": 1,
    "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": 1,
    "distributed.nanny.pre-spawn-environ.OPENBLAS_NUM_THREADS": 1,
    "distributed.nanny.pre-spawn-environ.MKL_NUM_THREADS": 1,
    # glibc returns freed memory to the system from 64 KiB on; its own threshold grows with the arrays that are freed.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 65536,
}


@contextlib.contextmanager
def connect(
    address: str, security: Security | None = None, *, insecure: bool = False, tell: Notify = silent
) -> Iterator[ClusterExecutor]:
    """Executor on the cluster whose scheduler listens at `address`; the errors are those of `connect_client`.

    Parameters
    ----------
    tell : function that gets a line where the workers must compile first.
    """
    with dask.config.set(DASK_CONFIG), dask_is_silent(), connect_client(address, security, insecure=insecure) as client:
        lost = f"the scheduler at {address}, or a worker of it,"
        again = "look whether they run, and try again"
        with translated_loss(lost, "before the first sweep", again):
            executor = ClusterExecutor(client)
        limit = executor.worker_limit()
        if limit is not None and limit < _LEAST_WORKER:
            # Dask would end the worker in the middle of an import, which looks like a lost connection.
            raise ResourceLimitError(
                f"a worker of the scheduler at {address} may hold {format_bytes(limit)}, less than the libraries "
                f"take ({format_bytes(_LEAST_WORKER)}); start workers with a larger memory limit"
            )
        with translated_loss(lost, "before the first sweep", again):
            client.run(forget_peak)  # of another fit; the peak of `warm_up` counts for this one
            warm_up_workers(client, tell)
        yield executor


@contextlib.contextmanager
def local_cluster(
    workers: int | None = None, threads_per_worker: int = 1, memory_limit: int | None = None, tell: Notify = silent
) -> Iterator[ClusterExecutor]:
    """Executor on worker processes of this machine; they end with the block.

    Parameters
    ----------
    workers : number of workers; default one per core.
    threads_per_worker : threads of each worker.
    memory_limit : bytes of each worker, above which Dask restarts it; default no limit.
    tell : function that gets a line where kernels must be compiled first.

    Raises
    ------
    ClusterError
        The workers did not start within two minutes.
    """
    count = workers or available_cpus()
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(DASK_CONFIG))
        stack.enter_context(dask_is_silent(altogether=True))
        try:
            with group_signals_blocked():
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=0,  # `scale` starts them in the cluster's thread; this one can be interrupted
                        threads_per_worker=threads_per_worker,
                        processes=True,
                        memory_limit=memory_limit or 0,
                        # No dashboard. Its HTTP server uses any free port, so that two fits on one machine do not
                        # conflict.
                        dashboard_address=None,
                        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                        silence_logs=logging.CRITICAL,  # workers that are ended tell of it, too
                    )
                )
                stack.enter_context(_ended_at_once(cluster))
                # Sums come from the workers, not by way of the scheduler, which is in this process and would send them
                # to itself.
                client = stack.enter_context(Client(cluster, timeout=_PATIENCE, direct_to_workers=True))
            cluster.scale(count)
            _wait_for_workers(cluster, client, count)
            warm_up_workers(client, tell)
        except (OSError, RuntimeError) as error:  # TimeoutError is an OSError
            raise ClusterError(
                f"{count} workers of the local cluster did not start ({type(error).__name__}: "
                f"{' '.join(str(error).split())}); use fewer workers, or threads of this process"
            ) from error
        yield ClusterExecutor(client, remote=False)


def _wait_for_workers(cluster: LocalCluster, client: Client, count: int) -> None:
    """Wait until all workers are ready, or one failed to start."""
    until = time.monotonic() + _PATIENCE
    while len(client.nthreads()) < count and time.monotonic() < until:
        if a_worker_failed(cluster):
            raise RuntimeError("a worker process ended before it was ready")
        time.sleep(0.05)
    client.wait_for_workers(count, timeout=max(1.0, until - time.monotonic()))


@contextlib.contextmanager
def _ended_at_once(cluster: LocalCluster) -> Iterator[None]:
    """Kill the workers when a signal ends this process: they would otherwise first finish their running tasks."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            kill_workers(cluster)
        raise


_OF_GROUPS = {signal.SIGINT, signal.SIGHUP, signal.SIGTERM}


@contextlib.contextmanager
def group_signals_blocked() -> Iterator[None]:
    """Block signals of process groups while threads are made that start processes; both inherit the blocking.

    A terminal sends Ctrl-C and its hang-up to all processes that run in it, and batch systems send SIGTERM likewise.
    These signals are for the driver, not for each of its workers.
    Otherwise a signal ends the workers in mid-sweep, before the driver can save the sweep's state, and each prints a
    traceback. Dask ends its workers by a message, and by SIGKILL if they do not answer it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_GROUPS)
    try:
        # Python's resource tracker must outlive this process for a moment. If the hang-up killed it, a new one would
        # start without its list of semaphores, and print a traceback for each. Its start unblocks the signals of this
        # thread, so they are blocked again.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_GROUPS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
