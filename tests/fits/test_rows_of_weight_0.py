"""Rows of weight 0 at the end of a table change no choice: size, kernel, folds, alpha and basis are as without them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from rule_table import ALGORITHMS, TABLE, title
from slow_cases import slow_but
from weighted_rows import CASES, TRANSFORMS, WeightedRows, assert_same, weighted_rows

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelRidge,
    open_table,
)
from streamkernel.engine import Machine
from streamkernel.fits.ridge.ridge import plan_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")


def both(rows: WeightedRows, share: float = 0.5) -> tuple[Table, Table]:
    """The rows of weight > 0, of weights that are not all equal, and the same with more rows of weight 0."""
    X, y, w = rows.X[rows.numbers], rows.y[rows.numbers], rows.w[rows.numbers].astype(float)
    more = int(share * len(X)) + 1
    rng = np.random.default_rng(5)
    other_y = y[rng.integers(0, len(y), more)]
    wide = np.concatenate([X, 9.0 + rng.standard_normal((more, X.shape[1]))])
    return (
        open_table(X, y, classify=rows.classify, weights=w),
        open_table(wide, np.concatenate([y, other_y]), classify=rows.classify, weights=np.append(w, np.zeros(more))),
    )


# Those of a kind with the same options but these are one.
DEFAULTS: dict[str, dict[str, Any]] = {
    "KernelMatchingPursuit": {},
    "KernelMatchingPursuitClassifier": {},
    "KernelPCA": {"n_components": 3},
    "KernelCCA": {"n_components": 1},
}
KINDS = {case.estimator: case.targets for case in reversed(CASES + TRANSFORMS)}


# The size is chosen in one place for all kinds; whether rows are held out, by each kind. Of the kinds whose parameters
# are found by evidence, which takes its time, one.
OTHERS = {BayesianCommitteeMachine, GaussianProcessClassifier, GaussianProcessPoissonRegressor}
QUICK = {*product([KernelRidge, KernelMatchingPursuit], [50]), *product(KINDS.keys() - OTHERS, [90])}


@pytest.mark.parametrize(
    ("estimator", "m"), slow_but(QUICK, product(KINDS, [50, 90])), ids=lambda each: getattr(each, "__name__", str(each))
)
def test_defaults_are_those_without_them(estimator: Any, m: int) -> None:
    """The default size of 50 rows is another than that of 75, and of 60 rows some may be held out."""
    rows = weighted_rows(KINDS[estimator], m=m)
    options = DEFAULTS.get(estimator.__name__, {})
    few, more = (estimator(**options).fit(table).model_ for table in both(rows))
    assert few.record.basis_size == more.record.basis_size
    np.testing.assert_array_equal(few.arrays["component_indices"], more.arrays["component_indices"])
    assert few.record.kernel == more.record.kernel
    assert_same(few.arrays["residual_path"], more.arrays["residual_path"], "residual trace", 1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [pytest.param(*each, id=title(*each), marks=[pytest.mark.slow] * (each not in ALGORITHMS)) for each in TABLE],
)
def test_rules_choose_as_without_them(name: str, options: dict[str, Any]) -> None:
    rows = weighted_rows(m=70)
    further = {key: value for key, value in options.items() if key != "objective"}
    objective = options.get("objective", "prediction")
    ridge = KernelRidge(12, rule=name, rule_options=further, objective=objective, lengthscale=1.5, alpha=0.1)
    few, more = (ridge.fit(table).model_.arrays["component_indices"].copy() for table in both(rows))
    np.testing.assert_array_equal(few, more)


@pytest.mark.parametrize("first", [0, 1, 3])
def test_the_first_pivot_has_a_weight(first: int) -> None:
    rng = np.random.default_rng(0)
    w = np.r_[np.zeros(first), np.ones(40)]
    table = open_table(rng.standard_normal((len(w), 2)), rng.standard_normal(len(w)), weights=w)
    model = KernelRidge(5, rule="incomplete-cholesky", lengthscale=1.0, alpha=0.1).fit(table).model_
    assert model.arrays["component_indices"][0] == first


def settings_of(table: Table, **options: Any) -> tuple[Any, ...]:
    settings = RidgeSettings(**options).for_table(table)
    n = settings.components(table)
    solver = settings.solver_for(table, n)
    return settings.kernel, settings.metric, settings.alpha, n, settings.folds(table.counted, n, solver), solver


@pytest.mark.parametrize("rows", [59, 1999, 99_999])
def test_thresholds_count_rows_of_weight_above_0(rows: int) -> None:
    """Of a search, of folds, of the size of a sample, and of the default size of the basis."""
    X = np.random.default_rng(0).standard_normal((rows, 2))
    wide = np.concatenate([X, X[: rows // 2 + 1]])
    few = open_table(X, X[:, 0])
    w = np.r_[np.ones(rows), np.zeros(rows // 2 + 1)]
    more = open_table(wide, wide[:, 0], weights=w)
    all_counted = open_table(wide, wide[:, 0])
    assert settings_of(few) == settings_of(more) != settings_of(all_counted)
    assert settings_of(few, alpha="cv") == settings_of(more, alpha="cv") != settings_of(all_counted, alpha="cv")
    searched = RidgeSettings(alpha="cv", kernel="auto")
    assert searched.sampled_rows(few) == searched.sampled_rows(more)


def test_a_plan_counts_the_memory_of_all_stored_rows() -> None:
    X = np.random.default_rng(0).standard_normal((4000, 2))
    w = (np.arange(4000) < 1000).astype(float)
    machine = Machine(0, 1)
    few, more = (plan_ridge(open_table(X[:m], X[:m, 0], weights=w[:m]), RidgeSettings(), machine) for m in (1000, 4000))
    assert few.sweeps == more.sweeps
    assert [max(step.rows for step in plan.steps) for plan in (few, more)] == [1000, 4000]


def test_a_default_basis_of_two_views_has_as_many_functions() -> None:
    rows = weighted_rows("two", m=60)
    sizes = [KernelCCA(n_components=1).fit(table).model_.record.basis_size for table in both(rows)]
    assert sizes[0] == sizes[1]
