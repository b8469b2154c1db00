"""How boosting ends: without errors, at chance, by held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from estimators.boosting_problem import GIVEN, SMALL, X, Y, solution

from streamkernel import KernelBoostingClassifier, open_table
from streamkernel.errors import SingleClassError
from streamkernel.fits.boosting import _boosting_path
from streamkernel.settings.boosting import BoostingSettings


def test_a_member_without_errors_ends_the_fit() -> None:
    labels = (X[:, 0] > 0.0).astype(int)
    apart = X + 5.0 * labels[:, None]
    for method in ("resampling", "filtering"):
        model = KernelBoostingClassifier(**SMALL, method=method).fit(apart, labels)
        assert solution(model).ended == "no errors"
        assert len(model.member_weights_) == 1
        np.testing.assert_array_equal(model.predict(apart), labels)


@pytest.mark.parametrize("masses", ["bounded", "exponential"])
def test_a_member_no_better_than_chance_is_left_out(masses: str) -> None:
    """Labels are coins, which a later member does not know better than one."""
    coins = np.random.default_rng(1).integers(0, 2, 600)
    model = KernelBoostingClassifier(**{**SMALL, "members": 30}, validation=0, masses=masses).fit(X, coins)
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == len(solution(model).members) - 1
    assert (model.member_errors_ < 0.5).all()


def test_a_sweep_knows_chance_better_than_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the few rows that weigh members the last one is better than a coin; on all rows it is not, and left out."""
    monkeypatch.setattr(_boosting_path, "sample_rows", lambda table: 40)
    coins = np.random.default_rng(1).integers(0, 2, 600)
    model = KernelBoostingClassifier(**{**SMALL, "members": 30}, validation=0, random_state=25).fit(X, coins)
    tried = solution(model).members
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == len(tried) - 1
    assert tried[-1].error >= 0.5
    assert tried[-1].factor == 0.0
    assert (model.member_errors_ < 0.5).all()


@pytest.mark.parametrize("masses", ["bounded", "exponential"])
def test_a_first_member_no_better_than_chance_is_the_model(masses: str) -> None:
    """Labels alternate along a line: the nearest rows of a row in the sample have the other label."""
    line = np.arange(600.0)[:, None]
    given = {**GIVEN, "lengthscale": 1.0, "member_rows": 60, "C": 100.0, "validation": 0}
    with pytest.warns(UserWarning, match="no better than chance"):
        model = KernelBoostingClassifier(**given, masses=masses).fit(line, np.arange(600) % 2)
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == 1


def test_rows_of_one_label_are_refused_and_a_single_row_of_one_is_not() -> None:
    with pytest.raises(SingleClassError):
        KernelBoostingClassifier(**SMALL).fit(X, np.zeros(600, dtype=int))
    lone = np.where(np.arange(600) == 7, 2, Y)
    model = KernelBoostingClassifier(**SMALL).fit(X, lone)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == lone).mean() > 0.7


def test_held_out_rows_choose_the_number_of_members_and_no_member_sees_them() -> None:
    model = KernelBoostingClassifier(**{**SMALL, "members": 15}, learner="kmp", validation=0.25).fit(X, Y)
    table = open_table(X, Y, classify=True).with_keys()
    held = model.model_.record.settings.validation
    assert held == 0.25
    folds = BoostingSettings(validation=0.25).folds(table)
    assert folds is not None
    out = folds.held_out(table.read(0, 600).keys)
    assert solution(model).validation_rows == out.sum() > 100
    assert not out[model.component_indices_].any()
    errors = [each.vote_validation_error for each in solution(model).members]
    kept = len(model.member_weights_)
    assert kept == int(np.argmin(errors)) + 1
    for count, staged in enumerate(model.staged_predict(X[out]), start=1):
        assert errors[count - 1] == pytest.approx((staged != Y[out]).mean())


@pytest.mark.parametrize("validation", [0.0004, 0.1, 0.15, 0.35, 0.4, 0.5])
def test_the_share_of_held_out_rows_is_what_was_asked_for(validation: float) -> None:
    folds = BoostingSettings(validation=validation).folds(open_table(X, Y, classify=True))
    assert folds is not None
    assert folds.share == pytest.approx(max(validation, 0.001))


def test_patience_ends_the_fit() -> None:
    given = {**SMALL, "members": 40, "learner": "kmp"}
    model = KernelBoostingClassifier(**given, patience=3).fit(X, Y)
    assert solution(model).ended == "patience"
    assert len(solution(model).members) < 40
