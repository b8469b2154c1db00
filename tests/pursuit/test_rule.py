"""Matching pursuit over sweeps: the picks of a pursuit that reads every row for each of them."""

from __future__ import annotations

import random
from typing import Any

import dask.array as da
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.pursuit import matching_pursuit
from pursuit.pursuits import pools_of, problem_of, run
from strategies import chunkings, few_examples, seeds

from streamkernel.engine import ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Sigmoid
from streamkernel.pursuit import VARIANTS, MatchingPursuit, Pools
from streamkernel.table import open_table

CARD = naive.card()
RNG = np.random.default_rng(3)
X = RNG.standard_normal((300, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2, np.ones(300)])[:, :2] + 0.1 * RNG.standard_normal(
    (300, 2)
)
KERNELS = {"gaussian": Gaussian(1.0), "sigmoid": Sigmoid(gamma=0.7, coef0=-0.3)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_full_and_with_all_rows_in_every_sub_pool(variant: str) -> None:
    """Stochastic pursuit with s = m is pursuit itself, and that the whole dictionary in one sweep."""
    from pursuit.test_pursue import PRINTED

    for pools in (Pools("full"), Pools("split", candidates=40), Pools("shared", candidates=40, picks=4)):
        found, session = run(MatchingPursuit(variant, pools=pools, constant=False), CARD.X, CARD.y, 6)
        picks, rss = PRINTED[variant]
        assert found.path.rows.tolist() == picks
        np.testing.assert_allclose(found.path.rss[1:, 0], rss, rtol=5e-6)
        assert len(session.records) == {"full": 2, "split": 7, "shared": 3}[pools.kind]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["shared", "split"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_pools_are_one_at_a_time_on_the_same_pools(variant: str, kind: str, kernel: str) -> None:
    rule = MatchingPursuit(variant, pools=Pools(kind, candidates=9, picks=4), constant=False)
    found, session = run(rule, X, Y[:, 0], 12, KERNELS[kernel], seed=5)
    steps, known = [], []
    chosen: list[int] = []
    K = KERNELS[kernel](X)
    assert len(session.records) == 4
    for round_, rows in enumerate(pools_of(rule, X, Y[:, 0], 12, seed=5)):
        # What was chosen before is left out, but by basic.
        pool = [row for row in rows if variant == "basic" or row not in chosen][:36]
        of_picks = [sorted(pool[9 * j : 9 * j + 9]) for j in range(4)] if kind == "split" else [sorted(pool)] * 4
        if variant == "basic" and kind == "shared":
            # There the functions that are in the sums anyway compete, too.
            of_picks = [[*chosen, *(row for row in sorted(pool) if row not in chosen)]] * 4
        steps += of_picks
        known += [pool]
        chosen += [row for row in found.path.rows[4 * round_ : 4 * round_ + 4].tolist() if row not in chosen]
    oracle = matching_pursuit(K, Y[:, 0], steps, variant)
    assert found.path.rows.tolist() == oracle.picks
    np.testing.assert_allclose(found.path.rss[:, 0], oracle.rss, rtol=1e-8)
    np.testing.assert_allclose(found.stages.coefficients, oracle.coefficients[found.basis.rows], rtol=1e-5, atol=1e-7)
    if kind == "shared":
        np.testing.assert_array_equal(found.path.weakness, 1.0)
    else:
        assert (found.path.weakness < 1.0).any()


@few_examples(0.3)
@given(data=st.data(), seed=seeds, variant=st.sampled_from(VARIANTS), draw=st.sampled_from(["uniform", "residual"]))
def test_any_chunking_and_any_number_of_threads(data: st.DataObject, seed: int, variant: str, draw: str) -> None:
    rule = MatchingPursuit(variant, pools=Pools("split", draw, 8, 3), validation=0.2)
    whole, _ = run(rule, X, Y, 7, seed=seed % 1000)
    cut = tuple(data.draw(chunkings(300)))
    order = random.Random(seed)
    executor = ThreadExecutor(3, lambda leaves: order.sample(leaves, len(leaves)))
    rows = da.from_array(X, chunks=(cut, 3))
    again, _ = run(rule, rows, da.from_array(Y, chunks=(cut, 2)), 7, seed=seed % 1000, executor=executor)
    np.testing.assert_array_equal(again.path.rows, whole.path.rows)
    np.testing.assert_allclose(again.path.rss, whole.path.rss, rtol=1e-9)
    np.testing.assert_allclose(again.path.validation, whole.path.validation, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("constant", [True, False])
def test_every_size_of_the_path_on_both_kinds_of_rows(variant: str, constant: bool, kernel: str) -> None:
    """Errors along the path are those of the predictions of each stage, on the rows fitted and on those held out."""
    rule = MatchingPursuit(variant, pools=Pools("shared", picks=4), constant=constant, validation=0.3)
    found, _ = run(rule, X, Y + 5.0, 10, KERNELS[kernel])
    problem = problem_of(open_table(X, Y), 10)
    held = rule.held_out(problem).of(problem.table.read(0, 300))
    assert (found.path.fitted_rows, found.path.validation_rows) == (300 - held.sum(), held.sum())
    assert 60 < held.sum() < 120
    assert not held[found.path.rows].any()
    terms = found.stages.terms
    values = found.stages.values(KERNELS[kernel](X, X[found.basis.rows]))
    errors = (Y + 5.0)[:, None] - values
    for rows, path in ((~held, found.path.rss), (held, found.path.validation)):
        np.testing.assert_allclose((errors[rows] ** 2).sum(axis=0), path[: terms + 1], rtol=1e-6)
    assert terms == max(1, int(found.path.validation.sum(axis=1).argmin()))
    np.testing.assert_allclose(
        values[:, -1],
        KERNELS[kernel](X, X[found.basis.rows]) @ found.stages.coefficients + found.stages.intercept,
        rtol=1e-7,
        atol=1e-7,
    )
    if constant and variant != "basic":
        residual = errors[~held, -1]
        columns = np.column_stack([np.ones((~held).sum()), KERNELS[kernel](X[~held], X[found.basis.rows])])
        assert np.abs(columns.T @ residual).max() < 1e-7 * np.linalg.norm(columns) * np.linalg.norm(residual)


def test_the_form_of_the_sums_does_not_matter() -> None:
    """Gram matrix of whitened columns, as of large tables; root of the raw ones, as where the pool is the table."""
    found, _ = run(MatchingPursuit(pools=Pools("shared", candidates=10, picks=10)), X, Y, 40)
    rooted, _ = run(MatchingPursuit(pools=Pools("shared", candidates=10, picks=10)), X, Y, 40, Gaussian(1.0) + _Raw())
    np.testing.assert_array_equal(found.path.rows, rooted.path.rows)
    np.testing.assert_allclose(found.path.rss, rooted.path.rss, rtol=1e-8)
    assert rooted.squares is None
    certificate = found.trace - found.squares.sum()
    assert certificate == pytest.approx(naive.residual_trace(Gaussian(1.0)(X), found.basis.rows), rel=1e-8)


class _Raw(Sigmoid):
    """Nothing, and not positive definite."""

    def __init__(self) -> None:
        super().__init__(gamma=1e-30, coef0=0.0)


def test_residual_weighted_pools_are_where_the_residual_is() -> None:
    """All but a few rows are explained by the constant: after the first sweep those few are the candidates."""
    spikes = np.arange(10, 300, 30)
    y = np.zeros(300)
    y[spikes] = 1.0 + np.arange(10)
    rule = MatchingPursuit(pools=Pools("shared", "residual", candidates=5, picks=2), constant=False)
    found, session = run(rule, X, y, 8, Gaussian(0.1))
    assert len(session.records) == 5
    assert np.isin(found.path.rows[2:], spikes).sum() >= 5
    assert len(set(found.path.rows.tolist())) == 8


def test_early_stopping_keeps_the_best_size() -> None:
    noise = np.random.default_rng(0).standard_normal(300)
    rule = MatchingPursuit(pools=Pools("shared", picks=3), validation=0.4, patience=4)
    found, session = run(rule, X, noise, 100)
    assert found.ended == "validation"
    assert found.path.terms < 20
    assert len(found.basis) == found.stages.terms < found.path.terms
    assert len(session.records) == 1 + found.path.terms // 3


def test_two_classes_are_signs_and_more_are_indicators() -> None:
    labels = np.where(Y[:, 0] > 0, "b", "a")
    rule = MatchingPursuit(pools=Pools("full"))
    two, _ = run(rule, X, labels, 9, classify=True)
    signs, _ = run(rule, X, np.where(labels == "b", 1.0, -1.0), 9)
    np.testing.assert_array_equal(two.path.rows, signs.path.rows)
    np.testing.assert_allclose(two.stages.coefficients, signs.stages.coefficients, rtol=1e-8)
    three = np.digitize(Y[:, 0], [-0.5, 0.5])
    found, _ = run(rule, X, three, 9, classify=True)
    same, _ = run(rule, X, np.eye(3)[three], 9)
    np.testing.assert_array_equal(found.path.rows, same.path.rows)
    np.testing.assert_allclose(found.path.rss, same.path.rss, rtol=1e-9)


def test_the_rank_ends_it() -> None:
    few = X[np.arange(60) % 7]
    for kind in ("full", "shared"):
        found, _ = run(MatchingPursuit(pools=Pools(kind)), few, Y[:60, 0], 20)
        assert found.ended in ("rank", "tolerance")
        assert len(found.basis) <= 7


def test_a_tolerance() -> None:
    found, _ = run(MatchingPursuit(pools=Pools("full")), X, Y, 100, tol=0.05)
    relative = found.path.rss.sum(axis=1) / found.path.rss[0].sum()
    assert found.ended == "tolerance"
    assert relative[-1] <= 0.05 < relative[-2]


def test_no_rows_to_watch() -> None:
    with pytest.raises(ParameterError, match="holds out 0 of 3 rows"):
        run(MatchingPursuit(validation=1e-6), X[:3], Y[:3], 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "several"}, "pool must be one of"),
        ({"draw": "greedy"}, "draw must be one of"),
        ({"candidates": 0}, "candidates"),
        ({"picks": 1.5}, "picks"),
        ({"eps": 0.0}, "eps"),
        ({"kind": "full", "picks": 3}, "full"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Pools(**options)


def test_the_papers_sub_pools_and_few_sweeps() -> None:
    """59 and 228 candidates; a thousand terms in forty sweeps."""
    assert Pools("split").each(1000, 10**6) == 59
    assert Pools("split", eps=0.01, quantile=0.98).each(1000, 10**6) == 228
    assert Pools("shared").in_sweep(1000, 10**6) == 25
    assert Pools("split").in_sweep(1000, 100) == 2
