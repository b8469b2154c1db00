"""Exclusive locks that vanish with their holder; `table/` takes them too, so that they live a level below."""

from __future__ import annotations

from streamkernel.atomic import HeldLock

__all__ = ["HeldLock"]
