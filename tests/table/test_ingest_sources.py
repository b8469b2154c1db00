"""Every kind of source becomes the same checked store."""

import gzip
import importlib
import json
import os

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file
from strategies import few_examples
from table.sources import FRAME, GOOD, M, X, Y, bare_zarr, csv, foreign_zarr, libsvm, npy, npz, parquet, parquet_folder
from zarr.codecs import Crc32cCodec

from streamkernel.table import open_table
from streamkernel.table._chunk_rows import default_chunk_rows
from streamkernel.table.ingest import ingest
from streamkernel.table.ingest.readers.open import open_reader
from streamkernel.table.ingest.readers.options import SourceOptions

RNG = np.random.default_rng(1)


SOURCES = {
    "csv": lambda p: csv(p / "s.csv"),
    "csv without header": lambda p: csv(p / "s.csv", header=False),
    "csv with semicolons": lambda p: csv(p / "s.csv", sep=";"),
    "csv with byte order mark and CRLF": lambda p: csv(p / "s.csv", encoding="utf-8-sig", lineterminator="\r\n"),
    "csv.gz": lambda p: csv(p / "s.csv.gz"),
    "parquet": lambda p: parquet(p / "s.parquet"),
    "parquet folder": lambda p: parquet_folder(p / "folder"),
    "npz": lambda p: npz(p / "s.npz"),
    "npz compressed": lambda p: npz(p / "s.npz", np.savez_compressed),
    "npz by columns": lambda p: npz(p / "s.npz", np.savez_compressed, X=np.asfortranarray(X), y=Y[:, None]),
    "npy": lambda p: npy(p / "s.npy"),
    "npy by columns": lambda p: npy(p / "s.npy", "F"),
    "libsvm": lambda p: libsvm(p / "s.libsvm"),
    "svm": lambda p: libsvm(p / "s.svm"),
    "txt": lambda p: libsvm(p / "s.txt"),
    "zarr group": lambda p: foreign_zarr(p / "g"),
    "zarr array": lambda p: bare_zarr(p / "a"),
}
IN_MEMORY = {
    "numpy": (FRAME.to_numpy(), 4),
    "pandas": (FRAME, "t"),
    "dask": (da.from_array(FRAME.to_numpy(), chunks=(450, 5)), 4),
    "xarray": (xr.Dataset({"X": (("r", "f"), X), "y": ("r", Y)}), None),
    "table": (open_table(X, Y), None),
}


