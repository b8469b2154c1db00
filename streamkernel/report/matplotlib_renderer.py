"""The report as one small picture, for a README or a talk: drawn by matplotlib, without pyplot's global state."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from streamkernel.errors import ParameterError
from streamkernel.factors import Factor
from streamkernel.models import RidgeModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.report.facts.calibration import CountCheck, GaussianCheck, ProbabilityCheck, distribution_check
from streamkernel.report.facts.factors import MOST_ENDS, FactorCurve, PcaCurve, factor_curve, factor_labels
from streamkernel.report.facts.fit import Absent, GcvCurve, Round, TraceCurve, gcv_curve, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.facts.pursuit import PathCurve, path_curve
from streamkernel.report.figures.axes import decades, log_range, padded
from streamkernel.report.figures.palette import BAND, BLUE, GRID, INK, MUTED, ORANGE, RULE, blend, line_style, shade
from streamkernel.report.pages.gaussian import TunedModel, gaussian_headline
from streamkernel.report.pages.pursuit import pursuit_headline
from streamkernel.report.pages.tables import headline
from streamkernel.report.pictures import draw_check
from streamkernel.report.publish import PICTURE, checked_output, publish_file
from streamkernel.report.text import count, percent, plain, power_of_ten, shortened, significant

__all__ = ["write_factor_png", "write_png"]

_INCHES, _FACTOR_INCHES, _DPI = (10.0, 3.6), (7.2, 4.4), 144
_MOST_NAMED = 10

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # class labels may hold dollars
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": GRID,
}


def write_png(model: PredictingModel, path: str | PathLike[str]) -> None:
    """See `streamkernel.report.draw_png`."""

    def draw(figure: Figure) -> None:
        if isinstance(model, PursuitModel):
            lead = pursuit_headline(model)[1]
        else:
            lead = (gaussian_headline(model) if isinstance(model, TunedModel) else headline(model))[1]
        figure.suptitle(lead, x=0.006, ha="left", fontsize=9, color=MUTED)
        left, middle, right = figure.subplots(1, 3)
        _trace(left, trace_curve(model))
        if isinstance(model, RidgeModel):
            _gcv(middle, gcv_curve(model))
        elif isinstance(model, PursuitModel):
            _path(middle, path_curve(model))
        else:
            _check(middle, distribution_check(model))
        _predictions(right, check_pairs(model))

    _write(path, _INCHES, draw)


def write_factor_png(factors: Sequence[Factor], path: str | PathLike[str], pca: PcaCurve | Absent | None) -> None:
    """See `streamkernel.report.draw_factor_png`."""
    found = [factor_curve(*one) for one in zip(factors, factor_labels(factors), strict=True)]
    if not any(isinstance(curve, FactorCurve) for curve in found):
        raise ParameterError("no factor has a residual trace to draw: the kernel matrix is 0, or there are no columns")

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title("Residual trace against rank")
        for index, curve in enumerate(found):
            if isinstance(curve, Absent):
                continue
            colour, dashes = line_style(index)
            style: Any = {"color": colour, "linewidth": 1.8, "linestyle": (0, dashes) if dashes else "solid"}
            marks = [*(curve.ends if len(curve.ends) <= MOST_ENDS else ()), curve.rank]
            axes.plot(
                curve.relative, label=curve.label, marker="o", markevery=marks, markersize=4, mfc="white", **style
            )
        if isinstance(pca, PcaCurve):
            axes.plot(pca.relative, label="PCA, the optimum", color=INK, linewidth=1.2, linestyle=(0, (5, 3)))
        low, high = log_range(min(line.get_ydata().min() for line in axes.lines), 1.0)  # type: ignore[union-attr]
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        _power_ticks(axes.yaxis, low, high)
        axes.grid(axis="y")
        axes.legend(frameon=False)
        axes.set_xlabel("Rank (basis functions)")
        axes.set_ylabel("Share of the trace")

    _write(path, _FACTOR_INCHES, draw)


def _write(path: str | PathLike[str], inches: tuple[float, float], draw: Callable[[Figure], None]) -> None:
    target = checked_output(path, overwrite=True, mark=PICTURE)
    with rc_context(_STYLE), warnings.catch_warnings():
        # A label whose script the font lacks is drawn as boxes; this is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=inches, dpi=_DPI, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        draw(figure)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": "streamkernel"})
    publish_file(target, picture.getvalue(), overwrite=True, mark=PICTURE)


def _missing(axes: Axes, reason: str) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, reason, ha="center", va="center", wrap=True, color=MUTED, transform=axes.transAxes)


def _power_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks at powers of ten, with superscript characters: mathematical text would be parsed in the labels too."""
    axis.set_minor_locator(NullLocator())
    if decades(low, high) >= 2.0:
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(round(np.log10(value)))))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _trace(axes: Axes, curve: TraceCurve | Absent) -> None:
    axes.set_title("Residual trace")
    if isinstance(curve, Absent):
        _missing(axes, curve.reason)
        return
    n = int(curve.size[-1])
    in_percent = curve.relative.min() >= 1e-5
    values = curve.relative * (100.0 if in_percent else 1.0)
    low, high = log_range(float(values.min()), float(values.max()), below=0.22, above=0.06)
    axes.set_yscale("log")
    axes.set_xlim(0, 1.02 * n)
    axes.set_ylim(low, high)
    _power_ticks(axes.yaxis, low, high)
    if in_percent:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.grid(axis="y")
    rounds: list[Round] = [r for r in curve.rounds if r.stop > r.start]
    if 1 < len(rounds) <= 12:
        for r in rounds[::2]:
            axes.axvspan(r.start, r.stop, color=BAND, zorder=0)
    axes.plot(curve.size, values, color=BLUE, linewidth=1.8)
    axes.plot([n], [values[-1]], "o", color=ORANGE, markersize=6, markeredgecolor="white", clip_on=False)
    left = "zero to rounding" if curve.vanished else f"{percent(curve.left)} left, exactly"
    axes.annotate(left, (n, values[-1]), xytext=(0, -7), textcoords="offset points", ha="right", va="top", color=ORANGE)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    axes.set_xlabel("Basis functions")
    axes.set_ylabel("% of the trace" if in_percent else "Share of the trace")


