"""The search for hyper-parameters, and the lengthscales that it found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import BoxAnnotation, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from streamkernel.report.bokeh_renderer import hover, name_ticks, new_plot, note
from streamkernel.report.facts.fit import Absent, Array
from streamkernel.report.facts.tuning import FULL, SAMPLE, Lengthscales, TuningPath
from streamkernel.report.figures.axes import decades, log_range, padded
from streamkernel.report.figures.figure import Key, Panel
from streamkernel.report.figures.palette import BAND, BLUE, FAINT, INK, MUTED, ORANGE, PALE_BLUE, PAPER, line_style
from streamkernel.report.text import count, plural, shortened, significant

__all__ = ["lengthscales_panel", "tuning_panels"]

_MOST_TOLD = 6
_MOST_NAMED = 24
TEAL, PURPLE = line_style(2)[0], line_style(3)[0]


def tuning_panels(path: TuningPath | Absent | None) -> list[Panel]:
    """Evidence and parameters at every evaluated point."""
    title = "Search for the hyper-parameters"
    if path is None:
        return []
    if isinstance(path, Absent):
        return [Panel("tuning", title, reason=path.reason)]
    return [_evidence(path, title), _parameters(path)]


def _evidence(path: TuningPath, title: str) -> Panel:
    number = np.arange(1.0, len(path.value) + 1)
    finite = np.isfinite(path.value)
    limits, floor = _evidence_limits(path)
    label = f"{path.objective[:1].upper()}{path.objective[1:]}, nats a row"
    plot = new_plot("Evaluation", label, _ends(len(number)), limits, height=340)
    _draw_stages(plot, path.stage, limits[1])
    for start, stop in _runs(path.stage):
        best = np.fmax.accumulate(path.value[start:stop])
        plot.step(number[start:stop], best, mode="after", line_color=BLUE, line_width=1.5)
    low = finite & (path.value < floor)
    source = ColumnDataSource(_told(path, finite & ~low, number))
    dots = plot.scatter("number", "value", source=source, size=6, fill_color=PAPER, line_color=BLUE, line_width=1.2)
    tooltips = [("evaluation", "@number{0,0}"), (path.objective, "@value{0.0000}")]
    tooltips += [(name, f"@p{index}") for index, name in enumerate(path.names[:_MOST_TOLD])]
    hover(plot, [dots], tooltips)
    if low.any():
        plot.scatter(
            number[low], np.full(low.sum(), limits[0] + 0.03 * (limits[1] - limits[0])), marker="inverted_triangle",
            size=6, fill_color=FAINT, line_color=None,
        )  # fmt: skip
    best_value = float(path.value[path.best])
    plot.scatter([path.best + 1], [best_value], size=10, fill_color=ORANGE, line_color=PAPER, line_width=1.5)
    right = path.best + 1 > 0.5 * len(number)
    note(plot, path.best + 1, best_value, f"taken: {significant(best_value)}", x_offset=-9 if right else 9, y_offset=9,
         text_align="right" if right else "left", text_color=ORANGE)  # fmt: skip
    keys = [Key(BLUE, "ring", "evaluated"), Key(BLUE, "line", "best so far"), Key(ORANGE, "dot", "taken")]
    if low.any():
        keys.append(Key(FAINT, "dot", "below the axis"))
    return Panel("tuning", title, _tuning_caption(path, finite), plot, keys=tuple(keys))


def _evidence_limits(path: TuningPath) -> tuple[tuple[float, float], float]:
    """Limits of the axis, and the least value that is drawn unclipped: a line search may go very far down once."""
    finite = np.isfinite(path.value)
    values = path.value[finite]
    begun = [float(path.value[start:stop][finite[start:stop]][0]) for start, stop in _runs(path.stage)
             if finite[start:stop].any()]  # fmt: skip
    top = float(values.max())
    floor = max(float(values.min()), min(begun) - 0.25 * (top - min(begun)))
    low, high = padded(floor, top, 0.08)
    return (low, high + 0.12 * (high - low)), floor


def _runs(stage: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Start and stop of each run of equal stages."""
    cuts = [0, *(np.flatnonzero(np.diff(stage)) + 1).tolist(), len(stage)]
    return list(pairwise(cuts))


def _ends(points: int) -> tuple[float, float]:
    room = max(0.02 * points, 0.5)
    return 1.0 - room, points + room


def _draw_stages(plot: figure, stage: NDArray[np.int64], top: float) -> None:
    """A band behind the evaluations over all rows, and labels if there are both stages."""
    for start, stop in _runs(stage):
        full = stage[start] == FULL
        if full:
            band = BoxAnnotation(left=start + 0.5, right=stop + 0.5, fill_color=BAND, fill_alpha=1.0, line_color=None)
            band.level = "image"
            plot.add_layout(band)
        if (stage == FULL).any() and (stage == SAMPLE).any() and stop - start >= 0.1 * len(stage):
            note(plot, 0.5 * (start + stop + 1), top, "all rows" if full else "sample", y_offset=-14,
                 text_align="center", text_baseline="alphabetic", text_font_size="11px", text_color=MUTED,
                 background_fill_alpha=0.0)  # fmt: skip


def _told(path: TuningPath, shown: NDArray[np.bool_], number: Array) -> dict[str, Any]:
    columns: dict[str, Any] = {"number": number[shown], "value": path.value[shown]}
    for index in range(min(len(path.names), _MOST_TOLD)):
        columns[f"p{index}"] = [significant(float(value)) for value in path.parameters[shown, index]]
    return columns


