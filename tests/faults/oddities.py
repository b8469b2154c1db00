"""Preloaded by the workers of this folder's clusters: leaves that do odd things beside their work.

The file that STREAMKERNEL_ODD names says what, as JSON: ``sleep`` so many seconds in every leaf; run all
``twice``; at the leaf that has row ``row``, ``kill`` the worker or ``hold`` so many bytes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import streamkernel.engine.cluster._worker_tasks as cluster_tasks

_map_spans = cluster_tasks.map_spans
_FILE = Path(os.environ["STREAMKERNEL_ODD"])


def _oddly(table: Any, reduction: Any, spans: Any, rows: int, done: Any, empty: Any, memory: Any) -> None:
    odd = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    for number, span in spans:
        time.sleep(odd.get("sleep", 0.0))
        if span[0] <= odd.get("row", -1) < span[1]:
            if odd.get("kill"):
                os.kill(os.getpid(), signal.SIGKILL)
            held = np.ones(odd.get("hold", 0), np.uint8)
            time.sleep(2.0 if held.size else 0.0)  # for the nanny, which looks every 0.1 s
        if odd.get("twice"):
            _map_spans(table, reduction, iter([(number, span)]), rows, lambda leaf, state: None, empty, memory)
        _map_spans(table, reduction, iter([(number, span)]), rows, done, empty, memory)


def dask_setup(worker: object) -> None:
    cluster_tasks.map_spans = _oddly
