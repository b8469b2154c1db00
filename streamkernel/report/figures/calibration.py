"""Predicted distributions against true targets: intervals, transforms, rows with their bars, reliability."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.calibration import (
    Check,
    CountCheck,
    DistributionCheck,
    GaussianCheck,
    ProbabilityCheck,
    RowIntervals,
    binomial_band,
)
from streamkernel.report.facts.fit import Absent
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import BLUE, DASHED, GREY, INK, MUTED, ORANGE, PALE_BLUE, blend, line_style
from streamkernel.report.text import capitalised, count, percent, plain, plural, score_text, significant

_MOST_LINES = 6
_BAND = blend(0.14)


def distribution_figures(check: Check) -> list[plot.Drawing]:
    """Figures of the calibration of predicted distributions."""
    if check is None:
        return []
    if isinstance(check, Absent):
        return [plot.Missing("Calibration", check.reason)]
    if isinstance(check, ProbabilityCheck):
        return [_reliability(check)]
    return [_intervals(check) if isinstance(check, GaussianCheck) else None, _transform(check)]


@plot.drawing("calibration", "Calibration of intervals")
def _intervals(check: GaussianCheck) -> plot.Figure:
    levels, coverage, scalars = check.calibration.levels, check.calibration.coverage, check.calibration.scalars
    fine = np.linspace(0.0, 1.0, 101)
    low, high = binomial_band(fine, check.count)
    series: list[plot.Series] = [
        plot.Area(100 * fine, 100 * low, 100 * high, _BAND),
        plot.Line([0.0, 100.0], [0.0, 100.0], ORANGE, 1.2, DASHED, below=True),
    ]
    one_each = len(coverage) <= _MOST_LINES
    lines = coverage if one_each else coverage.mean(axis=0, keepdims=True)
    names = check.names if one_each else (f"mean of {count(len(coverage))} targets",)
    keys = []
    for index, (line, name) in enumerate(zip(lines, names, strict=True)):
        # Without orange, which stands for the promised value.
        colour = line_style(index if index == 0 else index + 1)[0]
        fields: list[plot.Field] = [
            ("should hold", [f"{100 * level:.0f} %" for level in levels]),
            ("hold", [f"{100 * share:.1f} %" for share in line]),
            ("more by", [f"{100 * off:+.1f} points" for off in line - levels]),
        ]
        if len(coverage) > 1:
            fields.insert(0, ("target", [name] * len(levels)))
        series.append(plot.Line(100 * levels, 100 * line, colour, rings=6.0, hover=fields))
        if len(lines) > 1:
            keys.append((colour, "line", name))
    held = scalars["coverage95"]
    text = f"95 % hold {percent(held)}"  # as the axes are named: a longer one is wider than the square
    # In the corner away from the line.
    note = plot.Note(2.0, 99.0, text, baseline="top") if held <= 0.95 else plot.Note(98.0, 3.0, text, align="right")
    series += [plot.dot(95.0, 100 * held), note]
    caption = (
        f"{capitalised(check.rows)}: the share of targets that the central intervals of the predicted distributions "
        "hold. Above the dashed line intervals are too wide, below it too narrow. Negative log predictive density "
        f"{score_text(scalars, 'nlpd')} a target."
    )
    if not one_each:
        caption += " The mean over targets is drawn."
    keys = keys or [(BLUE, "ring", "observed")]
    keys += [(ORANGE, "dash", "as promised"), (_BAND, "box", _band_text(check.count))]
    x, y = plot.Axis("Intervals should hold, %", (0.0, 100.0)), plot.Axis("They hold, %", (0.0, 101.5))
    summary = f"{capitalised(check.where)}: NLPD {score_text(scalars, 'nlpd')}"
    return plot.Figure(caption, x, y, series, keys, height=380, summary=summary, square=True)


def _band_text(rows: int) -> str:
    return f"where 95 % of samples of {plural(rows, 'independent row')} lie"


@plot.drawing("transform", "Probability integral transform")
def _transform(check: DistributionCheck) -> plot.Figure:
    rows, bins = check.transform, len(check.transform)
    low, high = (check.count * float(end[0]) for end in binomial_band(np.array([1.0 / bins]), check.count))
    edges = np.linspace(0.0, 1.0, bins + 1)
    fields: list[plot.Field] = [
        ("from", edges[:-1], "0.00"),
        ("to", edges[1:], "0.00"),
        ("rows", rows, "0,0"),
        ("share", [percent(each / check.count) for each in rows]),
    ]
    series: list[plot.Series] = [
        plot.Zone("y", low, high, _BAND),
        plot.columns(edges, rows, opacity=0.85, hover=fields),
        plot.ideal("y", check.count / bins),
    ]
    caption = (
        f"{capitalised(check.rows)}: the place of each target in its predicted distribution. Bars are even where the "
        "distributions are right; high at both ends where they are too narrow, high in the middle where they are too "
        "wide, and sloped where predictions are biased."
    )
    summary = capitalised(check.where)
    if isinstance(check, CountCheck):
        density, explained = score_text(check.calibration.scalars, "nlpd"), percent(check.calibration.scalars["d2"])
        caption += f" Negative log predictive density {density} a target; {explained} of the deviance is explained."
        summary += f": NLPD {density}, {explained} of the deviance"
    if len(check.names) > 1:
        caption += f" Mean over {count(len(check.names))} targets; the band is that of one."
    keys = ((PALE_BLUE, "box", "rows"), (ORANGE, "dash", "even"), (_BAND, "box", _band_text(check.count)))
    x = plot.Axis("Predicted probability of values below the target", (0.0, 1.0))
    y = plot.Axis("Rows", (0.0, 1.12 * max(float(rows.max()), high)), whole=True)
    return plot.Figure(caption, x, y, series, keys, height=380, summary=summary)


@plot.drawing("intervals", "Predictions and their uncertainty")
def rows_figure(intervals: RowIntervals) -> plot.Figure:
    """Predictions of some rows with their bars."""
    reach, k = 2.0 * intervals.std, len(intervals.true)
    at, low, high = np.arange(k), intervals.predicted - reach, intervals.predicted + reach
    ends = np.concatenate([intervals.true, low, high])
    inside = np.abs(intervals.true - intervals.predicted) <= reach
    width, form = float(np.clip(360.0 / k, 2.5, 9.0)), "0,0.[0000]"
    fields: list[plot.Field] = [
        ("true", intervals.true, form),
        ("predicted", intervals.predicted, form),
        ("deviation", intervals.std, form),
    ]
    series = [
        plot.Segments(at, low, high, width=width, opacity=0.75, hover=fields),
        plot.Points(at, intervals.predicted, edge=BLUE, edge_width=2.0, size=width + 2, marker="dash"),
        plot.Points(at, intervals.true, np.where(inside, INK, ORANGE).tolist(), size=5.0, edge_width=0.5),
    ]
    caption = (
        f"{count(k)} of {count(intervals.count)} {intervals.rows.split(' ', 1)[1]}, from the least prediction to the "
        f"largest; bars reach two standard deviations to either side. {percent(intervals.inside)} of all these rows "
        "lie inside; 95.4 % should."
    )
    keys = (
        (PALE_BLUE, "box", "predicted ± 2 standard deviations"),
        (INK, "dot", "true"),
        (ORANGE, "dot", "true, and outside"),
    )
    x = plot.Axis("Rows, by their prediction", (-1.5, k + 0.5), numbered=False)
    y = plot.Axis(plain(intervals.name, 30), padded(float(ends.min()), float(ends.max())))
    return plot.Figure(caption, x, y, series, keys, height=380)


@plot.drawing("reliability", "Reliability of probabilities")
def _reliability(check: ProbabilityCheck) -> plot.Figure:
    reliability, scalars = check.calibration, check.calibration.scalars
    filled = reliability.count > 0
    predicted, observed, rows = reliability.predicted[filled], reliability.observed[filled], reliability.count[filled]
    low, high = binomial_band(predicted, rows)
    outside = (observed < low) | (observed > high)
    label = f"the class {check.label}" if check.label else "the likeliest class"
    fields: list[plot.Field] = [
        ("predicted", predicted, "0.000"),
        ("came true", observed, "0.000"),
        ("rows", rows, "0,0"),
        ("if right", [f"{a:.3f} to {b:.3f}" for a, b in zip(low, high, strict=True)]),
    ]
    edges = np.linspace(0.0, 1.0, len(reliability.count) + 1)
    series: list[plot.Series] = [
        # The rows of each bin, in the lowest quarter.
        plot.columns(edges, reliability.count, fill=GREY, opacity=0.45, on_right=True, below=True),
        plot.Line([0.0, 1.0], [0.0, 1.0], ORANGE, 1.2, DASHED, below=True),
        plot.Segments(predicted, low, high, width=7.0, opacity=0.7),
        plot.Line(predicted, observed, width=1.5),
        plot.Points(predicted, observed, np.where(outside, ORANGE, BLUE).tolist(), size=9.0, edge_width=1.0,
               hover=fields),
    ]  # fmt: skip
    loss, brier = score_text(scalars, "log_loss"), score_text(scalars, "brier")
    caption = (
        f"{capitalised(check.rows)}: how often {label} came true, against its predicted probability. Log loss {loss}, "
        f"Brier score {brier}, expected calibration error {significant(scalars['calibration_error'])}."
    )
    keys = [
        (BLUE, "dot", "observed"),
        *([(ORANGE, "dot", "observed, and beyond chance")] if outside.any() else []),
        (PALE_BLUE, "box", "where 95 % of samples would lie, were the probability right"),
        (ORANGE, "dash", "as promised"),
        (GREY, "box", "rows (right axis)"),
    ]
    return plot.Figure(
        caption,
        plot.Axis(f"Predicted probability of {label}", (0.0, 1.0)),
        plot.Axis("Share of rows", (0.0, 1.03)),
        series,
        keys,
        right=plot.Axis("Rows", (0.0, 4.0 * float(reliability.count.max())), whole=True, colour=MUTED),
        height=400,
        summary=f"{capitalised(check.where)}: log loss {loss}, Brier score {brier}",
        square=True,
    )
