"""Support vector machines: errors along C, the duality gap, and values on both sides of the margin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.margins import CostPath, DecisionValues, GapCurves, TubeErrors, ValueHistogram
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import log_range, with_headroom
from streamkernel.report.figures.fit import chosen_marks
from streamkernel.report.figures.palette import (
    BAND,
    BLUE,
    DASHED,
    FAINT,
    INK,
    MUTED,
    ORANGE,
    PALE_BLUE,
    TEAL,
    line_style,
)
from streamkernel.report.figures.predictions import histogram, histogram_fields
from streamkernel.report.text import capitalised, count, percent, plural, shortened, significant
from streamkernel.type_aliases import Float, Int

_MOST_LINES = 6
_MOST_TICKS = 20
_LEAST_ROWS = 10  # of a bin whose share of the class is drawn
_TICKS = (-9, -3, -1, 0, 1, 3, 9)  # values of a function at which its axis has numbers


@plot.drawing("costs", "Choice of C")
def cost_figure(path: CostPath) -> plot.Figure:
    """Error on the validation fold against C."""
    unit = 100.0 if path.classes else 1.0
    error, se, at = unit * path.error, unit * path.error_se, path.at
    low, high = with_headroom(float((error - se).min()), float((error + se).max()))
    x = plot.Axis("C (cost of a unit of loss)", log_range(float(path.C[0]), float(path.C[-1]), 0.06, 0.06), log=True)
    label = "Wrong rows of the fold, %" if path.classes else "Mean loss of a row, for C = 1"
    y = plot.Axis(label, (max(low, 0.0), high), colour=TEAL)
    texts = [_error_text(path, position) for position in range(len(error))]
    fields: list[plot.Field] = [("C", [significant(float(C)) for C in path.C]), ("error", texts)]
    series: list[plot.Series] = [
        plot.Segments(path.C, np.maximum(error - se, 0.0), error + se, TEAL, 7.0, 0.3),
        plot.Line(path.C, error, TEAL, rings=7.0, hover=fields, across=True),
        *chosen_marks(path.chosen, float(error[at]), x, y.limits[1], f"C {significant(path.chosen)}"),
    ]
    keys = (
        (TEAL, "ring", "error on held-out rows, and one standard error to either side"),
        (ORANGE, "dot", f"chosen: {texts[at]}"),
    )
    loss = "Mean loss of a row, for C = 1 and errors in deviations of the target,"
    what = "Share of wrong classes" if path.classes else loss
    caption = (
        f"{what} on {plural(path.rows, 'row')}, held out from the solutions that are compared. C is the one of the "
        "least error, solved for once more on all rows."
    )
    if path.effective < 0.9 * path.rows:
        caption += f" By their weights they count as {count(path.effective)} rows."
    if at in (0, len(path.C) - 1):
        caption += " It lies at the end of what was tried: another might be better still."
    summary = f"C {significant(path.chosen)}: {texts[at]}"
    return plot.Figure(caption, x, y, series, keys, height=340, summary=summary)


def _error_text(path: CostPath, position: int) -> str:
    error, se = float(path.error[position]), float(path.error_se[position])
    if path.classes:
        return f"{percent(error)} ± {percent(se, 2)} wrong"
    return f"{significant(error)} ± {significant(se, 2)}"


@plot.drawing("gap", "Duality gap")
def gap_figure(curves: GapCurves) -> plot.Figure:
    """Relative duality gap against sweeps, of each function or the largest."""
    largest = curves.largest
    sweeps = np.arange(1, len(largest) + 1)
    ends = [float(np.min([each.min() for each in curves.gaps])), float(largest.max())]
    if curves.tolerance is not None:
        ends += [0.5 * curves.tolerance, 2.0 * curves.tolerance]
    limits = log_range(min(ends), max(ends), 0.06, 0.1)
    series, keys = _gap_lines(curves, sweeps)
    if curves.tolerance is not None:
        series.insert(0, plot.Rule("y", curves.tolerance, MUTED))
        keys.append((MUTED, "dash", f"tolerance {curves.tolerance:g}"))
    series.append(plot.dot(float(sweeps[-1]), float(largest[-1])))
    end = f"at the end: {_gap_text(curves.final)}"
    keys.append((ORANGE, "dot", end if curves.converged else f"{end}, not within the tolerance"))
    ticks = tuple(float(sweep) for sweep in sweeps) if len(sweeps) <= _MOST_TICKS else ()
    reach = 0.04 * len(sweeps)
    x = plot.Axis("Sweep", (1.0 - reach, len(sweeps) + reach), ticks=ticks)
    y = plot.Axis("Relative duality gap", limits, log=True)
    summary = f"Gap {_gap_text(curves.final)} after {plural(len(sweeps), 'sweep')}"
    return plot.Figure(_gap_caption(curves), x, y, series, keys, height=340, summary=summary)


def _gap_lines(curves: GapCurves, sweeps: Int) -> tuple[list[plot.Series], list[plot.Key]]:
    """A line for each of a few functions; of many pale ones, and their largest."""
    K, longest = len(curves.gaps), len(sweeps)
    if 1 < K <= _MOST_LINES:
        colours = [_line_colour(index) for index in range(K)]
        lines: list[plot.Series] = [
            _gap_line(gaps, colour, [("function", [name] * len(gaps))])
            for name, gaps, colour in zip(curves.names, curves.gaps, colours, strict=True)
        ]
        names = [shortened(name, 30) for name in curves.names]
        return lines, [(colour, "line", name) for colour, name in zip(colours, names, strict=True)]
    largest = _gap_line(curves.largest, BLUE, [])
    if K == 1:
        return [largest], [(BLUE, "line", "after each sweep")]
    wide = np.array([np.pad(each, (0, longest - len(each)), constant_values=np.nan) for each in curves.gaps])
    pale = plot.Lines(sweeps, wide, list(curves.names), PALE_BLUE, 1.2)
    return [pale, largest], [(PALE_BLUE, "line", f"each of {count(K)} functions"), (BLUE, "line", "largest of all")]


def _gap_caption(curves: GapCurves) -> str:
    text = (
        "How far the objective can be above its least value at most, as a share of it, after each sweep over the rows. "
        "It comes from a dual bound over all rows: a certificate, not an estimate."
    )
    if min(float(each.min()) for each in curves.gaps) <= curves.least:
        text += f" Gaps below {significant(curves.least, 2)} are drawn there."
    if len({len(each) for each in curves.gaps}) > 1:
        text += " A line ends where the solution of its function did."
    return text


def _line_colour(index: int) -> str:
    """Colours of lines without orange, which marks the end."""
    return line_style(index if index == 0 else index + 1)[0]


def _gap_line(gaps: Float, colour: str, fields: list[plot.Field]) -> plot.Line:
    sweeps = np.arange(1, len(gaps) + 1)
    texts = [significant(float(gap)) for gap in gaps]
    rings = 6.0 if len(gaps) <= 4 * _MOST_TICKS else 0.0
    return plot.Line(sweeps, gaps, colour, rings=rings, hover=[*fields, ("sweep", sweeps, "0,0"), ("gap", texts)])


def _gap_text(gap: float) -> str:
    return "0 to rounding" if gap <= np.finfo(np.float64).eps else significant(gap)


def value_figures(histograms: Sequence[ValueHistogram] | Absent | None, *, hinge: bool) -> list[plot.Drawing]:
    """A figure for each of the first functions; `hinge` is whether rows beyond the margin cost nothing."""
    if histograms is None:
        return []
    if isinstance(histograms, Absent):
        return [plot.Missing("Values on held-out rows", histograms.reason)]
    return [
        _value_figure(each, index, len(histograms), hinge=hinge)
        for index, each in enumerate(histograms[: plot.MOST_FIGURES])
    ]


def _value_figure(found: ValueHistogram, index: int, functions: int, *, hinge: bool) -> plot.Figure:
    share, edges, weight = 100.0 * found.share, found.edges, found.weight
    filled = np.flatnonzero(weight.sum(axis=0) > 0.0)
    reach = max(0.6, float(np.abs(edges[[filled[0], filled[-1] + 1]]).max()))
    x = plot.Axis(
        "Value f, drawn at f / (1 + |f|)",
        (-reach, reach),
        ticks=tuple(t / (1.0 + abs(t)) for t in _TICKS),
        labels=tuple(str(t).replace("-", "−") for t in _TICKS),
    )
    rows = plot.Axis("Rows of a side, %", (0.0, 1.12 * float(share.max())), colour=MUTED)
    chances = plot.Axis("Probability of the class", (0.0, 1.12), ticks=(0.0, 0.25, 0.5, 0.75, 1.0), colour=INK)
    shown = np.arange(filled[0], filled[-1] + 1)
    sides = [f"not {found.name}" if not found.only else "the other class", found.name]
    series: list[plot.Series] = []
    for side, colour in ((0, ORANGE), (1, BLUE)):
        fields: list[plot.Field] = [
            ("f", [_interval_text(*edges[at : at + 2]) for at in shown]),
            (sides[side], [percent(float(each) / 100.0) for each in share[side][shown]]),
        ]
        series.append(
            plot.Boxes(
                edges[shown],
                edges[shown + 1],
                0.0,
                share[side][shown],
                colour,
                opacity=0.5,
                hover=fields,
                on_right=found.curve is not None,
            )
        )
    margins = [plot.Rule("x", at, MUTED, DASHED) for at in (-0.5, 0.5)]
    series += [plot.Rule("x", 0.0, FAINT, ()), *margins]
    keys: list[plot.Key] = [
        (BLUE, "box", shortened(found.name, 30)),
        (ORANGE, "box", "all other classes" if not found.only else "the other class"),
        (MUTED, "dash", "margins, f = −1 and 1"),
    ]
    y, right = rows, None
    if found.curve is not None:
        y, right = chances, rows
        series += _curve(found)
        keys += [(INK, "line", "its probability (left axis)"), (INK, "ring", "share of it among the rows there")]
    title = "Values on held-out rows" + ("" if found.only else f": {found.name}")
    caption = _value_caption(found, hinge=hinge)
    if index == 0 and functions > plot.MOST_FIGURES:
        caption += f" The first {plot.MOST_FIGURES} of {count(functions)} functions are drawn."
    return plot.Figure(
        caption, x, y, series, keys, f"values-{index + 1}", title, right, 360,
        summary=f"{percent(found.inside)} of {count(found.rows)} rows inside the margin",
    )  # fmt: skip


def _value_caption(found: ValueHistogram, *, hinge: bool) -> str:
    name = f"the class {found.name}" if not found.only else f"{found.name} from the other class"
    caption = (
        f"{count(found.rows)} held-out rows by the value of the function that separates {name}, fitted without them: "
        f"{percent(found.wrong)} lie on the wrong side of 0, {percent(found.inside)} there or inside the margin."
    )
    if hinge:
        caption += " Rows like the latter are the support vectors; the others do not change the function."
    return caption


def _interval_text(low: float, high: float, unit: float = 1.0) -> str:
    """Two ends of a bin, in values of f, whose unit in the bins is given."""
    with np.errstate(divide="ignore"):
        ends = [unit * float(np.divide(t, 1.0 - abs(t))) for t in (low, high)]
    return f"{significant(ends[0])} to {significant(ends[1])}"


def _curve(found: ValueHistogram) -> list[plot.Series]:
    """The curve of the probabilities, and the shares of the class that it was fitted to."""
    assert found.curve is not None
    t, probability = found.curve
    totals = found.weight.sum(axis=0)
    enough = np.flatnonzero(totals >= _LEAST_ROWS * totals.sum() / max(found.rows, 1))
    observed = found.weight[1][enough] / totals[enough]
    middles = 0.5 * (found.edges[:-1] + found.edges[1:])[enough]
    fields: list[plot.Field] = [("share of the class", [percent(float(each)) for each in observed])]
    return [
        plot.Line(t, probability, INK, 1.5),
        plot.rings(middles, observed, INK, 6.0, hover=fields),
    ]


@plot.drawing("decisions", "Decision values")
def decision_figure(found: DecisionValues) -> plot.Figure:
    """Histogram of the decision values of one class, with the threshold."""
    share, edges = 100.0 * found.share, found.edges
    filled = np.flatnonzero(share > 0.0)
    shown = np.arange(filled[0], filled[-1] + 1)
    room = 0.05 * float(edges[filled[-1] + 1] - edges[filled[0]])
    limits = min(float(edges[filled[0]]), 0.0) - room, max(float(edges[filled[-1] + 1]), 0.0) + room
    outside = edges[shown] < -0.25 / len(share)
    x = plot.Axis("Decision value, f / (rho + |f|)", limits)
    y = plot.Axis("Rows, %", (0.0, 1.12 * float(share.max())))
    series: list[plot.Series] = []
    for side, colour in ((outside, ORANGE), (~outside, BLUE)):
        at = shown[side]
        fields: list[plot.Field] = [
            ("f", [_interval_text(edges[one], edges[one + 1], found.unit) for one in at]),
            ("rows", [percent(float(each) / 100.0) for each in share[at]]),
        ]
        if len(at):
            series.append(plot.Boxes(edges[at], edges[at + 1], 0.0, share[at], colour, opacity=0.5, hover=fields))
    series.append(plot.Rule("x", 0.0, INK, DASHED))
    keys = ((BLUE, "box", "inside"), (ORANGE, "box", "outliers"), (INK, "dash", "the threshold, f = 0"))
    text = percent(found.outliers)
    caption = (
        f"{capitalised(found.rows)} by their decision value: {text} of them, by weight, are below the threshold; of "
        f"the rows of the fit at most nu = {found.nu:g} may be. "
        "The value −rho is that of a row far from all others, with a kernel that falls to 0."
    )
    return plot.Figure(caption, x, y, series, keys, height=360, summary=f"{text} of the rows are outliers")


@plot.drawing("tube", "Errors and the tube")
def tube_figure(found: TubeErrors) -> plot.Figure:
    """Histogram of errors in deviations of the target, with the tube in which they cost nothing."""
    edges, counts, beyond = histogram(found.error)
    epsilon, huber = found.epsilon, found.loss == "huber"
    low, high = min(float(edges[0]), -1.2 * epsilon), max(float(edges[-1]), 1.2 * epsilon)
    bars = plot.columns(edges, counts.astype(np.float64), hover=histogram_fields(edges, counts, "0,0.[0000]"))
    ends = [plot.Rule("x", at, MUTED, DASHED) for at in (-epsilon, epsilon)]
    band = [plot.Zone("x", -epsilon, epsilon, BAND)] if epsilon > 0.0 else []
    share = percent(found.outside)
    caption = f"{capitalised(found.rows)}: {share} of the errors are larger than epsilon, {epsilon:g}"
    caption += (
        ", from which their loss is linear."
        if huber
        else ". Rows like these are the support vectors; errors inside the tube cost nothing."
    )
    if found.targets > 1:
        caption += f" Errors of {count(found.targets)} targets together, each in its own deviations."
    if beyond:
        caption += f" {plural(beyond, 'error')} beyond the axis counted in the outermost bars."
    keys = ((PALE_BLUE, "box", "errors"), (MUTED, "dash", "−epsilon and epsilon"))
    x = plot.Axis("Error in deviations of the target", (low, high))
    y = plot.Axis("Rows", (0.0, 1.08 * float(counts.max())), whole=True)
    summary = f"{share} outside the tube"
    return plot.Figure(caption, x, y, [*band, bars, *ends], keys, height=360, summary=summary)
