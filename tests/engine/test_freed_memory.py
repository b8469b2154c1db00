"""Freed memory goes back to the system: a process of its own, because a heap has a history."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the allocator is not glibc's")

# Blocks of a size, of which the last one stays: it keeps a heap from shrinking by itself.
FREED = """
import psutil
import numpy as np
from streamkernel.engine.peak_memory import limit_heaps, release_freed

def resident():
    return psutil.Process().memory_info().rss / 2**20

{before}
np.ones(30 << 17)  # freed: glibc now takes blocks of up to 30 MiB from its heaps
blocks = [np.ones({mebibytes} << 17) for _ in range(160 // {mebibytes})]
full, last = resident(), blocks.pop()
del blocks
{after}
print(full - resident())
"""


def freed(mebibytes: int, before: str = "", after: str = "") -> float:
    """MiB that went back, of 160 in blocks of this size."""
    source = FREED.format(mebibytes=mebibytes, before=before, after=after)
    # Without what a local cluster has set for its workers: Dask leaves it in the environment of the process.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", source]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def test_large_arrays_are_given_back_at_once() -> None:
    assert freed(5) < 20
    assert freed(5, before="limit_heaps()") > 140


@pytest.mark.slow
def test_what_the_heaps_hold_is_given_back_after_large_sums() -> None:
    assert freed(1, before="limit_heaps()") < 20
    assert freed(1, before="limit_heaps()", after="release_freed(4 << 20)") > 140
    assert freed(1, before="limit_heaps()", after="release_freed(1 << 20)") < 20
