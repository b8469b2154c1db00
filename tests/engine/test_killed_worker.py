"""Which task a dead worker is laid to where no worker is left to try the suspects on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import KilledWorker

from streamkernel.engine.cluster import _killed_worker
from streamkernel.reductions import Moments
from streamkernel.table import open_table


@pytest.mark.parametrize(
    ("suspects", "words"),
    [
        ([(20, 60)], "the task of rows 20:60"),
        ([(20, 60), (0, 20)], "one of 2 tasks, perhaps the task of rows 20:60"),
    ],
)
def test_no_worker_to_try_on(monkeypatch: pytest.MonkeyPatch, suspects: list[tuple[int, int]], words: str) -> None:
    monkeypatch.setattr(_killed_worker, "_idle_worker", lambda client: None)
    monkeypatch.setattr(_killed_worker, "memory_at_end", lambda client, address: None)
    table = open_table(np.zeros((60, 2)))
    client: Any = object()
    last: Any = SimpleNamespace(address="tcp://a:1", memory_limit=0)
    error = _killed_worker.blame(
        client,
        KilledWorker("leaf", last, 3),
        suspects,
        (Moments(2, 0), table),
        lambda span, worker: pytest.fail("tried"),
    )
    assert str(error).startswith(f"{words}, ")
    assert "its worker died 4 times" in str(error)
