"""The gap of a reduced fit: the example's risks, and the truth between its bounds."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, tables

from streamkernel.bounds import DualGap, dual_gap_bound, dual_gap_path
from streamkernel.errors import NumericalError, ParameterError

RISKS = [0.463582, 0.463464, 0.110619, 0.0952614, 0.0236048, 0.0223884]
FULL_RISK = 0.0122085


def features(K: Any, basis: list[int]) -> Any:
    return np.linalg.solve(np.linalg.cholesky(K[np.ix_(basis, basis)]), K[basis]).T


def sums_of(K: Any, Y: Any, basis: list[int]) -> tuple[Any, Any, float, Any]:
    """H, g, |Y|^2 and the residual trace after each function, whitened in the order of the basis."""
    G = features(K, basis)
    path = np.trace(K) - np.cumsum((G**2).sum(axis=0))
    return G.T @ G, G.T @ Y, float((Y**2).sum()), np.maximum(path, 0.0)


def example() -> tuple[Any, Any, list[int]]:
    card = naive.card()
    return card.K, card.y, naive.greedy(card.K, [range(40)] * 6, naive.function_space).picks


def test_risks_of_the_example() -> None:
    K, y, picks = example()
    H, g, yy, path = sums_of(K, y, picks)
    gaps = dual_gap_path(H, g, yy, 0.1, path, 40)
    assert [f"{gap.risk:.6g}" for gap in gaps] == [f"{risk:.6g}" for risk in RISKS]
    everything = list(range(40))
    full = dual_gap_path(*sums_of(K, y, everything)[:3], 0.1, np.zeros(40), 40)[-1]
    assert full.risk == pytest.approx(FULL_RISK, abs=5e-8)
    assert full.bound == full.relative == 0.0
    assert not full.vacuous
    for gap in gaps:
        assert gap.lower <= full.risk <= gap.risk
    # With rho far below the residual trace nothing is said.
    assert gaps[-1].vacuous


def test_objective_of_greedy_ridge_picks() -> None:
    """ALGORITHMS 1.3: J = |y - G b|^2 + rho |b|^2 = 2 m risk, before four picks and after."""
    K, y, _ = example()
    basis = [0, 5, 9, 10, 19, 3, 31]
    gaps = dual_gap_path(*sums_of(K, y, basis)[:3], 0.1, np.zeros(7), 40)
    np.testing.assert_allclose([2 * 40 * gaps[t].risk for t in (2, 6)], [17.5874, 3.39119], rtol=6e-6)


@given(tables(min_rows=6, max_rows=30, dtype=np.float64, duplicates=False), seeds, st.floats(-2, 3))
def test_the_excess_lies_within_the_bound(table: Any, seed: int, power: float) -> None:
    X, y = table
    rho, m = 10.0**power, len(X)
    Y = y.reshape(m, -1)
    K = naive.gaussian(X, X, 2.0)
    found = naive.greedy(K, [range(m)] * 4, naive.function_space)
    # Beyond a residual of 1e-6 the dense oracles have no digits left.
    picks = found.picks[: 1 + sum(trace > 1e-6 * m for trace in found.traces[:-1])]
    H, g, yy, path = sums_of(K, Y, picks)
    gaps = dual_gap_path(H, g, yy, rho, path, m)
    full = float((Y * np.linalg.solve(K + rho * np.eye(m), Y)).sum()) * rho / (2 * m)
    risks = np.array([gap.risk for gap in gaps])
    assert np.all(np.diff(risks) <= 1e-9 * yy)
    for n, gap in enumerate(gaps, 1):
        beta = np.linalg.solve(H[:n, :n] + rho * np.eye(n), g[:n])
        r = Y - features(K, picks[:n]) @ beta
        middle = float(np.einsum("id,ij,jd->", r, naive.residual(K, picks[:n]), r)) / (2 * m * rho)
        slack = 1e-7 * yy
        assert -slack <= gap.risk - full <= middle + slack
        assert middle <= gap.bound + slack
        # Not vacuous while tr R < rho.
        assert gap.bound <= path[n - 1] / rho * gap.risk + slack
        assert gap.residual_square == pytest.approx(float((r**2).sum()), rel=1e-6, abs=slack)
        single = dual_gap_bound(yy, g[:n], beta, rho, path[n - 1], m)
        assert single.risk == pytest.approx(gap.risk, rel=1e-6, abs=slack)
        assert single.bound == pytest.approx(gap.bound, rel=1e-6, abs=slack)


def test_centred_sums_bound_a_fit_with_an_intercept() -> None:
    K, y, picks = example()
    y = y + 5.0
    m, rho = 40, 30.0
    G = features(K, picks)
    G, centred = G - G.mean(axis=0), y - y.mean()
    beta = np.linalg.solve(G.T @ G + rho * np.eye(6), G.T @ centred)
    gap = dual_gap_bound(float(centred @ centred), G.T @ centred, beta, rho, naive.residual_trace(K, picks), m)
    alpha, _ = naive.kernel_ridge(K, y, rho, intercept=True)
    full = rho * float(alpha[:, 0] @ centred) / (2 * m)
    assert gap.lower <= full <= gap.risk
    assert not gap.vacuous


def test_gap_closes_with_the_residual() -> None:
    K, y, picks = example()
    H, g, yy, _ = sums_of(K, y, picks)
    beta = np.linalg.solve(H + 0.1 * np.eye(6), g)
    bounds = [dual_gap_bound(yy, g, beta, 0.1, trace, 40).bound for trace in (8.0, 4.0, 1e-6, 0.0)]
    assert bounds[0] == pytest.approx(2 * bounds[1])
    assert bounds[2] < 1e-6
    assert bounds[3] == 0.0
    assert DualGap(0.0, 0.0, 0.0).relative == 0.0


def test_bad_sums() -> None:
    K, y, picks = example()
    H, g, yy, path = sums_of(K, y, picks)
    beta = np.linalg.solve(H + 0.1 * np.eye(6), g)
    for arguments, word in [
        ((yy, g, beta[:5], 0.1, 1.0, 40), "shape"),
        ((yy, g, beta, 0.0, 1.0, 40), "rho"),
        ((yy, g, 2 * beta, 0.1, 1.0, 40), "minimiser"),
        ((yy, g, -beta, 0.1, 1.0, 40), "minimiser"),
        ((yy / 2, g, beta, 0.1, 1.0, 40), "yy"),
        ((yy, g, beta, 0.1, -1.0, 40), "residual_trace"),
        ((yy, g, beta, 0.1, 1.0, 0), "rows"),
    ]:
        with pytest.raises(ParameterError, match=word):
            dual_gap_bound(*arguments)
    with pytest.raises(ParameterError, match="path of 5 functions"):
        dual_gap_path(H, g, yy, 0.1, path[:5], 40)
    with pytest.raises(NumericalError, match="sum g"):
        dual_gap_path(H, np.full(6, np.nan), yy, 0.1, path, 40)
