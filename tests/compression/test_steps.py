"""The steps of a compression against their definitions: shares, clusters, profiles, features, herding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import compression as naive
from naive.dense import gaussian
from problems import basis_of, blocks

from streamkernel.compression._shares import shares
from streamkernel.compression.clustering import cluster_rows
from streamkernel.compression.drawing import groups
from streamkernel.compression.herding import herded
from streamkernel.compression.pilot import pilot_of
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericRangeError, ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Sample
from streamkernel.reductions.mean_features import ClassFeatures, DenseRows, MeanFeatureSums, ScoreFeatures
from streamkernel.reductions.row_spaces import Fitted, Joint, LikelihoodProfiles
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums import Features, FeatureTimes
from streamkernel.table import Scaler, open_table

FLOAT64 = np.dtype(np.float64)
NONE = np.zeros(0)


def problem(m: int = 120, p: int = 3, classes: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, codes of their classes, and whole weights, some 0."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((m, p))
    return X, generator.integers(0, classes, m), generator.integers(0, 4, m).astype(np.float64)


def one_hot(codes: Any) -> Any:
    return np.eye(codes.max() + 1)[codes]


def sample(X: Any, Y: Any, rows: Any) -> Sample:
    return Sample(np.asarray(rows), X[rows], Y[rows], np.ones(len(rows)))


# ------------------------------------------------------------------------------------------------------------- shares
@given(st.data())
def test_shares_are_in_proportion_at_least_one_and_at_most_the_rows(data: st.DataObject) -> None:
    rows = np.array(data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=6)))
    if not rows.any():
        return
    weights = rows * np.array(data.draw(st.lists(st.floats(0.1, 9.0), min_size=len(rows), max_size=len(rows))))
    size = data.draw(st.integers(int((rows > 0).sum()), int(rows.sum())))
    found = shares(weights, rows, size)
    assert found.sum() == size
    assert (found <= rows).all()
    assert (found[rows > 0] >= 1).all()
    fair = size * weights / weights.sum()
    if (fair <= rows).all() and (fair[rows > 0] >= 1.0).all():
        assert (np.abs(found - fair) < 1.0 + 1e-9).all()


def test_more_classes_than_rows_to_share_are_refused() -> None:
    with pytest.raises(ParameterError, match="size is 2, and the rows have 3 classes; give at least a row for each"):
        shares(np.ones(3), np.ones(3, np.int64), 2)


def test_groups_are_the_classes_that_have_rows_and_draw_by_weight() -> None:
    X, codes, w = problem()
    w[codes == 1] = 0.0
    table = open_table(X, np.array(["a", "b", "c"])[codes], classify=True, weights=w)
    found = groups(table, 20)
    assert [each.code for each in found] == [0, 2]
    assert sum(each.size for each in found) == 20
    for each in found:
        assert each.weight == w[codes == each.code].sum()
        drawn = each.draw(each.size, 0)
        assert (codes[drawn.rows] == each.code).all()
        assert (w[drawn.rows] > 0.0).all()
        assert drawn.importance.sum() == pytest.approx(each.weight)


# ----------------------------------------------------------------------------------------------------------- clusters
@pytest.mark.parametrize("sweeps", [0, 1, 3])
def test_clusters_of_classes_are_those_of_the_definition(sweeps: int) -> None:
    X, codes, _ = problem(classes=2)
    X = X + 1e4  # means of columns far from 0 keep their digits
    Y, seeds = one_hot(codes), np.sort(np.random.default_rng(1).permutation(len(X))[:8])
    table = open_table(X, codes, classify=True)
    space = Joint(Scaling(Scaler(np.full(3, 1e4), np.full(3, 2.0)), FLOAT64, 3), NONE, NONE)
    found = cluster_rows(table, space, sample(X, Y, seeds), codes[seeds], sweeps, Session())
    clusters = naive.class_clusters((X - 1e4) / 2.0, codes, seeds, sweeps)
    ones = np.ones(len(X))
    assert found.weights.tolist() == np.bincount(clusters).tolist()
    np.testing.assert_allclose(found.X, naive.weighted_means(X, ones, clusters, 8), rtol=1e-13)
    assert found.Y.argmax(axis=1).tolist() == codes[seeds].tolist()


def test_whole_weights_are_repeated_rows_in_clusters() -> None:
    X, codes, w = problem(classes=2)
    counted = np.flatnonzero(w)
    seeds = counted[:: len(counted) // 7]
    repeated = np.repeat(np.arange(len(X)), w.astype(int))
    space = Joint(Scaling(None, FLOAT64, 3), NONE, NONE)
    given, Y = sample(X, one_hot(codes), seeds), codes
    one = cluster_rows(open_table(X, Y, classify=True, weights=w), space, given, codes[seeds], 4, Session())
    other = cluster_rows(open_table(X[repeated], Y[repeated], classify=True), space, given, codes[seeds], 4, Session())
    assert one.weights.tolist() == other.weights.tolist()
    assert one.weights.sum() == w.sum()
    np.testing.assert_allclose(one.X, other.X, rtol=1e-12, atol=1e-14)


def test_a_cluster_without_rows_moves_to_the_farthest_row_of_its_class() -> None:
    X = np.array([[0.0], [0.1], [5.0], [100.0], [101.0]])
    codes = np.array([0, 0, 0, 1, 1])
    seeds = np.array([0, 0, 3])  # the second has no rows; the row farthest of all is of another class
    space = Joint(Scaling(None, FLOAT64, 1), NONE, NONE)
    found = cluster_rows(
        open_table(X, codes, classify=True), space, sample(X, one_hot(codes), seeds), codes[seeds], 2, Session()
    )
    assert sorted(found.weights.tolist()) == [1.0, 2.0, 2.0]
    assert sorted(found.X.ravel().tolist()) == pytest.approx([0.05, 5.0, 100.5])


# ------------------------------------------------------------------------------------------------------------- spaces
def functions(X: Any, count: int, rows: int = 9) -> tuple[Features, Any, FeatureTimes]:
    """Features of some rows, what they are for all rows, and random functions of them."""
    basis = basis_of(X, range(rows), Gaussian(1.3))
    G = np.linalg.solve(np.linalg.cholesky(gaussian(X[:rows], X[:rows], 1.3)), gaussian(X[:rows], X, 1.3)).T
    A = np.random.default_rng(3).standard_normal((rows, count))
    features = Features.of_basis(basis)
    return features, G, FeatureTimes.of(features, A)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "gaussian"])
def test_profiles_are_losses_of_random_functions(loss: str) -> None:
    X, _, _ = problem()
    _, G, f = functions(X, 10)
    A, y = np.random.default_rng(3).standard_normal((9, 10)), X[:, 0] + 2.0
    units = (np.array([1.0]), np.array([3.0])) if loss == "gaussian" else (NONE, NONE)
    space = LikelihoodProfiles(Scaling(None, FLOAT64, 3), f, loss, *units)
    expected = naive.likelihood_profiles(G @ A, loss, (y - 1.0) / 3.0)
    np.testing.assert_allclose(space.of(X, y[:, None]), expected, rtol=1e-9, atol=1e-10)
    assert space.width == expected.shape[1]


def test_profiles_of_several_targets_add_up() -> None:
    X, _, _ = problem()
    _, G, f = functions(X, 10)
    values, Y = G @ np.random.default_rng(3).standard_normal((9, 10)), X[:, :2]
    space = LikelihoodProfiles(Scaling(None, FLOAT64, 3), f, "gaussian", np.zeros(2), np.ones(2))
    expected = sum(naive.likelihood_profiles(values[:, 5 * t : 5 * t + 5], "gaussian", Y[:, t]) for t in range(2))
    np.testing.assert_allclose(space.of(X, Y), expected, rtol=1e-9, atol=1e-10)


def test_points_have_targets_or_fitted_values_beside_the_columns() -> None:
    X, _, _ = problem()
    scaling, y = Scaling(Scaler(np.ones(3), np.full(3, 2.0)), FLOAT64, 3), X[:, :1] ** 2
    joint = Joint(scaling, np.array([0.5]), np.array([3.0]))
    np.testing.assert_allclose(joint.of(X, y), np.hstack([(X - 1.0) / 2.0, 3.0 * (y - 0.5)]))
    _, _, f = functions((X - 1.0) / 2.0, 1)
    values = f.features.of((X - 1.0) / 2.0) @ np.random.default_rng(3).standard_normal((9, 1))
    fitted = Fitted(scaling, f, np.array([0.5]), np.array([2.0]), 1.7, 0.3)
    np.testing.assert_allclose(fitted.of(X, None), np.hstack([(X - 1.0) / 3.4, 0.3 * (values - 0.5) / 2.0]), rtol=1e-9)


def test_a_scaled_row_beyond_the_range_is_an_error() -> None:
    scaling = Scaling(Scaler(np.zeros(1), np.full(1, 1e-30)), np.dtype(np.float32), 1)
    with pytest.raises(NumericRangeError, match="1 scaled numbers are beyond float32; scale the columns"):
        scaling.of(np.array([[1e20], [0.0]], np.float32))


# ---------------------------------------------------------------------------------------------------- features, herding
def maps(X: Any, codes: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Maps with the targets of the rows, and phi of all rows by definition."""
    features, G, _ = functions(X, 1)
    scaling, Y = Scaling(None, FLOAT64, 3), one_hot(codes)
    beta, intercept = np.random.default_rng(4).standard_normal((9, Y.shape[1])), np.array([0.1, 0.5, 0.4])
    return {
        "classes": (ClassFeatures(scaling, features, 3), Y, G),
        "numbers": (ClassFeatures(scaling, features, 0), X[:, :2], G),
        "no targets": (ClassFeatures(scaling, features, 0), np.zeros((len(X), 0)), G),
        "scores": (
            ScoreFeatures(scaling, features, beta, intercept, 1.7),
            Y,
            naive.score_features(G, X, codes, beta, intercept, 1.7),
        ),
    }


