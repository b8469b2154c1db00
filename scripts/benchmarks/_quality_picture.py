"""The picture of `quality`: test error and residual trace of every rule against n, a column a set."""

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
MOST_COLUMNS = 4


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
    """Error above, residual trace below, in bands of four sets."""
    sets = list(dict.fromkeys(point.data for point in points))
    columns = min(MOST_COLUMNS, len(sets))
    bands = -(-len(sets) // columns)
    figure = Figure(figsize=(3.4 * columns, 4.8 * bands))
    axes = figure.subplots(2 * bands, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for k, data in enumerate(sets):
        band, column = divmod(k, columns)
        above, below = axes[2 * band][column], axes[2 * band + 1][column]
        mine = [point for point in points if point.data == data]
        for rule, style in zip(rules, STYLES, strict=True):
            line = sorted((point for point in mine if point.rule == rule), key=lambda point: point.n)
            look = {**style, "markersize": 5, "linewidth": 1.5, "label": rule}
            if line:
                above.plot([point.n for point in line], [point.error for point in line], **look)
            if line and line[0].residual is not None:
                below.plot([point.n for point in line], [point.residual for point in line], **look)
        below.set_yscale("log")
        above.set_title(data, fontsize=11)
        below.set_xlabel("n, basis functions", fontsize=9)
        for axis, name in ((above, "test error (RMSE)"), (below, "residual trace, share")):
            _dress(axis, sorted({point.n for point in mine}), name if column == 0 else "")
    handles = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    shown = [rule for rule in rules if rule in handles]
    across = min(len(shown), 2 * columns)
    figure.legend([handles[rule] for rule in shown], shown, loc="lower center", ncols=across, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.06 if across < len(shown) else 0.03, 1, 1))
    figure.savefig(path, dpi=150)


def _dress(axis: Any, sizes: list[int], name: str) -> None:
    axis.set_visible(True)
    axis.set_xscale("log")
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(which="both", labelsize=8)
    axis.set_ylabel(name, fontsize=9)
