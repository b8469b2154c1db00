"""Quantiles of some rows beside their targets, and the share of the targets below each level."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.calibration import binomial_band
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.quantiles import QuantileCheck
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import BLUE, DASHED, INK, ORANGE, PALE_BLUE, blend
from streamkernel.report.text import capitalised, count, percent, plain, score_text

_BAND = blend(0.14)


def quantile_figures(check: QuantileCheck | Absent | None) -> list[plot.Drawing]:
    """Figures of the quantiles of the check rows."""
    if check is None:
        return []
    if isinstance(check, Absent):
        return [plot.Missing("Quantiles", check.reason)]
    return [_shares(check), _rows(check)]


@plot.drawing("shares", "Shares below the quantiles")
def _shares(check: QuantileCheck) -> plot.Figure:
    levels, shares = check.levels, check.calibration.coverage
    fine = np.linspace(0.0, 1.0, 101)
    low, high = binomial_band(fine, check.count)
    fields: list[plot.Field] = [
        ("level", [f"{100 * level:g} %" for level in levels]),
        ("below", [f"{100 * share:.1f} %" for share in shares]),
        ("more by", [f"{100 * off:+.1f} points" for off in shares - levels]),
    ]
    series: list[plot.Series] = [
        plot.Area(100 * fine, 100 * low, 100 * high, _BAND),
        plot.Line([0.0, 100.0], [0.0, 100.0], ORANGE, 1.2, DASHED, below=True),
        plot.Line(100 * levels, 100 * shares, BLUE, rings=6.0, hover=fields),
    ]
    scalars = check.calibration.scalars
    caption = (
        f"{capitalised(check.rows)}: the share of the targets at or below each quantile; on the dashed line it is the "
        f"level. Mean pinball loss {score_text(scalars, 'pinball')}."
    )
    if scalars["crossed"]:
        caption += f" The functions of {percent(scalars['crossed'])} of the rows crossed before they were sorted."
    keys = (
        (BLUE, "ring", "observed"),
        (ORANGE, "dash", "as promised"),
        (_BAND, "box", f"95 % of samples of {count(check.count)} rows, if so"),
    )
    x, y = plot.Axis("Level, %", (0.0, 100.0)), plot.Axis("Targets below, %", (0.0, 101.5))
    summary = f"{capitalised(check.where)}: pinball loss {score_text(scalars, 'pinball')}"
    return plot.Figure(caption, x, y, series, keys, height=380, summary=summary, square=True)


@plot.drawing("quantiles", "Quantiles of some rows")
def _rows(check: QuantileCheck) -> plot.Figure:
    k, values, levels = len(check.true), check.quantiles, check.levels
    at, low, high = np.arange(k), values[:, 0], values[:, -1]
    middle = int(np.argmin(np.abs(levels - 0.5)))
    ends = np.concatenate([check.true, low, high])
    width, form = float(np.clip(360.0 / k, 2.5, 9.0)), "0,0.[0000]"
    fields: list[plot.Field] = [
        ("true", check.true, form),
        *((f"quantile {level:g}", values[:, index], form) for index, level in enumerate(levels)),
    ]
    several = len(levels) > 1
    inside = (low <= check.true) & (check.true <= high)
    colours = np.where(inside, INK, ORANGE).tolist() if several else [INK] * k
    series: list[plot.Series] = [
        plot.Points(at, values[:, middle], edge=BLUE, edge_width=2.0, size=width + 2, marker="dash"),
        plot.Points(at, check.true, colours, size=5.0, edge_width=0.5),
    ]
    keys: list[plot.Key] = [(BLUE, "line", f"quantile {levels[middle]:g}"), (INK, "dot", "true")]
    between = ""
    if several:
        series.insert(0, plot.Segments(at, low, high, width=width, opacity=0.75, hover=fields))
        keys.insert(0, (PALE_BLUE, "box", f"quantiles {levels[0]:g} to {levels[-1]:g}"))
        keys.append((ORANGE, "dot", "true, and outside"))
        share = 100.0 * float(levels[-1] - levels[0])
        between = f" Bars reach from the lowest to the highest level; {share:g} % of the targets should lie inside."
    caption = (
        f"{count(k)} of {count(check.count)} {check.rows.split(' ', 1)[1]}, from the least quantile {levels[middle]:g} "
        f"to the largest.{between}"
    )
    x = plot.Axis("Rows, by their quantile", (-1.5, k + 0.5), numbered=False)
    y = plot.Axis(plain(check.name, 30), padded(float(ends.min()), float(ends.max())))
    return plot.Figure(caption, x, y, series, keys, height=380)
