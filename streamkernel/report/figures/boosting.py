"""A vote member by member: its error beside those of the members, their weights, and the margins of the rows."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.boosting import Margins, MemberWeights, VoteErrors
from streamkernel.report.figures import plot
from streamkernel.report.figures.palette import BLUE, DASHED, GREY, INK, ORANGE, PALE_BLUE, TEAL
from streamkernel.report.text import count, percent, plural, significant


@plot.drawing("votes", "Error against members")
def vote_figure(found: VoteErrors) -> plot.Figure:
    """Errors of the votes and of the members, and the bound."""
    tried = len(found.training)
    at = np.arange(1, tried + 1)
    held = found.held_out is not None
    shown = [(100.0 * found.training, BLUE, "vote, rows of the fit")]
    if found.held_out is not None:
        shown.append((100.0 * found.held_out, TEAL, "vote, held-out rows"))
    series: list[plot.Series] = []
    for values, colour, where in shown:
        texts = ["–" if np.isnan(each) else percent(each / 100.0) for each in values]
        fields = ("members", at, "0,0"), (where, texts)
        series.append(plot.Line(at, values, colour, rings=5.0 if tried <= 60 else 0.0, hover=fields, across=True))
    alone = "a member alone, " + ("held-out rows" if held else "rows of the fit")
    series.append(plot.Points(at, 100.0 * found.members, GREY, size=6.0, hover=[("member", at, "0,0")], below=True))
    keys: list[plot.Key] = [(colour, "line", where) for _, colour, where in shown]
    keys.append((GREY, "dot", alone))
    highest = [100.0 * found.members, *(values for values, _, _ in shown)]
    if found.bound is not None:
        bounded = np.arange(1, len(found.bound) + 1)
        series.append(plot.Line(bounded, 100.0 * found.bound, INK, 1.5, DASHED))
        keys.append((INK, "line", "bound of the vote on rows of the fit"))
    top = float(np.nanmax(np.concatenate(highest)))
    chosen = found.training if found.held_out is None else found.held_out
    value = float(chosen[found.kept - 1])
    if np.isfinite(value):
        series += [plot.Rule("x", found.kept, dash=(1, 3)), plot.dot(found.kept, 100.0 * value)]
        keys.append((ORANGE, "dot", f"the model: {plural(found.kept, 'member')}, {percent(value)} wrong"))
    caption = (
        "Share of rows whose predicted class is wrong, by weight. "
        + (
            "The bound is the product of 2 √(e (1 − e)) over the members, e the error of each under its own weights of "
            "the rows. "
            if found.bound is not None
            else ""
        )
        + (
            f"The error on {plural(found.rows, 'held-out row')} chose the number of members."
            if held
            else "No row was held out: nothing here says from where on members only fit noise."
        )
    )
    y = plot.Axis("Wrong rows, %", (0.0, 1.15 * top if top > 0.0 else 1.0))
    x = plot.Axis("Members", (0.5, tried + 0.5), whole=True)
    return plot.Figure(caption, x, y, series, keys, height=360, legend=True)


@plot.drawing("member-weights", "Weights of the members")
def weights_figure(found: MemberWeights) -> plot.Figure:
    """Columns of the weights, with the errors that they follow from."""
    tried = len(found.weights)
    edges = np.arange(tried + 1) + 0.5
    fields = [
        ("member", np.arange(1, tried + 1), "0,0"),
        ("weight", [significant(float(each)) for each in found.weights]),
        ("error", [percent(float(each)) for each in found.errors]),
        ("rows", np.array(found.rows), "0,0"),
    ]
    series = [plot.columns(edges, found.weights, hover=fields)]
    out = int((found.weights == 0.0).sum())
    caption = (
        "The say of each member in the vote. It follows from the error e of the member under the weights that the rows "
        f"had when it was measured, which a guess would have at {percent(1.0 - 1.0 / found.classes)}: the more members "
        "there are, the harder are their rows."
    )
    if out:
        caption += f" {plural(out, 'member')} of those that were tried {'are' if out > 1 else 'is'} not in the vote."
    top = float(found.weights.max())
    y = plot.Axis("Weight", (0.0, 1.1 * top if top > 0.0 else 1.0))
    x = plot.Axis("Member", (0.5, tried + 0.5), whole=True)
    return plot.Figure(caption, x, y, series, [(PALE_BLUE, "box", "weight")])


@plot.drawing("vote-margins", "Margins of the vote")
def margins_figure(found: Margins) -> plot.Figure:
    """Distributions of the margins of the rows."""
    middle = 0.5 * (found.edges[:-1] + found.edges[1:])
    shares = 100.0 * np.cumsum(found.shares, axis=1)
    series: list[plot.Series] = [
        plot.Line(found.edges[1:], shares[0], BLUE, hover=[("margin", middle, "0.00")], stepped=True)
    ]
    keys: list[plot.Key] = [(BLUE, "line", "rows of the fit")]
    if found.held_out:
        series.append(plot.Line(found.edges[1:], shares[1], TEAL, stepped=True))
        keys.append((TEAL, "line", "held-out rows"))
    series.append(plot.ideal("x", 0.0))
    wrong = float(found.shares[0, : len(middle) // 2].sum())
    caption = (
        "Share of the rows whose margin is at most that: the share of the votes for the row's own class, less that for "
        f"the best other one. Rows left of 0 are wrong, {percent(wrong)} of those of the fit."
    )
    return plot.Figure(
        caption, plot.Axis("Margin", (-1.0, 1.0)), plot.Axis("Rows, %", (0.0, 103.0)), series, keys,
        summary=f"margins of {count(2 if found.held_out else 1)} sets of rows",
    )  # fmt: skip
