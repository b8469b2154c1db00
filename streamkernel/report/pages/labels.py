"""Parts of the page of a classifier whose rows may have several labels."""

from __future__ import annotations

from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.labels import LabelPairs
from streamkernel.report.figures.labels import label_figures
from streamkernel.report.pages.parts import Card, Section, Table
from streamkernel.report.text import count, percent, with_error

_MOST_LABELS = 24  # rows of the table


def label_section(found: LabelPairs | Absent) -> Section:
    """Predicted against true labels."""
    return Section("Predictions", label_figures(found), [] if isinstance(found, Absent) else [_table(found)])


def label_cards(found: LabelPairs | Absent) -> tuple[Card, Card]:
    """Two scores on the check rows."""
    if isinstance(found, Absent):
        return Card("Accuracy", "–", "no rows to check"), Card("Hamming loss", "–", "no rows to check")
    right, wrong = (
        with_error(score, se, percent)
        for score, se in ((found.all_right, found.all_right_se), (found.wrong, found.wrong_se))
    )
    return (
        Card("Accuracy", right, f"rows whose labels are all right, {found.where}"),
        Card("Hamming loss", wrong, f"wrong labels of all, {found.where}"),
    )


def _table(found: LabelPairs) -> Table:
    rows = [
        (
            each.name,
            percent(each.having),
            with_error(each.wrong, each.wrong_se, percent),
            percent(each.precision),
            percent(each.recall),
        )
        for each in found.labels[:_MOST_LABELS]
    ]
    if len(found.labels) > _MOST_LABELS:
        rows.append((f"and {count(len(found.labels) - _MOST_LABELS)} more", "", "", "", ""))
    return Table(
        f"Each label, {found.rows}", tuple(rows), ("Label", "Rows that have it", "Wrong", "Precision", "Recall")
    )
