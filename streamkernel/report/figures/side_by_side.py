"""Scores of models side by side, on the same held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.report.facts.standing import Standing
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import padded
from streamkernel.report.figures.palette import INK, ORANGE, PALE_BLUE
from streamkernel.report.text import percent, plain, plural, significant, with_error

_LONGEST = 22  # characters of a name
MEASURES = {"accuracy": "Accuracy", "rmse": "RMSE", "relative_rmse": "RMSE in deviations", "pinball": "Pinball loss"}


def score_text(found: Standing) -> str:
    """The score with its standard error."""
    return with_error(found.score, found.standard_error, percent if found.measure == "accuracy" else significant)


@plot.drawing("scores", "Scores on the same held-out rows")
def scores_figure(found: Sequence[tuple[str, Standing]]) -> plot.Figure:
    """Scores with a standard error on both sides, the best first; all are of one measure and of the same rows."""
    ordered = sorted(found, key=lambda each: each[1].loss)
    names, standings = [plain(name, _LONGEST) for name, _ in ordered], [each for _, each in ordered]
    measure, share = standings[0].measure, standings[0].measure == "accuracy"
    unit = 100.0 if share else 1.0
    score = unit * np.array([each.score for each in standings])
    se = unit * np.nan_to_num(np.array([each.standard_error for each in standings]))
    at, best = np.arange(len(score)), standings[0].loss
    hover: list[plot.Field] = [("model", names), (MEASURES[measure], [score_text(each) for each in standings])]
    colours = [ORANGE if each.loss == best else INK for each in standings]
    series: list[plot.Series] = [
        plot.Segments(at, score - se, score + se, PALE_BLUE, 9.0, along="x"),
        plot.Points(score, at, fill=colours, size=9.0, hover=hover),
    ]
    keys = (
        (ORANGE, "dot", "the best"),
        (INK, "dot", "score"),
        (PALE_BLUE, "box", "one standard error on both sides"),
    )
    caption = (
        f"{MEASURES[measure]} of each model on the same {plural(standings[0].rows, 'row')}, to none of which it was "
        f"fitted: {'more' if share else 'less'} is better. The rows are the same for all, so that differences are "
        "known better than the scores themselves."
    )
    finite = np.isfinite(score)
    ends = np.concatenate([(score - se)[finite], (score + se)[finite]]) if finite.any() else np.zeros(1)
    x = plot.Axis(MEASURES[measure] + (", %" if share else ""), padded(float(ends.min()), float(ends.max())))
    y = plot.Axis("", (max(len(names), 3) - 0.4, -0.6), names=tuple(names))
    return plot.Figure(caption, x, y, series, keys, height=90 + 26 * max(len(names), 5))
