"""Every kind of source becomes the same checked store; whatever fails leaves nothing behind."""

import errno
import gzip
import importlib
import json
import os
import zipfile

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file
from zarr.codecs import Crc32cCodec

from streamkernel.errors import (
    DataError,
    DTypeError,
    EmptyDataError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    SourceFormatError,
    StoreAccessError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
)
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest
from streamkernel.table.ingest.ingest import open_reader
from streamkernel.table.ingest.writer import ChunkWriter, default_chunk_rows

RNG = np.random.default_rng(0)
M = 3000
X = RNG.standard_normal((M, 4))
Y = RNG.integers(0, 5, M).astype(float)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(t=Y)


def csv(path, header=True, **options):
    FRAME.to_csv(path, index=False, header=header, **options)
    return path, "t" if header else -1


def parquet(path):
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=700)
    return path, "t"


def parquet_folder(path):
    (path / "year=1").mkdir(parents=True)
    for index in range(3):
        part = pa.Table.from_pandas(FRAME.iloc[index * 1000 : (index + 1) * 1000], preserve_index=False)
        pq.write_table(part, path / "year=1" / f"part-{index}.parquet")
    (path / "_SUCCESS.parquet").write_bytes(b"")
    return path, "t"


def npz(path, save=np.savez, **arrays):
    save(path, **(arrays or {"X": X, "y": Y, "meta": np.array("other members are left alone")}))
    return path, None


def npy(path, order="C"):
    np.save(path, np.asarray(FRAME.to_numpy(), order=order))
    return path, 4


def libsvm(path):
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path, None


def foreign_zarr(path):
    group = zarr.create_group(path)
    group.create_array("X", data=X, chunks=(170, 3), compressors=[Crc32cCodec()])
    made = group.create_array(
        "y", shape=(M,), dtype="f8", chunks=(999,), config={"write_empty_chunks": True}, compressors=[Crc32cCodec()]
    )
    made[:] = Y
    return path, None


