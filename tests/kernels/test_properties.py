"""What holds for every kernel, whatever its parameters."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import examples, plain
from strategies import chunkings, dtypes, rows, seeds

from streamkernel.kernels import (
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
    kernel_from_config,
)

lengths = st.floats(0.05, 50.0)


@st.composite
def kernels(draw: st.DrawFn, p: int, *, depth: int = 1) -> Kernel:
    lengthscale = draw(st.one_of(lengths, st.lists(lengths, min_size=p, max_size=p)))
    choices = [
        st.just(Gaussian(lengthscale)),
        st.just(Laplacian(lengthscale)),
        st.builds(Matern, st.just(lengthscale), st.sampled_from([0.5, 1.5, 2.5])),
        st.builds(RationalQuadratic, st.just(lengthscale), st.floats(0.1, 100.0)),
        st.builds(Periodic, st.floats(0.3, 50.0), st.floats(0.01, 100.0)),
        st.just(Hamming(lengthscale)),
        st.builds(Polynomial, st.integers(1, 7), st.one_of(st.none(), st.floats(0.001, 0.1)), st.floats(0.0, 2.0)),
        st.sampled_from([kernel for kernel in examples(p) if kernel.positive_definite]),
    ]
    if depth:
        part = kernels(p, depth=depth - 1)
        first = st.integers(1, p).flatmap(lambda q: kernels(q, depth=0).map(lambda k: OfColumns(k, tuple(range(q)))))
        choices += [first, st.builds(lambda a, factor: factor * a, part, st.floats(0.1, 10.0))]
        choices += [st.builds(lambda a, b: a + b, part, part), st.builds(lambda a, b: a * b, part, part)]
    return draw(st.one_of(choices))


@given(st.data(), st.integers(1, 40), dtypes)
def test_rows_do_not_know_their_block(data: st.DataObject, p: int, dtype: np.dtype) -> None:
    X = data.draw(rows(max_rows=90, min_features=p, max_features=p, dtype=dtype))
    kernel = data.draw(kernels(p))
    prepared = kernel.prepare(X[: data.draw(st.integers(1, len(X)))])
    whole = prepared.block(X)
    start = 0
    for length in data.draw(chunkings(len(X))):
        assert np.array_equal(prepared.block(X[start : start + length]), whole[start : start + length])
        start += length


@given(st.data(), st.integers(1, 30))
def test_positive_semi_definite_up_to_rounding(data: st.DataObject, p: int) -> None:
    X = data.draw(rows(max_rows=40, min_features=p, max_features=p, dtype=np.float64))
    K = data.draw(kernels(p))(X)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    assert eigenvalues[0] >= -1e-12 * max(1.0, eigenvalues[-1])


@given(st.data(), st.integers(1, 30), seeds)
def test_lengthscales_per_feature_are_scaled_columns(data: st.DataObject, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((25, p)), rng.standard_normal((9, p))
    scales = np.array(data.draw(st.lists(st.floats(0.2, 20.0), min_size=p, max_size=p)))
    for kernel in (Gaussian(tuple(scales)), Matern(tuple(scales), 1.5), Laplacian(tuple(scales))):
        unit = kernel.with_lengthscale(1.0)
        np.testing.assert_allclose(kernel(X, Z), unit(X / scales, Z / scales), rtol=0, atol=1e-13)


@given(st.data(), st.integers(1, 5))
def test_round_trips(data: st.DataObject, p: int) -> None:
    kernel = data.draw(kernels(p, depth=2))
    config = json.loads(json.dumps(kernel.to_config(), allow_nan=False))
    assert kernel_from_config(config) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(kernel_from_config(config)) == hash(kernel)


@given(st.data(), st.integers(1, 30), dtypes)
def test_diagonal(data: st.DataObject, p: int, dtype: np.dtype) -> None:
    X = data.draw(rows(min_features=p, max_features=p, dtype=dtype))
    kernel = data.draw(kernels(p))
    diagonal = kernel.diagonal(X)
    assert diagonal.dtype == np.float64
    wide = X.astype(np.float64)
    np.testing.assert_allclose(diagonal, np.diag(kernel(wide)), rtol=1e-11)
    if kernel.stationary:
        assert np.all(diagonal == 1)


@pytest.mark.parametrize("p", [3, 40])
def test_a_prepared_kernel_survives_pickle_and_threads(p: int) -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((4000, p)).astype(np.float32), rng.standard_normal((130, p)).astype(np.float32)
    for kernel in (Gaussian(2.0), Gaussian(2.0) + Matern(3.0), Polynomial()):
        prepared = kernel.prepare(Z)
        expected = prepared.block(X)
        again = pickle.loads(pickle.dumps(prepared))
        assert np.array_equal(again.block(X), expected)
        fresh = kernel.prepare(Z)
        with ThreadPoolExecutor(2) as pool:
            blocks = list(pool.map(lambda _, fresh=fresh: fresh.block(X), range(8)))
            wide = list(pool.map(lambda _, fresh=fresh: fresh.block(X[:50].astype(np.float64)), range(4)))
        assert all(np.array_equal(block, expected) for block in blocks)
        assert all(np.array_equal(block, wide[0]) for block in wide)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_rows_and_points(dtype: type) -> None:
    rng = np.random.default_rng(0)
    for p in (1, 13):
        for b, n in [(0, 3), (3, 0), (1, 1), (5, 63), (6, 64), (7, 65), (25, 31), (23, 33), (49, 129)]:
            X, Z = rng.standard_normal((b, p)).astype(dtype), rng.standard_normal((n, p)).astype(dtype)
            for kernel in examples(p):
                K = kernel.prepare(Z).block(X)
                assert K.shape == (b, n)
                tolerance = 1e-5 if dtype == np.float32 else 1e-13
                np.testing.assert_allclose(K, plain(kernel, X, Z), rtol=tolerance, atol=tolerance)


@given(st.data(), st.integers(1, 20), dtypes, st.integers(0, 3), st.integers(1, 9))
def test_the_first_columns_of_a_wider_array_are_filled_alone(
    data: st.DataObject, p: int, dtype: np.dtype, before: int, after: int
) -> None:
    X = data.draw(rows(max_rows=90, min_features=p, max_features=p, dtype=dtype))
    prepared = data.draw(kernels(p)).prepare(X[: data.draw(st.integers(1, len(X)))])
    n = len(prepared.points)
    wide = np.full((len(X), before + n + after), np.nan, dtype)
    out = wide[:, before : before + n]
    assert prepared.block(X, out) is out
    assert np.array_equal(out, prepared.block(X))
    assert np.isnan(wide[:, :before]).all()
    assert np.isnan(wide[:, before + n :]).all()


def test_out_is_filled_and_returned() -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((30, 4)), rng.standard_normal((70, 4))
    prepared = (Gaussian(1.0) + Linear()).prepare(Z)
    out = np.full((32, 70), np.nan)
    assert prepared.block(X, out=out[1:31]) is not None
    assert np.array_equal(out[1:31], prepared.block(X))
    assert np.isnan(out[[0, 31]]).all()


@pytest.mark.parametrize("cast", [">f4", ">f8", "f2", "i8", "u1", "?"])
def test_other_real_dtypes_are_cast(cast: str) -> None:
    X = np.random.default_rng(0).integers(0, 4, (20, 3)).astype(cast)
    kernel = Gaussian(2.0)
    np.testing.assert_allclose(kernel(X), plain(kernel, X, X), atol=1e-6)


def test_strided_and_read_only_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    Z = X[:10].copy()
    expected = Gaussian(2.0)(X[::2, 1::2].copy(), Z[:, 1::2].copy())
    X.flags.writeable = Z.flags.writeable = False
    assert np.array_equal(Gaussian(2.0)(X[::2, 1::2], Z[:, 1::2]), expected)
    unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    assert np.array_equal(Gaussian(2.0)(unaligned), Gaussian(2.0)(X))
