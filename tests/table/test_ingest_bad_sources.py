"""What is refused: one line with the place, and nothing is left."""

import base64
import gzip
import os
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table.sources import GOOD, X, Y, csv, npy, npz, parquet, save, truncated, write

from streamkernel.errors import (
    DTypeError,
    EmptyDataError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    SourceFormatError,
    StoreNotFoundError,
)
from streamkernel.table.ingest import ingest

RNG = np.random.default_rng(1)


NOISE = b"a\n" + b"\n".join(b"%.9f" % value for value in RNG.standard_normal(150_000))
NOISE_GZ = gzip.compress(NOISE, 1)
BAD_SOURCES = {
    "ragged short": (write("s.csv", GOOD + "1,2\n" + GOOD), None, SourceFormatError, r"s\.csv:2002:2: 2 fields"),
    "ragged long": (write("s.csv", GOOD + "1,2,3,4\n"), None, SourceFormatError, r"s\.csv:2002:4: 4 fields"),
    "ragged in the first rows": (write("s.csv", "a,b\n1,2\n3\n"), None, SourceFormatError, r"s\.csv:3:1: 1 field"),
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
    "utf-32": (
        write("s.csv", "a,b\n1,2\n".encode("utf-32")),
        None,
        SourceFormatError,
        r"s\.csv:1:1: the file is UTF-32.* encoding='utf-32'",
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
        truncated(lambda p: (write("s.csv.gz", NOISE_GZ)(p), None)),
        None,
        SourceFormatError,
        "damaged",
    ),
    "gz flipped late": (write("s.csv.gz", NOISE_GZ[:-6] + b"\0\0" * 3), None, SourceFormatError, "damaged"),
    "gz cut off": (truncated(lambda p: csv(p / "s.csv.gz")), "t", SourceFormatError, "damaged .*fetch it again"),
    "not gz": (write("s.csv.gz", "a,b\n1,2\n"), None, SourceFormatError, r"does not begin as a \.gz file"),
    "not bz2": (write("s.csv.bz2", "a,b\n1,2\n"), None, SourceFormatError, r"does not begin as a \.bz2 file"),
    "not zst": (write("s.csv.zst", "a,b\n1,2\n"), None, SourceFormatError, r"rename it by what it holds"),
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
    "libsvm index beyond all memory": (
        write("s.svm", "1 1:2\n0 1:2 2147483646:3\n"),
        None,
        SourceFormatError,
        r"s\.svm:2:7: index 2147483646 is beyond \d+, the most columns",
    ),
    "libsvm index beyond int": (write("s.svm", "1 2147483648:2\n"), None, SourceFormatError, r"s\.svm:1:3: index 2147"),
    "libsvm index beyond long": (
        write("s.svm", f"# c\n1 {'9' * 30}:2\n"),
        None,
        SourceFormatError,
        r"s\.svm:2:3: index",
    ),
    "libsvm index of many digits": (write("s.svm", f"1 {'9' * 5000}:2\n"), None, SourceFormatError, r"s\.svm:1:3: "),
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
    "folder of nothing": (lambda p: p, None, SourceFormatError, r"holds no \.csv, \.tsv, \.parquet"),
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
    with pytest.raises(DTypeError, match="'b' holds text; leave it out"):
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


@pytest.mark.parametrize("footer", [False, True])
def test_an_encrypted_file_is_no_damaged_one(tmp_path, footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def __init__(self, config):
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key, name):
            return base64.b64encode(key)

    how = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["a"]}, plaintext_footer=not footer)
    keys = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), how)
    pq.write_table(pa.table({"a": np.arange(9.0)}), tmp_path / "s.parquet", encryption_properties=keys)
    with pytest.raises(SourceFormatError, match=r"s\.parquet is encrypted \(.*\); write it without encryption"):
        ingest(tmp_path / "s.parquet", tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_column_without_a_name_is_renamed_in_the_source(tmp_path):
    pq.write_table(pa.table({"": np.arange(9.0)}), tmp_path / "s.parquet")
    with pytest.raises(ParameterError, match="a column has the empty text as its name; rename it"):
        ingest(tmp_path / "s.parquet", tmp_path / "store", schema="auto")


def test_flipped_bit_in_a_compressed_member(tmp_path):
    source, _ = npz(tmp_path / "s.npz")
    content = bytearray(source.read_bytes())
    content[5000] ^= 1
    source.write_bytes(bytes(content))
    with pytest.raises(SourceFormatError, match=r"damaged"):
        ingest(source, tmp_path / "store")
    assert zipfile.is_zipfile(source)


def test_parquet_without_rows_or_values_says_so_and_where(tmp_path):
    (tmp_path / "f").mkdir()
    for file in (tmp_path / "none.parquet", tmp_path / "f" / "0.parquet"):
        pq.write_table(pa.table({"a": pa.array([], pa.float64()), "t": pa.array([], pa.float64())}), file)
    for source in ("none.parquet", "f"):
        with pytest.raises(EmptyDataError, match=rf"{tmp_path}/{source} has no rows"):
            ingest(tmp_path / source, tmp_path / "store", target="t")
    pq.write_table(pa.table({"a": [1.0, 2.0], "n": pa.nulls(2)}), tmp_path / "null.parquet")
    for target in (None, "a", "n"):
        with pytest.raises(DTypeError, match=r"null\.parquet: column 'n' has no value in any row") as caught:
            ingest(tmp_path / "null.parquet", tmp_path / "store", target=target)
        assert "--target" not in str(caught.value)


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_pandas_is_no_column(tmp_path, name):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "t": [4.0, 5.0, 6.0]}, index=pd.Index([7, 9, 8], name=name))
    frame.to_parquet(tmp_path / "i.parquet")
    stored = name or "__index_level_0__"
    for target in ("t", -1, 1):
        info = ingest(tmp_path / "i.parquet", tmp_path / "store", target=target, overwrite=True)
        assert (info.columns, info.target_names) == (("a",), ("t",))
        assert any(repr(stored) in text and "reset_index" in text for text in info.left_out)
    # Unless it is asked for.
    info = ingest(tmp_path / "i.parquet", tmp_path / "named", target=stored)
    assert (info.columns, info.target_names) == (("a", "t"), (stored,))
    assert not info.left_out


def test_a_range_of_pandas_is_no_index_that_is_left_out(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_parquet(tmp_path / "r.parquet")
    info = ingest(tmp_path / "r.parquet", tmp_path / "store")
    assert info.columns == ("a", "b")
    assert not info.left_out


@pytest.mark.parametrize("batches", [0, 2])
def test_arrow_streams_that_were_joined_are_not_read_in_part(tmp_path, batches):
    table, sink = pa.table({"a": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for _ in range(batches):
            writer.write_table(table)
    (tmp_path / "r.arrow").write_bytes(sink.getvalue().to_pybytes() * 2)
    with pytest.raises(SourceFormatError, match=r"r\.arrow goes on after the end of its Arrow stream"):
        ingest(tmp_path / "r.arrow", tmp_path / "s", target="y")
