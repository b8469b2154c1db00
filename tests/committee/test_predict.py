"""Committees of exact members against the papers' products of the members' own posteriors."""

from __future__ import annotations

import random
from itertools import permutations, product
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from committees import CARD, CARD_PARTS, Committee, basis_at, friendly
from hypothesis import given
from hypothesis import strategies as st
from problems import table_of_chunks
from slow_cases import slow_but
from thread_clients import thread_client

from streamkernel.committee import (
    CommitteePrediction,
    committee_predict,
    fit_generalised_committee,
    predict,
    prediction_steps,
)
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import DataError, NonFiniteDataError, NumericalError, ParameterError, ShapeError
from streamkernel.kernels import Gaussian, Linear
from streamkernel.reductions import stream_generator
from streamkernel.reductions.members.combiners import COMBINERS
from streamkernel.reductions.members.weights import MemberWeights
from streamkernel.reductions.sums import BlockNoise, GaussianEquations
from streamkernel.table import Table, open_table

PRODUCTS = ["poe", "gpoe", "bcm", "rbcm"]


def asked(c: Committee, combiner: str, block_size: int, table: Table | None = None, **more: Any) -> CommitteePrediction:
    options = {"partition": "rows"} | more
    return committee_predict(
        c.table if table is None else table,
        c.kernel,
        c.signal,
        c.noise,
        c.queries,
        combiner=combiner,
        block_size=block_size,
        **options,
    )


def exact(c: Committee) -> tuple[Any, Any]:
    mean, covariance = c.posteriors([range(len(c.X))])[0]
    return mean, np.diag(covariance)


def assert_says(found: CommitteePrediction, mean: Any, variance: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found.mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.latent_variance, np.broadcast_to(np.atleast_2d(variance).T, found.mean.shape),
                               rtol=tolerance, atol=tolerance)  # fmt: skip
    np.testing.assert_allclose(found.variance, found.latent_variance + found.noise, rtol=1e-15)


@pytest.mark.parametrize("combiner", PRODUCTS)
@pytest.mark.parametrize("block_size", [1, 7, 20])
def test_a_committee_is_the_product_of_its_members(combiner: str, block_size: int) -> None:
    c = friendly()
    prior = np.full(len(c.queries), c.signal)
    parts = naive.member_rows(len(c.X), block_size)
    found = asked(c, combiner, block_size)
    assert found.members == len(parts)
    assert_says(found, *naive.combine_members(combiner, prior, *c.moments(parts)))


def test_the_bcm_of_one_query_is_tresps() -> None:
    c = friendly(q=1)
    parts = naive.member_rows(len(c.X), 9)
    mean, covariance = naive.bayesian_committee(c.K_qq, c.posteriors(parts))
    assert_says(asked(c, "bcm", 9), mean, np.diag(covariance))


@pytest.mark.parametrize("communication", [12, 20])
def test_generalised_robust(communication: int) -> None:
    c = friendly(m=70)
    found = asked(c, "grbcm", 10, communication=communication, seed=5)
    shared = np.sort(stream_generator(5, predict._SHARED).choice(70, communication, replace=False))
    parts = [sorted({*rows} - {*shared.tolist()}) for rows in naive.member_rows(70, 10)]
    parts = [part for part in parts if part]
    assert found.members == len(parts)
    base = c.moments([shared])
    means, variances = c.moments([[*shared, *part] for part in parts])
    assert_says(found, *naive.generalised_robust_committee((base[0][0], base[1][0]), means, variances))


def test_generalised_robust_gives_the_first_member_that_has_rows_of_its_own_weight_one() -> None:
    c = friendly(m=12)
    seed = next(
        seed for seed in range(500)
        if {0, 1, 2} <= {*stream_generator(seed, predict._SHARED).choice(12, 5, replace=False).tolist()}
    )  # fmt: skip
    shared = np.sort(stream_generator(seed, predict._SHARED).choice(12, 5, replace=False))
    parts = [part for rows in naive.member_rows(12, 3) if (part := sorted({*rows} - {*shared.tolist()}))]
    assert len(parts) == 3
    base = c.moments([shared])
    expected = naive.generalised_robust_committee(
        (base[0][0], base[1][0]), *c.moments([[*shared, *part] for part in parts])
    )
    assert_says(asked(c, "grbcm", 3, communication=5, seed=seed), *expected)


