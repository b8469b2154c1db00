"""Components of a subspace: eigenvalues, correlations of two views, quotients along the picks, rows as points."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.fit import ROUNDING, Absent
from streamkernel.report.facts.subspace import HeldCorrelations, Projected, held_correlations
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import log_range, padded
from streamkernel.report.figures.palette import BLUE, ORANGE, PALE_BLUE, blend, line_style, shade
from streamkernel.report.text import count, percent, plural, significant, with_error
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
    x = plot.Axis("Component", (0.5 - 0.02 * r, r + 0.5 + 0.02 * r), whole=True)
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
def correlations_figure(
    correlations: Float, singular: Float, held: HeldCorrelations | None = None
) -> plot.Figure | Absent:
    """Canonical correlations over the rows of the fit, the smaller values that the ridge gives, and those elsewhere."""
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
    x = plot.Axis("Pair of variates", (0.4, r + 0.6), whole=True, ticks=tuple(number.tolist()) if r <= 20 else ())
    y = plot.Axis("Correlation", (0.0, 1.04))
    caption = (
        "Correlations of the variates over the rows of the fit; on other rows they correlate less. The ridge makes "
        "the singular values smaller than the correlations."
    )
    keys = [(PALE_BLUE, "box", "correlation"), (BLUE, "dot", "singular value")]
    series: list[plot.Series] = [bars, plot.Points(number, singular, size=8.0)]
    if held is not None:
        r_held, se = held.correlation, held.standard_error
        texts = [f"{value:.4f} ± {error:.2g}" for value, error in zip(r_held, se, strict=True)]
        series += [
            plot.Segments(number, r_held - se, r_held + se, ORANGE, 3.0),
            plot.rings(number, r_held, ORANGE, 9.0, hover=[("pair", number, "0,0"), ("correlation", texts)]),
        ]
        keys.append((ORANGE, "ring", f"on {held.rows}, and one standard error to either side"))
        caption = caption.replace("; on other rows they correlate less.", ", and on others.")
        y = plot.Axis("Correlation", (min(0.0, 1.1 * float((r_held - se).min())), 1.04))
    return plot.Figure(caption, x, y, series, keys, height=360)


@plot.drawing("scatter", "Components")
def components_figure(found: Projected) -> plot.Figure | Absent:
    """The first two components of some rows; of one component, in the order of the rows."""
    if not found.first.size:
        return Absent("there are no rows or no components")
    one = found.first.shape[1] == 1
    x = np.arange(len(found.first), dtype=np.float64) if one else found.first[:, 0]
    y = found.first[:, 0] if one else found.first[:, 1]
    names = ("Row", "First component") if one else ("First component", "Second component")
    return _scatter(found, x, y, names, f"The components of {found.rows}, in units of the kernel's feature space.")


@plot.drawing("variates", "Variates")
def variates_figure(found: Projected) -> plot.Figure | Absent:
    """The first variate of the second view against that of the first."""
    if found.second is None or not found.first.size:
        return Absent("there are no rows or no variates")
    held = held_correlations(found)
    caption = f"The first pair of variates of {found.rows}: rows lie on a line where the views agree wholly."
    if held is not None:
        caption += f" Their correlation is {with_error(float(held.correlation[0]), float(held.standard_error[0]))}."
    names = ("First variate of the first view", "First variate of the second view")
    return _scatter(found, found.first[:, 0], found.second[:, 0], names, caption)


def _scatter(found: Projected, x: Float, y: Float, names: tuple[str, str], caption: str) -> plot.Figure:
    """Rows as points, in the colours of their labels or targets."""
    opacity, form = shade(len(x)), "0,0.[0000]"
    fields: list[plot.Field] = [(names[0].lower(), x, form), (names[1].lower(), y, form)]
    keys: list[plot.Key] = [(BLUE, "dot", "a row")]
    fill: plot.Colours = BLUE
    if found.group is not None:
        colours = [line_style(index)[0] for index in range(len(found.labels))]
        fill = [colours[index] for index in found.group]
        fields.append(("label", [found.labels[index] for index in found.group]))
        keys = [(colour, "dot", label) for colour, label in zip(colours, found.labels, strict=True)]
    elif found.target is not None:
        # By rank, because one far value would give all others one shade.
        rank = np.argsort(np.argsort(found.target, kind="stable")) / max(len(x) - 1, 1)
        fill = [blend(float(share), PALE_BLUE, ORANGE) for share in np.round(rank, 2)]
        fields.append((found.target_name or "target", found.target, form))
        caption += f" The colour is the rank of {found.target_name or 'the target'}."
        keys = [(PALE_BLUE, "dot", "lowest"), (ORANGE, "dot", "highest")]
    points = plot.Points(x, y, fill, None, size=4 + 3 * opacity, opacity=opacity, hover=fields)
    limits = [padded(float(each.min()), float(each.max()), 0.04) for each in (x, y)]
    axes = [plot.Axis(name, ends) for name, ends in zip(names, limits, strict=True)]
    return plot.Figure(caption, axes[0], axes[1], [points], keys, height=420)


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
    x = plot.Axis("Pick", (1 - 0.02 * n, 1.02 * n), whole=True)
    y = plot.Axis("Cross quotient", padded(float(quotients.min()), float(quotients.max()), 0.06))
    return plot.Figure(caption, x, y, [line], ((BLUE, "line", "a pick"),), height=360)
