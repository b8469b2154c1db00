"""A matching pursuit term by term: errors, loss, weakness, and the bound beside the errors that it bounds."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from streamkernel.report.bokeh_renderer import hover, new_plot, note, percent_axis, vacuous_zone
from streamkernel.report.facts.fit import Absent, Array
from streamkernel.report.facts.pursuit import PathCurve, PursuitBound
from streamkernel.report.figures.axes import decades, log_range, padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BLUE, INK, ORANGE, PALE_BLUE, PAPER, line_style
from streamkernel.report.text import count, percent, significant

__all__ = ["error_panel", "loss_panel", "pursuit_bound_panel", "rate_panel", "weakness_panel"]

TEAL = line_style(2)[0]
_LONG = 1.3  # length, in powers of ten, from which an axis is logarithmic
_MOST_MARKS = 60


def error_panel(curve: PathCurve | Absent, *, chose: bool = True) -> Panel:
    """Squared error against terms; `chose` is whether this error on held-out rows chose the size."""
    title = "Error against terms"
    if isinstance(curve, Absent):
        return Panel("path", title, reason=curve.reason)
    caption = (
        f"Root mean squared error of every size of the model, in {curve.unit}, exact, from the sums of the pursuit's "
        f"sweeps. {_kept_words(curve, 'error' if chose else '')}"
    )
    return Panel("path", title, caption, _path_plot(curve, curve.label, 1.0), keys=_path_keys(curve))


def rate_panel(curve: PathCurve | Absent | None, wrong: str, *, chose: bool = False) -> list[Panel]:
    """Share of wrong rows against terms."""
    title = "Wrong rows against terms"
    if curve is None:
        return []
    if isinstance(curve, Absent):
        return [Panel("rates", title, reason=curve.reason)]
    caption = f"A row is wrong when {wrong}. Shares of wrong rows by the first terms, counted in one sweep."
    plot = _path_plot(curve, f"{curve.label}, %", 100.0)
    caption += f" {_kept_words(curve, 'share' if chose else '')}"
    return [Panel("rates", title, caption, plot, keys=_path_keys(curve))]


def loss_panel(curve: PathCurve | None) -> list[Panel]:
    """Logistic loss against terms."""
    if curve is None:
        return []
    caption = (
        "Mean logistic loss, in nats a row, of the models that sweeps began with. At the end the coefficients were "
        "fitted again, which lowers it further on the rows of the fit."
    )
    plot = _path_plot(curve, curve.label, 1.0)
    return [Panel("loss", "Loss against terms", caption, plot, keys=_path_keys(curve))]


def _kept_words(curve: PathCurve, chosen_by: str) -> str:
    if curve.held_out is None:
        return "There were no validation rows: nothing here says at which size the model begins to fit noise."
    if not chosen_by:
        return ""
    return f"The {chosen_by} on validation rows chose among {count(int(curve.terms[-1]))} sizes."


def _path_plot(curve: PathCurve, label: str, unit: float) -> figure:
    shown = [unit * curve.training] + ([] if curve.held_out is None else [unit * curve.held_out])
    values = np.concatenate(shown)
    values = values[np.isfinite(values) & (values > 0.0)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.1, 1.0)
    logarithmic = decades(low, high) > _LONG
    limits = log_range(low, high, 0.08, 0.08) if logarithmic else padded(0.0 if low < 0.5 * high else low, high, 0.06)
    if not logarithmic and limits[0] < 0.0:
        limits = (0.0, limits[1])
    last = int(curve.terms[-1])
    plot = new_plot("Terms", label, (-0.012 * last, 1.02 * last), limits, y_log=logarithmic, height=360)
    if logarithmic and unit == 100.0:
        percent_axis(plot.yaxis, *limits)
    for values, colour, where in zip(shown, (BLUE, TEAL), ("training rows", "validation rows"), strict=False):
        # An exact fit has errors of 0, which a logarithmic axis cannot show.
        drawn = np.where(values > 0.0, values, np.nan) if logarithmic else values
        source = ColumnDataSource(
            {
                "terms": curve.terms,
                "value": drawn,
                "words": [percent(each / unit) if unit == 100.0 else significant(float(each), 4) for each in values],
                "where": [where] * len(values),
            }
        )
        line = plot.line("terms", "value", source=source, line_color=colour, line_width=2)
        if len(values) <= _MOST_MARKS:
            plot.scatter("terms", "value", source=source, size=5, fill_color=PAPER, line_color=colour)
        hover(plot, [line], [("terms", "@terms{0,0}"), ("@where", "@words")], mode="vline")
    _mark_kept(plot, curve, unit, limits, logarithmic)
    return plot


def _mark_kept(plot: figure, curve: PathCurve, unit: float, limits: tuple[float, float], logarithmic: bool) -> None:
    value = curve.at_kept(curve.held_out is not None)
    if value is None or not np.isfinite(value):
        return
    y, last = unit * value, int(curve.terms[-1])
    plot.add_layout(Span(dimension="height", location=curve.kept, line_color=ORANGE, line_dash=[1, 3], line_width=1))
    plot.scatter([curve.kept], [y], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    words = percent(value) if unit == 100.0 else significant(value)
    right = curve.kept > 0.5 * last
    # Above the lines, which are low there.
    top = limits[1]
    note(
        plot, curve.kept, top, f"{words} by {count(curve.kept)} terms", x_offset=-6 if right else 6, y_offset=-4,
        text_align="right" if right else "left", text_baseline="top", text_color=ORANGE,
    )  # fmt: skip


def _path_keys(curve: PathCurve) -> tuple[Key, ...]:
    keys = [Key(BLUE, "line", "rows of the fit")]
    if curve.held_out is not None:
        keys.append(Key(TEAL, "line", "validation rows"))
    if curve.at_kept(curve.held_out is not None) is not None:
        keys.append(Key(ORANGE, "dot", "the model"))
    return tuple(keys)


def pursuit_bound_panel(found: PursuitBound | Absent, theorem: str, sizes: str = "terms") -> Panel:
    """The bound, the errors that it bounds, and the zone without information; `sizes` is the unit of the axis."""
    title = "Bound on the error"
    if isinstance(found, Absent):
        return Panel("bound", title, reason=found.reason)
    bound = found.bound
    finite = np.isfinite(bound.values)
    if not finite.any():
        return Panel("bound", title, reason="hardly a row is right: the bound is infinite at every size")
    shares = [bound.observed] + ([] if found.held_out is None else [found.held_out])
    positive = np.concatenate([share[share > 0.0] for share in shares] + [bound.values[finite]])
    high = max(1.6, float(bound.values[finite].max()))
    limits = log_range(float(positive.min()), high, 0.08, 0.06)
    last = int(found.at[-1])
    plot = new_plot(
        sizes.capitalize(), "Share of wrong rows", (-0.012 * last, 1.02 * last), limits, y_log=True, height=360
    )
    vacuous_zone(plot, last, _free_third(bound.values))
    source = ColumnDataSource(
        {
            "terms": found.at,
            "functions": np.broadcast_to(bound.functions, found.at.shape),
            "bound": np.where(finite, bound.values, np.nan),
            "share": np.where(bound.observed > 0.0, bound.observed, np.nan),
            "words": [significant(float(value)) for value in bound.values],
            "seen": [percent(float(value)) for value in bound.observed],
        }
    )
    line = plot.line("terms", "bound", source=source, line_color=INK, line_width=2)
    plot.line("terms", "share", source=source, line_color=BLUE, line_width=2)
    keys = [
        Key(INK, "line", f"bound: {_least_words(found, sizes)}"),
        Key(BLUE, "line", "wrong rows of the fit, without the functions' own"),
    ]
    if found.held_out is not None:
        held = np.where(found.held_out > 0.0, found.held_out, np.nan)
        plot.line(found.at.astype(np.float64), held, line_color=TEAL, line_width=2)
        keys.append(Key(TEAL, "line", "wrong validation rows"))
    at = int(found.at[bound.argmin])
    plot.scatter([at], [bound.minimum], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    keys.append(Key(ORANGE, "dot", "least bound"))
    hover(plot, [line], [(sizes, "@terms{0,0}"), ("bound", "@words"), ("wrong", "@seen")], mode="vline")
    return Panel("bound", title, _bound_caption(found, theorem, sizes), plot, keys=tuple(keys))


def _free_third(values: NDArray[np.float64]) -> int:
    """The third of the axis (0, 1, 2) in which the bound leaves most room for a label on the line at 1."""
    thirds = np.array_split(np.minimum(values, 2.0), 3)
    covered = [
        float(np.mean((third > 1.0) & (third < 1.7))) + float(np.any(third > 1.0) and np.any(third <= 1.0))
        for third in thirds
    ]
    return min((0, 2, 1), key=lambda third: covered[third])


def _least_words(found: PursuitBound, sizes: str) -> str:
    bound = found.bound
    return f"least with {count(int(found.at[bound.argmin]))} {sizes}, {significant(bound.minimum)}"


def _bound_caption(found: PursuitBound, theorem: str, sizes: str) -> str:
    bound = found.bound
    words = (
        f"A row is wrong when {found.wrong}. The probability that a new one is wrong is below the black line, for all "
        f"sizes at once, with probability {100 * (1 - bound.delta):g} % over independent rows ({theorem})."
    )
    if bound.says_nothing:
        words += (
            " It is vacuous: 1 or more at every size, and nothing that was not known before. It can compare sizes, no "
            "more: where it is least, a further function costs more than the rows that it mends."
        )
    elif bound.vacuous.any():
        useful = found.at[~bound.vacuous]
        words += (
            f" It is vacuous but from {count(int(useful[0]))} to {count(int(useful[-1]))} {sizes}, where it is below 1."
        )
    if (bound.observed <= 0.0).any():
        words += " Where the blue line stops, no row of the fit is wrong."
    if found.fitted:
        words += (
            f" {' and '.join(found.fitted).capitalize()} {'were' if len(found.fitted) > 1 else 'was'} taken from the "
            "rows, which it does not allow for: a guide, not a guarantee."
        )
    return words


def weakness_panel(values: Array | Absent) -> Panel:
    """Realised weakness of each pick."""
    title = "Weakness of the picks"
    if isinstance(values, Absent):
        return Panel("weakness", title, reason=values.reason)
    T = len(values)
    plot = new_plot("Term", "Realised weakness", (-0.012 * T, 1.02 * T + 1), (0.0, 1.04), height=360)
    least = int(np.argmin(values))
    running = np.cumsum(values) / np.arange(1, T + 1)
    source = ColumnDataSource({"term": np.arange(1, T + 1), "value": values})
    dots = plot.scatter(
        "term", "value", source=source, size=5 if T <= 400 else 3.5, fill_color=PALE_BLUE, line_color=BLUE,
        line_width=0.8, fill_alpha=0.7,
    )  # fmt: skip
    plot.line(np.arange(1.0, T + 1.0), running, line_color=BLUE, line_width=1.5)
    plot.scatter([least + 1], [values[least]], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    hover(plot, [dots], [("term", "@term{0,0}"), ("weakness", "@value{0.000}")])
    right = least > 0.5 * T
    note(plot, least + 1, float(values[least]), f"least: {significant(float(values[least]))}",
         x_offset=-9 if right else 9, text_align="right" if right else "left", text_baseline="middle",
         text_color=ORANGE)  # fmt: skip
    caption = (
        "Root of each pick's score over the best of all candidates that its sweep knew, by what a sub-pool of its own "
        f"cost it. {percent(float((values >= 1.0).mean()))} of the picks were the best; the mean is "
        f"{significant(float(values.mean()))}."
    )
    keys = (Key(PALE_BLUE, "dot", "a pick"), Key(BLUE, "line", "mean so far"), Key(ORANGE, "dot", "weakest"))
    return Panel("weakness", title, caption, plot, keys=keys)
