"""Weights of rows and of classes in boosting."""

from __future__ import annotations

import numpy as np
import pytest
from estimators.boosting_problem import GIVEN, SMALL, X, Y, solution

from streamkernel import KernelBoostingClassifier, open_table
from streamkernel.errors import ParameterError
from streamkernel.settings.boosting import BoostingSettings


@pytest.mark.filterwarnings("ignore:about 200 of 399 rows are distinct")
def test_whole_weights_are_repeated_rows() -> None:
    """Where all rows are drawn, the random numbers do not matter."""
    w = 1 + np.arange(200) % 3
    given = {**GIVEN, "learner": "ridge", "member_rows": 2000, "members": 3, "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(X[:200], Y[:200], w)
    repeated = KernelBoostingClassifier(**given).fit(np.repeat(X[:200], w, axis=0), np.repeat(Y[:200], w))
    np.testing.assert_allclose(weighted.member_errors_, repeated.member_errors_, rtol=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:about 30 of 1451 rows are distinct")
def test_an_error_of_less_than_a_row_of_the_table_is_as_it_is() -> None:
    """A single row of weight 1 among rows of 50 is wrong: also then whole weights are repeated rows."""
    rows = X[:30] + 2.0 * np.sign(X[:30, :1])
    labels = (rows[:, 0] > 0.0).astype(int)
    labels[4] = 1 - labels[4]
    w = np.where(np.arange(30) == 4, 1, 50)
    given = {**GIVEN, "learner": "ridge", "member_alpha": 20.0, "member_rows": 2000, "members": 3, "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(rows, labels, w)
    repeated = KernelBoostingClassifier(**given).fit(np.repeat(rows, w, axis=0), np.repeat(labels, w))
    assert 0.0 < weighted.member_errors_[0] < 0.5 / 30
    np.testing.assert_allclose(weighted.member_errors_, repeated.member_errors_, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(weighted.member_weights_, repeated.member_weights_, rtol=1e-9)


@pytest.mark.parametrize("method", ["resampling", "filtering"])
def test_a_row_whose_weight_is_rounding_does_not_count(method: str) -> None:
    labels = (X[:, 0] > 0.0).astype(int)
    apart = X + 5.0 * labels[:, None]
    labels[4] = 1 - labels[4]
    w = np.where(np.arange(600) == 4, 1e-30, 1.0)
    model = KernelBoostingClassifier(**SMALL, method=method, validation=0).fit(apart, labels, w)
    assert solution(model).ended == "no errors"
    assert model.predict(apart)[4] != labels[4]


def test_rows_to_train_on_whose_weights_are_rounding_are_refused() -> None:
    table = open_table(X, Y, classify=True).with_keys()
    folds = BoostingSettings().folds(table)
    assert folds is not None
    held = folds.held_out(table.read(0, 600).keys)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="are held out"):
        KernelBoostingClassifier(**SMALL).fit(X, Y, np.where(held, 1.0, 1e-30))


def test_rows_of_weight_0_change_nothing_but_draws() -> None:
    w = np.ones(300)
    w[200:] = 0.0
    given = {**SMALL, "learner": "ridge", "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(X[:300], Y[:300], w)
    fewer = KernelBoostingClassifier(**given).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(weighted.predict(X), fewer.predict(X))


def test_balanced_classes_have_equal_masses() -> None:
    rare = (X[:, 0] > 1.6).astype(int)
    model = KernelBoostingClassifier(**SMALL, class_weight="balanced", validation=0).fit(X, rare)
    assert (model.predict(X)[rare == 1] == 1).mean() > 0.9
    assert model.model_.record.class_weights == pytest.approx((600 / (2 * (rare == 0).sum()), 600 / (2 * rare.sum())))
