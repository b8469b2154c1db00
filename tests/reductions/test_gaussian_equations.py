"""Sums of sparse Gaussian processes: by their definition, in members that nothing but the table's rows decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import dask.array as da
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, Float, basis_of, blocks, scratch_of, table_of_chunks
from strategies import cuts, dtypes, few_examples, seeds

from streamkernel.engine import Session, ThreadExecutor, layout_of
from streamkernel.engine.layout import Layout, aligned_spans
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Gaussian, Kernel, Matern, Polynomial
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions.sums import (
    BlockNoise,
    ConstantNoise,
    DiagonalNoise,
    GaussianEquations,
    GaussianSums,
    NormalEquations,
    RowNoise,
)
from streamkernel.table import RowBlock, open_table

SIGNAL, NOISE = 1.7, 0.05


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in tasks: small products are not shared out among all cores."""
    with single_threaded_blas():
        yield


def problem(seed: int = 0, m: int = 60, dtype: Any = FLOAT64) -> tuple[Any, Float]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3)).astype(dtype)
    return X, 3.0 + np.sin(X[:, :2]) + 0.1 * rng.standard_normal((m, 2))


def swept(reduction: GaussianEquations, X: Any, Y: Any, weights: Any = None) -> GaussianSums:
    return reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)], weights))))


def equations(X: Any, noise: RowNoise, kernel: Kernel | None = None, n: int = 6, **options: Any) -> GaussianEquations:
    return GaussianEquations(basis_of(X, range(n), kernel or Gaussian(1.4)), np.array([3.0, 2.5]), noise, **options)


def assert_sums(found: GaussianSums, expected: GaussianSums, tolerance: float = 1e-10) -> None:
    for field in fields(GaussianSums):
        one, other = (np.asarray(getattr(sums, field.name)) for sums in (expected, found))
        size = max(1.0, float(np.abs(one).max(initial=0.0)))
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * size, err_msg=field.name)


# ------------------------------------------------------------------------------------------------- by definition
def by_definition(work: GaussianEquations, X: Any, Y: Float, members: Any) -> GaussianSums:
    """In the features that the basis has (tested with it), and dense matrices for all else."""
    G, K = work.basis.features(X), work.basis.kernel(X.astype(np.float64))
    R, Yc = K - G @ G.T, Y - work.centre
    made = work.row_noise
    signal, noise = (1.0, 1.0) if isinstance(made, ConstantNoise) else (made.signal, made.noise)  # type: ignore[attr-defined]
    Om = naive.conditional_covariance(R, noise, signal, members)
    return GaussianSums(
        H=G.T @ np.linalg.solve(Om, G),
        g=G.T @ np.linalg.solve(Om, Yc),
        YY=Yc.T @ np.linalg.solve(Om, Yc),
        G1=G.sum(axis=0),
        Y1=Yc.sum(axis=0),
        squares=(G**2).sum(axis=0),
        centre=work.centre,
        log_det=np.linalg.slogdet(Om)[1],
        trace=np.trace(K),
        residual_trace=np.trace(R),
        count=len(X),
        weight=float(len(X)),
    )


def successive(m: int, size: int) -> list[range]:
    return [range(first, min(first + size, m)) for first in range(0, m, size)]


CASES: list[tuple[RowNoise, int]] = [
    (ConstantNoise(), 0),
    (DiagonalNoise(SIGNAL, NOISE), 1),
    (BlockNoise(SIGNAL, NOISE, 1), 1),
    (BlockNoise(SIGNAL, NOISE, 11), 11),
    (BlockNoise(SIGNAL, NOISE, 60), 60),
    (BlockNoise(SIGNAL, NOISE, 1000), 60),
]


