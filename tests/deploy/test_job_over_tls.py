"""A job on a cluster with TLS, its driver too, from certificates that are given and not named by the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import HANG

from streamkernel import KernelRidge, connect
from streamkernel.engine.security import tls_security
from streamkernel.errors import SecurityError


@pytest.mark.slow
def test_a_job_has_the_bits_of_threads(
    tls_cluster: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CA", "CERT", "KEY"):
        monkeypatch.delenv(f"STREAMKERNEL_TLS_{name}", raising=False)
    made = Path(tls_cluster.folder) / "tls"
    security = tls_security(ca=str(made / "ca.pem"), cert=str(made / "client.pem"), key=str(made / "client-key.pem"))
    address = tls_cluster.environment["STREAMKERNEL_SCHEDULER"]
    with pytest.raises(SecurityError, match="needs a CA"):
        connect(address)
    with connect(address, security) as session:
        job = session.submit(KernelRidge(40), store, tmp_path / "model.zarr")
        fitted = job.result(HANG)
    assert fitted.model_.digest == KernelRidge(40).fit(str(store)).model_.digest
    progress = job.progress
    assert progress["worker"].startswith("tls://127.0.0.1:")
    workers = {tls_cluster.process(f"worker-{number}").pid for number in range(tls_cluster.workers)}
    assert psutil.Process(progress["process"]).ppid() in workers  # that of a nanny
