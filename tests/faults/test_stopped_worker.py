"""A worker that stands still (SIGSTOP) is given up after worker-ttl, 6 s here; its tasks run elsewhere."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from typing import Any

import psutil
import pytest
from runs import At, Cluster, fit

from streamkernel.engine.cluster import connect


@pytest.mark.fault("stopped")
@pytest.mark.slow
def test_it_is_given_up(cluster: Cluster, store: str, whole: Any, figure: Any) -> None:
    cluster.behave(sleep=0.1)
    stopped: list[psutil.Process] = []

    def stop() -> None:
        stopped.append(cluster.workers()[0])
        stopped[0].send_signal(signal.SIGSTOP)

    try:
        with connect(cluster.address) as executor:
            began = time.monotonic()
            assert fit(store, executor, progress=At(3, stop)).digest == whole.digest
            seconds = time.monotonic() - began
    finally:
        # Its nanny starts another; it may have done so by now.
        with suppress(psutil.NoSuchProcess):
            stopped[0].kill()
    assert seconds <= 25.0
    figure(f"equal, {seconds:.1f} s")
