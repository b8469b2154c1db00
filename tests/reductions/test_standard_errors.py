"""Standard errors of scores: against plain NumPy and the spread over many samples, for any blocks, and at the edges."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from predictives import Classes, Normal, Rates
from problems import basis_of, blocks

from streamkernel.reductions import Predictions
from streamkernel.reductions.predictions import QuantilePredictions
from streamkernel.reductions.scores import (
    ClassificationScores,
    CountScores,
    GaussianScores,
    OneClassScores,
    ProbabilityScores,
    QuantileScores,
    RegressionScores,
    score_quantiles,
)
from streamkernel.reductions.scores.standard_errors import mean_error, root_error, share_error, without_errors

RNG = np.random.default_rng(8)
M = 240
X = RNG.standard_normal((M, 2))
W = RNG.integers(0, 4, M).astype(float)
LENGTHS = [1, 90, 2, 147]


def swept(reduction: Any, Y: Any, weights: Any = None, lengths: Any = None) -> dict[str, float]:
    state = None
    for block in blocks(X[: len(Y)], Y, list(lengths or LENGTHS), weights):
        mapped = reduction.map_block(block)
        state = mapped if state is None else reduction.combine(state, mapped)
    found = reduction.finalize(state)
    return dict(found if isinstance(found, dict) else found.scalars)


def of_mean(values: NDArray[Any], w: NDArray[Any]) -> float:
    """The weighted deviation of values over the root of the effective number of rows."""
    mean = np.average(values, weights=w)
    return math.sqrt(np.average((values - mean) ** 2, weights=w) * (w @ w)) / w.sum()


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("d", [1, 3])
def test_errors_of_numbers(d: int, weights: Any) -> None:
    Y = 50.0 + RNG.standard_normal((M, d)) * [1.0, 4.0, 0.1][:d]
    work = Predictions(basis_of(X, range(5)), RNG.standard_normal((5, d)), np.full(d, 50.0))
    f, w = work.values(X), np.ones(M) if weights is None else W
    errors: dict[str, list[float]] = {"rmse": [], "mae": [], "r2": []}
    for y, e in zip(Y.T, (Y - f).T, strict=True):
        square, centred = np.average(e**2, weights=w), y - np.average(y, weights=w)
        variance = np.average(centred**2, weights=w)
        errors["rmse"].append(of_mean(e**2, w) / (2 * math.sqrt(square)))
        errors["mae"].append(of_mean(np.abs(e), w))
        errors["r2"].append(of_mean((e**2 - square / variance * centred**2) / variance, w))
    found = swept(RegressionScores(work), Y, weights)
    for name, expected in errors.items():
        one = np.mean(expected) if name == "r2" or len(expected) == 1 else expected
        assert found[f"{name}_se"] == pytest.approx(one, rel=1e-9), name


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_errors_of_distributions(weights: Any) -> None:
    w = np.ones(M) if weights is None else W
    Y = RNG.standard_normal((M, 1))
    mean, variance = Normal(1).moments(X)
    density = 0.5 * (np.log(2 * np.pi * variance) + (Y - mean) ** 2 / variance)[:, 0]
    found = swept(GaussianScores(Normal(1)), Y, weights)
    assert found["nlpd_se"] == pytest.approx(of_mean(density, w), rel=1e-9)
    share = found["coverage95"]
    assert found["coverage95_se"] == pytest.approx(math.sqrt(share * (1 - share) * (w @ w)) / w.sum(), rel=1e-9)
    counts = RNG.poisson(2.0, (M, 1)).astype(float)
    found = swept(CountScores(Rates(1)), counts, weights)
    rate, y = Rates(1).values(X)[:, 0], counts[:, 0]
    log_factorial = np.array([math.lgamma(each + 1) for each in y])
    assert found["nlpd_se"] == pytest.approx(of_mean(rate - y * np.log(rate) + log_factorial, w), rel=1e-9)
    deviance = 2 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / rate), 0.0) - y + rate)
    assert found["deviance_se"] == pytest.approx(of_mean(deviance, w), rel=1e-9)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("classes", [2, 4])
def test_errors_of_classes(classes: int, weights: Any) -> None:
    w = np.ones(M) if weights is None else W
    codes = RNG.integers(0, classes, M)
    Y, P = np.eye(classes)[codes], Classes(classes).probabilities(X)
    right = (P.argmax(axis=1) == codes).astype(float)
    brier = ((P - Y) ** 2).sum(axis=1) * (0.5 if classes == 2 else 1.0)
    expected = {"accuracy": right, "log_loss": -np.log(P[np.arange(M), codes]), "brier": brier}
    found = swept(ProbabilityScores(Classes(classes)), Y, weights)
    for name, values in expected.items():
        assert found[f"{name}_se"] == pytest.approx(of_mean(values, w), rel=1e-9), name
    work = Predictions(basis_of(X, range(5)), RNG.standard_normal((5, classes)), np.zeros(classes))
    right = (work.values(X).argmax(axis=1) == codes).astype(float)
    assert swept(ClassificationScores(work), Y, weights)["accuracy_se"] == pytest.approx(of_mean(right, w), rel=1e-9)


def test_errors_of_quantiles_and_of_one_class() -> None:
    levels = np.array([0.1, 0.9])
    work = Predictions(basis_of(X, range(5)), RNG.standard_normal((5, 2)), np.zeros(2))
    y = RNG.standard_normal(M)
    found = swept(QuantileScores(QuantilePredictions(work, (0.1, 0.9))), y[:, None], W)
    r = y[:, None] - np.sort(work.values(X), axis=1)
    loss = np.maximum(levels * r, (levels - 1) * r)
    assert found["pinball_se"] == pytest.approx(np.mean([of_mean(each, W) for each in loss.T]), rel=1e-9)
    assert found["below_0.1_se"] == pytest.approx(of_mean((r[:, 0] <= 0).astype(float), W), rel=1e-9)
    assert {"crossed_se", "coverage80_se"} <= found.keys()
    assert "pinball_se" in score_quantiles(y, work.values(X), levels).scalars
    one = Predictions(basis_of(X, range(5)), RNG.standard_normal((5, 1)), np.full(1, 0.2))
    found = swept(OneClassScores(one), np.zeros((M, 1)), W)
    f = one.values(X)[:, 0]
    assert found["decision_se"] == pytest.approx(of_mean(f, W), rel=1e-9)
    assert found["outliers_se"] == pytest.approx(of_mean((f < 0).astype(float), W), rel=1e-9)


def test_they_are_the_spread_over_many_samples() -> None:
    """Of 600 samples of 200 rows with heavy tails: the mean standard error is the deviation of the score."""
    rng = np.random.default_rng(1)
    e = rng.laplace(size=(600, 200))
    squares = (e**2).mean(axis=1)
    se = root_error(squares, (e**4).mean(axis=1), 200)
    assert se.mean() == pytest.approx(np.sqrt(squares).std(), rel=0.08)
    right = (rng.random((600, 200)) < 0.9).mean(axis=1)
    assert share_error(right, 200).mean() == pytest.approx(right.std(), rel=0.08)


def test_no_wrong_row_is_no_proof_that_there_is_none() -> None:
    assert share_error(1.0, 100) == share_error(0.99, 100) == pytest.approx(math.sqrt(0.01 * 0.99 / 100))
    assert share_error(0.0, 100) == share_error(0.01, 100)


@pytest.mark.parametrize("rows", [0.0, 1.0, 1.5])
def test_fewer_than_two_rows_have_none(rows: float) -> None:
    assert np.isnan(mean_error(2.0, 4.0, rows))
    assert np.isnan(share_error([0.5, 1.0], rows)).all()


def test_one_row_and_sums_that_overflow() -> None:
    work = Predictions(basis_of(X, range(5)), np.zeros((5, 1)), np.zeros(1))
    for Y in (np.full((1, 1), 3.0), np.array([[1e90], [-1e90], [0.0]]), np.zeros((3, 1))):
        found = swept(RegressionScores(work), Y, lengths=[1] * len(Y))
        assert math.isfinite(found["rmse"])
        assert without_errors(found).keys() == {"rows", "rmse", "mae", "r2"}
        assert json.dumps(found)
    # Exact predictions of a constant: an error of 0 with a standard error of 0, and no R^2 to be unsure of.
    assert found["rmse_se"] == 0.0
    assert math.isnan(found["r2_se"])


def test_a_shift_of_the_targets_changes_none() -> None:
    """The moments about the mean are kept, not those about 0, of which no digit would be left."""
    Y = RNG.standard_normal((M, 1))
    far = 2.0**24
    works = [Predictions(basis_of(X, range(5)), np.ones((5, 1)), np.array([at])) for at in (0.0, far)]
    plain, shifted = swept(RegressionScores(works[0]), Y), swept(RegressionScores(works[1]), Y + far)
    assert shifted["r2_se"] == pytest.approx(plain["r2_se"], rel=1e-5)
