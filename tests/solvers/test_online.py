"""A basis that grows as rows come, against the row-by-row form, and the exact process where every row is kept."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import table_of_chunks
from strategies import cuts, rows, seeds
from weighted_rows import assert_same, weighted_rows

from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeError, ShapeMismatchError
from streamkernel.kernels import Gaussian, Kernel, Linear
from streamkernel.solvers import OnlineGaussianProcess
from streamkernel.table import open_table

CARD = naive.card()


def test_every_row_kept_is_the_exact_process() -> None:
    mean, variance, _ = naive.gaussian_process(CARD.K, CARD.y, 0.1, naive.gaussian(CARD.Xq, CARD.X), np.ones(6))
    model = OnlineGaussianProcess(Gaussian(1.0), 0.1, tolerance=0.0).take(CARD.X, CARD.y)
    assert len(model) == model.count == 40
    found, spread = model.moments(CARD.Xq)
    np.testing.assert_allclose(found[:, 0], mean, atol=1e-12)
    np.testing.assert_allclose(spread, variance, atol=1e-12)
    # ALGORITHMS 5.1
    np.testing.assert_allclose(mean[:3], [-0.463676, -0.475682, -0.138733], rtol=4e-6)
    np.testing.assert_allclose(spread[:3], [0.0486935, 0.0509141, 0.0899311], rtol=4e-6)
    np.testing.assert_allclose(model.predictions().values(CARD.Xq), found, atol=1e-12)


@given(
    X=rows(min_rows=2, max_rows=30, dtype=np.float64),
    seed=seeds,
    tolerance=st.sampled_from([1e-3, 0.1, 0.5]),
    most=st.sampled_from([None, 1, 4]),
    data=st.data(),
)
def test_blocks_are_the_row_by_row_form(X: Any, seed: int, tolerance: float, most: int | None, data: Any) -> None:
    kernel = Gaussian(0.5 * float(np.abs(X).max()) or 1.0)
    y = np.random.default_rng(seed).standard_normal(len(X))
    expected = naive.online(kernel(X), y, 0.3, tolerance, most)
    model, start = OnlineGaussianProcess(kernel, 0.3, tolerance=tolerance, most=most), 0
    for length in data.draw(cuts(len(X))):
        model.take(X[start : start + length], y[start : start + length])
        start += length
    assert model.basis.rows.tolist() == expected.basis
    np.testing.assert_array_equal(model.basis.points, X[expected.basis])
    np.testing.assert_allclose(model.mu[:, 0], expected.mu, atol=1e-8)
    np.testing.assert_allclose(model.P, expected.P, atol=1e-8)


def test_signal_centre_and_several_targets() -> None:
    X, s2, signal = np.random.default_rng(0).standard_normal((50, 2)), 0.2, 3.0
    Y = np.column_stack([np.sin(X[:, 0]) + 7.0, X[:, 1] - 2.0])
    model = OnlineGaussianProcess(Gaussian(1.0), s2, signal=signal, tolerance=0.0, centre=[7.0, -2.0]).take(X, Y)
    q = np.random.default_rng(1).standard_normal((9, 2))
    mean, variance = model.moments(q)
    for j, centre in enumerate((7.0, -2.0)):
        expected, spread, _ = naive.gaussian_process(
            signal * naive.gaussian(X, X), Y[:, j] - centre, s2, signal * naive.gaussian(q, X), np.full(9, signal)
        )
        np.testing.assert_allclose(mean[:, j], expected + centre, atol=1e-7)
        np.testing.assert_allclose(variance, spread, atol=1e-7)
    np.testing.assert_allclose(model.predictions().values(q), mean, atol=1e-7)
    # The state itself.
    K = signal * naive.gaussian(X, X)
    at = model.basis.rows
    np.testing.assert_allclose(model.mu, (K @ np.linalg.solve(K + s2 * np.eye(50), Y - [7.0, -2.0]))[at], atol=1e-7)
    np.testing.assert_allclose(model.P, (K - K @ np.linalg.solve(K + s2 * np.eye(50), K))[np.ix_(at, at)], atol=1e-7)


def test_the_fewer_functions_the_more_is_left_as_noise() -> None:
    X = np.random.default_rng(0).standard_normal((3000, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(3000)
    q = np.random.default_rng(2).standard_normal((500, 2))
    errors, sizes = [], []
    for tolerance in (0.5, 0.05, 1e-3):
        model = OnlineGaussianProcess(Gaussian(1.0), 0.01, tolerance=tolerance).take(X, y)
        sizes.append(len(model))
        errors.append(np.sqrt(np.mean((model.moments(q)[0][:, 0] - np.sin(2 * q[:, 0])) ** 2)))
    assert sizes == sorted(sizes)
    assert sizes[-1] < 200
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_rows_of_a_table_whatever_its_chunks(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((5000, 2)).astype(np.float32)
    y = np.sin(X[:, 0]).astype(np.float64)
    states = []
    for chunk in (700, 5000):
        table = table_of_chunks(tmp_path / f"{chunk}.zarr", X, y, chunk)
        states.append(OnlineGaussianProcess(Gaussian(1.0), 0.1, tolerance=0.01).take_table(table.slice(10, 4990)))
    one, other = states
    np.testing.assert_array_equal(one.basis.rows, other.basis.rows)
    np.testing.assert_allclose(one.mu, other.mu, atol=1e-9)
    assert one.count == 4980
    assert one.basis.points.dtype == np.float32
    # A state is plain data: it goes on where it was.
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.take(X[:9], y[:9]).mu, one.take(X[:9], y[:9]).mu)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()])
def test_duplicates_and_rank(kernel: Kernel) -> None:
    """A row that is there already brings its target, and no function."""
    X = np.repeat(np.random.default_rng(0).standard_normal((8, 2)), 4, axis=0)
    y = np.random.default_rng(1).standard_normal(32)
    model = OnlineGaussianProcess(kernel, 0.5, tolerance=0.0).take(X, y)
    assert len(model) == (8 if isinstance(kernel, Gaussian) else 2)
    K = kernel(X)
    expected, spread, _ = naive.gaussian_process(K, y, 0.5, K, np.diag(K))
    np.testing.assert_allclose(model.moments(X)[0][:, 0], expected, atol=1e-9)
    np.testing.assert_allclose(model.moments(X)[1], spread, atol=1e-9)


def test_rows_that_say_nothing() -> None:
    model = OnlineGaussianProcess(Linear(), 0.5).take(np.zeros((3, 2)), np.ones(3))
    mean, variance = model.moments([[1.0, 2.0]])
    assert (len(model), mean[0, 0], variance[0]) == (0, 0.0, 5.0)
    assert model.predictions().values(np.ones((1, 2))) == [[0.0]]


def test_what_is_refused() -> None:
    model = OnlineGaussianProcess(Gaussian(1.0), 0.1)
    for question in (model.predictions, lambda: model.moments(np.ones((1, 2))), lambda: model.mu, lambda: model.P):
        with pytest.raises(ParameterError, match="no rows"):
            question()
    for options in ({"noise": 0.0}, {"noise": 1.0, "signal": 0.0}, {"noise": 1.0, "tolerance": -1.0}):
        with pytest.raises(ParameterError):
            OnlineGaussianProcess(Gaussian(1.0), **options)
    with pytest.raises(ParameterError, match="most"):
        OnlineGaussianProcess(Gaussian(1.0), 1.0, most=0)
    with pytest.raises(ParameterError, match="no targets"):
        model.take_table(open_table(CARD.X))
    with pytest.raises(ShapeMismatchError, match="40 rows"):
        model.take(CARD.X, CARD.y[:39])
    with pytest.raises(NonFiniteDataError):
        model.take(CARD.X, np.where(np.arange(40) == 3, np.nan, CARD.y))
    with pytest.raises(ShapeMismatchError, match="centre"):
        OnlineGaussianProcess(Gaussian(1.0), 1.0, centre=[0.0, 1.0]).take(CARD.X, CARD.y)
    assert model.count == 0
    model.take(CARD.X, CARD.y)
    with pytest.raises(ShapeMismatchError, match="3 features"):
        model.take(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ShapeError):
        model.moments(np.ones((2, 3)))


def test_a_row_of_weight_w_is_w_rows_in_a_run() -> None:
    given = weighted_rows(most=3)
    one, other = (
        OnlineGaussianProcess(Gaussian(1.2), 0.3, signal=1.4, tolerance=0.05).take_table(table) for table in given.both
    )
    assert len(one) == len(other)
    X = np.random.default_rng(1).standard_normal((25, 3))
    for value, there in zip(one.moments(X), other.moments(X), strict=True):
        assert_same(value, there, "moments", 1e-9)
    assert set(one.basis.rows.tolist()) <= set(given.numbers.tolist())
