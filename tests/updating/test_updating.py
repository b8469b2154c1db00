"""New rows folded into a model: the fit of its basis to all rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from updates import FITTED, M, N, X, Y, check_is_refit, fit, update

from streamkernel import KernelRidgeClassifier, ingest, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import (
    DataError,
    ParameterError,
)
from streamkernel.models import RidgeModel
from streamkernel.models.row_runs import clipped, count, joined, without


@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"scale": "none", "lengthscale": 0.3}, {"kernel": "matern32"}]
)
def test_new_rows_give_the_fit_to_all_rows(options: dict[str, Any]) -> None:
    model = fit(open_table(X[:FITTED], Y[:FITTED]), **options)
    new = update(model, open_table(X[FITTED:], Y[FITTED:]))
    assert (new.rows_folded, new.rows_seen_before, new.rows, new.sweeps) == (M - FITTED, 0, M, 1)
    check_is_refit(new.model, X, Y)
    for name in ("components", "component_indices", "gains", "centre"):
        np.testing.assert_array_equal(new.model.arrays[name], model.arrays[name])
    for name in ("scaler", "lengthscale", "rows", "settings"):
        assert new.model.config[name] == model.config[name]
    assert new.model.digest != model.digest


def test_several_targets_and_float32() -> None:
    targets = np.column_stack([Y, 3.0 * np.sin(X[:, 0]) - 100.0])
    rows = X.astype(np.float32)
    model = fit(open_table(rows[:FITTED], targets[:FITTED]))
    check_is_refit(update(model, open_table(rows[FITTED:], targets[FITTED:])).model, rows, targets)


def test_weights() -> None:
    weights = np.random.default_rng(0).uniform(0.0, 2.0, M)
    model = fit(open_table(X[:FITTED], Y[:FITTED], weights=weights[:FITTED]))
    table = open_table(X, Y, weights=weights)
    new = update(model, table)
    assert new.rows_folded == M - FITTED
    check_is_refit(new.model, X, Y, weights)


def test_classes() -> None:
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [10.0, 18.0])]
    estimator = KernelRidgeClassifier(N, lengthscale=1.0).fit(X[:FITTED], labels[:FITTED])
    # Fewer rows may lack a class.
    some = np.flatnonzero(labels[FITTED:] != "mid") + FITTED
    estimator.update(X[some], labels[some])
    seen = np.concatenate([np.arange(FITTED), some])
    indicators = (labels[:, None] == estimator.classes_).astype(float)
    check_is_refit(estimator.model_, X[seen], indicators[seen])
    with pytest.raises(DataError, match=r"'huge' in row 0, which is none of the model's classes .*; fit again"):
        estimator.update(X[:5] + 1.0, np.array(["huge"] * 5))


def test_coded_classes_of_a_store_that_lacks_one(tmp_path: Path) -> None:
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [10.0, 18.0])]
    some = np.flatnonzero(labels != "high")
    ingest(open_table(X, labels, classify=True), tmp_path / "all", dtype="float64", chunk_rows=512)
    ingest(open_table(X[some] + 1.0, labels[some], classify=True), tmp_path / "some", dtype="float64", chunk_rows=512)
    model = KernelRidgeClassifier(N, lengthscale=1.0, alpha="gcv").fit(open_table(tmp_path / "all")).model_
    new = update(model, open_table(tmp_path / "some"), stale=1e9).model
    indicators = (labels[:, None] == model.classes).astype(float)
    check_is_refit(new, np.concatenate([X, X[some] + 1.0]), np.concatenate([indicators, indicators[some]]))
    ingest(open_table(X[:20], np.array(["odd"] * 20), classify=True), tmp_path / "odd")
    with pytest.raises(DataError, match="class 'odd' is none of the model's"):
        update(model, open_table(tmp_path / "odd"))


@given(st.lists(st.integers(1, M - FITTED - 1), max_size=5, unique=True), st.booleans())
@settings(max_examples=10)
def test_any_split_of_the_rows_in_order(fitted: RidgeModel, cuts: list[int], whole: bool) -> None:
    """Batches, or the rows so far with each batch behind them."""
    model, ends = fitted, [FITTED + cut for cut in sorted(cuts)] + [M]
    for start, stop in zip([FITTED, *ends], ends, strict=False):
        first = 0 if whole else start
        new = update(model, open_table(X[first:stop], Y[first:stop]))
        assert new.rows_folded == stop - start
        model = new.model
    check_is_refit(model, X, Y)
    assert model.config["updates"]["times"] == len(ends)
    assert model.config["updates"]["rows"] == M - FITTED


def test_equal_work_has_equal_digests(fitted: RidgeModel) -> None:
    table = open_table(X, Y)
    once, threads = update(fitted, table), update(fitted, table, Session(ThreadExecutor(2)))
    assert once.model.digest == threads.model.digest
    assert once.model.digest == update(fitted, table).model.digest


def test_sums_of_other_features_cannot_be_added(fitted: RidgeModel) -> None:
    sums = fitted.sums
    for other in (replace(sums, H=sums.H[:5, :5]), replace(sums, centre=sums.centre + 1.0)):
        with pytest.raises(ParameterError, match="cannot be added"):
            sums.merge(other)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8), st.integers(0, 30), st.integers(0, 30))
def test_runs_are_sets_of_rows(pairs: list[tuple[int, int]], start: int, stop: int) -> None:
    rows = {row for first, last in pairs for row in range(first, last)}
    found = joined(pairs)
    assert [row for run in found for row in range(*run)] == sorted(rows)
    assert all(one[1] < two[0] for one, two in pairwise(found))
    assert count(found) == len(rows)
    for part, expected in ((clipped(found, start, stop), rows & {*range(start, stop)}),
                           (without(found, start, stop), {*range(start, stop)} - rows)):  # fmt: skip
        assert [row for run in part for row in range(*run)] == sorted(expected)
