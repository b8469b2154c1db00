"""Figures of one or several factors: residual trace and compression bound against rank, and costs of the sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from streamkernel.report.bokeh_renderer import FONT, hover, name_ticks, new_plot, percent_axis, vacuous_zone
from streamkernel.report.facts.factors import DELTA, MOST_ENDS, BoundCurve, FactorCurve, PcaCurve
from streamkernel.report.facts.fit import Absent, Sweeps
from streamkernel.report.figures.axes import log_range
from streamkernel.report.figures.costs import pace, time_unit
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, GREY, INK, MUTED, ORANGE, PALE_BLUE, line_style
from streamkernel.report.text import count, duration, percent, plural, shortened, significant

__all__ = ["bound_panel", "residual_panel", "sweeps_panel"]

_MOST_HOVERED = 3  # most lines whose values fit side by side
_HIGHEST = 3.0  # top of the bound's axis, in shares of sup k(x, x): above 1 a bound gives no information


def residual_panel(curves: Sequence[FactorCurve | Absent], pca: PcaCurve | Absent | None, rows: str) -> Panel:
    """Residual trace against rank: a line for each factor, and the optimum if it is known.

    Parameters
    ----------
    curves : curves of the factors, in the order of their colours.
    pca : the optimum; None if no table was given.
    rows : name of the kernel matrix's rows, for the caption.
    """
    title = "Residual trace against rank"
    drawn = [(index, curve) for index, curve in enumerate(curves) if isinstance(curve, FactorCurve)]
    if not drawn:
        return Panel("residual", title, reason=next(c.reason for c in curves if isinstance(c, Absent)))
    n = max(curve.rank for _, curve in drawn)
    optimum = pca.relative[: n + 1] if isinstance(pca, PcaCurve) else None
    least = min([curve.relative.min() for _, curve in drawn] + ([] if optimum is None else [optimum.min()]))
    in_percent = least >= 1e-5
    unit = 100.0 if in_percent else 1.0
    low, high = log_range(unit * float(least), unit, below=0.06, above=0.06)
    label = "Residual trace, " + ("% of the trace" if in_percent else "share of the trace")
    plot = new_plot("Rank (basis functions)", label, (-0.012 * n, 1.02 * n), (low, high), y_log=True, height=400)
    if in_percent:
        percent_axis(plot.yaxis, low, high)
    keys, lines = [], []
    for index, curve in drawn:
        colour, dash = line_style(index)
        lines.append(_line(plot, curve.label, curve.relative, unit, colour, dash))
        if len(curve.ends) <= MOST_ENDS:
            at = list(curve.ends)
            plot.scatter(
                at, unit * curve.relative[at], size=7, fill_color="white", line_color=colour, line_width=1.5
            )  # fmt: skip
        plot.scatter([curve.rank], [unit * curve.left], size=8, fill_color=colour, line_color="white", line_width=1.5)
        left = "nothing but rounding" if curve.vanished else percent(curve.left)
        keys.append(Key(colour, "dash" if dash else "line", f"{curve.label}: {left} left at rank {count(curve.rank)}"))
    if optimum is not None:
        lines.append(_line(plot, "PCA", optimum, unit, INK, [5, 4], 1.5))
        words = f"PCA, the optimum: {percent(float(optimum[-1]))} at rank {count(len(optimum) - 1)}"
        keys.append(Key(INK, "dash", words))
    if any(0 < len(curve.ends) <= MOST_ENDS for _, curve in drawn):
        keys.append(Key(MUTED, "ring", "end of a round"))
    tooltips = [("", "@label"), ("rank", "@size{0,0}"), ("residual trace", "@words")]
    hover(plot, lines, tooltips, mode="vline" if len(lines) <= _MOST_HOVERED else "mouse")
    return Panel("residual", title, _residual_caption([c for _, c in drawn], pca, rows), plot, keys=tuple(keys))


def _line(
    plot: figure, label: str, relative: np.ndarray, unit: float, colour: str, dash: list[int], width: float = 2.0
) -> object:
    source = ColumnDataSource(
        {
            "size": np.arange(len(relative)),
            "value": unit * relative,
            "words": [percent(float(share)) for share in relative],
            "label": [label] * len(relative),
        }
    )
    return plot.line("size", "value", source=source, line_color=colour, line_dash=dash, line_width=width)


def _residual_caption(curves: list[FactorCurve], pca: PcaCurve | Absent | None, rows: str) -> str:
    words = (
        f"What the kernel matrix of {rows} keeps outside the span of the first basis functions, from sums over all "
        "rows: certificates, not estimates."
    )
    busy = [curve.label for curve in curves if len(curve.ends) > MOST_ENDS]
    if busy:
        words += f" {', '.join(busy)}: more than {MOST_ENDS} rounds, not marked."
    floor = max((curve.floor for curve in curves if (curve.relative <= curve.floor).any()), default=0.0)
    if floor:
        words += f" Values below {significant(floor, 2)} are rounding, and drawn there."
    if isinstance(pca, Absent):
        words += f" The PCA optimum is not drawn: {pca.reason}."
    elif pca is not None:
        words += " No approximation of that rank leaves less than the PCA optimum: the largest eigenvalues of K."
    return words


def bound_panel(curves: Sequence[BoundCurve | Absent], fitted: Sequence[str]) -> Panel:
    """The compression bound against rank; `fitted` names the parts of the kernel that were fitted to the rows."""
    title = "Compression bound"
    drawn = [(index, curve) for index, curve in enumerate(curves) if isinstance(curve, BoundCurve)]
    if not drawn:
        return Panel("bound", title, reason=next(c.reason for c in curves if isinstance(c, Absent)))
    n = max(int(curve.size[-1]) for _, curve in drawn)
    lowest = min(curve.best for _, curve in drawn)
    high = max(1.6, min(_HIGHEST, max(float(curve.bound.max()) for _, curve in drawn)))
    # The residual stands beside its bound, as long as the bound can still be read.
    least = min(float(curve.residual.min()) for _, curve in drawn)
    low, high = log_range(min(0.5 * lowest, 0.5, max(0.8 * least, 0.05 * lowest)), high, below=0.0, above=0.06)
    plot = new_plot(
        "Rank (basis functions)",
        "Bound, share of sup k(x, x)",
        (-0.012 * n, 1.02 * n),
        (low, high),
        y_log=True,
        height=400,
    )
    vacuous_zone(plot, n)
    keys, lines = [], []
    for index, curve in drawn:
        colour, dash = line_style(index)
        source = ColumnDataSource(
            {
                "size": curve.size,
                "bound": curve.bound,
                "residual": curve.residual,
                "words": [significant(float(share)) for share in curve.bound],
                "mean": [significant(float(share)) for share in curve.residual],
                "label": [curve.label] * len(curve.size),
            }
        )
        lines.append(plot.line("size", "bound", source=source, line_color=colour, line_dash=dash, line_width=2))
        plot.line("size", "residual", source=source, line_color=colour, line_dash=[2, 3], line_width=1)
        said = "vacuous along the whole path" if curve.vacuous else (
            f"least at rank {count(curve.best_size)}, {significant(curve.best)}"
        )  # fmt: skip
        if not curve.vacuous:
            plot.scatter(
                [curve.best_size], [curve.best], size=10, fill_color=colour, line_color="white", line_width=1.5
            )
        keys.append(Key(colour, "dash" if dash else "line", f"{curve.label}: {said}"))
    keys.append(Key(MUTED, "dash", "mean residual of the rows outside the basis"))
    tooltips = [("", "@label"), ("rank", "@size{0,0}"), ("bound", "@words"), ("mean residual", "@mean")]
    hover(plot, lines, tooltips, mode="vline" if len(lines) <= _MOST_HOVERED else "mouse")
    return Panel("bound", title, _bound_caption(curves, fitted), plot, keys=tuple(keys))


def _bound_caption(curves: Sequence[BoundCurve | Absent], fitted: Sequence[str]) -> str:
    words = (
        f"The expected residual of a new row is below the line with probability {100 * (1 - DELTA):g} %, for all ranks "
        "at once, if rows are independent draws from one distribution and the kernel was not fitted to them."
    )
    if fitted:
        words += (
            f" Here {' and '.join(fitted)} {'were' if len(fitted) > 1 else 'was'} taken from the rows: read it as a "
            "guide, not as a guarantee."
        )
    missing = sum(isinstance(curve, Absent) for curve in curves)
    if missing:
        reason = next(curve.reason for curve in curves if isinstance(curve, Absent))
        words += f" {plural(missing, 'factor')} {'is' if missing == 1 else 'are'} left out: {reason}."
    return words


def sweeps_panel(labels: Sequence[str], times: Sequence[Sweeps | Absent]) -> Panel:
    """Sweeps and seconds of several factors: one bar for each factor, divided into its sweeps."""
    title = "Sweeps and seconds"
    drawn = [(label, spent) for label, spent in zip(labels, times, strict=True) if isinstance(spent, Sweeps)]
    if not drawn:
        return Panel("sweeps", title, reason=next(t.reason for t in times if isinstance(t, Absent)))
    k, longest = len(drawn), max(spent.total for _, spent in drawn) or 1.0
    unit, axis = time_unit(longest)
    # The text stands to the right of the longest bar.
    plot = new_plot(axis, "", (0.0, 1.55 * longest / unit), (k - 0.4, -0.6), height=70 + 40 * max(k, 3))
    plot.yaxis.axis_label = None
    plot.toolbar_location = None
    pieces: dict[str, Any] = {name: [] for name in ("y", "left", "right", "colour", "name", "words", "detail")}

    def piece(y: int, start: float, seconds: float, colour: str, name: str, detail: str) -> None:
        shown = (y, start / unit, (start + seconds) / unit, colour, name, duration(seconds), detail)
        for column, entry in zip(pieces.values(), shown, strict=True):
            column.append(entry)

    said = []
    for y, (_, spent) in enumerate(drawn):
        at = 0.0
        for index, sweep in enumerate(spent.sweeps):
            colour = ORANGE if sweep.resumed else (BLUE, PALE_BLUE)[index % 2]
            piece(y, at, sweep.seconds, colour, f"{index + 1}: {sweep.name}", pace(sweep))
            at += sweep.seconds
        piece(y, at, spent.between, GREY, "between sweeps", "picking and algebra")
        said.append(_spent(spent))
    source = ColumnDataSource(pieces)
    bars = plot.hbar(
        "y", height=0.6, left="left", right="right", source=source, fill_color="colour", line_color="white",
        line_width=0.5,
    )  # fmt: skip
    hover(plot, [bars], [("sweep", "@name"), ("time", "@words"), ("", "@detail")])
    ends = ColumnDataSource({"x": [spent.total / unit for _, spent in drawn], "y": list(range(k)), "words": said})
    plot.text(
        "x", "y", text="words", source=ends, x_offset=7, text_baseline="middle", text_font=value(FONT),
        text_font_size="12px", text_color=INK,
    )  # fmt: skip
    name_ticks(plot.yaxis, [shortened(label, 40) for label, _ in drawn])
    plot.yaxis.major_label_text_font_size = "12px"
    plot.yaxis.major_label_text_color = INK
    plot.yaxis.major_tick_line_color = None
    plot.ygrid.grid_line_color = None
    plot.xaxis.axis_line_color = None
    keys = [Key(BLUE, "box", "sweeps over the rows, two blues in turn"), Key(GREY, "box", "between sweeps")]
    if any(sweep.resumed for _, spent in drawn for sweep in spent.sweeps):
        keys.insert(1, Key(ORANGE, "box", "taken from a checkpoint"))
    caption = (
        "From the first read to the last column written; seconds a sweep are the mean over the sweeps that were made."
    )
    return Panel("sweeps", title, caption, plot, keys=tuple(keys))


def _spent(spent: Sweeps) -> str:
    """ "6 sweeps, 12 s, 1.8 s a sweep" """
    words = f"{plural(len(spent.sweeps), 'sweep')}, {duration(spent.total)}"
    each = spent.each
    return words if each is None else f"{words}, {duration(each)} a sweep"
