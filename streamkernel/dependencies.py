"""The libraries of which this package uses undocumented parts, with the versions it was tried with.

Such parts may change in any release. So one file uses those of a library, and checks that they exist. pyproject.toml
has the same versions as bounds, and the tests run with the oldest and with the newest ones (CONTRIBUTING.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from streamkernel.errors import DependencyError


@dataclass(frozen=True)
class Tried:
    """The versions [least, below) of a library, and the module that uses its undocumented parts."""

    least: str
    below: str
    used_in: str


TRIED = {
    "distributed": Tried("2025.4", "2026.9", "streamkernel.engine.cluster.cluster_state"),
    "numba": Tried("0.62", "0.69", "streamkernel.kernels.loops.instructions"),
    "uvicorn": Tried("0.30", "0.55", "streamkernel.service.web_server"),
    "zarr": Tried("3.1.6", "3.2", "streamkernel.table.stored._store_values"),
}


def missing_part(library: str, part: str) -> DependencyError:
    """The error for an installed version that lacks `part`."""
    tried = TRIED[library]
    try:
        installed = version(library)
    except PackageNotFoundError:
        installed = "(of an unknown version)"
    return DependencyError(
        f"{library} {installed} lacks a part that {tried.used_in} needs ({part}); install a version that streamkernel "
        f"was tried with: pip install '{library}>={tried.least},<{tried.below}'"
    )
