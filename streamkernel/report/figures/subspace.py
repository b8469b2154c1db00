"""Components of a subspace: eigenvalues, correlations of two views, quotients along the picks."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.fit import ROUNDING, Absent
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import log_range, padded
from streamkernel.report.figures.palette import BLUE, PALE_BLUE
from streamkernel.report.text import count, percent, plural, significant
from streamkernel.type_aliases import Float

_MOST_DOTS = 80


@plot.drawing("eigenvalues", "Eigenvalues")
def eigenvalues_figure(values: Float, left: float) -> plot.Figure | Absent:
    """Share of each component in the centred trace; `left` is the part of the trace that they leave."""
    total, r = float(values.sum()) + left, len(values)
    if r == 0 or not total > 0.0:
        return Absent("there are no components")
    share = np.maximum(values / total, ROUNDING)
    sums, number = np.cumsum(share), np.arange(1, r + 1)
    fields: list[plot.Field] = [
        ("component", number, "0,0"),
        ("share", [percent(float(each)) for each in share]),
        ("up to here", [percent(float(each)) for each in sums]),
    ]
    x = plot.Axis("Component", (0.5 - 0.02 * r, r + 0.5 + 0.02 * r))
    limits = log_range(100.0 * float(share.min()), 100.0 * float(share.max()), 0.08, 0.08)
    y = plot.Axis("Share of the variance, %", limits, log=True, percent=True)
    line = plot.Line(number, 100.0 * share, rings=6.0 if r <= _MOST_DOTS else 0.0, hover=fields, across=True)
    caption = (
        f"The share of each component in the variance in feature space, tr C K C. {plural(r, 'component')} "
        f"{'has' if r == 1 else 'have'} {percent(float(sums[-1]))} of it; the rest, {percent(left / total)}, is an "
        "upper bound."
    )
    keys = ((BLUE, "line", "share of a component"),)
    return plot.Figure(caption, x, y, [line], keys, height=360)


@plot.drawing("correlations", "Canonical correlations")
def correlations_figure(correlations: Float, singular: Float) -> plot.Figure | Absent:
    """Canonical correlations over the rows of the fit, and the smaller values that the ridge gives."""
    r = len(correlations)
    if r == 0:
        return Absent("there are no components")
    number, half = np.arange(1, r + 1), 0.5 * min(0.7, 0.1 * r + 0.2)
    form = "0.0000"
    fields: list[plot.Field] = [
        ("pair", number, "0,0"),
        ("correlation", correlations, form),
        ("singular value", singular, form),
    ]
    bars = plot.Boxes(number - half, number + half, 0.0, correlations, hover=fields)
    x = plot.Axis("Pair of variates", (0.4, r + 0.6), ticks=tuple(number.tolist()) if r <= 20 else ())
    y = plot.Axis("Correlation", (0.0, 1.04))
    caption = (
        "Correlations of the variates over the rows of the fit; on other rows they correlate less. The ridge makes "
        "the singular values smaller than the correlations."
    )
    keys = ((PALE_BLUE, "box", "correlation"), (BLUE, "dot", "singular value"))
    dots = plot.Points(number, singular, size=8.0)
    return plot.Figure(caption, x, y, [bars, dots], keys, height=360)


@plot.drawing("quotients", "Cross quotients")
def quotients_figure(quotients: Float) -> plot.Figure | Absent:
    """Cross quotient of each pick."""
    n = len(quotients)
    if n == 0:
        return Absent("nothing was picked")
    pick = np.arange(1, n + 1)
    fields = ("pick", pick, "0,0"), ("quotient", quotients, "0.0000")
    rings = 5.0 if n <= _MOST_DOTS else 0.0
    line = plot.Line(pick, quotients, width=1.5, rings=rings, hover=fields, across=True)
    caption = (
        "How much the residuals of both views agree at each pick, at the time of the pick: from "
        f"{significant(float(quotients[0]))} at the first to {significant(float(quotients[-1]))} at the last of "
        f"{count(n)}."
    )
    x = plot.Axis("Pick", (1 - 0.02 * n, 1.02 * n))
    y = plot.Axis("Cross quotient", padded(float(quotients.min()), float(quotients.max()), 0.06))
    return plot.Figure(caption, x, y, [line], ((BLUE, "line", "a pick"),), height=360)
