"""Figures of a page, drawn by Bokeh: quiet axes, text in one size, nothing that needs the network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.embed import json_item
from bokeh.models import (
    AllLabels,
    BasicTicker,
    BasicTickFormatter,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    LinearAxis,
    LogTicker,
    LogTickFormatter,
    NoOverlap,
    NumeralTickFormatter,
    PlainText,
    PrintfTickFormatter,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation, Label, Span
from bokeh.plotting import figure
from bokeh.resources import Resources

from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import decades, log_ticks, wrapped
from streamkernel.report.figures.palette import GRID, INK, PAPER, RULE, dark
from streamkernel.type_aliases import Fields, Untyped

_RIGHT = "right"  # name of the range of the second vertical axis
_TURNED = 28  # characters of the names below an axis, from which they are turned: those that a phone has room for
_FEW = 6
_WIDEST_LABEL, _BESIDE_NAMES = 40, 28  # characters of a line below a figure of a phone's width, and beside its names
_FONT = '"Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif'  # that of the page around the figures
_COLOUR = re.compile('"(#[0-9a-f]{6})"')
_MARKERS = {"circle": "circle", "dash": "dash", "triangle": "inverted_triangle"}


def scripts_and_elements(figures: Sequence[plot.Figure]) -> tuple[list[str], dict[str, str]]:
    """The scripts that draw the figures (library first), and an element of HTML for each figure, by its name."""
    if not figures:
        return [], {}
    items = [(f"{each.name}-figure", json_item(drawn(each))) for each in figures]
    # Only the core library: no widgets, no WebGL, and no typesetter, which would be fetched from the network.
    library = Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw
    elements = {
        each.name: f'<div class="drawing" id="{escape(id)}"></div>'
        for each, (id, _) in zip(figures, items, strict=True)
    }
    return ["\n".join(library), _embedding(items)], elements


def _embedding(items: Sequence[tuple[str, Untyped]]) -> str:
    """The script that draws figures of JSON, each in the element of its identifier."""
    # No text in a script can end it, or begin another.
    text = json.dumps(items, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    colours = {colour: dark(colour) for colour in sorted(set(_COLOUR.findall(text)))}
    code = files("streamkernel.report").joinpath("embedding.js").read_text(encoding="utf-8")
    return code.replace("DARK;", f"{json.dumps(colours)};", 1).replace("ITEMS,", f"{text},", 1)


def drawn(described: plot.Figure) -> figure:
    """One figure.

    Texts are `PlainText`, because Bokeh reads ``$$...$$`` in a str as TeX, and would fetch a typesetter for it.
    """
    x, y = described.x, described.y
    # A dictionary, because Bokeh's types lack half of the arguments of `figure`.
    options: Fields = {
        "height": described.height,
        "sizing_mode": "stretch_width",
        "x_range": _range(x),
        "y_range": _range(y),
        "x_axis_type": "log" if x.log else "linear",
        "y_axis_type": "log" if y.log else "linear",
        "tools": "box_zoom,reset,save",
        "active_drag": None,
        "toolbar_location": "above",
        "toolbar_inner": True,
        # The paper of the panel shows through, in either theme. White is Bokeh's own choice: the JSON leaves it out,
        # and what is not there cannot be made dark.
        "background_fill_color": None,
        "border_fill_color": None,
        "outline_line_color": None,
        "min_border_right": 14,
        "min_border_top": 4,
    }
    canvas = figure(**options)
    canvas.toolbar.logo = None
    canvas.toolbar.autohide = True
    canvas.xgrid.grid_line_color = None
    canvas.ygrid.grid_line_color = None if y.names else GRID
    _dress(canvas.xaxis, x)
    _dress(canvas.yaxis, y)
    if y.names and not x.names:
        _list_names(canvas, x.label)
    if x.names and max(map(len, x.names)) * len(x.names) > _TURNED:
        canvas.xaxis.major_label_orientation = 0.8
    if described.right is not None:
        canvas.extra_y_ranges = {_RIGHT: _range(described.right)}
        axis = LinearAxis(y_range_name=_RIGHT)
        _dress(axis, described.right)
        canvas.add_layout(axis, "right")
    hovers: dict[tuple[Untyped, ...], list[Any]] = {}
    for series in described.series:
        renderer = _draw(series, canvas)
        mode = "vline" if isinstance(series, plot.Line) and series.across else "mouse"
        if isinstance(series, plot.Lines):
            hovers.setdefault((mode, (("@name", "$y{0.[0000]}"), (x.label.lower(), "$x{0}"))), []).append(renderer)
        elif series.hover:
            hovers.setdefault((mode, _tooltips(series)), []).append(renderer)
    # Series with the same fields share a tool: each tool has a button.
    for (mode, tooltips), renderers in hovers.items():
        printed: Untyped = {shown[: shown.index("{")]: "printf" for _, shown in tooltips if "{%" in shown}
        canvas.add_tools(
            HoverTool(
                renderers=renderers, tooltips=list(tooltips), mode=mode, formatters=printed, attachment="above"
            )
        )  # fmt: skip
    return canvas


def _range(axis: plot.Axis) -> Range1d:
    return Range1d(start=axis.limits[0], end=axis.limits[1])


# --- axes -------------------------------------------------------------------------------------------------------------


def _dress(axis: Untyped, described: plot.Axis) -> None:
    """Set label, ticks, type and lines of an axis."""
    axis.axis_label = PlainText(text=wrapped(described.label, _WIDEST_LABEL)) if described.label else None
    axis.axis_label_text_font = axis.major_label_text_font = _FONT
    # A figure is as wide as its reader's window: on a phone every other number may have to go.
    axis.major_label_policy = NoOverlap(min_distance=6)
    axis.axis_label_text_font_style = "normal"
    axis.axis_label_text_font_size = "12px"
    axis.axis_label_text_color = described.colour
    axis.axis_label_standoff = 8
    axis.major_label_text_font_size = "11px" if described.numbered else "0px"
    axis.major_label_text_color = described.colour
    axis.axis_line_color = RULE
    axis.major_tick_line_color = RULE if described.numbered else None
    axis.major_tick_in = 0
    axis.major_tick_out = 4
    axis.minor_tick_line_color = None
    if described.log:
        _log_ticks(axis, *described.limits)
    else:
        axis.formatter = _number_formatter(*described.limits)
        axis.ticker = BasicTicker(min_interval=1 if described.whole else 0)
    if described.percent and described.log:
        axis.formatter = PrintfTickFormatter(format="%g %%")
    if described.ticks:
        axis.ticker = FixedTicker(ticks=list(described.ticks))
    if described.labels:
        texts = [PlainText(text=label) for label in described.labels]
        axis.major_label_overrides = dict(zip(map(float, described.ticks), texts, strict=True))
    if described.names:
        # By position, so that equal names stay apart.
        axis.ticker = FixedTicker(ticks=list(range(len(described.names))))
        axis.major_label_overrides = {index: PlainText(text=name) for index, name in enumerate(described.names)}
        axis.major_label_policy = AllLabels()
        axis.major_tick_line_color = None
        axis.axis_line_color = None


def _list_names(canvas: figure, label: str) -> None:
    """A list of names with their values: there is nothing to zoom into."""
    canvas.toolbar_location = None
    names: Untyped = canvas.yaxis
    names.major_label_text_font_size = "12px"
    names.major_label_text_color = INK
    names.axis_line_color = RULE
    numbers: Untyped = canvas.xaxis
    if label:
        numbers.axis_label = PlainText(text=wrapped(label, _BESIDE_NAMES))
    numbers.axis_line_color = None


def _number_formatter(low: float, high: float) -> Untyped:
    """Thousands separators, or powers of ten if the numbers are very large or small."""
    largest, span = max(abs(low), abs(high)), high - low
    if largest >= 1e8 or span < 1e-3:
        return BasicTickFormatter()
    places = max(0, math.ceil(1 - math.log10(span))) if span > 0.0 else 0
    return NumeralTickFormatter(format="0,0" + (f".[{'0' * places}]" if places else ""))


def _log_ticks(axis: Untyped, low: float, high: float) -> None:
    """Ticks at powers of ten, or plain numbers if the axis is shorter than two of them."""
    if decades(low, high) >= 2.0:
        axis.ticker = LogTicker(desired_num_ticks=6, num_minor_ticks=0)
        axis.formatter = LogTickFormatter(min_exponent=0)
    else:
        ticks = log_ticks(low, high)
        axis.ticker = FixedTicker(ticks=ticks) if len(ticks) > 1 else BasicTicker(desired_num_ticks=5)
        axis.formatter = PrintfTickFormatter(format="%.4g")


# --- series -----------------------------------------------------------------------------------------------------------


@singledispatch
def _draw(series: plot.Series, canvas: figure) -> Untyped:
    """Draw a series; the result is what the pointer meets."""
    raise TypeError(series)


def _source(series: Untyped, *names: str, **more: Untyped) -> tuple[ColumnDataSource, list[Any]]:
    """The columns of a series, and its coordinates: names of columns, or numbers that all points share."""
    found = {name: np.asarray(getattr(series, name)) for name in names}
    data = {name: _column(each) for name, each in found.items() if each.ndim} | more
    for number, field in enumerate(series.hover):
        if _coordinate(series, field) is None:
            data[f"field{number}"] = _column(np.asarray(field[1]))
    return ColumnDataSource(data), [name if each.ndim else float(each) for name, each in found.items()]


def _column(values: np.ndarray) -> Untyped:
    # The binary form of a few numbers is longer than their text.
    return values.tolist() if values.dtype.kind == "U" or len(values) < _FEW else values


def _coordinate(series: Untyped, field: plot.Field) -> str | None:
    """The coordinate whose values a field shows, if any: these are not stored twice."""
    values = np.asarray(field[1])
    if values.dtype.kind == "U":
        return None
    names = ("x", "y", "left", "right", "low", "high", "top")
    return next((name for name in names if np.array_equal(getattr(series, name, ""), values)), None)


def _tooltips(series: Untyped) -> tuple[tuple[str, str], ...]:
    """Labels and templates; Bokeh escapes values that it takes from a column."""
    found = []
    for number, field in enumerate(series.hover):
        name = _coordinate(series, field) or f"field{number}"
        found.append((field[0], f"@{name}{{{field[2]}}}" if len(field) > 2 else f"@{name}"))
    return tuple(found)


def _where(series: plot.Series) -> Fields:
    return ({"y_range_name": _RIGHT} if series.on_right else {}) | ({"level": "underlay"} if series.below else {})


def _colour(source: ColumnDataSource, name: str, colour: Untyped) -> Untyped:
    """A colour for all points, or the name of the column with one for each."""
    if isinstance(colour, str) or colour is None:
        return colour
    source.data[name] = list(colour)
    return name


@_draw.register
def _line(series: plot.Line, canvas: figure) -> Untyped:
    source, (x, y) = _source(series, "x", "y")
    style: Fields = {"line_color": series.colour, "line_width": series.width, "line_dash": list(series.dash)}
    style |= _where(series)
    line = canvas.step(x, y, source=source, mode="after", **style) if series.stepped else (
        canvas.line(x, y, source=source, **style)
    )  # fmt: skip
    if not series.rings:
        return line
    rings = canvas.scatter(
        x, y, source=source, size=series.rings, fill_color=PAPER, line_color=series.colour, line_width=1.5
    )
    return line if series.across else rings


@_draw.register
def _lines(series: plot.Lines, canvas: figure) -> Untyped:
    source = ColumnDataSource({"x": [series.x] * len(series.y), "y": list(series.y), "name": list(series.names)})
    return canvas.multi_line(
        "x", "y", source=source, line_color=series.colour, line_width=series.width, line_alpha=series.opacity
    )


@_draw.register
def _points(series: plot.Points, canvas: figure) -> Untyped:
    source, (x, y) = _source(series, "x", "y")
    return canvas.scatter(
        x, y, source=source, marker=_MARKERS[series.marker], size=series.size,
        fill_color=_colour(source, "fill", series.fill), fill_alpha=series.opacity, line_color=series.edge,
        line_width=series.edge_width,
    )  # fmt: skip


@_draw.register
def _boxes(series: plot.Boxes, canvas: figure) -> Untyped:
    source, (left, right, bottom, top) = _source(series, "left", "right", "bottom", "top")
    return canvas.quad(
        left=left, right=right, bottom=bottom, top=top, source=source, fill_color=_colour(source, "fill", series.fill),
        fill_alpha=series.opacity, line_color=series.edge, line_width=series.edge_width,
        **_where(series),
    )  # fmt: skip


@_draw.register
def _segments(series: plot.Segments, canvas: figure) -> Untyped:
    source, (x, low, high) = _source(series, "x", "low", "high")
    ends = (x, low, x, high) if series.along == "y" else (low, x, high, x)
    return canvas.segment(
        *ends, source=source, line_color=series.colour, line_width=series.width, line_alpha=series.opacity
    )


@_draw.register
def _area(series: plot.Area, canvas: figure) -> Untyped:
    source, ends = _source(series, "x", "low", "high")
    return canvas.varea(*ends, source=source, fill_color=series.colour, level="underlay")


@_draw.register
def _zone(series: plot.Zone, canvas: figure) -> None:
    low, high = ("left", "right") if series.axis == "x" else ("bottom", "top")
    ends: Fields = {low: series.low, high: series.high}
    band = BoxAnnotation(
        **{name: end for name, end in ends.items() if end is not None},
        fill_color=series.colour, fill_alpha=1.0, line_color=None,
    )  # fmt: skip
    band.level = "image"
    canvas.add_layout(band)


@_draw.register
def _rule(series: plot.Rule, canvas: figure) -> None:
    canvas.add_layout(
        Span(
            dimension="height" if series.axis == "x" else "width", location=series.at, line_color=series.colour,
            line_dash=list(series.dash), line_width=series.width,
        )
    )  # fmt: skip


@_draw.register
def _texts(series: plot.Texts, canvas: figure) -> None:
    source, (x, y) = _source(series, "x", "y", text=list(series.text))
    canvas.text(
        x,
        y, text="text", source=source, x_offset=series.offset, text_baseline="middle",
        text_font_size=f"{series.size:g}px", text_color=_colour(source, "colour", series.colour),
        text_align=series.align, text_font=value(_FONT),
    )  # fmt: skip


@_draw.register
def _note(series: plot.Note, canvas: figure) -> None:
    canvas.add_layout(
        Label(
            x=series.x, y=series.y, text=PlainText(text=series.text), x_offset=series.offset[0],
            y_offset=series.offset[1], text_font_size=f"{series.size:g}px", text_color=series.colour,
            text_align=series.align, text_baseline=series.baseline, text_font=_FONT, background_fill_color=PAPER,
            background_fill_alpha=0.0 if series.plain else 0.85,
        )
    )  # fmt: skip
