"""What an update is asked for: choices, what is refused, runs that go on, and the estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from updates import FITTED, M, N, X, Y, check_is_refit, fit, update

from streamkernel import KernelRidge, append_rows, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import (
    DataError,
    ModelFormatError,
    ParameterError,
    ResourceLimitError,
    ShapeError,
    ShapeMismatchError,
)
from streamkernel.models import RidgeModel
from streamkernel.store import Checkpoints
from streamkernel.updating.update import update_model


def test_alpha_is_chosen_as_by_the_fit_or_as_asked(fitted: RidgeModel) -> None:
    table = open_table(X, Y)
    assert update(fitted, table, choices={"alpha": "keep"}).model.config["alpha"] == fitted.config["alpha"]
    assert update(fitted, table, choices={"alpha": 2.5}).model.config["alpha"] == 2.5
    given = fit(open_table(X[:FITTED], Y[:FITTED]), alpha=0.25)
    assert update(given, table).model.config["alpha"] == 0.25
    chosen = update(given, table, choices={"alpha": "gcv"}).model.config["alpha"]
    assert chosen == update(fitted, table, choices={"alpha": None}).model.config["alpha"] != 0.25


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"choices": {"alpha": -1.0}}, "alpha"),
        ({"choices": {"alpha": "best"}}, "alpha"),
        ({"choices": {"noise": 1.0}}, "has no 'noise'"),
        ({"stale": -1.0}, "stale"),
        ({"stale": float("nan")}, "stale"),
        ({"grow": 1.5}, "grow"),
        ({"grow": -1}, "grow"),
    ],
)
def test_options_are_checked_before_any_work(fitted: RidgeModel, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        update(fitted, None, **options)  # type: ignore[arg-type]


def test_rows_that_do_not_fit_the_model(fitted: RidgeModel) -> None:
    for table, error, match in (
        (open_table(X), ParameterError, "no targets"),
        (open_table(X[:, :4], Y), ShapeError, "4 features, the model was fitted on 5"),
        (open_table(X, np.column_stack([Y, Y])), ShapeMismatchError, "2 targets, the model 1"),
        (open_table(X[FITTED:], np.where(np.arange(M) == M - 1, np.nan, Y)[FITTED:]), DataError, "y contains NaN"),
    ):
        with pytest.raises(error, match=match):
            update(fitted, table)
    with pytest.raises(ResourceLimitError, match="projected memory"):
        update(fitted, open_table(X, Y), memory_limit=10**6)


def test_columns_of_other_names_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = fit(open_table(frame[:FITTED], Y[:FITTED]))
    with pytest.raises(ShapeError, match=r"other columns than the model was fitted on: missing 'a'; extra 'A'; "):
        update(model, open_table(frame.rename(columns={"a": "A"}), Y))
    assert update(model, open_table(X, Y)).rows_folded == M - FITTED, "arrays have no names to compare"


def test_columns_in_another_order_are_put_in_that_of_the_model() -> None:
    """Rows that were seen are known in any order of columns; the model is that of a table in the right order."""
    pd = pytest.importorskip("pandas")
    for names in ("abcde", [f"x{j}" for j in range(5)]):
        frame = pd.DataFrame(X, columns=list(names))
        for first in (open_table(frame[:FITTED], Y[:FITTED]), open_table(X[:FITTED], Y[:FITTED])):
            model = fit(first)
            if names == "abcde" and not first.named:
                continue
            done = update(model, open_table(frame[list(names[::-1])], Y))
            assert done.rows_folded == M - FITTED
            expected = update(model, open_table(frame, Y)).model
            np.testing.assert_array_equal(done.model.arrays["dual_coef"], expected.arrays["dual_coef"])


def test_a_damaged_record_is_refused(fitted: RidgeModel) -> None:
    for record in ([{"rows": [[0, 5]]}], [{"rows": "0:5", "marks": []}], [3]):
        with pytest.raises(ModelFormatError, match=r"field seen\[0\]"):
            RidgeModel.from_config({**fitted.config, "seen": record}, fitted.arrays)


def test_finished_sweeps_are_not_swept_again(fitted: RidgeModel, tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", {"of": "this test"}) as checkpoints:
        whole = update(fitted, open_table(X, Y), Session(ThreadExecutor(1), checkpoints=checkpoints))
    with Checkpoints(tmp_path / "run", {"of": "this test"}) as checkpoints:
        again = update(fitted, open_table(X, Y), Session(ThreadExecutor(1), checkpoints=checkpoints))
    assert (whole.resumed_sweeps, again.resumed_sweeps) == (0, 1)
    assert again.model.digest == whole.model.digest


def test_a_session_is_asked_for_only_when_there_is_work(fitted: RidgeModel) -> None:
    def refuse() -> Session:
        raise AssertionError("there is nothing to do")

    assert not update_model(fitted, open_table(X[:FITTED], Y[:FITTED]), refuse).changed


# --- estimators ---------------------------------------------------------------------------------------------------


def test_an_estimator_is_updated_in_place() -> None:
    estimator = KernelRidge(N, lengthscale=1.0, random_state=3).fit(X[:FITTED], Y[:FITTED])
    before = estimator.predict(X[:5])
    assert estimator.update(X, Y) is estimator
    assert estimator.last_update_.rows_folded == M - FITTED
    check_is_refit(estimator.model_, X, Y)
    assert estimator.residual_trace_ == estimator.model_.config["certificate"]["residual_trace"]
    assert estimator.alpha_ == estimator.model_.config["alpha"]
    assert not np.array_equal(estimator.predict(X[:5]), before)
    alpha = estimator.alpha_
    estimator.update(X + 1.0, Y, alpha="keep", stale=1e9)
    assert estimator.alpha_ == alpha
    with pytest.raises(ValueError, match="features"):
        estimator.update(X[:, :3], Y)
    assert estimator.n_features_in_ == 5


def test_a_loaded_estimator_and_a_store(store: Path, tmp_path: Path) -> None:
    KernelRidge(N, lengthscale=1.0).fit(str(store)).save(tmp_path / "model")
    append_rows(open_table(X[FITTED:], Y[FITTED:]), store)
    estimator = KernelRidge.load(tmp_path / "model").update(store)
    assert estimator.last_update_.rows_folded == M - FITTED
    check_is_refit(estimator.model_, X, Y)
    estimator.save(tmp_path / "model", overwrite=True)
    assert KernelRidge.load(tmp_path / "model").update(store).last_update_.rows_folded == 0
