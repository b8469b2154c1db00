"""Curves of the fit: residual trace against basis size, GCV against alpha and against the lengthscale."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import BoxAnnotation, Span
from bokeh.plotting import figure

from streamkernel.report.bokeh_renderer import hover, new_plot, note, percent_axis, second_axis
from streamkernel.report.facts.fit import ROUNDING, Absent, GcvCurve, LengthscaleCurve, TraceCurve
from streamkernel.report.figures.axes import decades, log_range, padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BAND, BLUE, FAINT, MUTED, ORANGE
from streamkernel.report.text import count, percent, plural, significant

__all__ = ["gcv_panel", "lengthscale_panel", "trace_panel"]

_BANDED_ROUNDS = 12
_MOST_MARKS = 200


def trace_panel(curve: TraceCurve | Absent) -> Panel:
    """Residual trace against basis size."""
    title = "Residual trace"
    if isinstance(curve, Absent):
        return Panel("trace", title, reason=curve.reason)
    n = int(curve.size[-1])
    # A percentage is easier to read than a power of ten, as long as it has few zeros.
    in_percent = curve.relative.min() >= 1e-5
    unit = 100.0 if in_percent else 1.0
    values = unit * curve.relative
    low, high = log_range(float(values.min()), float(values.max()), below=0.22, above=0.13)
    label = "Residual trace, " + ("% of the trace" if in_percent else "share of the trace")
    plot = new_plot("Basis functions", label, (-0.012 * n, 1.02 * n), (low, high), y_log=True, height=340)
    if in_percent:
        percent_axis(plot.yaxis, low, high)
    _draw_rounds(plot, curve, high)
    if curve.tol > ROUNDING:
        plot.add_layout(
            Span(dimension="width", location=unit * curve.tol, line_color=MUTED, line_dash=[2, 3], line_width=1)
        )
    plot.add_layout(Span(dimension="width", location=values[-1], line_color=ORANGE, line_dash=[1, 3], line_width=1))
    source = ColumnDataSource(
        {"size": curve.size, "value": values, "words": [percent(float(share)) for share in curve.relative]}
    )
    line = plot.line("size", "value", source=source, line_color=BLUE, line_width=2)
    hover(plot, [line], [("basis functions", "@size{0,0}"), ("residual trace", "@words")], mode="vline")
    measured = [r for r in curve.rounds if r.measured is not None and r.measured > ROUNDING][:_MOST_MARKS]
    if measured:
        plot.scatter(
            [r.start for r in measured],
            [unit * float(r.measured or 0.0) for r in measured],
            size=7,
            fill_color="white",
            line_color=BLUE,
            line_width=1.5,
        )
    plot.scatter([n], [values[-1]], size=10, fill_color=ORANGE, line_color="white", line_width=1.5)
    left = "zero to rounding" if curve.vanished else f"{percent(curve.left)} left, exactly"
    note(plot, n, float(values[-1]), left, y_offset=-9, text_align="right", text_baseline="top", text_color=ORANGE)
    return Panel("trace", title, _trace_caption(curve), plot, keys=_trace_keys(curve, bool(measured)))


def _draw_rounds(plot: figure, curve: TraceCurve, top: float) -> None:
    rounds = [r for r in curve.rounds if r.stop > r.start]
    if not 1 < len(rounds) <= _BANDED_ROUNDS:
        return
    n = int(curve.size[-1])
    for index, r in enumerate(rounds):
        if index % 2 == 0:
            band = BoxAnnotation(left=r.start, right=r.stop, fill_color=BAND, fill_alpha=1.0, line_color=None)
            band.level = "image"
            plot.add_layout(band)
        if r.stop - r.start >= 0.03 * n:
            words = f"round {index + 1}" if r.stop - r.start >= 0.12 * n else f"{index + 1}"
            note(
                plot,
                0.5 * (r.start + r.stop),
                top,
                words,
                y_offset=-14,
                text_align="center",
                text_baseline="alphabetic",
                text_font_size="11px",
                text_color=MUTED,
                background_fill_alpha=0.0,
            )


def _trace_caption(curve: TraceCurve) -> str:
    words = (
        f"What the kernel matrix of the {count(curve.rows)} rows keeps outside the span of the first basis functions. "
        "It comes from the sums of the final sweep over all rows: a certificate, not an estimate."
    )
    rounds = [r for r in curve.rounds if r.stop > r.start]
    if len(rounds) > _BANDED_ROUNDS:
        words += f" The basis was chosen in {count(len(rounds))} rounds."
    if curve.tol > ROUNDING:
        words += f" The selection was to stop at {100.0 * curve.tol:.4g} % (dotted)."
    if curve.relative.min() <= ROUNDING:
        words += f" Values below {significant(ROUNDING, 2)} are rounding, and drawn there."
    return words


def _trace_keys(curve: TraceCurve, measured: bool) -> tuple[Key, ...]:
    keys = [Key(BLUE, "line", "after each basis function")]
    if measured:
        keys.append(Key(BLUE, "ring", "found by a round's own sweep"))
    keys.append(Key(ORANGE, "dot", "certificate"))
    return tuple(keys)


def gcv_panel(curve: GcvCurve | Absent) -> Panel:
    """GCV error and effective degrees of freedom against alpha."""
    title = "Choice of alpha"
    if isinstance(curve, Absent):
        return Panel("gcv", title, reason=curve.reason)
    on_axis = curve.chosen > 0.0 and np.isfinite(curve.chosen)
    ends = [float(curve.alpha.min()), float(curve.alpha.max()), *([curve.chosen] if on_axis else [])]
    x = log_range(min(ends), max(ends), 0.02, 0.02)
    shown = curve.error[np.isfinite(curve.error)]
    logarithmic = decades(float(shown.min()), float(shown.max())) > 1.3
    if logarithmic:
        y = log_range(float(shown.min()), float(shown.max()), above=0.16)
    else:
        y = padded(float(shown.min()), float(shown.max()))
        y = (y[0], y[1] + 0.12 * (y[1] - y[0]))
    plot = new_plot("Alpha (ridge)", "GCV error", x, y, x_log=True, y_log=logarithmic, height=340)
    plot.yaxis.axis_label_text_color = BLUE
    degrees_top = max(float(curve.degrees.max()), 1e-6) * 1.18
    second_axis(plot, "degrees", "Effective degrees of freedom", (0.0, degrees_top), FAINT)
    source = ColumnDataSource({"alpha": curve.alpha, "error": curve.error, "degrees": curve.degrees})
    plot.line(
        "alpha", "degrees", source=source, y_range_name="degrees", line_color=FAINT, line_dash=[5, 4], line_width=1.5
    )
    line = plot.line("alpha", "error", source=source, line_color=BLUE, line_width=2)
    hover(
        plot,
        [line],
        [("alpha", "@alpha{%.3g}"), ("GCV error", "@error{%.4g}"), ("degrees of freedom", "@degrees{0,0.0}")],
        mode="vline",
    )
    plot.hover[0].formatters = {"@alpha": "printf", "@error": "printf"}
    if on_axis:
        _mark(plot, curve.chosen, curve.chosen_error, x, y[1], f"alpha {significant(curve.chosen)}")
    return Panel("gcv", title, _gcv_caption(curve, on_axis), plot, keys=_gcv_keys(curve, on_axis))


def _mark(plot: figure, x: float, y: float, limits: tuple[float, float], top: float, words: str) -> None:
    """A dashed line at the chosen value, a dot on the curve, and text at the top on the side with more room."""
    plot.add_layout(Span(dimension="height", location=x, line_color=ORANGE, line_dash=[4, 3], line_width=1))
    if np.isfinite(y):
        plot.scatter([x], [y], size=10, fill_color=ORANGE, line_color="white", line_width=1.5)
    place = decades(limits[0], x) / max(decades(*limits), 1e-12)
    side = "left" if place < 0.5 else "right"
    note(
        plot,
        x,
        top,
        words,
        x_offset=6 if side == "left" else -6,
        y_offset=-4,
        text_align=side,
        text_baseline="top",
        text_color=ORANGE,
    )


def _gcv_caption(curve: GcvCurve, on_axis: bool) -> str:
    words = f"Generalised cross-validation error ({curve.unit}) along the ridge path, all from the sums of one sweep."
    if not curve.searched:
        words += " Alpha was given, not searched for."
    if not on_axis:
        words += f" The model has alpha = {significant(curve.chosen)}, which a logarithmic axis cannot show."
    if curve.left_out:
        tried = len(curve.alpha) + curve.left_out
        words += f" {curve.left_out} of {tried} alphas are left out, as their error is 0 to rounding or infinite."
    return words


def _gcv_keys(curve: GcvCurve, on_axis: bool) -> tuple[Key, ...]:
    keys = [Key(BLUE, "line", "GCV error"), Key(FAINT, "dash", "effective degrees of freedom")]
    if on_axis:
        chosen = "chosen" if curve.searched else "given"
        words = (
            f"{chosen}: error {significant(curve.chosen_error)}, {significant(curve.chosen_degrees)} degrees of freedom"
        )
        keys.append(Key(ORANGE, "dot", words))
    return tuple(keys)


def lengthscale_panel(curve: LengthscaleCurve | Absent, *, standardised: bool) -> Panel:
    """GCV error on a sample against the lengthscale."""
    title = "Choice of the lengthscale"
    if isinstance(curve, Absent):
        return Panel("lengthscale", title, reason=curve.reason)
    x = log_range(float(curve.lengthscale.min()), float(curve.lengthscale.max()), 0.04, 0.04)
    y = padded(float(curve.error.min()), float(curve.error.max()))
    y = (y[0], y[1] + 0.12 * (y[1] - y[0]))
    unit = "standard deviations of the features" if standardised else "units of the features"
    plot = new_plot(f"Lengthscale ({unit})", "GCV error on the sample", x, y, x_log=True, height=340)
    plot.add_layout(Span(dimension="height", location=curve.median, line_color=FAINT, line_dash=[2, 3], line_width=1.5))
    source = ColumnDataSource({"lengthscale": curve.lengthscale, "error": curve.error})
    plot.line("lengthscale", "error", source=source, line_color=BLUE, line_width=2)
    dots = plot.scatter(
        "lengthscale", "error", source=source, size=7, fill_color="white", line_color=BLUE, line_width=1.5
    )
    hover(plot, [dots], [("lengthscale", "@lengthscale{0.[000]}"), ("GCV error", "@error{0.0000}")])
    at = int(np.argmin(np.abs(np.log(curve.lengthscale / curve.chosen))))
    _mark(plot, curve.chosen, float(curve.error[at]), x, y[1], f"lengthscale {significant(curve.chosen)}")
    caption = (
        f"Best GCV error ({curve.unit}) for each lengthscale on {plural(curve.sample_rows, 'sampled row')}; "
        "of those within 1 % of the least the model takes the one next to the median."
    )
    if curve.chosen in (curve.lengthscale.min(), curve.lengthscale.max()):
        caption += " It lies at the end of the grid: another might be better still."
    keys = (
        Key(BLUE, "line", "GCV error"),
        Key(ORANGE, "dot", "chosen"),
        Key(FAINT, "dash", f"median distance {significant(curve.median)}"),
    )
    return Panel("lengthscale", title, caption, plot, keys=keys)
