"""Figures of a picture, drawn by matplotlib without pyplot's global state."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import decades, wrapped
from streamkernel.report.figures.palette import DASHED, GRID, INK, MUTED, PAPER, RULE
from streamkernel.report.text import count, power_of_ten, shortened
from streamkernel.type_aliases import Fields, Untyped

_DPI = 144
_WIDTH, _LEGEND = 5.0, 0.21  # inches of a picture, and of a line of a legend
# Points of letters: a phone shows the 720 pixels of a picture on some 380, where these letters have 11 pixels.
_LEAST = 10.5
_PIXEL, _MARK = 0.96, 0.58  # points of a picture for a pixel of a page: texts, marks
_MOST_NAMED = 10  # names beyond which their type is small
# Characters of a line of text: below a figure, beside it, above it, and above all figures.
_WIDEST_LABEL, _TALLEST_LABEL, _LONGEST_SUMMARY, _LONGEST_LEAD = 44, 26, 50, 54

_STYLE: Untyped = {
    "font.family": "sans-serif",
    "font.size": _LEAST,
    "text.color": INK,
    "text.parse_math": False,  # class labels may hold dollars
    "axes.labelcolor": MUTED,
    "axes.labelsize": _LEAST,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": _LEAST,
    "ytick.labelsize": _LEAST,
    "grid.color": GRID,
}


def png_of(figures: Sequence[plot.Drawing], height: float, lead: str = "") -> bytes:
    """The figures one below the other under a text, as a PNG file of 720 pixels in width.

    Parameters
    ----------
    height : of each figure, in inches of 144 pixels.
    """
    with rc_context(_STYLE), warnings.catch_warnings():
        # A label whose script the font lacks is drawn as boxes; this is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        above = textwrap.wrap(lead, _LONGEST_LEAD)
        heights = [height + _LEGEND * len(_shown_keys(each)) for each in figures]
        inches = (_WIDTH, sum(heights) + 0.2 * len(above))
        canvas = Canvas(figsize=inches, dpi=_DPI, layout="constrained", facecolor=PAPER)
        drawing: Untyped = FigureCanvasAgg(canvas)
        if above:
            canvas.suptitle("\n".join(above), x=0.012, ha="left", fontsize=_LEAST, color=MUTED)
        rows = canvas.subplots(len(figures), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, figure in zip(rows, figures, strict=True):
            if isinstance(figure, plot.Figure):
                _draw_figure(axes, figure)
            elif figure is not None:
                axes.set_title(figure.title)
                axes.set_axis_off()
                axes.text(0.5, 0.5, figure.reason, ha="center", va="center", wrap=True, color=MUTED,
                          transform=axes.transAxes)  # fmt: skip
        picture = io.BytesIO()
        # `savefig` would draw all twice: the first time for the layout, which is found in any drawing.
        drawing.print_png(picture, metadata={"Software": "streamkernel"})
    return picture.getvalue()


def _draw_figure(axes: Axes, figure: plot.Figure) -> None:
    # A line ends between two scores, not within one.
    summary = re.sub(r" (?=±)|(?<=[±²]) ", "\u00a0", shortened(figure.summary, 2 * _LONGEST_SUMMARY))
    lines = textwrap.wrap(summary, _LONGEST_SUMMARY)
    axes.set_title(figure.title, pad=6.0 + 15.0 * len(lines))
    above = axes.annotate("\n".join(lines), (0.0, 1.0), (0.0, 5.0), va="bottom", color=MUTED, fontsize=_LEAST,
                          xycoords="axes fraction", textcoords="offset points")  # fmt: skip
    above.set_in_layout(False)  # a square is narrower than its summary, and would be made narrower still
    right = None
    if figure.right is not None:
        right = axes.twinx()
        right.spines["right"].set_visible(True)
        # The left axes are drawn over the right ones, without a background that would hide them.
        axes.set_zorder(right.get_zorder() + 1)
        axes.set_facecolor("none")
        _dress(right, "y", figure.right)
    if figure.square:
        axes.set_box_aspect(1)
        axes.set_anchor("W")  # its summary needs the place on the right
    _dress(axes, "x", figure.x)
    _dress(axes, "y", figure.y)
    if figure.x.names:
        axes.spines[:].set_visible(False)
    if not figure.y.names:
        axes.grid(axis="y")
    for order, series in enumerate(figure.series):
        below = series.below or isinstance(series, (plot.Area, plot.Zone))
        _draw(series, right if series.on_right and right is not None else axes, (0.5 if below else 2.0) + 0.01 * order)
    if _shown_keys(figure):
        # Below the axes, as letters of this size would cover curves.
        axes.legend(handles=[_handle(*key) for key in figure.keys], frameon=False, fontsize=_LEAST, loc="upper left",
                    bbox_to_anchor=(-0.12, 0.0), borderaxespad=3.4, borderpad=0.0)  # fmt: skip


def _shown_keys(figure: plot.Drawing) -> Sequence[tuple[str, str, str]]:
    return figure.keys if isinstance(figure, plot.Figure) and figure.legend else ()


# --- axes -------------------------------------------------------------------------------------------------------------


def _dress(axes: Axes, name: str, described: plot.Axis) -> None:
    """Set scale, limits, ticks and label of an axis."""
    axis = getattr(axes, f"{name}axis")
    getattr(axes, f"set_{name}scale")("log" if described.log else "linear")
    getattr(axes, f"set_{name}lim")(*described.limits)
    getattr(axes, f"set_{name}label")(
        wrapped(described.label, _WIDEST_LABEL if name == "x" else _TALLEST_LABEL), color=described.colour
    )
    axis.set_tick_params(colors=described.colour)
    axis.set_minor_locator(NullLocator())
    low, high = described.limits
    if described.log:
        # Superscript characters: mathematical text would be parsed in labels too.
        powers = decades(low, high) >= 2.0
        axis.set_major_locator(LogLocator(numticks=7) if powers else LogLocator(subs=(1.0, 2.0, 5.0)))
        unit = " %" if described.percent else ""
        plain = unit or not powers
        axis.set_major_formatter(
            FuncFormatter(lambda at, _: f"{at:g}{unit}" if plain else power_of_ten(round(np.log10(at))))
        )
    elif not described.names:
        axis.set_major_locator(MaxNLocator(5, integer=described.whole))
        if max(abs(low), abs(high)) < 1e6 and high - low >= 20.0:
            axis.set_major_formatter(FuncFormatter(lambda at, _: count(at)))
    if described.ticks:
        axis.set_major_locator(FixedLocator(described.ticks))
    if described.labels:
        axis.set_major_formatter(FixedFormatter(described.labels))
    if described.names:
        _name_ticks(axes, name, described)
    if not described.numbered:
        axis.set_tick_params(length=0, labelbottom=False, labelleft=False)


def _name_ticks(axes: Axes, name: str, described: plot.Axis) -> None:
    many = len(described.names) > _MOST_NAMED
    names = [shortened(each, 12 if described.label else 26) for each in described.names]
    turned: Fields = {}
    if name == "x" and sum(map(len, names)) > (14 if axes.get_box_aspect() else 36):
        turned = {"rotation": 90 if many else 40, "ha": "right", "va": "center" if many else "top",
                  "rotation_mode": "anchor"}  # fmt: skip
    getattr(axes, f"set_{name}ticks")(range(len(names)), labels=names, fontsize=6 if many else _LEAST, **turned)
    axes.tick_params(axis="both" if described.label else "y", length=0)


def _handle(colour: str, form: str, text: str) -> Untyped:
    """The sample of a key in a legend."""
    if form == "box":
        return Patch(color=colour, label=text)
    if form in ("line", "dash"):
        style: Untyped = _dashes(DASHED if form == "dash" else ())
        return Line2D([], [], color=colour, linewidth=1.8, linestyle=style, label=text)
    inside = PAPER if form == "ring" else colour
    return Line2D([], [], color=colour, marker="o", markersize=5, mfc=inside, linestyle="none", label=text)


# --- series -----------------------------------------------------------------------------------------------------------


@singledispatch
def _draw(series: plot.Series, axes: Axes, order: float) -> None:
    """Draw a series; larger orders lie above smaller ones."""
    raise TypeError(series)


def _dashes(dash: tuple[int, ...]) -> Untyped:
    return (0, [0.8 * each for each in dash]) if dash else "solid"


@_draw.register
def _line(series: plot.Line, axes: Axes, order: float) -> None:
    marks: Fields = {"marker": "o", "markersize": _MARK * series.rings, "mfc": PAPER} if series.rings else {}
    axes.plot(
        series.x, series.y, color=series.colour, linewidth=0.9 * series.width, linestyle=_dashes(series.dash),
        drawstyle="steps-post" if series.stepped else "default", zorder=order, **marks,
    )  # fmt: skip


@_draw.register
def _lines(series: plot.Lines, axes: Axes, order: float) -> None:
    axes.plot(series.x, series.y.T, color=series.colour, linewidth=0.9 * series.width, alpha=series.opacity,
              zorder=order)  # fmt: skip


@_draw.register
def _points(series: plot.Points, axes: Axes, order: float) -> None:
    marker = {"circle": "o", "dash": "_", "triangle": "v"}[series.marker]
    edge: Untyped = {} if marker == "_" else {"edgecolors": series.edge or "none"}
    axes.scatter(
        series.x, series.y, s=(_MARK * series.size) ** 2, c=series.edge if marker == "_" else series.fill,
        marker=marker, linewidths=0.7 * series.edge_width if series.edge else 0, alpha=series.opacity,
        zorder=order, clip_on=False, **edge,
    )  # fmt: skip


@_draw.register
def _boxes(series: plot.Boxes, axes: Axes, order: float) -> None:
    left, right, bottom, top = np.broadcast_arrays(series.left, series.right, series.bottom, series.top)
    corners = np.stack([(left, bottom), (left, top), (right, top), (right, bottom)]).transpose(2, 0, 1)
    axes.add_collection(
        PolyCollection(
            list(corners), facecolors=series.fill, alpha=series.opacity, edgecolors=series.edge or "none",
            linewidths=0.6 * series.edge_width, zorder=order,
        )
    )  # fmt: skip


@_draw.register
def _segments(series: plot.Segments, axes: Axes, order: float) -> None:
    draw: Untyped = axes.vlines if series.along == "y" else axes.hlines
    draw(series.x, series.low, series.high, color=series.colour, linewidth=_PIXEL * series.width,
         alpha=series.opacity, zorder=order)  # fmt: skip


@_draw.register
def _area(series: plot.Area, axes: Axes, order: float) -> None:
    axes.fill_between(series.x, series.low, series.high, color=series.colour, linewidth=0, zorder=order)


@_draw.register
def _zone(series: plot.Zone, axes: Axes, order: float) -> None:
    ends = sorted(axes.get_xlim() if series.axis == "x" else axes.get_ylim())
    draw: Untyped = axes.axvspan if series.axis == "x" else axes.axhspan
    draw(ends[0] if series.low is None else series.low, ends[1] if series.high is None else series.high,
         color=series.colour, linewidth=0, zorder=order)  # fmt: skip


@_draw.register
def _rule(series: plot.Rule, axes: Axes, order: float) -> None:
    draw: Untyped = axes.axvline if series.axis == "x" else axes.axhline
    draw(series.at, color=series.colour, linewidth=0.9 * series.width, linestyle=_dashes(series.dash), zorder=order)


@_draw.register
def _texts(series: plot.Texts, axes: Axes, order: float) -> None:
    texts = list(series.text)
    colours = [series.colour] * len(texts) if isinstance(series.colour, str) else series.colour
    for x, y, text, colour in zip(np.asarray(series.x), np.asarray(series.y), texts, colours, strict=True):
        axes.annotate(
            text, (x, y), (_PIXEL * series.offset, 0.0), textcoords="offset points", ha=series.align, va="center",
            color=colour, fontsize=_PIXEL * series.size, zorder=order + 3.0,
        )  # fmt: skip


@_draw.register
def _note(series: plot.Note, axes: Axes, order: float) -> None:
    baseline = {"middle": "center", "alphabetic": "baseline"}.get(series.baseline, series.baseline)
    offset = (_PIXEL * series.offset[0], _PIXEL * series.offset[1])
    axes.annotate(
        series.text, (series.x, series.y), offset, textcoords="offset points", ha=series.align, va=baseline,
        color=series.colour, fontsize=_PIXEL * series.size, zorder=order + 3.0,
        bbox=None if series.plain else {"facecolor": PAPER, "alpha": 0.85, "linewidth": 0, "pad": 1.0},
    )  # fmt: skip
