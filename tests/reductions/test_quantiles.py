"""Quantiles that do not cross, their scores, and those of one class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from strategies import few_examples

from streamkernel.errors import DataError
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Predictions
from streamkernel.reductions.predictions import QuantilePredictions
from streamkernel.reductions.scores import (
    OneClassScores,
    QuantileScores,
    pinball_explained,
    residual_edges,
    score_quantiles,
)
from streamkernel.reductions.scores.standard_errors import without_errors
from streamkernel.solvers import quantile_shifts

RNG = np.random.default_rng(4)
X = RNG.standard_normal((90, 2))
Y = X[:, 0] + RNG.standard_normal(90)
LEVELS = (0.1, 0.5, 0.9)
FUNCTIONS = Predictions(
    basis_of(X, range(0, 90, 20), Gaussian(1.5)), RNG.standard_normal((5, 3)), np.array([-0.5, 0.0, 0.5])
)
QUANTILES = QuantilePredictions(FUNCTIONS, LEVELS)


def swept(reduction: Any, rows: Any, targets: Any, weights: Any = None, lengths: Any = None) -> Any:
    state = None
    for block in blocks(rows, targets, list(lengths or [len(rows)]), weights):
        mapped = reduction.map_block(block)
        state = mapped if state is None else reduction.combine(state, mapped)
    return reduction.finalize(state)


def test_rows_are_sorted() -> None:
    raw = FUNCTIONS.values(X)
    assert (np.diff(raw, axis=1) < 0).any()
    np.testing.assert_array_equal(QUANTILES.values(X), np.sort(raw, axis=1))
    [block] = blocks(X, Y[:, None], [90])
    np.testing.assert_array_equal(QUANTILES.map_block(block)["prediction"], np.sort(raw, axis=1))
    one = Predictions(FUNCTIONS.basis, FUNCTIONS.coefficients[:, :1], FUNCTIONS.intercept[:1])
    assert QuantilePredictions(one, (0.5,)).map_block(block)["prediction"].shape == (90,)


@few_examples(0.5)
@given(st.lists(st.tuples(st.floats(0.001, 0.999), st.floats(-1e3, 1e3)), min_size=1, max_size=8), st.floats(-1e3, 1e3))
def test_sorting_increases_no_pinball_loss(pairs: Any, y: float) -> None:
    levels = np.sort([level for level, _ in pairs])
    values = np.array([value for _, value in pairs])

    def loss(f: Any) -> float:
        return float(np.maximum(levels * (y - f), (levels - 1) * (y - f)).sum())

    assert loss(np.sort(values)) <= loss(values) + 1e-9 * (1 + loss(values))


@pytest.mark.parametrize("weighted", [False, True])
def test_scores(weighted: bool) -> None:
    w = RNG.uniform(0.1, 3.0, 90) * (np.arange(90) % 5 > 0) if weighted else np.ones(90)
    found = swept(QuantileScores(QUANTILES), X, Y[:, None], w if weighted else None, (30, 45, 15))
    raw = FUNCTIONS.values(X)
    f = np.sort(raw, axis=1)
    pinball = [mean_pinball_loss(Y, f[:, k], alpha=q, sample_weight=w) for k, q in enumerate(LEVELS)]
    np.testing.assert_allclose(found.pinball, pinball, rtol=1e-12)
    np.testing.assert_allclose(found.coverage, w @ (Y[:, None] <= f) / w.sum(), rtol=1e-12)
    assert found.scalars["pinball"] == pytest.approx(np.mean(pinball), rel=1e-12)
    assert found.scalars["crossed"] == pytest.approx(w @ (raw != f).any(axis=1) / w.sum(), rel=1e-12)
    assert found.scalars["below_0.9"] == found.coverage[2]
    assert found.scalars["rows"] == np.count_nonzero(w)
    inside = w @ ((f[:, 0] <= Y) & (f[:, 2] >= Y)) / w.sum()
    assert found.scalars["coverage80"] == pytest.approx(inside, rel=1e-12)
    assert [name for name in found.scalars if name.startswith("coverage")] == ["coverage80", "coverage80_se"]
    d2 = [d2_pinball_score(Y, f[:, k], alpha=q, sample_weight=w) for k, q in enumerate(LEVELS)]
    assert found.scalars["d2"] == pytest.approx(np.mean(d2), abs=1e-4)
    if not weighted:
        np.testing.assert_allclose(score_quantiles(Y, raw, np.array(LEVELS)).pinball, pinball, rtol=1e-12)


def test_the_share_explained_of_one_row_is_undefined() -> None:
    one = swept(QuantileScores(QUANTILES), X[:1], Y[:1, None]).scalars
    assert np.isnan(one["d2"])
    assert np.isfinite(one["pinball"])
    levels = np.array(LEVELS)
    assert np.isnan(pinball_explained(Y[:1], np.zeros((1, len(levels))), levels))
    assert np.isnan(pinball_explained(Y[:2], np.zeros((2, len(levels))), levels, np.array([0.0, 1.0])))


def test_the_share_explained_does_not_depend_on_the_unit_of_targets() -> None:
    """Of targets far from 0 the bins are those of the fit's origin and unit."""
    far = QuantilePredictions(replace(FUNCTIONS, intercept=1e8 + 1e-3 * FUNCTIONS.intercept), LEVELS)
    far = replace(far, functions=replace(far.functions, coefficients=1e-3 * FUNCTIONS.coefficients))
    found = swept(QuantileScores(far, 1e8, 1e-3), X, 1e8 + 1e-3 * Y[:, None])
    near = swept(QuantileScores(QUANTILES), X, Y[:, None])
    assert found.scalars["d2"] == pytest.approx(near.scalars["d2"], abs=1e-4)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-7, 1e-3, 1.0, 1e4]))
