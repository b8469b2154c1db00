"""Exclusive locks that vanish with their holder; they are defined one level below, because `table/` needs them too."""

from __future__ import annotations

from streamkernel.atomic import HeldLock

__all__ = ["HeldLock"]
