"""The picture of `accuracy`: the error of each estimator over that of boosted trees, a row a set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

STYLES = (
    {"color": "#d55e00", "marker": "o", "markersize": 8},
    {"color": "#9aa0a6", "marker": "s", "markersize": 6},
    {"color": "#0072b2", "marker": "^", "markersize": 6},
    {"color": "#009e73", "marker": "D", "markersize": 6},
    {"color": "#cc79a7", "marker": "v", "markersize": 6},
    {"color": "#000000", "marker": "x", "markersize": 6},
)
TICKS = (0.2, 0.25, 0.33, 0.5, 0.7, 1.0, 1.4, 2.0)


def draw(path: Path, ratios: Mapping[str, Mapping[str, float]], reference: str) -> None:
    """A dot for each estimator and set; left of the line, the estimator is better than `reference`.

    Parameters
    ----------
    ratios : errors over those of `reference`, by estimator and set; sets from top to bottom by the first estimator.
    """
    first = next(iter(ratios.values()))
    sets = sorted(first, key=lambda name: -first[name])
    figure = Figure(figsize=(8.0, 1.4 + 0.3 * len(sets)), layout="constrained")
    axis = figure.subplots()
    axis.axvline(1.0, color="#444444", linewidth=1.2)
    for (who, found), style in reversed(list(zip(ratios.items(), STYLES[: len(ratios)], strict=True))):
        shown = [name for name in sets if name in found]
        axis.plot(
            [found[name] for name in shown], [sets.index(name) for name in shown], linestyle="", label=who, **style
        )
    axis.set_xscale("log")
    axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_yticks(range(len(sets)), sets)
    axis.grid(axis="both", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlabel(f"held-out error over that of {reference} (left of 1: smaller)")
    handles, labels = axis.get_legend_handles_labels()
    # Above the sets: among them it would hide some.
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=110)
