"""The page of a comparison of estimators."""

from __future__ import annotations

import numpy as np

from streamkernel.byte_counts import format_bytes
from streamkernel.comparison import Compared, Comparison
from streamkernel.kinds import PREDICTORS
from streamkernel.report.figures.comparison import differences_figure, errors_figure
from streamkernel.report.pages.parts import Card, Page, Section, Table
from streamkernel.report.text import count, duration, plain, plural, significant

_MOST_FOLDS = 12  # columns of a table

_FOLDS = {
    "content": "by the content of the rows: equal rows share a fold",
    "group": "by groups, none of which is separated",
    "time": "in the order of time: each is fitted to all rows before it",
}


def comparison_page(found: Comparison) -> Page:
    """The whole page."""
    best = found.best
    fitted, left_out = _range(found.fitted_rows), _range(found.left_out_rows)
    lead = (
        f"{plural(len(found.estimators), 'estimator')} on {plural(found.folds, 'fold')}, {_FOLDS[found.by]}. "
        f"Each was fitted to {fitted} rows and scored on the {left_out} that were left out."
    )
    return Page(
        "Comparison of estimators",
        lead,
        _cards(found),
        _notes(found),
        [
            Section("Errors", [errors_figure(found), differences_figure(found) if len(found.estimators) > 1 else None]),
            Section("Numbers", [], [_numbers(found), _fold_errors(found)]),
        ],
        [
            Table(
                "Settings",
                (
                    ("Error", found.error),
                    ("Folds", f"{count(found.folds)}, {_FOLDS[found.by]}"),
                    ("Rows of each fit", fitted),
                    ("Rows of each fold", left_out),
                    ("Best", plain(best.name)),
                ),
            )
        ],
        None,
    )


def _notes(found: Comparison) -> list[str]:
    notes = []
    if len(found.estimators) > 1:
        notes.append(
            "The least of several errors is on average too small: on new rows expect more than that of the best, the "
            "more so the more were compared."
        )
    shared = ", ".join(plain(each.name, 40) for each in found.estimators if each.shared)
    if shared:
        notes.append(
            f"All folds are from the sums of one sweep, with one basis: {shared}. How much another basis would change "
            "the error is not in the standard errors."
        )
    return notes


def _cards(found: Comparison) -> list[Card]:
    best, others = found.best, [each for each in found.estimators if each is not found.best]
    cards = [
        Card("Least error", significant(best.mean, 4), f"{found.error} of {plain(best.name, 40)}"),
        Card("Standard error", significant(best.standard_error), f"over {plural(found.folds, 'fold')}"),
    ]
    if others:
        second = min(others, key=lambda each: each.mean)
        difference = found.difference(second.name)
        apart = difference.low > 0.0
        cards += [
            Card("Next", f"+ {significant(difference.mean)}", plain(second.name, 40)),
            Card(
                "95 % interval",
                f"{significant(difference.low)} to {significant(difference.high)}",
                "of this difference: " + ("0 is outside" if apart else "0 is inside, so either may be better"),
            ),
        ]
    seconds = sum(each.seconds for each in found.estimators)
    return [
        *cards,
        Card("Functions", count(float(np.mean(best.functions))), f"of {plain(best.name, 40)}, on average"),
        Card("Time", duration(seconds), f"{plural(found.folds * len(found.estimators), 'fit')} with scores"),
    ]


def _numbers(found: Comparison) -> Table:
    return Table(
        "Means over the folds",
        tuple(_row(found, each) for each in found.estimators),
        ("Name", "Estimator", found.error, "±", "To the best", "95 % interval", "Functions", "Size", "Time"),
    )


def _row(found: Comparison, each: Compared) -> tuple[str, ...]:
    difference, best = found.difference(each.name), each is found.best
    return (
        plain(each.name, 40),
        PREDICTORS[each.estimator].title,
        significant(each.mean, 4),
        significant(each.standard_error),
        "–" if best else significant(difference.mean),
        "–" if best else f"{significant(difference.low)} to {significant(difference.high)}",
        count(float(np.mean(each.functions))),
        format_bytes(int(np.mean(each.model_bytes))),
        duration(each.seconds),
    )


def _fold_errors(found: Comparison) -> Table:
    shown = min(found.folds, _MOST_FOLDS)
    left = f" of the first {count(shown)} of {count(found.folds)} folds" if shown < found.folds else " of each fold"
    rows = [("Rows", *(count(rows) for rows in found.left_out_rows[:shown]))]
    rows += [
        (plain(each.name, 40), *(significant(error, 4) for error in each.errors[:shown])) for each in found.estimators
    ]
    return Table(f"{found.error}{left}", tuple(rows), ("Fold", *(str(fold + 1) for fold in range(shown))))


def _range(rows: tuple[int, ...]) -> str:
    least, most = min(rows), max(rows)
    return count(least) if least == most else f"{count(least)} to {count(most)}"
