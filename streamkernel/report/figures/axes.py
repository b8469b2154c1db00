"""Limits and ticks of axes, independent of the library that draws them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from streamkernel.type_aliases import Float

_ROOM = 0.05  # share of an axis, left free beyond the data


def wrapped(label: str, longest: int) -> str:
    """A label in lines of about equal length, of at most `longest` characters unless a word is longer."""
    lines = max(1, math.ceil(len(label) / longest))
    # As even as they can be: a last line of one short word looks like a mistake.
    widths = range(max(1, len(label) // lines), longest + 1)
    fitting = (textwrap.wrap(label, width, break_long_words=False) for width in widths)
    return "\n".join(next((each for each in fitting if len(each) <= lines), textwrap.wrap(label, longest)))


def decades(low: float, high: float) -> float:
    """Length of a logarithmic axis, in powers of ten."""
    return math.log10(high / low) if 0.0 < low < high else 0.0


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between the limits; a finer grid if these are fewer than three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks: list[float] = []
    for steps in ((1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)):
        ticks = [step * 10.0**k for k in range(first, last + 1) for step in steps if low <= step * 10.0**k <= high]
        if len(ticks) >= 3:
            break
    return ticks


def padded(low: float, high: float, share: float = _ROOM) -> tuple[float, float]:
    """Limits with some room beyond the data, and with a positive length if all data are equal."""
    if not high > low:
        reach = 0.5 * abs(low) if low else 0.5
        return low - reach, high + reach
    room = share * (high - low)
    # Values that differ by rounding only still need an axis of some length.
    least = 1e-9 * max(abs(low), abs(high))
    return low - max(room, least), high + max(room, least)


def around_least(values: Float, kept: Sequence[float] = ()) -> tuple[float, float, bool]:
    """Ends of the values that an axis shows so that the least one can be seen, and whether larger ones are left out.

    Errors that are many times the least one would press all near it into one line. The axis reaches three times as far
    above the least as the median, at least 5 % of it, and to all that is `kept`.
    """
    least, largest = float(values.min()), float(values.max())
    reach = max(3.0 * (float(np.median(values)) - least), 0.05 * abs(least))
    top = max([min(largest, least + reach), *(each for each in kept if math.isfinite(each))])
    return least, top, top < largest


def with_headroom(low: float, high: float) -> tuple[float, float]:
    """Limits with room for a text at the top."""
    low, high = padded(low, high)
    return low, high + 0.12 * (high - low)


def log_range(low: float, high: float, below: float = 0.06, above: float = 0.06) -> tuple[float, float]:
    """Limits of a logarithmic axis, with room below and above as shares of its length, at least a fifth of a decade."""
    length = max(decades(low, high), 0.2)
    return low * 10.0 ** (-below * length), high * 10.0 ** (above * length)


def counts_from_zero(last: int) -> tuple[float, float]:
    """Limits of an axis of counts from 0 to `last`."""
    return -0.012 * last, 1.02 * last
