"""Curves of the fit: residual trace against basis size, GCV against alpha and against the lengthscale."""

from __future__ import annotations

import numpy as np

from streamkernel.report.facts.fit import (
    ROUNDING,
    GcvCurve,
    HeldOutCurve,
    LengthscaleCurve,
    TraceCurve,
    ValidationCurve,
)
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import around_least, counts_from_zero, decades, log_range, with_headroom
from streamkernel.report.figures.palette import BLUE, FAINT, MUTED, ORANGE, TEAL
from streamkernel.report.text import capitalised, count, percent, plural, significant

_BANDED_ROUNDS = 12
_MOST_MARKS = 200


def residual_axis(least: float, below: float, above: float) -> tuple[plot.Axis, float]:
    """A logarithmic axis of shares of the trace from `least` to 1, and the number by which shares are multiplied.

    A percentage is easier to read than a power of ten, as long as it has few zeros.
    """
    in_percent = least >= 1e-5
    unit = 100.0 if in_percent else 1.0
    label = "Residual trace, " + ("% of the trace" if in_percent else "share of the trace")
    return plot.Axis(label, log_range(unit * least, unit, below, above), log=True, percent=in_percent), unit


@plot.drawing("trace", "Residual trace")
def trace_figure(curve: TraceCurve) -> plot.Figure:
    """Residual trace against basis size."""
    n = int(curve.size[-1])
    y, unit = residual_axis(float(curve.relative.min()), below=0.22, above=0.13)
    values = unit * curve.relative
    series = _bands(curve, y.limits[1]) if 1 < len(curve.rounds) <= _BANDED_ROUNDS else []
    if curve.tol > ROUNDING:
        series.append(plot.Rule("y", unit * curve.tol, MUTED))
    series.append(plot.Rule("y", values[-1], dash=(1, 3)))
    shares = [percent(float(share)) for share in curve.relative]
    fields = ("basis functions", curve.size, "0,0"), ("residual trace", shares)
    series.append(plot.Line(curve.size, values, hover=fields, across=True))
    keys = [(BLUE, "line", "after each basis function")]
    if curve.measured:
        size, share = np.transpose(curve.measured[:_MOST_MARKS])
        series.append(plot.rings(size, unit * share))
        keys.append((BLUE, "ring", "measured by the sweep of a round"))
    keys.append((ORANGE, "dot", "certificate"))
    left = "zero to rounding" if curve.vanished else f"{percent(curve.left)} left, exactly"
    series += [
        plot.dot(n, values[-1]),
        plot.Note(n, float(values[-1]), left, offset=(0, -9), align="right", baseline="top"),
    ]
    x = plot.Axis("Basis functions", counts_from_zero(n), whole=True)
    summary = f"Of the kernel matrix of {plural(curve.rows, 'row')}"
    return plot.Figure(_trace_caption(curve), x, y, series, keys, height=340, summary=summary)


def _bands(curve: TraceCurve, top: float) -> list[plot.Series]:
    """A band behind every other round, and the number of each round that has room for it."""
    series: list[plot.Series] = [plot.Zone("x", start, stop) for start, stop in curve.rounds[::2]]
    for index, (start, stop) in enumerate(curve.rounds):
        length = (stop - start) / int(curve.size[-1])
        # Of 180 pixels, the width of the figure on a phone: a number needs ten of them, a word forty.
        if length >= 0.06:
            text = f"round {index + 1}" if length >= 0.22 else f"{index + 1}"
            middle = 0.5 * (start + stop)
            series.append(plot.Note(middle, top, text, MUTED, (0, -14), "center", "alphabetic", 11.0, plain=True))
    return series


def _trace_caption(curve: TraceCurve) -> str:
    text = (
        f"The part of the kernel matrix of the {count(curve.rows)} rows outside the span of the first basis functions. "
        "It comes from the sums of the final sweep over all rows: a certificate, not an estimate."
    )
    if len(curve.rounds) > _BANDED_ROUNDS:
        text += f" The basis was chosen in {count(len(curve.rounds))} rounds."
    if curve.tol > ROUNDING:
        text += f" The selection was to stop at {100.0 * curve.tol:.4g} % (dotted)."
    if curve.relative.min() <= ROUNDING:
        text += f" Values below {significant(ROUNDING, 2)} are rounding errors, and are drawn there."
    return text


