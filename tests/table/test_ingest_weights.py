"""Row weights on their way into a store: from every source, through the shuffle, by appends, and back as written."""

import json
import os
import pickle
from itertools import pairwise

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from table.sources import write
from zarr.codecs import Crc32cCodec

from streamkernel import manifest
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    DTypeError,
    EmptyDataError,
    MissingChunkError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeMismatchError,
    SourceFormatError,
    StoreError,
)
from streamkernel.table import ColumnStatistics, open_table, table_info
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.writers.shuffle import row_keys
from streamkernel.table.ingest.writers.writer import ChunkWriter

RNG = np.random.default_rng(3)
M = 700
X = RNG.standard_normal((M, 3))
Y = RNG.standard_normal(M)
W = RNG.choice([0.0, 0.25, 1.0, 3.0, 1e-3], M)
FRAME = pd.DataFrame({"a": X[:, 0], "weight": W, "b": X[:, 1], "t": Y, "c": X[:, 2]})
ALL = FRAME.to_numpy()


def csv(path, **options):
    FRAME.to_csv(path, index=False, **options)
    return path


def parquet(path):
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=99)
    return path


def npy(path):
    np.save(path, np.asfortranarray(ALL))
    return path


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def foreign(path, **arrays):
    group = zarr.create_group(path)
    for name, values in arrays.items():
        group.create_array(name, data=values, chunks=(170, *values.shape[1:]), compressors=[Crc32cCodec()])
    return path


SOURCES = {
    "csv": lambda p: (csv(p / "s.csv"), "t", "weight"),
    "csv.gz": lambda p: (csv(p / "s.csv.gz"), "t", "weight"),
    "csv without header": lambda p: (csv(p / "s.csv", header=False), 3, "1"),
    "parquet": lambda p: (parquet(p / "s.parquet"), "t", "weight"),
    "npy": lambda p: (npy(p / "s.npy"), 3, -4),
    "npz, a column": lambda p: (npz(p / "s.npz", X=np.delete(ALL, 3, axis=1), y=Y), None, "x1"),
    "npz, a member": lambda p: (npz(p / "s.npz", X=X, y=Y, w=W), None, "w"),
    "zarr group, a column": lambda p: (foreign(p / "g", X=np.delete(ALL, 3, axis=1), y=Y), None, 1),
    "zarr group, an array": lambda p: (foreign(p / "g", X=X, y=Y, w=W), None, "w"),
    "pandas": lambda p: (FRAME, "t", "weight"),
    "numpy": lambda p: (ALL, 3, 1),
    "dask": lambda p: (da.from_array(ALL, chunks=(90, 5)), 3, 1),
    "xarray": lambda p: (xr.Dataset({name: ("row", FRAME[name].to_numpy()) for name in FRAME}), "t", "weight"),
    "table": lambda p: (open_table(X, Y, weights=W), None, None),
}


UNNAMED = ("csv without header", "npy", "npz, a column", "zarr group, a column", "numpy", "dask")
NAMES = {**dict.fromkeys(UNNAMED, "x1"), "table": "w"}


