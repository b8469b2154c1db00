"""Colours of the page, light and dark, and of the picture; steps of a scale of one colour.

Colour-blind readers and grey print can tell blue from orange; everything else is ink on paper.
"""

from __future__ import annotations

import math

INK = "#1f2a37"
MUTED = "#5b6878"
FAINT = "#94a0ae"
RULE = "#d9dfe6"
GRID = "#edf0f4"
BAND = "#f5f7fa"
PAPER = "#ffffff"
BLUE = "#2a5c8f"
PALE_BLUE = "#a9c3dd"
ORANGE = "#c8641b"
GREY = "#b6bfca"

# Colours of lines side by side; they differ in lightness too, so that most pairs survive grey print.
_LINES = (BLUE, ORANGE, "#3a9d8f", "#8d4a9e", "#b3941c", "#7c2f2f", "#6fa8dc", "#5b6878")
TEAL, PURPLE = _LINES[2:4]
_DASHES: tuple[tuple[int, ...], ...] = ((), (8, 3), (3, 2))
DASHED, DOTTED = (5, 4), (2, 3)
MOST_LINES = len(_LINES) * len(_DASHES)


def blend(share: float, low: str = "#f4f7fb", high: str = BLUE) -> str:
    """The colour at a share (0 to 1) of the way from `low` to `high`."""
    share = min(max(share, 0.0), 1.0)
    ends = [(int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in ends)


def line_style(index: int) -> tuple[str, tuple[int, ...]]:
    """Colour and dashes (empty: solid) of a line by its index; no two indices below `MOST_LINES` give the same."""
    return _LINES[index % len(_LINES)], _DASHES[index // len(_LINES) % len(_DASHES)]


def shade(points: int) -> float:
    """Opacity of each of `points` points: a single one is visible, and a crowd does not become a blot."""
    return min(max(14.0 / math.sqrt(max(points, 1)), 0.28), 0.75)


_DARK = {PAPER: "#1a222c", INK: "#e6ebf1", GRID: "#242e3a", RULE: "#2d3845", BAND: "#202a35"}


def dark(colour: str) -> str:
    """The colour of a dark page in place of one of a light page: of the same hue, and as light as that was dark.

    Paper, ink and lines of the background have colours of their own. Of any other all three parts move by one amount,
    from the lightness l to ``0.13 + 0.8 (1 - l)``, between those of dark paper and of light ink.
    """
    if colour in _DARK:
        return _DARK[colour]
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    lightness = 0.5 * (min(parts) + max(parts))
    moved = (part + 0.13 + 0.8 * (1.0 - lightness) - lightness for part in parts)
    return "#" + "".join(f"{round(255.0 * min(max(part, 0.0), 1.0)):02x}" for part in moved)
