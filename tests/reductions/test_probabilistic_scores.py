"""Scores of predicted distributions, against plain formulas, SciPy's distributions and scikit-learn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from predictives import Classes, Normal, Rates
from problems import blocks
from scipy import stats
from sklearn import metrics

from streamkernel.errors import DataError
from streamkernel.reductions import Reduction
from streamkernel.reductions.scores import (
    CountScores,
    GaussianScores,
    ProbabilityScores,
    score_counts,
    score_gaussian,
    score_probabilities,
)
from streamkernel.reductions.scores.standard_errors import without_errors


def swept(reduction: Reduction[Any], X: Any, Y: Any) -> Any:
    """Blocks of 64 rows, combined."""
    states = [reduction.map_block(block) for block in blocks(X, Y, [64] * (len(X) // 64) + [len(X) % 64])]
    state = states[0]
    for other in states[1:]:
        state = reduction.combine(state, other)
    return reduction.finalize(state)


def rows_of(count: int = 300) -> Any:
    return np.random.default_rng(0).standard_normal((count, 2))


# ------------------------------------------------------------------------------------------------ normal distributions
def of_each(metric: Any, Y: Any, f: Any) -> Any:
    """A score in the units of the targets: a number, of several targets a list."""
    return pytest.approx(metric(Y, f) if Y.shape[1] == 1 else metric(Y, f, multioutput="raw_values").tolist())


@pytest.mark.parametrize("d", [1, 3])
def test_gaussian_scores(d: int) -> None:
    X = rows_of()
    mean, variance = Normal(d).moments(X)
    Y = mean + 1.3 * np.sqrt(variance) * np.random.default_rng(1).standard_normal(mean.shape)
    found = swept(GaussianScores(Normal(d)), X, Y)
    normal = stats.norm(mean, np.sqrt(variance))
    low, high = mean - 1.959964 * np.sqrt(variance), mean + 1.959964 * np.sqrt(variance)
    assert without_errors(found.scalars) == {
        "rows": 300,
        "rmse": of_each(metrics.root_mean_squared_error, Y, mean),
        "mae": of_each(metrics.mean_absolute_error, Y, mean),
        "r2": pytest.approx(metrics.r2_score(Y, mean)),
        "nlpd": pytest.approx(-normal.logpdf(Y).mean()),
        "coverage95": pytest.approx(((low <= Y) & (high >= Y)).mean()),
    }
    np.testing.assert_array_equal(found.levels, [*np.arange(1, 20) / 20, 0.99])
    for level, coverage in zip(found.levels, found.coverage.T, strict=True):
        low, high = normal.interval(level)
        np.testing.assert_allclose(coverage, ((low <= Y) & (high >= Y)).mean(axis=0))
    for target in range(d):
        expected, _ = np.histogram(normal.cdf(Y)[:, target], bins=20, range=(0.0, 1.0))
        np.testing.assert_array_equal(found.transform[target], expected)


def test_right_distributions_are_calibrated_and_narrow_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((20_000, 1))
    right = score_gaussian(Y, np.zeros_like(Y), np.ones_like(Y))
    np.testing.assert_allclose(right.coverage[0], right.levels, atol=0.02)
    assert stats.chisquare(right.transform[0]).pvalue > 1e-3
    assert right.scalars["nlpd"] == pytest.approx(stats.norm.entropy(), abs=0.02)
    narrow = score_gaussian(Y, np.zeros_like(Y), np.full_like(Y, 0.25))
    assert (narrow.coverage[0] < right.levels - 0.01).all()
    assert narrow.scalars["nlpd"] > right.scalars["nlpd"]
    assert narrow.transform[0, 0] > 3 * narrow.transform[0, 10]


def test_tiny_and_huge_variances() -> None:
    Y = np.array([[0.0], [1.0]])
    exact = score_gaussian(Y, Y, np.full((2, 1), 1e-320))
    assert exact.scalars["coverage95"] == 1.0
    assert -400 < exact.scalars["nlpd"] < -300
    assert exact.transform[0, 10] == 2
    missed = score_gaussian(Y, Y + np.array([[1.0], [-1.0]]), np.zeros((2, 1)))
    assert missed.scalars["coverage95"] == 0.0
    assert missed.scalars["nlpd"] == 1e290
    assert (missed.transform[0, 0], missed.transform[0, -1]) == (1, 1)
    assert score_gaussian(Y, Y + 1e9, np.zeros((2, 1))).scalars["nlpd"] == 1e290
    vague = score_gaussian(Y, Y + 1.0, np.full((2, 1), 1e300))
    assert vague.scalars["nlpd"] == pytest.approx(0.5 * np.log(2 * np.pi * 1e300))
    assert vague.coverage[0, 0] == 1.0


# ------------------------------------------------------------------------------------------------------------- classes
@pytest.mark.parametrize("classes", [2, 4])
def test_probability_scores(classes: int) -> None:
    X = rows_of(500)
    P = Classes(classes).probabilities(X)
    codes = np.random.default_rng(1).integers(0, classes, 500)
    Y = np.eye(classes)[codes]
    found = swept(ProbabilityScores(Classes(classes)), X, Y)
    brier = ((P - Y) ** 2).sum(axis=1).mean() if classes > 2 else metrics.brier_score_loss(codes, P[:, 1])
    claimed, came = (P[:, 1], codes == 1) if classes == 2 else (P.max(axis=1), P.argmax(axis=1) == codes)
    edges = np.linspace(0.0, 1.0, 16)
    bins = [np.nonzero((low <= claimed) & (claimed < high))[0] for low, high in pairwise(edges)]
    expected = sum(abs(came[rows].mean() - claimed[rows].mean()) * len(rows) for rows in bins if len(rows)) / 500
    assert without_errors(found.scalars) == {
        "rows": 500,
        "accuracy": pytest.approx(metrics.accuracy_score(codes, P.argmax(axis=1))),
        "log_loss": pytest.approx(metrics.log_loss(codes, P)),
        "brier": pytest.approx(brier),
        "calibration_error": pytest.approx(expected),
    }
    np.testing.assert_array_equal(found.count, [len(rows) for rows in bins])
    filled = found.count > 0
    assert 0 < filled.sum() <= 15
    np.testing.assert_allclose(found.predicted[filled], [claimed[rows].mean() for rows in bins if len(rows)])
    np.testing.assert_allclose(found.observed[filled], [came[rows].mean() for rows in bins if len(rows)])
    assert np.isnan(found.predicted[~filled]).all()
    assert np.isnan(found.observed[~filled]).all()


def test_probabilities_of_0_and_1() -> None:
    codes = np.array([0, 1, 1, 0])
    certain = np.eye(2)[[0, 1, 0, 1]]
    found = score_probabilities(np.eye(2)[codes], certain)
    assert found.scalars["log_loss"] == pytest.approx(metrics.log_loss(codes, certain))
    assert found.scalars["log_loss"] == pytest.approx(-0.5 * np.log(np.finfo(float).eps))
    assert found.scalars["brier"] == metrics.brier_score_loss(codes, certain[:, 1]) == 0.5
    np.testing.assert_array_equal(found.count[[0, -1]], [2, 2])
    assert found.scalars["calibration_error"] == 0.5
    assert score_probabilities(certain, certain).scalars["log_loss"] == pytest.approx(0.0, abs=1e-15)


# -------------------------------------------------------------------------------------------------------------- counts
@pytest.mark.parametrize("d", [1, 2])
def test_count_scores(d: int) -> None:
    X = rows_of()
    rate = Rates(d).values(X)
    Y = np.random.default_rng(1).poisson(1.2 * rate).astype(np.float64)
    found = swept(CountScores(Rates(d)), X, Y)
    targets = range(d)
    deviance = [metrics.mean_poisson_deviance(Y[:, k], rate[:, k]) for k in targets]
    d2 = [metrics.d2_tweedie_score(Y[:, k], rate[:, k], power=1) for k in targets]
    assert without_errors(found.scalars) == {
        "rows": 300,
        "rmse": of_each(metrics.root_mean_squared_error, Y, rate),
        "mae": of_each(metrics.mean_absolute_error, Y, rate),
        "r2": pytest.approx(metrics.r2_score(Y, rate)),
        "nlpd": pytest.approx(-stats.poisson(rate).logpmf(Y).mean()),
        "deviance": pytest.approx(np.mean(deviance)),
        "d2": pytest.approx(np.mean(d2)),
    }
    for k in targets:
        np.testing.assert_allclose(found.transform[k], spread_transforms(Y[:, k], rate[:, k]))


def test_the_share_of_the_deviance_of_one_row_is_undefined() -> None:
    X = rows_of()[:1]
    found = swept(CountScores(Rates(1)), X, np.array([[2.0]])).scalars
    assert np.isnan(found["d2"])
    assert np.isnan(found["r2"])
    assert np.isfinite(found["deviance"])


def spread_transforms(y: Any, rate: Any) -> Any:
    """Row by row: what of the interval from P(y - 1) to P(y) lies in each twentieth."""
    edges = np.linspace(0.0, 1.0, 21)
    total = np.zeros(20)
    for count, mu in zip(y, rate, strict=True):
        low, high = stats.poisson.cdf([count - 1, count], mu)
        inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        total += np.maximum(inside, 0.0) / (high - low)
    return total


def test_counts_as_predicted_spread_evenly() -> None:
    rate = np.full((20_000, 1), 3.0)
    found = score_counts(np.random.default_rng(0).poisson(rate).astype(np.float64), rate)
    assert found.transform.sum() == pytest.approx(20_000)
    np.testing.assert_allclose(found.transform, 1000, rtol=0.1)


def test_large_counts_nearly_as_predicted_keep_their_deviance() -> None:
    """Written out, both sums of the deviance lose twelve digits here."""
    Y = 1e9 + np.arange(200.0)[:, None] - 99.5
    found = score_counts(Y, np.full_like(Y, 1e9))
    quadratic = float(((Y - 1e9) ** 2 / 1e9).mean())
    assert found.scalars["deviance"] == pytest.approx(quadratic, rel=1e-6)
    assert found.scalars["d2"] == pytest.approx(0.0, abs=1e-6)
    steep = swept(CountScores(Rates(1)), rows_of(200), Y)
    assert steep.scalars["d2"] < -1e12


def test_zero_rates_and_constant_counts() -> None:
    none = np.zeros((4, 1))
    assert without_errors(score_counts(none, none).scalars) == {
        "rows": 4, "rmse": 0.0, "mae": 0.0, "r2": 1.0, "nlpd": 0.0, "deviance": 0.0, "d2": 1.0,
    }  # fmt: skip
    impossible = score_counts(none + 2.0, none).scalars
    assert 1e3 < impossible["nlpd"] < np.inf
    assert impossible["d2"] == 0.0
    sure = score_counts(none + 5.0, none + 1e6)
    assert sure.transform[0, 0] == 4


def test_negative_counts_are_refused() -> None:
    X, Y = rows_of(70), np.ones((70, 1))
    Y[66] = -1.0
    with pytest.raises(DataError, match="row 66 has a negative target"):
        swept(CountScores(Rates(1)), X, Y)