@pytest.mark.parametrize(
    ("name", "shuffle"),
    [
        # What is shuffled has left its source: of most sources in the slow tests only.
        pytest.param(name, shuffle, marks=[pytest.mark.slow] * (shuffle and number % 5 > 0))
        for number, name in enumerate(SOURCES)
        for shuffle in (False, True)
    ],
)
def test_weights_of_every_source_come_back_as_they_were(name, shuffle, tmp_path):
    source, target, weight = SOURCES[name](tmp_path)
    info = ingest(
        source, tmp_path / "s", target=target, weight=weight, dtype="float64", chunk_rows=64, shuffle=shuffle, seed=5
    )
    order = np.argsort(row_keys(5, 0, M), kind="stable") if shuffle else np.arange(M)
    table = open_table(tmp_path / "s")
    for same in (table, pickle.loads(pickle.dumps(table))):
        block = same.read(0, M)
        np.testing.assert_array_equal(block.X, X[order])
        np.testing.assert_array_equal(block.Y[:, 0], Y[order])
        np.testing.assert_array_equal(block.weights, W[order])
    assert (info.features, info.targets) == (3, 1)
    assert info.weight == (weight if name in ("npz, a member", "zarr group, an array") else NAMES.get(name, "weight"))
    assert info.statistics["X"]["weight"] == pytest.approx(W.sum(), rel=1e-12)
    assert table_info(tmp_path / "s")["weight"] == info.weight
    exact = ColumnStatistics.of(X, W)
    np.testing.assert_allclose(table.statistics.X.mean, exact.mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(table.statistics.X.std, exact.std, rtol=1e-13)
    np.testing.assert_allclose(table.statistics.y.mean, np.average(Y, weights=W), rtol=0, atol=1e-14)
    assert (info.bytes_decoded, info.checksummed) == (M * 5 * 8, True)


def test_a_table_of_weights_is_copied_with_its_statistics_bit_by_bit(tmp_path):
    ingest(FRAME, tmp_path / "a", target="t", weight="weight", chunk_rows=64)
    ingest(tmp_path / "a", tmp_path / "b", chunk_rows=64)
    a, b = open_table(tmp_path / "a"), open_table(tmp_path / "b")
    assert a.statistics.to_config() == b.statistics.to_config()
    assert [a.digest(0, 64), a.digest(128, 192)] == [b.digest(0, 64), b.digest(128, 192)]
    assert table_info(tmp_path / "b")["weight"] == "weight"
    again = ingest(tmp_path / "a", tmp_path / "c", weight="weight")
    assert again.weight == "weight"
    with pytest.raises(ParameterError, match="has row weights, weight; leave weight out"):
        ingest(tmp_path / "a", tmp_path / "d", weight="a")


def test_labels_and_weights(tmp_path):
    labelled = FRAME.assign(t=np.where(Y > 0, "yes", "no"))
    labelled.to_csv(tmp_path / "s.csv", index=False)
    info = ingest(tmp_path / "s.csv", tmp_path / "store", target="t", weight="weight", dtype="float64", shuffle=True)
    assert info.classes == ("no", "yes")
    block = open_table(tmp_path / "store").read(0, M)
    order = np.argsort(row_keys(0, 0, M), kind="stable")
    np.testing.assert_array_equal(block.Y[:, 1], (Y > 0)[order])
    np.testing.assert_array_equal(block.weights, W[order])


def test_a_table_without_weights_is_written_as_ever(tmp_path):
    info = ingest(open_table(X, Y), tmp_path / "store")
    config = json.loads((tmp_path / "store" / "COMPLETE").read_text(encoding="utf-8"))
    attributes = dict(zarr.open_group(tmp_path / "store", mode="r").attrs)
    assert (config["version"], attributes["version"], sorted(config["arrays"])) == (2, 2, ["X", "y"])
    assert "weight" not in attributes
    assert "weight" not in attributes["statistics"]["X"]
    assert (info.weight, open_table(tmp_path / "store").weights) == (None, None)
    ones = ingest(open_table(X, Y, weights=np.ones(M)), tmp_path / "ones").statistics
    assert ones == {name: {**part, "weight": M} for name, part in info.statistics.items()}


def test_other_releases_do_not_read_a_weighted_table_without_its_weights(tmp_path, monkeypatch):
    ingest(FRAME, tmp_path / "store", target="t", weight="weight")
    config = json.loads((tmp_path / "store" / "COMPLETE").read_text(encoding="utf-8"))
    assert (config["version"], sorted(config["arrays"])) == (manifest.WEIGHTED_VERSION, ["X", "w", "y"])
    # What a release that knows version 2 only compares.
    monkeypatch.setattr("streamkernel.table.stored.location.TABLE_VERSIONS", (2,))
    for path in (tmp_path / "store", tmp_path / "store" / "X"):
        with pytest.raises(CorruptMetadataError, match="version 3"):
            open_table(path)


@pytest.mark.parametrize("version", [2, 3])
def test_version_and_arrays_must_agree_on_weights(version, tmp_path):
    weights = {} if version == 3 else {"weights": W}
    ingest(open_table(X, Y, **weights), tmp_path / "store")
    path = tmp_path / "store" / "zarr.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value["attributes"]["version"] = version
    text = json.dumps(value)
    path.write_text(text, encoding="utf-8")
    complete = tmp_path / "store" / "COMPLETE"
    config = json.loads(complete.read_text(encoding="utf-8"))
    config["metadata"][""] = manifest.text_digest(text)
    complete.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CorruptMetadataError, match="do not agree on row weights"):
        open_table(tmp_path / "store")


def test_weights_that_are_given_or_left_out_leave_the_stored_statistics_behind(tmp_path):
    ingest(FRAME, tmp_path / "store", target="t", weight="weight")
    table = open_table(tmp_path / "store")
    plain = table.without_weights()
    assert (plain.weights, plain.statistics, plain.read(0, 9).weights) == (None, None, None)
    assert plain.without_weights() is plain
    for other in (open_table(tmp_path / "store", weights=W + 1), open_table(table, weights=W + 1)):
        assert other.statistics is None
        np.testing.assert_array_equal(other.read(0, M).weights, W + 1)
    by_path = open_table(X, weights=tmp_path / "store" / "w")
    np.testing.assert_array_equal(by_path.read(0, M).weights, W)


