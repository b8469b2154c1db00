"""A row of weight w is w rows: every kind of fit gives the model of the repeated rows; rows of weight 0 are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from weighted_rows import CASES, TRANSFORMS, Case, WeightedRows, assert_same, marked

from streamkernel import KernelBoostingClassifier
from streamkernel.kinds import PREDICTORS, TRANSFORMERS

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")


def test_every_kind_has_a_case() -> None:
    # Boosting draws rows, and so other ones of repeated rows: its test has members of all rows.
    others = {KernelBoostingClassifier}
    assert {case.estimator for case in CASES} | others == {kind.estimator for kind in PREDICTORS.values()}
    assert {case.estimator for case in TRANSFORMS} == {kind.estimator for kind in TRANSFORMERS.values()}


def queries(rows: WeightedRows) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(1).standard_normal((40, rows.X.shape[1]))


@pytest.mark.parametrize("case", marked(CASES))
def test_a_fit_to_weighted_rows_is_that_to_repeated_rows(case: Case) -> None:
    rows = case.rows()
    weighted, repeated = case.fitted(rows)
    one, other = weighted.model_, repeated.model_
    assert_same(one.arrays["components"], other.arrays["components"], "basis", case.tolerance)
    X = queries(rows)
    for name, value in (
        one.checking().check_values(one.prepare(weighted._in_memory(X, one.known_columns)).read(0, 40).X).items()
    ):
        there = other.checking().check_values(other.prepare(repeated._in_memory(X, other.known_columns)).read(0, 40).X)
        assert_same(value, there[name], name, case.tolerance)
    if PREDICTORS[one.record.estimator].std:
        assert_same(*(each.predict(X, return_std=True)[1] for each in (weighted, repeated)), "std", case.tolerance)
    assert_same(one.arrays["residual_path"], other.arrays["residual_path"], "residual trace", case.tolerance)
    for part in ("certificate", "solution"):
        _assert_records(getattr(one.record, part), getattr(other.record, part), case.tolerance)
    assert_same(one.record.target_scale, other.record.target_scale, "scale of the targets", case.tolerance)
    assert_same(one.record.totals.trace, other.record.totals.trace, "trace", case.tolerance)


# A gap is a small difference of large numbers, which have their own entries.
_GAPS = {"gap", "gaps"}
_ROUNDS = {"functions", "rows", "prices"}  # of the sweeps of a linear program, whose number depends on the rows
_COUNTS = {
    "iterations",
    "path",
    "relative_residual",
    "excess",
    "training_error",
    "least_weakness",
    "ended",
    *_GAPS,
    *_ROUNDS,
}


def _assert_records(found: Any, wanted: Any, tolerance: float) -> None:
    _assert_fields(found.to_config(), wanted.to_config(), tolerance)


def _assert_fields(found: dict[str, Any], wanted: dict[str, Any], tolerance: float) -> None:
    for name, value in wanted.items():
        if name in _COUNTS or not isinstance(value, (int, float, list, tuple)):
            continue
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            for one, other in zip(found[name], value, strict=True):
                _assert_fields(one, other, tolerance)
        else:
            assert_same(found[name], value, name, tolerance)


@pytest.mark.parametrize("case", TRANSFORMS, ids=[case.title for case in TRANSFORMS])
def test_a_transformer_of_weighted_rows_is_that_of_repeated_rows(case: Case) -> None:
    rows = case.rows()
    weighted, repeated = case.fitted(rows)
    X = queries(rows)
    assert_same(weighted.transform(X), repeated.transform(X), "features", case.tolerance)
    one, other = weighted.model_, repeated.model_
    assert_same(one.arrays["residual_path"], other.arrays["residual_path"], "residual trace", case.tolerance)
    _assert_records(one.record.certificate, other.record.certificate, case.tolerance)
    for name in ("eigenvalues", "correlations", "singular_values"):
        if name in one.arrays:
            assert_same(one.arrays[name], other.arrays[name], name, case.tolerance)
