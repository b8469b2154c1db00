"""Estimators side by side: their errors on each fold, and how far they are from the best one."""

from __future__ import annotations

import numpy as np

from streamkernel.comparison import Comparison
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import BLUE, INK, ORANGE, PALE_BLUE
from streamkernel.report.text import plain, plural, significant

_LONGEST = 22  # characters of a name
_MOST_DRAWN = 40  # estimators


@plot.drawing("errors", "Errors on the folds")
def errors_figure(found: Comparison) -> plot.Figure:
    """The error of each fold, the mean, and its standard error on both sides."""
    drawn = found.estimators[:_MOST_DRAWN]
    at = np.arange(len(drawn))
    mean, se = np.array([each.mean for each in drawn]), np.array([each.standard_error for each in drawn])
    errors = np.array([each.errors for each in drawn])
    folds = np.broadcast_to(np.arange(1, found.folds + 1), errors.shape).ravel()
    hover: list[plot.Field] = [
        ("estimator", _names(found)),
        (f"mean {found.error}", [significant(each, 4) for each in mean]),
        ("standard error", [significant(each) for each in se]),
    ]
    of_fold: list[plot.Field] = [
        ("fold", [str(fold) for fold in folds]),
        (found.error, [significant(each, 4) for each in errors.ravel()]),
    ]
    series = [
        plot.Segments(at, mean - se, mean + se, PALE_BLUE, 9.0, along="x"),
        plot.rings(errors.ravel(), np.repeat(at, found.folds), BLUE, 6.0, hover=of_fold),
        plot.Points(mean, at, fill=ORANGE, size=9.0, hover=hover),
    ]
    keys = (
        (BLUE, "ring", "error of a fold"),
        (ORANGE, "dot", "mean"),
        (PALE_BLUE, "box", "one standard error on both sides"),
    )
    ends = np.concatenate([errors.ravel(), mean - se, mean + se])
    caption = (
        f"The {found.error} on each of {plural(found.folds, 'fold')}, on rows that the estimator was not fitted to. "
        "The same folds are for all, so that differences tell more than the errors themselves." + _left_out(found)
    )
    x = plot.Axis(found.error, padded(float(ends.min()), float(ends.max())))
    return plot.Figure(caption, x, _axis(found), series, keys, height=_height(found))


@plot.drawing("differences", "Differences to the best")
def differences_figure(found: Comparison) -> plot.Figure:
    """The mean difference to the best estimator, fold by fold, with its 95 % interval."""
    drawn = found.estimators[:_MOST_DRAWN]
    at, best = np.arange(len(drawn)), found.best
    each = [found.difference(one.name) for one in drawn]
    mean, low, high = (np.array([getattr(one, name) for one in each]) for name in ("mean", "low", "high"))
    hover: list[plot.Field] = [
        ("estimator", _names(found)),
        ("difference", [significant(value) for value in mean]),
        ("95 % interval", [f"{significant(a)} to {significant(b)}" for a, b in zip(low, high, strict=True)]),
    ]
    series: list[plot.Series] = [
        plot.ideal("x", 0.0),
        plot.Segments(at, low, high, PALE_BLUE, 9.0, along="x"),
        plot.Points(mean, at, fill=[ORANGE if one is best else INK for one in drawn], size=9.0, hover=hover),
    ]
    keys = ((ORANGE, "dot", "the best"), (INK, "dot", "mean difference"), (PALE_BLUE, "box", "95 % interval"))
    caption = (
        f"The {found.error} less that of {plain(best.name, _LONGEST)} on the same fold: mean, and interval of "
        f"Student's t, {plural(found.folds - 1, 'degree')} of freedom. The interval is approximate: models of "
        "different folds share most of their rows." + _left_out(found)
    )
    x = plot.Axis(f"Difference of {found.error}", padded(min(0.0, float(low.min())), max(0.0, float(high.max()))))
    return plot.Figure(caption, x, _axis(found), series, keys, height=_height(found))


def _names(found: Comparison) -> list[str]:
    return [plain(each.name, _LONGEST) for each in found.estimators[:_MOST_DRAWN]]


def _axis(found: Comparison) -> plot.Axis:
    names = _names(found)
    return plot.Axis("", (max(len(names), 3) - 0.4, -0.6), names=tuple(names))  # one row would fill the figure


def _height(found: Comparison) -> int:
    return 90 + 26 * max(len(_names(found)), 5)


def _left_out(found: Comparison) -> str:
    rest = len(found.estimators) - _MOST_DRAWN
    return f" Not drawn: the last {plural(rest, 'estimator')}." if rest > 0 else ""