@pytest.mark.parametrize("combiner", ["poe", "gpoe", "bcm", "grbcm"])
def test_one_member_is_the_exact_process(combiner: str) -> None:
    c = friendly()
    assert_says(asked(c, combiner, 60), *exact(c))
    assert_says(asked(c, combiner, 1000), *exact(c))


def test_shared_rows_and_one_member_are_the_exact_process() -> None:
    c = friendly()
    assert_says(asked(c, "grbcm", 60, communication=23), *exact(c))


def test_the_robust_bcm_of_one_member_is_between_it_and_the_prior() -> None:
    # Deisenroth & Ng's weight of the only member is its entropy, not 1.
    c = friendly()
    mean, variance = exact(c)
    found = asked(c, "rbcm", 60)
    prior = np.full(len(c.queries), c.signal)
    assert_says(found, *naive.combine_members("rbcm", prior, mean[None], variance[None]))
    assert not np.allclose(found.mean, mean, rtol=1e-3)


@pytest.mark.parametrize("combiner", PRODUCTS)
def test_the_order_of_the_members_does_not_matter(combiner: str) -> None:
    c = friendly(m=24)
    expected = asked(c, combiner, 8)
    for order in permutations(range(3)):
        rows = np.concatenate([np.arange(8 * i, 8 * i + 8) for i in order])
        found = asked(Committee(c.X[rows], c.Y[rows], c.queries, c.lengthscale, c.signal, c.noise), combiner, 8)
        assert_says(found, expected.mean, expected.latent_variance[:, 0], 1e-12)


@given(seed=st.integers(0, 2**32 - 1), block_size=st.integers(1, 30), data=st.data())
def test_duplicates_in_rows_and_queries(seed: int, block_size: int, data: st.DataObject) -> None:
    c = friendly(m=25, q=5, d=1, seed=seed)
    rng = np.random.default_rng(seed)
    c.X[rng.integers(0, 25, 10)] = c.X[0]
    c.queries[:3] = c.X[0]
    combiner = data.draw(st.sampled_from(PRODUCTS))
    prior = np.full(5, c.signal)
    expected = naive.combine_members(combiner, prior, *c.moments(naive.member_rows(25, block_size)))
    assert_says(asked(c, combiner, block_size), *expected, 1e-8)
    shared = asked(c, "grbcm", block_size, communication=8, seed=seed)
    assert np.isfinite(shared.mean).all()
    assert (shared.latent_variance > 0).all()
    np.testing.assert_allclose(shared.mean[:3], np.broadcast_to(shared.mean[0], (3, 1)), rtol=1e-9, atol=1e-12)


def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