@plot.drawing("gcv", "Choice of alpha")
def gcv_figure(curve: GcvCurve) -> plot.Figure:
    """GCV error and effective degrees of freedom against alpha."""
    on_axis = curve.chosen > 0.0 and np.isfinite(curve.chosen)
    ends = [float(curve.alpha.min()), float(curve.alpha.max()), *([curve.chosen] if on_axis else [])]
    x = plot.Axis("Alpha (ridge)", log_range(min(ends), max(ends), 0.02, 0.02), log=True)
    shown = np.concatenate([curve.error[np.isfinite(curve.error)], curve.held_error])
    low, high, cut = around_least(shown, [*curve.held_error.tolist(), curve.chosen_error])
    logarithmic = decades(low, high) > 1.3
    limits = log_range(low, high, above=0.16) if logarithmic else with_headroom(low, high)
    y = plot.Axis("GCV error", limits, log=logarithmic, colour=BLUE)
    degrees_top = max(float(curve.degrees.max()), 1e-6) * 1.18
    fields = (
        ("alpha", curve.alpha, "%.3g"),
        ("GCV error", curve.error, "%.4g"),
        ("degrees of freedom", curve.degrees, "0,0.0"),
    )
    series: list[plot.Series] = [
        plot.Line(curve.alpha, curve.degrees, FAINT, 1.5, (5, 4), on_right=True),
        plot.Line(curve.alpha, curve.error, hover=fields, across=True),
    ]
    keys = [(BLUE, "line", "GCV error"), (FAINT, "dash", "effective degrees of freedom")]
    if len(curve.held_alpha):
        tried = ("alpha", curve.held_alpha, "%.3g"), ("error on held-out folds", curve.held_error, "%.4g")
        series.append(plot.Line(curve.held_alpha, curve.held_error, TEAL, 1.5, rings=7.0, hover=tried))
        keys.append((TEAL, "ring", "error on held-out folds"))
    if on_axis:
        series += chosen_marks(curve.chosen, curve.chosen_error, x, limits[1], f"alpha {significant(curve.chosen)}")
        text = f"error {significant(curve.chosen_error)}, {significant(curve.chosen_degrees)} degrees of freedom"
        keys.append((ORANGE, "dot", f"{'chosen' if curve.searched else 'given'}: {text}"))
    return plot.Figure(
        _gcv_caption(curve, on_axis) + _cut_text(cut), x, y, series, keys, height=340, summary=capitalised(curve.unit),
        right=plot.Axis("Effective degrees of freedom", (0.0, degrees_top), colour=FAINT),
    )  # fmt: skip


@plot.drawing("gcv", "Choice of alpha")
def held_out_figure(curve: HeldOutCurve) -> plot.Figure:
    """Error on held-out rows against alpha."""
    low, high, cut = around_least(curve.error, [curve.interval[1]])
    low = min(low, curve.interval[0])
    x = plot.Axis("Alpha (ridge)", log_range(float(curve.alpha.min()), float(curve.alpha.max()), 0.04, 0.04), log=True)
    y = plot.Axis("Error", with_headroom(low, high), colour=TEAL)
    fields = ("alpha", curve.alpha, "%.3g"), ("error on held-out rows", curve.error, "%.4g")
    at = float(curve.error[int(np.argmin(np.abs(np.log(curve.alpha / curve.chosen))))])
    series: list[plot.Series] = [
        plot.Zone("y", *curve.interval),
        plot.Line(curve.alpha, curve.error, TEAL, rings=7.0, hover=fields, across=True),
        *chosen_marks(curve.chosen, at, x, y.limits[1], f"alpha {significant(curve.chosen)}"),
    ]
    ends = f"{significant(at)}, from {significant(curve.interval[0])} to {significant(curve.interval[1])}"
    keys = ((TEAL, "line", "error on held-out rows"), (ORANGE, "dot", f"chosen: {ends}"))
    caption = (
        f"Error ({curve.unit}) on {plural(curve.rows, 'row')}, one of {curve.parts} parts of all, of fits to the "
        "others by conjugate gradients. The band is one standard error, in which copies of a row count once. Rings are "
        "the alphas that were tried." + _cut_text(cut)
    )
    return plot.Figure(caption, x, y, series, keys, height=340, summary=capitalised(curve.unit))


