"""The picture of `billion`: peak memory of a fit against the number of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

STYLES = ({"color": "#0072b2", "marker": "o"}, {"color": "#d55e00", "marker": "s"})


def draw(path: Path, curves: Mapping[str, Mapping[int, int]], limit: int) -> None:
    """Peak bytes by rows, a curve for each source, and the limit as a line."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axis = figure.subplots()
    for (of, peaks), style in zip(curves.items(), STYLES, strict=False):
        axis.plot(list(peaks), [peak / 2**20 for peak in peaks.values()], label=f"rows: {of}", **style)
    axis.axhline(limit / 2**20, color="#444444", linewidth=1.2, linestyle="--", label="limit")
    axis.set_xscale("log")
    axis.set_ylim(0.0, 1.1 * limit / 2**20)
    axis.set_xlabel("rows of the fit")
    axis.set_ylabel("peak memory, MiB")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