@pytest.mark.parametrize("name", [*SOURCES, *IN_MEMORY])
def test_every_source_gives_the_same_table(name, tmp_path):
    source, target = SOURCES[name](tmp_path) if name in SOURCES else IN_MEMORY[name]
    calls: list[tuple[int, int | None, str]] = []
    info = ingest(source, tmp_path / "store", target=target, dtype="float64", progress=lambda *call: calls.append(call))
    table = open_table(tmp_path / "store")
    block = table.read(0, M)
    # libsvm's writer rounds to 16 digits
    np.testing.assert_allclose(block.X, X, rtol=1e-15 if "svm" in name or name == "txt" else 0)
    np.testing.assert_array_equal(block.Y[:, 0], Y)
    assert (info.rows, info.features, info.targets, info.chunk_rows, info.dtype) == (M, 4, 1, 1024, "float64")
    if name in ("csv", "csv.gz", "parquet", "parquet folder", "pandas"):
        assert table.columns == tuple("abcd")
        assert table.target_names == ("t",)
    done, total, unit = calls[-1]
    assert unit in ("rows", "bytes")
    if name != "csv.gz":
        assert done == total
    found = table.statistics
    stored = block.X
    np.testing.assert_allclose(found.X.mean, stored.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.X.std, stored.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(found.X.minimum, stored.min(axis=0))
    np.testing.assert_array_equal(found.y.maximum, [Y.max()])
    assert found.X.count == M
    names = set(os.listdir(tmp_path))
    assert not [left for left in names if left.endswith(".partial")]


def test_plain_zarr_reads_the_store_and_its_chunks_are_as_promised(tmp_path):
    ingest(npz(tmp_path / "s.npz")[0], tmp_path / "store")
    group = zarr.open_group(tmp_path / "store", mode="r")
    np.testing.assert_array_equal(group["X"][:], X.astype(np.float32))
    np.testing.assert_array_equal(group["y"][:], Y)
    assert isinstance(group["X"].metadata.codecs[-1], Crc32cCodec)
    assert np.isnan(group["X"].fill_value)
    assert group.attrs["format"] == "streamkernel.table"
    manifest = json.loads((tmp_path / "store" / "COMPLETE").read_text())
    assert [len(manifest["arrays"][name]["digests"]) for name in "Xy"] == [3, 3]


def test_all_zero_chunks_are_stored(tmp_path):
    ingest(np.zeros((3000, 2)), tmp_path / "store", chunk_rows=1000)
    open_table(tmp_path / "store").check_unchanged()
    assert open_table(tmp_path / "store").read(0, 3000).X.sum() == 0


@few_examples(0.25)
@given(st.integers(1, 200), st.integers(1, 300), st.integers(1, 90), st.booleans())
def test_any_chunk_rows_and_any_source_chunking(tmp_path, rows, chunk_rows, source_chunk, shuffle):
    values = np.random.default_rng(rows).standard_normal((rows, 3))
    source = da.from_array(values, chunks=(source_chunk, 2))
    ingest(source, tmp_path / "s", chunk_rows=chunk_rows, dtype="keep", overwrite=True, shuffle=shuffle)
    got = open_table(tmp_path / "s").read(0, rows).X
    if shuffle:
        got, values = (np.sort(part, axis=0) for part in (got, values))
    np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize(
    ("row_bytes", "n_rows", "want"),
    [(80, None, 65536), (80, 10**9, 65536), (80, 200_000, 8192), (80, 3000, 1024), (80, 100, 128), (80, 1, 1),
     (4 * 784, 10**7, 2048), (10**6, 10**6, 1024), (1, 10**9, 65536)],
)  # fmt: skip
def test_default_chunk_rows(row_bytes, n_rows, want):
    assert default_chunk_rows(row_bytes, n_rows) == want


def test_rows_without_header_but_with_a_text_label(tmp_path):
    (tmp_path / "iris.csv").write_text("5.1,3.5,setosa\n4.9,3.0,virginica\n")
    info = ingest(tmp_path / "iris.csv", tmp_path / "store", target=-1)
    assert (info.rows, info.classes, info.columns) == (2, ("setosa", "virginica"), ("x0", "x1"))
    assert open_reader(tmp_path / "iris.csv", SourceOptions("2")).columns == ("x0", "x1")


def test_libsvm_blocks_and_zero_based_indices(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("streamkernel.table.ingest.readers._libsvm"), "_BLOCK_BYTES", 997)
    sparse = np.where(RNG.random((400, 7)) < 0.5, 0.0, RNG.integers(1, 9, (400, 7)))
    sparse[0, 0], sparse[0, 6] = 1.0, 1.0
    for zero_based in (True, False):
        dump_svmlight_file(
            sparse, np.arange(400.0), str(tmp_path / "s.txt"), zero_based=zero_based, comment="made here"
        )
        ingest(tmp_path / "s.txt", tmp_path / "store", overwrite=True)
        block = open_table(tmp_path / "store").read(0, 400)
        np.testing.assert_array_equal(block.X, sparse)
        np.testing.assert_array_equal(block.Y[:, 0], np.arange(400.0))


def test_gz_estimate_is_exact_for_small_files(tmp_path):
    with gzip.open(tmp_path / "s.csv.gz", "wt") as handle:
        handle.write(GOOD)
    assert open_reader(tmp_path / "s.csv.gz", SourceOptions()).estimated_rows == 2000


def test_gz_of_several_members_and_numbers_in_every_spelling(tmp_path):
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(b"a,b\n+2,1e3\n") + gzip.compress(b' .5 ,"7."\n'))
    ingest(tmp_path / "s.csv.gz", tmp_path / "store")
    np.testing.assert_array_equal(open_table(tmp_path / "store").read(0, 2).X, [[2, 1000], [0.5, 7]])
