"""Reading ahead: a second thread reads the next rows of a task, while the task's own thread works on those before.

A thread that waits for an object store, or for a disk, does not idle a core then. The rows ahead are at most those of
one chunk (of one block, where blocks are larger), which the plan counts. The blocks, their order and their bits are
those of the iterator; an error of the reader is raised where its block would have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")

# Chunks above this are not read ahead: they would hold too much memory. `ingest` makes chunks of 8 MiB.
_MOST_BYTES = 64 << 20


def blocks_ahead(chunk_rows: int, chunk_bytes: int, block_rows: int) -> int:
    """Number of blocks that a task reads ahead: those of a chunk; 0 for rows in memory and for large chunks.

    Parameters
    ----------
    chunk_bytes : bytes of a decoded chunk of X; 0 for rows in memory.
    """
    if not 0 < chunk_bytes <= _MOST_BYTES:
        return 0
    return -(-chunk_rows // max(block_rows, 1))


@contextmanager
def read_ahead(items: Iterator[T], count: int) -> Iterator[Iterator[T]]:
    """The same items, of which up to `count` are made ahead by a thread that ends with the block.

    An exception that is no error, such as the interrupt of a user, does not wait for the read that is under way; the
    thread ends after it.
    """
    if count == 0:
        yield items
        return
    reader = _Reader(items, count)
    try:
        yield reader.items()
    except Exception:
        reader.end()
        raise
    except BaseException:
        reader.end(wait=False)
        raise
    reader.end()


class _Reader(Generic[T]):
    """The thread, and what it hands over: items, then an error or nothing."""

    def __init__(self, items: Iterator[T], count: int) -> None:
        self._items, self._room = items, Semaphore(count)
        self._made: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
        self._over = False
        # Overflow is an error in a task; a thread begins with NumPy's own settings.
        self._errors = np.geterr()
        self._thread = Thread(target=self._read, name="streamkernel-reader", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with np.errstate(**self._errors):
                while True:
                    self._room.acquire()
                    if self._over:
                        return
                    item = next(self._items, None)
                    if item is None:
                        break
                    self._made.put((item,))
                    del item  # memory has only what is handed over
        except BaseException as error:
            self._made.put(error)
        else:
            self._made.put(None)

    def items(self) -> Iterator[T]:
        """The items, as the thread of the task takes them."""
        while True:
            made = self._made.get()
            if made is None:
                return
            if isinstance(made, BaseException):
                raise made
            self._room.release()
            yield made[0]
            del made  # before the next one is taken

    def end(self, *, wait: bool = True) -> None:
        """End the thread; it finishes the read that is under way."""
        self._over = True
        self._room.release()
        if wait:
            self._thread.join()
