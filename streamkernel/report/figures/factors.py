"""Figures of one or several factors: residual trace and compression bound against rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.report.facts.factors import DELTA, MOST_ENDS, BoundCurve, FactorCurve, PcaCurve
from streamkernel.report.facts.fit import Absent
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import counts_from_zero, log_range
from streamkernel.report.figures.fit import residual_axis
from streamkernel.report.figures.palette import DASHED, DOTTED, INK, MUTED, line_style
from streamkernel.report.text import count, percent, plural, significant

_MOST_HOVERED = 3  # most lines whose values fit side by side
_HIGHEST = 3.0  # top of the bound's axis, in shares of sup k(x, x): above 1 a bound gives no information


@plot.drawing("residual", "Residual trace against rank")
def residual_figure(
    curves: Sequence[FactorCurve | Absent], pca: PcaCurve | Absent | None, rows: str
) -> plot.Figure | Absent:
    """Residual trace against rank: a line for each factor, and the optimum if it is known.

    Parameters
    ----------
    curves : curves of the factors, in the order of their colours.
    pca : the optimum; None if no table was given.
    rows : name of the kernel matrix's rows, for the caption.
    """
    shown = [(index, curve) for index, curve in enumerate(curves) if isinstance(curve, FactorCurve)]
    if not shown:
        return next(curve for curve in curves if isinstance(curve, Absent))
    n = max(curve.rank for _, curve in shown)
    optimum = pca.relative[: n + 1] if isinstance(pca, PcaCurve) else None
    least = min([curve.relative.min() for _, curve in shown] + ([] if optimum is None else [optimum.min()]))
    y, unit = residual_axis(float(least), below=0.06, above=0.06)
    across = len(shown) + (optimum is not None) <= _MOST_HOVERED
    keys: list[plot.Key] = []
    series: list[plot.Series] = []

    def line(label: str, relative: np.ndarray, colour: str, dash: tuple[int, ...], width: float = 2.0) -> None:
        size = np.arange(len(relative))
        fields: list[plot.Field] = [
            ("", [label] * len(relative)),
            ("rank", size, "0,0"),
            ("residual trace", [percent(float(share)) for share in relative]),
        ]
        series.append(plot.Line(size, unit * relative, colour, width, dash, hover=fields, across=across))

    for index, curve in shown:
        colour, dash = line_style(index)
        line(curve.label, curve.relative, colour, dash)
        if len(curve.ends) <= MOST_ENDS:
            series.append(plot.rings(curve.ends, unit * curve.relative[list(curve.ends)], colour))
        series.append(plot.dot(curve.rank, unit * curve.left, colour, 8.0))
        left = "only rounding errors" if curve.vanished else percent(curve.left)
        keys.append((colour, "dash" if dash else "line", f"{curve.label}: {left} left at rank {count(curve.rank)}"))
    if optimum is not None:
        line("PCA", optimum, INK, DASHED, 1.5)
        text = f"PCA, the optimum: {percent(float(optimum[-1]))} at rank {count(len(optimum) - 1)}"
        keys.append((INK, "dash", text))
    if any(0 < len(curve.ends) <= MOST_ENDS for _, curve in shown):
        keys.append((MUTED, "ring", "end of a round"))
    caption = _residual_caption([curve for _, curve in shown], pca, rows)
    x = plot.Axis("Rank (basis functions)", counts_from_zero(n), whole=True)
    return plot.Figure(caption, x, y, series, keys, height=400, legend=True)


def _residual_caption(curves: list[FactorCurve], pca: PcaCurve | Absent | None, rows: str) -> str:
    text = (
        f"The part of the kernel matrix of {rows} outside the span of the first basis functions, from sums over all "
        "rows: certificates, not estimates."
    )
    busy = [curve.label for curve in curves if len(curve.ends) > MOST_ENDS]
    if busy:
        text += f" {', '.join(busy)}: more than {MOST_ENDS} rounds, not marked."
    floor = max((curve.floor for curve in curves if (curve.relative <= curve.floor).any()), default=0.0)
    if floor:
        text += f" Values below {significant(floor, 2)} are rounding errors, and are drawn there."
    if isinstance(pca, Absent):
        text += f" The PCA optimum is not drawn: {pca.reason}."
    elif pca is not None:
        text += " No approximation of that rank leaves less than the PCA optimum: the largest eigenvalues of K."
    return text


@plot.drawing("bound", "Compression bound")
def bound_figure(curves: Sequence[BoundCurve | Absent], fitted: Sequence[str]) -> plot.Figure | Absent:
    """The compression bound against rank; `fitted` names the parts of the kernel that were fitted to the rows."""
    shown = [(index, curve) for index, curve in enumerate(curves) if isinstance(curve, BoundCurve)]
    if not shown:
        return next(curve for curve in curves if isinstance(curve, Absent))
    n = max(int(curve.size[-1]) for _, curve in shown)
    lowest = min(curve.best for _, curve in shown)
    high = max(1.6, min(_HIGHEST, max(float(curve.bound.max()) for _, curve in shown)))
    # The residual stands beside its bound, as long as the bound can still be read.
    least = min(float(curve.residual.min()) for _, curve in shown)
    limits = log_range(min(0.5 * lowest, 0.5, max(0.8 * least, 0.05 * lowest)), high, below=0.0, above=0.06)
    series, keys = vacuous_zone(n), []
    for index, curve in shown:
        colour, dash = line_style(index)
        fields: list[plot.Field] = [
            ("", [curve.label] * len(curve.size)),
            ("rank", curve.size, "0,0"),
            ("bound", [significant(float(share)) for share in curve.bound]),
            ("mean residual", [significant(float(share)) for share in curve.residual]),
        ]
        across = len(shown) <= _MOST_HOVERED
        series.append(plot.Line(curve.size, curve.bound, colour, 2.0, dash, hover=fields, across=across))
        series.append(plot.Line(curve.size, curve.residual, colour, 1.0, DOTTED))
        if not curve.vacuous:
            series.append(plot.dot(curve.best_size, curve.best, colour))
        text = f"least at rank {count(curve.best_size)}, {significant(curve.best)}"
        text = "vacuous along the whole path" if curve.vacuous else text
        keys.append((colour, "dash" if dash else "line", f"{curve.label}: {text}"))
    keys.append((MUTED, "dash", "mean residual of the rows outside the basis"))
    x = plot.Axis("Rank (basis functions)", counts_from_zero(n), whole=True)
    y = plot.Axis("Bound, share of sup k(x, x)", limits, log=True)
    return plot.Figure(_bound_caption(curves, fitted), x, y, series, keys, height=400)


def _bound_caption(curves: Sequence[BoundCurve | Absent], fitted: Sequence[str]) -> str:
    text = (
        f"The expected residual of a new row is below the line with probability {100 * (1 - DELTA):g} %, for all ranks "
        "at once, if rows are independent draws from one distribution and the kernel was not fitted to them."
    )
    if fitted:
        text += (
            f" Here {' and '.join(fitted)} {'were' if len(fitted) > 1 else 'was'} taken from the rows: read it as a "
            "guide, not as a guarantee."
        )
    missing = [curve.reason for curve in curves if isinstance(curve, Absent)]
    if missing:
        text += f" {plural(len(missing), 'factor')} {'is' if len(missing) == 1 else 'are'} left out: {missing[0]}."
    return text


def vacuous_zone(last: float, third: int = 2) -> list[plot.Series]:
    """The zone in which a bound is 1 or more; its label stands in a third (0, 1, 2) of the axis 0 .. last."""
    align, offset = (("left", 2), ("center", 0), ("right", -2))[third]
    text = "vacuous above this line"
    return [
        plot.Zone("y", 1.0, None),
        plot.Rule("y", 1.0, MUTED),
        plot.Note(0.5 * third * last, 1.0, text, MUTED, (offset, 4), align, "bottom", 11.0, plain=True),  # type: ignore[arg-type]
    ]
