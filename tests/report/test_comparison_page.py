"""The page of compared estimators: its numbers, its words, and what users may call their estimators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.conftest import NASTY
from report.rendered import without_figures
from report.test_html import Page

from streamkernel.comparison import Compared, Comparison
from streamkernel.errors import StoreExistsError, StoreNotFoundError
from streamkernel.report import check_report, write_comparison_report
from streamkernel.report.figures import plot
from streamkernel.report.figures.comparison import differences_figure, errors_figure
from streamkernel.report.pages import comparison_page
from streamkernel.report.pages.document import html_of

ERRORS = {"ridge": (1.0, 1.25, 1.5), "small": (2.0, 2.0, 2.75), "svr": (1.0, 1.5, 1.5)}


def compared(errors: dict[str, Any], by: str = "content") -> Comparison:
    folds = len(next(iter(errors.values())))
    found = [
        Compared(name, "ridge", tuple(each), 2.5, (40,) * folds, (123_456,) * folds) for name, each in errors.items()
    ]
    return Comparison("rmse", by, (200,) * folds, (100,) * folds, tuple(found))


def words(found: Comparison) -> str:
    with without_figures():
        return " ".join(Page(html_of(comparison_page(found))).texts)


@pytest.mark.parametrize("by", ["content", "group", "time"])
def test_the_page_tells_the_best_and_how_sure_that_is(by: str) -> None:
    found = compared(ERRORS, by)
    text = words(found)
    for part in ("Comparison of estimators", "3 estimators on 3 folds", "rmse of ridge", "Next", "svr", "2.250"):
        assert part in text
    # svr is worse by 0, 0.25 and 0: 0 is inside.
    assert "0 is inside" in text
    assert "0 is outside" in words(compared({"a": (1.0, 1.1, 1.2), "b": (2.0, 2.11, 2.19)}))
    assert {"content": "equal rows", "group": "none of which is separated", "time": "order of time"}[by] in text


def test_figures_have_the_numbers() -> None:
    found = compared(ERRORS)
    errors, differences = errors_figure(found), differences_figure(found)
    assert isinstance(errors, plot.Figure)
    assert isinstance(differences, plot.Figure)
    bars, folds, means = errors.series
    assert isinstance(bars, plot.Segments)
    assert isinstance(folds, plot.Points)
    assert isinstance(means, plot.Points)
    np.testing.assert_allclose(means.x, [1.25, 2.25, 4.0 / 3.0])
    np.testing.assert_allclose(np.subtract(bars.high, means.x), [each.standard_error for each in found.estimators])
    np.testing.assert_array_equal(folds.x, np.ravel([*ERRORS.values()]))
    np.testing.assert_array_equal(folds.y, np.repeat([0, 1, 2], 3))
    assert errors.y.names == ("ridge", "small", "svr")
    intervals = differences.series[1]
    assert isinstance(intervals, plot.Segments)
    np.testing.assert_allclose(intervals.high, [found.difference(name).high for name in ERRORS])


def test_one_estimator_many_estimators_many_folds_and_names_of_any_kind() -> None:
    alone = words(compared({"ridge": (1.0, 2.0)}))
    assert "1 estimator on 2 folds" in alone
    assert "too small" not in alone
    many = compared({f"e{k}": np.linspace(1.0, 1.0 + k, 60) for k in range(50)})
    assert "of the first 12 of 60 folds" in words(many)
    figure = errors_figure(many)
    assert isinstance(figure, plot.Figure)
    assert "Not drawn: the last 10 estimators." in figure.caption
    page = html_of(comparison_page(compared({**dict.fromkeys(NASTY, (1.0, 2.0)), "equal": (0.0, 0.0)})))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_a_page_is_written_whole_and_replaced_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    check_report(path, overwrite=False)
    write_comparison_report(compared(ERRORS), path, title="Which one?")
    assert "Which one?" in path.read_text(encoding="utf-8")
    with pytest.raises(StoreExistsError, match="exists; choose another path"):
        check_report(path, overwrite=False)
    write_comparison_report(compared(ERRORS), path, overwrite=True)
    with pytest.raises(StoreNotFoundError, match="there is no folder"):
        check_report(tmp_path / "no" / "page.html", overwrite=False)
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_sums_that_folds_share_are_told_with_what_they_hide() -> None:
    found = compared(ERRORS)
    assert "with one basis" not in words(found)
    one, *others = found.estimators
    found = replace(found, estimators=(replace(one, shared=True), *others))
    assert "All folds are from the sums of one sweep, with one basis: ridge." in words(found)
