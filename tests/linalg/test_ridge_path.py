"""The path of alphas: what keeps the choice of alpha from rounding, and from scores that are misled."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from streamkernel.linalg import RidgePath

COUNT = 400


def path_of(G: Any, y: Any) -> RidgePath:
    return RidgePath.of(G.T @ G, G.T @ y[:, None], np.array([y @ y]), len(G))


def gcv_of_logarithm(path: RidgePath, log_alpha: float) -> float:
    return path.gcv(float(np.exp(log_alpha)))


def test_targets_that_are_explained_to_rounding_have_an_evidence() -> None:
    """What is left of them is a difference of equal numbers: it may come out negative, and has no logarithm."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((COUNT, 12))
        path = path_of(G, 1e3 * G @ rng.standard_normal(12))
        values = [path.negative_log_evidence(float(alpha)) for alpha in path.grid()]
        assert np.isfinite(values).all()
        # Less alpha explains more, down to where it is rounding.
        assert path.choose() < 1e-6 * path.values[-1]
    # As if rounding had taken more than there was.
    spoilt = replace(path, square=path.square * (1.0 - 1e-9))
    assert np.isfinite([spoilt.negative_log_evidence(float(alpha)) for alpha in spoilt.grid()]).all()
    assert spoilt.choose() < 1e-6 * spoilt.values[-1]


def test_alpha_is_not_below_that_of_the_largest_evidence() -> None:
    """Of targets that are noise a few rows of large leverage may mislead the score of GCV alone."""
    below = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.standard_normal(60)
        path = path_of(rng.standard_normal((60, 30)) / np.arange(1, 31) ** 2, y)
        by_gcv = path._least(lambda alphas, path=path: path.gcv_scores(alphas, None, 1.4))
        by_evidence = path._least(path._negative_log_evidences)
        assert path.choose() == pytest.approx(max(by_gcv, by_evidence))
        below += by_gcv < 0.5 * by_evidence
    assert below > 0


def test_alpha_has_the_least_score_to_a_thousandth() -> None:
    """Beside SciPy's minimiser between the neighbours on the grid, also where an end of the grid has the least."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((COUNT, 12)) / np.arange(1, 13)
        path = path_of(G, G @ rng.standard_normal(12) + rng.standard_normal(COUNT))
        alphas = path.grid()
        best = int(np.argmin(path.gcv_scores(alphas)))
        score = partial(gcv_of_logarithm, path)
        low, high = np.log(alphas[[best - 1, best + 1]]).tolist()
        expected = minimize_scalar(score, bounds=(low, high), method="bounded", options={"xatol": 1e-7})
        assert path._least(path.gcv_scores) == pytest.approx(float(np.exp(expected.x)), rel=2e-3)
        assert path._least(lambda some: some) == alphas[0]
        assert path._least(lambda some: -some) == pytest.approx(alphas[-1])


def test_the_least_alpha_is_above_what_the_sums_show_of_rounding() -> None:
    """A negative eigenvalue of a matrix that has none is rounding, whatever its size is by theory."""
    H = np.diag([4.0, 1.0, -1e-5])
    path = RidgePath.of(H, np.ones((3, 1)), np.array([9.0]), 10)
    assert path.rounding == pytest.approx(1e-5)
    assert path.smallest_alpha == pytest.approx(1e-4)
    assert path.grid()[0] >= 1e-4


def test_no_degrees_of_freedom_left_is_no_perfect_score() -> None:
    path = path_of(np.eye(6), np.arange(6.0))
    assert path.gcv(1e-3, None, 1.4) == np.inf
    assert path._least(lambda some: np.full(len(some), np.inf)) == path.grid()[-1]  # nothing is known: all is shrunk
    assert path.gcv(1e3, None, 1.4) < np.inf
    assert path.effective_df(path._least(lambda alphas: path.gcv_scores(alphas, None, 1.4))) * 1.4 < 6


@pytest.mark.parametrize("targets", [1, 3])
def test_scores_of_many_alphas_are_those_of_each(targets: int) -> None:
    rng = np.random.default_rng(targets)
    G, Y = rng.standard_normal((50, 12)) * np.logspace(0, -7, 12), rng.standard_normal((50, targets))
    path = RidgePath.of(G.T @ G, G.T @ Y, (Y**2).sum(axis=0), 50)
    alphas, scale = path.grid(), np.arange(1.0, targets + 1.0)
    each = [path.gcv(float(alpha), scale, 1.4) for alpha in alphas]
    np.testing.assert_allclose(path.gcv_scores(alphas, scale, 1.4), each, rtol=1e-13)
    freedom = [path.effective_df(float(alpha)) for alpha in alphas]
    np.testing.assert_allclose(path.effective_dfs(alphas), freedom, rtol=1e-13)
    hats = [G @ np.linalg.solve(G.T @ G + alpha * np.eye(12), G.T) for alpha in alphas[20:]]
    plain = [50 * (((Y - hat @ Y) ** 2).sum(axis=0) / scale).sum() / (50 - 1.4 * np.trace(hat)) ** 2 for hat in hats]
    np.testing.assert_allclose(path.gcv_scores(alphas[20:], scale, 1.4), plain, rtol=1e-6)


def test_the_score_of_copies_is_that_of_one_of_each() -> None:
    """Twice the rows, of which half are independent: twice each sum, and the same mean square."""
    rng = np.random.default_rng(4)
    G = rng.standard_normal((60, 8))
    y = G @ rng.standard_normal(8) + rng.standard_normal(60)
    once, H, g = path_of(G, y), G.T @ G, G.T @ y[:, None]
    copied = RidgePath.of(2.0 * H, 2.0 * g, np.array([2.0 * y @ y]), 120, share=0.5)
    assert copied.count == once.count
    for alpha in (0.01, 1.0, 100.0):
        assert copied.gcv(2.0 * alpha) == pytest.approx(once.gcv(alpha), rel=1e-12)
    assert copied.choose() == pytest.approx(2.0 * once.choose(), rel=1e-2)