def _gcv(axes: Axes, curve: GcvCurve | Absent) -> None:
    axes.set_title("GCV error")
    if isinstance(curve, Absent):
        _missing(axes, curve.reason)
        return
    low, high = float(curve.error.min()), float(curve.error.max())
    axes.set_xscale("log")
    if decades(low, high) > 1.3:
        axes.set_yscale("log")
        low, high = log_range(low, high, above=0.16)
        _power_ticks(axes.yaxis, low, high)
    else:
        low, high = padded(low, high, 0.08)
        high += 0.08 * (high - low)
    axes.set_ylim(low, high)
    axes.grid(axis="y")
    axes.plot(curve.alpha, curve.error, color=BLUE, linewidth=1.8)
    if curve.chosen > 0.0:
        axes.axvline(curve.chosen, color=ORANGE, linewidth=0.9, linestyle=(0, (4, 3)))
        if np.isfinite(curve.chosen_error):
            axes.plot([curve.chosen], [curve.chosen_error], "o", color=ORANGE, markersize=6, markeredgecolor="white")
        ends = axes.get_xlim()
        on_left = decades(ends[0], curve.chosen) < 0.5 * decades(*ends)
        axes.annotate(
            f"alpha {significant(curve.chosen)}",
            (curve.chosen, high),
            xytext=(5 if on_left else -5, -3),
            textcoords="offset points",
            ha="left" if on_left else "right",
            va="top",
            color=ORANGE,
        )
    _power_ticks(axes.xaxis, *axes.get_xlim())
    axes.set_xlabel("Alpha (ridge)")
    axes.set_ylabel(fill(f"{curve.unit[:1].upper()}{curve.unit[1:]}", 36))


def _path(axes: Axes, curve: PathCurve | Absent) -> None:
    axes.set_title("Error against terms")
    if isinstance(curve, Absent):
        _missing(axes, curve.reason)
        return
    axes.plot(curve.terms, curve.training, color=BLUE, linewidth=1.8, label="rows of the fit")
    if curve.held_out is not None:
        axes.plot(curve.terms, curve.held_out, color=line_style(2)[0], linewidth=1.8, label="validation rows")
    value = curve.at_kept(curve.held_out is not None)
    if value is not None:
        axes.plot([curve.kept], [value], "o", color=ORANGE, markersize=6, markeredgecolor="white", label="the model")
    axes.legend(frameon=False)
    axes.grid(axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    axes.set_xlabel("Terms")
    axes.set_ylabel(fill(curve.label, 40))


def _check(axes: Axes, check: GaussianCheck | ProbabilityCheck | CountCheck | Absent | None) -> None:
    if check is None or isinstance(check, Absent):
        axes.set_title("Calibration")
        _missing(axes, "no rows with predicted distributions" if check is None else check.reason)
    else:
        draw_check(axes, check)


def _predictions(axes: Axes, pairs: Targets | ClassPairs | Absent) -> None:
    axes.set_title("Predicted against true")
    if isinstance(pairs, Absent):
        _missing(axes, pairs.reason)
    elif isinstance(pairs, ClassPairs):
        _confusion(axes, pairs)
    else:
        _cloud(axes, pairs)


def _cloud(axes: Axes, pairs: Targets) -> None:
    target = pairs.targets[0]
    both = np.concatenate([target.true, target.predicted])
    limits = padded(float(both.min()), float(both.max()), 0.04)
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_aspect("equal")
    axes.plot(limits, limits, color=ORANGE, linewidth=1.0, linestyle=(0, (5, 3)))
    opacity = shade(len(target.true))
    axes.scatter(target.true, target.predicted, s=9.0 * opacity + 3.0, color=BLUE, alpha=opacity, linewidths=0)
    words = f"RMSE {significant(target.rmse)}"
    if np.isfinite(target.r2):
        words += f"\nR² {significant(target.r2)}"
    axes.text(0.04, 0.97, words, transform=axes.transAxes, va="top", color=INK, linespacing=1.4)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    name = plain(target.name, 24)
    axes.set_xlabel(f"True {name} ({pairs.where})")
    axes.set_ylabel(f"Predicted {name}")


def _confusion(axes: Axes, pairs: ClassPairs) -> None:
    totals = pairs.counts.sum(axis=1, keepdims=True)
    share = np.divide(pairs.counts, totals, out=np.zeros(pairs.counts.shape), where=totals > 0)
    colours = LinearSegmentedColormap.from_list("blue", [blend(0.0), blend(1.0)])
    axes.imshow(share, cmap=colours, vmin=0.0, vmax=1.0)
    k = len(pairs.labels)
    if k <= _MOST_NAMED:
        names = [shortened(label, 12) for label in pairs.labels]
        turned: dict[str, Any] = (
            {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, names)) > 20 else {}
        )
        axes.set_xticks(range(k), labels=names, **turned)
        axes.set_yticks(range(k), labels=names)
        for (row, column), number in np.ndenumerate(pairs.counts):
            ink = "white" if share[row, column] > 0.5 else INK
            axes.text(
                column, row, count(int(number)), ha="center", va="center", color=ink, fontsize=8 if k <= 5 else 6.5
            )
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{percent(pairs.accuracy)} of {pairs.where} right")
    axes.set_xlabel("Predicted class")
    axes.set_ylabel("True class")
