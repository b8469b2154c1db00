"""Bokeh figures in the style of this report: quiet axes, text in one size, nothing that needs the network."""

from __future__ import annotations

import math
from typing import Any, Literal

from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    FixedTicker,
    HoverTool,
    LinearAxis,
    LogTicker,
    LogTickFormatter,
    NumeralTickFormatter,
    PlainText,
    PrintfTickFormatter,
    Range1d,
    TickFormatter,
)
from bokeh.models.annotations import BoxAnnotation, Label, Span
from bokeh.plotting import figure

from streamkernel.report.figures.axes import decades, log_ticks
from streamkernel.report.figures.palette import BAND, GRID, INK, MUTED, ORANGE, PAPER, RULE

__all__ = [
    "FONT",
    "dashed",
    "hover",
    "name_ticks",
    "new_plot",
    "note",
    "percent_axis",
    "second_axis",
    "vacuous_zone",
]

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"


def new_plot(
    x_label: str,
    y_label: str,
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    height: int = 330,
    x_log: bool = False,
    y_log: bool = False,
) -> figure:
    """An empty figure between the given limits.

    Labels may hold text of the user. They are `PlainText`, because Bokeh reads ``$$...$$`` in a str as TeX, and would
    fetch a typesetter for it.
    """
    # A dictionary, because Bokeh's types lack half of the arguments of `figure`.
    options: dict[str, Any] = {
        "height": height,
        "sizing_mode": "stretch_width",
        "x_range": _limits(x),
        "y_range": _limits(y),
        "x_axis_type": "log" if x_log else "linear",
        "y_axis_type": "log" if y_log else "linear",
        "tools": "box_zoom,reset,save",
        "active_drag": None,
        "toolbar_location": "above",
        "toolbar_inner": True,
        "background_fill_color": PAPER,
        "border_fill_color": PAPER,
        "outline_line_color": None,
        "min_border_right": 14,
        "min_border_top": 4,
    }
    plot = figure(**options)
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.xgrid.grid_line_color = None
    plot.ygrid.grid_line_color = GRID
    for axis, label in ((plot.xaxis, x_label), (plot.yaxis, y_label)):
        axis.axis_label = PlainText(text=label)
        dress_axis(axis)
    for axis, is_log, (low, high) in ((plot.xaxis, x_log, x), (plot.yaxis, y_log, y)):
        if is_log:
            set_log_axis(axis, low, high)
        else:
            axis.formatter = linear_formatter(low, high)
    return plot


def _limits(ends: tuple[float, float]) -> Range1d:
    return Range1d(start=ends[0], end=ends[1])


def dress_axis(axis: Any, colour: str = MUTED) -> None:
    """Set the type and the lines of an axis."""
    axis.axis_label_text_font = FONT
    axis.axis_label_text_font_style = "normal"
    axis.axis_label_text_font_size = "12px"
    axis.axis_label_text_color = colour
    axis.axis_label_standoff = 8
    axis.major_label_text_font = FONT
    axis.major_label_text_font_size = "11px"
    axis.major_label_text_color = colour
    axis.axis_line_color = RULE
    axis.major_tick_line_color = RULE
    axis.major_tick_in = 0
    axis.major_tick_out = 4
    axis.minor_tick_line_color = None


def linear_formatter(low: float, high: float) -> TickFormatter:
    """Ticks with thousands separators, or as powers of ten if the numbers are very large or small."""
    largest, span = max(abs(low), abs(high)), high - low
    if largest >= 1e8 or span < 1e-3:
        return BasicTickFormatter()
    places = max(0, math.ceil(1 - math.log10(span))) if span > 0.0 else 0
    return NumeralTickFormatter(format="0,0" + (f".[{'0' * places}]" if places else ""))


def set_log_axis(axis: Any, low: float, high: float) -> None:
    """Ticks at powers of ten, or plain numbers if the axis is shorter than two of them."""
    if decades(low, high) >= 2.0:
        axis.ticker = LogTicker(desired_num_ticks=6, num_minor_ticks=0)
        axis.formatter = LogTickFormatter(min_exponent=0)
    else:
        ticks = log_ticks(low, high)
        axis.ticker = FixedTicker(ticks=ticks) if len(ticks) > 1 else BasicTicker(desired_num_ticks=5)
        axis.formatter = PrintfTickFormatter(format="%.4g")


def percent_axis(axis: Any, low: float, high: float) -> None:
    """Make an axis logarithmic, in percent."""
    set_log_axis(axis, low, high)
    axis.formatter = PrintfTickFormatter(format="%g %%")


def name_ticks(axis: Any, names: list[str]) -> None:
    """Put names at 0, 1, 2, ...: by position, so that equal names stay apart, and as plain text."""
    axis.ticker = FixedTicker(ticks=list(range(len(names))))
    axis.major_label_overrides = {index: PlainText(text=name) for index, name in enumerate(names)}


def second_axis(plot: figure, name: str, label: str, limits: tuple[float, float], colour: str) -> None:
    """Add a second vertical axis, on the right."""
    plot.extra_y_ranges = {name: _limits(limits)}
    axis: Any = LinearAxis(y_range_name=name, axis_label=PlainText(text=label))
    axis.formatter = linear_formatter(*limits)
    dress_axis(axis, colour)
    plot.add_layout(axis, "right")


def hover(
    plot: figure, renderers: list[Any], tooltips: list[tuple[str, str]], mode: Literal["mouse", "vline"] = "mouse"
) -> None:
    """Show values under the pointer; Bokeh escapes values that it takes from a column."""
    plot.add_tools(HoverTool(renderers=renderers, tooltips=tooltips, mode=mode, attachment="above"))


def dashed(plot: figure, dimension: Literal["width", "height"], location: float) -> None:
    """Draw a dashed line across the plot at the ideal value."""
    plot.add_layout(Span(dimension=dimension, location=location, line_color=ORANGE, line_dash=[5, 4], line_width=1.2))


def note(plot: figure, x: float, y: float, text: str, **style: Any) -> None:
    """Write text beside a point."""
    options = {
        "text_font": FONT,
        "text_font_size": "12px",
        "text_color": INK,
        "background_fill_color": PAPER,
        "background_fill_alpha": 0.85,
        **style,
    }
    plot.add_layout(Label(x=x, y=y, text=PlainText(text=text), **options))


def vacuous_zone(plot: figure, last: float, third: int = 2) -> None:
    """Shade the zone in which a bound is 1 or more; its label stands in a third (0, 1, 2) of the axis 0 .. last."""
    band = BoxAnnotation(bottom=1.0, fill_color=BAND, fill_alpha=1.0, line_color=None)
    band.level = "image"
    plot.add_layout(band)
    plot.add_layout(Span(dimension="width", location=1.0, line_color=MUTED, line_dash=[2, 3], line_width=1))
    align, offset = (("left", 2), ("center", 0), ("right", -2))[third]
    note(
        plot, 0.5 * third * last, 1.0, "vacuous above this line", x_offset=offset, y_offset=4, text_align=align,
        text_font_size="11px", text_color=MUTED, background_fill_alpha=0.0,
    )  # fmt: skip
