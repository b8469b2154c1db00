"""The figure of `skmp`: box plots of errors against terms, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _shared import WIDTH, finish
from _skmp_outcomes import ACTIVE, KMP, NOT_RUN, Found, Outcome, skmp
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

APART = 70  # terms, between the boxes of two active sets
BOXES, LINE, MACHINE, GREY = ("#0072b2", "#d55e00"), "#3c4043", "#009e73", "#70757a"


def figure(path: Path, found: Found, sizes: Sequence[int]) -> None:
    """One panel a training set, one below the other; the boxes of both active sets side by side."""
    drawn = Figure(figsize=(WIDTH, 2.9 * len(sizes) + 0.2))
    axes: Any = drawn.subplots(len(sizes), 1, squeeze=False, sharex=True)
    for axis, rows in zip(axes[:, 0], sizes, strict=True):
        for side, size, color in zip((-0.5, 0.5), ACTIVE, BOXES, strict=True):
            _boxes(axis, found.of(rows, skmp(size)), side * APART, color, f"SKMP-{size}")
        pursuit = found.one(rows, KMP)
        if pursuit is not None:
            kept = [k for k, mark in enumerate(pursuit.terms) if mark >= 200]
            axis.plot(
                [pursuit.terms[k] for k in kept], [pursuit.errors[k] for k in kept], color=LINE, label=KMP, zorder=1
            )
        for name, style in zip(found.machines, ("--", ":"), strict=False):
            machine = found.one(rows, name)
            if machine is not None:
                label = f"{name}, {machine.terms[0]:,} vectors"
                axis.axhline(machine.errors[0], color=MACHINE, linestyle=style, label=label)
        axis.set_title(f"{rows:,} rows", fontsize=10)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axis.set_xticks(range(200, 2401, 400))
        axis.tick_params(labelsize=9, labelbottom=True)
        axis.set_ylabel("test error", fontsize=9)
        axis.set_xlabel("terms", fontsize=9)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=8.5, loc="upper right", labelspacing=0.25)
        else:
            axis.text(0.5, 0.5, NOT_RUN, transform=axis.transAxes, ha="center", color=GREY)
    finish(drawn, path)


def _boxes(axis: Any, pursuits: Sequence[Outcome], shift: float, color: str, name: str) -> None:
    if not pursuits:
        return
    shown = [k for k, mark in enumerate(pursuits[0].terms) if mark % 200 == 0]
    axis.boxplot(
        [[o.errors[k] for o in pursuits] for k in shown],
        positions=[pursuits[0].terms[k] + shift for k in shown],
        widths=0.9 * APART,
        whis=(0, 100),
        manage_ticks=False,
        boxprops={"color": color},
        whiskerprops={"color": color},
        capprops={"color": color},
        medianprops={"color": color, "linewidth": 2.0},
    )
    axis.plot([], [], color=color, linewidth=2.0, label=f"{name}, {len(pursuits)} repeats")
