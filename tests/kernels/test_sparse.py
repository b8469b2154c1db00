"""Kernels of sparse rows: their values are those of the dense rows, in any block, and no memory beyond is read."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import plain
from numpy.typing import NDArray
from sparse_rows import in_pairs, sparse_rows
from strategies import seeds

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import (
    ArcCosine,
    Cosine,
    Fixed,
    Gaussian,
    Hamming,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    OfColumns,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SparseKernel,
    is_kernel_of_pairs,
    kernel_from_config,
    lengthscale_gradient,
    sparse_distances,
    sparse_kernel,
)
from streamkernel.pairs import are_pairs, as_csr, pairs_of

KERNELS: list[Kernel] = [
    Gaussian(1.3),
    Laplacian(4.0),
    Matern(2.0, 0.5),
    Matern(2.0, 1.5),
    Matern(2.0, 2.5),
    RationalQuadratic(2.0, 0.7),
    Linear(),
    Polynomial(3),
    Polynomial(2, 0.3, 0.0),
    Cosine(),
    2.0 * Gaussian(0.5) + Linear() * Cosine(),
    Fixed(Gaussian(2.0)) + Polynomial(2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:60])
def test_values_are_those_of_the_formula(kernel: Kernel) -> None:
    X = sparse_rows(40, 30, 4.0)
    dense, pairs, found = X.toarray(), in_pairs(X), sparse_kernel(kernel, 30)
    K = found.prepare(pairs[:25]).block(pairs)
    wanted = plain(kernel, dense, dense[:25])
    np.testing.assert_allclose(K, wanted, rtol=1e-13, atol=1e-13 * np.abs(wanted).max())
    np.testing.assert_allclose(found.diagonal(pairs), kernel.diagonal(dense), rtol=1e-14)
    assert found.stationary == kernel.stationary


def test_the_first_columns_of_a_wider_array_are_filled_alone() -> None:
    pairs = in_pairs(sparse_rows(40, 30, 4.0))
    for kernel in KERNELS:
        for dtype in ("float64", "float32"):
            X = pairs.astype(dtype)
            prepared = sparse_kernel(kernel, 30).prepare(X[:25])
            wide = np.full((40, 28), np.nan, dtype)
            prepared.block(X, wide[:, :25])
            np.testing.assert_array_equal(wide[:, :25], prepared.block(X))
            assert np.isnan(wide[:, 25:]).all()


@given(seeds, st.integers(1, 50), st.integers(1, 12), st.integers(0, 4))
def test_rows_do_not_know_their_block(seed: int, m: int, d: int, more: int) -> None:
    X = sparse_rows(m, d, 2.0, seed)
    for kernel in (Gaussian(), Laplacian(), Cosine()):
        prepared = sparse_kernel(kernel, d).prepare(in_pairs(X))
        whole = prepared.block(in_pairs(X))
        # Alone, of an array with more room, and against some of the points only.
        some = np.random.default_rng(seed).integers(0, m, 3)
        assert (prepared.block(in_pairs(X, more)[some]) == whole[some]).all()
        assert (sparse_kernel(kernel, d).prepare(in_pairs(X, more)[some]).block(in_pairs(X)) == whole[:, some]).all()


def test_equal_rows_have_exactly_the_value_of_the_diagonal() -> None:
    X = sparse_rows(30, 20, 5.0, 3)
    pairs = in_pairs(X)
    for kernel in (Gaussian(1e-3), Laplacian(1e-3), Matern(1e-3)):
        found = sparse_kernel(kernel, 20)
        assert (np.diagonal(found.prepare(pairs).block(pairs)) == found.diagonal(pairs)).all()
    cosines = np.diagonal(sparse_kernel(Cosine(), 20).prepare(pairs).block(pairs))
    assert set(cosines) <= {0.0, 1.0}


def test_near_rows_far_from_the_origin_keep_their_digits() -> None:
    """|x|^2 + |z|^2 - 2 x.z would have none of them: the rows are merged."""
    rng = np.random.default_rng(0)
    dense = 1e8 + rng.standard_normal((20, 6))
    dense[:, 3] = 0.0
    pairs = pairs_of(np.arange(0, 101, 5), np.tile([0, 1, 2, 4, 5], 20), dense[:, [0, 1, 2, 4, 5]].ravel(), 5)
    for kernel in (Gaussian(2.0), Laplacian(2.0), Matern(2.0)):
        K = sparse_kernel(kernel, 6).prepare(pairs).block(pairs)
        np.testing.assert_allclose(K, plain(kernel, dense, dense), rtol=1e-12)


def test_distances_of_pairs() -> None:
    from scipy.spatial.distance import pdist

    X = sparse_rows(25, 15, 3.0)
    for distance in ("euclidean", "cityblock"):
        found = sparse_distances(in_pairs(X), distance, 15)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, pdist(X.toarray(), distance), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:60])
def test_gradients_by_lengthscales_are_those_of_dense_rows(kernel: Kernel) -> None:
    X = sparse_rows(40, 30, 4.0)
    W = np.random.default_rng(1).standard_normal((40, 25))
    found = lengthscale_gradient(sparse_kernel(kernel, 30), in_pairs(X), in_pairs(X)[:25], W)
    np.testing.assert_allclose(found, lengthscale_gradient(kernel, X.toarray(), X.toarray()[:25], W), rtol=1e-9)


def test_a_kernel_is_saved_and_sent() -> None:
    kernel = sparse_kernel(2.0 * Matern(3.0) + Polynomial(), 12)
    config = json.loads(json.dumps(kernel.to_config()))
    assert kernel_from_config(config) == kernel
    assert is_kernel_of_pairs(config)
    assert not is_kernel_of_pairs(Gaussian().to_config())
    assert sparse_kernel(kernel, 12) == kernel
    pairs = in_pairs(sparse_rows(9, 12, 3.0))
    prepared = kernel.prepare(pairs[:4])
    assert (pickle.loads(pickle.dumps(prepared)).block(pairs) == prepared.block(pairs)).all()
    assert kernel.with_lengthscale(5.0) == sparse_kernel(2.0 * Matern(5.0) + Polynomial(), 12)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (ArcCosine(), "arc_cosine"),
        (Hamming(), "hamming"),
        (Periodic(1.0, 1.0), "periodic"),
        (Sigmoid(), "sigmoid"),
        (OfColumns(Gaussian(), (0,)), "of_columns"),
        (Gaussian() + Hamming(), "hamming"),
        (Gaussian((1.0, 2.0)), "one for each column"),
    ],
)
def test_other_kernels_are_refused(kernel: Kernel, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as error:
        sparse_kernel(kernel, 2)
    assert "dense rows" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_part_that_is_not_computed_is_refused_from_a_file_too() -> None:
    with pytest.raises(ParameterError, match="sparse"):
        SparseKernel(Hamming(), 3)


@pytest.mark.parametrize(
    "points",
    [
        [[0.0, 3.0, 1.0, 1.0]],  # column 3 of 3
        [[1.0, 1.0, 1.0, 1.0]],  # twice
        [[1.0, 0.0, 1.0, 1.0]],  # falling
        [[-1.0, 0.0, 0.0, 1.0]],  # an entry after the end
        [[0.5, -1.0, 1.0, 0.0]],
        [[0.0, -1.0, 1.0, 1.0]],  # a value of no entry
        [[0.0, -1.0, np.nan, 0.0]],
        [[np.nan, -1.0, 1.0, 0.0]],
        [[0.0, 1.0, 1.0]],
    ],
)
def test_points_that_are_no_rows_are_refused(points: Any) -> None:
    assert not are_pairs(np.array(points), 3)
    with pytest.raises(ShapeError):
        sparse_kernel(Gaussian(), 3).prepare(np.array(points))


def test_columns_beyond_those_of_the_points_are_never_read() -> None:
    prepared = sparse_kernel(Linear(), 3).prepare(np.array([[0.0, 2.0]]))
    assert prepared.block(np.array([[1e15, 1.0], [7.0, 1.0], [0.0, 1.0]])).tolist() == [[0.0], [0.0], [2.0]]


@given(seeds, st.integers(1, 30), st.integers(1, 9))
def test_pairs_are_the_rows(seed: int, m: int, d: int) -> None:
    X = sparse_rows(m, d, 2.0, seed)
    pairs: NDArray[np.float64] = in_pairs(X, seed % 3)
    assert are_pairs(pairs, d)
    assert (as_csr(pairs, d) != X).nnz == 0
    if m > 1:  # a part of CSR, whose first entry is not number 0
        part = pairs_of(X.indptr[1:], X.indices[X.indptr[1] :], X.data[X.indptr[1] :], pairs.shape[1] // 2)
        assert (part == pairs[1:]).all()