# What combines the members sees none of their rows: members of cells are those of one combiner.
@pytest.mark.parametrize(
    ("partition", "combiner"),
    slow_but(
        {*product(["rows"], COMBINERS), ("cells", "grbcm")},
        product(["rows", "cells"], COMBINERS),
    ),
)
def test_chunks_and_workers_do_not_matter(combiner: str, partition: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3_000, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
    c = Committee(X, y[:, None], rng.standard_normal((20, 2)))
    found = [asked(c, combiner, 130, partition=partition, seed=2)]
    for chunk in (350, 2000):
        table = table_of_chunks(tmp_path / f"{chunk}.zarr", X, y, chunk)
        runs = [
            asked(c, combiner, 130, table, partition=partition, seed=2, session=Session(executor))
            for executor in (ThreadExecutor(1), ThreadExecutor(3, shuffled))
        ]
        assert runs[0].mean.tobytes() == runs[1].mean.tobytes()
        assert runs[0].variance.tobytes() == runs[1].variance.tobytes()
        found.append(runs[0])
    assert len({run.members for run in found}) == 1
    for run in found[1:]:
        assert_says(run, found[0].mean, found[0].latent_variance[:, 0], 1e-11)


def test_workers_of_a_cluster_give_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((6000, 2))
    y = (np.sin(X).sum(axis=1) > 0) * 1.0
    table = table_of_chunks(tmp_path / "rows.zarr", X, y, 1000)
    basis, queries = basis_at(X[:9]), X[:20] + 0.1

    def bits(session: Session) -> list[bytes]:
        shared = committee_predict(
            table, Gaussian(1.0), 1.0, 0.1, queries, combiner="grbcm", block_size=90, session=session
        )
        classes = fit_generalised_committee(table, basis, "bernoulli", 1.0, block_size=90, session=session)
        work = MemberWeights(GaussianEquations(basis, np.zeros(1), BlockNoise(1.0, 0.1, 90)), table.n_rows)
        weights = session.sweep(work, table, "weights").weights
        return [found.tobytes() for found in (shared.mean, classes.sums.H, weights)]

    with thread_client() as client:
        assert bits(Session(ClusterExecutor(client))) == bits(Session(ThreadExecutor(1)))


def test_members_by_cells() -> None:
    c = friendly(m=50)
    centres = c.X[[3, 30, 41]]
    distances = ((c.X[:, None] - centres[None]) ** 2).sum(axis=2)
    parts = naive.cell_members(distances, 2, 32)
    prior = np.full(len(c.queries), c.signal)
    found = asked(c, "rbcm", 2, partition=centres)
    assert found.members == len(parts)
    assert_says(found, *naive.combine_members("rbcm", prior, *c.moments(parts)))


@pytest.mark.parametrize("combiner", COMBINERS)
def test_many_queries_are_asked_in_slices(combiner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    c = friendly(q=2500)
    session = Session()
    whole = asked(c, combiner, 20, session=session)
    monkeypatch.setattr(predict, "_QUERIES", 1024)
    more = Session()
    parts = asked(c, combiner, 20, session=more)
    assert len(more.records) == len(session.records) + 2
    assert_says(parts, whole.mean, whole.latent_variance[:, 0], 1e-12)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_weights_are_so_many_rows(combiner: str) -> None:
    """A row of weight w is a mean of w equal rows (card 7), one of weight 0 is none."""
    c = friendly(m=20)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, 20)
    rows = np.repeat(np.arange(20), counts)
    repeated = Committee(c.X[rows], c.Y[rows], c.queries, c.lengthscale, c.signal, c.noise)
    weighted = open_table(c.X, c.Y, weights=counts.astype(np.float64))
    expected = asked(repeated, combiner, 100)
    assert_says(asked(c, combiner, 20, weighted), expected.mean, expected.latent_variance[:, 0], 1e-9)


@pytest.mark.parametrize("combiner", PRODUCTS)
def test_weights_of_several_members(combiner: str) -> None:
    c = friendly(m=20)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, 20)
    expected = naive.combine_members(
        combiner, np.full(len(c.queries), c.signal), *c.moments(naive.member_rows(20, 6), weights)
    )
    assert_says(asked(c, combiner, 6, open_table(c.X, c.Y, weights=weights)), *expected)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_far_away_all_but_the_product_of_experts_say_the_prior(combiner: str) -> None:
    c = friendly()
    far = Committee(c.X, c.Y, c.queries + 100.0, c.lengthscale, c.signal, c.noise)
    found = asked(far, combiner, 10, centre=[3.0, -2.0])
    variance = c.signal / 6 if combiner == "poe" else c.signal
    assert_says(found, np.broadcast_to([3.0, -2.0], (7, 2)), np.full(7, variance), 1e-12)


def test_centre_and_scale() -> None:
    c = friendly()
    scale, centre = np.array([3.0, 0.2]), np.array([5.0, -1.0])
    plain = asked(c, "gpoe", 15)
    found = asked(c, "gpoe", 15, open_table(c.X, c.Y * scale + centre), centre=centre, scale=scale)
    np.testing.assert_allclose(found.mean, plain.mean * scale + centre, rtol=1e-12)
    np.testing.assert_allclose(found.variance, plain.variance * scale**2, rtol=1e-12)
    np.testing.assert_allclose(found.noise, c.noise * scale**2)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_a_query_where_the_prior_knows_all(combiner: str) -> None:
    """A linear kernel has no variance at 0."""
    c = friendly()
    queries = np.concatenate([np.zeros((1, 3)), c.queries])
    found = committee_predict(c.table, Linear(), 1.0, 0.1, queries, combiner=combiner, block_size=20)
    assert found.mean[0] == pytest.approx([0.0, 0.0])
    assert found.latent_variance[0] == pytest.approx([0.0, 0.0])
    assert (found.latent_variance[1:] > 0).all()


