"""Weights of rows: their scale is a matter of units, none at all are refused, and whole ones are repeated rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import dask.array
import numpy as np
import pytest
from slow_cases import slow_but

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    open_table,
)
from streamkernel.errors import EmptyDataError, NumericRangeError
from streamkernel.kinds import KINDS

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, (60, 2))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
labels = (y > 0.0).astype(int)
labels[:3] = 1 - labels[:3]
counts = rng.poisson(np.exp(y)).astype(float)
apart = rng.uniform(-3.0, 3.0, (50, 2))

pytestmark = pytest.mark.filterwarnings("ignore:only .* basis functions")

GIVEN: dict[str, Any] = {"scale": "none", "lengthscale": 0.8}
PURSUIT: dict[str, Any] = {**GIVEN, "validation": None, "pool": "full"}
MODELS: dict[str, tuple[Any, Any]] = {
    "ridge": (KernelRidge(60, alpha=0.1, **GIVEN), y),
    "ridge, cg": (KernelRidge(60, alpha=0.1, solver="cg", **GIVEN), y),
    "ridge of classes": (KernelRidgeClassifier(60, alpha=0.1, **GIVEN), labels),
    "gp classifier": (GaussianProcessClassifier(60, signal_variance=1.0, **GIVEN), labels),
    "poisson": (GaussianProcessPoissonRegressor(60, signal_variance=1.0, **GIVEN), counts),
    "pursuit": (KernelMatchingPursuit(25, **PURSUIT), y),
    "pursuit, basic": (KernelMatchingPursuit(25, variant="basic", **PURSUIT), y),
    "pursuit of classes": (KernelMatchingPursuitClassifier(25, **PURSUIT), labels),
}


def _table(rows: Any, targets: Any, weights: Any = None) -> Any:
    return open_table(rows, targets, weights=weights, classify=targets.dtype.kind == "i")


@pytest.mark.parametrize("name", MODELS)
def test_whole_weights_are_repeated_rows(name: str) -> None:
    model, targets = MODELS[name]
    times = np.ones(60, np.int64)
    times[[4, 9, 20]] = 2, 3, 2
    again = np.repeat(np.arange(60), times)
    weighed = model.fit(_table(X, targets, times.astype(float))).predict(apart)
    repeated = model.fit(_table(X[again], targets[again])).predict(apart)
    np.testing.assert_allclose(weighed, repeated, atol=1e-9)


@pytest.mark.parametrize("name", [*MODELS, "gp"])
def test_no_row_has_a_say(name: str) -> None:
    model, targets = MODELS.get(name, (GaussianProcessRegressor(20), y))
    with pytest.raises(EmptyDataError, match="all 60 weights are zero"):
        model.fit(_table(X, targets, np.zeros(60)))


@pytest.mark.parametrize("name", KINDS)
def test_one_rule_for_all_estimators(name: str) -> None:
    """Products of tiny weights underflow in some sums and not in others: what is fitted must not depend on that."""
    kind = KINDS[name]
    targets = np.column_stack([y, X[:, 0]]) if name == "kernel-cca" else labels
    model = kind.estimator(n_components=10)
    for weight, match in ((1e-31, "largest of 60 rows is 1e-31: .*divide the weights"), (1e31, "overflow; divide")):
        with pytest.raises(NumericRangeError, match=match):
            model.fit(X, targets, sample_weight=np.full(60, weight))
        with pytest.raises(NumericRangeError, match=match):
            model.fit(kind.open(X, targets, weights=dask.array.from_array(np.full(60, weight), chunks=20)))


@pytest.mark.parametrize("weight", [1e-25, 1e-10, 1e-5])
def test_weights_that_are_less_than_one_row_together_leave_the_prior(weight: float) -> None:
    """The least count of a class is a share of such weights: one row's would be more than there are."""
    weights = np.full(60, weight)
    make = {"n_components": 20, "signal_variance": 1.0, **GIVEN}
    for classes in (labels, np.arange(60) % 3):
        found = GaussianProcessClassifier(**make).fit(X, classes, sample_weight=weights).predict_proba(X)
        assert abs(found - 1.0 / found.shape[1]).max() < 0.1
    rates = GaussianProcessPoissonRegressor(**make).fit(X, counts, sample_weight=weights).predict(X)
    assert 0.5 * counts.mean() < rates.min() <= rates.max() < 2.0 * counts.mean()


@pytest.mark.parametrize("weight", [1e-12, 1e-17, 1e-28])
def test_the_evidence_of_tiny_weights_has_the_maximum_of_small_ones(weight: float) -> None:
    """Its digits were lost beside the prior's, the largest signal variance looked best, and rates were 8,000-fold."""
    model = GaussianProcessPoissonRegressor(20).fit(X, counts, sample_weight=np.full(60, weight))
    rates = model.predict(X)
    assert 0.5 * counts.mean() < rates.min() <= rates.max() < 2.0 * counts.mean()
    small = GaussianProcessPoissonRegressor(20).fit(X, counts, sample_weight=np.full(60, 1e-3))
    assert model.signal_variance_ == pytest.approx(small.signal_variance_, rel=0.2)


