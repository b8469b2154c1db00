"""Scores are means by the row weights: those of rows that stand as often as their weights say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from weighted_rows import CASES, Case, WeightedRows, assert_same, marked, scores_of, weighted_rows

from streamkernel import KernelRidge
from streamkernel.engine import Session
from streamkernel.errors import DataError, NumericRangeError
from streamkernel.table import Table, open_table

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")


@pytest.mark.parametrize("case", marked(CASES))
def test_scores_of_weighted_rows_are_those_of_repeated_rows(case: Case) -> None:
    rows = weighted_rows(case.targets)
    model = case.estimator(n_components=5, random_state=0, **_given(case)).fit(rows.repeated).model_
    other = weighted_rows(case.targets, seed=3)
    one, two = (scores_of(model, table) for table in other.both)
    assert one.keys() == two.keys()
    assert len(one) >= 1
    for name, value in one.items():
        assert_same(value, two[name], name)


def _given(case: Case) -> dict[str, Any]:
    quick = {"n_components", "validation"}
    return {name: value for name, value in case.options.items() if name not in quick}


def _ridge(rows: WeightedRows) -> Any:
    return KernelRidge(5, lengthscale=1.5, alpha=0.1).fit(rows.repeated).model_


def test_the_effective_number_of_rows_is_reported() -> None:
    rows = weighted_rows()
    scores = _scores(_ridge(rows), rows.weighted)
    w = rows.w.astype(float)
    assert scores["rows"] == len(rows.numbers)
    assert scores["weight"] == w.sum()
    assert scores["effective_rows"] == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)
    assert _scores(_ridge(rows), rows.repeated).keys() == {"rows", "rmse", "rmse_se", "mae", "mae_se", "r2", "r2_se"}


def test_weights_of_0_only_have_no_scores() -> None:
    rows = weighted_rows()
    with pytest.raises(DataError, match="all rows have weight 0"):
        _scores(_ridge(rows), open_table(rows.X, rows.y, weights=np.eye(len(rows.X))[0]).slice(1, 20))


def test_weights_whose_squares_vanish_are_refused() -> None:
    rows = weighted_rows()
    with pytest.raises(
        NumericRangeError, match=r"the largest of .* is 1e-200: .* underflow; divide the weights by their largest"
    ):
        _scores(_ridge(rows), open_table(rows.X, rows.y, weights=np.full(len(rows.X), 1e-200)))


def test_blocks_of_weight_0_change_no_score() -> None:
    """Whole blocks of them, with targets whose squares would hide all others, before and after the rows."""
    rows, model = weighted_rows(), _ridge(weighted_rows())
    alone = _scores(model, rows.weighted)
    X, y, w = np.tile(rows.X, (40, 1)), np.full(40 * len(rows.X), 1e130), np.zeros(40 * len(rows.X))
    place = slice(20 * len(rows.X), 21 * len(rows.X))
    y[place], w[place] = rows.y, rows.w
    among = _scores(model, open_table(X, y, weights=w))
    assert among.keys() == alone.keys()
    for name, value in alone.items():
        assert_same(among[name], value, name)


def _scores(model: Any, table: Table) -> dict[str, float]:
    found: dict[str, float] = Session().sweep(model.scores(), model.prepare(table), "evaluate")
    return found
