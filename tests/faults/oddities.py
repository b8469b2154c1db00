"""Preloaded by the workers of this folder's clusters: tasks that do odd things beside their work.

The file that STREAMKERNEL_ODD names says what, as JSON: ``sleep`` so many seconds in every task; run all
``twice``; at the task that has row ``row``, ``kill`` the worker or ``hold`` so many bytes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import streamkernel.engine._cluster_tasks as cluster_tasks

_map_span = cluster_tasks.map_span
_FILE = Path(os.environ["STREAMKERNEL_ODD"])


def _oddly(table: Any, reduction: Any, span: tuple[int, int], rows: int) -> Any:
    odd = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    time.sleep(odd.get("sleep", 0.0))
    if span[0] <= odd.get("row", -1) < span[1]:
        if odd.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        held = np.ones(odd.get("hold", 0), np.uint8)
        time.sleep(2.0 if held.size else 0.0)  # for the nanny, which looks every 0.1 s
    if odd.get("twice"):
        _map_span(table, reduction, span, rows)
    return _map_span(table, reduction, span, rows)


def dask_setup(worker: object) -> None:
    cluster_tasks.map_span = _oddly
