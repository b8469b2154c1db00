"""Weights of a committee's members, and whether its basis is large enough for them."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.tuning import MemberWeights
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import counts_from_zero
from streamkernel.report.figures.palette import BLUE, DASHED, FAINT, ORANGE, PALE_BLUE, PAPER
from streamkernel.report.figures.predictions import histogram, histogram_fields
from streamkernel.report.text import count, percent, plural, significant
from streamkernel.type_aliases import Float

_MOST_BARS = 300
_FREEDOM = "Effective degrees of freedom"


@plot.drawing("members", "Weights of the members")
def members_figure(found: MemberWeights) -> plot.Figure:
    """Weight of each member; as a histogram if there are too many members for one bar each."""
    members = len(found.share)
    times = found.share * members
    caption = (
        f"The share of each of the {plural(members, 'member')} in the committee's precision at the query points, in "
        f"parts of an even share, {percent(1.0 / members)}: from {significant(float(times.min()))} to "
        f"{significant(float(times.max()))}."
    )
    if found.block_size is not None:
        caption += f" A member has {plural(found.block_size, 'row')} at most."
    if members <= _MOST_BARS:
        number = np.arange(1, members + 1)
        x = plot.Axis("Member, in the order of the rows", (0.4, members + 0.6), whole=True)
        y = plot.Axis("Times an even share", (0.0, 1.12 * max(float(times.max()), 1.0)))
        fields: list[plot.Field] = [
            ("member", number, "0,0"),
            ("share", [percent(float(share)) for share in found.share]),
            ("times an even one", times, "0.00"),
        ]
        half, edge = (0.41, PAPER) if members < 100 else (0.5, None)
        bars = plot.Boxes(number - half, number + half, 0.0, times, edge=edge, hover=fields)
        key = (PALE_BLUE, "box", "a member")
    else:
        edges, inside, _ = histogram(times)
        x = plot.Axis("Times an even share", (float(edges[0]), float(edges[-1])))
        y = plot.Axis("Members", (0.0, 1.08 * float(inside.max())), whole=True)
        bars = plot.columns(edges, inside, hover=histogram_fields(edges, inside, "0.00", "members"))
        key = (PALE_BLUE, "box", "members")
    series: list[plot.Series] = [bars, plot.ideal("y" if members <= _MOST_BARS else "x", 1.0)]
    keys = (key, (ORANGE, "dash", "an even share"))
    return plot.Figure(caption, x, y, series, keys)


@plot.drawing("freedom", _FREEDOM)
def freedom_figure(freedom: Float) -> plot.Figure:
    """Effective degrees of freedom against the size of the basis."""
    n = len(freedom) - 1
    size, total = np.arange(n + 1), float(freedom[-1])
    reach = min(float(n), 1.12 * total)
    fields = ("basis functions", size, "0,0"), ("degrees of freedom", freedom, "0,0.0")
    series = [
        plot.Line([0.0, reach], [0.0, reach], FAINT, 1.5, DASHED),
        plot.Line(size, freedom, hover=fields, across=True),
        plot.dot(n, total),
        plot.Note(n, total, f"{significant(total)} of {count(n)}", offset=(0, -9), align="right", baseline="top"),
    ]
    caption = (
        "How many parameters the data determine, of those that the first basis functions offer (from below: the whole "
        "kernel would have more). A basis is large enough where the curve has gone flat, too small where it still "
        "follows the dashed line."
    )
    keys = ((BLUE, "line", "determined by the data"), (FAINT, "dash", "one for each basis function"))
    x, y = plot.Axis("Basis functions", counts_from_zero(n), whole=True), plot.Axis(_FREEDOM, (0.0, 1.12 * total))
    return plot.Figure(caption, x, y, series, keys)