def test_a_slice_of_a_table_counts_its_members_from_its_own_first_row() -> None:
    c = friendly(m=40)
    inner = Committee(c.X[7:33], c.Y[7:33], c.queries, c.lengthscale, c.signal, c.noise)
    for combiner in PRODUCTS:
        found, expected = asked(c, combiner, 8, c.table.slice(7, 33)), asked(inner, combiner, 8)
        assert_says(found, expected.mean, expected.latent_variance[:, 0], 1e-12)
    found, expected = asked(c, "grbcm", 8, c.table.slice(7, 33)), asked(inner, "grbcm", 8)
    assert_says(found, expected.mean, expected.latent_variance[:, 0], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("combiner", ["rbcm", "grbcm"])
@pytest.mark.parametrize("partition", ["rows", "cells"])
@pytest.mark.parametrize("queries", [20, 5000])
def test_the_plan_knows_the_sweeps(combiner: str, partition: str, queries: int) -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((3000, 4)), rng.standard_normal((queries, 4))
    table, session = open_table(X, X[:, 0]), Session()
    options: dict[str, Any] = {"combiner": combiner, "block_size": 1500, "partition": partition}
    committee_predict(table, Gaussian(1.0), 1.0, 0.1, Q, session=session, **options)
    steps = prediction_steps(table, Gaussian(1.0), queries, **options)
    assert sum(step.times for step in steps if step.where == "sweep") == len(session.records)
    # A member of 1,500 rows: its covariance at least, and never a number for every row and query.
    assert 8 * 1500**2 < steps[-1].scratch_bytes < 8 * 3000 * 20_000
    assert steps[-1].state_bytes == 8 * (3 * steps[-1].kernel_columns + 1)


def test_single_precision_rows_are_exact() -> None:
    c = friendly()
    X = c.X.astype(np.float32)
    rounded = Committee(X.astype(np.float64), c.Y, c.queries, c.lengthscale, c.signal, c.noise)
    found, expected = asked(c, "rbcm", 12, open_table(X, c.Y)), asked(rounded, "rbcm", 12)
    assert_says(found, expected.mean, expected.latent_variance[:, 0], 1e-12)


def test_what_is_refused() -> None:
    c = friendly()
    with pytest.raises(ParameterError, match="choose one of poe, gpoe, bcm, rbcm, grbcm"):
        asked(c, "vote", 10)
    with pytest.raises(ParameterError, match="choose one of rows, cells, or centres"):
        asked(c, "bcm", 10, partition="clusters")
    with pytest.raises(ParameterError, match="block_size"):
        asked(c, "bcm", 0)
    with pytest.raises(ParameterError, match="noise = 0"):
        committee_predict(c.table, c.kernel, 1.0, 0.0, c.queries)
    with pytest.raises(DataError, match="needs targets"):
        asked(c, "bcm", 10, open_table(c.X))
    with pytest.raises(NonFiniteDataError, match="NaN or infinity"):
        committee_predict(c.table, c.kernel, 1.0, 0.1, np.full((2, 3), np.nan))
    with pytest.raises(ShapeError, match="at least one"):
        committee_predict(c.table, c.kernel, 1.0, 0.1, np.zeros((0, 3)))
    with pytest.raises(ShapeError, match="4 columns"):
        committee_predict(c.table, c.kernel, 1.0, 0.1, np.zeros((2, 4)))


@pytest.mark.parametrize("combiner", ["bcm", "grbcm"])
def test_noise_that_is_lost_is_refused_with_the_rows(combiner: str) -> None:
    X = np.repeat(np.linspace(0.0, 1.0, 10)[:, None], 4, axis=0)
    with pytest.raises(NumericalError, match=r"rows of \d+:\d+, is not positive definite .* give a noise variance of"):
        committee_predict(open_table(X, X[:, 0]), Gaussian(1.0), 1.0, 1e-30, X[:1], combiner=combiner, block_size=20)


def test_members_are_those_of_the_other_committee() -> None:
    """With query points far apart of each other the BCM at query points is that of each query for itself."""
    c = Committee(CARD.X, CARD.y[:, None], np.array([[0.5, -0.2], [60.0, 0.0], [0.0, 90.0]]))
    posteriors = c.posteriors(CARD_PARTS)
    mean, covariance = naive.bayesian_committee(c.K_qq, posteriors)
    assert_says(asked(c, "bcm", 10), mean, np.diag(covariance))
