"""What the engine looks at before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import ClusterError, InputChangedError
from streamkernel.table import open_table


def test_nothing_is_written_of_a_table_that_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(np.zeros((4, 2)))

    def changed(self: object) -> None:
        raise InputChangedError("changed")

    monkeypatch.setattr(type(table), "check_unchanged", changed)
    unasked: Any = None  # neither map nor sink is looked at
    for sweep in (lambda: Session(ThreadExecutor(1)).write(unasked, table, unasked, "write"),):
        with pytest.raises(InputChangedError):
            sweep()


def test_a_cluster_without_workers_is_refused() -> None:
    class Nobody:
        scheduler = None

        def nthreads(self) -> dict[str, int]:
            return {}

    with pytest.raises(ClusterError, match="has no workers; start some"):
        ClusterExecutor(Nobody())  # type: ignore[arg-type]  # all that is asked of a client