@few_examples(0.5)
def test_shifted_quantiles_have_their_shares_below(seed: int, scale: float) -> None:
    """The histograms of residuals have bins of 2.5 % of a residual, whatever the size of the noise."""
    rng = np.random.default_rng(seed)
    r, w = scale * rng.standard_normal((500, 2)) + scale * rng.standard_normal(2), rng.uniform(0.5, 2.0, 500)
    edges = residual_edges()
    histogram = np.array([np.histogram(each, edges, weights=w)[0] for each in r.T])
    levels = np.array([0.1, 0.8])
    for k, shift in enumerate(quantile_shifts(histogram, levels)):
        exact = np.interp(levels[k] * w.sum(), np.cumsum(w[np.argsort(r[:, k])]), np.sort(r[:, k]))
        gap = np.diff(np.sort(r[:, k])).max()
        assert abs(shift - exact) <= 0.03 * abs(exact) + gap


@pytest.mark.parametrize("targets", [None, Y[:, None]])
def test_scores_of_one_class(targets: Any) -> None:
    """With and without targets, which do not count."""
    values = Predictions(FUNCTIONS.basis, FUNCTIONS.coefficients[:, :1], FUNCTIONS.intercept[:1])
    f = values.values(X)[:, 0]
    found = swept(OneClassScores(values), X, targets, None, (30, 45, 15))
    expected = {"rows": 90, "outliers": (f < 0).mean(), "decision": f.mean()}
    assert without_errors(found) == pytest.approx(expected, rel=1e-12)
    w = (np.arange(90) % 3).astype(float)
    found = swept(OneClassScores(values), X, targets, w, (30, 1, 44, 15))
    assert found["rows"] == 60
    assert found["outliers"] == pytest.approx(w @ (f < 0) / w.sum(), rel=1e-12)
    assert found["decision"] == pytest.approx(w @ f / w.sum(), rel=1e-12)
    with pytest.raises(DataError, match="all rows have weight 0"):
        swept(OneClassScores(values), X, targets, np.zeros(90), (30, 60))
