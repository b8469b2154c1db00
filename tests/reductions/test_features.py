"""Sweeps over a factor: recomputed from a basis or stored, they are the products of the dense G."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import reduce
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, Float, basis_of, blocks
from strategies import chunkings, dtypes, rows, seeds

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian, Polynomial
from streamkernel.reductions import Collect, Reduction
from streamkernel.reductions.sums import (
    FeatureGram,
    FeatureMap,
    Features,
    FeatureTimes,
    FeatureTransposed,
    NormalEquations,
)
from streamkernel.table import RowBlock

FIRST = 100  # tables begin anywhere in their input
WEIGHT = 3.0
WORK: dict[str, Callable[[Features, Float, Float], Reduction[Any]]] = {
    "gram": lambda features, V, A: FeatureGram(features),
    "transposed": lambda features, V, A: FeatureTransposed(features, V, FIRST),
    "times": lambda features, V, A: Collect(FeatureTimes.of(features, A), "values", len(V)),
    "features": lambda features, V, A: Collect(FeatureMap(features), "G", len(V)),
}


def blocks_from(X: Any, chunks: Any) -> list[RowBlock]:
    """Blocks numbered from FIRST, with targets that must not matter, and weights that only count in sums of rows."""
    Y, weights = np.full((len(X), 2), 7.0), np.full(len(X), WEIGHT)
    return [RowBlock(FIRST + block.start, block.X, block.Y, block.weights) for block in blocks(X, Y, chunks, weights)]


def swept(work: Reduction[Any], X: Any, chunks: Any) -> dict[str, Any]:
    """What the sweep over these chunks gives, by name."""
    found = work.finalize(reduce(work.combine, map(work.map_block, blocks_from(X, chunks))))
    return {"": found} if isinstance(found, np.ndarray) else vars(found)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Features, Float, Float, Float, tuple[int, ...]]:
    """Rows, where their features come from, dense G, V, A, and a way to cut the rows."""
    X = draw(rows(min_rows=2, max_rows=40, dtype=draw(dtypes)))
    rng = np.random.default_rng(draw(seeds))
    kernel = Gaussian(0.3 * float(np.abs(X).max()) or 1.0)
    basis, _ = Basis.empty(kernel, X.shape[1], X.dtype).append(X[:6], FIRST + np.arange(min(6, len(X))))
    G = np.linalg.solve(basis.L, kernel(basis.points.astype(float), X.astype(float))).T
    features = Features.of_basis(basis)
    if draw(st.booleans()):
        X = G = np.ascontiguousarray(G.astype(draw(dtypes)))
        features = Features(None, G.shape[1])
    q = draw(st.integers(1, 3))
    V, A = rng.standard_normal((len(X), q)), rng.standard_normal((G.shape[1], q))
    return X, features, G.astype(np.float64), V, A, draw(chunkings(len(X)))


@pytest.mark.parametrize("name", WORK)
@given(case=cases())
def test_any_chunking_is_the_dense_product(name: str, case: Any) -> None:
    X, features, G, V, A, chunks = case
    found = swept(WORK[name](features, V, A), X, chunks)
    expected = {
        "gram": {"H": WEIGHT * G.T @ G, "G1": WEIGHT * G.sum(axis=0)},
        "gram, whitened at the end": {"H": WEIGHT * G.T @ G, "G1": WEIGHT * G.sum(axis=0)},
        "transposed": {"": G.T @ V},
        "times": {"": G @ A},
        "features": {"": G},
    }[name]
    pivot = 1.0 if features.basis is None else features.basis.least_pivot
    tolerance = 1e-13 * len(X) / (pivot if "end" in name else np.sqrt(pivot))
    for part, value in expected.items():
        np.testing.assert_allclose(found[part], value, rtol=tolerance, atol=tolerance, err_msg=part)
    if "gram" in name:
        assert found["count"] == WEIGHT * len(X)
        assert found["trace"] == (None if features.basis is None else pytest.approx(WEIGHT * len(X)))


@pytest.mark.parametrize("name", WORK)
@given(case=cases())
def test_fold_is_combine_of_map_and_nothing_else_is_touched(name: str, case: Any) -> None:
    X, features, _, V, A, chunks = case
    work = WORK[name](features, V, A)
    parts = blocks_from(X, chunks)
    before = copy.deepcopy([(block.X, V, A) for block in parts])
    folded = work.map_block(parts[0])
    for block in parts[1:]:
        folded = work.fold(folded, block)
    states = [work.map_block(block) for block in parts]
    kept = copy.deepcopy(states)
    combined = reduce(work.combine, states)
    one, other = work.finalize(folded), work.finalize(combined)
    for left, right in zip(*[vars(x).values() if hasattr(x, "H") else [x] for x in (one, other)], strict=True):
        if left is not None:
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    np.testing.assert_equal([(block.X, V, A) for block in parts], before)
    if len(parts) > 1:
        np.testing.assert_equal(states, kept)


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("stored", [False, True])
def test_the_plan_knows_the_size_of_a_state(name: str, stored: bool) -> None:
    X = np.random.default_rng(0).standard_normal((400, 4))
    features = Features(None, 4) if stored else Features.of_basis(basis_of(X, range(30)))
    work = WORK[name](features, np.ones((400, 3)), np.ones((features.width, 3)))
    state = work.map_block(blocks_from(X, [400])[0])
    assert sum(values.nbytes for values in state.values()) <= work.state_bytes()
    assert work.scratch_bytes(400) > 0
    assert work.flops_per_row() > 0


def test_sums_are_those_of_the_normal_equations() -> None:
    X = np.random.default_rng(0).standard_normal((300, 3))
    basis = basis_of(X, range(40), Polynomial(degree=5))
    plain = NormalEquations(basis, np.zeros(0))
    block = next(blocks(X, None, [300]))
    expected, work = plain.finalize(plain.map_block(block)), FeatureGram(Features.of_basis(basis))
    found = work.finalize(work.map_block(block))
    for name in ("H", "G1", "trace"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.squares, np.diagonal(found.H))
    K = basis.kernel(X)
    assert found.residual_trace == pytest.approx(naive.residual_trace(K, range(40)), abs=1e-8 * np.trace(K))


def test_the_careful_way_is_taken_where_the_basis_asks_for_it() -> None:
    """Sixty points of a smooth kernel on a line: no pivot is below 3e-4, and together they are nearly dependent.

    The least eigenvalue is 7e-11, far above the rounding of any processor: with 1e-17 some have a factor, some none.
    """
    X = np.sort(np.random.default_rng(0).uniform(0, 60, 3000))[:, None]
    basis = basis_of(X, np.linspace(0, 2999, 60).astype(int), Gaussian(2.3))
    assert NormalEquations.of(basis, np.zeros(0), 3000).leading != 0
    assert NormalEquations.of(basis_of(X, [0, 1000, 2000]), np.zeros(0), 3000).leading == 0
    fewer = basis_of(X, np.linspace(0, 2999, 24).astype(int), Gaussian(3.0))
    assert NormalEquations.of(fewer, np.zeros(0), 3000, 0.0).leading != 0
    assert NormalEquations.of(fewer, np.zeros(0), 3000).leading == 0
    G = basis.features(X)
    for work in (FeatureGram(Features.of_basis(basis)), NormalEquations.of(basis, np.zeros(0), 3000, 0.0)):
        np.testing.assert_allclose(swept(work, X, [1000, 2000])["H"], WEIGHT * G.T @ G, atol=1e-11 * 3000)


def test_offsets_names_and_widths_of_row_maps() -> None:
    X = np.random.default_rng(0).standard_normal((9, 3))
    work = FeatureTimes.of(Features(None, 3), np.eye(3)[:, :2], np.array([1.0, -1.0]), "scores")
    assert work.columns == {"scores": (2, FLOAT64)}
    np.testing.assert_array_equal(work.map_block(blocks_from(X, [9])[0])["scores"], X[:, :2] + [1.0, -1.0])
    assert FeatureMap(Features(None, 3)).columns == {"G": (3, FLOAT64)}


def test_values_are_collected_in_the_order_of_the_rows() -> None:
    X = np.arange(1200.0)[:, None]
    work = Collect(FeatureMap(Features(None, 1)), "G", 1200)
    states = [work.map_block(block) for block in blocks_from(X, [3, 900, 97, 200])]  # from 100, 103, 1003 on
    backwards = reduce(lambda right, left: work.combine(left, right), states[::-1])
    np.testing.assert_array_equal(work.finalize(backwards), X)
