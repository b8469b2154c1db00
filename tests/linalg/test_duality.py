"""The gap between primal and dual along a path of picks, against Qp and Qd themselves."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows, seeds

from streamkernel.errors import NumericalError
from streamkernel.linalg import DualityPath, duality_path

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def path_of(K: Any, Y: Any, picks: list[int], rho: float, extra: list[int] | None = None) -> DualityPath:
    """By dense features in the order of the picks; the rows `extra` are in the dual from the beginning."""
    G = np.linalg.solve(np.linalg.cholesky(K[np.ix_(picks, picks)]), K[picks]).T
    left = np.maximum(np.trace(K) - np.cumsum((G**2).sum(axis=0)), 0.0)
    J = [*(extra or []), *picks]
    return duality_path(G.T @ G, G.T @ Y, float((Y**2).sum()), rho, left, K[np.ix_(J, J)], Y[J])


def test_gaps_of_the_card() -> None:
    """ALGORITHMS 10.6: SGMA order, rho = .1; the true m (R_n - R_full) lies below both."""
    found = path_of(CARD.K, CARD.y[:, None], SGMA, 0.1)
    np.testing.assert_allclose(found.sparse, [18.4952, 18.4904, 4.24389, 3.62219, 0.680624, 0.627489], rtol=3e-6)
    assert found.trace[-1] == pytest.approx(47.2363, rel=2e-6)
    np.testing.assert_array_equal(found.gap, found.sparse)
    full = CARD.y @ np.linalg.solve(CARD.K + 0.1 * np.eye(40), CARD.y) * 0.1 / 2
    true = found.objective / 2 - full
    np.testing.assert_allclose(true, [18.0549, 18.0502, 3.93643, 3.32212, 0.455851, 0.407197], rtol=3e-6)
    assert (true <= found.gap).all()


def test_the_second_gap_of_the_card_is_exact_where_its_trace_form_bounds_it() -> None:
    """r'(K - K~) r / (2 rho): 1195.86 .. 3.69832."""
    found, exact = path_of(CARD.K, CARD.y[:, None], SGMA, 0.1), []
    for n in range(1, 7):
        a = naive.sparse_primal(CARD.K, CARD.y, 0.1, SGMA[:n])
        r = CARD.y - CARD.K @ a
        exact.append(naive.duality_gap(CARD.K, CARD.y, 0.1, a, r / 0.1))
        assert exact[-1] == pytest.approx(r @ naive.residual(CARD.K, SGMA[:n]) @ r / 0.2, rel=1e-9)
    np.testing.assert_allclose([exact[0], exact[-1]], [1195.86, 3.69832], rtol=3e-6)
    assert (np.array(exact) <= found.trace).all()


@given(
    X=rows(min_rows=6, max_rows=30, dtype=np.float64, duplicates=False),
    seed=seeds,
    rho=st.sampled_from([0.05, 1.0, 30.0]),
    d=st.integers(1, 3),
    more=st.integers(0, 4),
)
def test_gaps_are_qp_and_qd_themselves(X: Any, seed: int, rho: float, d: int, more: int) -> None:
    K = naive.gaussian(X, X, 0.7 * float(np.abs(X).max()) or 1.0)
    rng = np.random.default_rng(seed)
    Y, m = rng.standard_normal((len(X), d)), len(X)
    picks: list[int] = []
    for i in rng.permutation(m).tolist():
        if len(picks) < 5 and naive.residual(K, picks)[i, i] > 1e-3:
            picks.append(i)
    extra = [i for i in rng.permutation(m).tolist() if i not in picks][:more]
    found = path_of(K, Y, picks, rho, extra)
    slack = 1e-8 * (1 + float((Y**2).sum()))
    full = rho * float((Y * np.linalg.solve(K + rho * np.eye(m), Y)).sum())
    for t in range(len(picks)):
        a = [naive.sparse_primal(K, y, rho, picks[: t + 1]) for y in Y.T]
        u = [naive.sparse_dual(K, y, rho, [*extra, *picks[: t + 1]]) for y in Y.T]
        gaps = [naive.duality_gap(K, *parts) for parts in zip(Y.T, [rho] * d, a, u, strict=True)]
        assert found.sparse[t] == pytest.approx(sum(gaps), abs=slack)
        r = Y - K @ np.column_stack(a)
        left = max(naive.residual_trace(K, picks[: t + 1]), 0.0)
        assert found.trace[t] == pytest.approx(left * float((r**2).sum()) / (2 * rho), abs=slack, rel=1e-6)
        excess = (found.objective[t] - full) / 2
        assert -slack <= excess <= found.gap[t] + slack
        if d == 1 and found.sparse[t] <= found.trace[t]:
            expected = naive.relative_duality_gap(K, Y[:, 0], rho, a[0], u[0])
            assert found.relative[t] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_gap_closes_when_all_rows_are_picked() -> None:
    everything = list(range(40))
    found = path_of(CARD.K, CARD.y[:, None], everything, 0.1)
    assert found.gap[-1] < 1e-9
    assert found.relative[-1] < 1e-9
    assert (np.diff(found.objective) <= 1e-10).all()
    assert (np.diff(found.sparse) <= 1e-10).all()


def test_more_dual_rows_tell_more() -> None:
    y = CARD.y[:, None]
    few, many = path_of(CARD.K, y, SGMA, 0.1), path_of(CARD.K, y, SGMA, 0.1, [i for i in range(30) if i not in SGMA])
    assert (many.sparse < few.sparse).all()
    np.testing.assert_allclose(many.objective, few.objective)
    # A row of zeros is not there.
    J = [0, *SGMA]
    root = np.array([0.0, *np.ones(6)])
    G = np.linalg.solve(np.linalg.cholesky(CARD.K[np.ix_(SGMA, SGMA)]), CARD.K[SGMA]).T
    dual = CARD.K[np.ix_(J, J)] * np.outer(root, root)
    again = duality_path(G.T @ G, G.T @ y, float((y**2).sum()), 0.1, np.zeros(6), dual, y[J] * root[:, None])
    np.testing.assert_allclose(again.sparse, few.sparse, rtol=1e-9)
    assert not again.trace.any()


def test_parts_and_nothing_to_explain() -> None:
    found = path_of(CARD.K, CARD.y[:, None], SGMA, 0.1)
    both = found.part(slice(2)).and_then(found.part(slice(2, None)))
    np.testing.assert_array_equal(both.relative, found.relative)
    assert len(both) == 6
    assert not path_of(CARD.K, np.zeros((40, 1)), SGMA, 0.1).relative.any()
    with pytest.raises(NumericalError, match="H \\+ rho I"):
        duality_path(-np.eye(2), np.ones((2, 1)), 1.0, 0.5, np.ones(2), np.eye(2), np.ones((2, 1)))
