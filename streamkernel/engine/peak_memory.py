"""Peak memory of a run, all processes together, to compare with the plan."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import threading
from functools import cache
from types import TracebackType

import psutil

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3  # parameters of glibc's mallopt
_ARENAS = 2
_MAPPED_BYTES = 1 << 22
_LARGE = 1 << 22


def resident_bytes() -> int:
    """Resident bytes of this process and its children."""
    total = int(psutil.Process().memory_info().rss)
    for child in _descendants(os.getpid()):
        with contextlib.suppress(psutil.Error):
            total += int(psutil.Process(child).memory_info().rss)
    return total


# The kernel lists the children of each thread: on Linux, if it was built to.
_CHILDREN_LISTED = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def _descendants(pid: int) -> list[int]:
    """Process ids of the children of a process, and of theirs."""
    if not _CHILDREN_LISTED:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        return []
    # psutil reads a file of every process of the machine: milliseconds, twenty times a second. A list of the kernel may
    # lack a child for a moment, while another one ends, which is good enough for a peak.
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as listed:
                found += map(int, listed.readall().split())
    return found + [each for child in found for each in _descendants(child)]


def peak_resident_bytes() -> int:
    """Peak resident bytes of this process alone."""
    # Not ru_maxrss first: a forked child inherits it from its parent, but VmHWM begins anew.
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, others kB


def forget_peak() -> None:
    """Reset `peak_resident_bytes`, where the system supports it: Linux since 4.0."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as peak:
        peak.write("5")


@cache
def limit_heaps() -> None:
    """Limit what the heaps of this process keep of freed memory.

    There are two heaps; glibc would give each thread its own. Zarr decodes on half a dozen threads: without it, a
    factor of 1,000,000 x 500 had a measured peak of 484 MiB instead of 444, and 8 % more than one of 250,000 rows
    instead of 2 %.

    Arrays from 4 MiB on are mapped, and given back when they are freed; glibc would raise this bound to 32 MiB by
    itself. With `release_freed`, the peak of a fit of 1,000 functions to 200,000 rows fell from 525 to 393 MiB, for 3 %
    of its time.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def release_freed(nbytes: int) -> None:
    """Give the memory that is freed back to the system, after work on blocks and sums of so many bytes.

    glibc keeps what was freed in its heaps, in pieces that the next step's larger arrays do not fit into.
    """
    if nbytes >= _LARGE:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


class PeakMeter:
    """Samples `resident_bytes` in the background; pages shared between processes count once per process.

    Examples
    --------
    >>> with PeakMeter() as meter:
    ...     pass
    >>> meter.peak > 0
    True
    """

    def __init__(self, interval: float = 0.05) -> None:
        self.peak = 0
        self._interval = interval
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def _look(self) -> None:
        self.peak = max(self.peak, resident_bytes())

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self._look()

    def __enter__(self) -> PeakMeter:
        self._look()
        self._thread = threading.Thread(target=self._run, name="streamkernel-memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._look()
