"""Matching pursuit in memory: the card's numbers, the oracle's, and the invariants of ALGORITHMS 4."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.pursuit import matching_pursuit
from strategies import seeds

from streamkernel.errors import ParameterError
from streamkernel.pursuit import VARIANTS, pursue

CARD = naive.card()
y = CARD.y[:, None]

# ALGORITHMS 4, printed: picks, and |r|^2 after each.
PRINTED: dict[str, tuple[list[int], list[float]]] = {
    "basic": ([27, 29, 36, 9, 22, 36], [19.5645, 2.63163, 1.79622, 1.38947, 1.14150, 1.05464]),
    "back-fitting": ([27, 29, 36, 22, 20, 37], [19.5645, 2.63051, 1.60293, 1.05057, 0.902085, 0.825146]),
    "pre-fitting": ([27, 29, 36, 0, 9, 30], [19.5645, 2.63051, 1.60293, 0.987098, 0.795937, 0.591752]),
}


def dictionary(seed: int, rows: int = 30, columns: int = 12, targets: int = 1) -> tuple[Any, Any]:
    """Columns of unequal lengths, one nearly dependent on others; targets."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((rows, columns)) * np.exp(rng.standard_normal(columns))
    D[:, -1] = D[:, :3] @ rng.standard_normal(3) + 1e-3 * rng.standard_normal(rows)
    return D, rng.standard_normal((rows, targets)) @ np.diag(rng.uniform(0.5, 2, targets))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_printed_picks_and_residuals(variant: str) -> None:
    picks, rss = PRINTED[variant]
    found = pursue(CARD.K, y, 6, variant=variant)
    assert found.order.tolist() == picks
    np.testing.assert_allclose(found.rss[:, 0], [47.2507, *rss], rtol=5e-6)
    np.testing.assert_array_equal(found.weakness, 1.0)
    assert found.ended == "count"


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=seeds, targets=st.integers(1, 3), split=st.booleans(), shrinkage=st.sampled_from([1.0, 0.3]))
def test_one_at_a_time(variant: str, seed: int, targets: int, split: bool, shrinkage: float) -> None:
    shrinkage = shrinkage if variant == "basic" else 1.0
    D, Y = dictionary(seed, targets=targets)
    groups = np.arange(12) % 4 if split else None
    pools = [list(range(j, 12, 4)) for j in range(4)] if split else [list(range(12))] * 4
    found = pursue(D, Y, 4, variant=variant, shrinkage=shrinkage, groups=groups)
    oracle = matching_pursuit(D, Y, pools, variant, shrinkage=shrinkage, known=range(12))
    assert found.order.tolist() == oracle.picks
    np.testing.assert_allclose(found.rss.sum(axis=1), oracle.rss, rtol=1e-9)
    np.testing.assert_allclose(found.weakness, oracle.weakness, rtol=1e-7)
    if variant == "basic":
        steps = np.zeros((12, targets))
        np.add.at(steps, found.order, found.steps)
        np.testing.assert_allclose(steps, oracle.coefficients, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=seeds)
def test_what_is_left_never_grows_and_gains_are_what_it_falls_by(variant: str, seed: int) -> None:
    D, Y = dictionary(seed, targets=2)
    found = pursue(D, Y, 10, variant=variant)
    assert (np.diff(found.rss.sum(axis=1)) <= 0).all()
    np.testing.assert_allclose(found.gains, -np.diff(found.rss.sum(axis=1)), rtol=1e-9, atol=1e-12)
    first = {pursue(D, Y, 1, variant=other).order[0] for other in VARIANTS}
    assert first == {found.order[0]}


@given(seed=seeds)
def test_least_squares_on_what_was_picked(seed: int) -> None:
    """Back- and pre-fitting of all columns end with the same; the residual is orthogonal to what was picked."""
    D, Y = dictionary(seed)
    ends = {}
    for variant in ("back-fitting", "pre-fitting"):
        found = pursue(D, Y, 12, variant=variant)
        for size in (3, len(found)):
            a, _, rank, _ = np.linalg.lstsq(D[:, found.order[:size]], Y, rcond=1e-15)
            assert rank == size
            left = Y - D[:, found.order[:size]] @ a
            np.testing.assert_allclose(found.rss[size], (left**2).sum(axis=0), rtol=1e-8)
        ends[variant] = found.rss[-1]
        assert sorted(found.order) == list(range(12))
    np.testing.assert_allclose(ends["back-fitting"], ends["pre-fitting"], rtol=1e-8)


