"""The memory that processes here may use: the smallest of the machine's memory and the limits set on it.

A container or a SLURM job ends processes that together exceed its limit; `ulimit` limits each process by itself.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

MACHINE = "this machine"
_MIB = 1 << 20


@dataclass(frozen=True, order=True)
class Allowed:
    """A limit in bytes, and its origin."""

    bytes: int
    by: str


def allowed_memory(root: Path = Path("/")) -> Allowed:
    """The smallest limit that applies to this process and those around it together.

    Parameters
    ----------
    root : folder of ``proc``; the paths in it are taken below this folder, too.
    """
    machine = Allowed(int(psutil.virtual_memory().total), MACHINE)
    return min([machine, *_of_cgroups(root), *_of_slurm()])


def allowed_to_each() -> Allowed | None:
    """The limit of each single process started from here; None where there is none."""
    return min(_of_ulimit(), default=None)


def _of_ulimit() -> Iterator[Allowed]:
    for kind, word in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield Allowed(soft, word)


def _of_slurm() -> Iterator[Allowed]:
    """Limits of the SLURM job on this node; SLURM counts in MiB, and 0 means all memory of the node."""
    for name, each in (("MEM_PER_NODE", None), ("MEM_PER_CPU", "CPUS_ON_NODE"), ("MEM_PER_GPU", "GPUS_ON_NODE")):
        size = _number(os.environ.get(f"SLURM_{name}"))
        count = 1 if each is None else _number(os.environ.get(f"SLURM_{each}")) or _cpus(each)
        if size and count:
            yield Allowed(size * count * _MIB, f"the SLURM job (SLURM_{name})")


def _cpus(counted: str) -> int | None:
    if counted != "CPUS_ON_NODE":
        return None
    # Such as "2" or "2(x3),4", for one node after another: the smallest number is valid on every node.
    parts = os.environ.get("SLURM_JOB_CPUS_PER_NODE", "").split(",")
    numbers = [number for part in parts if (number := _number(part.partition("(")[0]))]
    return min(numbers) if numbers else _number(os.environ.get("SLURM_CPUS_PER_TASK"))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() else None


def _of_cgroups(root: Path) -> Iterator[Allowed]:
    """Limits of this process's cgroup and of all its parents that are mounted, versions 1 and 2."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            groups["cgroup2"] = path
        elif "memory" in controllers.split(","):
            groups["cgroup"] = path
    for line in _lines(root / "proc/self/mountinfo"):
        mounted, _, described = line.partition(" - ")
        fields, kinds = mounted.split(), described.split()
        if len(fields) < 5 or len(kinds) < 2:
            continue
        kind, options = kinds[0], kinds[-1].split(",")
        if kind in groups and (kind == "cgroup2" or "memory" in options):
            name = "memory.max" if kind == "cgroup2" else "memory.limit_in_bytes"
            yield from _up_from(root / fields[4].lstrip("/"), _within(groups[kind], fields[3]), name)


def _within(path: str, mounted: str) -> str:
    """A group's path below the mounted one; empty where a container sees only the mounted group."""
    if mounted != "/" and path != mounted and not path.startswith(f"{mounted}/"):
        return ""
    inner = path if mounted == "/" else path.removeprefix(mounted)
    return "" if ".." in inner.split("/") else inner.strip("/")


def _up_from(mount: Path, inner: str, name: str) -> Iterator[Allowed]:
    group = mount / inner
    while True:
        for line in _lines(group / name):
            if limit := _number(line.strip()):  # "max" means no limit; version 1 has a very large number for it
                yield Allowed(limit, f"the cgroup {group}")
        if group == mount:
            return
        group = group.parent


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
