"""Look-ahead CSI against the same thing made afresh at every pick, and against what it is at its ends."""

from __future__ import annotations

import naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from problems import Float, csi_path_of
from strategies import few_examples, seeds

from streamkernel.selection._csi_decompositions import LookAhead
from streamkernel.selection._csi_look_ahead import csi_path


# ------------------------------------------------------------------------------------------- made afresh at every pick
@st.composite
def kernels(draw: st.DrawFn) -> tuple[Float, Float]:
    """A Gaussian kernel matrix and targets (m, d): sometimes with rows twice, and a constant column."""
    m, p, d = draw(st.integers(2, 60)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(seeds))
    X = rng.standard_normal((m, p))
    if draw(st.booleans()):
        X[rng.integers(0, m, m // 3)] = X[0]
    if draw(st.booleans()):
        X[:, -1] = 1.0
    K = draw(st.sampled_from([1e-3, 1.0, 1e4])) * naive.gaussian(X, X, draw(st.sampled_from([0.3, 1.0, 2.0])))
    return K, np.sin(X @ rng.standard_normal((p, d))) + 0.1 * rng.standard_normal((m, d))


def sure(K: Float, picks: list[int]) -> int:
    """How many picks come before the first small pivot: dividing by it lifts rounding into the digits compared."""
    for t, j in enumerate(picks):
        if naive.residual_diagonal(K, picks[:t])[j] < 1e-3 * K[j, j]:
            return t
    return len(picks)


@given(kernels(), st.integers(0, 20), st.sampled_from([0.0, 0.5, 0.99]), st.booleans())
def test_efficient_is_semi_naive(data: tuple[Float, Float], delta: int, kappa: float, centred: bool) -> None:
    K, Y = data
    afresh, predicted = naive.csi_look_ahead(K, 15, Y, kappa=kappa, delta=delta, centred=centred)
    found = csi_path_of(K, Y, 15, kappa=kappa, delta=delta, centred=centred)
    n = sure(K, afresh.picks)
    assert found.picks[:n].tolist() == afresh.picks[:n]
    np.testing.assert_allclose(found.predicted.sum(axis=1)[:n], predicted[:n], atol=1e-10)
    np.testing.assert_allclose(found.gains.sum(axis=1)[:n], afresh.scores[:n], atol=1e-10)
    np.testing.assert_allclose(found.traces[1 : n + 1], afresh.traces[:n], atol=1e-10 * np.trace(K))


@given(kernels(), st.integers(0, 20), st.sampled_from([0.5, 0.99, 1.0]), st.booleans())
def test_gains_are_what_the_criterion_drops_by(
    data: tuple[Float, Float], delta: int, kappa: float, centred: bool
) -> None:
    K, Y = data
    found = csi_path_of(K, Y, 10, kappa=kappa, delta=delta, centred=centred)
    picks = found.picks.tolist()
    for t in range(sure(K, picks) + 1):
        left = naive.csi_objective(K, picks[:t], Y, kappa=kappa, centred=centred)
        np.testing.assert_allclose(1 - found.gains[:t].sum(), left, atol=1e-10)
        np.testing.assert_allclose(found.traces[t], naive.residual_trace(K, picks[:t]), atol=1e-10 * np.trace(K))


@given(kernels(), st.integers(0, 20), st.integers(1, 15))
def test_kernel_columns_are_picks_and_look_ahead(data: tuple[Float, Float], delta: int, n: int) -> None:
    """Each once; fewer only where the rank is exhausted."""
    K, Y = data
    asked: list[int] = []

    def column(j: int) -> Float:
        asked.append(j)
        return K[:, j].copy()

    found = csi_path(column, np.diagonal(K).copy(), np.ascontiguousarray(Y.T), n=n, delta=delta, kappa=0.9)
    assert len(asked) == len(set(asked)) == found.columns <= n + delta
    if n + delta < np.linalg.matrix_rank(K, tol=1e-8 * K[0, 0]):
        assert found.columns == n + delta


def test_near_duplicates_keep_their_digits() -> None:
    """Squares fall by many digits between two evaluations afresh: those that win are evaluated at once."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((20, 2)), 3, axis=0) + 1e-4 * rng.standard_normal((60, 2))
    y = np.sin(X[:, 0]) + rng.standard_normal(60)
    K = naive.gaussian(X, X, 0.3)
    afresh, predicted = naive.csi_look_ahead(K, 40, y, kappa=0.99, delta=4, centred=True)
    found = csi_path_of(K, y, 40, kappa=0.99, delta=4, centred=True)
    assert found.picks.tolist() == afresh.picks
    np.testing.assert_allclose(found.predicted.sum(axis=1), predicted, atol=1e-8)
    np.testing.assert_allclose(found.gains.sum(axis=1), afresh.scores, atol=1e-8)


def test_the_twin_of_a_row_looked_at_has_a_column_of_its_own() -> None:
    """All but 1e-13 of its diagonal has been seen, but of its column only all but 1e-7."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((30, 2)), 2, axis=0)
    X[1::2] += 3e-7 * rng.standard_normal((30, 2))
    K = naive.gaussian(X, X, 1.0)
    found = csi_path_of(K, np.sin(3 * X[:, 0]), 12, kappa=0.9, delta=8, centred=True)
    assert (found.picks % 2).any()
    expected = [naive.residual_trace(K, found.picks[:t]) for t in range(13)]
    np.testing.assert_allclose(found.traces, expected, rtol=1e-9)


def test_a_smooth_kernel_to_nine_digits_of_the_trace() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    y = np.sin(X @ [1.0, 2.0, 0.5]) + 0.1 * rng.standard_normal(150)
    K = naive.gaussian(X, X, 10.0)
    afresh, _ = naive.csi_look_ahead(K, 30, y, kappa=0.99, delta=20, centred=True)
    found = csi_path_of(K, y, 30, kappa=0.99, delta=20, centred=True)
    assert found.picks.tolist() == afresh.picks
    assert afresh.traces[-1] < 1e-7 * 150
    np.testing.assert_allclose(found.traces[1:], afresh.traces, rtol=1e-5)
    np.testing.assert_allclose(found.gains.sum(axis=1), afresh.scores, atol=1e-7)
    state = LookAhead(lambda j: K[:, j].copy(), np.ones(150), y[None], n=30, delta=20)
    for j in afresh.picks:
        state.pick(j)
    np.testing.assert_allclose(state._Q[:30] @ state._Q[:30].T, np.eye(30), atol=1e-13)
    G = state._Q[:30].T @ state._R[:30]
    np.testing.assert_allclose(K - G @ G.T, naive.residual(K, afresh.picks), atol=1e-11)


def test_a_constant_that_the_columns_hold() -> None:
    """K = X X^T + 1: with the constant projected out, the last column has no direction of its own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    K, y = X @ X.T + 1.0, X[:, 0] - 2 * X[:, 3] + 0.1 * rng.standard_normal(50)
    found = csi_path_of(K, y, 10, kappa=0.9, delta=3, centred=True)
    assert found.ended == "rank"
    assert len(found.picks) == 5
    assert found.traces[-1] < 1e-10 * np.trace(K)
    left = naive.csi_objective(K, found.picks, y, kappa=0.9, centred=True)
    np.testing.assert_allclose(1 - found.gains.sum(), left, atol=1e-9)


# ----------------------------------------------------------------------------------------- what it is at its ends, 15.8
@given(kernels(), st.sampled_from([0.0, 0.5, 0.99]), st.booleans())
def test_no_columns_ahead_are_incomplete_cholesky(data: tuple[Float, Float], kappa: float, centred: bool) -> None:
    """Every pick has the largest residual; of equal ones either may be taken."""
    K, Y = data
    found = csi_path_of(K, Y, 8, kappa=kappa, delta=0, centred=centred)
    picks = found.picks.tolist()
    for t in range(sure(K, picks)):
        d = naive.residual_diagonal(K, picks[:t])
        np.testing.assert_allclose(d[picks[t]], d.max(), rtol=1e-9)
        np.testing.assert_allclose(found.predicted[t, 0] * np.trace(K), (1 - kappa) * d.max(), rtol=1e-9)


@given(kernels())
def test_all_columns_ahead_without_targets_are_sgma(data: tuple[Float, Float]) -> None:
    K, Y = data
    found = csi_path_of(K, Y, 8, kappa=0.0, delta=len(K))
    picks = found.picks.tolist()
    for t in range(sure(K, picks)):
        left = np.flatnonzero(naive.residual_diagonal(K, picks[:t]) > 1e-6 * K[0, 0])
        best = naive.function_space(K, picks[:t], left).max()
        np.testing.assert_allclose(np.trace(K) * found.gains[t, 0], best, rtol=1e-7)


@few_examples(0.4)
@given(kernels(), st.sampled_from([0.5, 0.99, 1.0]), st.booleans())
def test_all_columns_ahead_are_exact_gains(data: tuple[Float, Float], kappa: float, centred: bool) -> None:
    """With kappa = 1 and nothing centred this is kernel matching pursuit, pre-fitting."""
    K, Y = data
    found = csi_path_of(K, Y, 5, kappa=kappa, delta=len(K), centred=centred)
    picks = found.picks.tolist()
    for t in range(sure(K, picks)):
        np.testing.assert_allclose(found.predicted[t], found.gains[t], atol=1e-8)
        left = np.flatnonzero(naive.residual_diagonal(K, picks[:t]) > 1e-3 * K[0, 0])
        bases = [picks[:t], *([*picks[:t], int(i)] for i in left)]
        before, *after = (naive.csi_objective(K, basis, Y, kappa=kappa, centred=centred) for basis in bases)
        np.testing.assert_allclose(found.gains[t].sum(), before - min(after), atol=1e-8)
