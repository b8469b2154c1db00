"""Predicted against true: a scatter plot for each target, a confusion matrix for classes."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.pairs import ClassPairs, TargetPairs, Targets
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import BLUE, DASHED, FAINT, GREY, INK, ORANGE, PALE_BLUE, PAPER, blend, shade
from streamkernel.report.text import capitalised, count, percent, plural, shortened, significant, with_error
from streamkernel.type_aliases import Float, Int

_MOST_POINTS = 4000
_MOST_TARGETS = 4
_MOST_COUNTS = 14


def prediction_figures(pairs: Targets | ClassPairs | Absent) -> list[plot.Drawing]:
    """Figures of the rows with known targets."""
    if isinstance(pairs, Absent):
        return [plot.Missing("Predicted against true", pairs.reason)]
    if isinstance(pairs, ClassPairs):
        return [_confusion(pairs), _margins(pairs.margins, pairs)]
    if len(pairs.targets) == 1:
        return [_cloud(pairs.targets[0], pairs, 0), _residuals(pairs.targets[0], pairs)]
    return [_cloud(target, pairs, index) for index, target in enumerate(pairs.targets[:_MOST_TARGETS])]


# --- targets ---------------------------------------------------------------------------------------------------------


def _cloud(target: TargetPairs, pairs: Targets, index: int) -> plot.Figure:
    several = len(pairs.targets) > 1
    both = np.concatenate([target.true, target.predicted])
    limits = padded(float(both.min()), float(both.max()), 0.04)
    rmse, r2 = with_error(target.rmse, target.rmse_se), with_error(target.r2, target.r2_se)
    mae = with_error(target.mae, target.mae_se)
    if len(target.true) > _MOST_POINTS:
        rows: plot.Series = _density(target, limits)
        key = (BLUE, "box", "rows, darker where there are more")
    else:
        form, opacity = "0,0.[0000]", shade(len(target.true))
        named = ("true", target.true), ("predicted", target.predicted), ("difference", target.residual)
        fields: list[plot.Field] = [(name, values, form) for name, values in named]
        rows = plot.Points(target.true, target.predicted, edge=None, size=4 + 3 * opacity, opacity=opacity,
                      hover=fields)  # fmt: skip
        key = (BLUE, "dot", "one row each")
    caption = f"{capitalised(pairs.rows)}: RMSE {rmse}, mean absolute error {mae}, "
    caption += "R² undefined, as the target is constant." if np.isnan(target.r2) else f"R²\u00a0{r2}."
    if target.left_out:
        caption += f" {plural(target.left_out, 'row')} without a finite value left out."
    if several and index == 0 and len(pairs.targets) > _MOST_TARGETS:
        caption += f" The first {_MOST_TARGETS} of {count(len(pairs.targets))} targets are drawn."
    return plot.Figure(
        caption,
        plot.Axis(f"True {target.name}", limits),
        plot.Axis(f"Predicted {target.name}", limits),
        [plot.Line(limits, limits, ORANGE, 1.2, DASHED, below=True), rows],
        (key, (ORANGE, "dash", "predicted = true")),
        f"predictions-{index + 1}",
        f"Predicted against true: {target.name}" if several else "Predicted against true",
        height=380,
        summary=f"{capitalised(pairs.where)}: RMSE {rmse}" + ("" if np.isnan(target.r2) else f", R² {r2}"),
        square=True,
    )


def _density(target: TargetPairs, limits: tuple[float, float]) -> plot.Boxes:
    counts, x, y = np.histogram2d(target.true, target.predicted, bins=(64, 48), range=(limits, limits))
    column, row = np.nonzero(counts)
    inside = counts[column, row]
    colours = [blend(0.15 + 0.85 * float(share)) for share in np.log1p(inside) / np.log1p(inside.max())]
    fields: list[plot.Field] = [("rows", inside.astype(np.int64), "0,0")]
    return plot.Boxes(x[column], x[column + 1], y[row], y[row + 1], fill=colours, edge=None, hover=fields)


@plot.drawing("residuals", "Errors")
def _residuals(target: TargetPairs, pairs: Targets) -> plot.Figure:
    residual = target.residual
    edges, counts, beyond = histogram(residual)
    bars = plot.columns(edges, counts.astype(np.float64), hover=histogram_fields(edges, counts, "0,0.[0000]"))
    series: list[plot.Series] = [bars, *([plot.ideal("x", 0.0)] if edges[0] < 0.0 < edges[-1] else [])]
    with np.errstate(over="ignore"):
        deviation = float(residual.std())
    mean, largest = float(residual.mean()), float(np.abs(residual).max())
    caption = (
        f"{capitalised(pairs.rows)}: mean {significant(mean)}, standard deviation {significant(deviation)}, "
        f"largest {significant(largest)}.{_beyond_text(beyond)}"
    )
    keys = (PALE_BLUE, "box", "rows"), (ORANGE, "dash", "no error")
    x = plot.Axis("Predicted minus true", (float(edges[0]), float(edges[-1])))
    y = plot.Axis("Rows", (0.0, 1.08 * float(counts.max())), whole=True)
    return plot.Figure(caption, x, y, series, keys, height=380)


def _beyond_text(beyond: int) -> str:
    return f" {plural(beyond, 'row')} beyond the axis counted in the outermost bars." if beyond else ""


def histogram_fields(edges: Float, counts: Int, form: str, label: str = "rows") -> list[plot.Field]:
    """Ends and height of each column, under the pointer."""
    return [("from", edges[:-1], form), ("to", edges[1:], form), (label, counts, "0,0")]


def histogram(values: Float) -> tuple[Float, Int, int]:
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


@plot.drawing("confusion", "Confusion matrix")
def _confusion(pairs: ClassPairs) -> plot.Figure:
    k = len(pairs.labels)
    totals = pairs.counts.sum(axis=1, keepdims=True)
    shares = np.divide(pairs.counts, totals, out=np.zeros(pairs.counts.shape), where=totals > 0).ravel()
    true, predicted = (index.ravel() for index in np.indices((k, k)))
    counts = pairs.counts.ravel()
    fields: list[plot.Field] = [
        ("true", [pairs.labels[index] for index in true]),
        ("predicted", [pairs.labels[index] for index in predicted]),
        ("rows", counts, "0,0"),
        ("of the true class", [percent(float(share)) for share in shares]),
    ]
    series: list[plot.Series] = [
        plot.Boxes(
            predicted - 0.5, predicted + 0.5, true - 0.5, true + 0.5, fill=[blend(float(share)) for share in shares],
            edge_width=1 if k > 12 else 2, hover=fields,
        )
    ]  # fmt: skip
    if k <= _MOST_COUNTS:
        inks = [PAPER if share > 0.5 else (INK if share > 0.0 else GREY) for share in shares]
        texts = [_short_count(int(number)) for number in counts]
        series.append(plot.Texts(predicted, true, texts, inks, 11.0 if k > 8 else 12.0, align="center"))
    names = tuple(shortened(label, 18) for label in pairs.labels)
    accuracy, baseline = with_error(pairs.accuracy, pairs.accuracy_se, percent), percent(pairs.baseline)
    caption = (
        f"{capitalised(pairs.rows)}: {accuracy} are right; always naming the commonest class would be right for "
        f"{baseline}. The shade is the share of the true class."
    )
    if pairs.n_classes > k:
        caption += f" The {k - 1} commonest of {count(pairs.n_classes)} classes are drawn, the others together."
    return plot.Figure(
        caption,
        plot.Axis("Predicted class", (-0.5, k - 0.5), names=names),
        plot.Axis("True class", (k - 0.5, -0.5), names=names),
        series,
        height=int(np.clip(160 + 34 * k, 320, 720)),
        summary=f"{accuracy} of {pairs.where} right",
        square=True,
    )


def _short_count(number: int) -> str:
    return count(number) if number < 10_000 else f"{number / 1000:,.0f}k"


@plot.drawing("margins", "Margins")
def _margins(values: Float, pairs: ClassPairs) -> plot.Figure:
    edges, counts, beyond = histogram(values)
    low, high = float(edges[0]), float(edges[-1])
    if low < 0.0 < high:
        # One edge is at 0, so that no bar mixes right and wrong.
        width = (high - low) / len(counts)
        edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)
    colours = [BLUE if middle > 0.0 else ORANGE for middle in 0.5 * (edges[:-1] + edges[1:])]
    fields = histogram_fields(edges, counts, "0.[000]")
    series: list[plot.Series] = [plot.columns(edges, counts, fill=colours, opacity=0.75, hover=fields)]
    if edges[0] < 0.0 < edges[-1]:
        series.append(plot.Rule("x", 0.0, FAINT, ()))
    caption = f"{capitalised(pairs.rows)}: how clearly the true class won, or lost.{_beyond_text(beyond)}"
    x = plot.Axis("Score of the true class less the best other", (float(edges[0]), float(edges[-1])))
    y = plot.Axis("Rows", (0.0, 1.08 * float(counts.max())), whole=True)
    keys = (BLUE, "box", "right"), (ORANGE, "box", "wrong")
    return plot.Figure(caption, x, y, series, keys, height=380)
