"""The search for hyper-parameters, and the lengthscales that it found."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from streamkernel.report.facts.tuning import FULL, SAMPLE, Lengthscales, TuningPath
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import decades, log_range, padded
from streamkernel.report.figures.palette import BLUE, FAINT, INK, MUTED, ORANGE, PURPLE, TEAL
from streamkernel.report.text import capitalised, count, plural, shortened, significant
from streamkernel.type_aliases import Bool, Int

_MOST_PARAMETERS = 6  # most parameters that a text names
_MOST_NAMED = 24


@plot.drawing("tuning", "Search for the hyper-parameters")
def evidence_figure(path: TuningPath) -> plot.Figure:
    """Evidence at every evaluated point."""
    number = np.arange(1.0, len(path.value) + 1)
    finite = np.isfinite(path.value)
    limits, floor = _evidence_limits(path)
    series = _stages(path.stage, limits[1])
    for start, stop in _runs(path.stage):
        best = np.fmax.accumulate(path.value[start:stop])
        series.append(plot.Line(number[start:stop], best, width=1.5, stepped=True))
    low = finite & (path.value < floor)
    shown = finite & ~low
    fields: list[plot.Field] = [("evaluation", number[shown], "0,0"), (path.objective, path.value[shown], "0.0000")]
    for name, values in zip(path.names[:_MOST_PARAMETERS], path.parameters[shown].T, strict=False):
        fields.append((name, [significant(value) for value in values.tolist()]))
    series.append(plot.rings(number[shown], path.value[shown], size=6.0, edge_width=1.2, hover=fields))
    keys = [(BLUE, "ring", "evaluated"), (BLUE, "line", "best so far"), (ORANGE, "dot", "taken")]
    if low.any():
        bottom = np.full(int(low.sum()), limits[0] + 0.03 * (limits[1] - limits[0]))
        series.append(plot.Points(number[low], bottom, FAINT, None, marker="triangle"))
        keys.append((FAINT, "dot", "below the axis"))
    at, value = path.best + 1, float(path.value[path.best])
    right = at > 0.5 * len(number)
    offset, align = ((-9, 9), "right") if right else ((9, 9), "left")
    series += [plot.dot(at, value), plot.Note(at, value, f"taken: {significant(value)}", offset=offset, align=align)]  # type: ignore[arg-type]
    x, y = _evaluations(len(number)), plot.Axis(f"{capitalised(path.objective)}, {path.unit}", limits)
    return plot.Figure(_tuning_caption(path, finite), x, y, series, keys, height=340)


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


def _runs(stage: Int) -> list[tuple[int, int]]:
    """Start and stop of each run of equal stages."""
    cuts = [0, *(np.flatnonzero(np.diff(stage)) + 1).tolist(), len(stage)]
    return list(pairwise(cuts))


def _evaluations(points: int) -> plot.Axis:
    room = max(0.02 * points, 0.5)
    return plot.Axis("Evaluation", (1.0 - room, points + room), whole=True)


def _stages(stage: Int, top: float) -> list[plot.Series]:
    """A band behind the evaluations over all rows, and labels if there are both stages."""
    series: list[plot.Series] = []
    for start, stop in _runs(stage):
        full = stage[start] == FULL
        if full:
            series.append(plot.Zone("x", start + 0.5, stop + 0.5))
        if (stage == FULL).any() and (stage == SAMPLE).any() and stop - start >= 0.1 * len(stage):
            middle, text = 0.5 * (start + stop + 1), "all rows" if full else "sample"
            series.append(plot.Note(middle, top, text, MUTED, (0, -14), "center", "alphabetic", 11.0, plain=True))
    return series


def _tuning_caption(path: TuningPath, finite: Bool) -> str:
    on_sample, on_all = int((path.stage == SAMPLE).sum()), int((path.stage == FULL).sum())
    sample = plural(path.sample_rows, "sampled row") if path.sample_rows else "a sample of the rows"
    places = [f"{plural(on_sample, 'time')} on {sample}"] if on_sample else []
    places += [f"{plural(on_all, 'time')} over all rows"] if on_all else []
    text = f"The {path.objective}, which the search maximises, was evaluated {' and '.join(places)}."
    if len(_runs(path.stage)) > 1:
        text += " Values on the sample and over all rows are not to be compared."
    if not finite.all():
        text += f" {plural(int((~finite).sum()), 'point')} without a finite value left out."
    return text


@plot.drawing("parameters", "Hyper-parameters on the way")
def parameters_figure(path: TuningPath) -> plot.Figure:
    """Every parameter in its own units, on one logarithmic axis."""
    number = np.arange(1, len(path.value) + 1)
    limits = log_range(float(path.parameters.min()), float(path.parameters.max()), above=0.1)
    series, keys = _stages(path.stage, limits[1]), []
    several = sum(name.startswith("lengthscale") for name in path.names) > 1
    kinds = [_kind_of(name) for name in path.names]
    for kind, colour in dict.fromkeys(kinds):
        indices = [index for index, each in enumerate(kinds) if each == (kind, colour)]
        thin = kind == "lengthscale" and several
        names, values = [path.names[index] for index in indices], path.parameters[:, indices].T
        series.append(plot.Lines(number, values, names, colour, *((1.0, 0.45) if thin else (2.0, 1.0))))
        keys.append((colour, "line", f"{kind}s" if thin else kind))
    series.append(plot.Rule("x", path.best + 1, dash=(4, 3)))
    keys.append((ORANGE, "dash", "taken"))
    spread = [name for name in ("signal", "noise") if name in path.names]
    units = f"; {' and '.join(spread)} as standard deviation{'s'[: len(spread) - 1]}" if spread else ""
    units += " in units of that of each target" if spread and path.scaled else ""
    caption = f"The parameters at these evaluations{units}. Taken: {_taken_text(path)}."
    if path.refined:
        caption += " The signal and noise of the model are those of the sums over all its rows."
    x, y = _evaluations(len(number)), plot.Axis("Value", limits, log=True)
    return plot.Figure(caption, x, y, series, keys, height=340)


def _taken_text(path: TuningPath) -> str:
    """The parameters of the model as text; many lengthscales are given as a range."""
    pairs = list(zip(path.names, path.parameters[path.best].tolist(), strict=True))
    if path.refined:
        # One value under one name on a page.
        pairs = [(name, value) for name, value in pairs if name not in ("signal", "noise")] or pairs
    several = [value for name, value in pairs if name.startswith("lengthscale")]
    texts = []
    if len(several) > 1:
        pairs = [(name, value) for name, value in pairs if not name.startswith("lengthscale")]
        texts = [f"lengthscales {significant(min(several))} to {significant(max(several))}"]
    texts += [f"{name} {significant(value)}" for name, value in pairs[:_MOST_PARAMETERS]]
    rest = len(pairs) - _MOST_PARAMETERS
    return ", ".join(texts) + (f" and {count(rest)} more" if rest > 0 else "")


def _kind_of(name: str) -> tuple[str, str]:
    for kind, colour in (("lengthscale", BLUE), ("signal", TEAL), ("noise", PURPLE)):
        if name.startswith(kind):
            return (kind if kind == "lengthscale" else name), colour
    return name, INK


@plot.drawing("lengthscales", "Lengthscales")
def lengthscales_figure(found: Lengthscales, *, unit: str) -> plot.Figure:
    """Lengthscales of the features, the shortest first: the function depends on these features most."""
    value, names = found.value[:_MOST_NAMED], [shortened(name, 22) for name in found.names[:_MOST_NAMED]]
    k, low, high = len(value), float(value.min()), float(value.max())
    logarithmic = decades(low, high) > 1.0
    limits = log_range(low, high, 0.12, 0.2) if logarithmic else (0.0, 1.18 * high)
    x, y = (
        plot.Axis(f"Lengthscale ({unit})", limits, log=logarithmic),
        plot.Axis("", (k - 0.4, -0.6), names=tuple(names)),
    )
    at, texts = np.arange(k), [significant(float(each)) for each in value]
    hover = [("feature", names), ("lengthscale", texts)]
    series = [
        # Segments begin at the end of the axis, because a logarithmic axis has no zero.
        plot.Segments(at, limits[0], value, along="x"),
        plot.Points(value, at, size=9.0, edge_width=1.0, hover=hover),
        plot.Texts(value, at, texts, size=11.0, offset=9.0),
    ]
    caption = (
        "One for each feature, the shortest first. The function varies most along the first features, and hardly along "
        "the last."
    )
    rest = found.value[_MOST_NAMED:]
    if len(rest):
        caption += f" {plural(len(rest), 'feature')} with lengthscales from {significant(float(rest[0]))} on not drawn."
    return plot.Figure(caption, x, y, series, height=90 + 22 * max(k, 6))
