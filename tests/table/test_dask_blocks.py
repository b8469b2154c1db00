"""Blocks of Dask arrays and partitions of its frames that are not what Dask says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from streamkernel import KernelRidge, ingest, open_table
from streamkernel.errors import DTypeError, ShapeError

X = np.random.default_rng(0).standard_normal((60, 3))
ROWS = da.from_array(X, chunks=(20, 3))


def _changed(function: Any, **options: Any) -> Any:
    """The rows with another second block, of which Dask is told that it is as the others."""
    return da.map_blocks(
        lambda block, block_info=None: function(block) if block_info[0]["chunk-location"][0] == 1 else block,
        ROWS,
        **{"dtype": np.float64, "meta": np.empty((0, 0)), **options},
    )


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda block: block + 1j, r"complex128 of shape \(20, 3\)"),
        (lambda block: block.astype(str), r"<U\d+ of shape \(20, 3\)"),
        (lambda block: block[:-1], r"float64 of shape \(19, 3\)"),
        (lambda block: block[:, :2], r"float64 of shape \(20, 2\)"),
        (scipy.sparse.csr_matrix, r"csr_matrix of shape \(20, 3\)"),
    ],
)
def test_a_block_that_is_another_is_named(function: Any, found: str) -> None:
    with pytest.raises(DTypeError, match=rf"Dask block 1 of X holds {found}, and the array says float64 .* dtype="):
        KernelRidge(10, kernel="gaussian", metric="none").fit(_changed(function), X[:, 0])


def test_fractions_are_not_cut_off() -> None:
    """They were, where rows of two blocks were read together."""
    whole = da.from_array(np.ones((60, 3), np.int64), chunks=(20, 3))
    rows = da.map_blocks(
        lambda ones, others, block_info=None: others if block_info[0]["chunk-location"][0] else ones,
        whole,
        ROWS,
        dtype=np.int64,
        meta=np.empty((0, 0), np.int64),
    )
    assert rows.dtype == np.int64
    with pytest.raises(DTypeError, match=r"Dask block 1 of X holds float64 .*, and the array says int64"):
        open_table(rows).read(10, 30)
    single = open_table(_changed(lambda block: block.astype(np.float32))).read(10, 30)
    np.testing.assert_allclose(single.X, X[10:30], rtol=1e-6)


def test_longer_labels_in_a_later_block_are_not_cut_off() -> None:
    labels = np.array(["no"] * 20 + ["perhaps"] * 40, dtype=object)
    y = da.map_blocks(lambda block: np.array(block.tolist()), da.from_array(labels, chunks=20), dtype="<U2")
    table = open_table(da.from_array(X, chunks=(60, 3)), y, classify=True)
    assert table.classes.tolist() == ["no", "perhaps"]
    np.testing.assert_array_equal(table.read(0, 60).Y[:, 1], labels == "perhaps")


@pytest.mark.parametrize("schema", [None, "auto"])
def test_a_partition_without_a_column_is_named(tmp_path: Path, schema: Any) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "y"])
    parts = [dask.delayed(frame[:20]), dask.delayed(frame[20:].rename(columns={"b": "B"}))]
    rows = dd.from_delayed(parts, meta=frame[:0], verify_meta=False)
    with pytest.raises(ShapeError, match=r"partition 1 of DataFrame has no column 'b'.* give all partitions the same"):
        ingest(rows, tmp_path / "rows", target="y", schema=schema)
    assert not (tmp_path / "rows").exists()
