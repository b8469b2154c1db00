"""Scores on held-out rows: what they are, and that models with other rows, tables or levels are not ranked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import data_sets
import numpy as np
import pytest

from streamkernel.models import RidgeModel
from streamkernel.models.margins import QuantileModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.standing import Standing, ranks, standing

Changed = Callable[..., RidgeModel]


def _of(model: Any) -> Standing:
    found = standing(model)
    assert isinstance(found, Standing)
    return found


def test_numbers(regression: RidgeModel) -> None:
    found = _of(regression)
    error = regression.arrays["check_true"] - regression.arrays["check_predicted"]
    assert found.measure == "rmse"
    assert found.score == found.loss == pytest.approx(np.sqrt((error**2).mean()))
    assert found.standard_error == pytest.approx((error**2).std() / np.sqrt(len(error)) / (2 * found.score))
    assert found.rows == len(error)


def test_the_unit_of_one_of_several_targets_makes_no_difference(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(600)
    Y = np.column_stack([rows.y, np.sin(rows.X[:, 0])])
    found, other = (_of(fitted(rows.X, Y * np.array([1.0, unit]), rows=400, alpha=1.0)) for unit in (1.0, 2.0**20))
    assert found.measure == "relative_rmse"
    assert (found.score, found.standard_error) == pytest.approx((other.score, other.standard_error))
    # Which is the error of the deviation 1: below that, because the fit explains something.
    assert 0.0 < found.score < 1.0


def test_the_error_of_equal_targets_is_that_of_one(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(600)
    one, two = (fitted(rows.X, y, rows=400, alpha=1.0) for y in (rows.y, np.column_stack([rows.y, rows.y])))
    alone, both = _of(one), _of(two)
    scale = one.record.target_scale[0]
    assert (both.score, both.standard_error) == pytest.approx((alone.score / scale, alone.standard_error / scale))


def test_classes(classifier: RidgeModel) -> None:
    found = _of(classifier)
    right = classifier.arrays["check_true"].argmax(axis=1) == classifier.arrays["check_predicted"].argmax(axis=1)
    assert (found.measure, found.score) == ("accuracy", pytest.approx(right.mean()))
    assert found.loss == -found.score


def test_the_same_rows_have_one_key_whatever_the_fit(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(600)
    few, many = (fitted(rows.X, rows.y, rows=400, n_components=n) for n in (5, 50))
    other = fitted(rows.X, rows.y, rows=300)
    elsewhere = fitted(rows.X, rows.y + 1.0, rows=400)
    at = [_of(model).rankable for model in (few, many, other, elsewhere)]
    assert at[0] == at[1]
    assert len(set(at)) == 3
    assert ranks([few, other, many, elsewhere], standing) == {0: (2, 2), 2: (1, 2)}


def test_other_weights_are_other_rows(regression: RidgeModel, changed: Changed) -> None:
    weights = np.arange(1.0, 1.0 + len(regression.arrays["check_true"]))
    assert _of(regression).rankable != _of(changed(regression, arrays={"check_weight": weights})).rankable


def test_rows_of_the_fit_give_no_standing(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(200)
    found = standing(fitted(rows.X, rows.y))
    assert isinstance(found, Absent)
    assert found.reason == "no rows were held out"


def test_equal_scores_share_a_rank_and_a_broken_one_is_last() -> None:
    first = Standing("accuracy", 0.9, 0.01, 100, "a")
    found = [first, first, replace(first, score=np.nan), replace(first, score=0.8), replace(first, same_rows="b")]
    assert ranks(found, lambda each: each) == {0: (1, 4), 1: (1, 4), 3: (3, 4), 2: (4, 4)}
    assert ranks([Absent("none"), first], lambda each: each) == {}


def test_a_share_of_right_rows_is_not_ranked_with_an_error() -> None:
    assert ranks([Standing("rmse", 1.0, 0.1, 9, "a"), Standing("accuracy", 1.0, 0.1, 9, "a")], lambda each: each) == {}


def test_quantiles_of_other_levels_are_not_ranked(quantiles: QuantileModel) -> None:
    check = quantiles.record.check
    assert check is not None
    held = replace(quantiles, record=quantiles.record.changed(check=check.changed(kind="held-out")))
    found = _of(held)
    assert found.measure == "pinball"
    levels = ",".join(f"{level:g}" for level in quantiles.levels)
    assert found.rankable == ("pinball", f"{found.same_rows.split(':')[0]}:{levels}")