@pytest.mark.parametrize("kind", [KernelLPClassifier, KernelLPRegressor])
def test_costs_that_a_linear_program_takes_for_infinite_are_refused_at_once(kind: Any) -> None:
    """The program was unbounded after the sweeps."""
    with pytest.raises(NumericRangeError, match=r"C = 2 times the largest row weight, 1e\+29, is 2e\+29, .*smaller C"):
        kind(10, C=2.0).fit(X, labels, sample_weight=np.full(60, 1e29))


def test_the_bound_is_that_of_float32_too() -> None:
    """float32(1e30) is 1.0000000150474662e30."""
    for weight in (np.float32(1e30), np.float64(1e30), np.float32(1e-30), 1e-30):
        assert open_table(X, y, weights=np.full(60, weight)).read(0, 1).weights is not None


@pytest.mark.parametrize("weight", [1e-29, 1e29])
def test_the_search_for_a_basis_takes_weights_within_the_range(weight: float) -> None:
    """Its sums are in float32, which ends near 1e38."""
    for model, targets in (
        (KernelRidge(10), y),
        (GaussianProcessRegressor(10), y),
        (KernelRidgeClassifier(10), labels),
    ):
        assert np.isfinite(model.fit(X, targets, sample_weight=np.full(60, weight)).predict(apart)).all()


@pytest.mark.parametrize("tiny", [1e-300, 1e-320])
def test_tiny_weights_among_others_are_fitted(tiny: float) -> None:
    weights = np.where(np.arange(60) < 30, 1.0, tiny)
    found = KernelRidge(30, alpha=0.1, **GIVEN).fit(X, y, sample_weight=weights)
    assert np.corrcoef(found.predict(X[:30]), y[:30])[0, 1] > 0.9


@pytest.mark.parametrize("tiny", [1e-44, 1e-307])
def test_few_rows_that_count_are_in_the_basis_before_the_others(tiny: float) -> None:
    """The rows that are left are scored with their own weights, which no rule for whole tables may refuse."""
    weights = np.where(np.arange(60) < 3, 1.0, tiny)
    model = Nystroem(8, **GIVEN).fit(X, sample_weight=weights)
    assert set(model.component_indices_) >= {0, 1, 2}
    assert np.isfinite(model.transform(apart)).all()


def test_weights_without_an_inverse_are_named_where_it_is_needed() -> None:
    """The noise of such a row is infinite; its share in the draw of a sample is 0."""
    with pytest.raises(NumericRangeError, match="weights near 1"):
        GaussianProcessRegressor(10).fit(X, y, sample_weight=np.where(np.arange(60) < 10, 1.0, 1e-320))


@pytest.mark.parametrize(
    ("approximation", "weight"), slow_but([("fitc", 7.0), ("dtc", 1e12)], product(["fitc", "dtc"], [7.0, 1e12]))
)
def test_a_common_factor_is_that_of_copies(approximation: str, weight: float) -> None:
    """Copies share one error: of rows that all stand as often, the process is that of the rows once."""
    model = GaussianProcessRegressor(60, approximation=approximation)
    plain = model.fit(_table(X, y)).predict(apart)
    noise = model.noise_variance_[0]
    found = model.fit(_table(X, y, np.full(60, weight))).predict(apart)
    np.testing.assert_allclose(found, plain, atol=0.02)
    assert model.noise_variance_[0] == pytest.approx(noise, rel=0.2)


@pytest.mark.parametrize("weight", [7.0, 1e6, 1e29])
def test_a_common_factor_is_that_of_copies_in_members_of_a_committee(weight: float) -> None:
    """Members had all of the factor in their noise, and their sum had it once more: 1e6 doubled the error."""
    own = np.random.default_rng(1)
    more = own.uniform(-3.0, 3.0, (240, 2))
    values = np.sin(more[:, 0]) + 0.3 * own.standard_normal(240)
    model = BayesianCommitteeMachine(40, block_size=80)
    plain, error = model.fit(_table(more, values)).predict(apart, return_std=True)
    noise = model.noise_variance_[0]
    found, spread = model.fit(_table(more, values, np.full(240, weight))).predict(apart, return_std=True)
    assert np.sqrt(np.mean((found - plain) ** 2)) < 0.02
    np.testing.assert_allclose(spread, error, rtol=0.1)
    assert model.noise_variance_[0] == pytest.approx(noise, rel=0.05)


def test_features_whose_squares_vanish() -> None:
    """They are refused as they are, and standardised to the features that they are a multiple of."""
    with pytest.raises(NumericRangeError, match=r"median distance of distinct rows is 0.0.*scale the columns"):
        KernelRidge(20, scale="none").fit(1e-300 * X, y)
    plain, small = (KernelRidge(20, kernel="gaussian", metric="none").fit(rows, y) for rows in (X, 1e-300 * X))
    np.testing.assert_allclose(small.predict(1e-300 * X), plain.predict(X), rtol=1e-6, atol=1e-6)
