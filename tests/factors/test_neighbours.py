"""Nearest neighbours by codes: the bounds hold, the rows are those of brute force, most distances are not computed."""

from __future__ import annotations

import copy
import pickle
import random
from functools import reduce
from pathlib import Path
from typing import Any

import data_sets
import naive
import numpy as np
import pytest
from factored import factors, rows_of, session
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks, zarr_of_chunks
from strategies import chunkings, few_examples, rows

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.factors import Codes, FeatureRows, NearestRows, Neighbours, nearest_neighbours
from streamkernel.kernels import Gaussian, Kernel, Laplacian, Polynomial
from streamkernel.table import Scaler, open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def data(m: int = 300, p: int = 3) -> Any:
    return np.random.default_rng(0).standard_normal((m, p))


def squares(kernel: Kernel, X: Any, queries: Any) -> Any:
    """d^2 (q, m), each query by itself, as the package's kernels have it: ties are then exact."""
    values = np.concatenate([kernel(X, query[None]) for query in queries], axis=1).T
    return np.maximum(kernel.diagonal(X) + kernel.diagonal(queries)[:, None] - 2 * values, 0.0)


# -------------------------------------------------------------------------------------------------------------- bounds
@given(factors(), st.integers(0, 5))
def test_codes_bound_distances_from_both_sides(case: Any, far: int) -> None:
    found, K, chosen = case
    X = found.table.read(0, found.shape[0]).X
    codes = Codes.of(found.basis, X)
    d2 = naive.squared_distances(K)
    lower, upper = codes.lower(codes), codes.upper(codes)
    assert (lower <= d2 + 1e-15).all()
    assert (d2 <= upper + 1e-15).all()
    exact_lower, exact_upper = naive.code_bounds(K, chosen)
    slack = 6 * np.sqrt(codes.margin)  # residuals are made larger by its root
    np.testing.assert_allclose(codes.distances(codes), exact_lower, atol=slack)
    np.testing.assert_allclose(lower, exact_lower, atol=slack)
    np.testing.assert_allclose(upper, exact_upper, atol=slack)


@given(rows(min_rows=5, max_rows=40, dtype=np.float64))
def test_bounds_hold_where_pivots_are_tiny(X: Any) -> None:
    """Bases up to the very edge of dependence, whose features have lost half of their digits."""
    kernel = Gaussian(2.0 * float(np.abs(X).max()) or 1.0)
    basis, _ = Basis.empty(kernel, X.shape[1], X.dtype).append(X[:20], np.arange(min(20, len(X))))
    codes = Codes.of(basis, X)
    lower, upper = codes.lower(codes), codes.upper(codes)
    d2 = squares(kernel, X, X)
    assert (lower <= d2).all()
    assert (d2 <= upper).all()


def test_the_cards_codes() -> None:
    """The extra coordinate lifts the mean lower bound from .733 to .797 of d^2; 87 of 1560 kernel evaluations."""
    d2, off = naive.squared_distances(CARD.K), ~np.eye(40, dtype=bool)
    basis = basis_of(CARD.X, SGMA)
    codes = Codes.of(basis, CARD.X)
    lower = codes.distances(codes)
    plain = lower - (codes.r[:, None] - codes.r) ** 2
    np.testing.assert_allclose([plain[off].mean(), lower[off].mean()] / d2[off].mean(), [0.733, 0.797], atol=5e-4)
    looks = 0
    for j in range(40):
        others = np.flatnonzero(np.arange(40) != j)
        best, count = naive.nearest_scan(d2[j, others], lower[j, others], 1)
        assert best == {int(d2[j, others].argmin())}
        looks += count
    assert looks == 87


# ------------------------------------------------------------------------------------------------------- brute force
KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(1.5),
    "laplacian": Laplacian(3.0),
    "polynomial": Polynomial(degree=2),
    "sum": Gaussian(1.0) + Polynomial(degree=1),
}


