"""The figure of `skmp`: box plots of errors against terms, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _shared import finish
from _skmp_outcomes import ACTIVE, KMP, NOT_RUN, Found, skmp
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

BOXES, LINE, MACHINE, GREY = ("#0072b2", "#d55e00"), "#3c4043", "#009e73", "#70757a"


def figure(path: Path, found: Found, sizes: Sequence[int]) -> None:
    drawn = Figure(figsize=(11, 2.9 * len(sizes) + 0.4))
    axes: Any = drawn.subplots(len(sizes), len(ACTIVE), squeeze=False, sharey="row", sharex=True)
    for row, rows in zip(axes, sizes, strict=True):
        for axis, size, color in zip(row, ACTIVE, BOXES, strict=True):
            pursuits = found.of(rows, skmp(size))
            if pursuits:
                shown = [k for k, mark in enumerate(pursuits[0].terms) if mark % 200 == 0]
                axis.boxplot(
                    [[o.errors[k] for o in pursuits] for k in shown],
                    positions=[pursuits[0].terms[k] for k in shown],
                    widths=90,
                    whis=(0, 100),
                    manage_ticks=False,
                    boxprops={"color": color},
                    whiskerprops={"color": color},
                    capprops={"color": color},
                    medianprops={"color": color, "linewidth": 2.0},
                )
                axis.plot([], [], color=color, linewidth=2.0, label=f"SKMP-{size}, {len(pursuits)} repeats")
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
            axis.set_title(f"{rows:,} rows, active sets of {size}", fontsize=10)
            axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axis.set_xticks(range(200, 2401, 400))
            if axis.get_legend_handles_labels()[0]:
                axis.legend(frameon=False, fontsize=8, loc="upper right")
            else:
                axis.text(0.5, 0.5, NOT_RUN, transform=axis.transAxes, ha="center", color=GREY)
        row[0].set_ylabel("test error", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("terms", fontsize=9)
    finish(drawn, path)
