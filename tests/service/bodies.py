"""Bodies of requests, and the one shape of refusals."""

from __future__ import annotations

import io
from collections.abc import Sequence

import httpx
import numpy as np
import pyarrow as pa

__all__ = ["COLUMNS", "as_arrow", "as_npy", "refused"]

COLUMNS = ("x0", "x1", "x2", "x3")


def as_npy(X: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


def as_arrow(X: np.ndarray, names: Sequence[str] = COLUMNS, batch: int = 100) -> bytes:
    sink = io.BytesIO()
    table = pa.table([pa.array(column) for column in X.T], names=list(names))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)
    return sink.getvalue()


def refused(answer: httpx.Response, status: int, kind: str, *words: str) -> None:
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert set(told) == {"error"}
    assert set(told["error"]) == {"type", "message"}
    assert told["error"]["type"] == kind, told
    for word in words:
        assert word in told["error"]["message"], told
    assert "Traceback" not in answer.text
    assert not any(part in answer.text for part in ("/tmp", "/root", "/home", "site-packages", ".py"))
