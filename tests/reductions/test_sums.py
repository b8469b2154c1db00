"""What the sums are, against plain NumPy and scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, blocks, pool_columns, pool_sums, root_sums
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

from streamkernel.kernels import Gaussian
from streamkernel.reductions import Moments, Predictions, Reduction
from streamkernel.reductions.pools import PoolGram
from streamkernel.reductions.scores import ClassificationScores, RegressionScores
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import RidgeSystem


def swept(reduction: Reduction[Any], X: Any, Y: Any, weights: Any = None, chunk: int = 64) -> Any:
    """Blocks folded and combined, as the engine does."""
    lengths = [min(chunk, len(X) - start) for start in range(0, len(X), chunk)]
    states = [reduction.map_block(block) for block in blocks(X, Y, lengths, weights)]
    state = states[0]
    for other in states[1:]:
        state = reduction.combine(state, other)
    return reduction.finalize(state)


# -------------------------------------------------------------------------------------------------- normal equations
@pytest.mark.parametrize("leading", [0, 3, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [0, 1, 3])
def test_normal_equations(d: int, weighted: bool, dtype: Any, leading: int | None) -> None:
    rng = np.random.default_rng(d)
    X = rng.standard_normal((300, 4)).astype(dtype)
    Y = 100 + rng.standard_normal((300, d))
    w = rng.uniform(0.1, 3, 300) if weighted else np.ones(300)
    centre = np.full(d, 99.0)
    basis = basis_of(X, range(0, 300, 15), Gaussian(2.0))
    reduction = NormalEquations(basis, centre, leading)
    sums = swept(reduction, X, Y if d else None, w if weighted else None)
    K = naive.gaussian(X, X, 2.0)
    G = np.linalg.solve(np.linalg.cholesky(K[::15, ::15]), K[::15]).T
    Yc, W = Y - centre, w[:, None]
    expected = {"H": G.T @ (W * G), "g": G.T @ (W * Yc), "YY": Yc.T @ (W * Yc), "G1": G.T @ w, "Y1": Yc.T @ w}
    for name, value in expected.items():
        found = getattr(sums, name)
        assert found.dtype == np.float64
        scale = float(np.abs(value).max(initial=1.0))
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-10 * scale, err_msg=name)
    np.testing.assert_array_equal(sums.H, sums.H.T)
    assert (sums.count, sums.weight, sums.trace) == (300, pytest.approx(w.sum()), pytest.approx(w.sum()))


@pytest.mark.parametrize("leading", [0, 3, None])
@pytest.mark.parametrize("d", [0, 2, 40, 200])
def test_sums_keep_no_more_memory_than_their_numbers_twice(d: int, leading: int | None) -> None:
    """A view of the Gram matrix of n + 1 + d columns would keep all of it, beside the copies of its parts."""
    rng, n = np.random.default_rng(d), 20
    X, Y = rng.standard_normal((120, 4)), rng.standard_normal((120, d))
    basis = basis_of(X, range(0, 120, 120 // n), Gaussian(2.0))
    sums = swept(NormalEquations(basis, np.zeros(d), leading), X, Y if d else None)
    held = {id(memory): memory.nbytes for memory in map(_memory_of, (sums.H, sums.g, sums.YY, sums.G1, sums.Y1))}
    assert sum(held.values()) <= 2 * 8 * (n * n + n * d + d * d + n + d)
    assert sums.H.shape == (n, n)
    assert sums.H.flags.c_contiguous
    L = np.linalg.cholesky(naive.gaussian(basis.points, basis.points, 2.0))
    G = np.linalg.solve(L, naive.gaussian(basis.points, X, 2.0)).T
    np.testing.assert_allclose(sums.H, G.T @ G, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(sums.g, G.T @ Y, rtol=1e-9, atol=1e-8)


def _memory_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_ill_conditioned_bases_are_whitened_first() -> None:
    """The quick way loses what it lifts by 1 / pivot; `of` takes it only where nobody can tell."""
    X = np.linspace(0, 3, 2000)[:, None]
    good, bad = basis_of(X, range(0, 2000, 400)), basis_of(X, range(0, 2000, 125))
    assert NormalEquations.of(good, np.zeros(0), 2000).leading == 0
    assert NormalEquations.of(bad, np.zeros(0), 2000).leading != 0
    K = naive.gaussian(X, X[::125])
    exact = np.linalg.eigvalsh(naive.whitened_features(K, K[::125]).T @ naive.whitened_features(K, K[::125]))
    H = swept(NormalEquations.of(bad, np.zeros(0), 2000), X, None).H
    np.testing.assert_allclose(np.linalg.eigvalsh(H)[-10:], exact[-10:], rtol=1e-6, atol=1e-8)
    assert np.linalg.eigvalsh(H)[0] > -1e-9


def test_a_small_alpha_that_is_asked_for_gets_its_digits() -> None:
    """A target in the span of the basis: without noise it is found as exactly as the sums are."""
    X = np.linspace(0, 3, 2000)[:, None]
    basis = basis_of(X, range(0, 2000, 250))
    assert NormalEquations.of(basis, np.zeros(1), 2000).leading == 0
    assert NormalEquations.of(basis, np.zeros(1), 2000, 1.0).leading == 0
    Y = basis.features(X) @ np.linspace(1.0, 2.0, len(basis))[:, None]
    off = {}
    for alpha in (None, 1e-12):
        work = NormalEquations.of(basis, np.zeros(1), 2000, alpha)
        solution = RidgeSystem(basis, swept(work, X, Y), intercept=False).solve(1e-12)
        off[alpha] = float(np.abs(basis.block(X) @ solution.coefficients - Y).max())
    assert off[1e-12] < 1e-9
    assert off[1e-12] < 0.05 * off[None]


def test_sums_of_float32_rows_are_taken_in_float64() -> None:
    """A million ones in float32 stop growing at 2^24; what is summed here does not."""
    X = np.zeros((1 << 16, 1), np.float32)
    reduction = NormalEquations(basis_of(X, [0]), np.zeros(1))
    state = reduction.map_block(next(blocks(X, np.full((len(X), 1), 0.1), [len(X)])))
    for _ in range(9):
        state = reduction.combine(state, state)
    assert reduction.finalize(state).H[0, 0] == 2.0**25
    assert reduction.finalize(state).g[0, 0] == pytest.approx(0.1 * 2**25, rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- moments
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_with_a_large_offset(offset: float) -> None:
    rng = np.random.default_rng(0)
    X, Y = offset + rng.standard_normal((1000, 3)), -offset + rng.uniform(size=(1000, 2))
    found = swept(Moments(3, 2), X, Y)
    for statistics, values in ((found.X, X), (found.y, Y)):
        assert statistics.count == 1000
        np.testing.assert_allclose(statistics.mean, values.mean(axis=0), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(statistics.std, (values - values.mean(axis=0)).std(axis=0), rtol=1e-8)
        np.testing.assert_array_equal(statistics.minimum, values.min(axis=0))
        np.testing.assert_array_equal(statistics.maximum, values.max(axis=0))


def test_moments_without_targets() -> None:
    X = np.arange(10.0)[:, None]
    assert swept(Moments(1, 0), X, None).y is None


# ------------------------------------------------------------------------------------------------------------ scores
@pytest.mark.parametrize("d", [1, 3])
def test_regression_scores(d: int) -> None:
    rng = np.random.default_rng(d)
    X, Y = rng.standard_normal((200, 2)), 1e3 + rng.standard_normal((200, d))
    predictions = Predictions(basis_of(X, range(5)), rng.standard_normal((5, d)), np.full(d, 1e3))
    found = swept(RegressionScores(predictions), X, Y)
    f = predictions.values(X)
    assert found["rows"] == 200
    for name, metric in (("rmse", metrics.root_mean_squared_error), ("mae", metrics.mean_absolute_error)):
        assert found[name] == pytest.approx(metric(Y, f) if d == 1 else metric(Y, f, multioutput="raw_values").tolist())
    assert found["r2"] == pytest.approx(metrics.r2_score(Y, f))


def test_scores_of_several_targets_do_not_depend_on_their_units() -> None:
    """Metres or millimetres: the error of all targets together and its standard error are the same."""
    rng = np.random.default_rng(2)
    X, Y, units = rng.standard_normal((200, 2)), rng.standard_normal((200, 2)), np.array([1.0, 1e6])
    beta, scale = rng.standard_normal((5, 2)), Y.std(axis=0)
    plain, scaled = (
        swept(RegressionScores(Predictions(basis_of(X, range(5)), beta * by, np.zeros(2)), scale * by), X, Y * by)
        for by in (np.ones(2), units)
    )
    for name in ("relative_rmse", "relative_rmse_se", "r2", "r2_se"):
        assert scaled[name] == pytest.approx(plain[name]), name
    assert plain["relative_rmse"] == pytest.approx(np.sqrt(np.mean((np.array(plain["rmse"]) / scale) ** 2)))
    assert scaled["rmse"] == pytest.approx((units * plain["rmse"]).tolist())
    assert scaled["mae_se"] == pytest.approx((units * plain["mae_se"]).tolist())


def test_regression_scores_of_constant_targets() -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    exact = Predictions(basis_of(X, [0]), np.zeros((1, 1)), np.array([3.0]))
    wrong = Predictions(basis_of(X, [0]), np.zeros((1, 1)), np.array([4.0]))
    Y = np.full((50, 1), 3.0)
    assert swept(RegressionScores(exact), X, Y)["r2"] == metrics.r2_score(Y, exact.values(X)) == 1.0
    assert swept(RegressionScores(wrong), X, Y)["r2"] == metrics.r2_score(Y, wrong.values(X)) == 0.0


@pytest.mark.parametrize("rows", [1, 2])
def test_the_share_that_is_explained_of_one_row_is_undefined(rows: int) -> None:
    """As in scikit-learn, with and without rows of weight 0, which are not there."""
    X, Y = np.random.default_rng(0).standard_normal((rows, 2)), np.arange(1.0, rows + 1.0)[:, None]
    predictions = Predictions(basis_of(X, [0]), np.zeros((1, 1)), np.array([4.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        expected = metrics.r2_score(Y, predictions.values(X))
    found = swept(RegressionScores(predictions), X, Y)
    assert found["r2"] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(found["r2"]) == (rows == 1)
    more = np.vstack([X, X + 1.0]), np.vstack([Y, Y + 5.0])
    weighted = swept(RegressionScores(predictions), *more, weights=np.repeat([1.0, 0.0], rows))
    assert weighted["r2"] == pytest.approx(expected, nan_ok=True)
    assert weighted["rmse"] == pytest.approx(found["rmse"])


@pytest.mark.parametrize("classes", [2, 4])
def test_classification_scores(classes: int) -> None:
    rng = np.random.default_rng(classes)
    X, codes = rng.standard_normal((200, 2)), rng.integers(0, classes, 200)
    predictions = Predictions(basis_of(X, range(6)), rng.standard_normal((6, classes)), np.zeros(classes))
    found = swept(ClassificationScores(predictions), X, np.eye(classes)[codes])
    expected = metrics.accuracy_score(codes, predictions.values(X).argmax(axis=1))
    assert found == {
        "rows": 200,
        "accuracy": pytest.approx(expected),
        "accuracy_se": pytest.approx(np.sqrt(expected * (1.0 - expected) / 200)),
    }


def test_predictions_are_the_formula() -> None:
    rng = np.random.default_rng(0)
    X, coefficients = rng.standard_normal((40, 3)), rng.standard_normal((7, 1))
    work = Predictions(basis_of(X, range(7)), coefficients, np.array([0.5]))
    expected = naive.gaussian(X, X[:7]) @ coefficients[:, 0] + 0.5
    block = next(blocks(X, None, [40]))
    np.testing.assert_allclose(work.map_block(block)["prediction"], expected, rtol=1e-12)
    wide = Predictions(work.basis, coefficients, work.intercept, flat=False)
    assert wide.map_block(block)["prediction"].shape == (40, 1)
    codes = Predictions(work.basis, np.hstack([coefficients, -coefficients]), np.zeros(2), argmax=True)
    np.testing.assert_array_equal(codes.map_block(block)["prediction"], (expected - 0.5 < 0).astype(int))
    assert {name: dtype for name, (_, dtype) in codes.columns.items()} == {"prediction": np.dtype(np.int64)}


# ------------------------------------------------------------------------------------------------------------- pools
@pytest.mark.parametrize("weighted", [False, True])
def test_pool_sums(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((120, 3)), rng.standard_normal((120, 2))
    w = rng.uniform(0.1, 3, 120) if weighted else np.ones(120)
    basis, pool = list(range(8)), list(range(20, 50))
    sums = pool_sums(X, Y, basis, pool, w if weighted else None)
    K = naive.gaussian(X, X)
    R = naive.residual(K, basis)[:, pool]
    L = np.linalg.cholesky(K[:8, :8])
    G = np.linalg.solve(L, K[:8]).T
    W = w[:, None]
    for name, expected in {
        "C": R.T @ (W * R), "E": G.T @ (W * R), "F": R.T @ (W * Y), "H": G.T @ (W * G), "g": G.T @ (W * Y),
        "YY": Y.T @ (W * Y), "S": R[pool],
    }.items():  # fmt: skip
        np.testing.assert_allclose(getattr(sums, name), expected, rtol=1e-9, atol=1e-9, err_msg=name)
    assert (sums.weight, sums.trace) == (pytest.approx(w.sum()), pytest.approx(w.sum()))
    root = root_sums(X, Y, basis, pool, w if weighted else None)
    np.testing.assert_allclose(root.G_R.T @ root.G_R + root.R_R.T @ root.R_R, sums.C, rtol=1e-9, atol=1e-9)
    H = np.linalg.inv(sums.H)
    np.testing.assert_allclose(root.R_R.T @ root.R_R, sums.C - sums.E.T @ H @ sums.E, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(root.R_R.T @ root.R_Y, sums.F - sums.E.T @ H @ sums.g, rtol=1e-8, atol=1e-9)


def test_single_precision_serves_for_scores() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((500, 3)), rng.standard_normal((500, 1))
    single = PoolGram(pool_columns(X, Y, range(10), range(20, 60), precision=np.dtype(np.float32)))
    found, exact = swept(single, X, Y), pool_sums(X, Y, range(10), range(20, 60))
    np.testing.assert_allclose(found.C, exact.C, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.F, exact.F, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.S, exact.S)
    assert found.C.dtype == np.float32
    assert {part.dtype for part in (found.E, found.F, found.H, found.g, found.S)} == {np.dtype(np.float64)}
    np.testing.assert_array_equal(found.C, found.C.T)


def test_far_groups_leave_no_denormal_numbers_in_single_precision() -> None:
    """Kernel values of 1e-41 between two groups: float32 would hold half of the features as denormal numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2)) * 0.3
    X[::2, 0] += np.sqrt(2.0 * 93.0)
    Y = rng.standard_normal((400, 1))
    columns = pool_columns(X, Y, range(10), range(20, 60), Gaussian(1.0), np.dtype(np.float32))
    values = np.abs(columns.of(next(iter(blocks(X, Y, [400])))))
    assert ((values == 0.0) | (values >= np.finfo(np.float32).tiny)).all()
    assert 0.3 < (values == 0.0).mean() < 0.6
    exact = swept(PoolGram(pool_columns(X, Y, range(10), range(20, 60), Gaussian(1.0))), X, Y)
    np.testing.assert_allclose(swept(PoolGram(columns), X, Y).C, exact.C, rtol=1e-4, atol=1e-4)
