"""Batches of single rows: rows that arrive one by one are predicted together, because a few rows cost as much as one.

A batch is closed by its age or its size. All its rows belong to one generation of a model. Each row gets the same bits
as if it were predicted alone, and a row that cannot be used does not affect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from streamkernel.errors import StreamKernelError
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.type_aliases import Fields, Float

# A batch of less work than this is predicted in the event loop: waking a thread would take longer.
_INLINE_FLOPS = 2e7


class Batcher:
    """The waiting rows of one model.

    Parameters
    ----------
    direct : predicts the rows.
    seconds, rows : a batch is closed this long after its first row, or at this number of rows.
    pool : threads for batches that take long.
    observe : called with the size of each batch.
    """

    def __init__(
        self,
        direct: DirectPredictions,
        seconds: float,
        rows: int,
        pool: Executor,
        observe: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._direct = direct
        self._seconds = seconds
        self._most = rows
        self._pool = pool
        self._observe = observe
        self._flops = direct.work.flops_per_row()
        self._rows: list[Float] = []
        self._waiting: list[asyncio.Future[Any]] = []
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, row: Float) -> asyncio.Future[Fields]:
        """Add a row (p,). The future has its outputs, by name, when its batch is done."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Fields] = loop.create_future()
        self._rows.append(row)
        self._waiting.append(future)
        if len(self._rows) >= self._most:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(self._seconds, self._flush)
        return future

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        rows, waiting = self._rows, self._waiting
        self._rows, self._waiting = [], []
        self._observe(len(rows))
        if self._flops * len(rows) <= _INLINE_FLOPS:
            _deliver(waiting, _answers(self._direct, rows))
            return
        loop = asyncio.get_running_loop()

        answers = loop.run_in_executor(self._pool, _answers, self._direct, rows)
        answers.add_done_callback(lambda future: _deliver(waiting, future.result()))


def _deliver(waiting: list[asyncio.Future[Any]], answers: list[Fields | Exception]) -> None:
    for future, answer in zip(waiting, answers, strict=True):
        if future.done():
            continue  # the client has disconnected
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _answers(direct: DirectPredictions, rows: list[Float]) -> list[Fields | Exception]:
    """For each row its outputs, or its error."""
    try:
        outputs = direct.each_alone(direct.prepared(np.stack(rows)))
        columns = {name: values.tolist() for name, values in outputs.items()}
        return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]
    except StreamKernelError as error:
        # One row cannot be used: predict each alone, to find it.
        return [error] if len(rows) == 1 else [_answers(direct, [row])[0] for row in rows]
    except Exception as error:
        # All that is raised, `MemoryError` too: who waits is answered.
        return [error] * len(rows)
