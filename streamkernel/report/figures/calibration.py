"""Predicted distributions against true targets: intervals, transforms, rows with their bars, reliability."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure

from streamkernel.report.bokeh_renderer import dashed, hover, new_plot, note, second_axis
from streamkernel.report.facts.calibration import (
    CountCheck,
    GaussianCheck,
    ProbabilityCheck,
    RowIntervals,
    binomial_band,
)
from streamkernel.report.facts.fit import Absent, Array
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, GREY, INK, MUTED, ORANGE, PALE_BLUE, PAPER, blend, line_style
from streamkernel.report.text import count, percent, plain, plural, significant

__all__ = ["distribution_panels", "rows_panel"]

_MOST_LINES = 6
_BAND = blend(0.14)
_AT_95 = 18


def distribution_panels(check: GaussianCheck | ProbabilityCheck | CountCheck | Absent | None) -> list[Panel]:
    """Panels of the calibration of predicted distributions."""
    if check is None:
        return []
    if isinstance(check, Absent):
        return [Panel("calibration", "Calibration", reason=check.reason)]
    if isinstance(check, ProbabilityCheck):
        return [_reliability(check)]
    if isinstance(check, CountCheck):
        return [_transform(check)]
    return [_intervals(check), _transform(check)]


def _intervals(check: GaussianCheck) -> Panel:
    levels, coverage = check.found.levels, check.found.coverage
    plot = new_plot("Intervals should hold, %", "They hold, %", (0.0, 100.0), (0.0, 101.5), height=380)
    fine = np.linspace(0.0, 1.0, 101)
    low, high = binomial_band(fine, check.count)
    plot.varea(100 * fine, 100 * low, 100 * high, fill_color=_BAND, level="underlay")
    plot.line([0.0, 100.0], [0.0, 100.0], line_color=ORANGE, line_dash=[5, 4], line_width=1.2, level="underlay")
    drawn = coverage if len(coverage) <= _MOST_LINES else coverage.mean(axis=0, keepdims=True)
    names = check.names if len(coverage) <= _MOST_LINES else (f"mean of {count(len(coverage))} targets",)
    keys = []
    for index, (line, name) in enumerate(zip(drawn, names, strict=True)):
        colour = BLUE if len(drawn) == 1 else _apart(index)
        source = ColumnDataSource(
            {"level": 100 * levels, "share": 100 * line, "name": [name] * len(levels), "off": 100 * (line - levels)}
        )
        plot.line("level", "share", source=source, line_color=colour, line_width=2)
        dots = plot.scatter(
            "level", "share", source=source, size=6, fill_color=PAPER, line_color=colour, line_width=1.5
        )
        told = [("should hold", "@level{0} %"), ("hold", "@share{0.0} %"), ("more by", "@off{+0.0} points")]
        hover(plot, [dots], [("target", "@name"), *told] if len(coverage) > 1 else told)
        if len(drawn) > 1:
            keys.append(Key(colour, "line", name))
    held = check.found.scalars["coverage95"]
    plot.scatter([95.0], [100 * held], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    # In the corner away from the line.
    corner: dict[str, Any] = (
        {"x": 2.0, "y": 99.0, "text_baseline": "top"} if held <= 0.95 else {"x": 98.0, "y": 3.0, "text_align": "right"}
    )
    note(plot, text=f"95 % intervals hold {percent(held)}", text_color=ORANGE, **corner)
    caption = (
        f"{_sentence(check.rows)}: how many targets the central intervals of the predicted distributions hold. "
        "Above the dashed line intervals are too wide, below it too narrow. Negative log predictive density "
        f"{significant(check.found.scalars['nlpd'])} a target."
    )
    if len(coverage) > _MOST_LINES:
        caption += " The mean over targets is drawn."
    keys = keys or [Key(BLUE, "ring", "observed")]
    keys += [Key(ORANGE, "dash", "as promised"), Key(_BAND, "box", _band_words(check.count))]
    return Panel("calibration", "Calibration of intervals", caption, plot, keys=tuple(keys))


def _apart(index: int) -> str:
    """Colours of lines side by side, without orange: it stands for the promised value."""
    return line_style(index if index == 0 else index + 1)[0]


def _band_words(rows: int) -> str:
    return f"where 95 % of samples of {plural(rows, 'independent row')} lie"


def _transform(check: GaussianCheck | CountCheck) -> Panel:
    rows, bins = check.transform, len(check.transform)
    low, high = (check.count * float(end[0]) for end in binomial_band(np.array([1.0 / bins]), check.count))
    top = 1.12 * max(float(rows.max()), high)
    plot = new_plot("Probability that was given to less than the target", "Rows", (0.0, 1.0), (0.0, top), height=380)
    band = BoxAnnotation(bottom=low, top=high, fill_color=_BAND, fill_alpha=1.0, line_color=None)
    band.level = "image"
    plot.add_layout(band)
    edges = np.linspace(0.0, 1.0, bins + 1)
    source = ColumnDataSource(
        {"left": edges[:-1], "right": edges[1:], "rows": rows, "share": [percent(each / check.count) for each in rows]}
    )
    bars = plot.quad(
        "left", "right", bottom=0, top="rows", source=source, fill_color=PALE_BLUE, fill_alpha=0.85, line_color=PAPER
    )
    hover(plot, [bars], [("from", "@left{0.00}"), ("to", "@right{0.00}"), ("rows", "@rows{0,0}"), ("share", "@share")])
    even = check.count / bins
    dashed(plot, "width", even)
    caption = (
        f"{_sentence(check.rows)}: where in its predicted distribution each target came. Bars are even where the "
        "distributions are right; high at both ends where they are too narrow, high in the middle where they are too "
        "wide, and sloped where predictions are biased."
    )
    if isinstance(check, CountCheck):
        scalars = check.found.scalars
        caption += (
            f" Negative log predictive density {significant(scalars['nlpd'])} a target; "
            f"{percent(scalars['d2'])} of the deviance is explained."
        )
    if len(check.names) > 1:
        caption += f" Mean over {count(len(check.names))} targets; the band is that of one."
    keys = (
        Key(PALE_BLUE, "box", "rows"),
        Key(ORANGE, "dash", "even"),
        Key(_BAND, "box", _band_words(check.count)),
    )
    return Panel("transform", "Probability integral transform", caption, plot, keys=keys)


def rows_panel(found: RowIntervals | None) -> list[Panel]:
    """Predictions of some rows with their bars."""
    if found is None:
        return []
    reach = 2.0 * found.std
    ends = np.concatenate([found.true, found.predicted - reach, found.predicted + reach])
    k = len(found.true)
    limits = padded(float(ends.min()), float(ends.max()))
    plot = new_plot("Rows, by what was predicted", plain(found.name, 30), (-1.5, k + 0.5), limits, height=380)
    plot.xaxis.major_label_text_font_size = "0px"
    plot.xaxis.major_tick_line_color = None
    inside = np.abs(found.true - found.predicted) <= reach
    source = ColumnDataSource(
        {
            "x": np.arange(k),
            "predicted": found.predicted,
            "low": found.predicted - reach,
            "high": found.predicted + reach,
            "true": found.true,
            "std": found.std,
            "colour": np.where(inside, INK, ORANGE).tolist(),
        }
    )
    width = float(np.clip(360.0 / k, 2.5, 9.0))
    bars = plot.segment(
        "x", "low", "x", "high", source=source, line_color=PALE_BLUE, line_width=width, line_alpha=0.75,
    )  # fmt: skip
    plot.scatter("x", "predicted", source=source, marker="dash", size=width + 2, line_color=BLUE, line_width=2)
    plot.scatter("x", "true", source=source, size=5, fill_color="colour", line_color=PAPER, line_width=0.5)
    told = [("true", "@true{0,0.[0000]}"), ("predicted", "@predicted{0,0.[0000]}"), ("deviation", "@std{0,0.[0000]}")]
    hover(plot, [bars], told)
    caption = (
        f"{count(k)} of {count(found.count)} {_without_number(found.rows)}, from the least prediction to the largest; "
        f"bars reach two standard deviations to either side. {percent(found.inside)} of all these rows lie inside, "
        "95.4 % should."
    )
    keys = (
        Key(PALE_BLUE, "box", "predicted ± 2 standard deviations"),
        Key(INK, "dot", "true"),
        Key(ORANGE, "dot", "true, and outside"),
    )
    return [Panel("intervals", "Predictions and their uncertainty", caption, plot, keys=keys)]


def _without_number(rows: str) -> str:
    return rows.split(" ", 1)[1]


def _reliability(check: ProbabilityCheck) -> Panel:
    found = check.found
    filled = found.count > 0
    predicted, observed, rows = found.predicted[filled], found.observed[filled], found.count[filled]
    low, high = binomial_band(predicted, rows)
    of = f"the class {check.label}" if check.label else "the likeliest class"
    plot = new_plot(f"Predicted probability of {of}", "Share of rows", (0.0, 1.0), (0.0, 1.03), height=400)
    _draw_counts(plot, found.count)
    plot.line([0.0, 1.0], [0.0, 1.0], line_color=ORANGE, line_dash=[5, 4], line_width=1.2, level="underlay")
    outside = (observed < low) | (observed > high)
    source = ColumnDataSource(
        {
            "predicted": predicted,
            "observed": observed,
            "rows": rows,
            "low": low,
            "high": high,
            "colour": np.where(outside, ORANGE, BLUE).tolist(),
        }
    )
    plot.segment(
        "predicted", "low", "predicted", "high", source=source, line_color=PALE_BLUE, line_width=7, line_alpha=0.7
    )
    plot.line("predicted", "observed", source=source, line_color=BLUE, line_width=1.5)
    dots = plot.scatter(
        "predicted", "observed", source=source, size=9, fill_color="colour", line_color=PAPER, line_width=1
    )
    told = [("predicted", "@predicted{0.000}"), ("came true", "@observed{0.000}"), ("rows", "@rows{0,0}")]
    hover(plot, [dots], [*told, ("if right", "@low{0.000} to @high{0.000}")])
    scalars = found.scalars
    caption = (
        f"{_sentence(check.rows)}: how often {of} came, against how probable it was called. Log loss "
        f"{significant(scalars['log_loss'])}, Brier score {significant(scalars['brier'])}, expected calibration error "
        f"{significant(scalars['calibration_error'])}."
    )
    keys = [
        Key(BLUE, "dot", "observed"),
        Key(PALE_BLUE, "box", "where 95 % of samples would lie, were the probability right"),
        Key(ORANGE, "dash", "as promised"),
        Key(GREY, "box", "rows (right axis)"),
    ]
    if outside.any():
        keys.insert(1, Key(ORANGE, "dot", "observed, and beyond chance"))
    return Panel("reliability", "Reliability of probabilities", caption, plot, keys=tuple(keys))


def _draw_counts(plot: figure, rows: Array) -> None:
    """Number of rows of each bin as bars in the lowest quarter, on their own axis."""
    edges = np.linspace(0.0, 1.0, len(rows) + 1)
    second_axis(plot, "rows", "Rows", (0.0, 4.0 * float(rows.max())), MUTED)
    plot.quad(
        edges[:-1], edges[1:], bottom=0, top=rows, y_range_name="rows", fill_color=GREY, fill_alpha=0.45,
        line_color=PAPER, level="underlay",
    )  # fmt: skip


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
