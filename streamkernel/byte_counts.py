"""Numbers of bytes as text, such as 1.5 GB, and from text."""

from __future__ import annotations

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def format_bytes(count: float) -> str:
    """Bytes for display: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000.0 or unit == "TB":
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000.0
    raise AssertionError


def parse_bytes(value: Unchecked, name: str = "memory_limit") -> int | None:
    """Bytes from a number, "4GB" or "4GiB"; None for no limit."""
    if value is None:
        return None
    text = str(value).strip().lower()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        count = int(float(digits) * _UNITS[text[len(digits) :].strip()])
    except (KeyError, ValueError, OverflowError):
        raise ParameterError(
            f"{option(name)} must be a number of bytes or text such as '4GB', not {value!r}", value=value
        ) from None
    if count <= 0:
        raise ParameterError(f"{option(name)} must be > 0, not {value!r}", value=value)
    return count