@pytest.mark.parametrize("kind", ["classes", "numbers", "no targets", "scores"])
def test_features_and_their_exact_means(kind: str) -> None:
    X, codes, w = problem()
    work, Y, phi = maps(X, codes)[kind]
    for code in range(3) if kind in ("classes", "scores") else [-1]:
        own = np.flatnonzero(codes == code) if code >= 0 else np.arange(len(X))
        np.testing.assert_allclose(work.of(X[own], Y[own]), phi[own], rtol=1e-8, atol=1e-9)
        assert work.width() == phi.shape[1]
        reduction = MeanFeatureSums(work)
        state = reduction.empty()
        for block in blocks(X, Y if Y.shape[1] else None, (50, 70), w):
            state = reduction.fold(state, block)
        found = work.mean(reduction.finalize(state), code, w[own].sum())
        np.testing.assert_allclose(found, w[own] @ phi[own] / w[own].sum(), rtol=1e-8, atol=1e-9)


def test_herding_takes_the_row_that_brings_the_mean_nearest() -> None:
    phi = np.random.default_rng(0).standard_normal((60, 5))
    mu = phi.mean(axis=0) + 0.1
    counts = herded(lambda positions: DenseRows(phi[positions]), mu, np.ones(60, np.int64), 12)
    assert sorted(np.flatnonzero(counts)) == sorted(naive.herding(phi, mu, 12))
    random = phi[:12].mean(axis=0)
    assert np.linalg.norm(phi[counts > 0].mean(axis=0) - mu) < 0.2 * np.linalg.norm(random - mu)