@plot.drawing("validation", "Error on held-out folds")
def validation_figure(curve: ValidationCurve) -> plot.Figure:
    """Error on held-out folds against basis size."""
    error = curve.error
    low, high = min(float(error.min()), curve.interval[0]), max(float(error.max()), curve.interval[1])
    x = plot.Axis("Basis functions", counts_from_zero(int(curve.size[-1])), whole=True)
    fields = (
        ("basis functions", curve.size, "0,0"),
        ("error on held-out folds", error, "%.4g"),
        ("alpha", curve.alpha, "%.3g"),
    )
    ends = f"{significant(float(error[-1]))}, from {significant(curve.interval[0])} to {significant(curve.interval[1])}"
    series: list[plot.Series] = [
        plot.Zone("y", *curve.interval),
        plot.Line(curve.size, error, TEAL, rings=7.0, hover=fields, across=True),
        plot.dot(float(curve.size[-1]), float(error[-1])),
    ]
    keys = ((TEAL, "line", "error on held-out folds"), (ORANGE, "dot", f"all functions: {ends}"))
    caption = (
        f"Error ({curve.unit}) on {plural(curve.rows, 'row')} in {curve.folds} of {curve.parts} parts of them, each "
        "predicted by a fit to the others. The band is one standard error, in which copies of a row count once. "
        "Each size has its own best alpha. Where the curve still falls at its end, more functions would help."
    )
    y = plot.Axis("Error", with_headroom(low, high), colour=TEAL)
    return plot.Figure(caption, x, y, series, keys, height=340, summary=capitalised(curve.unit))


def chosen_marks(at: float, value: float, x: plot.Axis, top: float, text: str) -> list[plot.Series]:
    """A dashed line at the chosen value, a dot on the curve, and text at the top on the side with more room."""
    left = decades(x.limits[0], at) / max(decades(*x.limits), 1e-12) < 0.5
    return [
        plot.Rule("x", at, dash=(4, 3)),
        *([plot.dot(at, value)] if np.isfinite(value) else []),
        plot.Note(at, top, text, offset=(6 if left else -6, -4), align="left" if left else "right", baseline="top"),
    ]


def _cut_text(cut: bool) -> str:
    return " Larger errors lie above the axis." if cut else ""


def _gcv_caption(curve: GcvCurve, on_axis: bool) -> str:
    text = f"Generalised cross-validation error ({curve.unit}) along the ridge path, all from the sums of one sweep."
    if len(curve.held_alpha):
        text += " Alpha has the least error on held-out folds of the rows; rings are the alphas that were tried there."
    elif curve.searched and curve.chosen > 1.1 * float(curve.alpha[int(np.argmin(curve.error))]):
        text += (
            " The least error alone is known to choose too small an alpha: the model takes a larger one, for which a "
            "degree of freedom counts 1.4 times and the evidence has a say."
        )
    if not curve.searched:
        text += " Alpha was given, not searched for."
    if not on_axis:
        text += f" The model has alpha = {significant(curve.chosen)}, which a logarithmic axis cannot show."
    if curve.left_out:
        tried = len(curve.alpha) + curve.left_out
        text += f" {curve.left_out} of {tried} alphas are left out, as their error is 0 to rounding or infinite."
    return text


@plot.drawing("lengthscale", "Choice of the lengthscale")
def lengthscale_figure(curve: LengthscaleCurve, *, unit: str) -> plot.Figure:
    """GCV error on a sample against the lengthscale."""
    least, largest = float(curve.lengthscale.min()), float(curve.lengthscale.max())
    x = plot.Axis(f"Lengthscale ({unit})", log_range(least, largest, 0.04, 0.04), log=True)
    at = int(np.argmin(np.abs(np.log(curve.lengthscale / curve.chosen))))
    low, high, cut = around_least(curve.error, [float(curve.error[at])])
    y = plot.Axis("GCV error on the sample", with_headroom(low, high))
    fields = ("lengthscale", curve.lengthscale, "0.[000]"), ("GCV error", curve.error, "0.0000")
    series = [
        plot.Rule("x", curve.median, FAINT, width=1.5),
        plot.Line(curve.lengthscale, curve.error, rings=7.0, hover=fields),
        *chosen_marks(
            curve.chosen, float(curve.error[at]), x, y.limits[1], f"lengthscale {significant(curve.chosen)}"
        ),
    ]  # fmt: skip
    caption = (
        f"Best GCV error ({curve.unit}) for each lengthscale on {plural(curve.sample_rows, 'sampled row')}. Of the "
        "lengthscales within 1 % of the least error, the model takes the one next to the median."
    )
    if curve.chosen in (least, largest):
        caption += " It lies at the end of the grid: another might be better still."
    caption += _cut_text(cut)
    keys = (
        (BLUE, "line", "GCV error"),
        (ORANGE, "dot", "chosen"),
        (FAINT, "dash", f"median distance {significant(curve.median)}"),
    )
    return plot.Figure(caption, x, y, series, keys, height=340)
