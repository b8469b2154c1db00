"""Labels of rows that may have several: which are wrong how often, and the values of their functions."""

from __future__ import annotations

import numpy as np

from streamkernel.reductions.predictions.labels import THRESHOLD
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.labels import LabelPairs, OneLabel
from streamkernel.report.figures import plot
from streamkernel.report.figures.palette import BLUE, DASHED, INK, ORANGE, PALE_BLUE
from streamkernel.report.figures.predictions import histogram
from streamkernel.report.text import capitalised, count, percent, shortened, with_error

_MOST_LABELS = 24  # bars of a figure


def label_figures(found: LabelPairs | Absent) -> list[plot.Drawing]:
    """Figures of the rows with known labels."""
    if isinstance(found, Absent):
        return [plot.Missing("Wrong labels", found.reason)]
    first = [_values(each, found, index) for index, each in enumerate(found.labels[: plot.MOST_FIGURES])]
    return [errors_figure(found), *first]


@plot.drawing("label-errors", "Wrong labels")
def errors_figure(found: LabelPairs) -> plot.Figure:
    """A bar for each label: the share of the rows for which it is wrong, in both ways."""
    shown = sorted(found.labels, key=lambda each: -each.wrong)[:_MOST_LABELS]
    y, half = np.arange(len(shown)), 0.31
    missed, wrong = (np.array([100.0 * getattr(each, name) for each in shown]) for name in ("missed", "wrong"))
    names = [each.name for each in shown]
    texts = [with_error(each.wrong, each.wrong_se, percent) for each in shown]
    fields: list[plot.Field] = [
        ("label", names),
        ("rows that have it", [percent(each.having) for each in shown]),
        ("missed", [percent(each.missed) for each in shown]),
        ("added", [percent(each.added) for each in shown]),
    ]
    series: list[plot.Series] = [
        plot.Boxes(0.0, missed, y - half, y + half, fill=BLUE, edge=None, hover=fields),
        plot.Boxes(missed, wrong, y - half, y + half, fill=ORANGE, edge=None, hover=fields),
        plot.Texts(wrong, y, texts, offset=7.0),
    ]
    caption = (
        f"{capitalised(found.rows)}: {with_error(found.all_right, found.all_right_se, percent)} have all their labels "
        f"right; the commonest set of labels, named for every row, would be right for {percent(found.commonest)}."
    )
    if len(found.labels) > _MOST_LABELS:
        caption += f" The {_MOST_LABELS} labels of {count(len(found.labels))} that are wrong most often are drawn."
    keys = (BLUE, "box", "missed: the row has it"), (ORANGE, "box", "added: the row has it not")
    # The text stands to the right of the longest bar.
    x = plot.Axis("Rows, %", (0.0, 1.6 * (float(wrong.max()) or 1.0)))
    return plot.Figure(
        caption,
        x,
        plot.Axis("", (len(shown) - 0.4, -0.6), names=tuple(shortened(name, 26) for name in names)),
        series,
        keys,
        height=70 + 34 * max(len(shown), 3),
        summary=f"{percent(found.all_right)} of {found.where} all right",
    )


def _values(label: OneLabel, found: LabelPairs, index: int) -> plot.Figure:
    """Histograms of the function of a label over the rows that have it and over the others."""
    edges, _, _ = histogram(label.value)
    # One edge is at the threshold, so that no bar mixes rows for which the label is predicted with others.
    width = float(edges[1] - edges[0])
    first, last = (np.floor((edges[0] - THRESHOLD) / width), np.ceil((edges[-1] - THRESHOLD) / width))
    edges = THRESHOLD + width * np.arange(min(first, -1.0), max(last, 1.0) + 1.0)
    inside = np.clip(label.value, edges[0], edges[-1])
    without, having = (np.histogram(inside[rows], bins=edges)[0] for rows in (~label.has, label.has))
    fields: list[plot.Field] = [
        ("from", edges[:-1], "0.[000]"),
        ("to", edges[1:], "0.[000]"),
        ("rows without it", without, "0,0"),
        ("rows that have it", having, "0,0"),
    ]
    series: list[plot.Series] = [
        plot.columns(edges, without.astype(np.float64), fill=PALE_BLUE, hover=fields),
        plot.columns(edges, having.astype(np.float64), fill=BLUE, opacity=0.6, hover=fields),
        plot.Rule("x", THRESHOLD, INK, DASHED),
    ]
    caption = (
        f"{capitalised(found.rows)}, {percent(label.having)} of which have the label. It is predicted above 1/2 "
        f"(dashed); 1 stands for rows that have it, 0 for the others. Wrong for {percent(label.wrong)}."
    )
    if index == 0 and len(found.labels) > plot.MOST_FIGURES:
        caption += f" The first {plot.MOST_FIGURES} of {count(len(found.labels))} labels are drawn."
    x = plot.Axis("Value of the function", (float(edges[0]), float(edges[-1])))
    y = plot.Axis("Rows", (0.0, 1.08 * float(max(without.max(), having.max(), 1))), whole=True)
    keys = (PALE_BLUE, "box", "rows without it"), (BLUE, "box", "rows that have it"), (INK, "dash", "1/2")
    return plot.Figure(caption, x, y, series, keys, f"label-{index + 1}", f"Values: {label.name}", height=300)
