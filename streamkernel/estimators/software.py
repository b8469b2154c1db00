"""Versions and machine of a fit, on which the bits of a model depend."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import version

from threadpoolctl import threadpool_info

__all__ = ["software_record"]

_PACKAGES = ("streamkernel", "numpy", "scipy", "numba", "zarr", "dask")


def software_record() -> dict[str, str]:
    """Versions of Python, the packages and the BLAS; system and processor."""
    libraries = {library["filepath"].rpartition("/")[2]: library for library in threadpool_info()}
    blas = [
        f"{library.get('internal_api')} {library.get('version')} {library.get('architecture', '')}".strip()
        for _, library in sorted(libraries.items())
        if library["user_api"] == "blas"
    ]
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()} {_cpu()}".strip(),
        "blas": ", ".join(sorted(set(blas))),
        **{name: version(name) for name in _PACKAGES},
    }


def _cpu() -> str:
    """Model of the processor, where the system reports it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
