"""Sums of row weights by one pass, and draws that read only the runs which may hold a drawn row."""

from __future__ import annotations

import gc
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from slow_cases import slow_but

from streamkernel import KernelRidge
from streamkernel.errors import EmptyDataError, NonFiniteDataError, ParameterError
from streamkernel.reductions import counted_rows, draw_rows
from streamkernel.reductions.row_random import DrawnRows, row_uniforms
from streamkernel.table import Table, open_table, weight_sums

M = 20_000
RNG = np.random.default_rng(0)
KINDS: dict[str, Any] = {
    "whole": RNG.integers(0, 4, M).astype(float),
    "heavy tails": RNG.lognormal(0.0, 4.0, M),
    "few": np.where(RNG.random(M) < 0.99, 0.0, RNG.random(M)),
    "tiny": 1e-29 * RNG.random(M),
    "alike": np.full(M, 2.5),
    "one large": np.where(np.arange(M) == 7000, 1e29, 1.0),
    "ones": np.ones(M),
}


def lazy(w: Any, chunk: int = 500) -> Table:
    return open_table(np.zeros((M, 1)), weights=da.from_array(w, chunks=chunk))


def smallest_keys(w: Any, size: int, seed: int, stream: tuple[int, ...]) -> DrawnRows:
    """The definition: all keys ``E_i / w_i``, sorted."""
    alive = np.flatnonzero(w)
    keys = -np.log(row_uniforms(seed, stream, 0, len(w))[alive, 0]) / w[alive]
    order = np.lexsort((alive, keys))[: size + 1]
    return DrawnRows(alive[order], float(w.sum()), w[alive][order], keys[order]).first(size)


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
# Each kind of weights, and each size with weights that are alike and with those that are not.
@pytest.mark.parametrize(
    ("size", "kind"),
    slow_but(
        [(1, "heavy tails"), (1, "one large"), (40, "whole"), (40, "tiny"), (3000, "one large"), (3000, "alike"),
         (M, "few"), (M, "heavy tails")],
        product([1, 40, 3000, M], [kind for kind in KINDS if kind != "ones"]),
    ),
)  # fmt: skip
def test_a_draw_has_the_smallest_of_all_keys(kind: str, size: int) -> None:
    w = KINDS[kind]
    found, wanted = draw_rows(lazy(w), size, 3, (1, 2)), smallest_keys(w, size, 3, (1, 2))
    np.testing.assert_array_equal(found.rows, wanted.rows)
    np.testing.assert_array_equal(found.keys, wanted.keys)
    assert found.following == wanted.following
    assert found.total == pytest.approx(wanted.total, rel=1e-13)


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_weights(kind: str) -> None:
    w = KINDS[kind]
    table = lazy(w, 700).slice(150, M - 90)
    sums, part = table.weight_sums, w[150 : M - 90]
    assert sums is not None
    assert table.weight == sums.total == pytest.approx(part.sum(), rel=1e-13)
    assert table.counted == sums.counted == np.count_nonzero(part) == len(counted_rows(table))
    assert table.first_counted == 150 + np.flatnonzero(part)[0]
    assert sums.largest.max() == part.max()
    assert sums.least.min() == part[part > 0].min()
    assert sums.ones == (kind == "ones")
    np.testing.assert_array_equal(counted_rows(table), 150 + np.flatnonzero(part))


class Reads:
    """Counts the chunks of a Dask array that are read."""

    def __init__(self, w: Any, chunk: int) -> None:
        self.runs: list[int] = []
        self.chunk = chunk
        self.array = da.from_array(w, chunks=chunk).map_blocks(self.seen, dtype=float, meta=np.zeros(0))

    def seen(self, block: Any, block_info: Any = None) -> Any:
        self.runs.append(block_info[0]["chunk-location"][0])
        return block


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
def test_draws_read_the_runs_that_they_draw_from() -> None:
    reads = Reads(KINDS["alike"] + np.arange(M) % 2, 125)
    table = open_table(np.zeros((M, 1)), weights=reads.array)
    assert table.counted == M
    assert sorted(reads.runs) == list(range(160))
    for stream in range(3):
        reads.runs.clear()
        drawn = draw_rows(table, 10, 0, (stream,))
        assert set((drawn.rows // 125).tolist()) <= set(reads.runs)
        assert len(reads.runs) < 80
        # Fewer of the same draw, or as many, are known.
        reads.runs.clear()
        for count in (10, 4):
            np.testing.assert_array_equal(draw_rows(table, count, 0, (stream,)).rows, drawn.rows[:count])
        assert not reads.runs
        np.testing.assert_array_equal(draw_rows(table, 20, 0, (stream,)).rows[:10], drawn.rows)
        assert reads.runs
        reads.runs.clear()
    assert (table.weight, table.counted, table.first_counted) == (3.0 * M, M, 0)
    assert not reads.runs


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
def test_a_fit_reads_the_weights_a_few_times() -> None:
    """One pass for their sums, less than one for each draw, and one for each sweep over them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, 2))
    reads = Reads(rng.integers(0, 3, M).astype(float), 1000)
    model = KernelRidge(40, lengthscale=1.0, alpha=0.1).fit(open_table(X, X[:, 0], weights=reads.array)).model_
    # The sums, sampled rows, all candidates and scoring rows at once, and rows of the report's picture; chunks at the
    # borders of blocks are read twice.
    assert len(reads.runs) <= 1.3 * 20 * (4 + len(model.record.run.sweeps))


def test_sums_are_kept_as_long_as_the_weights() -> None:
    w = RNG.integers(0, 3, 100).astype(float)
    table = open_table(np.zeros((100, 1)), weights=w)
    sums = table.weight_sums
    other = table.with_keys().slice(0, 100)
    assert other.weight_sums is sums
    assert table.slice(0, 50).weight == w[:50].sum()
    assert table.weights in weight_sums._KNOWN
    restored = pickle.loads(pickle.dumps(table))
    assert restored.weights not in weight_sums._KNOWN
    assert restored.weight == table.weight
    kept = len(weight_sums._KNOWN)
    del table, other, restored
    gc.collect()
    assert len(weight_sums._KNOWN) <= kept - 2


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize(
    ("last", "error", "message"),
    [
        (np.nan, NonFiniteDataError, "weights contain NaN or infinity, first in row 299"),
        (-1.0, ParameterError, "must not be negative, row 299 has -1"),
        (None, EmptyDataError, "all 300 weights are zero"),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_the_last_chunk_is_checked_before_any_sweep(
    last: float | None, error: type[Exception], message: str, stored: bool, tmp_path: Path
) -> None:
    w = np.zeros(300) if last is None else np.r_[np.ones(299), last]
    given: Any = da.from_array(w, chunks=50)
    if stored:
        array = zarr.create_array(
            str(tmp_path / "w.zarr"), shape=(300,), chunks=(50,), dtype="float64", config={"write_empty_chunks": True}
        )
        array[:] = w
        given = tmp_path / "w.zarr"
    X = RNG.standard_normal((300, 2))

    rows = da.from_array(X, chunks=(100, 2)).map_blocks(lambda block: pytest.fail("a block was read"), meta=X[:0])
    for options in ({}, {"n_components": 5, "lengthscale": 1.0, "scale": "none", "alpha": 0.1}):
        with pytest.raises(error, match=message):
            KernelRidge(**options).fit(rows, da.from_array(X[:, 0], chunks=100), sample_weight=given)
