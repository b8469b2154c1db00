"""The pictures of `bcm`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _bcm_runs import ASKED, CELLS, DTC, LANDMARKS, ROWS, Compared, Large, Run, paired
from _bcm_tables import TICKS
from _committees import NOISE
from _shared import WIDTH, finish
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

BLUES, ORANGES = ("#56b4e9", "#08519c"), ("#f0a030", "#a63603")
GREY = "#70757a"


def draw_losses(path: Path, small: Sequence[Compared]) -> None:
    """Loss of RMSE, and beside it of NLPD, against the number of query points; two panels a set."""
    figure = Figure(figsize=(WIDTH, 2.2 * len(small) + 1.1))
    axes = figure.subplots(len(small), 2, squeeze=False)
    for row, outcome in zip(axes, small, strict=True):
        for side, (axis, name) in enumerate(zip(row, ("rmse_loss", "nlpd_loss"), strict=True)):
            _curves(axis, outcome, name, (100.0, 1.0)[side])
            _losses_scale(axis, (0.3, 0.003)[side])
            axis.set_ylabel(("RMSE loss, %", "NLPD loss, nats")[side], fontsize=8.5)
            axis.set_xlabel("query points / p_eff", fontsize=8.5)
        row[0].set_title(f"{outcome.name}, p_eff {outcome.degrees:.0f}", fontsize=9, loc="left")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=1, frameon=False, fontsize=9, labelspacing=0.3)
    finish(figure, path, rect=(0, 1.1 / figure.get_figheight(), 1, 1))


def _losses_scale(axis: Any, linear: float) -> None:
    """Logarithmic on both sides of 0, but for what is less than `linear`."""
    axis.axvline(1.0, color=GREY, linestyle=":", linewidth=1.2)
    axis.axhline(0.0, color="#3c4043", linewidth=0.8)
    axis.set_yscale("symlog", linthresh=linear, linscale=0.8)
    axis.margins(y=0.1)
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(FixedLocator(_decades(axis.get_ylim(), linear)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xscale("log", base=2)
    axis.set_xlim(min(TICKS) / 1.3, max(TICKS) * 1.3)
    axis.xaxis.set_major_locator(FixedLocator(list(TICKS)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: TICKS.get(value, "")))
    axis.tick_params(labelsize=8.5)


def _decades(limits: tuple[float, float], linear: float) -> list[float]:
    """0, and powers of ten of either sign within the limits, from where the scale is logarithmic."""
    low, high = limits
    powers = [float(10.0**k) for k in range(int(np.ceil(np.log10(linear))), 4)]
    return [value for value in (*(-p for p in powers), 0.0, *powers) if low <= value <= high]


def _curves(axis: Any, outcome: Compared, name: str, unit: float) -> None:
    """DTC, and of the committees those of the smallest and largest members."""
    plain = [run for run in outcome.runs if run.partition == DTC]
    curves = [(plain, "DTC on the landmarks", GREY, ":", "d")]
    for query, colors, line, marker in ((LANDMARKS, BLUES, "-", "o"), (ASKED, ORANGES, "--", "s")):
        runs = [run for run in outcome.runs if run.query == query and run.partition == ROWS]
        sizes = sorted({run.size for run in runs})
        for size, color in zip(dict.fromkeys((sizes[0], sizes[-1])) if sizes else (), colors, strict=False):
            label = f"{query}, members of {size:,}"
            curves.append(([run for run in runs if run.size == size], label, color, line, marker))
    for shift, (runs, label, color, line, marker) in enumerate(curves):
        # A little apart, that bars do not hide each other.
        at = np.array([run.share for run in runs]) * 2.0 ** (0.08 * (shift - 2))
        found = [getattr(run, name) for run in runs]
        means, errors = (unit * np.array([getattr(x, field) for x in found]) for field in ("mean", "error"))
        style = {"linestyle": line, "marker": marker, "markersize": 4, "linewidth": 1.4}
        axis.errorbar(at, means, NOISE * errors, color=color, label=label, **style)


def draw_partitions(path: Path, small: Sequence[Compared]) -> None:
    """RMSE loss by rows (open) and by cells (filled), for each set, one panel a number of query points."""
    shares = (0.25, 1.0)
    figure = Figure(figsize=(WIDTH, 2.0 * (0.34 * len(small) + 0.9) + 0.6))
    axes = figure.subplots(2, 1)
    for axis, share in zip(axes, shares, strict=True):
        for position, outcome in enumerate(reversed(small)):
            runs = [run for run in outcome.runs if run.query == LANDMARKS and run.share == share]
            for shift, (a, b) in enumerate(paired(runs, "partition", ROWS, CELLS)):
                place, color = position + 0.22 * (0.5 - shift), BLUES[shift]
                values = [100.0 * run.rmse_loss.mean for run in (a, b)]
                axis.plot(values, [place] * 2, color=color, linewidth=1.6, alpha=0.6)
                style = {"s": 40, "edgecolors": color, "linewidths": 1.5, "zorder": 3}
                first = position == len(small) - 1
                axis.scatter(values[0], place, facecolors="white", label=_by(a) if first else None, **style)
                axis.scatter(values[1], place, facecolors=color, label=_by(b) if first else None, **style)
        axis.axvline(0.0, color="#3c4043", linewidth=0.8)
        axis.set_xscale("symlog", linthresh=1.0, linscale=0.6)
        axis.margins(x=0.08)
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_locator(FixedLocator(_decades(axis.get_xlim(), 1.0)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_yticks(range(len(small)), [o.name for o in reversed(small)])
        axis.tick_params(labelsize=9)
        axis.set_xlabel("RMSE loss, %", fontsize=9)
        axis.set_title(f"{TICKS[share]} p_eff query points", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=9)
    finish(figure, path, rect=(0, 0.6 / figure.get_figheight(), 1, 1))


def _by(run: Run) -> str:
    return f"members of {run.size} by {run.partition}"


def draw_large(path: Path, big: Sequence[Large]) -> None:
    """RMSE and NLPD against seconds, two panels a table."""
    names = list(dict.fromkeys(run.name for run in big))
    figure = Figure(figsize=(WIDTH, 4.8 * len(names)))
    axes = figure.subplots(2 * len(names), 1)
    for place, name in enumerate(names):
        these = [run for run in big if run.name == name]
        for band, field in enumerate(("rmse", "nlpd")):
            axis = axes[2 * place + band]
            for run, color in zip(these, ("#009e73", *BLUES, GREY), strict=False):
                rows = f", {run.rows:,} rows" if not run.model.startswith("exact") else ""
                axis.scatter(run.seconds, getattr(run, field), s=70, color=color, label=f"{run.model}{rows}", zorder=3)
            axis.margins(0.15)
            axis.set_xlim(left=0.0)
            axis.tick_params(labelsize=9)
            axis.set_xlabel("seconds", fontsize=9)
            axis.set_ylabel(("test error (RMSE)", "NLPD, nats")[band], fontsize=9)
            if band == 0:
                axis.set_title(f"{name}, {these[0].n} query points", fontsize=10)
                axis.legend(fontsize=8.5, frameon=False)
    finish(figure, path)
