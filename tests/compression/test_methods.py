"""The methods of compression against plain NumPy, and what they are good for."""

from __future__ import annotations

from typing import Any

import data_sets
import numpy as np
import pytest
from compressed_rows import problem
from naive import compression as naive
from naive.dense import gaussian

from streamkernel import KernelRidgeClassifier, compress, open_table
from streamkernel.compression.drawing import groups
from streamkernel.reductions import stream_generator


def seeds_of(table: Any, size: int, seed: int) -> Any:
    return np.sort(np.concatenate([part.draw(part.size, seed).rows for part in groups(table, size)]))


def test_a_subsample_is_random_rows_of_equal_weights() -> None:
    X, y, w = problem()
    found = compress(X, y, size=30, method="subsample")
    assert found.weights.tolist() == [20.0] * 30
    assert np.array_equal(found.X, X[found.rows])
    assert np.array_equal(found.y, y[found.rows])
    weighted = compress(X, y, size=30, method="subsample", sample_weight=w)
    assert (w[weighted.rows] > 0.0).all()


def test_preclusters_are_means_of_the_rows_of_a_class() -> None:
    X, y, w = problem(m=300)
    w = w + 1.0
    table = open_table(X, y, classify=True, weights=w)
    codes, rows = np.unique(y, return_inverse=True)[1], seeds_of(table, 12, 3)
    centre = np.average(X.astype(np.float64), axis=0, weights=w)
    U = ((X - centre) / np.sqrt(np.average((X - centre) ** 2, axis=0, weights=w))).astype(np.float32)
    found = compress(X, y, size=12, method="precluster", sweeps=0, sample_weight=w, random_state=3)
    clusters = naive.class_clusters(U.astype(np.float64), codes, rows, 0)
    np.testing.assert_allclose(found.weights, [w[clusters == j].sum() for j in range(12)])
    np.testing.assert_allclose(found.X, naive.weighted_means(X.astype(float), w, clusters, 12), rtol=1e-6, atol=1e-6)
    assert found.y.tolist() == y[rows].tolist()
    assert (found.rows == -1).all()


@pytest.mark.parametrize("functions", ["kernel", "linear"])
def test_squashed_rows_are_the_seeds_nearest_by_profile(functions: str) -> None:
    """As Pavlov, Chudova & Smyth have it; the kernel's functions are f = G z."""
    X, y, _ = problem(m=300)
    X = X.astype(np.float64)
    options = {"lengthscale": 2.0, "n_components": 15} if functions == "kernel" else {}
    with_functions = {"method": "squash", "functions": functions, "scale": "none", "sweeps": 0, "profiles": 20}
    found = compress(X, y, size=12, representative="seed", random_state=3, **with_functions, **options)
    rows = seeds_of(open_table(X, y, classify=True), 12, 3)
    generator = stream_generator(3, (31,))
    if functions == "kernel":
        basis = np.sort(stream_generator(3, (4,)).choice(300, size=15, replace=False))
        L = np.linalg.cholesky(gaussian(X[basis], X[basis], 2.0))
        f = np.linalg.solve(L, gaussian(X[basis], X, 2.0)).T @ generator.standard_normal((15, 20))
    else:
        f = X @ generator.standard_normal((4, 20)) / 2.0 + generator.standard_normal(20)
    P = naive.likelihood_profiles(f, "logistic")
    clusters = naive.class_clusters(P, np.unique(y, return_inverse=True)[1], rows, 0)
    counts = np.bincount(clusters, minlength=12)
    assert found.rows.tolist() == rows[counts > 0].tolist()
    assert found.weights.tolist() == counts[counts > 0].tolist()
    assert np.array_equal(found.X, X[found.rows])


def test_numbers_are_squashed_to_means_of_rows_that_are_alike_without_their_targets() -> None:
    X, y, _ = problem("numbers")
    noise = y + 50.0 * np.random.default_rng(5).standard_normal(600)
    clusters = [compress(X, t, size=20, method="precluster") for t in (y, noise)]
    assert np.array_equal(clusters[0].X, clusters[1].X)
    squashed = compress(X, y, size=20, lengthscale=1.5)
    assert np.average(squashed.y, weights=squashed.weights) == pytest.approx(y.mean())
    assert (squashed.rows == -1).all()


def test_thinning_and_squashing_bring_means_near_those_of_all_rows() -> None:
    X, y, _ = problem(m=2000)
    random = compress(X, y, size=40, method="subsample", random_state=1)
    for method in ("thinning", "squash"):
        found = compress(X, y, size=40, method=method, random_state=1, lengthscale=2.0)
        assert np.array_equal(found.X, X[found.rows])
        apart = [
            np.linalg.norm(np.average(each.X, axis=0, weights=each.weights) - X.mean(axis=0))
            for each in (found, random)
        ]
        assert apart[0] < 0.5 * apart[1]


@pytest.mark.filterwarnings("ignore:.* columns are constant")
@pytest.mark.parametrize(("name", "ratio"), [("spambase", 0.6)])
def test_a_fit_to_squashed_rows_of_a_real_set_loses_less_than_one_to_random_rows(name: str, ratio: float) -> None:
    stored = data_sets.load(name)
    if stored is None:
        pytest.skip(f"../shared/data/{name}.npz is not there")
    order = np.random.default_rng(0).permutation(len(stored.X))
    X, y = np.asarray(stored.X, np.float64)[order], np.asarray(stored.y).ravel()[order]

    def error(A: Any, b: Any, w: Any) -> float:
        model = KernelRidgeClassifier(min(200, len(A)), kernel="gaussian", metric="none", lengthscale=8.0, alpha=1.0)
        return float(np.mean(model.fit(A, b, sample_weight=w).predict(X[3000:]) != y[3000:]))

    whole = error(X[:3000], y[:3000], None)
    losses = {
        method: np.median(
            [
                error(found.X, found.y, found.weights) - whole
                for found in (
                    compress(X[:3000], y[:3000], size=60, method=method, classify=True, random_state=seed)
                    for seed in range(3)
                )
            ]
        )
        for method in ("subsample", "squash")
    }
    assert losses["squash"] < ratio * losses["subsample"]
