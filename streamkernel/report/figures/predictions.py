"""Predicted against true: a scatter plot for each target, a confusion matrix for classes."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from streamkernel.report.bokeh_renderer import hover, name_ticks, new_plot
from streamkernel.report.facts.fit import Absent, Array
from streamkernel.report.facts.pairs import ClassPairs, Margins, TargetPairs, Targets
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, FAINT, GREY, INK, ORANGE, PALE_BLUE, blend, shade
from streamkernel.report.text import count, percent, plural, shortened, significant

__all__ = ["histogram", "prediction_panels"]

_MOST_POINTS = 4000
_MOST_TARGETS = 4
_MOST_COUNTS = 14


def prediction_panels(pairs: Targets | ClassPairs | Absent) -> list[Panel]:
    """Panels of the rows with known targets."""
    if isinstance(pairs, Absent):
        return [Panel("predictions", "Predicted against true", reason=pairs.reason)]
    if isinstance(pairs, ClassPairs):
        return [_confusion(pairs), _margins(pairs)]
    if len(pairs.targets) == 1:
        return [_cloud(pairs.targets[0], pairs, 0), _residuals(pairs.targets[0], pairs)]
    return [_cloud(target, pairs, index) for index, target in enumerate(pairs.targets[:_MOST_TARGETS])]


# --- targets ---------------------------------------------------------------------------------------------------------


def _cloud(target: TargetPairs, pairs: Targets, index: int) -> Panel:
    several = len(pairs.targets) > 1
    title = f"Predicted against true: {target.name}" if several else "Predicted against true"
    both = np.concatenate([target.true, target.predicted])
    limits = padded(float(both.min()), float(both.max()), 0.04)
    plot = new_plot(f"True {target.name}", f"Predicted {target.name}", limits, limits, height=380)
    plot.line(limits, limits, line_color=ORANGE, line_width=1.2, line_dash=[5, 4], level="underlay")
    dense = len(target.true) > _MOST_POINTS
    if dense:
        _density(plot, target, limits)
        key = Key(BLUE, "box", "rows, darker where there are more")
    else:
        opacity = shade(len(target.true))
        source = ColumnDataSource({"true": target.true, "predicted": target.predicted, "residual": target.residual})
        dots = plot.scatter(
            "true",
            "predicted",
            source=source,
            size=4 + 3 * opacity,
            color=BLUE,
            alpha=opacity,
            line_color=None,
        )
        hover(
            plot,
            [dots],
            [
                ("true", "@true{0,0.[0000]}"),
                ("predicted", "@predicted{0,0.[0000]}"),
                ("difference", "@residual{0,0.[0000]}"),
            ],
        )
        key = Key(BLUE, "dot", "one row each")
    caption = (
        f"{_sentence(pairs.rows)}: RMSE {significant(target.rmse)}, mean absolute error {significant(target.mae)}, "
    )
    caption += (
        "R² undefined, as the target is constant." if np.isnan(target.r2) else f"R²\u00a0{significant(target.r2)}."
    )
    if target.left_out:
        caption += f" {plural(target.left_out, 'row')} without a finite value left out."
    if several and index == 0 and len(pairs.targets) > _MOST_TARGETS:
        caption += f" The first {_MOST_TARGETS} of {count(len(pairs.targets))} targets are drawn."
    return Panel(f"predictions-{index + 1}", title, caption, plot, keys=(key, Key(ORANGE, "dash", "predicted = true")))


def _density(plot: figure, target: TargetPairs, limits: tuple[float, float]) -> None:
    counts, x, y = np.histogram2d(target.true, target.predicted, bins=(64, 48), range=(limits, limits))
    columns, rows = np.nonzero(counts)
    inside = counts[columns, rows]
    shade = np.log1p(inside) / np.log1p(inside.max())
    source = ColumnDataSource(
        {
            "left": x[columns],
            "right": x[columns + 1],
            "bottom": y[rows],
            "top": y[rows + 1],
            "rows": inside.astype(np.int64),
            "colour": [blend(0.15 + 0.85 * float(share)) for share in shade],
        }
    )
    cells = plot.quad("left", "right", "bottom", "top", source=source, fill_color="colour", line_color=None)
    hover(plot, [cells], [("rows", "@rows{0,0}")])


def _residuals(target: TargetPairs, pairs: Targets) -> Panel:
    residual = target.residual
    edges, counts, beyond = histogram(residual)
    x = (float(edges[0]), float(edges[-1]))
    plot = new_plot("Predicted minus true", "Rows", x, (0.0, 1.08 * float(counts.max())), height=380)
    bars = plot.quad(
        left=edges[:-1],
        right=edges[1:],
        bottom=0,
        top=counts.astype(np.float64),
        fill_color=PALE_BLUE,
        line_color="white",
        line_width=1,
    )
    hover(plot, [bars], [("from", "@left{0,0.[0000]}"), ("to", "@right{0,0.[0000]}"), ("rows", "@top{0,0}")])
    if x[0] < 0.0 < x[1]:
        plot.add_layout(Span(dimension="height", location=0.0, line_color=ORANGE, line_dash=[5, 4], line_width=1.2))
    with np.errstate(over="ignore"):
        deviation = float(residual.std())
    mean, largest = float(residual.mean()), float(np.abs(residual).max())
    caption = (
        f"{_sentence(pairs.rows)}: mean {significant(mean)}, standard deviation {significant(deviation)}, "
        f"largest {significant(largest)}."
    )
    if beyond:
        caption += f" {plural(beyond, 'row')} beyond the axis counted in the outermost bars."
    return Panel(
        "residuals", "Errors", caption, plot, keys=(Key(PALE_BLUE, "box", "rows"), Key(ORANGE, "dash", "no error"))
    )


def histogram(values: Array) -> tuple[Array, NDArray[np.int64], int]:
    """Edges, counts, and the number of values beyond the edges (they are counted in the outermost bins).

    The edges leave out values far from the bulk; otherwise one outlier would squeeze all others into a single bar.
    """
    quarter, median, three_quarters = np.quantile(values, [0.25, 0.5, 0.75])
    spread = float(three_quarters - quarter)
    low, high = float(values.min()), float(values.max())
    if spread > 0.0:
        low, high = max(low, float(median) - 6.0 * spread), min(high, float(median) + 6.0 * spread)
    low, high = padded(low, high, 0.0)
    bins = int(np.clip(2.0 * len(values) ** (1.0 / 3.0), 8, 60))
    counts, edges = np.histogram(np.clip(values, low, high), bins=bins, range=(low, high))
    return edges, counts, int(((values < low) | (values > high)).sum())


# --- classes ---------------------------------------------------------------------------------------------------------


def _confusion(pairs: ClassPairs) -> Panel:
    k = len(pairs.labels)
    totals = pairs.counts.sum(axis=1, keepdims=True)
    share = np.divide(pairs.counts, totals, out=np.zeros(pairs.counts.shape), where=totals > 0)
    true, predicted = (index.ravel() for index in np.indices((k, k)))
    source = ColumnDataSource(
        {
            "x": predicted,
            "y": true,
            "rows": pairs.counts.ravel(),
            "words": [_short_count(int(number)) for number in pairs.counts.ravel()],
            "share": [percent(float(part)) for part in share.ravel()],
            "colour": [blend(float(part)) for part in share.ravel()],
            "ink": ["#ffffff" if part > 0.5 else (INK if part > 0.0 else GREY) for part in share.ravel()],
            "true": [pairs.labels[index] for index in true],
            "predicted": [pairs.labels[index] for index in predicted],
        }
    )
    height = int(np.clip(160 + 34 * k, 320, 720))
    plot = new_plot("Predicted class", "True class", (-0.5, k - 0.5), (k - 0.5, -0.5), height=height)
    cells = plot.rect(
        "x",
        "y",
        width=1,
        height=1,
        source=source,
        fill_color="colour",
        line_color="white",
        line_width=1 if k > 12 else 2,
    )
    if k <= _MOST_COUNTS:
        plot.text(
            "x",
            "y",
            text="words",
            source=source,
            text_color="ink",
            text_align="center",
            text_baseline="middle",
            text_font_size="11px" if k > 8 else "12px",
        )
    hover(
        plot,
        [cells],
        [("true", "@true"), ("predicted", "@predicted"), ("rows", "@rows{0,0}"), ("of the true class", "@share")],
    )
    names = [shortened(label, 18) for label in pairs.labels]
    for axis in (plot.xaxis, plot.yaxis):
        name_ticks(axis, names)
        axis.major_tick_line_color = None
        axis.axis_line_color = None
    if max(len(name) for name in names) * k > 60:
        plot.xaxis.major_label_orientation = 0.8
    plot.grid.grid_line_color = None
    caption = (
        f"{_sentence(pairs.rows)}: {percent(pairs.accuracy)} are right; always naming the commonest class "
        f"would be right for {percent(pairs.baseline)}. The shade is the share of the true class."
    )
    if pairs.n_classes > k:
        caption += f" The {k - 1} commonest of {count(pairs.n_classes)} classes are drawn, the others together."
    return Panel("confusion", "Confusion matrix", caption, plot)


def _short_count(number: int) -> str:
    return count(number) if number < 10_000 else f"{number / 1000:,.0f}k"


def _margins(pairs: ClassPairs) -> Panel:
    title = "Margins"
    if not isinstance(pairs.margins, Margins):
        return Panel("margins", title, reason=pairs.margins.reason)
    values = pairs.margins.values
    edges, counts, beyond = histogram(values)
    low, high = float(edges[0]), float(edges[-1])
    if low < 0.0 < high:
        # One edge is at 0, so that no bar mixes right and wrong.
        width = (high - low) / len(counts)
        edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)
    plot = new_plot(
        "Score of the true class less the best other", "Rows", (float(edges[0]), float(edges[-1])),
        (0.0, 1.08 * float(counts.max())), height=380,
    )  # fmt: skip
    colours = [BLUE if middle > 0.0 else ORANGE for middle in 0.5 * (edges[:-1] + edges[1:])]
    source = ColumnDataSource({"left": edges[:-1], "right": edges[1:], "rows": counts, "colour": colours})
    bars = plot.quad(
        "left", "right", bottom=0, top="rows", source=source, fill_color="colour", fill_alpha=0.75, line_color="white"
    )
    hover(plot, [bars], [("from", "@left{0.[000]}"), ("to", "@right{0.[000]}"), ("rows", "@rows{0,0}")])
    if edges[0] < 0.0 < edges[-1]:
        plot.add_layout(Span(dimension="height", location=0.0, line_color=FAINT, line_width=1))
    caption = f"{_sentence(pairs.rows)}: how clearly the true class won, or lost."
    if beyond:
        caption += f" {plural(beyond, 'row')} beyond the axis counted in the outermost bars."
    return Panel("margins", title, caption, plot, keys=(Key(BLUE, "box", "right"), Key(ORANGE, "box", "wrong")))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
