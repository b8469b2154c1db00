"""The Bayesian committee machine at query points: sums of one sweep, Kalman filter, and Tresp's eqs. (8), (9)."""

from __future__ import annotations

from itertools import permutations

import naive
import numpy as np
import pytest
from committees import CARD, CARD_MEAN, CARD_PARTS, CARD_VARIANCE, Committee, basis_at, friendly, printed
from hypothesis import given
from hypothesis import strategies as st
from problems import table_of_chunks

from streamkernel.basis import Basis
from streamkernel.committee import OnlineCommittee
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NonFiniteDataError, NumericalError, ParameterError, ShapeError, ShapeMismatchError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.members.weights import MemberSums, MemberWeights
from streamkernel.reductions.sums import BlockNoise, DiagonalNoise, GaussianEquations, GaussianSums
from streamkernel.table import Table, open_table

ON_CARD = Committee(CARD.X, CARD.y[:, None], CARD.Xq)


def equations(c: Committee, block_size: int, basis: Basis | None = None) -> GaussianEquations:
    basis = basis_at(c.queries, c.kernel) if basis is None else basis
    return GaussianEquations(basis, np.zeros(c.Y.shape[1]), BlockNoise(c.signal, c.noise, block_size))


def sums_of(c: Committee, block_size: int, table: Table | None = None) -> GaussianSums:
    return Session(ThreadExecutor(1)).sweep(equations(c, block_size), c.table if table is None else table, "sums")


def at_queries(c: Committee, sums: GaussianSums) -> tuple[np.ndarray, np.ndarray]:
    """Lq A^-1 c and Lq A^-1 Lq' of the whitened sums: A = I + s H, c = sqrt(s) g."""
    L = np.sqrt(c.signal) * basis_at(c.queries, c.kernel).L
    A = np.eye(len(L)) + c.signal * sums.H
    return L @ np.linalg.solve(A, np.sqrt(c.signal) * sums.g), L @ np.linalg.solve(A, L.T)


def filtered(c: Committee, parts: list[list[int]], **more: float) -> OnlineCommittee:
    found = OnlineCommittee.start(basis_at(c.queries, c.kernel), c.signal, c.noise, np.zeros(c.Y.shape[1]))
    for part in parts:
        found = found.update(c.X[part], c.Y[part])
    return found


# ------------------------------------------------------------------------------------------------ the card's numbers
def test_printed_numbers() -> None:
    mean, covariance = at_queries(ON_CARD, sums_of(ON_CARD, 10))
    printed(mean[:, 0], CARD_MEAN)
    printed(np.diag(covariance), CARD_VARIANCE)
    online = filtered(ON_CARD, CARD_PARTS)
    printed(online.mean[:, 0], CARD_MEAN)
    printed(np.diag(online.covariance), CARD_VARIANCE)


def test_oracles_on_the_card() -> None:
    literal = naive.bayesian_committee(ON_CARD.K_qq, ON_CARD.posteriors(CARD_PARTS))
    kalman = naive.committee_kalman(ON_CARD.K_qq, ON_CARD.K_qm.T, ON_CARD.K, CARD.y, 0.1, CARD_PARTS)
    A, c = naive.committee_information(ON_CARD.K_qq, ON_CARD.K_qm.T, ON_CARD.K, CARD.y, 0.1, CARD_PARTS)
    for mean, covariance in (literal, kalman, naive.committee_moments(ON_CARD.K_qq, A, c)):
        printed(mean[:, 0], CARD_MEAN)
        printed(np.diag(covariance), CARD_VARIANCE)


