"""The connection of a driver from its worker to the scheduler, and the memory limits of this worker."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import dask
from distributed import Client
from distributed.security import Security
from distributed.worker import Worker

from streamkernel.byte_counts import format_bytes
from streamkernel.engine import MemoryLimits, Plan, memory_limits
from streamkernel.engine.cluster import DASK_CONFIG, ClusterExecutor
from streamkernel.engine.cluster.worker_warm_up import warm_up_workers
from streamkernel.engine.peak_memory import peak_resident_bytes
from streamkernel.engine.plan import WORKER_BYTES
from streamkernel.errors import ClusterError


class DriverExecutor(ClusterExecutor):
    """An executor that runs sweeps from a task of the same cluster."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._closing = threading.Lock()

    def peak_bytes(self) -> int:
        # This process is one of the workers, and the session's own meter measures it already.
        with contextlib.suppress(ClusterError, OSError, TimeoutError):
            return max(0, super().peak_bytes() - peak_resident_bytes())
        return 0

    def memory_now(self) -> int:
        """Memory of all workers in bytes, from their last reports to the scheduler; 0 once the client is closed."""
        with self._closing:
            if self._client.status != "running":
                return 0
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["metrics"]["memory"]) for worker in workers)

    def close(self) -> None:
        """Close the client, which the fit and the job's watch use from two threads.

        It stops the event loop for which `memory_now`, or a second call of `Client.close`, would wait for ever.
        """
        with self._closing:
            self._client.close()


@contextlib.contextmanager
def driver_executor(worker: Worker) -> Iterator[DriverExecutor]:
    """An executor with a client of its own; `close` may be called while the fit waits for tasks."""
    options = {"set_as_default": False, "direct_to_workers": True, "name": "streamkernel-job"}
    with (
        dask.config.set({name: value for name, value in DASK_CONFIG.items() if name.startswith("distributed.admin")}),
        Client(worker.scheduler.address, security=_as_client(worker.security), timeout=10, **options) as client,
        client.as_current(),
    ):
        executor = DriverExecutor(client)
        try:
            warm_up_workers(client)
            yield executor
        finally:
            executor.close()


def _as_client(security: Security) -> Security:
    """The worker's TLS settings for a client; a worker started with a certificate has it for its own role only."""
    own = security.get_tls_config_for_role("worker")
    if security.get_tls_config_for_role("client")["cert"] or not own["cert"]:
        return security
    return Security(
        require_encryption=security.require_encryption,
        tls_ca_file=own["ca_file"],
        tls_client_cert=own["cert"],
        tls_client_key=own["key"],
    )


@dataclass(frozen=True)
class DriverLimits(MemoryLimits):
    """Limits of a run whose driver is a task on a worker: this worker must hold the driver and its tasks."""

    @classmethod
    def of(cls, executor: DriverExecutor, limit: int | None) -> DriverLimits:
        """The limits of `memory_limits`, and of the driver's worker."""
        found = memory_limits(executor, limit)
        return cls(found.total, found.driver, found.worker, found.by)

    def exceeded(self, plan: Plan) -> str | None:
        both = plan.driver_bytes + plan.worker_bytes - WORKER_BYTES  # the libraries are loaded once
        if self.worker is not None and both > self.worker:
            return (
                f"projected memory of the worker that drives the job ({format_bytes(both)}: driver "
                f"{format_bytes(plan.driver_bytes)} + its tasks) exceeds allowed memory ({format_bytes(self.worker)}; "
                "the memory limit of dask worker)"
            )
        return super().exceeded(plan)
