"""Weights of a committee's members, and whether its basis is large enough for them."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource

from streamkernel.report.bokeh_renderer import dashed, hover, new_plot, note
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.tuning import FreedomCurve, MemberWeights
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, FAINT, ORANGE, PALE_BLUE, PAPER
from streamkernel.report.figures.predictions import histogram
from streamkernel.report.text import count, percent, plural, significant

__all__ = ["freedom_panel", "members_panel"]

_MOST_BARS = 300


def members_panel(found: MemberWeights | None) -> list[Panel]:
    """Weight of each member; as a histogram if there are too many members for one bar each."""
    if found is None:
        return []
    members = len(found.share)
    times = found.share * members
    caption = (
        f"Each of the {plural(members, 'member')}' share of the committee's precision at the query points, in parts of "
        f"an even share, {percent(1.0 / members)}: from {significant(float(times.min()))} to "
        f"{significant(float(times.max()))}."
    )
    if found.block_size is not None:
        caption += f" A member has {plural(found.block_size, 'row')} at most."
    if members <= _MOST_BARS:
        top = 1.12 * max(float(times.max()), 1.0)
        plot = new_plot("Member, in the order of the rows", "Times an even share", (0.4, members + 0.6), (0.0, top))
        source = ColumnDataSource(
            {"number": np.arange(1, members + 1), "times": times, "share": [percent(float(s)) for s in found.share]}
        )
        bars = plot.vbar(
            "number", width=0.82 if members < 100 else 1.0, top="times", source=source, fill_color=PALE_BLUE,
            line_color=PAPER if members < 100 else None,
        )  # fmt: skip
        hover(plot, [bars], [("member", "@number{0,0}"), ("share", "@share"), ("times an even one", "@times{0.00}")])
        dashed(plot, "width", 1.0)
        key = Key(PALE_BLUE, "box", "a member")
    else:
        edges, members_in, _ = histogram(times)
        plot = new_plot("Times an even share", "Members", (float(edges[0]), float(edges[-1])),
                        (0.0, 1.08 * float(members_in.max())))  # fmt: skip
        columns = plot.quad(
            edges[:-1], edges[1:], bottom=0, top=members_in.astype(float), fill_color=PALE_BLUE, line_color=PAPER
        )
        hover(plot, [columns], [("from", "@left{0.00}"), ("to", "@right{0.00}"), ("members", "@top{0,0}")])
        dashed(plot, "height", 1.0)
        key = Key(PALE_BLUE, "box", "members")
    keys = (key, Key(ORANGE, "dash", "an even share"))
    return [Panel("members", "Weights of the members", caption, plot, keys=keys)]


def freedom_panel(curve: FreedomCurve | Absent | None) -> list[Panel]:
    """Effective degrees of freedom against the size of the basis."""
    title = "Effective degrees of freedom"
    if curve is None:
        return []
    if isinstance(curve, Absent):
        return [Panel("freedom", title, reason=curve.reason)]
    n = len(curve.freedom) - 1
    size, total = np.arange(n + 1), float(curve.freedom[-1])
    plot = new_plot("Basis functions", "Effective degrees of freedom", (-0.012 * n, 1.02 * n), (0.0, 1.12 * total))
    reach = min(float(n), 1.12 * total)
    plot.line([0.0, reach], [0.0, reach], line_color=FAINT, line_dash=[5, 4], line_width=1.5)
    source = ColumnDataSource({"size": size, "freedom": curve.freedom})
    line = plot.line("size", "freedom", source=source, line_color=BLUE, line_width=2)
    hover(plot, [line], [("basis functions", "@size{0,0}"), ("degrees of freedom", "@freedom{0,0.0}")], mode="vline")
    plot.scatter([n], [total], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    note(plot, n, total, f"{significant(total)} of {count(n)}", y_offset=-9, text_align="right", text_baseline="top",
         text_color=ORANGE)  # fmt: skip
    caption = (
        "How many parameters the data determine, of those that the first basis functions offer (from below: what the "
        "whole kernel would have is more). A basis is large enough where the curve has gone flat, too small where it "
        "still runs along the dashed line."
    )
    keys = (Key(BLUE, "line", "determined by the data"), Key(FAINT, "dash", "one for each basis function"))
    return [Panel("freedom", title, caption, plot, keys=keys)]
