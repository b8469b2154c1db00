"""Calibration, transform and reliability on given matplotlib axes: the middle of a small picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel.report.facts.calibration import CountCheck, GaussianCheck, ProbabilityCheck, binomial_band
from streamkernel.report.figures.palette import BLUE, GREY, INK, ORANGE, PALE_BLUE, blend
from streamkernel.report.text import percent, plain, significant

__all__ = ["draw_check"]

_BAND = blend(0.14)


def draw_check(axes: Any, check: GaussianCheck | ProbabilityCheck | CountCheck) -> None:
    """Draw the calibration of the distributions as one plot."""
    if isinstance(check, GaussianCheck):
        _intervals(axes, check)
    elif isinstance(check, ProbabilityCheck):
        _reliability(axes, check)
    else:
        _transform(axes, check)


def _intervals(axes: Any, check: GaussianCheck) -> None:
    axes.set_title("Calibration of intervals")
    _square(axes, 100.0)
    fine = np.linspace(0.0, 1.0, 101)
    low, high = binomial_band(fine, check.count)
    axes.fill_between(100 * fine, 100 * low, 100 * high, color=_BAND, linewidth=0)
    share, levels = 100 * check.found.coverage.mean(axis=0), 100 * check.found.levels
    axes.plot(levels, share, color=BLUE, linewidth=1.8)
    held = check.found.scalars["coverage95"]
    axes.plot([95.0], [100 * held], "o", color=ORANGE, markersize=6, markeredgecolor="white", clip_on=False)
    corner = (0.04, 0.97, "left", "top") if held <= 0.95 else (0.97, 0.03, "right", "bottom")
    _words(axes, f"95 % intervals hold {percent(held)}\nNLPD {significant(check.found.scalars['nlpd'])}", *corner)
    axes.set_xlabel(f"Intervals should hold, % of {check.where}")
    axes.set_ylabel("They hold, %")


def _reliability(axes: Any, check: ProbabilityCheck) -> None:
    axes.set_title("Reliability of probabilities")
    _square(axes, 1.0)
    found = check.found
    filled = found.count > 0
    predicted, observed = found.predicted[filled], found.observed[filled]
    low, high = binomial_band(predicted, found.count[filled])
    edges = np.linspace(0.0, 1.0, len(found.count) + 1)
    # Number of rows in each bin, in the lowest quarter; the page gives the numbers.
    axes.bar(edges[:-1], 0.25 * found.count / found.count.max(), width=np.diff(edges), align="edge", color=GREY,
             alpha=0.45, edgecolor="white", linewidth=0.6)  # fmt: skip
    axes.vlines(predicted, low, high, color=PALE_BLUE, linewidth=4, alpha=0.7)
    axes.plot(predicted, observed, color=BLUE, linewidth=1.5)
    colours = np.where((observed < low) | (observed > high), ORANGE, BLUE)
    axes.scatter(predicted, observed, s=26, c=colours, edgecolors="white", linewidths=0.8, zorder=3, clip_on=False)
    scalars = found.scalars
    words = f"log loss {significant(scalars['log_loss'])}\nBrier {significant(scalars['brier'])}"
    _words(axes, words, 0.04, 0.97, "left", "top")
    of = f"class {plain(check.label, 18)}" if check.label else "the likeliest class"
    axes.set_xlabel(f"Predicted probability of {of}")
    axes.set_ylabel(f"Share of {check.where}")


def _transform(axes: Any, check: CountCheck) -> None:
    axes.set_title("Probability integral transform")
    rows, bins = check.transform, len(check.transform)
    low, high = (check.count * float(end[0]) for end in binomial_band(np.array([1.0 / bins]), check.count))
    axes.axhspan(low, high, color=_BAND, linewidth=0, zorder=0)
    edges = np.linspace(0.0, 1.0, bins + 1)
    axes.bar(edges[:-1], rows, width=1.0 / bins, align="edge", color=PALE_BLUE, edgecolor="white", alpha=0.85)
    axes.axhline(check.count / bins, color=ORANGE, linewidth=1.0, linestyle=(0, (5, 3)))
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.3 * max(float(rows.max()), high))
    scalars = check.found.scalars
    words = f"NLPD {significant(scalars['nlpd'])}\n{percent(scalars['d2'])} of the deviance"
    _words(axes, words, 0.04, 0.97, "left", "top")
    axes.set_xlabel("Probability given to less than the target")
    axes.set_ylabel(check.where[:1].upper() + check.where[1:])


def _square(axes: Any, end: float) -> None:
    axes.set_xlim(0.0, end)
    axes.set_ylim(0.0, 1.015 * end)
    axes.set_box_aspect(1)
    axes.grid(axis="y")
    axes.plot([0.0, end], [0.0, end], color=ORANGE, linewidth=1.0, linestyle=(0, (5, 3)))


def _words(axes: Any, words: str, x: float, y: float, ha: str, va: str) -> None:
    axes.text(x, y, words, transform=axes.transAxes, ha=ha, va=va, color=INK, linespacing=1.4)
