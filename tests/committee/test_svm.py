"""Committees of support vector machines: their members are minimisers, one member says what it says alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from committees import Float, basis_at, friendly
from problems import table_of_chunks
from sklearn.svm import SVC

from streamkernel.committee import SVMCommittee, fit_svm_committee
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import DataError, ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.members.svm import SVMMembers, dual_values
from streamkernel.reductions.sums import BlockNoise
from streamkernel.table import open_table

SIGNAL, OFFSET, TAU = 1.5, 0.7, 1e-3


def rows(m: int = 60, seed: int = 0) -> tuple[Float, Float]:
    c = friendly(m=m, d=1, seed=seed)
    return c.X, (c.Y[:, 0] > 0.2).astype(np.float64)


def kappa(A: Float, B: Float) -> Float:
    return SIGNAL * naive.gaussian(A, B, 1.3) + OFFSET


def fitted(X: Float, y: Float, points: Float, block_size: int, **more: Any) -> SVMCommittee:
    options: dict[str, Any] = {"C": 2.0, "offset": OFFSET, "tau": TAU, "block_size": block_size} | more
    table = options.pop("table", None) or open_table(X, y)
    return fit_svm_committee(table, basis_at(points, Gaussian(1.3)), SIGNAL, **options)


def naive_committee(X: Float, y: Float, points: Float, parts: list[list[int]], C: float = 2.0) -> tuple[Float, Float]:
    """Eqs. (8), (9), literally, of E_i = S_qi (a t) and cov_i = Sqq - S_qs (S_ss + tau I)^-1 S_sq (card 6.3)."""
    posteriors, K_qq = [], kappa(points, points)
    for part in parts:
        t = 2.0 * y[part] - 1.0
        a = naive.support_vector_weights(kappa(X[part], X[part]), t, C)
        inside = X[part][(a > 1e-4 * C) & (a < (1 - 1e-4) * C)]
        K_qs = kappa(points, inside)
        left = K_qq - K_qs @ np.linalg.solve(kappa(inside, inside) + TAU * np.eye(len(inside)), K_qs.T)
        posteriors.append(((kappa(points, X[part]) @ (a * t))[:, None], left))
    mean, covariance = naive.bayesian_committee(K_qq, posteriors)
    return mean[:, 0], np.diag(covariance)


def test_members_are_machines_without_a_bias() -> None:
    X, y = rows()
    t, K = 2 * y - 1, kappa(X, X)
    for C in (0.3, 2.0):
        a = dual_values(K, t, C, np.ones(60))
        expected = naive.support_vector_weights(K, t, C)
        np.testing.assert_allclose(K @ (a * t), K @ (expected * t), atol=1e-4)
        margin = t * (K @ (a * t))
        assert (margin[a < 1e-9] > 1 - 1e-6).all()
        assert (margin[a > C - 1e-9] < 1 + 1e-6).all()
        np.testing.assert_allclose(margin[(a > 1e-6) & (a < C - 1e-6)], 1.0, atol=1e-6)


def test_a_member_of_one_class() -> None:
    K = kappa(*[rows()[0]] * 2)
    a = dual_values(K, np.ones(60), 1.0, np.ones(60))
    assert (K @ a > 1 - 1e-6).all()


def test_weights_are_costs() -> None:
    X, y = rows(30)
    counts = np.random.default_rng(0).integers(0, 4, 30)
    repeated = np.repeat(np.arange(30), counts)
    found = dual_values(kappa(X, X), 2 * y - 1, 1.0, counts.astype(np.float64))
    each = dual_values(kappa(X[repeated], X[repeated]), 2 * y[repeated] - 1, 1.0, np.ones(len(repeated)))
    np.testing.assert_allclose(np.bincount(repeated, each, 30), found, atol=1e-5)


def test_one_member_says_what_it_says_alone() -> None:
    X, y = rows()
    points = X[::4] + 0.05
    t = 2 * y - 1
    a = dual_values(kappa(X, X), t, 2.0, np.ones(60))
    found = fitted(X, y, points, 60)
    mean, variance = found.moments(points)
    np.testing.assert_allclose(mean, kappa(points, X) @ (a * t), atol=1e-7)
    inside = X[(a > 2e-6) & (a < 2 - 2e-6)]
    K_qs = kappa(points, inside)
    left = (
        OFFSET
        + SIGNAL
        - np.einsum("qs,sq->q", K_qs, np.linalg.solve(kappa(inside, inside) + TAU * np.eye(len(inside)), K_qs.T))
    )
    np.testing.assert_allclose(variance, left, atol=1e-6)
    assert found.sums.inside == len(inside)
    assert found.sums.count == 60
    np.testing.assert_array_equal(found.classify(points), mean > 0)


@pytest.mark.parametrize("block_size", [15, 30])
def test_the_committee_is_tresps(block_size: int) -> None:
    X, y = rows()
    points = 2.0 * np.concatenate([np.eye(3), -np.eye(3)])
    found = fitted(X, y, points, block_size)
    mean, variance = naive_committee(X, y, points, naive.member_rows(60, block_size))
    np.testing.assert_allclose(found.moments(points)[0], mean, atol=2e-3)
    np.testing.assert_allclose(found.moments(points)[1], variance, atol=2e-3)


def test_members_without_vectors_inside_the_box_say_only_their_mean() -> None:
    X, y = rows(4)
    found = fitted(X, y, X[:2], 1, C=1e-3)
    assert found.sums.vectors == 4
    assert found.sums.inside == 0
    np.testing.assert_array_equal(found.sums.A, np.zeros((2, 2)))
    t = 2 * y - 1
    np.testing.assert_allclose(found.moments(X[:2])[0], kappa(X[:2], X) @ (1e-3 * t), rtol=1e-6)


def test_the_same_bits_again_and_from_any_chunks(tmp_path: Path) -> None:
    X, y = rows(6500)
    points = X[:12] + 0.1
    found = fitted(X, y, points, 60)
    assert fitted(X, y, points, 60).mean.tobytes() == found.mean.tobytes()
    for chunk in (700, 4000):
        table = table_of_chunks(tmp_path / f"{chunk}.zarr", X, y, chunk)
        runs = [fitted(X, y, points, 60, table=table, session=Session(ThreadExecutor(n))) for n in (1, 3)]
        assert runs[0].mean.tobytes() == runs[1].mean.tobytes()
        np.testing.assert_allclose(runs[0].mean, found.mean, rtol=1e-10, atol=1e-10)


def test_what_travels_to_a_worker_is_the_same_there() -> None:
    X, y = rows()
    work = SVMMembers(basis_at(X[:7] + 0.1, Gaussian(1.3)), SIGNAL, OFFSET, 2.0, TAU, BlockNoise(1.0, 1.0, 20))
    block = open_table(X, y).read(0, 60)
    state = work.map_block(block)
    sent = pickle.dumps(work)
    assert len(sent) < len(pickle.dumps(work.basis)) + 2000
    other = pickle.loads(sent).map_block(block)
    assert {name: values.tobytes() for name, values in state.items()} == {
        name: values.tobytes() for name, values in other.items()
    }


def test_appended_rows_are_members_more() -> None:
    X, y = rows(100)
    table = open_table(X, y)
    old, new = (fitted(X, y, X[:9], 20, table=table.slice(*part)).sums for part in ((0, 60), (60, 100)))
    merged, refit = old.merge(new), fitted(X, y, X[:9], 20).sums
    for name in ("A", "c", "count", "members", "vectors", "inside"):
        np.testing.assert_allclose(getattr(merged, name), getattr(refit, name), rtol=1e-12, atol=1e-12)
    with pytest.raises(ParameterError, match="cannot be added"):
        old.merge(fitted(X, y, X[:8], 20).sums)


def test_it_learns_nearly_what_one_machine_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2400, 2))
    labels = np.where(np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.standard_normal(2400) > 0, "yes", "no")
    table = open_table(X[:1200], labels[:1200], classify=True)
    found = fit_svm_committee(table, basis_at(rng.uniform(-2, 2, (80, 2)), Gaussian(0.7)), 4.0, block_size=200)
    correct = (np.array(["no", "yes"])[found.classify(X[1200:])] == labels[1200:]).mean()
    whole = SVC(C=4.0, gamma=1 / (2 * 0.7**2)).fit(X[:1200], labels[:1200]).score(X[1200:], labels[1200:])
    assert correct > whole - 0.03


def test_what_is_refused() -> None:
    X, y = rows()
    with pytest.raises(DataError, match="0 and 1"):
        fitted(X, 3 * y, X[:4], 20)
    with pytest.raises(DataError, match="needs targets"):
        fit_svm_committee(open_table(X), basis_at(X[:4]))
    with pytest.raises(DataError, match="3 columns"):
        fit_svm_committee(open_table(X, np.arange(60) % 3, classify=True), basis_at(X[:4]))
    for name in ("C", "offset", "tau"):
        with pytest.raises(ParameterError, match=name):
            fitted(X, y, X[:4], 20, **{name: 0.0})