@pytest.mark.parametrize("kernel", KERNELS)
@few_examples(0.4)
@given(X=rows(min_rows=6, max_rows=150, max_features=4, dtype=np.float64), data=st.data())
def test_neighbours_are_those_of_brute_force_for_any_chunking(kernel: str, X: Any, data: st.DataObject) -> None:
    """Duplicates and all: equal distances go by row number."""
    k = KERNELS[kernel]
    basis, _ = Basis.empty(k, X.shape[1], X.dtype).append(X[:4], np.arange(4))
    count = data.draw(st.one_of(st.integers(1, 4), st.integers(1, len(X))))
    queries = np.concatenate([X[:40:2], X[:3] + 0.1])
    work = NearestRows(basis, queries, count)
    states = [work.map_block(block) for block in blocks(X, None, data.draw(chunkings(len(X))))]
    order = data.draw(st.permutations(states))
    d2 = squares(k, X, queries)
    expected = naive.nearest(d2, count)
    for some in (states, order):
        found = work.finalize(reduce(work.combine, some))
        np.testing.assert_array_equal(found.rows, expected)
        np.testing.assert_array_equal(found.distances, np.sqrt(np.take_along_axis(d2, expected, axis=1)))
    assert 0 < found.evaluations <= found.pairs == d2.size


@few_examples(0.4)
@given(X=rows(min_rows=6, max_rows=40, dtype=np.float64), data=st.data())
def test_fold_is_combine_of_map(X: Any, data: st.DataObject) -> None:
    kernel = Gaussian(float(np.abs(X).max()) or 1.0)
    basis, _ = Basis.empty(kernel, X.shape[1], X.dtype).append(X[:4], np.arange(4))
    for exact in (True, False):
        work = NearestRows(basis, X[:5], 3, exact)
        parts = list(blocks(X, None, data.draw(chunkings(len(X)))))
        states = [work.map_block(block) for block in parts]
        kept = copy.deepcopy(states)
        combined = work.finalize(reduce(work.combine, states))
        folded = work.map_block(parts[0])
        for block in parts[1:]:
            folded = work.fold(folded, block)
        found = work.finalize(folded)
        np.testing.assert_array_equal(found.rows, combined.rows)
        np.testing.assert_array_equal(found.distances, combined.distances)
        assert max(found.evaluations, combined.evaluations) <= found.pairs == combined.pairs
        if len(states) > 1:
            np.testing.assert_equal(states, kept)
        assert sum(values.nbytes for values in kept[0].values()) <= work.state_bytes()


@given(X=rows(min_rows=8, max_rows=40, dtype=np.float64), data=st.data())
def test_codes_alone_give_the_neighbours_among_codes(X: Any, data: st.DataObject) -> None:
    kernel = Laplacian(float(np.abs(X).max()) or 1.0)
    basis, _ = Basis.empty(kernel, X.shape[1], X.dtype).append(X[:5], np.arange(5))
    work = NearestRows(basis, X[:6], 4, exact=False)
    states = [work.map_block(block) for block in blocks(X, None, data.draw(chunkings(len(X))))]
    found = work.finalize(reduce(work.combine, states))
    lower = np.maximum(Codes.of(basis, X[:6]).distances(Codes.of(basis, X)), 0.0)
    np.testing.assert_allclose(found.distances**2, np.sort(lower, axis=1)[:, :4], atol=2e-6)
    np.testing.assert_allclose(np.take_along_axis(lower, found.rows, axis=1), found.distances**2, atol=2e-6)
    whole = work.finalize(work.map_block(next(blocks(X, None, [len(X)]))))
    np.testing.assert_array_equal(whole.rows, found.rows)
    assert found.evaluations == 0
    assert found.saved == 1.0


# --------------------------------------------------------------------------------------------------- sweeps and savings
def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