# ------------------------------------------------------------------------------------------------------- identities
@given(seed=st.integers(0, 2**32 - 1), block_size=st.integers(1, 25), q=st.integers(1, 5))
def test_whitened_is_literal_and_online(seed: int, block_size: int, q: int) -> None:
    c = friendly(m=24, q=q, seed=seed)
    c.queries[:] = 2.5 * np.eye(5, 3)[:q] + 0.3 * c.queries  # well conditioned: apart of each other
    c.X[5:9] = c.X[4]
    parts = naive.member_rows(24, block_size)
    expected = naive.bayesian_committee(c.K_qq, c.posteriors(parts))
    online = filtered(c, parts)
    for mean, covariance in (at_queries(c, sums_of(c, block_size)), (online.mean, online.covariance)):
        np.testing.assert_allclose(mean, expected[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(covariance, expected[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("block_size", [1, 11, 60])
def test_online_is_batch(block_size: int) -> None:
    c = friendly(q=25)
    mean, covariance = at_queries(c, sums_of(c, block_size))
    online = filtered(c, naive.member_rows(60, block_size))
    assert online.count == 60
    np.testing.assert_allclose(online.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(online.covariance, covariance, rtol=0, atol=1e-10)
    assert (online.P == online.P.T).all()


def test_order_of_the_members() -> None:
    c = friendly(m=40)
    parts = naive.member_rows(40, 10)
    found = [filtered(c, list(order)) for order in permutations(parts)]
    for other in found[1:]:
        np.testing.assert_allclose(other.mean, found[0].mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(other.covariance, found[0].covariance, rtol=0, atol=1e-12)
        np.testing.assert_allclose(other.log_evidence, found[0].log_evidence, rtol=1e-12)


def test_one_member_is_the_exact_process_at_the_query_points() -> None:
    c = friendly()
    expected = c.posteriors([range(60)])[0]
    for mean, covariance in (at_queries(c, sums_of(c, 60)), at_queries(c, sums_of(c, 999))):
        np.testing.assert_allclose(mean, expected[0], atol=1e-10)
        np.testing.assert_allclose(covariance, expected[1], atol=1e-10)


def test_members_of_one_row_are_fitc() -> None:
    c = friendly()
    fitc = GaussianEquations(basis_at(c.queries, c.kernel), np.zeros(2), DiagonalNoise(c.signal, c.noise))
    expected, found = Session().sweep(fitc, c.table, "fitc"), sums_of(c, 1)
    for name in ("H", "g", "YY", "log_det"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, err_msg=name)


def test_what_is_between_the_query_points() -> None:
    c = friendly(q=12)
    online = filtered(c, naive.member_rows(60, 20))
    X = np.random.default_rng(9).standard_normal((5, 3))
    A, b = naive.committee_information(c.K_qq, c.K_qm.T, c.K, c.Y, c.noise, naive.member_rows(60, 20))
    V = np.linalg.solve(np.linalg.cholesky(c.K_qq), c.covariance(c.queries, X))
    mean, variance = online.moments(X)
    np.testing.assert_allclose(mean, V.T @ np.linalg.solve(A, b), rtol=1e-9)
    np.testing.assert_allclose(variance, c.signal - (V * V).sum(0) + (V * np.linalg.solve(A, V)).sum(0), rtol=1e-9)
    at_points = online.moments(c.queries)
    np.testing.assert_allclose(at_points[0], online.mean, atol=1e-9)
    np.testing.assert_allclose(at_points[1], np.diag(online.covariance), atol=1e-9)


def test_the_evidence_is_that_of_blocks_of_noise() -> None:
    c = friendly()
    parts = naive.member_rows(60, 20)
    unit = [naive.gaussian(A, B, c.lengthscale) for A, B in [(c.X, c.queries), (c.queries, c.queries), (c.X, c.X)]]
    R = unit[2] - unit[0] @ np.linalg.solve(unit[1], unit[0].T)
    Om = naive.conditional_covariance(R, c.noise, c.signal, parts)
    expected = naive.sparse_process(*unit, c.Y, Om, unit[1], unit[1], c.signal)
    online = filtered(c, parts)
    assert online.log_evidence == pytest.approx(expected.log_evidence.sum(), rel=1e-10)
    np.testing.assert_allclose(online.mean, expected.mean, atol=1e-9)


def test_a_prior_mean_is_taken_off() -> None:
    c = friendly()
    centre = np.array([10.0, -3.0])
    start = OnlineCommittee.start(basis_at(c.queries, c.kernel), c.signal, c.noise, centre)
    shifted, plain = start.update(c.X, c.Y + centre), filtered(c, [list(range(60))])
    np.testing.assert_allclose(shifted.mean, plain.mean + centre, atol=1e-10)
    assert shifted.log_evidence == pytest.approx(plain.log_evidence, rel=1e-10)
    assert start.update(c.X[:0], c.Y[:0]) is start


def test_small_noise_and_many_equal_rows_keep_the_covariance_positive() -> None:
    basis = basis_at(np.linspace(0, 1, 12)[:, None], Gaussian(0.3))
    online = OnlineCommittee.start(basis, 1.0, 1e-12)
    X = np.repeat(np.linspace(0, 1, 6)[:, None], 5, axis=0)
    for _ in range(50):
        online = online.update(X, np.sin(3 * X))
    assert np.linalg.eigvalsh(online.P).min() > 0
    np.testing.assert_allclose(online.moments(X)[0], np.sin(3 * X), atol=1e-10)


def test_what_the_filter_refuses() -> None:
    c = friendly()
    start = OnlineCommittee.start(basis_at(c.queries, c.kernel), c.signal, c.noise, [0.0, 0.0])
    with pytest.raises(ShapeMismatchError, match="2 targets for each row"):
        start.update(c.X, c.Y[:, 0])
    with pytest.raises(ShapeMismatchError):
        start.update(c.X, c.Y[:5])
    with pytest.raises(ShapeError, match="features"):
        start.update(c.X[:, :2], c.Y)
    with pytest.raises(NonFiniteDataError):
        start.update(np.full((1, 3), np.inf), [[0.0, 0.0]])
    with pytest.raises(ParameterError, match="noise"):
        OnlineCommittee.start(basis_at(c.queries, c.kernel), 1.0, -1.0)
    with pytest.raises(NumericalError, match="give a noise variance"):
        OnlineCommittee.start(basis_at(c.queries), 1.0, 1e-30).update(c.X[[0] * 9], np.zeros(9))


# ------------------------------------------------------------------------------------------- appended rows, weights
@pytest.mark.parametrize("block_size", [7, 25, 50])
def test_appended_rows_are_members_more(block_size: int) -> None:
    c = friendly(m=130)
    old = 50 // block_size * block_size
    first, rest = (sums_of(c, block_size, c.table.slice(*rows)) for rows in ((0, old), (old, 130)))
    merged, refit = first.merge(rest), sums_of(c, block_size)
    for name in ("H", "g", "YY", "log_det", "count", "trace", "residual_trace"):
        np.testing.assert_allclose(getattr(merged, name), getattr(refit, name), rtol=1e-12, atol=1e-12, err_msg=name)


def weighed(c: Committee, block_size: int, table: Table | None = None, executor: int = 1) -> MemberSums:
    table = c.table if table is None else table
    work = MemberWeights(equations(c, block_size), table.n_rows)
    return Session(ThreadExecutor(executor)).sweep(work, table, "sums and weights")


def naive_precisions(c: Committee, parts: list[list[int]]) -> list[float]:
    """tr V Om^-1 V' of each member, of the unit kernel."""
    found = []
    for part in parts:
        A, _ = naive.committee_information(c.K_qq, c.K_qm.T, c.K, c.Y, c.noise, [part])
        found.append(float(np.trace(A) - len(A)) / c.signal)
    return found


def test_weights_of_the_members() -> None:
    c = friendly(m=64)
    parts = naive.member_rows(64, 10)
    found = weighed(c, 10)
    assert found.rows.tolist() == [part[0] for part in parts]
    np.testing.assert_allclose(found.precision, naive_precisions(c, parts), rtol=1e-9)
    np.testing.assert_allclose(found.weights, found.precision / found.precision.sum(), rtol=1e-14)
    assert found.precision.sum() == pytest.approx(np.trace(found.sums.H), rel=1e-12)
    plain = sums_of(c, 10)
    for name in ("H", "g", "YY", "G1", "Y1", "log_det", "trace", "residual_trace", "count"):
        np.testing.assert_array_equal(getattr(found.sums, name), getattr(plain, name), err_msg=name)


def test_weights_of_members_by_cells() -> None:
    c = friendly(m=64)
    centres = c.X[[3, 30, 41]]
    parts = naive.cell_members(((c.X[:, None] - centres[None]) ** 2).sum(axis=2), 3, 48)
    noise = BlockNoise(c.signal, c.noise, 3, centres)
    work = MemberWeights(GaussianEquations(basis_at(c.queries, c.kernel), np.zeros(2), noise), 64)
    found = Session().sweep(work, c.table, "sums and weights")
    parts.sort(key=min)
    assert found.rows.tolist() == [min(part) for part in parts]
    np.testing.assert_allclose(found.precision, naive_precisions(c, parts), rtol=1e-9)
    assert 16 * len(parts) <= work.state_bytes() - work.equations.state_bytes()


def test_weights_do_not_depend_on_chunks_and_workers(tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 3))
    c = Committee(X, np.sin(X[:, :1]), rng.standard_normal((10, 3)))
    found = weighed(c, 150)
    assert len(found.weights) == 80
    assert found.weights.sum() == pytest.approx(1.0)
    for chunk in (800, 4500):
        table = table_of_chunks(f"{tmp_path}/{chunk}.zarr", X, c.Y[:, 0], chunk)
        runs = [weighed(c, 150, table, threads) for threads in (1, 3)]
        assert runs[0].precision.tobytes() == runs[1].precision.tobytes()
        np.testing.assert_allclose(runs[0].precision, found.precision, rtol=1e-12)
        np.testing.assert_array_equal(runs[0].rows, found.rows)


def test_weights_of_appended_members() -> None:
    c = friendly(m=50)
    parts = [weighed(c, 10, c.table.slice(*rows)) for rows in ((0, 30), (30, 50))]
    both, refit = parts[0].merge(parts[1]), weighed(c, 10)
    np.testing.assert_array_equal(both.rows, refit.rows)
    np.testing.assert_allclose(both.weights, refit.weights, rtol=1e-12)
    np.testing.assert_allclose(both.sums.H, refit.sums.H, rtol=1e-12, atol=1e-12)


def test_only_members_are_weighed() -> None:
    c = friendly()
    basis = basis_at(c.queries, c.kernel)
    with pytest.raises(ValueError, match="only blocks of noise are members"):
        MemberWeights(GaussianEquations(basis, np.zeros(2), DiagonalNoise(1.0, 0.1)), 60)


def test_members_that_say_nothing_have_no_weight() -> None:
    c = friendly(m=6)
    found = weighed(Committee(c.X + 1000.0, c.Y, c.queries), 3)
    assert found.weights.tolist() == [0.0, 0.0]
    assert isinstance(open_table(c.X), Table)
