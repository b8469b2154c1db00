"""Costs of the fit: time of each sweep, memory promised and measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.byte_counts import format_bytes
from streamkernel.records.basis import SweepRecord
from streamkernel.report.facts.fit import Absent, Memory, Sweeps
from streamkernel.report.figures import plot
from streamkernel.report.figures.palette import BLUE, GREY, INK, ORANGE, PALE_BLUE, PAPER
from streamkernel.report.text import duration, percent, plain, plural, shortened, significant

_NAMED_SWEEPS = 16
_BETWEEN = "between sweeps"


@plot.drawing("time", "Time")
def time_figure(times: Sweeps, between: str = "picking, algebra, check") -> plot.Figure:
    """Seconds of each sweep, and of the work between sweeps; `between` names this work."""
    resumed = sum(sweep.resumed for sweep in times.sweeps)
    caption = (
        f"{duration(times.total)} in all for {plural(len(times.sweeps), 'sweep')}, "
        f"{duration(times.between)} of it between them."
    )
    if len(times.sweeps) > 1 and times.each is not None:
        caption += f" A sweep took {duration(times.each)} on average."
    if resumed:
        caption += (
            f" {plural(resumed, 'sweep')} {'was' if resumed == 1 else 'were'} taken from the checkpoint of an earlier "
            "run."
        )
    keys = [(BLUE, "box", "sweep over the rows")]
    if resumed:
        keys.append((ORANGE, "box", "taken from a checkpoint"))
    colours = [ORANGE if sweep.resumed else BLUE for sweep in times.sweeps]
    seconds = [sweep.seconds for sweep in times.sweeps]
    if len(times.sweeps) > _NAMED_SWEEPS:
        return _numbered(times, seconds, colours, caption, keys)
    keys.append((GREY, "box", f"{_BETWEEN}: {between}"))
    names = [plain(sweep.name, 40) for sweep in times.sweeps] + [_BETWEEN]
    seconds, colours = [*seconds, times.between], [*colours, GREY]
    unit, label = _time_unit(max(seconds))
    texts = [duration(each) for each in seconds]
    fields: list[plot.Field] = [
        ("sweep", names),
        ("time", texts),
        ("", [_pace(sweep) for sweep in times.sweeps] + [between]),
    ]
    return _bars(caption, keys, names, [each / unit for each in seconds], texts, colours, label, fields)


def _pace(sweep: SweepRecord) -> str:
    """Rows of a sweep, and rows per second."""
    if sweep.resumed or sweep.seconds <= 0.0:
        return f"{plural(sweep.rows, 'row')}, from a checkpoint" if sweep.resumed else plural(sweep.rows, "row")
    pace = sweep.rows / sweep.seconds
    text = f"{significant(pace / 1e6)} million" if pace >= 1e6 else significant(pace)
    return f"{plural(sweep.rows, 'row')}, {text} a second"


def _time_unit(longest: float) -> tuple[float, str]:
    """Unit for an axis that ends at `longest` seconds: its length in seconds, and its name."""
    if longest >= 7200.0:
        return 3600.0, "Hours"
    if longest >= 300.0:
        return 60.0, "Minutes"
    return (1.0, "Seconds") if longest >= 1.0 else (1e-3, "Milliseconds")


def _bars(
    caption: str,
    keys: Sequence[plot.Key],
    names: list[str],
    values: list[float],
    texts: list[str],
    colours: list[str],
    label: str,
    fields: Sequence[plot.Field],
) -> plot.Figure:
    """Horizontal bars, the first at the top, with their numbers at the end."""
    y = np.arange(len(names))
    # A bar that is too short to be seen still shows its colour in its number.
    inks = [ORANGE if colour == ORANGE else INK for colour in colours]
    bars = plot.Boxes(0.0, values, y - 0.31, y + 0.31, fill=colours, edge=None, hover=fields)
    # The texts stand to the right of the bars, the longest bar included.
    x = plot.Axis(label, (0.0, 1.45 * (max(values) or 1.0)))
    series = [bars, plot.Texts(values, y, texts, inks, offset=7.0)]
    return plot.Figure(caption, x, _list(names), series, keys, height=70 + 34 * max(len(names), 3))


def _list(names: Sequence[str]) -> plot.Axis:
    """An axis of names, the first at the top."""
    return plot.Axis("", (len(names) - 0.4, -0.6), names=tuple(names))


def _numbered(
    times: Sweeps, seconds: list[float], colours: list[str], caption: str, keys: list[plot.Key]
) -> plot.Figure:
    """Many sweeps: one thin bar for each, in their order."""
    k, longest = len(seconds), max(seconds) or 1.0
    unit, label = _time_unit(longest)
    number, half = np.arange(1, k + 1), 0.45 if k < 200 else 0.5
    fields: list[plot.Field] = [
        ("sweep", [f"{index}: {plain(sweep.name)}" for index, sweep in enumerate(times.sweeps, 1)]),
        ("time", [duration(each) for each in seconds]),
    ]
    heights = np.array(seconds) / unit
    bars = plot.Boxes(number - half, number + half, 0.0, heights, colours, edge=None, hover=fields)
    x, y = plot.Axis("Sweep", (0.5, k + 0.5), whole=True), plot.Axis(f"{label} a sweep", (0.0, 1.08 * longest / unit))
    return plot.Figure(caption, x, y, [bars], keys, height=280)


@plot.drawing("memory", "Memory")
def memory_figure(memory: Memory) -> plot.Figure:
    """Memory promised before the fit, and memory measured."""
    share = memory.measured / memory.promised
    colour = BLUE if share <= 1.0 else ORANGE
    unit, label = (1e9, "Gigabytes") if max(memory.promised, memory.measured) >= 2e9 else (1e6, "Megabytes")
    caption = (
        "Resident memory of all processes together at its peak, against the bound that the plan gave before any row "
        "was read."
    )
    if share > 1.0:
        caption += f" The bound was exceeded by {format_bytes(memory.measured - memory.promised)}."
    keys = (PALE_BLUE, "box", "promised"), (colour, "box", f"measured, {percent(share, 2)} of it")
    names, sizes = ["promised", "measured"], [memory.promised, memory.measured]
    texts = [format_bytes(size) for size in sizes]
    fields: list[plot.Field] = [
        ("memory", names),
        ("size", texts),
        ("", ["before the fit, by the plan", "all processes together, at the peak"]),
    ]
    return _bars(caption, keys, names, [size / unit for size in sizes], texts, [PALE_BLUE, colour], label, fields)


@plot.drawing("sweeps", "Sweeps and seconds")
def sweeps_figure(times: Sequence[Sweeps | Absent], labels: Sequence[str]) -> plot.Figure | Absent:
    """Sweeps and seconds of several factors: one bar for each factor, divided into its sweeps."""
    shown = [(label, spent) for label, spent in zip(labels, times, strict=True) if isinstance(spent, Sweeps)]
    if not shown:
        return next(each for each in times if isinstance(each, Absent))
    k, longest = len(shown), max(spent.total for _, spent in shown) or 1.0
    unit, label = _time_unit(longest)
    pieces: list[tuple[int, float, float, str, str, str]] = []  # factor, start, seconds, colour, name, detail
    for y, (_, spent) in enumerate(shown):
        at = 0.0
        for index, sweep in enumerate(spent.sweeps):
            colour = ORANGE if sweep.resumed else (BLUE, PALE_BLUE)[index % 2]
            pieces.append((y, at, sweep.seconds, colour, f"{index + 1}: {plain(sweep.name)}", _pace(sweep)))
            at += sweep.seconds
        pieces.append((y, at, spent.between, GREY, _BETWEEN, "picking and algebra"))
    factor, start, seconds, colours, names, details = zip(*pieces, strict=True)
    rows, left, right = np.array(factor), np.array(start) / unit, np.add(start, seconds) / unit
    fields: list[plot.Field] = [("sweep", names), ("time", [duration(each) for each in seconds]), ("", details)]
    series = [
        plot.Boxes(left, right, rows - 0.3, rows + 0.3, colours, PAPER, 0.5, hover=fields),
        plot.Texts([s.total / unit for _, s in shown], np.arange(k), [_spent_text(s) for _, s in shown], offset=7.0),
    ]
    keys = [(BLUE, "box", "sweeps over the rows, two blues in turn"), (GREY, "box", _BETWEEN)]
    if any(sweep.resumed for _, spent in shown for sweep in spent.sweeps):
        keys.insert(1, (ORANGE, "box", "taken from a checkpoint"))
    caption = (
        "From the first read to the last column written. Seconds a sweep are the mean over the sweeps of this run, "
        "without those from a checkpoint."
    )
    # The text stands to the right of the longest bar.
    x, y_axis = plot.Axis(label, (0.0, 1.55 * longest / unit)), _list([shortened(label, 40) for label, _ in shown])
    return plot.Figure(caption, x, y_axis, series, keys, height=70 + 40 * max(k, 3))


def _spent_text(spent: Sweeps) -> str:
    """ "6 sweeps, 12 s, 1.8 s a sweep" """
    text = f"{plural(len(spent.sweeps), 'sweep')}, {duration(spent.total)}"
    return text if spent.each is None else f"{text}, {duration(spent.each)} a sweep"
