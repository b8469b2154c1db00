"""Searches for kernel, lengthscale, metric and alpha find on weighted rows what they find on repeated rows.

The order of the sampled rows is given: it is drawn by row numbers, which copies change.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from slow_cases import slow_but
from weighted_rows import FixedRows, WeightedRows, assert_same, weighted_rows

from streamkernel import GaussianProcessRegressor, KernelRidge, KernelRidgeClassifier
from streamkernel.fits.steps import choose_basis as _choose_basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions import DrawnRows, Sample
from streamkernel.solvers import choose_lengthscale, lengthscale
from streamkernel.table import Table
from streamkernel.table.row_keys import row_keys

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

N, M = 14, 300


def _in_order_of_keys(table: Table, settings: Any, trained_share: float) -> DrawnRows:
    """All rows of weight > 0, as a draw of all of them is, in an order that their features decide."""
    block = table.read(table.start, table.stop)
    found = np.argsort(row_keys(np.asarray(table.features.load(0, table.stop))), kind="stable").astype(np.int64)
    found = found[block.row_weights[found] > 0.0]
    if block.weights is None:
        return DrawnRows(found, float(len(found)))
    return DrawnRows(found, table.weight, block.weights[found], np.arange(1.0, len(found) + 1.0))


def few_copies(rows: WeightedRows) -> WeightedRows:
    """Weights of which so few are above 1 that copies are no repeated rows."""
    return replace(rows, w=np.where(rows.w == 0, 0, np.where(np.arange(M) % 25 == 0, 3, 1)))


SEARCHES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "lengthscale": (KernelRidge, "numbers", {"lengthscale": "auto"}),
    "lengthscale, folds": (KernelRidge, "numbers", {"lengthscale": "auto", "alpha": "cv"}),
    "lengthscale, no intercept": (KernelRidge, "numbers", {"lengthscale": "auto", "fit_intercept": False}),
    "kernel": (KernelRidge, "numbers", {"kernel": "auto"}),
    "kernel, folds": (KernelRidge, "two", {"kernel": "auto", "alpha": "cv"}),
    "metric": (KernelRidge, "numbers", {"metric": "learned"}),
    "diagonal": (KernelRidge, "numbers", {"metric": "diagonal", "alpha": "cv"}),
    "all": (KernelRidge, "numbers", {"metric": "learned", "kernel": "auto", "alpha": "cv"}),
    "all, ranks": (KernelRidge, "numbers", {"metric": "learned", "kernel": "auto", "scale": "rank"}),
    "kernel of classes": (KernelRidgeClassifier, "labels", {"kernel": "auto", "alpha": "cv"}),
    "lengthscale of classes": (KernelRidgeClassifier, "classes", {"lengthscale": "auto"}),
    "all of classes": (KernelRidgeClassifier, "classes", {"metric": "learned", "kernel": "auto", "alpha": "cv"}),
    "evidence": (GaussianProcessRegressor, "numbers", {}),
}


# Each search and each kind of targets once; what two of them do together is slow.
QUICK = {
    *product(["lengthscale", "kernel, folds", "metric", "lengthscale of classes", "evidence"], ["many"]),
    *product(["lengthscale, folds", "kernel", "diagonal", "all of classes"], ["few"]),
}


@pytest.mark.parametrize(("search", "copies"), slow_but(QUICK, product(SEARCHES, ["many", "few"])))
def test_a_search_finds_the_same(search: str, copies: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_choose_basis, "_sample_rows", _in_order_of_keys)
    estimator, targets, options = SEARCHES[search]
    rows = weighted_rows(targets, m=M)
    rows = few_copies(rows) if copies == "few" else rows
    rules: list[FixedRows] = [rows.fixed(N, repeated=repeated) for repeated in (False, True)]
    one, other = (
        estimator(N, rule=rule, **options).fit(table).model_ for rule, table in zip(rules, rows.both, strict=True)
    )
    tolerance = 1e-3 if search == "evidence" else 1e-5
    _assert_configs(one.record.kernel, other.record.kernel, tolerance)
    assert (one.metric is None) == (other.metric is None)
    if one.metric is not None:
        # A column has either sign.
        assert_same(one.metric @ one.metric.T, other.metric @ other.metric.T, "metric", tolerance)
    if estimator is not GaussianProcessRegressor:
        assert_same(one.record.alpha, other.record.alpha, "alpha", tolerance)
        assert (one.record.validation is None) == (other.record.validation is None) == ("alpha" not in options)
    if one.record.metric_choice is not None:
        found, wanted = ([each.error for each in model.record.metric_choice.rounds] for model in (one, other))
        assert_same(found, wanted, "errors on held-out rows", tolerance)
    assert_same(one.arrays["residual_path"], other.arrays["residual_path"], "residual trace", tolerance)


def _assert_configs(found: dict[str, Any], wanted: dict[str, Any], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, str):
            assert found[name] == value
        else:
            assert_same(found[name], value, name, tolerance)


@pytest.mark.parametrize("intercept", [True, False])
def test_scores_of_lengthscales_count_the_weights(intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sample, and of one with each row as often as its weight says."""
    monkeypatch.setattr(lengthscale, "_SEARCH_BASIS", 20)
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((100, 2)), rng.integers(1, 4, 100)
    Y = np.sin(3.0 * X[:, :1]) + (w[:, None] - 1.0) * X[:, 1:]
    sample = Sample(np.arange(100), X, Y, w.astype(float), None)
    # The first rows, which are the basis, once; then their copies.
    copies = np.concatenate([np.arange(100), np.repeat(np.arange(100), w - 1)])
    repeated = Sample(np.arange(len(copies)), X[copies], Y[copies], np.ones(len(copies)), None)
    one, other, plain = (
        choose_lengthscale(each, Gaussian(1.0), search=True, intercept=intercept, scale=np.ones(1))
        for each in (sample, repeated, replace(sample, weights=np.ones(100)))
    )
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert_same(one.scores, other.scores, "GCV", 1e-8)
    assert np.abs(np.array(plain.scores) / np.array(one.scores) - 1.0).max() > 0.05
