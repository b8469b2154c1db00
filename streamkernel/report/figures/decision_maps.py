"""Decision maps: what a model of two features decides, over the plane of these."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.margins import DecisionMap
from streamkernel.report.figures import plot
from streamkernel.report.figures.palette import BLUE, INK, MUTED, ORANGE, PAPER, blend, line_style
from streamkernel.report.text import count, plural, shortened, significant
from streamkernel.type_aliases import Float, Int

_MOST_NAMES = 12
_STEPS = (0.25, 0.5, 1.0, 2.0)  # values of a function at which the map changes its shade
_SHADES = 14  # of a map of numbers
_MOST_COLOURS = 8
_MOST_RINGS = 300  # basis points that are drawn large


def map_figures(found: DecisionMap | Absent | None) -> list[plot.Drawing]:
    """What a model of two features decides: one map of the classes, or one of each of the first targets."""
    if found is None:
        return []
    if isinstance(found, Absent):
        return [plot.Missing("Decision map", found.reason)]
    if found.classes:
        return [_two_classes(found) if found.values.shape[2] == 1 else _several_classes(found)]
    return [_numbers(found, target) for target in range(min(found.values.shape[2], plot.MOST_FIGURES))]


def _two_classes(found: DecisionMap) -> plot.Figure:
    values = found.values[:, :, 0]
    steps = np.array([-each for each in _STEPS[::-1]] + [0.0, *_STEPS])
    shade, sides = np.digitize(values, steps), len(_STEPS) + 1
    colours = [blend(0.5 - 0.4 * at / (sides - 1), PAPER, ORANGE) for at in range(sides)]
    colours += [blend(0.1 + 0.4 * at / (sides - 1), PAPER, BLUE) for at in range(sides)]
    ends = [-np.inf, *steps.tolist(), np.inf]
    texts = [f"{significant(low)} to {significant(high)}" for low, high in pairwise(ends)]
    names = [found.outputs[int(at >= sides)] for at in range(2 * sides)]
    series: list[plot.Series] = [
        _cells(found, shade, colours, [("class", names), ("f", texts)]),
        *_contour(found, values + 1.0, MUTED, 1.0),
        *_contour(found, values - 1.0, MUTED, 1.0),
        *_contour(found, values, INK, 2.0),
    ]
    keys: list[plot.Key] = [
        (blend(0.4, PAPER, colour), "box", shortened(name, 30))
        for colour, name in zip((ORANGE, BLUE), found.outputs, strict=True)
    ]
    keys += [(INK, "line", "the boundary, f = 0"), (MUTED, "line", "the margins, f = −1 and 1")]
    caption = (
        f"The class that the model names, over {_axes_text(found)}. The shade is darker where the value f of the "
        "function is farther from 0."
    )
    return _map(found, caption, series, keys)


def _several_classes(found: DecisionMap) -> plot.Figure:
    values, C = found.values, found.values.shape[2]
    winner = values.argmax(axis=2)
    least, second = np.partition(values, (C - 2, C - 1), axis=2)[:, :, C - 2 :].transpose(2, 0, 1)
    lead, levels = second - least, len(_STEPS) + 1
    shade = winner * levels + np.digitize(lead, _STEPS)
    colours = [
        blend(0.15 + 0.45 * level / (levels - 1), PAPER, line_style(label % _MOST_COLOURS)[0])
        for label in range(C)
        for level in range(levels)
    ]
    ends = [0.0, *_STEPS, np.inf]
    texts = [f"{significant(low)} to {significant(high)}" for low, high in pairwise(ends)] * C
    names = [label for label in found.outputs for _ in range(levels)]
    series: list[plot.Series] = [_cells(found, shade, colours, [("class", names), ("lead", texts)])]
    shown = np.unique(winner).tolist()
    for label in shown[:-1]:
        # Each boundary once: that of two classes belongs to the first of them.
        later = values[:, :, label] - values[:, :, label + 1 :].max(axis=2)
        series += _contour(found, np.where(winner < label, np.nan, later), INK, 1.5)
    keys: list[plot.Key] = [
        (blend(0.5, PAPER, line_style(label % _MOST_COLOURS)[0]), "box", shortened(found.outputs[label], 30))
        for label in shown[:_MOST_NAMES]
    ]
    caption = (
        f"The class that the model names, over {_axes_text(found)}. The shade is darker where its function leads the "
        "best other one by more."
    )
    if len(shown) > _MOST_COLOURS:
        caption += f" Colours repeat after {_MOST_COLOURS} classes."
    if len(shown) < C:
        caption += f" {count(C - len(shown))} of {plural(C, 'class', 'classes')} win nowhere here."
    return _map(found, caption, series, keys)


def _numbers(found: DecisionMap, target: int) -> plot.Figure:
    values, targets = found.values[:, :, target], found.values.shape[2]
    name = found.outputs[target] if len(found.outputs) == targets else f"function {target + 1}"
    low, high = float(values.min()), float(values.max())
    steps = np.linspace(low, high, _SHADES + 1)
    # A constant has one shade.
    shade = np.digitize(values, steps[1:-1]) if high > low else np.zeros(values.shape, dtype=np.int64)
    colours = [blend(0.04 + 0.9 * at / (_SHADES - 1)) for at in range(_SHADES)]
    texts = [f"{significant(a, 4)} to {significant(b, 4)}" for a, b in pairwise(steps)]
    series: list[plot.Series] = [_cells(found, shade, colours, [(name, texts)])]
    keys: list[plot.Key] = [
        (colours[0], "box", significant(low)),
        (colours[_SHADES // 2], "box", significant(0.5 * (low + high))),
        (colours[-1], "box", significant(high)),
    ]
    caption = f"Predicted {name} over {_axes_text(found)}."
    if found.boundary:
        series += _contour(found, values, INK, 2.0)
        keys.append((INK, "line", "the threshold, f = 0"))
        caption = f"The {name} f over {_axes_text(found)}: rows beyond the threshold are outliers."
    if target == 0 and targets > plot.MOST_FIGURES:
        caption += f" The first {plot.MOST_FIGURES} of {count(targets)} targets are drawn."
    return _map(found, caption, series, keys, target, "" if targets == 1 else name)


def _axes_text(found: DecisionMap) -> str:
    return f"{shortened(found.columns[0], 30)} and {shortened(found.columns[1], 30)} in their units"


def _map(
    found: DecisionMap, caption: str, series: list[plot.Series], keys: list[plot.Key], number: int = 0, of: str = ""
) -> plot.Figure:
    size = 4.5 if len(found.points) <= _MOST_RINGS else 3.0
    points = plot.Points(found.points[:, 0], found.points[:, 1], PAPER, INK, 1.0, size, 0.9)
    (left, right), (bottom, top) = _edges(found.x)[[0, -1]], _edges(found.y)[[0, -1]]
    x = plot.Axis(found.columns[0], (float(left), float(right)))
    y = plot.Axis(found.columns[1], (float(bottom), float(top)))
    title = f"Decision map: {of}" if of else "Decision map"
    if not found.classes:
        title = f"Map of predictions: {of}" if of else "Map of predictions"
    if len(found.points):
        series, keys = [*series, points], [*keys, (INK, "ring", "basis points")]
    return plot.Figure(caption, x, y, series, keys, f"map-{number + 1}", title, height=420)


def _edges(middles: Float) -> Float:
    """Ends of equal cells, from their middles."""
    half = 0.5 * (middles[1] - middles[0])
    return np.append(middles - half, middles[-1] + half)


def _cells(found: DecisionMap, shade: Int, colours: list[str], fields: list[tuple[str, list[str]]]) -> plot.Boxes:
    """Cells in the colours of their shades (r, c); equal neighbours in a row are one box."""
    x, y = _edges(found.x), _edges(found.y)
    rows, columns = shade.shape
    starts = np.ones(shade.shape, dtype=bool)
    starts[:, 1:] = shade[:, 1:] != shade[:, :-1]
    row, first = np.nonzero(starts)
    # A box ends where the next one of its row begins.
    last = np.append(first[1:], 0)
    last[np.append(row[1:] != row[:-1], True)] = columns
    kinds = shade[row, first]
    # A little under the next ones, so that no hairlines are left between them.
    over = 0.25 * (x[1] - x[0]), 0.25 * (y[1] - y[0])
    right = np.where(last < columns, x[last] + over[0], x[last])
    top = np.where(row + 1 < rows, y[row + 1] + over[1], y[row + 1])
    hover: list[plot.Field] = [(label, [texts[kind] for kind in kinds]) for label, texts in fields]
    return plot.Boxes(x[first], right, y[row], top, [colours[kind] for kind in kinds], None, hover=hover)


def _contour(found: DecisionMap, values: Float, colour: str, width: float) -> list[plot.Series]:
    """The line where the values (r, c) at the middles of the cells are 0, as separate segments; none where it is not.

    Each square of four middles is two triangles, on each of which the values are linear: the line enters and leaves a
    triangle once, at most. Triangles with a value that is not finite are left out.
    """
    X, Y = np.meshgrid(found.x, found.y)
    places = np.stack([X, Y, values], axis=2)
    a, b, c, d = places[:-1, :-1], places[:-1, 1:], places[1:, :-1], places[1:, 1:]
    corners = np.concatenate([np.stack(each, axis=2).reshape(-1, 3, 3) for each in ((a, b, d), (a, c, d))])
    above = corners[:, :, 2] > 0.0
    # The corner that is on its own, and the two others.
    alone = np.argmax(above == (above.sum(axis=1) == 1)[:, None], axis=1)
    crossed = above.any(axis=1) & ~above.all(axis=1) & np.isfinite(corners[:, :, 2]).all(axis=1)
    corners, alone = corners[crossed], alone[crossed]
    if not len(corners):
        return []
    each = np.arange(len(corners))
    tip = corners[each, alone]
    line = np.full((len(corners), 3, 2), np.nan)  # two ends, and a gap before the next segment
    for end in (0, 1):
        other = corners[each, (alone + 1 + end) % 3]
        share = tip[:, 2] / (tip[:, 2] - other[:, 2])
        line[:, end] = tip[:, :2] + share[:, None] * (other[:, :2] - tip[:, :2])
    x, y = line.reshape(-1, 2).T
    return [plot.Line(x, y, colour, width)]
