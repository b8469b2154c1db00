"""The picture of `quality`: test error and residual trace of every rule against n, two panels a set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

STYLES = (
    {"color": "#9aa0a6", "marker": "o"},
    {"color": "#d55e00", "marker": "s"},
    {"color": "#0072b2", "marker": "^"},
    {"color": "#009e73", "marker": "D"},
    {"color": "#cc79a7", "marker": "*"},
    {"color": "#f0b400", "marker": "x"},
)
# Inches of the picture: 720 pixels. A phone shows half as many, and letters of 9 points in 9 of its pixels.
WIDTH, DOTS = 4.8, 150


class Point(Protocol):
    """What is drawn of a measurement; no residual, no point below."""

    @property
    def data(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def residual(self) -> float | None: ...
    @property
    def error(self) -> float: ...


def draw(path: Path, points: Sequence[Point], rules: Sequence[str]) -> None:
    """Error on the left, residual trace on the right; one set below the other."""
    sets = list(dict.fromkeys(point.data for point in points))
    figure = Figure(figsize=(WIDTH, 2.1 * len(sets) + 0.7))
    axes = figure.subplots(len(sets), 2, squeeze=False)
    for (left, right), data in zip(axes, sets, strict=True):
        mine = [point for point in points if point.data == data]
        for rule, style in zip(rules, STYLES, strict=True):
            line = sorted((point for point in mine if point.rule == rule), key=lambda point: point.n)
            look = {**style, "markersize": 5, "linewidth": 1.5, "label": rule}
            if line:
                left.plot([point.n for point in line], [point.error for point in line], **look)
            if line and line[0].residual is not None:
                right.plot([point.n for point in line], [point.residual for point in line], **look)
        right.set_yscale("log")
        left.set_title(data, fontsize=10, loc="left")
        for axis, name in ((left, "test error (RMSE)"), (right, "residual trace, share")):
            _dress(axis, sorted({point.n for point in mine}), name)
    handles = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    shown = [rule for rule in rules if rule in handles]
    figure.legend([handles[rule] for rule in shown], shown, loc="lower center", ncols=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.7 / figure.get_figheight(), 1, 1))
    figure.savefig(path, dpi=DOTS)


def _dress(axis: Any, sizes: list[int], name: str) -> None:
    axis.set_xscale("log")
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(which="both", labelsize=8.5)
    axis.set_xlabel("n, basis functions", fontsize=8.5)
    axis.set_ylabel(name, fontsize=8.5)