def test_pre_fitting_is_csi_of_the_targets_alone() -> None:
    path = naive.csi_exact(CARD.K, [range(40)] * 6, CARD.y, kappa=1.0)
    found = pursue(CARD.K, y, 6)
    assert found.order.tolist() == list(path.picks)
    np.testing.assert_allclose(found.gains / (CARD.y**2).sum(), path.scores, rtol=1e-6)


@pytest.mark.parametrize("shrinkage", [1.0, 0.5, 0.01])
def test_shrinkage_takes_its_share_of_the_score(shrinkage: float) -> None:
    """|r_new|^2 = |r|^2 - t (2 - t) (d'r)^2 / |d|^2; 1 is basic itself."""
    found = pursue(CARD.K, y, 9, variant="basic", shrinkage=shrinkage)
    r = y.copy()
    for i, before, after in zip(found.order, found.rss, found.rss[1:], strict=False):
        d = CARD.K[:, i]
        score = (d @ r[:, 0]) ** 2 / (d @ d)
        np.testing.assert_allclose(before - after, shrinkage * (2 - shrinkage) * score, rtol=1e-9)
        r[:, 0] -= shrinkage * (d @ r[:, 0]) / (d @ d) * d
    if shrinkage == 1.0:
        plain = pursue(CARD.K, y, 9, variant="basic")
        np.testing.assert_array_equal(found.order, plain.order)
        np.testing.assert_array_equal(found.rss, plain.rss)


def test_dependent_columns_are_left_out() -> None:
    D = np.column_stack([CARD.K[:, [3, 3, 8]], CARD.K[:, 3] + CARD.K[:, 8], np.zeros(40)])
    for variant in ("back-fitting", "pre-fitting"):
        found = pursue(D, y, 5, variant=variant)
        assert found.ended == "rank"
        assert len(found) == 2
    assert 4 not in pursue(D, y, 50, variant="basic").order


def test_the_end() -> None:
    assert pursue(CARD.K, y, 40, stop_at=1.0).rss[-2:, 0].tolist() == pytest.approx([1.60293, 0.987098], rel=1e-5)
    assert pursue(CARD.K, np.zeros((40, 1)), 3).ended == "residual"
    exact = pursue(CARD.K, CARD.K[:, [7]], 9)
    assert (exact.order.tolist(), exact.ended) == ([7], "residual")


def test_many_picks_on_a_smooth_kernel_keep_their_digits() -> None:
    """A dictionary whose functions nearly depend on each other, to the last one that does not."""
    X = np.linspace(-1, 1, 60)[:, None]
    K = naive.gaussian(X, X, 0.4)
    Y = np.sin(9 * X) + np.sign(X)
    found = pursue(K, Y, 60)
    assert found.ended == "rank"
    assert len(found) > 9
    oracle = matching_pursuit(K, Y, [range(60)] * len(found), "pre-fitting")
    np.testing.assert_allclose(found.rss[:, 0], oracle.rss, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "orthogonal"}, "one of pre-fitting"),
        ({"variant": "basic", "shrinkage": 0.0}, "> 0 and <= 1"),
        ({"variant": "basic", "shrinkage": float("nan")}, "> 0 and <= 1"),
        ({"shrinkage": 0.5}, "means nothing to pre-fitting"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        pursue(CARD.K, y, 3, **options)


def test_what_is_left_of_a_column_is_measured_before_it_decides() -> None:
    """Updates leave 1e-9 of either column with seven digits; their scores differ in the ninth."""
    for seed in range(20):
        a, b = np.random.default_rng(seed).uniform(0.5, 1.5, 2)
        D = np.array([[1.0, a, b], [0.0, -3e-5, 0.0], [0.0, 0.0, -3e-5]])
        found = pursue(D, np.array([[10.0], [1.0], [1.0 + 1e-9]]), 2)
        assert found.order.tolist() == [0, 2]
