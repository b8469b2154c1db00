"""Clusters of real processes, started by the code of `scripts/cluster`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# What lies there calls its neighbours by name, as scripts do.
sys.path.insert(0, str(ROOT / "scripts"))

from _processes import StartError  # noqa: E402
from _topology import BUCKET, Topology  # noqa: E402

__all__ = ["BUCKET", "ROOT", "StartError", "topology"]


def topology(folder: Path, **options: Any) -> Topology:
    """Not started yet: a context manager that brings all up, and ends it."""
    return Topology(folder, **options)
