"""Compressed tables of sparse rows: the rows and weights of the dense table, which stay sparse."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sparse_rows import in_pairs, sparse_problem

from streamkernel import KernelRidge, compress, ingest, open_table
from streamkernel.basis import Basis
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.kernels.rows.sparse import sparse_kernel
from streamkernel.reductions.mean_features import MeanFeatureSums, ScoreFeatures
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sparse_scores import SparseScores
from streamkernel.reductions.sums import Features
from streamkernel.table import RowBlock, Scaler, SparseScaler
from streamkernel.table.ingest import append_rows

X, Y = sparse_problem(600, 40, 4.0)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
W = np.random.default_rng(0).choice([0.0, 1.0, 3.0], 600)

WAYS: list[dict[str, Any]] = [
    {"method": "subsample"},
    {"method": "subsample", "y": LABELS, "sample_weight": W},
    {"method": "thinning", "n_components": 30},
    {"method": "thinning", "n_components": 30, "y": LABELS, "scale": "none", "kernel": "laplacian"},
    {"method": "thinning", "n_components": 30, "sample_weight": W, "rule": "rpcholesky"},
    {"method": "squash", "functions": "kernel", "representative": "seed", "n_components": 30, "y": Y},
    {
        "method": "squash",
        "functions": "kernel",
        "representative": "seed",
        "n_components": 30,
        "y": LABELS,
        "loss": "hinge",
        "sweeps": 1,
    },
    {"method": "squash", "functions": "linear", "representative": "seed", "y": Y},
    {"method": "squash", "functions": "linear", "representative": "seed", "y": LABELS, "scale": "none"},
    {"functions": "linear", "representative": "seed", "y": LABELS, "sample_weight": W, "sweeps": 0},
    {"method": "squash", "n_components": 30, "y": LABELS},
    {"method": "squash", "n_components": 30, "y": LABELS, "scale": "none", "kernel": "cosine"},
    {"method": "squash", "n_components": 30, "y": LABELS, "sample_weight": W},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda options: " ".join(map(str, list(options.values())[:3]))[:60])
def test_the_rows_are_those_of_the_dense_table(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "small"
    given = {"size": 25, "random_state": 0, "oversampling": 6, **options}
    sparse, dense = compress(X, path=path, **given), compress(X.toarray(), **given)
    assert sparse.rows.tolist() == dense.rows.tolist()
    assert_allclose(sparse.weights, dense.weights, rtol=1e-10)
    assert len(sparse) == len(dense) <= 25
    assert scipy.sparse.issparse(sparse.X)
    assert (sparse.X.toarray() == dense.X).all()
    assert (sparse.X.toarray() == X[sparse.rows].toarray()).all()
    assert (sparse.y is None) == (dense.y is None)
    if sparse.y is not None:
        assert (sparse.y == dense.y).all()
    stored = open_table(path, sparse=True)
    assert stored.sparse
    assert (stored.as_sparse(False).read(0, len(sparse)).X == dense.X).all()
    assert_allclose(stored.read(0, len(sparse)).weights, sparse.weights)


@pytest.mark.parametrize("chunk_rows", [50, 256])
def test_any_chunks_give_one_table_and_a_fit_takes_it(tmp_path: Path, chunk_rows: int) -> None:
    ingest(open_table(X[:400], Y[:400], sparse=True), tmp_path / "rows", chunk_rows=chunk_rows, dtype="float64")
    append_rows(open_table(X[400:], Y[400:], sparse=True), tmp_path / "rows")
    given: dict[str, Any] = {"method": "thinning", "size": 60, "n_components": 30, "random_state": 0, "oversampling": 5}
    stored, memory = compress(str(tmp_path / "rows"), **given), compress(X, Y, **given)
    assert stored.rows.tolist() == memory.rows.tolist()
    assert_allclose(stored.weights, memory.weights, rtol=1e-10)
    options: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "alpha": 0.1}
    model = KernelRidge(20, **options).fit(stored.table)
    dense = KernelRidge(20, **options).fit(stored.X.toarray(), stored.y, stored.weights)
    assert_allclose(model.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "precluster"},
        {"functions": "linear"},
        {"functions": "kernel"},
        {"functions": "fitted", "representative": "seed"},
    ],
    ids=str,
)
def test_methods_that_make_clusters_of_features_or_means_are_refused(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.table._sparse_rows.SparseRows.load", None)
    with pytest.raises(ParameterError, match=r"rows are sparse \(600 x 40\).*method='thinning'.*representative='seed'"):
        compress(X, Y, size=20, **options)
    with pytest.raises(ParameterError, match="sparse"):
        compress(X, Y, size=20, method="thinning", scale="rank")


def test_features_of_scores_are_those_of_dense_rows_far_from_0() -> None:
    """Entries of a full column that are far from 0 are taken about its mean."""
    rng = np.random.default_rng(3)
    dense = X.toarray()
    dense[:, 3] = 50.0 + rng.standard_normal(600)
    codes = np.digitize(Y, [-0.5, 0.5])
    centre, spread = dense.mean(axis=0), np.where(dense.std(axis=0) > 0.0, dense.std(axis=0), 1.0)
    beta, intercept = rng.standard_normal((9, 3)), np.array([0.1, 0.5, 0.4])
    pairs, T = in_pairs(scipy.sparse.csr_array(dense)), np.eye(3)[codes]
    scaled = SparseScaler(spread)
    points = scaled.apply(pairs[:9], np.float64)
    kernel = sparse_kernel(Gaussian(3.0), dense.shape[1])
    sparse = SparseScores(
        Scaling(scaled, pairs.dtype, pairs.shape[1], centre / spread),
        Features.of_basis(Basis(kernel, points, np.arange(9))),
        beta,
        intercept,
        1.7,
    )
    of_points = (dense[:9] - centre) / spread
    whole = ScoreFeatures(
        Scaling(Scaler(centre, spread), dense.dtype, dense.shape[1]),
        Features.of_basis(Basis(Gaussian(3.0), of_points, np.arange(9))),
        beta,
        intercept,
        1.7,
    )
    phi, rows = whole.of(dense, T), sparse.rows_of(pairs, T)
    v = rng.standard_normal(phi.shape[1])
    assert_allclose(rows.times(v), phi @ v, rtol=1e-8, atol=1e-8)
    assert_allclose(rows.squares, (phi**2).sum(axis=1), rtol=1e-9)
    assert_allclose(rows.row(5), phi[5], rtol=1e-8, atol=1e-9)
    for w in (None, W):
        found, expected = (
            MeanFeatureSums(work).map_block(RowBlock(0, values, T, w))
            for work, values in ((sparse, pairs), (whole, dense))
        )
        assert_allclose(found["AT"], expected["AT"], rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "thinning", "n_components": 20},
        {"n_components": 20, "y": LABELS},
        {"functions": "linear", "representative": "seed", "y": LABELS, "profiles": 10},
    ],
    ids=["thinning", "squash", "linear"],
)
def test_no_dense_copy_is_made(options: dict[str, Any]) -> None:
    """600 dense rows would be 480 MB."""
    wide = scipy.sparse.csr_array((X.data, X.indices * 2500, X.indptr), (600, 100_000))
    tracemalloc.start()
    try:
        found = compress(wide, size=20, random_state=0, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.X.shape[1] == 100_000
    assert len(found) <= 20
    assert peak < 100e6
