"""A matching pursuit term by term: errors, loss, weakness, and the bound beside the errors that it bounds."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.pursuit import PathCurve, PursuitBound
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import counts_from_zero, decades, log_range, padded
from streamkernel.report.figures.factors import vacuous_zone
from streamkernel.report.figures.palette import BLUE, INK, ORANGE, PALE_BLUE, TEAL
from streamkernel.report.text import count, percent, significant
from streamkernel.type_aliases import Fields, Float

_LONG = 1.3  # length, in powers of ten, from which an axis is logarithmic
_MOST_MARKS = 60


@plot.drawing("path", "Error against terms")
def error_figure(curve: PathCurve, *, chose: bool = True) -> plot.Figure:
    """Squared error against terms; `chose` is whether this error on held-out rows chose the size."""
    caption = (
        f"Root mean squared error of every size of the model, in {curve.unit}, exact, from the sums of the pursuit's "
        f"sweeps. {_choice_text(curve, 'error' if chose else '')}"
    )
    return _path(caption, curve)


@plot.drawing("rates", "Wrong rows against terms")
def rate_figure(curve: PathCurve, wrong: str, *, chose: bool = False) -> plot.Figure:
    """Share of wrong rows against terms."""
    caption = (
        f"A row is wrong when {wrong}. Shares of wrong rows by the first terms, counted in one sweep. "
        f"{_choice_text(curve, 'share' if chose else '')}"
    )
    return _path(caption, curve, in_percent=True)


@plot.drawing("loss", "Loss against terms")
def loss_figure(curve: PathCurve) -> plot.Figure:
    """Logistic loss against terms."""
    caption = (
        "Mean logistic loss, in nats a row, of the model at the beginning of each sweep. At the end the coefficients "
        "were fitted again, which lowers it further on the rows of the fit."
    )
    return _path(caption, curve)


def _choice_text(curve: PathCurve, chosen_by: str) -> str:
    if curve.held_out is None:
        return "There were no validation rows: nothing here says at which size the model begins to fit noise."
    if not chosen_by:
        return ""
    return f"The {chosen_by} on validation rows chose among {count(int(curve.terms[-1]))} sizes."


def _path(caption: str, curve: PathCurve, *, in_percent: bool = False) -> plot.Figure:
    unit = 100.0 if in_percent else 1.0
    shown = [unit * curve.training] + ([] if curve.held_out is None else [unit * curve.held_out])
    values = np.concatenate(shown)
    values = values[np.isfinite(values) & (values > 0.0)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.1, 1.0)
    logarithmic = decades(low, high) > _LONG
    limits = log_range(low, high, 0.08, 0.08) if logarithmic else padded(0.0 if low < 0.5 * high else low, high, 0.06)
    if not logarithmic and limits[0] < 0.0:
        limits = (0.0, limits[1])
    last = int(curve.terms[-1])
    series: list[plot.Series] = []
    for values, colour, where in zip(shown, (BLUE, TEAL), ("training rows", "validation rows"), strict=False):
        # An exact fit has errors of 0, which a logarithmic axis cannot show.
        drawn = np.where(values > 0.0, values, np.nan) if logarithmic else values
        texts = [percent(each / unit) if in_percent else significant(float(each), 4) for each in values]
        fields = ("terms", curve.terms, "0,0"), (where, texts)
        rings = 5.0 if len(values) <= _MOST_MARKS else 0.0
        series.append(plot.Line(curve.terms, drawn, colour, rings=rings, hover=fields, across=True))
    keys = [(BLUE, "line", "rows of the fit")]
    if curve.held_out is not None:
        keys.append((TEAL, "line", "validation rows"))
    value = curve.at_chosen(curve.held_out is not None)
    if value is not None:
        keys.append((ORANGE, "dot", "the model"))
        if np.isfinite(value):
            text = f"{percent(value) if in_percent else significant(value)} by {count(curve.chosen)} terms"
            series += [plot.Rule("x", curve.chosen, dash=(1, 3)), plot.dot(curve.chosen, unit * value)]
            # Above the lines, which are low there.
            series.append(plot.Note(curve.chosen, limits[1], text, **_away(curve.chosen, last, 6, -4), baseline="top"))
    label = f"{curve.label}, %" if in_percent else curve.label
    y = plot.Axis(label, limits, log=logarithmic, percent=in_percent and logarithmic)
    x = plot.Axis("Terms", counts_from_zero(last), whole=True)
    return plot.Figure(caption, x, y, series, keys, height=360, legend=True)


def _away(at: float, last: float, aside: float, up: float = 0.0) -> Fields:
    """Offset and alignment of a text beside `at`, towards the middle of the axis 0 .. last."""
    right = at > 0.5 * last
    return {"offset": (-aside if right else aside, up), "align": "right" if right else "left"}


@plot.drawing("bound", "Bound on the error")
def error_bound_figure(found: PursuitBound, theorem: str, sizes: str = "terms") -> plot.Figure | Absent:
    """The bound, the errors that it bounds, and the zone without information; `sizes` is the unit of the axis."""
    bound = found.bound
    finite = np.isfinite(bound.values)
    if not finite.any():
        return Absent("hardly a row is right: the bound is infinite at every size")
    shares = [bound.observed] + ([] if found.held_out is None else [found.held_out])
    positive = np.concatenate([share[share > 0.0] for share in shares] + [bound.values[finite]])
    limits = log_range(float(positive.min()), max(1.6, float(bound.values[finite].max())), 0.08, 0.06)
    last = int(found.at[-1])
    fields: list[plot.Field] = [
        (sizes, found.at, "0,0"),
        ("bound", [significant(float(value)) for value in bound.values]),
        ("wrong", [percent(float(value)) for value in bound.observed]),
    ]
    series = [
        *vacuous_zone(last, _free_third(bound.values)),
        plot.Line(found.at, np.where(finite, bound.values, np.nan), INK, hover=fields, across=True),
        plot.Line(found.at, np.where(bound.observed > 0.0, bound.observed, np.nan)),
    ]
    at = int(found.at[bound.argmin])
    keys = [
        (INK, "line", f"bound: least with {count(at)} {sizes}, {significant(bound.minimum)}"),
        (BLUE, "line", "wrong rows of the fit, without the functions' own"),
    ]
    if found.held_out is not None:
        series.append(plot.Line(found.at, np.where(found.held_out > 0.0, found.held_out, np.nan), TEAL))
        keys.append((TEAL, "line", "wrong validation rows"))
    series.append(plot.dot(at, bound.minimum))
    keys.append((ORANGE, "dot", "least bound"))
    x = plot.Axis(sizes.capitalize(), counts_from_zero(last), whole=True)
    y = plot.Axis("Share of wrong rows", limits, log=True)
    return plot.Figure(_bound_caption(found, theorem, sizes), x, y, series, keys, height=360)


def _free_third(values: Float) -> int:
    """The third of the axis (0, 1, 2) in which the bound leaves most room for a label on the line at 1."""
    thirds = np.array_split(np.minimum(values, 2.0), 3)
    covered = [
        float(np.mean((third > 1.0) & (third < 1.7))) + float(np.any(third > 1.0) and np.any(third <= 1.0))
        for third in thirds
    ]
    return min((0, 2, 1), key=lambda third: covered[third])


def _bound_caption(found: PursuitBound, theorem: str, sizes: str) -> str:
    bound = found.bound
    text = (
        f"A row is wrong when {found.wrong}. The probability that a new one is wrong is below the black line, for all "
        f"sizes at once, with probability {100 * (1 - bound.delta):g} % over independent rows ({theorem})."
    )
    if bound.says_nothing:
        text += (
            " It is vacuous: 1 or more at every size, so that it tells nothing about the error. It can only compare "
            "sizes: where it is least, a further function costs more than the rows that it corrects."
        )
    elif bound.vacuous.any():
        useful = found.at[~bound.vacuous]
        first, final = count(int(useful[0])), count(int(useful[-1]))
        text += f" It is below 1 from {first} to {final} {sizes}, and vacuous elsewhere."
    if (bound.observed <= 0.0).any():
        text += " Where the blue line stops, no row of the fit is wrong."
    if found.fitted:
        text += (
            f" {' and '.join(found.fitted).capitalize()} {'were' if len(found.fitted) > 1 else 'was'} taken from the "
            "rows, which it does not allow for: a guide, not a guarantee."
        )
    return text


@plot.drawing("weakness", "Weakness of the picks")
def weakness_figure(values: Float) -> plot.Figure:
    """Realised weakness of each pick."""
    T = len(values)
    least = int(np.argmin(values))
    term = np.arange(1, T + 1)
    value = float(values[least])
    fields = ("term", term, "0,0"), ("weakness", values, "0.000")
    size = 5.0 if T <= 400 else 3.5
    series = [
        plot.Points(term, values, PALE_BLUE, BLUE, 0.8, size, 0.7, hover=fields),
        plot.Line(term, np.cumsum(values) / term, width=1.5),
        plot.dot(least + 1, value),
        plot.Note(least + 1, value, f"least: {significant(value)}", **_away(least, T, 9), baseline="middle"),
    ]
    caption = (
        "Square root of the score of each pick over the best score of all candidates of its sweep: the loss from "
        f"picking in sub-pools. {percent(float((values >= 1.0).mean()))} of the picks were the best; the mean is "
        f"{significant(float(values.mean()))}."
    )
    keys = ((PALE_BLUE, "dot", "a pick"), (BLUE, "line", "mean so far"), (ORANGE, "dot", "weakest"))
    x, y = plot.Axis("Term", (-0.012 * T, 1.02 * T + 1), whole=True), plot.Axis("Realised weakness", (0.0, 1.04))
    return plot.Figure(caption, x, y, series, keys, height=360)
