"""Quantiles that do not cross, their scores, and those of one class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks
from sklearn.metrics import mean_pinball_loss
from strategies import few_examples

from streamkernel.errors import DataError
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Predictions
from streamkernel.reductions.predictions import QuantilePredictions
from streamkernel.reductions.scores import OneClassScores, QuantileScores, score_quantiles

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
    if not weighted:
        np.testing.assert_allclose(score_quantiles(Y, raw, np.array(LEVELS)).pinball, pinball, rtol=1e-12)


@pytest.mark.parametrize("targets", [None, Y[:, None]])
def test_scores_of_one_class(targets: Any) -> None:
    """With and without targets, which do not count."""
    values = Predictions(FUNCTIONS.basis, FUNCTIONS.coefficients[:, :1], FUNCTIONS.intercept[:1])
    f = values.values(X)[:, 0]
    found = swept(OneClassScores(values), X, targets, None, (30, 45, 15))
    assert found == pytest.approx({"rows": 90, "outliers": (f < 0).mean(), "decision": f.mean()}, rel=1e-12)
    w = (np.arange(90) % 3).astype(float)
    found = swept(OneClassScores(values), X, targets, w, (30, 1, 44, 15))
    assert found["rows"] == 60
    assert found["outliers"] == pytest.approx(w @ (f < 0) / w.sum(), rel=1e-12)
    assert found["decision"] == pytest.approx(w @ f / w.sum(), rel=1e-12)
    with pytest.raises(DataError, match="all rows have weight 0"):
        swept(OneClassScores(values), X, targets, np.zeros(90), (30, 60))