@pytest.mark.parametrize(("noise", "size"), CASES, ids=str)
@pytest.mark.parametrize("kernel", [Gaussian(1.4), Gaussian((0.5, 2.0, 1.0)), Polynomial(degree=2)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_their_definition(noise: RowNoise, size: int, kernel: Kernel, dtype: Any) -> None:
    X, Y = problem(dtype=dtype)
    work = equations(X, noise, kernel)
    assert_sums(swept(work, X, Y), by_definition(work, X, Y, successive(60, size) if size else None), 1e-9)


NOISES = [ConstantNoise(), DiagonalNoise(SIGNAL, NOISE), BlockNoise(SIGNAL, NOISE, 1000)]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_row_of_weight_w_is_w_rows(noise: RowNoise) -> None:
    """In blocks the copies of a row have one value of f: they belong to the same block."""
    X, Y = problem()
    w = np.random.default_rng(1).integers(0, 4, 60)
    work, again = equations(X, noise), np.repeat(np.arange(60), w)
    assert_sums(replace(swept(work, X, Y, w.astype(float)), count=len(again)), swept(work, X[again], Y[again]), 1e-10)
    assert_sums(swept(work, X, Y, np.ones(60)), swept(work, X, Y), 1e-13)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_row_of_weight_0_says_nothing(noise: RowNoise) -> None:
    X, Y = problem()
    w = np.random.default_rng(2).integers(0, 3, 60).astype(np.float64)
    work = equations(X, noise)
    heard = w > 0
    assert_sums(swept(work, X, Y, w), swept(work, X[heard], Y[heard], w[heard]), 1e-11)


def test_constant_noise_is_what_normal_equations_sum() -> None:
    X, Y = problem()
    plain = NormalEquations(equations(X, ConstantNoise()).basis, np.array([3.0, 2.5]))
    expected = plain.finalize(plain.map_block(RowBlock(0, X, Y)))
    found = swept(equations(X, ConstantNoise()), X, Y)
    for name in ("H", "g", "YY", "G1", "Y1", "trace", "count"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-10)
    assert found.residual_trace == pytest.approx(expected.trace - np.trace(expected.H), rel=1e-9)
    assert found.log_det == 0.0


@pytest.mark.parametrize("noise", [ConstantNoise(), DiagonalNoise(SIGNAL, NOISE)], ids=str)
def test_appended_rows_give_the_sums_of_all_to_the_last_bits(noise: RowNoise) -> None:
    """Whitened at the end they would agree to 1e-16 over the least pivot only, which is 8e-7 here."""
    X = np.linspace(0.0, 3.0, 400)[:, None]
    Y = np.sin(3.0 * X)
    work = GaussianEquations(basis_of(X, range(0, 400, 35)), np.zeros(1), noise)
    assert work.basis.least_pivot < 1e-6
    both = swept(work, X[:300], Y[:300]).merge(swept(work, X[300:], Y[300:]))
    together = swept(work, X, Y)
    for name in ("H", "g", "squares", "G1"):
        expected = getattr(together, name)
        np.testing.assert_allclose(getattr(both, name), expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_without_targets() -> None:
    X, _ = problem()
    for noise, _ in CASES:
        work = replace(equations(X, noise), centre=np.zeros(0))
        found = swept(work, X, None)
        assert found.g.shape == (6, 0)
        np.testing.assert_allclose(found.H, swept(equations(X, noise), X, problem()[1]).H, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- appended rows
@pytest.mark.parametrize(("noise", "size"), CASES[:4], ids=str)
def test_sums_of_two_lots_are_the_sums_of_both(noise: RowNoise, size: int) -> None:
    X, Y = problem(m=66)
    work = equations(X, noise)
    first, second = (swept(work, X[rows], Y[rows]) for rows in (slice(0, 22), slice(22, 66)))
    assert_sums(GaussianSums.merge(first, second), swept(work, X, Y), 1e-11)
    assert_sums(second.merge(first), swept(work, X, Y), 1e-11)


def test_sums_of_other_functions_or_about_another_centre_are_not_added() -> None:
    X, Y = problem()
    sums = swept(equations(X, ConstantNoise()), X, Y)
    for other in (
        equations(X, ConstantNoise(), n=5),
        replace(equations(X, ConstantNoise()), centre=np.array([3.0, 2.6])),
    ):
        with pytest.raises(ParameterError, match=r"cannot be added .*sweep the new rows with the basis and the centre"):
            sums.merge(swept(other, X, Y))


# ------------------------------------------------------------------------------------------- members, however cut
@st.composite
def cut_tables(draw: st.DrawFn) -> tuple[Any, ...]:
    """Rows, a block size, cells or none, chunks of any lengths, a first row, spans, blocks and threads."""
    m = draw(st.integers(2, 90))
    X, Y = problem(draw(seeds), m, draw(dtypes))
    size = draw(st.integers(1, 40))
    noise = BlockNoise(SIGNAL, NOISE, size, X[: draw(st.integers(1, 5))] if draw(st.booleans()) else None)
    start = draw(st.integers(0, m - 1))
    return X, Y, noise, draw(cuts(m)), start, draw(st.integers(1, 100)), draw(st.integers(1, 100))


@few_examples(0.3)
@given(case=cut_tables(), threads=st.sampled_from([1, 2, 3]))
def test_members_are_the_same_for_any_chunks_spans_blocks_and_threads(case: Any, threads: int) -> None:
    X, Y, noise, chunks, start, span_rows, block_rows = case
    n = min(4, len(X))
    work = GaussianEquations(basis_of(X, range(n)), np.zeros(2), noise)
    expected = work.finalize(work.map_block(RowBlock(start, X[start:], Y[start:])))
    table = open_table(da.from_array(X, chunks=(chunks, -1)), da.from_array(Y, chunks=(chunks, -1)))
    table = table.slice(start, len(X))
    multiple = noise.row_multiple
    layout = Layout(aligned_spans(table.spans(span_rows), multiple), max(block_rows // multiple, 1) * multiple)
    state = ThreadExecutor(threads).reduce(work, table, layout, lambda rows: None)
    assert_sums(work.finalize(state), expected)


def test_the_engine_keeps_members_whole(tmp_path: Any) -> None:
    """As a session sweeps: several spans and blocks, chunks that no member fits, the last member short."""
    X, Y = problem(m=20_000)
    noise = BlockNoise(SIGNAL, NOISE, 300)
    work = GaussianEquations(basis_of(X, range(5)), np.zeros(1), noise)
    expected = work.finalize(work.map_block(RowBlock(0, X, Y[:, :1])))
    states = []
    for chunk_rows in (999, 4096):
        table = table_of_chunks(tmp_path / str(chunk_rows), X, Y[:, 0], chunk_rows)
        layout = layout_of(work, table)
        assert len(layout.spans) > 1
        for threads in (1, 2):
            sums = Session(ThreadExecutor(threads)).sweep(work, table, "sums")
            assert_sums(sums, expected)
            states.append(sums.H.tobytes())
        assert states[-1] == states[-2]


@given(seed=seeds, m=st.integers(1, 400), size=st.integers(1, 30), count=st.integers(1, 6), dtype=dtypes)
def test_members_of_cells(seed: int, m: int, size: int, count: int, dtype: Any) -> None:
    """Among the rows of 16 members those of one cell, in their order, cut at the block size."""
    rng = np.random.default_rng(seed)
    X, centres = rng.standard_normal((m, 2)).astype(dtype), rng.standard_normal((count, 2))
    lengths = np.array([0.3, 2.0])
    kernel = Gaussian(tuple(lengths))
    noise = BlockNoise(1.0, 0.1, size, centres)
    assert noise.row_multiple == 16 * size
    distances = (((X[:, None, :] - centres) / lengths) ** 2).sum(axis=2)
    expected = naive.cell_members(distances, size, 16 * size)
    found: list[list[int]] = []
    for members in noise.members(X, kernel):
        rows = np.arange(m)[members.rows]
        assert len(rows) == sum(members.sizes) <= noise.held_rows(m)
        found += [part.tolist() for part in np.split(rows, np.cumsum(members.sizes)[:-1])]
    assert found == expected


def test_sums_of_cells_by_their_definition() -> None:
    X, Y = problem(m=70)
    noise = BlockNoise(SIGNAL, NOISE, 4, X[:3])
    work = equations(X, noise)
    distances = ((X[:, None, :] - X[:3]) ** 2).sum(axis=2)
    assert_sums(swept(work, X, Y), by_definition(work, X, Y, naive.cell_members(distances, 4, 64)), 1e-9)


def test_duplicates_and_rows_of_the_basis_in_one_member() -> None:
    X, Y = problem()
    rows = np.concatenate([np.zeros(20, int), np.arange(60), np.arange(6)])
    work = equations(X, BlockNoise(SIGNAL, NOISE, 86))
    expected = by_definition(work, X[rows], Y[rows], [range(86)])
    assert_sums(swept(work, X[rows], Y[rows]), expected, 1e-9)


# ----------------------------------------------------------------------------------------------------------- refusals
def test_noise_that_is_lost_in_rounding_names_the_rows_and_the_way_out() -> None:
    X, Y = problem()
    X[37] = X[35]
    noise = BlockNoise(1.0, 1e-30, 20)
    work = equations(problem(seed=1)[0], noise)
    with pytest.raises(NumericalError, match=r"20 rows of 1020:1040, .* at row 1037: noise .* give a noise variance"):
        work.map_block(RowBlock(1000, X[:60], Y))
    # What it says helps.
    with pytest.raises(NumericalError) as caught:
        work.map_block(RowBlock(0, X, Y))
    least = float(str(caught.value).split()[-3])
    better = replace(work, row_noise=replace(noise, noise=least))
    assert np.isfinite(swept(better, X, Y).log_det)


def test_the_failing_row_is_one_of_its_cell() -> None:
    X, Y = problem()
    X[50] = X[7]
    work = equations(problem(seed=1)[0], BlockNoise(1.0, 1e-30, 60, X[:4]))
    with pytest.raises(NumericalError, match="not positive definite at row 50: noise variance 1e-30 is lost"):
        work.map_block(RowBlock(0, X, Y))


def test_members_of_weight_0_only_are_none() -> None:
    """Rows 10 to 30 have weight 0: a whole member of 10 rows, and parts of two."""
    X, Y = problem()
    w = np.where((np.arange(60) >= 10) & (np.arange(60) < 30), 0.0, 2.0)
    w[33] = 0.0
    work, kept = equations(X, BlockNoise(SIGNAL, NOISE, 10)), np.flatnonzero(w)
    found = swept(work, X, Y, w)
    parts = [swept(work, X[rows], Y[rows], w[rows]) for rows in np.split(kept, [10, 19, 29])]
    expected = parts[0]
    for part in parts[1:]:
        expected = expected.merge(part)
    assert_sums(found, expected, 1e-10)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "1", True])
def test_variances_are_positive_numbers(bad: Any) -> None:
    for make in (DiagonalNoise, lambda s, v: BlockNoise(s, v, 10)):
        with pytest.raises(ParameterError, match="signal"):
            make(bad, 1.0)
        with pytest.raises(ParameterError, match="noise"):
            make(1.0, bad)


@pytest.mark.parametrize("bad", [0, -3, 2.5, "10"])
def test_the_block_size_is_a_whole_number(bad: Any) -> None:
    with pytest.raises(ParameterError, match="block_size"):
        BlockNoise(1.0, 1.0, bad)


def test_cells_are_centres_of_the_rows() -> None:
    for bad in (np.zeros(3), np.full((2, 3), np.nan), np.zeros((0, 3))):
        with pytest.raises(ParameterError, match="cells are no centres"):
            BlockNoise(1.0, 1.0, 10, bad)
    X, Y = problem()
    with pytest.raises(ParameterError, match="cells have 2 features, the rows 3"):
        swept(equations(X, BlockNoise(1.0, 0.1, 10, np.zeros((2, 2)))), X, Y)


# ------------------------------------------------------------------------------------------------------- the promise
@pytest.mark.parametrize(
    ("noise", "n"),
    [
        (ConstantNoise(), 200),
        (DiagonalNoise(SIGNAL, NOISE), 200),
        (BlockNoise(SIGNAL, NOISE, 700), 200),
        (BlockNoise(SIGNAL, NOISE, 3000), 20),
        (BlockNoise(SIGNAL, NOISE, 50), 200),
        (BlockNoise(SIGNAL, NOISE, 300, np.random.default_rng(0).standard_normal((40, 12)).astype(np.float64)), 100),
    ],
    ids=["constant", "diagonal", "blocks", "large blocks", "small blocks", "cells"],
)
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_a_block_holds_what_it_promises(noise: RowNoise, n: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 12)).astype(dtype)
    work = GaussianEquations(basis_of(X, range(n), Gaussian(4.0)), np.zeros(2), noise)
    table = open_table(X, rng.standard_normal((9000, 2)))
    rows = layout_of(work, table).block_rows
    block = table.read(0, min(rows, 9000))
    state = work.map_block(block)
    peak = scratch_of(work, state, block)
    promised = work.scratch_bytes(len(block))
    assert 0.6 * promised < peak <= promised + 20_000
    assert rows % noise.row_multiple == 0


@pytest.mark.parametrize("kernel", [Gaussian(100.0), Gaussian(100.0) + Matern(100.0)], ids=["one", "sum"])
def test_members_of_wide_rows_are_packed_once_for_each_formula(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6000)).astype(np.float32)
    work = GaussianEquations(basis_of(X, range(30), kernel), np.zeros(1), BlockNoise(SIGNAL, NOISE, 60))
    block = open_table(X, rng.standard_normal(60)).read(0, 60)
    state = work.map_block(block)
    peak, promised = scratch_of(work, state, block), work.scratch_bytes(60)
    assert 0.7 * promised < peak <= promised + 20_000


def test_the_flops_of_blocks_are_those_of_their_factors() -> None:
    """b^3 / 3 + 2 b^2 n + 2 b n^2 and the kernel entries of b rows."""
    X, _ = problem(m=500)
    b, n, p = 1000, 400, 3
    work = GaussianEquations(basis_of(X, range(n), Gaussian(0.3)), np.zeros(1), BlockNoise(SIGNAL, NOISE, b))
    expected = b**3 / 3 + 2 * b * b * n + 2 * b * n * n + 2 * b * b * p + 2 * b * n * p
    assert b * work.flops_per_row() == pytest.approx(expected, rel=0.01)
