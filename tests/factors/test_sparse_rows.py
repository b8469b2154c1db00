"""Factors of sparse rows: G, its certificate, products and neighbours are those of the dense rows."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sparse_rows import sparse_problem, sparse_rows

from streamkernel import Factor, factorize, ingest, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.factors import FeatureRows, nearest_neighbours
from streamkernel.table.ingest import append_rows

X, Y = sparse_problem(500, 60, 4.0)


def session() -> Session:
    return Session(ThreadExecutor(1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "none", "kernel": "laplacian"},
        {"kernel": "2*matern + linear", "scale": "none", "rule": "rpcholesky"},
        {"kernel": "linear", "scale": "none"},
        {"rule": "csi", "y": Y},
        {"rule": "sgma", "tol": 0.3},
        {"stop": "bound"},
        {"stop": "gap", "y": Y},
        {"objective": "prediction", "y": Y},
        {"columns": "none"},
        {"dtype": "float64"},
    ],
    ids=lambda options: " ".join(options),
)
def test_a_factor_is_that_of_the_dense_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    made = [
        factorize(rows, tmp_path / name, n_components=30, random_state=0, **options)
        for name, rows in (("sparse", X), ("dense", X.toarray()))
    ]
    # With the linear kernel on dense rows the columns are the functions: another basis of the same matrix.
    if options.get("kernel") != "linear":
        assert made[0].component_indices.tolist() == made[1].component_indices.tolist()
        assert_allclose(made[0].residual_path, made[1].residual_path, rtol=1e-8, atol=1e-6)
        if "columns" not in options:
            one, other = (np.asarray(each.G) for each in made)
            assert_allclose(one, other, atol=1e-9 if "dtype" in options else 1e-5)
    loaded = Factor.load(tmp_path / "sparse")
    assert loaded.digest == made[0].digest
    again = loaded.rows_of(open_table(X, sparse=True)).gram(session())
    whole = made[0].rows_of(open_table(X.toarray())).gram(session())  # dense rows become sparse ones
    assert_allclose(again.H, whole.H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("chunk_rows", [37, 128, 600])
def test_any_chunks_give_one_factor(tmp_path: Path, chunk_rows: int) -> None:
    ingest(open_table(X[:300], sparse=True), tmp_path / "rows", chunk_rows=chunk_rows, dtype="float64")
    append_rows(open_table(X[300:], sparse=True), tmp_path / "rows")
    stored = factorize(str(tmp_path / "rows"), tmp_path / "F", n_components=20, random_state=0)
    memory = factorize(X, n_components=20, random_state=0)
    assert stored.component_indices.tolist() == memory.component_indices.tolist()
    assert_allclose(stored.residual_path, memory.residual_path, rtol=1e-9)


def test_neighbours_are_those_of_the_dense_rows() -> None:
    found = []
    for rows in (X, X.toarray()):
        factor = factorize(rows, n_components=20, random_state=0)
        own = factor.rows_of(open_table(rows, sparse=True))
        for queries in (X[:7], X[:7].toarray()):
            found += [nearest_neighbours(own, queries, 5, session(), exact=exact) for exact in (True, False)]
    for exact in (0, 1):
        for each in found[exact::2]:
            assert_allclose(each.distances, found[exact].distances, atol=1e-6)


def test_rows_with_fuller_ones_and_rows_of_another_kind() -> None:
    factor = factorize(X[:300], n_components=10, random_state=0)
    full = scipy.sparse.vstack([X[:50], scipy.sparse.csr_array(np.ones((1, 60)))], format="csr")
    G = factor.rows_of(open_table(full, sparse=True)).to_dask().compute()  # type: ignore[union-attr]
    assert_allclose(G[:50], factor.rows_of(open_table(X[:50].toarray())).to_dask().compute(), atol=1e-10)  # type: ignore[union-attr]
    with pytest.raises(ShapeError, match="60"):
        factor.rows_of(open_table(X[:, :40], sparse=True))
    for rows in (X[:50].toarray(), X[:50, :40]):
        with pytest.raises(ShapeError, match="60 of sparse rows; give the rows"):
            FeatureRows(open_table(rows, sparse=True), factor.basis)
    dense = factorize(X[:300].toarray(), n_components=10, random_state=0)
    with pytest.raises(ShapeError, match="60 features of sparse rows, the basis points 60; give the rows"):
        FeatureRows(open_table(X[:50], sparse=True), dense.basis)


def test_what_makes_rows_dense_is_refused() -> None:
    for options in ({"scale": "rank"}, {"metric": np.eye(60)}, {"rule": "kmeans"}, {"kernel": "hamming"}):
        with pytest.raises(ParameterError, match="sparse"):
            factorize(X, n_components=5, **options)
    with pytest.raises(ParameterError, match="no precomputed kernel"):
        factorize(X @ X.T, n_components=5, kernel="precomputed")


def test_no_dense_copy_is_made(tmp_path: Path) -> None:
    """500 dense rows would be 160 MB."""
    narrow = sparse_rows(500, 60, 4.0)
    wide = scipy.sparse.csr_array((narrow.data, narrow.indices * 640, narrow.indptr), (500, 40_000))
    tracemalloc.start()
    try:
        factor = factorize(wide, tmp_path / "F", n_components=20, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert factor.shape == (500, 20)
    assert peak < 40e6
