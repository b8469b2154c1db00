"""Costs of the fit: time of each sweep, memory promised and measured."""

from __future__ import annotations

from bokeh.core.properties import value
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from streamkernel.engine import format_bytes
from streamkernel.report.bokeh_renderer import FONT, hover, name_ticks, new_plot
from streamkernel.report.facts.fit import Absent, Memory, Sweep, Sweeps
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, GREY, INK, ORANGE, PALE_BLUE
from streamkernel.report.text import duration, percent, plural, shortened, significant

__all__ = ["memory_panel", "pace", "time_panel", "time_unit"]

_NAMED_SWEEPS = 16
_BETWEEN = "between sweeps"


def time_panel(times: Sweeps | Absent, between: str = "picking, algebra, check") -> Panel:
    """Seconds of each sweep, and of the work between sweeps; `between` names this work."""
    title = "Time"
    if isinstance(times, Absent):
        return Panel("time", title, reason=times.reason)
    resumed = sum(sweep.resumed for sweep in times.sweeps)
    keys = [Key(BLUE, "box", "sweep over the rows")]
    if resumed:
        keys.append(Key(ORANGE, "box", "taken from a checkpoint"))
    keys.append(Key(GREY, "box", f"between sweeps: {between}"))
    if len(times.sweeps) > _NAMED_SWEEPS:
        keys.pop()
    caption = (
        f"{duration(times.total)} in all for {plural(len(times.sweeps), 'sweep')}, "
        f"{duration(times.between)} of it between them."
    )
    if len(times.sweeps) > 1 and times.each is not None:
        caption += f" A sweep took {duration(times.each)} on average."
    if resumed:
        caption += f" {plural(resumed, 'sweep')} of an earlier run {'was' if resumed == 1 else 'were'} not made again."
    plot = _named(times, between) if len(times.sweeps) <= _NAMED_SWEEPS else _numbered(times)
    return Panel("time", title, caption, plot, keys=tuple(keys))


def _named(times: Sweeps, between: str) -> figure:
    names = [shortened(sweep.name, 40) for sweep in times.sweeps] + [_BETWEEN]
    seconds = [sweep.seconds for sweep in times.sweeps] + [times.between]
    colours = [ORANGE if sweep.resumed else BLUE for sweep in times.sweeps] + [GREY]
    details = [pace(sweep) for sweep in times.sweeps] + [between]
    return _bars(names, seconds, [duration(spent) for spent in seconds], colours, details, *time_unit(max(seconds)))


def pace(sweep: Sweep) -> str:
    """Rows of a sweep, and rows per second."""
    if sweep.resumed or sweep.seconds <= 0.0:
        return f"{plural(sweep.rows, 'row')}, from a checkpoint" if sweep.resumed else plural(sweep.rows, "row")
    pace = sweep.rows / sweep.seconds
    words = f"{significant(pace / 1e6)} million" if pace >= 1e6 else significant(pace)
    return f"{plural(sweep.rows, 'row')}, {words} a second"


def time_unit(longest: float) -> tuple[float, str]:
    """Unit for an axis that ends at `longest` seconds: its length in seconds, and its name."""
    if longest >= 7200.0:
        return 3600.0, "Hours"
    if longest >= 300.0:
        return 60.0, "Minutes"
    return (1.0, "Seconds") if longest >= 1.0 else (1e-3, "Milliseconds")


def _bars(
    names: list[str],
    values: list[float],
    words: list[str],
    colours: list[str],
    details: list[str],
    unit: float,
    label: str,
) -> figure:
    """Horizontal bars, the first at the top, with their numbers at the end."""
    k = len(names)
    source = ColumnDataSource(
        {
            "y": list(range(k)),
            "value": [value / unit for value in values],
            "words": words,
            "colour": colours,
            # A bar that is too short to be seen still shows its colour in its number.
            "ink": [ORANGE if colour == ORANGE else INK for colour in colours],
            "name": names,
            "detail": details,
        }
    )
    longest = max(values) / unit or 1.0
    # The words stand to the right of the bars, the longest bar included.
    plot = new_plot(label, "", (0.0, 1.45 * longest), (k - 0.4, -0.6), height=70 + 34 * max(k, 3))
    plot.yaxis.axis_label = None
    plot.toolbar_location = None
    bars = plot.hbar("y", height=0.62, right="value", source=source, fill_color="colour", line_color=None)
    hover(plot, [bars], [("@name", "@words"), ("", "@detail")])
    plot.text(
        "value", "y", text="words", source=source, x_offset=7, text_baseline="middle", text_font=value(FONT),
        text_font_size="12px", text_color="ink",
    )  # fmt: skip
    name_ticks(plot.yaxis, names)
    plot.yaxis.major_label_text_font_size = "12px"
    plot.yaxis.major_label_text_color = INK
    plot.yaxis.major_tick_line_color = None
    plot.ygrid.grid_line_color = None
    plot.xaxis.axis_line_color = None
    return plot


def _numbered(times: Sweeps) -> figure:
    """Many sweeps: one thin bar for each, in their order."""
    k = len(times.sweeps)
    longest = max(sweep.seconds for sweep in times.sweeps) or 1.0
    unit, label = time_unit(longest)
    plot = new_plot("Sweep", f"{label} a sweep", (0.5, k + 0.5), (0.0, 1.08 * longest / unit), height=280)
    source = ColumnDataSource(
        {
            "number": list(range(1, k + 1)),
            "value": [sweep.seconds / unit for sweep in times.sweeps],
            "words": [duration(sweep.seconds) for sweep in times.sweeps],
            "name": [sweep.name for sweep in times.sweeps],
            "colour": [ORANGE if sweep.resumed else BLUE for sweep in times.sweeps],
        }
    )
    bars = plot.vbar("number", width=0.9 if k < 200 else 1.0, top="value", source=source, color="colour", line_width=0)
    hover(plot, [bars], [("sweep", "@number{0,0}: @name"), ("time", "@words")])
    return plot


def memory_panel(memory: Memory | Absent) -> Panel:
    """Memory promised before the fit, and memory measured."""
    title = "Memory"
    if isinstance(memory, Absent):
        return Panel("memory", title, reason=memory.reason)
    share = memory.measured / memory.promised
    kept = share <= 1.0
    unit, label = (1e9, "Gigabytes") if max(memory.promised, memory.measured) >= 2e9 else (1e6, "Megabytes")
    plot = _bars(
        ["promised", "measured"],
        [float(memory.promised), float(memory.measured)],
        [format_bytes(memory.promised), format_bytes(memory.measured)],
        [PALE_BLUE, BLUE if kept else ORANGE],
        ["before the fit, by the plan", "all processes together, at the peak"],
        unit,
        label,
    )
    caption = (
        "Resident memory of all processes together at its peak, against the bound that the plan gave before any row "
        "was read."
    )
    if not kept:
        caption += f" The bound was exceeded by {format_bytes(memory.measured - memory.promised)}."
    keys = (
        Key(PALE_BLUE, "box", "promised"),
        Key(BLUE if kept else ORANGE, "box", f"measured, {percent(share, 2)} of it"),
    )
    return Panel("memory", title, caption, plot, keys=keys)