def test_herding_in_parts_goes_on_with_the_sum_of_all_picks() -> None:
    phi = np.random.default_rng(0).standard_normal((3000, 5))
    mu = np.full(5, 0.05)
    counts = herded(lambda positions: DenseRows(phi[positions]), mu, np.ones(3000, np.int64), 600)
    assert counts.sum() == 600
    assert counts.max() == 1
    # Three parts; each has its share of the picks.
    assert [int(part.sum()) for part in np.split(counts, 3)] == [200, 200, 200]
    assert np.linalg.norm(phi[counts > 0].mean(axis=0) - mu) < 2e-3


def test_heavy_rows_are_picked_as_often_as_they_weigh_and_no_more_picks_are_made_than_there_are() -> None:
    phi = np.array([[1.0], [0.0], [0.2]])
    assert herded(lambda positions: DenseRows(phi[positions]), np.array([0.9]), np.array([8, 1, 1]), 10).tolist() == [
        8,
        1,
        1,
    ]
    assert herded(lambda positions: DenseRows(phi[positions]), np.array([0.9]), np.array([2, 1, 1]), 10).tolist() == [
        2,
        1,
        1,
    ]


def test_the_pilot_is_the_ridge_regression_of_its_alpha_and_weights_are_repeated_rows() -> None:
    X, codes, w = problem(classes=2)
    Y, basis = one_hot(codes), basis_of(X, range(9), Gaussian(1.3))
    table = open_table(X, codes, classify=True, weights=w)
    found = pilot_of(table, basis, Y.mean(axis=0), None, Session(ThreadExecutor(2)))
    repeated = np.repeat(np.arange(len(X)), w.astype(int))
    other = pilot_of(open_table(X[repeated], codes[repeated], classify=True), basis, Y.mean(axis=0), None, Session())
    np.testing.assert_allclose(found.beta, other.beta, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.intercept, other.intercept, rtol=1e-9)
    _, G, _ = functions(X, 1)
    # The normal equations hold for one alpha, which is the same for all coefficients.
    r = w[:, None] * (Y - G @ found.beta - found.intercept)
    np.testing.assert_allclose(r.sum(axis=0), 0.0, atol=1e-8)
    ratio = (G.T @ r) / found.beta
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-6)
    assert ratio[0, 0] > 0.0