@pytest.mark.parametrize("exact", [True, False])
def test_one_sweep_and_the_same_for_any_chunks_and_workers(exact: bool, tmp_path: Path) -> None:
    X = data(20_000).astype(np.float32)
    X[7000:7100] = X[:100]
    basis = basis_of(X, range(100, 3100, 100))
    queries = X[:300:2] + np.float32(0.01) * data(150).astype(np.float32)
    queries[:20] = X[:20]
    found: list[Neighbours] = []
    for chunk in (700, 20_000):
        path = zarr_of_chunks(tmp_path / f"{chunk}.zarr", X, X[:, 0].astype(np.float64), chunk)
        table = FeatureRows(open_table(path).slice(0, 19_000), basis)
        where = session()
        found.append(nearest_neighbours(table, queries, 5, where, exact=exact))
        assert [record.name for record in where.records] == ["nearest neighbours"]
        again = nearest_neighbours(table, queries, 5, Session(ThreadExecutor(3, shuffled)), exact=exact)
        assert again.evaluations == found[-1].evaluations
        np.testing.assert_array_equal(again.rows, found[-1].rows)
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].rows[:20, 0], np.arange(20))
    np.testing.assert_array_equal(found[0].rows[:20, 1], 7000 + np.arange(20))
    if exact:
        d2 = squares(basis.kernel, X[:19_000].astype(np.float64), queries.astype(np.float64))
        np.testing.assert_array_equal(found[0].rows, naive.nearest(d2, 5))
        assert found[0].pairs == 150 * 19_000
        assert found[0].saved > 0.9
    else:
        np.testing.assert_array_equal(found[0].distances, found[1].distances)


def test_queries_are_raw_rows_and_scaled_as_the_table_is() -> None:
    X = data(400) * [1.0, 100.0, 0.01]
    scaler = Scaler(X.mean(axis=0), X.std(axis=0))
    table = open_table(X).with_scaler(scaler)
    basis = basis_of(table.read(0, 400).X, range(0, 400, 20))
    found = nearest_neighbours(FeatureRows(table, basis), X[:30], 2, session())
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(30))
    np.testing.assert_array_equal(found.distances[:, 0], 0.0)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_array_equal(found.rows, naive.nearest(squares(basis.kernel, scaled, scaled[:30]), 2))


def test_pendigits_are_found_with_few_kernel_values() -> None:
    real = data_sets.load("pendigits")
    if real is None:
        pytest.skip("pendigits is not in ../shared/data")
    X = np.ascontiguousarray(real.X[:3000], dtype=np.float64)
    X = X / X.std(axis=0)
    kernel = Gaussian(4.0)
    table = rows_of(X, np.random.default_rng(0).choice(2900, 120, replace=False), kernel)
    found = nearest_neighbours(table, X[2900:], 3, session())
    np.testing.assert_array_equal(found.rows, naive.nearest(squares(kernel, X, X[2900:]), 3))
    assert found.saved > 0.9
    labels = real.y[:3000]
    assert (labels[found.rows[:, 1]] == labels[2900:]).mean() > 0.9
    quick = nearest_neighbours(table, X[2900:], 3, session(), exact=False)
    shared = [len(set(a) & set(b)) / 3 for a, b in zip(found.rows, quick.rows, strict=True)]
    assert np.mean(shared) > 0.6


def test_an_empty_basis_is_brute_force() -> None:
    X = data(50)
    empty = FeatureRows(open_table(X), Basis.empty(Gaussian(1.0), 3, X.dtype))
    found = nearest_neighbours(empty, X[:5], 4, session())
    np.testing.assert_array_equal(found.rows, naive.nearest(squares(Gaussian(1.0), X, X[:5]), 4))
    assert found.saved == 0.0


def test_what_travels_is_queries_and_basis_only() -> None:
    work = NearestRows(basis_of(data(), range(100)), data(50), 2)
    small = len(pickle.dumps(work))
    work.map_block(next(blocks(data(), None, [300])))
    assert len(pickle.dumps(work)) == small


def test_bad_questions() -> None:
    found = rows_of(data(20), [0, 1])
    for count in (0, -1, 21, 1.5, True, None):
        with pytest.raises(ParameterError, match=r"count|neighbours"):
            nearest_neighbours(found, data(5), count, session())
    with pytest.raises(ShapeError, match="2 features"):
        nearest_neighbours(found, data(5, 2), 1, session())
    with pytest.raises(ParameterError, match="need the basis"):
        nearest_neighbours(FeatureRows(open_table(data(20))), data(5), 1, session())