def _tuning_caption(path: TuningPath, finite: NDArray[np.bool_]) -> str:
    on_sample, on_all = int((path.stage == SAMPLE).sum()), int((path.stage == FULL).sum())
    sample = plural(path.sample_rows, "sampled row") if path.sample_rows else "a sample of the rows"
    places = [f"{plural(on_sample, 'time')} on {sample}"] if on_sample else []
    places += [f"{plural(on_all, 'time')} over all rows"] if on_all else []
    words = (
        f"The {path.objective} was evaluated {' and '.join(places)}; it is to be as large as can be."
        f"{' Targets are in units of their standard deviation here.' if _has_noise(path) else ''}"
    )
    if len(_runs(path.stage)) > 1:
        words += " Values on the sample and over all rows are not to be compared."
    if not finite.all():
        words += f" {plural(int((~finite).sum()), 'point')} without a finite value left out."
    return words


def _parameters(path: TuningPath) -> Panel:
    """Every parameter in its own units, on one logarithmic axis."""
    number = np.arange(1, len(path.value) + 1)
    low, high = float(path.parameters.min()), float(path.parameters.max())
    limits = log_range(low, high, above=0.1)
    plot = new_plot("Evaluation", "Value", _ends(len(number)), limits, height=340, y_log=True)
    _draw_stages(plot, path.stage, limits[1])
    several = sum(name.startswith("lengthscale") for name in path.names) > 1
    kinds = [_kind_of(name) for name in path.names]
    lines, keys = [], []
    for kind, colour in dict.fromkeys(kinds):
        columns = [index for index, each in enumerate(kinds) if each == (kind, colour)]
        thin = kind == "lengthscale" and several
        source = ColumnDataSource(
            {
                "number": [number] * len(columns),
                "value": [path.parameters[:, index] for index in columns],
                "name": [path.names[index] for index in columns],
            }
        )
        width, alpha = (1.0, 0.45) if thin else (2.0, 1.0)
        lines.append(
            plot.multi_line("number", "value", source=source, line_color=colour, line_width=width, line_alpha=alpha)
        )
        keys.append(Key(colour, "line", f"{kind}s" if thin else kind))
    hover(plot, lines, [("@name", "$y{0.[0000]}"), ("evaluation", "$x{0}")])
    plot.add_layout(Span(dimension="height", location=path.best + 1, line_color=ORANGE, line_dash=[4, 3], line_width=1))
    units = "; variances in units of the targets' own variance" if _has_noise(path) else ""
    caption = f"Where these evaluations were. Taken: {_taken(path)}{units}."
    return Panel("parameters", "Hyper-parameters on the way", caption, plot,
                 keys=(*keys, Key(ORANGE, "dash", "taken")))  # fmt: skip


def _taken(path: TuningPath) -> str:
    """The parameters of the model as text; many lengthscales are given as a range."""
    pairs = list(zip(path.names, path.parameters[path.best].tolist(), strict=True))
    several = [value for name, value in pairs if name.startswith("lengthscale")]
    words = []
    if len(several) > 1:
        pairs = [(name, value) for name, value in pairs if not name.startswith("lengthscale")]
        words = [f"lengthscales {significant(min(several))} to {significant(max(several))}"]
    words += [f"{name} {significant(value)}" for name, value in pairs[:_MOST_TOLD]]
    return ", ".join(words) + (f" and {count(len(pairs) - _MOST_TOLD)} more" if len(pairs) > _MOST_TOLD else "")


def _has_noise(path: TuningPath) -> bool:
    """Whether the model has a noise variance (classes and counts have none): variances then have the targets' units."""
    return any(name.startswith("noise") for name in path.names)


def _kind_of(name: str) -> tuple[str, str]:
    for kind, colour in (("lengthscale", BLUE), ("signal", TEAL), ("noise", PURPLE)):
        if name.startswith(kind):
            return (kind if kind == "lengthscale" else name), colour
    return name, INK


def lengthscales_panel(found: Lengthscales | None, *, standardised: bool) -> list[Panel]:
    """Lengthscales of the features, the shortest first: the function depends on these features most."""
    if found is None:
        return []
    value, names = found.value[:_MOST_NAMED], [shortened(name, 22) for name in found.names[:_MOST_NAMED]]
    k, low, high = len(value), float(value.min()), float(value.max())
    logarithmic = decades(low, high) > 1.0
    x = log_range(low, high, 0.12, 0.2) if logarithmic else (0.0, 1.18 * high)
    unit = "standard deviations of the features" if standardised else "units of the features"
    plot = new_plot(f"Lengthscale ({unit})", "", x, (k - 0.4, -0.6), height=90 + 22 * max(k, 6), x_log=logarithmic)
    plot.yaxis.axis_label = None
    plot.toolbar_location = None
    source = ColumnDataSource(
        {"y": np.arange(k), "value": value, "words": [significant(float(each)) for each in value], "name": list(names)}
    )
    # Segments begin at the end of the axis, because a logarithmic axis has no zero.
    plot.segment(x[0], "y", "value", "y", source=source, line_color=PALE_BLUE, line_width=3)
    dots = plot.scatter("value", "y", source=source, size=9, fill_color=BLUE, line_color=PAPER, line_width=1)
    hover(plot, [dots], [("@name", "@words")])
    plot.text(
        "value", "y", text="words", source=source, x_offset=9, text_baseline="middle", text_font_size="11px",
        text_color=INK,
    )  # fmt: skip
    name_ticks(plot.yaxis, names)
    plot.yaxis.major_label_text_color = INK
    plot.yaxis.major_tick_line_color = None
    plot.ygrid.grid_line_color = None
    caption = "One for each feature, the shortest first: the function varies most along those, hardly along the last."
    rest = found.value[_MOST_NAMED:]
    if len(rest):
        caption += f" {plural(len(rest), 'feature')} with lengthscales from {significant(float(rest[0]))} on not drawn."
    return [Panel("lengthscales", "Lengthscales", caption, plot)]
