"""A metric of the features: their weights, its leading directions, and what the search for it tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.report.facts.metric import NEGLIGIBLE, Directions, FeatureWeights, MetricTrials
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import BLUE, DASHED, FAINT, INK, ORANGE, PAPER, blend, line_style
from streamkernel.report.text import count, percent, plural, shortened, significant

_MOST_DRAWN = 20
_MOST_NAMED = 6  # features that a sentence names
_MOST = 0.9  # share of the sum of squares of the features that matter most
_HARDLY = 0.05  # share of the largest weight, below which a feature hardly matters
_LEAST_SPAN = 0.1  # of an axis of errors, as a share of the plain kernel's: smaller differences are to look small
_LIGHT = 0.65  # size of a component from which its number is white


@plot.drawing("weights", "Weights of the features")
def weights_figure(weights: FeatureWeights) -> plot.Figure:
    """The features with the largest weights, as bars."""
    value, names = weights.value[:_MOST_DRAWN], [shortened(name, 22) for name in weights.names[:_MOST_DRAWN]]
    k, at = len(value), np.arange(len(value))
    texts = [significant(float(each)) for each in value]
    hover: list[plot.Field] = [
        ("feature", names),
        ("weight", texts),
        ("share of the squares", [percent(float(each)) for each in weights.share[:k]]),
    ]
    bars = plot.Boxes(0.0, value, at - 0.31, at + 0.31, fill=BLUE, edge=None, hover=hover)
    series = [bars, plot.Texts(value, at, texts, size=11.0, offset=7.0)]
    unit = "one standard deviation" if weights.standardised else "one unit"
    x = plot.Axis(f"Distance of a step of {unit}", (0.0, 1.25 * float(value.max())))
    y = plot.Axis("", (max(k, 3) - 0.4, -0.6), names=tuple(names))  # one bar would fill the figure
    return plot.Figure(_weights_caption(weights), x, y, series, height=90 + 22 * max(k, 6))


def _weights_caption(weights: FeatureWeights) -> str:
    value, names, p = weights.value, weights.names, len(weights.value)
    found = "The fit found the metric" if weights.learned else "The metric was given"
    if p == 1:
        return f"{found}; there is only one feature."
    many = int(np.searchsorted(np.cumsum(weights.share), _MOST * (1.0 - 1e-12))) + 1
    hardly = [name for name, each in zip(names, value, strict=True) if each < _HARDLY * value[0]]
    share = _share(float(weights.share[:many].sum()))
    matter, have = ("matters", "it has") if many == 1 else ("matter", "they have")
    text = (
        f"{found}. {_named(names[:many])} {matter} most: {have} {share} of the sum of squares of the weights."
        if many < p
        else f"{found}. No few features stand out."
    )
    if hardly:
        matters = "matters" if len(hardly) == 1 else "matter"
        text += f" {_named(hardly)} hardly {matters}, with weights below a twentieth of the largest."
    rest = value[_MOST_DRAWN:]
    if len(rest):
        left = float(weights.share[_MOST_DRAWN:].sum())
        text += (
            f" Not drawn: {plural(len(rest), 'feature')} with weights of at most {significant(float(rest[0]))}, "
            f"{_share(left)} of the sum of squares in all."
        )
    return text


def _share(share: float) -> str:
    """A share in percent, without digits that say nothing."""
    if share > 0.999:
        return "more than 99.9 %"
    return "less than 0.1 %" if share < 0.001 else percent(share)


def _named(names: Sequence[str]) -> str:
    """The names as part of a sentence; only their number if there are many."""
    if len(names) > _MOST_NAMED:
        return plural(len(names), "feature")
    short = [shortened(name, 22) for name in names]
    return short[0] if len(short) == 1 else f"{', '.join(short[:-1])} and {short[-1]}"


@plot.drawing("directions", "Leading directions")
def directions_figure(found: Directions) -> plot.Figure:
    """A cell for each feature and direction; its colour and number are the component."""
    k, c = found.value.shape
    row, column = (each.ravel() for each in np.meshgrid(np.arange(k), np.arange(c), indexing="ij"))
    value = found.value.ravel()
    sizes = np.abs(value)
    colours = [
        blend(size, PAPER, BLUE if each >= 0.0 else ORANGE)
        for each, size in zip(value.tolist(), sizes.tolist(), strict=True)
    ]
    names = [shortened(name, 22) for name in found.names]
    shares = ["> 99.9 %" if share > 0.999 else percent(share, 2) for share in found.share.tolist()]
    heads = [f"{index + 1}: {share}" for index, share in enumerate(shares)]
    hover: list[plot.Field] = [
        ("feature", [names[index] for index in row]),
        ("direction", [heads[index] for index in column]),
        ("component", [significant(float(each)) for each in value]),
    ]
    # A number that rounds to 0 would only be in the way of the others.
    shown = sizes >= NEGLIGIBLE
    texts = [f"{each:.2f}".replace("-", "−") for each in value[shown]]
    inks = [PAPER if size > _LIGHT else INK for size in sizes[shown].tolist()]
    series = [
        plot.Boxes(column - 0.5, column + 0.5, row - 0.5, row + 0.5, colours, hover=hover),
        plot.Texts(column[shown], row[shown], texts, inks, size=11.0, align="center"),
    ]
    caption = (
        "The columns of T as unit vectors, the longest first, with their shares in the sum of squares: the function "
        "may vary most along the first."
    )
    if found.count > c:
        left = max(1.0 - float(found.share.sum()), 0.0)
        caption += f" Not drawn: {plural(found.count - c, 'direction')} with {_share(left)} of the sum"
        caption += f", and {plural(found.left, 'feature')} with smaller components." if found.left else "."
    elif found.left:
        caption += f" Not drawn: {plural(found.left, 'feature')} with smaller components."
    keys = ((BLUE, "box", "positive"), (ORANGE, "box", "negative"))
    x = plot.Axis("Direction, share of the sum of squares", (-0.5, c - 0.5), names=tuple(heads))
    y = plot.Axis("", (k - 0.5, -0.5), names=tuple(names))
    return plot.Figure(caption, x, y, series, keys, height=110 + 24 * max(k, 5))


@plot.drawing("metric-search", "Search for the metric")
def trials_figure(trials: MetricTrials) -> plot.Figure:
    """Held-out error of each form, round by round, from that of the plain kernel on."""
    number = np.array([each.round for each in trials.rounds])
    forms = list(dict.fromkeys(each.form for each in trials.rounds if each.round > 0))
    series: list[plot.Series] = [plot.Rule("y", trials.plain, FAINT, DASHED, 1.2)]
    keys: list[plot.Key] = [(FAINT, "dash", f"plain kernel: {significant(trials.plain)}")]
    for index, form in enumerate(forms):
        colour, dash = line_style(index if index == 0 else index + 1)  # orange is for what was taken
        own = [i for i, each in enumerate(trials.rounds) if each.form == form]
        x, y = [0, *number[own].tolist()], [trials.plain, *trials.error[own].tolist()]
        series.append(plot.Line(x, y, colour, dash=dash))
        series.append(plot.rings(number[own], trials.error[own], colour, hover=_fields(trials, own)))
        keys.append((colour, "line", form))
    plain = [i for i, each in enumerate(trials.rounds) if each.round == 0]
    series.append(plot.rings(number[plain], trials.error[plain], FAINT, hover=_fields(trials, plain)))
    at, value = int(number[trials.best]), float(trials.error[trials.best])
    last = max(int(number.max()), 1)
    offset, align = ((-9, -16), "right") if at > 0.5 * last else ((9, -16), "left")
    series += [
        plot.dot(at, value),
        plot.Note(at, value, f"taken: {significant(value)}", offset=offset, align=align, baseline="middle"),  # type: ignore[arg-type]
    ]
    keys.append((ORANGE, "dot", "taken"))
    low, high = float(trials.error.min()), float(trials.error.max())
    low, high = padded(low, max(high, low + _LEAST_SPAN * trials.plain), 0.08)
    x_axis = plot.Axis("Round", (-0.25, last + 0.25), ticks=tuple(float(each) for each in range(last + 1)))
    y_axis = plot.Axis("Error on held-out rows", (low - 0.1 * (high - low), high))
    return plot.Figure(_trials_caption(trials), x_axis, y_axis, series, keys, height=340)


def _fields(trials: MetricTrials, which: list[int]) -> list[plot.Field]:
    rounds = [trials.rounds[index] for index in which]
    return [
        ("metric", [each.form for each in rounds]),
        ("round", [count(each.round) for each in rounds]),
        ("directions", [count(each.columns) for each in rounds]),
        ("lengthscale", [significant(each.lengthscale) for each in rounds]),
        ("alpha", [significant(each.alpha) for each in rounds]),
        ("error", [significant(float(trials.error[index])) for index in which]),
    ]


def _trials_caption(trials: MetricTrials) -> str:
    taken, value = trials.rounds[trials.best], float(trials.error[trials.best])
    text = (
        f"Ridge regressions on {plural(trials.sample_rows, 'sampled row')}, each judged on those of them that neither "
        f"it nor its metric had seen ({trials.unit}). A round's metric comes from the gradients of the round before."
    )
    if taken.round == 0:
        # A mean of few large errors may be far lower on the figure, and still by chance.
        return (
            f"{text} The plain kernel was kept, with {significant(trials.plain)}: no metric lowered the errors of "
            "the rows by more than chance (three standard errors of the gain)."
        )
    return (
        f"{text} Taken: {taken.form}, round {taken.round}, {plural(taken.columns, 'direction')}: "
        f"{significant(value)} for {significant(trials.plain)} with the plain kernel."
    )
