"""Components of a subspace: eigenvalues, correlations of two views, quotients along the picks."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource

from streamkernel.report.bokeh_renderer import hover, new_plot, percent_axis
from streamkernel.report.facts.fit import ROUNDING, Array
from streamkernel.report.figures.axes import log_range, padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, PALE_BLUE, PAPER
from streamkernel.report.text import count, percent, plural, significant

__all__ = ["correlations_panel", "eigenvalues_panel", "quotients_panel"]

_MOST_DOTS = 80


def eigenvalues_panel(values: Array, left: float) -> Panel:
    """Share of each component in the centred trace; `left` is the part of the trace that they leave."""
    title = "Eigenvalues"
    total = float(values.sum()) + left
    if len(values) == 0 or not total > 0.0:
        return Panel("eigenvalues", title, reason="there are no components")
    share = np.maximum(values / total, ROUNDING)
    kept = np.cumsum(share)
    limits = log_range(100.0 * float(share.min()), 100.0 * float(share.max()), 0.08, 0.08)
    r = len(share)
    plot = new_plot("Component", "Share of the variance, %", (0.5 - 0.02 * r, r + 0.5 + 0.02 * r), limits, y_log=True,
                    height=360)  # fmt: skip
    percent_axis(plot.yaxis, *limits)
    words = {name: [percent(float(each)) for each in shares] for name, shares in (("own", share), ("kept", kept))}
    source = ColumnDataSource({"number": np.arange(1, r + 1), "share": 100.0 * share, **words})
    line = plot.line("number", "share", source=source, line_color=BLUE, line_width=2)
    if r <= _MOST_DOTS:
        plot.scatter("number", "share", source=source, size=6, fill_color=PAPER, line_color=BLUE, line_width=1.5)
    hover(plot, [line], [("component", "@number{0,0}"), ("share", "@own"), ("up to here", "@kept")], mode="vline")
    caption = (
        f"What each component has of the variance in feature space, tr C K C. {plural(r, 'component')} "
        f"{'has' if r == 1 else 'have'} {percent(float(kept[-1]))} of it; what is left, {percent(left / total)}, is an "
        "upper bound."
    )
    return Panel("eigenvalues", title, caption, plot, keys=(Key(BLUE, "line", "a component's share"),))


def correlations_panel(correlations: Array, singular: Array) -> Panel:
    """Canonical correlations over the rows of the fit, and the smaller values that the ridge gives."""
    r = len(correlations)
    if r == 0:
        return Panel("correlations", "Canonical correlations", reason="there are no components")
    plot = new_plot("Pair of variates", "Correlation", (0.4, r + 0.6), (0.0, 1.04), height=360)
    source = ColumnDataSource({"number": np.arange(1, r + 1), "correlation": correlations, "singular": singular})
    bars = plot.vbar("number", width=min(0.7, 0.1 * r + 0.2), top="correlation", source=source, fill_color=PALE_BLUE,
                     line_color=PAPER)  # fmt: skip
    plot.scatter("number", "singular", source=source, size=8, fill_color=BLUE, line_color=PAPER, line_width=1.5)
    told = [("pair", "@number{0,0}"), ("correlation", "@correlation{0.0000}"), ("singular value", "@singular{0.0000}")]
    hover(plot, [bars], told)
    plot.xaxis.ticker = list(range(1, r + 1)) if r <= 20 else plot.xaxis.ticker
    caption = (
        "Of the variates over the rows of the fit; on other rows they correlate less. Singular values are what the "
        "ridge leaves of them."
    )
    keys = (Key(PALE_BLUE, "box", "correlation"), Key(BLUE, "dot", "singular value"))
    return Panel("correlations", "Canonical correlations", caption, plot, keys=keys)


def quotients_panel(quotients: Array) -> Panel:
    """Cross quotient of each pick."""
    n = len(quotients)
    if n == 0:
        return Panel("quotients", "Cross quotients", reason="nothing was picked")
    low, high = padded(float(quotients.min()), float(quotients.max()), 0.06)
    plot = new_plot("Pick", "Cross quotient", (1 - 0.02 * n, 1.02 * n), (low, high), height=360)
    source = ColumnDataSource({"pick": np.arange(1, n + 1), "value": quotients})
    line = plot.line("pick", "value", source=source, line_color=BLUE, line_width=1.5)
    if n <= _MOST_DOTS:
        plot.scatter("pick", "value", source=source, size=5, fill_color=PAPER, line_color=BLUE)
    hover(plot, [line], [("pick", "@pick{0,0}"), ("quotient", "@value{0.0000}")], mode="vline")
    caption = (
        "How much the residuals of both views agree at each pick, when it was picked: from "
        f"{significant(float(quotients[0]))} at the first to {significant(float(quotients[-1]))} at the last of "
        f"{count(n)}."
    )
    return Panel("quotients", "Cross quotients", caption, plot, keys=(Key(BLUE, "line", "a pick"),))
