"""The square-root form: the Gram form's picks where that has digits, the right ones where it has none."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import columns_of, pool_sums, right_picks, root_sums, smooth_pool

from streamkernel.selection._picks import Picks, lazy_picks
from streamkernel.selection._root_picks import root_picks
from streamkernel.selection.scores import FunctionSpace, Mixture

CARD = naive.card()


def both(
    X: Any, Y: Any, basis: list[int], pool: list[int], count: int, kappa: float, **options: Any
) -> tuple[Picks, Picks]:
    Y = columns_of(Y) if kappa > 0 else None
    d = 0 if Y is None else Y.shape[1]
    limits: dict[str, Any] = {"scale": np.ones(d), "diagonal": np.ones(len(pool)), "pivot_tolerance": 1e-12, **options}
    root, gram = root_sums(X, Y, basis, pool), pool_sums(X, Y, basis, pool)
    # rho = 0 is the least squares projection that the square-root form makes.
    mixture = Mixture(kappa)
    return root_picks(root, mixture, count, **limits), lazy_picks(gram, mixture, count, digits=1e-6, **limits)


@pytest.mark.parametrize("basis", [[], [0, 5, 9]])
@pytest.mark.parametrize("kappa", [0.0, 0.6, 1.0])
def test_equal_to_the_gram_form_on_the_card(kappa: float, basis: list[int]) -> None:
    pool = [i for i in range(40) if i not in basis]
    root, gram = both(CARD.X, CARD.y, basis, pool, 8, kappa)
    np.testing.assert_array_equal(root.order, gram.order)
    np.testing.assert_allclose(root.gains, gram.gains, rtol=1e-7)


def test_csi_picks_of_the_card() -> None:
    """lambda = .1/tr K, mu = .9/y'y: the mixture with kappa = .9."""
    pool = [i for i in CARD.pool if i not in (0, 5, 9)]
    root, _ = both(CARD.X, CARD.y, [0, 5, 9], pool, 4, 0.9)
    assert [pool[i] for i in root.order] == [10, 19, 12, 17]
    np.testing.assert_allclose(root.gains, [0.238846, 0.0465247, 0.0159198, 0.0140632], rtol=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_one_pick_at_a_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((70, 3)), rng.uniform(0.3, 3.0, 70)
    Y = np.sin(X @ rng.standard_normal((3, 2)))
    basis, pool = [0, 1, 2, 3], list(range(10, 50))
    sums = root_sums(X, Y, basis, pool, weights)
    found = root_picks(sums, Mixture(0.7), 10, scale=np.ones(2), diagonal=np.ones(40), pivot_tolerance=1e-12)
    K = naive.gaussian(X, X, 1.0)
    expected = naive.greedy(K, [pool] * 10, naive.prediction, basis, Y=Y, rho=0.0, kappa=0.7, weights=weights)
    assert [pool[i] for i in found.order] == expected.picks
    np.testing.assert_allclose(found.gains, expected.scores, rtol=1e-7)


def test_split_pools() -> None:
    root, gram = both(CARD.X, CARD.y, [], CARD.pool, 4, 0.0, groups=np.arange(12) // 3)
    assert [CARD.pool[i] for i in root.order] == [17, 38, 12, 33]
    np.testing.assert_array_equal(root.order, gram.order)


def test_the_hard_case_needs_no_fresh_sums() -> None:
    """ALGORITHMS 1.3: 120 picks out of a smooth pool of 200 in one pass, all right, and the trace to six digits."""
    X = 2 * smooth_pool() / 1.5
    sums = root_sums(X, None, [], list(range(200)))
    found = root_picks(sums, FunctionSpace(), 120, scale=np.zeros(0), diagonal=np.ones(200), pivot_tolerance=1e-12)
    K = naive.gaussian(X, X, 1.0)
    assert found.order.tolist() == right_picks(K, 120)
    for t in (20, 60, 100):
        left = 200 - found.trace_gains[:t].sum()
        np.testing.assert_allclose(left, naive.residual_trace(K, found.order[:t].tolist()), rtol=1e-6, atol=1e-9)


def test_duplicates_end_with_the_rank() -> None:
    X = np.repeat(np.random.default_rng(1).standard_normal((6, 2)), 4, axis=0)
    sums = root_sums(X, X[:, :1], [], list(range(24)))
    found = root_picks(sums, Mixture(0.5), 24, scale=np.ones(1), diagonal=np.ones(24), pivot_tolerance=1e-12)
    assert found.ended == "rank"
    assert len(np.unique(X[found.order], axis=0)) == len(found.order) == 6
