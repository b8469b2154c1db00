"""The vocabulary of figures: axes, series and notes as data, which any renderer can draw.

Sizes, widths and offsets are in pixels of a page; upward offsets are positive. Texts may hold names of the user: they
are neither markup nor TeX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.report.facts.fit import Absent
from streamkernel.report.figures.palette import BAND, BLUE, DASHED, DOTTED, INK, MUTED, ORANGE, PALE_BLUE, PAPER

Dash = tuple[int, ...]
Colours = str | Sequence[str]  # one for all points, or one for each
XY = Literal["x", "y"]

MOST_FIGURES = 4  # of one kind on a page: those of the first functions or targets

# An entry of the legend: a colour, its form ("line", "dash", "dot", "ring" or "box"), and its meaning.
Key = tuple[str, str, str]
# A line of the text under the pointer: a label, and for each point a text, or a number with its form: "0,0.[00]" as in
# numeral.js, or "%.3g".
Field = tuple[str, ArrayLike] | tuple[str, ArrayLike, str]


@dataclass(frozen=True)
class Axis:
    """An axis with its label and limits; limits in descending order turn it round.

    Parameters
    ----------
    percent : whether the numbers are percentages.
    names : names at 0, 1, 2, ... in place of numbers.
    ticks : places of the ticks; chosen by the renderer if there are none.
    labels : texts at `ticks` in place of numbers, for an axis with a scale of its own.
    numbered : whether numbers are written.
    whole : whether the numbers are counts, between which there is nothing: ticks are whole numbers.
    """

    label: str
    limits: tuple[float, float]
    log: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    numbered: bool = True
    whole: bool = False
    colour: str = MUTED


@dataclass(frozen=True, kw_only=True)
class Series:
    """Base of the marks in a figure.

    Parameters
    ----------
    hover : fields of the point under the pointer.
    on_right : whether y is read on the right axis.
    below : whether other series are drawn over it.
    """

    hover: Sequence[Field] = ()
    on_right: bool = False
    below: bool = False


@dataclass(frozen=True)
class Line(Series):
    """A line through points; `stepped` keeps each value up to the next point.

    Parameters
    ----------
    rings : diameter of a ring at each point; 0 for none.
    across : whether `hover` is of the point above or below the pointer, however far away.
    """

    x: ArrayLike
    y: ArrayLike
    colour: str = BLUE
    width: float = 2.0
    dash: Dash = ()
    rings: float = 0.0
    stepped: bool = False
    across: bool = False


@dataclass(frozen=True)
class Lines(Series):
    """Lines of one colour over the same x: `y` (k, t). The pointer meets the name, x and y of each."""

    x: np.ndarray
    y: np.ndarray
    names: Sequence[str]
    colour: str
    width: float = 2.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Points(Series):
    """Points with a fill and an edge; `marker` is their form."""

    x: ArrayLike
    y: ArrayLike
    fill: Colours = BLUE
    edge: str | None = PAPER
    edge_width: float = 1.5
    size: float = 6.0
    opacity: float = 1.0
    marker: Literal["circle", "dash", "triangle"] = "circle"


@dataclass(frozen=True)
class Boxes(Series):
    """Rectangles: columns, bars and cells. Ends that are numbers are those of all."""

    left: ArrayLike
    right: ArrayLike
    bottom: ArrayLike
    top: ArrayLike
    fill: Colours = PALE_BLUE
    edge: str | None = PAPER
    edge_width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Segments(Series):
    """Straight lines from (x, low) to (x, high); with ``along="x"`` from (low, x) to (high, x)."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    colour: str = PALE_BLUE
    width: float = 3.0
    opacity: float = 1.0
    along: XY = "y"


@dataclass(frozen=True)
class Area(Series):
    """The area between two lines."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    colour: str


@dataclass(frozen=True)
class Zone(Series):
    """The background from `low` to `high` of an axis; None is the end of the axis."""

    axis: XY
    low: float | None
    high: float | None
    colour: str = BAND


@dataclass(frozen=True)
class Rule(Series):
    """A line across the figure, at a value of an axis."""

    axis: XY
    at: float
    colour: str = ORANGE
    dash: Dash = DOTTED
    width: float = 1.0


@dataclass(frozen=True)
class Texts(Series):
    """A text beside, or at, each point."""

    x: ArrayLike
    y: ArrayLike
    text: Sequence[str]
    colour: Colours = INK
    size: float = 12.0
    offset: float = 0.0
    align: Literal["left", "center"] = "left"


@dataclass(frozen=True)
class Note(Series):
    """A text beside one place, in front of all series; `plain` leaves out its white background."""

    x: float
    y: float
    text: str
    colour: str = ORANGE
    offset: tuple[float, float] = (0.0, 0.0)
    align: Literal["left", "center", "right"] = "left"
    baseline: Literal["top", "middle", "bottom", "alphabetic"] = "bottom"
    size: float = 12.0
    plain: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure with its text.

    Parameters
    ----------
    series : in the order in which they are drawn.
    right : a second vertical axis.
    name, title : identifier, the figure's anchor on a page, and heading.
    summary : the caption in a few words, for a picture, which has no captions.
    legend : whether a picture shows the keys, too.
    square : whether a picture gives both axes the same length.
    """

    caption: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    keys: Sequence[Key] = ()
    name: str = ""
    title: str = ""
    right: Axis | None = None
    height: int = 330
    summary: str = ""
    legend: bool = False
    square: bool = False


@dataclass(frozen=True)
class Missing:
    """The reason why a figure is not drawn."""

    title: str
    reason: str


Drawing = Figure | Missing | None  # None: the model has no such thing

_Facts = TypeVar("_Facts")
_More = ParamSpec("_More")


def drawing(
    name: str, title: str
) -> Callable[
    [Callable[Concatenate[_Facts, _More], Figure | Absent]],
    Callable[Concatenate[_Facts | Absent | None, _More], Drawing],
]:
    """Make a function from facts to a figure one that also takes an `Absent`, which becomes a `Missing`, and None.

    The figure gets the `name` and the `title`; the function may return an `Absent`, too.
    """

    def decorate(
        draw: Callable[Concatenate[_Facts, _More], Figure | Absent],
    ) -> Callable[Concatenate[_Facts | Absent | None, _More], Drawing]:
        @wraps(draw)
        def drawn(facts: _Facts | Absent | None, /, *more: _More.args, **named: _More.kwargs) -> Drawing:
            if facts is None:
                return None
            found = facts if isinstance(facts, Absent) else draw(facts, *more, **named)
            if isinstance(found, Absent):
                return Missing(title, found.reason)
            return replace(found, name=name, title=title)

        return drawn

    return decorate


def columns(edges: np.ndarray, heights: ArrayLike, **style: Any) -> Boxes:
    """Columns of a histogram, from zero."""
    return Boxes(edges[:-1], edges[1:], 0.0, heights, **style)


def dot(x: float, y: float, colour: str = ORANGE, size: float = 10.0) -> Points:
    """One large dot: the value that was taken."""
    return Points([x], [y], fill=colour, size=size)


def rings(x: ArrayLike, y: ArrayLike, colour: str = BLUE, size: float = 7.0, **style: Any) -> Points:
    """White points with a coloured edge."""
    return Points(x, y, fill=PAPER, edge=colour, size=size, **style)


def ideal(axis: XY, at: float) -> Rule:
    """A dashed line at the value that would be right."""
    return Rule(axis, at, ORANGE, DASHED, 1.2)
