"""The peak memory of this process, by Python's own modules alone: the environments of peers have no others."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """Most bytes this process ever had resident.

    The kernel's high-water mark of this address space; `ru_maxrss` also remembers what the parent had when it forked.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