def test_an_array_w_of_a_foreign_group_is_taken_only_where_it_is_asked_for(tmp_path):
    path = foreign(tmp_path / "g", X=X, y=Y, w=W)
    assert open_table(path).weights is None
    np.testing.assert_array_equal(open_table(path, weights=path / "w").read(3, 9).weights, W[3:9])
    assert ingest(path, tmp_path / "plain").weight is None


BAD = {
    "NaN": (
        write("s.csv", "a,k\n1,1\n2,nan\n"),
        NonFiniteDataError,
        r"weights contain NaN or infinity, first in row 1, column 'k', in .*s.csv:3; give finite",
    ),
    "missing": (write("s.csv", "a,k\n1,\n2,1\n"), NonFiniteDataError, r"row 0, column 'k', in .*s.csv:2"),
    "infinite": (write("s.csv", "a,k\n1,1\n2,-inf\n"), NonFiniteDataError, r"row 1, column 'k', in .*s.csv:3"),
    "negative": (
        write("s.csv", "a,k\n1,1\n2,-3\n"),
        ParameterError,
        r"must not be negative, row 1, column 'k', has -3 in .*s.csv:3",
    ),
    "text": (write("s.csv", "a,k\n1,1\n2,much\n"), SourceFormatError, r"s.csv:3:2: 'much' in column 'k'"),
    "all zero": (write("s.csv", "a,k\n1,0\n2,0\n"), EmptyDataError, "all 2 row weights are 0, so no row counts"),
    "too large": (
        write("s.csv", "a,k\n1,1\n2,1e200\n"),
        NumericRangeError,
        r"row 1, column 'k', has 1e\+200 in .*s.csv:3: sums of such weights overflow; divide",
    ),
    "no such column": (
        write("s.csv", "a,b\n1,0\n2,0\n"),
        ParameterError,
        "no column of row weights 'k'; its columns are",
    ),
    "nothing else": (write("s.csv", "k\n1\n2\n"), EmptyDataError, "no column besides the row weights"),
    "libsvm": (write("s.svm", "1 1:2\n"), ParameterError, "libsvm file has no column of row weights"),
    "npz of another length": (
        lambda p: npz(p / "s.npz", X=X, k=W[:9]),
        ShapeMismatchError,
        r"k has shape \(9,\); give one weight per row",
    ),
    "npz of text": (lambda p: npz(p / "s.npz", X=X[:1], k=np.array(["a"])), DTypeError, "holds text"),
    "group of another length": (lambda p: foreign(p / "g", X=X, k=W[:9]), ShapeMismatchError, "one weight per row"),
    "group without": (lambda p: foreign(p / "g", X=X), ParameterError, "no column of row weights 'k'"),
    "frame": (
        lambda p: pd.DataFrame({"a": [1.0, 2.0], "k": [1.0, -1.0]}),
        ParameterError,
        r"row 1, column 'k', has -1",
    ),
}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_bad_weights_are_one_error_and_nothing_is_left(name, shuffle, tmp_path):
    make, error, message = BAD[name]
    source = make(tmp_path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(error, match=message):
        ingest(source, tmp_path / "store", weight="k", shuffle=shuffle)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_column_has_one_role(tmp_path):
    with pytest.raises(ParameterError, match="'t' cannot be target and row weight"):
        ingest(FRAME, tmp_path / "store", target="t", weight=3)
    with pytest.raises(ParameterError, match="weight must be a column's name or index, not True"):
        ingest(FRAME, tmp_path / "store", weight=True)


@given(cuts=st.lists(st.integers(1, M - 1), max_size=4, unique=True), chunk_rows=st.sampled_from([25, 64, 100, 700]))
@settings(max_examples=8)
def test_appends_are_as_one_ingest(tmp_path_factory, cuts, chunk_rows):
    folder = tmp_path_factory.mktemp("grown")
    ends = [0, *sorted(cuts), M]
    weights = W.copy()
    weights[ends[:-1]] = 2.0  # rows in memory whose weights are all 0 are no table
    for start, stop in pairwise(ends):
        rows = open_table(X[start:stop], Y[start:stop], weights=weights[start:stop])
        if start:
            append_rows(rows, folder / "grown")
        else:
            ingest(rows, folder / "grown", chunk_rows=chunk_rows)
    grown = open_table(folder / "grown")
    block = grown.read(0, M)
    np.testing.assert_array_equal(block.weights, weights)
    np.testing.assert_array_equal(block.X, X.astype(np.float32))
    np.testing.assert_array_equal(block.Y[:, 0], Y)
    ingest(open_table(X, Y, weights=weights), folder / "whole", chunk_rows=chunk_rows)
    one = open_table(folder / "whole")
    for first in range(0, M, chunk_rows):
        last = min(first + chunk_rows, M)
        assert grown.weights.digest(first, last) == one.weights.digest(first, last)
    assert grown.statistics.X.total == pytest.approx(one.statistics.X.total, rel=1e-12)
    np.testing.assert_allclose(grown.statistics.X.mean, one.statistics.X.mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(grown.statistics.X.std, one.statistics.X.std, rtol=1e-12)


@pytest.mark.parametrize("name", ["X", "y", "w"])
def test_an_append_that_fails_in_any_array_changes_nothing(name, tmp_path, monkeypatch):
    ingest(FRAME, tmp_path / "store", target="t", weight="weight", chunk_rows=64)
    plain = ChunkWriter._write_chunk

    def fail(self, array, start, values):
        if array == name and start > M:
            raise OSError(28, "No space left")
        plain(self, array, start, values)

    monkeypatch.setattr(ChunkWriter, "_write_chunk", fail)
    with pytest.raises(StoreError, match="nothing was appended"):
        append_rows(FRAME, tmp_path / "store")
    assert os.listdir(tmp_path) == ["store"]
    np.testing.assert_array_equal(open_table(tmp_path / "store").read(0, M).weights, W)


def test_damaged_and_missing_chunks_of_weights_are_found(tmp_path):
    ingest(FRAME, tmp_path / "store", target="t", weight="weight", chunk_rows=64)
    table, chunk = open_table(tmp_path / "store"), tmp_path / "store" / "w" / "c" / "3"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    for check in (lambda: table.read(0, M), table.check_unchanged):
        with pytest.raises(CorruptChunkError, match="w/c/3"):
            check()
    chunk.unlink()
    with pytest.raises(MissingChunkError, match="w/c/3"):
        table.read(192, 256)


def test_an_append_takes_the_column_of_the_table(tmp_path):
    FRAME.to_csv(tmp_path / "s.csv", index=False)
    ingest(tmp_path / "s.csv", tmp_path / "store", target="t", weight="weight", dtype="float64", chunk_rows=64)
    pinned = open_table(tmp_path / "store")
    assert append_rows(tmp_path / "s.csv", tmp_path / "store").rows == 2 * M
    pq.write_table(pa.Table.from_pandas(FRAME.rename(columns={"weight": "times"})), tmp_path / "s.parquet")
    append_rows(tmp_path / "s.parquet", tmp_path / "store", weight="times", repeated="append")
    zeros = FRAME.assign(weight=0.0)
    info = append_rows(zeros, tmp_path / "store")  # rows that do not count are rows
    assert (info.rows, info.weight, info.statistics["X"]["count"]) == (4 * M, "weight", 4 * M)
    assert info.statistics["X"]["weight"] == pytest.approx(3 * W.sum(), rel=1e-12)
    np.testing.assert_array_equal(
        open_table(tmp_path / "store").read(0, 4 * M).weights, np.concatenate([W, W, W, 0 * W])
    )
    np.testing.assert_array_equal(pinned.read(0, M).weights, W)  # a reader of the first generation
    pinned.check_unchanged()
    assert pickle.loads(pickle.dumps(pinned)).n_rows == M


def test_an_append_without_weights_to_a_table_with_some_is_refused_and_the_other_way_round(tmp_path):
    ingest(FRAME, tmp_path / "weighted", target="t", weight="weight")
    ingest(FRAME.drop(columns="weight"), tmp_path / "plain", target="t")
    before = [(tmp_path / name / "COMPLETE").read_bytes() for name in ("weighted", "plain")]
    refused = [
        (FRAME.drop(columns="weight"), "weighted", {}, r"have weights, of column 'weight', and the source has no such"),
        (FRAME, "weighted", {"weight": "times"}, "there is no column of row weights 'times'"),
        (FRAME, "plain", {"weight": "weight"}, r"have no weights: they count once each; leave weight out"),
        (open_table(X, weights=W), "plain", {}, r"the source has row weights, and the rows of .* have none"),
        (FRAME.assign(weight=-1.0), "weighted", {}, "must not be negative, row 0, column 'weight'"),
    ]
    for source, name, given_, message in refused:
        with pytest.raises(ParameterError, match=message):
            append_rows(source, tmp_path / name, **given_)
    assert before == [(tmp_path / name / "COMPLETE").read_bytes() for name in ("weighted", "plain")]