def bare_zarr(path):
    zarr.create_array(path, data=FRAME.to_numpy(), chunks=(400, 5), compressors=[Crc32cCodec()])
    return path, "-1"


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


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# --- targets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "dictionary", "npz", "numpy"])
def test_text_targets_become_classes(tmp_path, kind, shuffle):
    names = np.array(["zebra", "Ähre", "mule", "ant"])
    labels = names[np.minimum(np.arange(M) // 500, 3)]  # met in an order that is not the sorted one
    frame = FRAME.assign(t=labels)
    target: str | None = "t"
    if kind.startswith("csv"):
        source = tmp_path / f"s.{kind}"
        frame.to_csv(source, index=False)
    elif kind in ("parquet", "dictionary"):
        source = tmp_path / "s.parquet"
        made = frame.assign(t=frame.t.astype("category")) if kind == "dictionary" else frame
        pq.write_table(pa.Table.from_pandas(made), source, row_group_size=800)
    elif kind == "npz":
        source, target = npz(tmp_path / "s.npz", X=X, y=labels)
    else:
        source, target = open_table(X, labels, classify=True), None
    info = ingest(source, tmp_path / "store", target=target, dtype="float64", shuffle=shuffle)
    assert info.classes == ("ant", "mule", "zebra", "Ähre")
    table = open_table(tmp_path / "store")
    block = table.read(0, M)
    got = table.classes[block.Y.argmax(axis=1)]
    order = [int(np.flatnonzero(X[:, 0] == value)[0]) for value in block.X[:, 0]] if shuffle else range(M)
    np.testing.assert_array_equal(got, labels[list(order)])
    assert table.statistics.y is None
    table.check_unchanged()
    again = ingest(tmp_path / "store", tmp_path / "again")
    assert again.classes == info.classes


def test_whole_numbers_stay_numbers_unless_asked(tmp_path):
    ingest(csv(tmp_path / "s.csv")[0], tmp_path / "store", target="t")
    assert open_table(tmp_path / "store").classes is None
    table = open_table(tmp_path / "store", classify=True)
    assert table.classes.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(table.read(5, 90).Y, np.eye(5)[Y[5:90].astype(int)])


def test_several_targets_and_none(tmp_path):
    targets = np.column_stack([Y, -Y])
    ingest(npz(tmp_path / "s.npz", X=X, y=targets)[0], tmp_path / "two")
    np.testing.assert_array_equal(open_table(tmp_path / "two").read(0, M).Y, targets)
    info = ingest(csv(tmp_path / "s.csv")[0], tmp_path / "none")
    assert (info.features, info.targets) == (5, 0)


def test_too_many_labels(tmp_path):
    pd.DataFrame({"a": np.arange(10_002), "t": [f"id{i}" for i in range(10_002)]}).to_csv(
        tmp_path / "s.csv", index=False
    )
    with pytest.raises(DataError, match="10000 distinct labels"):
        ingest(tmp_path / "s.csv", tmp_path / "store", target="t")
    assert os.listdir(tmp_path) == ["s.csv"]


# --- what is refused, with nothing left ---------------------------------------------------------------------------


def write(name, content):
    def make(path):
        data = content.encode() if isinstance(content, str) else content
        (path / name).write_bytes(data)
        return path / name

    return make


def save(name, **arrays):
    def make(path):
        np.savez(path / name, **arrays) if name.endswith("z") else np.save(path / name, *arrays.values())
        return path / name

    return make


def truncated(make):
    def cut(path):
        source = make(path)[0]
        content = source.read_bytes()
        source.write_bytes(content[: len(content) // 2])
        return source

    return cut


GOOD = "a,b,t\n" + "1,2,3\n" * 2000
NOISE = b"a\n" + b"\n".join(b"%.9f" % value for value in RNG.standard_normal(300_000))
BAD_SOURCES = {
    "ragged short": (write("s.csv", GOOD + "1,2\n" + GOOD), None, SourceFormatError, r"s\.csv:2002:2: 2 fields"),
    "ragged long": (write("s.csv", GOOD + "1,2,3,4\n"), None, SourceFormatError, r"s\.csv:2002:4: 4 fields"),
    "ragged in the first rows": (write("s.csv", "a,b\n1,2\n3\n"), None, SourceFormatError, r"s\.csv:3:1: 1 fields"),
    "text": (
        write("s.csv", GOOD + "1,2,3\n\n1,two,3\n"),
        None,
        SourceFormatError,
        r"s\.csv:2004:2: 'two' in column 'b'",
    ),
    "text after numbers in the target": (
        write("s.csv", GOOD + "1,2,x\n"),
        "t",
        SourceFormatError,
        r"s\.csv:2002:3: 'x'",
    ),
    "latin-1 header": (
        write("s.csv", "a,b\xe9\n1,2\n".encode("latin-1")),
        None,
        SourceFormatError,
        r"s\.csv:1:2: byte 0xe9",
    ),
    "latin-1 label": (
        write("s.csv", ("a,t\n" + "1,x\n" * 1500 + "1,\xe9\n").encode("latin-1")),
        "t",
        SourceFormatError,
        r"s\.csv:1502:2: byte 0xe9",
    ),
    "utf-16": (
        write("s.csv", "a,b\n1,2\n".encode("utf-16")),
        None,
        SourceFormatError,
        r"s\.csv:1:1: the file is UTF-16",
    ),
    "binary": (write("s.csv", b"\x00\x01\x02\x03"), None, SourceFormatError, r"s\.csv:1:1: .* zero bytes"),
    "empty": (write("s.csv", ""), None, SourceFormatError, r"s\.csv:1:1: the file is empty"),
    "blank lines": (write("s.csv", "\n\n"), None, SourceFormatError, r"s\.csv:1:1: the file is empty"),
    "only a header": (write("s.csv", "a,b\n"), None, SourceFormatError, r"s\.csv:2:1: there are no rows"),
    "duplicate header": (write("s.csv", "a,b,a\n1,2,3\n"), None, SourceFormatError, r"s\.csv:1:3: column name 'a'"),
    "no such target": (write("s.csv", GOOD), "z", ParameterError, r"no target column 'z'; its columns are a, b, t"),
    "target index": (write("s.csv", GOOD), 3, ParameterError, "no target column 3"),
    "only the target": (write("s.csv", "t\n1\n"), "t", EmptyDataError, "besides the target"),
    "missing value": (
        write("s.csv", GOOD + "\n1,,3\n"),
        None,
        NonFiniteDataError,
        r"row 2000, column 'b', in .*s\.csv:2003",
    ),
    "NaN": (
        write("s.csv", GOOD + "1,nan,3\n"),
        "t",
        NonFiniteDataError,
        r"^X .*row 2000, column 'b', in .*s\.csv:2002",
    ),
    "Inf in y": (
        write("s.csv", GOOD + "1,2,-inf\n"),
        "t",
        NonFiniteDataError,
        r"^y .*row 2000, column 't', in .*:2002",
    ),
    "missing label": (
        write("s.csv", "a,t\n" + "1,u\n" * 50 + "1,\n"),
        "t",
        NonFiniteDataError,
        r"row 50, column 't', in .*:52",
    ),
    "beyond float32": (write("s.csv", GOOD + "1,1e39,3\n"), None, NumericRangeError, r"row 2000, column 'b'.*float64"),
    "gz cut off late": (
        truncated(lambda p: (write("s.csv.gz", gzip.compress(NOISE))(p), None)),
        None,
        SourceFormatError,
        "damaged",
    ),
    "gz flipped late": (write("s.csv.gz", gzip.compress(NOISE)[:-6] + b"\0\0" * 3), None, SourceFormatError, "damaged"),
    "gz cut off": (truncated(lambda p: csv(p / "s.csv.gz")), "t", SourceFormatError, "damaged"),
    "not gz": (write("s.csv.gz", "a,b\n1,2\n"), None, SourceFormatError, "damaged"),
    "not parquet": (write("s.parquet", "hello"), None, SourceFormatError, "not a Parquet file"),
    "parquet cut off": (truncated(lambda p: parquet(p / "s.parquet")), None, SourceFormatError, "not a Parquet file"),
    "no member X": (save("s.npz", A=X), None, SourceFormatError, "no member X; it has A"),
    "lengths differ": (save("s.npz", X=X, y=Y[:5]), None, ShapeMismatchError, r"\(3000, 4\).*\(5,\)"),
    "3-d": (save("s.npz", X=np.ones((2, 2, 2))), None, ShapeError, r"\(2, 2, 2\)"),
    "0-d": (save("s.npy", X=np.float64(3)), None, ShapeError, "single number"),
    "no rows": (save("s.npy", X=np.ones((0, 2))), None, EmptyDataError, "no rows"),
    "complex": (save("s.npy", X=np.ones((2, 2), complex)), None, DTypeError, "complex"),
    "objects": (save("s.npy", X=np.array([[1, None]])), None, DTypeError, "pickled"),
    "not npy": (write("s.npy", "hello"), None, SourceFormatError, r"not a \.npy"),
    "not npz": (write("s.npz", "hello"), None, SourceFormatError, r"not an \.npz"),
    "npy cut off": (truncated(lambda p: npy(p / "s.npy")), None, SourceFormatError, "truncated"),
    "npy by columns cut off": (truncated(lambda p: npy(p / "s.npy", "F")), None, SourceFormatError, "truncated"),
    "npz cut off": (truncated(lambda p: npz(p / "s.npz")), None, SourceFormatError, r"not an \.npz"),
    "NaN in npz": (save("s.npz", X=np.where(X[7, 2] == X, np.nan, X)), None, NonFiniteDataError, "row 7, column 'x2'"),
    "libsvm text": (
        write("s.svm", "1 1:2 2:3\n0 1:2 two:3\n"),
        None,
        SourceFormatError,
        r"s\.svm:2:7: 'two:3' is not index:value",
    ),
    "libsvm value": (write("s.svm", "1 1:2 2:x\n"), None, SourceFormatError, r"s\.svm:1:7"),
    "libsvm label": (write("s.svm", "1 1:2\nyes 1:2\n"), None, SourceFormatError, r"s\.svm:2:1: the label 'yes'"),
    "libsvm order": (write("s.svm", "1 2:2 1:3\n"), None, SourceFormatError, r"s\.svm:1:7: index 1 does not rise"),
    "libsvm empty": (write("s.svm", "# nothing\n"), None, SourceFormatError, r"s\.svm:1:1: the file has no rows"),
    "libsvm without columns": (write("s.svm", "1\n0\n"), None, EmptyDataError, "no column"),
    "libsvm NaN": (
        write("s.svm", "1 1:2\n# c\n1 1:nan\n"),
        None,
        NonFiniteDataError,
        r"row 1, column 'x0', in .*s\.svm:3",
    ),
    "libsvm target": (write("s.svm", "1 1:2\n"), "x0", ParameterError, "target in front"),
    "suffix": (write("s.xls", "1"), None, ParameterError, "a source is"),
    "absent": (lambda p: p / "absent.csv", None, StoreNotFoundError, "nothing was created"),
    "folder of nothing": (lambda p: p, None, SourceFormatError, "no .parquet"),
}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("name", BAD_SOURCES)
def test_bad_sources_give_one_line_with_the_place_and_leave_nothing(tmp_path, name, shuffle):
    make, target, error, says = BAD_SOURCES[name]
    source = make(tmp_path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(error, match=says) as caught:
        ingest(source, tmp_path / "store", target=target, shuffle=shuffle)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == before


def test_parquet_of_two_schemas_and_of_text(tmp_path):
    (tmp_path / "f").mkdir()
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "f" / "0.parquet")
    pq.write_table(pa.table({"a": [1.0], "c": [2.0]}), tmp_path / "f" / "1.parquet")
    with pytest.raises(SourceFormatError, match=r"1\.parquet: column 'c'"):
        ingest(tmp_path / "f", tmp_path / "store")
    pq.write_table(pa.table({"a": [1.0], "b": ["u"]}), tmp_path / "t.parquet")
    with pytest.raises(DTypeError, match="'b' holds string"):
        ingest(tmp_path / "t.parquet", tmp_path / "store")
    pq.write_table(pa.table({"a": [1.0, None], "b": [True, False]}), tmp_path / "n.parquet")
    with pytest.raises(NonFiniteDataError, match="row 1, column 'a'"):
        ingest(tmp_path / "n.parquet", tmp_path / "store")
    pq.write_table(
        pa.table({"a": pa.array([1.0, 2.0], pa.float32()), "b": pa.array([1, 2], pa.int8())}), tmp_path / "k.parquet"
    )
    assert ingest(tmp_path / "k.parquet", tmp_path / "store", dtype="keep").dtype == "float64"
    assert ingest(tmp_path / "k.parquet", tmp_path / "one", dtype="keep", target="b").dtype == "float32"


def test_damaged_parquet_page(tmp_path):
    pq.write_table(pa.table({"a": RNG.standard_normal(5000)}), tmp_path / "s.parquet", write_page_checksum=False)
    content = bytearray((tmp_path / "s.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    (tmp_path / "s.parquet").write_bytes(bytes(content))
    with pytest.raises(SourceFormatError, match="damaged"):
        ingest(tmp_path / "s.parquet", tmp_path / "store")


def test_flipped_bit_in_a_compressed_member(tmp_path):
    source, _ = npz(tmp_path / "s.npz")
    content = bytearray(source.read_bytes())
    content[5000] ^= 1
    source.write_bytes(bytes(content))
    with pytest.raises(SourceFormatError, match=r"damaged"):
        ingest(source, tmp_path / "store")
    assert zipfile.is_zipfile(source)


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_rows": 0},
        {"chunk_rows": True},
        {"chunk_rows": 2.5},
        {"dtype": "int8"},
        {"seed": -1},
        {"seed": 1.5},
        {"target": 1.5},
    ],
)
def test_options_are_checked_before_anything(tmp_path, options):
    with pytest.raises(ParameterError):
        ingest(tmp_path / "absent.csv", tmp_path / "store", **options)


def test_existing_output(tmp_path):
    source, target = csv(tmp_path / "s.csv")
    ingest(source, tmp_path / "store", target=target)
    with pytest.raises(StoreExistsError, match="overwrite"):
        ingest(source, tmp_path / "store", target=target)
    ingest(source, tmp_path / "store", overwrite=True)
    assert open_table(tmp_path / "store").n_targets == 0
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_text("dear")
    with pytest.raises(StoreExistsError, match="not a Zarr store"):
        ingest(source, tmp_path / "precious", overwrite=True)
    with pytest.raises(StoreNotFoundError, match="make it first"):
        ingest(source, tmp_path / "no" / "store")
    assert sorted(os.listdir(tmp_path)) == ["precious", "s.csv", "store"]


def test_a_store_can_be_ingested_over_itself(tmp_path):
    ingest(csv(tmp_path / "s.csv")[0], tmp_path / "store", target="t", dtype="float64")
    info = ingest(tmp_path / "store", tmp_path / "store", chunk_rows=100, shuffle=True, dtype="float64", overwrite=True)
    assert (info.rows, info.chunk_rows, info.seed, info.target_names) == (M, 100, 0, ("t",))
    np.testing.assert_array_equal(np.sort(open_table(tmp_path / "store").read(0, M).X, axis=0), np.sort(X, axis=0))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("failure", "error"),
    [(OSError(errno.ENOSPC, "No space left on device"), StoreError), (PermissionError(13, "no"), StoreAccessError),
     (KeyboardInterrupt(), KeyboardInterrupt), (MemoryError(), MemoryError)],
)  # fmt: skip
def test_failure_in_mid_write_leaves_the_old_store(tmp_path, monkeypatch, failure, error, shuffle):
    source, target = csv(tmp_path / "s.csv")
    ingest(source, tmp_path / "store", target=target)
    before = open_table(tmp_path / "store").fingerprint
    plain = ChunkWriter._write_chunk
    calls = iter(range(100))

    def fail(self, name, start, values):
        if next(calls) == 3:
            raise failure
        plain(self, name, start, values)

    monkeypatch.setattr(ChunkWriter, "_write_chunk", fail)
    with pytest.raises(error):
        ingest(source, tmp_path / "store", target=target, chunk_rows=500, overwrite=True, shuffle=shuffle)
    assert sorted(os.listdir(tmp_path)) == ["s.csv", "store"]
    assert open_table(tmp_path / "store").fingerprint == before


def test_progress_object_is_told_of_the_end_even_after_an_error(tmp_path):
    class Watch:
        events: list[tuple] = []  # noqa: RUF012

        def start(self, total, unit):
            self.events.append(("start", total, unit))

        def advance(self, amount):
            self.events.append(("advance", amount))

        def finish(self):
            self.events.append(("finish",))

    (tmp_path / "s.csv").write_text(GOOD + "x,y,z\n")
    with pytest.raises(SourceFormatError):
        ingest(tmp_path / "s.csv", tmp_path / "store", progress=Watch())
    assert Watch.events[0] == ("start", (tmp_path / "s.csv").stat().st_size, "bytes")
    assert Watch.events[-1] == ("finish",)


def test_rows_without_header_but_with_a_text_label(tmp_path):
    (tmp_path / "iris.csv").write_text("5.1,3.5,setosa\n4.9,3.0,virginica\n")
    info = ingest(tmp_path / "iris.csv", tmp_path / "store", target=-1)
    assert (info.rows, info.classes, info.columns) == (2, ("setosa", "virginica"), ("x0", "x1"))
    assert open_reader(tmp_path / "iris.csv", "2").columns == ("x0", "x1")


def test_libsvm_blocks_and_zero_based_indices(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("streamkernel.table.ingest.libsvm"), "_BLOCK_BYTES", 997)
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
    assert open_reader(tmp_path / "s.csv.gz", None).estimated_rows == 2000


def test_gz_of_several_members_and_numbers_in_every_spelling(tmp_path):
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(b"a,b\n+2,1e3\n") + gzip.compress(b' .5 ,"7."\n'))
    ingest(tmp_path / "s.csv.gz", tmp_path / "store")
    np.testing.assert_array_equal(open_table(tmp_path / "store").read(0, 2).X, [[2, 1000], [0.5, 7]])
