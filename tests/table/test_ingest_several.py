"""Several files as one source: folders, patterns, lists, other orders of columns, compressions, Arrow."""

import bz2
import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table.sources import FRAME, M, X, Y, truncated

from streamkernel.errors import (
    EmptyDataError,
    NonFiniteDataError,
    ParameterError,
    SourceFormatError,
    StoreNotFoundError,
)
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

PARTS = [FRAME.iloc[:1000], FRAME.iloc[1000:1700], FRAME.iloc[1700:]]


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


def csv_parts(folder, suffixes=("", "", ""), seps=",,,", orders=("abcdt",) * 3, kind=".csv"):
    folder.mkdir()
    for index, (part, suffix, sep, order) in enumerate(zip(PARTS, suffixes, seps, orders, strict=True)):
        text = part[list(order)].to_csv(index=False, sep=sep).encode()
        (folder / f"part-{index}{kind}{suffix}").write_bytes(COMPRESS[suffix](text))
    return folder


def arrow(path, part, stream=False, compression=None):
    table = pa.Table.from_pandas(part, preserve_index=False)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=300)


def same_rows(store, rows=M):
    block = open_table(store).read(0, rows)
    np.testing.assert_array_equal(block.X, X[:rows])
    np.testing.assert_array_equal(block.Y[:, 0], Y[:rows])


def test_a_folder_a_pattern_and_a_list_are_the_same_rows(tmp_path):
    folder = csv_parts(tmp_path / "f")
    (folder / "_started.csv").write_text("no rows")
    parts = [folder / f"part-{index}.csv" for index in range(3)]
    calls = []
    for source in (folder, f"{folder}/part-*.csv", folder / "part-?.csv", f"{tmp_path}/**/part*.csv", parts):
        info = ingest(
            source, tmp_path / "s", target="t", dtype="float64", overwrite=True, progress=lambda *c: calls.append(c)
        )
        assert (info.rows, info.columns, info.chunk_rows) == (M, tuple("abcd"), 1024)
        same_rows(tmp_path / "s")
        assert calls[-1] == (sum(part.stat().st_size for part in parts),) * 2 + ("bytes",)
    assert ingest(parts, tmp_path / "l").source == "part-0.csv and 2 more"
    assert ingest(f"{folder}/part-*.csv", tmp_path / "p").source == "part-*.csv"


def test_the_order_of_a_list_is_kept_and_rows_append_in_parts(tmp_path):
    folder = csv_parts(tmp_path / "f")
    parts = [folder / f"part-{index}.csv" for index in (2, 0)]
    ingest(parts, tmp_path / "s", target="t", dtype="float64")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 2300).X, np.vstack([X[1700:], X[:1000]]))
    ingest(parts[1], tmp_path / "s", target="t", dtype="float64", overwrite=True)
    append_rows([folder / "part-1.csv", parts[0]], tmp_path / "s")
    same_rows(tmp_path / "s")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_arrow_files_and_streams(tmp_path, stream, compression):
    (tmp_path / "f").mkdir()
    for index, part in enumerate(PARTS):
        arrow(tmp_path / "f" / f"{index}.arrow", part[list("tdcba") if index else list("abcdt")], stream, compression)
    info = ingest(tmp_path / "f", tmp_path / "s", target="t", dtype="float64")
    assert (info.rows, info.chunk_rows) == (M, 1024)
    same_rows(tmp_path / "s")


def test_feather_with_labels(tmp_path):
    labelled = FRAME.assign(t=np.where(Y > 2, "yes", "no"))
    feather.write_feather(labelled, tmp_path / "s.feather")
    feather.write_feather(labelled.astype({"t": "category"}), tmp_path / "c.feather")
    for name in ("s", "c"):
        info = ingest(tmp_path / f"{name}.feather", tmp_path / "s", target="t", overwrite=True)
        assert info.classes == ("no", "yes")
        np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, M).Y[:, 1], Y > 2)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(list(COMPRESS)), min_size=3, max_size=3),
    st.lists(st.sampled_from(",;\t"), min_size=3, max_size=3),
    st.lists(st.permutations("abcdt").map("".join), min_size=3, max_size=3),
)
def test_any_compressions_separators_and_orders(tmp_path_factory, suffixes, seps, orders):
    path = tmp_path_factory.mktemp("any")
    folder = csv_parts(path / "f", suffixes, seps, orders)
    info = ingest(folder, path / "s", target="t", dtype="float64")
    assert info.columns == tuple(name for name in orders[0] if name != "t")
    got = open_table(path / "s").read(0, M)
    np.testing.assert_array_equal(got.X, FRAME[list(info.columns)])
    np.testing.assert_array_equal(got.Y[:, 0], Y)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_tsv_is_separated_by_tabs_whatever_is_in_the_names(tmp_path, suffix):
    text = "a,1\ty;2\n" + "1\t2\n" * 5
    (tmp_path / f"s.tsv{suffix}").write_bytes(COMPRESS[suffix](text.encode()))
    info = ingest(tmp_path / f"s.tsv{suffix}", tmp_path / "s", target="y;2")
    assert (info.columns, info.rows) == (("a,1",), 5)


def test_parquet_columns_by_name_and_numbers_of_several_types(tmp_path):
    (tmp_path / "f").mkdir()
    pq.write_table(pa.table({"a": [1, 2], "b": [3.0, 4.0]}), tmp_path / "f" / "0.parquet")
    pq.write_table(pa.table({"b": [5, 6], "a": [7.5, 8.5]}), tmp_path / "f" / "1.pq")
    info = ingest(tmp_path / "f", tmp_path / "s")
    assert info.columns == ("a", "b")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 4).X, [[1, 3], [2, 4], [7.5, 5], [8.5, 6]])


def test_a_file_of_a_header_alone_is_an_empty_part(tmp_path):
    (tmp_path / "0.csv").write_text("b,t\n")
    (tmp_path / "1.csv").write_text("t,b\n2,1\n")
    (tmp_path / "2.csv").write_text("t,b\n")
    info = ingest(f"{tmp_path}/?.csv", tmp_path / "s", target="t")
    assert (info.rows, info.columns) == (1, ("b",))
    with pytest.raises(SourceFormatError, match=r"0\.csv:2:1: there are no rows"):
        ingest(f"{tmp_path}/[02].csv", tmp_path / "none", target="t")


def test_labels_that_are_numbers_in_one_file_alone(tmp_path):
    (tmp_path / "0.csv").write_text("a,t\n1,1\n2,2\n")
    (tmp_path / "1.csv").write_text("a,t\n3,x\n")
    assert ingest(f"{tmp_path}/?.csv", tmp_path / "s", target="t").classes == ("1", "2", "x")


def test_files_without_headers_are_matched_by_position(tmp_path):
    for index in range(2):
        (tmp_path / f"{index}.csv").write_text(f"{index},2\n3,4\n")
    info = ingest(f"{tmp_path}/?.csv", tmp_path / "s", target=-1)
    assert (info.rows, info.columns) == (4, ("x0",))


def test_quoted_newlines_are_part_of_a_value(tmp_path):
    rows = 60_000  # several blocks of the parser
    label = '"two\nlines, ""quoted"""'
    (tmp_path / "s.csv").write_text('a,"t\nt"\n' + f"1.000000,{label}\r\n2.000000,plain\n" * (rows // 2))
    info = ingest(tmp_path / "s.csv", tmp_path / "s", target="t\nt")
    assert (info.rows, info.classes) == (rows, ("plain", 'two\nlines, "quoted"'))
    with open(tmp_path / "s.csv", "a") as handle:
        handle.write(f"x,{label}\n")
    # The header and every second row have two lines.
    with pytest.raises(SourceFormatError, match=rf"s\.csv:{2 + 3 * rows // 2 + 1}:1: 'x' in column 'a'"):
        ingest(tmp_path / "s.csv", tmp_path / "t", target="t\nt")


def test_a_quote_without_an_end_is_refused_with_its_line(tmp_path):
    (tmp_path / "s.csv").write_text('a,t\n1,x\n2,"y\n' + "3,z\n" * 100_000)
    with pytest.raises(SourceFormatError, match=r"s\.csv:3:"):
        ingest(tmp_path / "s.csv", tmp_path / "s", target="t")


def files(**content):
    def make(folder):
        for name, text in content.items():
            path = folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return make


GOOD = "a,t\n" + "1,2\n" * 1500
CUT = gzip.compress(os.urandom(5000))[:-9]
BAD = {
    "other column": (
        files(a_csv=GOOD, b_csv="a,u\n1,2\n"),
        "",
        SourceFormatError,
        r"b\.csv: column 'u' is none of",
    ),
    "column missing": (
        files(a_csv=GOOD, b_csv="t\n1\n"),
        "",
        SourceFormatError,
        r"b\.csv: column 'a' of .*a\.csv is",
    ),
    "column more": (files(a_csv=GOOD, b_csv="a,t,u\n1,2,3\n"), "", SourceFormatError, r"b\.csv: column 'u' is none"),
    "no header": (files(a_csv=GOOD, b_csv="1,2\n"), "", SourceFormatError, r"b\.csv:1:1: the first line is numbers"),
    "a header later": (files(a_csv="1,2\n", b_csv=GOOD), "", SourceFormatError, r"a\.csv:1:1: the first line is num"),
    "other width": (files(a_csv="1,2\n", b_csv="1,2,3\n"), "", SourceFormatError, r"b\.csv:1:2: 3 columns without n"),
    "ragged": (files(a_csv=GOOD, b_csv=GOOD + "1\n"), "", SourceFormatError, r"b\.csv:1502:1: 1 field"),
    "missing value": (files(a_csv=GOOD, b_csv=GOOD + "1,\n"), "", NonFiniteDataError, r"row 3000, .*b\.csv:1502"),
    "text": (files(a_csv=GOOD, b_csv=GOOD + "1,x\n"), "", SourceFormatError, r"b\.csv:1502:2: 'x'"),
    "empty": (files(a_csv=GOOD, b_csv=""), "", SourceFormatError, r"b\.csv:1:1: the file is empty"),
    "two kinds": (files(a_csv=GOOD, b_parquet="x"), "", ParameterError, r"b\.parquet is Parquet, and .*a\.csv is CSV"),
    "twice": (files(a_csv=GOOD), ["a.csv", "*.csv"], ParameterError, r"a\.csv is given twice"),
    "no match": (files(a_csv=GOOD), "*.tsv", StoreNotFoundError, r"no file matches .*\*\.tsv"),
    "absent": (files(a_csv=GOOD), ["a.csv", "b.csv"], StoreNotFoundError, r"no source at .*b\.csv"),
    "of one file": (files(a_npz=b"PK", b_npz=b"PK"), "*.npz", ParameterError, "several files are one source where"),
    "compressed parquet": (files(a_parquet_gz=b"x"), "*.gz", ParameterError, "a source is"),
    "damaged": (files(a_csv=GOOD, b_csv_gz=CUT), "", SourceFormatError, r"b\.csv\.gz"),
    "no zstd": (files(a_csv_zst=GOOD), "", SourceFormatError, r"a\.csv\.zst: the compressed file is damaged"),
    "no bzip2": (files(a_csv_bz2=GOOD), "", SourceFormatError, r"a\.csv\.bz2: the compressed file is damaged"),
    "no arrow": (files(a_arrow=GOOD), "", SourceFormatError, r"a\.arrow is not an Arrow file"),
    "cut arrow": (files(a_feather=b"ARROW1\0\0"), "", SourceFormatError, r"a\.feather is not an Arrow file"),
    "feather 1": (files(a_feather=b"FEA1...."), "", SourceFormatError, r"a\.feather is Feather of version 1"),
    "a store among files": (files(a_csv=GOOD, b__zarr_json="{}"), ["a.csv", "b"], ParameterError, "is a Zarr store or"),
    "url": (files(a_csv=GOOD), ["a.csv", "s3://bucket/b"], ParameterError, "s3://bucket/b is a Zarr store or a URL"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_source_is_refused_in_one_line(tmp_path, name):
    make, wanted, error, says = BAD[name]
    (tmp_path / "in").mkdir()
    folder = make(tmp_path / "in")
    path = lambda one: one if "://" in one else folder / one  # noqa: E731
    source = [path(one) for one in wanted] if isinstance(wanted, list) else path(wanted)
    with pytest.raises(error, match=says) as caught:
        ingest(source, tmp_path / "store", target=None)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize(("with_header", "without"), [("a_csv", "b_csv"), ("b_csv", "a_csv")])
def test_a_file_without_a_header_is_named_where_the_target_has_a_name(tmp_path, with_header, without):
    folder = files(**{with_header: GOOD, without: "1,2\n3,4\n"})(tmp_path)
    lacking = without.replace("_", ".")
    with pytest.raises(SourceFormatError, match=rf"{lacking}:1:1: the first line is numbers, and .* has a header"):
        ingest(folder, tmp_path / "store", target="t")


def test_names_of_columns_may_be_numbers(tmp_path):
    folder = files(a_csv="2019,2020,t\n1,2,3\n", b_csv="t,2020,2019\n3,2,1\n")(tmp_path)
    ingest(folder, tmp_path / "store", target="t")
    np.testing.assert_array_equal(open_table(tmp_path / "store").read(0, 2).X, [[1, 2], [1, 2]])


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_compressed_file_that_was_cut_off(tmp_path, suffix):
    text = b"a\n" + b"\n".join(b"%.9f" % value for value in np.random.default_rng(0).standard_normal(100_000))
    cut = COMPRESS[suffix](text)
    (tmp_path / f"s.csv{suffix}").write_bytes(cut[: len(cut) // 2])
    with pytest.raises(SourceFormatError, match="damaged"):
        ingest(tmp_path / f"s.csv{suffix}", tmp_path / "store")


def test_arrow_files_that_are_cut_off(tmp_path):
    for stream in (False, True):
        arrow(tmp_path / "s.arrow", FRAME, stream)
        source = truncated(lambda folder: (folder / "s.arrow", None))(tmp_path)
        with pytest.raises(SourceFormatError, match=r"s\.arrow is not an Arrow file"):
            ingest(source, tmp_path / "store")
    with pa.ipc.new_file(tmp_path / "e.arrow", pa.schema([("a", pa.float64())])):
        pass
    with pytest.raises(EmptyDataError, match="has no rows"):
        ingest(tmp_path / "e.arrow", tmp_path / "store")


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    (tmp_path / "a[1].csv").write_text("a\n1\n")
    (tmp_path / "a1.csv").write_text("a\n1\n2\n")
    assert ingest(tmp_path / "a[1].csv", tmp_path / "s").rows == 1


@pytest.mark.parametrize("target", ["b.csv", "a.csv"])
def test_a_link_that_leads_nowhere_is_told(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").symlink_to(target)
    why = "and leads back to itself" if target == "a.csv" else "and nothing is there"
    for read in (lambda: ingest("a.csv", "t"), lambda: ingest("*.csv", "t"), lambda: open_table("a.csv")):
        with pytest.raises(StoreNotFoundError, match=rf"a\.csv is a symbolic link to {target}, {why}; mend the link"):
            read()


def test_a_folder_with_a_link_to_itself_is_read_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/rows.csv").write_text("a,y\n1,2\n3,4\n")
    Path("d/again").symlink_to("../d")
    for number, source in enumerate(("d", "d/**/*.csv", "d/**")):
        assert ingest(source, f"t{number}", target="y").rows == 2


@pytest.mark.parametrize("source", ["d", "d/**", "d/**/*.csv"])
def test_linked_folders_are_read_and_none_of_their_files_twice(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("d/2024/a", "1,1\n"), ("elsewhere/b/b", "2,2\n"), ("d/.versions/c/c", "3,3\n")):
        Path(name).parent.mkdir(parents=True)
        Path(f"{name}.csv").write_text("a,y\n" + rows)
    Path("d/latest").symlink_to("2024")  # found without the link
    Path("d/more").symlink_to("../elsewhere")
    Path("d/now").symlink_to(".versions/c")  # hidden folders are not read, but links to them are
    for name in "xyz":  # circles, which grow with each other unless none is followed
        Path("elsewhere", name).symlink_to("../elsewhere")
        Path("d", name).symlink_to(".")
    assert ingest(source, "t", target="y").rows == 3
    np.testing.assert_array_equal(open_table("t").read(0, 3).X[:, 0], [1, 2, 3])


def test_two_links_to_one_folder_are_its_files_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("d", "elsewhere"):
        Path(folder).mkdir()
    Path("elsewhere/rows.csv").write_text("a,y\n1,2\n")
    for name in ("k=1", "k=2"):
        Path("d", name).symlink_to("../elsewhere")
    with pytest.raises(ParameterError, match=r"d/k=2/rows\.csv is given twice"):
        ingest("d", "t", target="y")


@pytest.mark.parametrize("source", ["d", "d/**"])
def test_a_link_to_no_file_in_a_folder_is_not_left_out(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/a.csv").write_text("a,y\n1,2\n")
    Path("d/b.csv").symlink_to("gone.csv")
    with pytest.raises(StoreNotFoundError, match=r"d/b\.csv is a symbolic link to gone\.csv, and nothing is there"):
        ingest(source, "t", target="y")


def test_a_pattern_that_matches_folders_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d/k=1").mkdir(parents=True)
    with pytest.raises(StoreNotFoundError, match=r"no file matches d/\*\*/k\*"):
        ingest("d/**/k*", "t", target="y")


def two_files(folder, first, second):
    """Files of a column `a` of other types, beside numbers and targets."""
    folder.mkdir()
    for name, a in (("0", first), ("1", second)):
        rows = pa.table({"a": a, "b": np.arange(len(a)) % 5, "y": np.arange(len(a)) * 1.0})
        feather.write_feather(rows, folder / f"{name}.arrow", compression="uncompressed")
    return folder


TEXT = pa.array(["u", "v", "w"] * 4)
DAYS = pa.array([f"2020-01-{day:02d}" for day in range(1, 13)])
MOMENTS = DAYS.cast(pa.date32()).cast(pa.timestamp("ms"))
WHOLE = pa.array(range(12))
OTHER_TYPES = {
    "categories and text": (TEXT.dictionary_encode(), TEXT, TEXT),
    "text and categories": (TEXT, TEXT.dictionary_encode(), TEXT),
    "categories of text and of numbers": (WHOLE.cast(pa.string()).dictionary_encode(), WHOLE.dictionary_encode(), None),
    "numbers and text of them": (WHOLE, WHOLE.cast(pa.string()), WHOLE),
    "truth values and numbers": (pa.array([True, False] * 6), WHOLE, WHOLE),
    "numbers and truth values": (WHOLE, pa.array([True, False] * 6), WHOLE),
    "whole numbers that floats round": (pa.array([2**60 + 1] * 12), WHOLE.cast(pa.float64()), WHOLE),
    "dates and moments": (MOMENTS.cast(pa.date32()), MOMENTS, MOMENTS),
    "two zones": (MOMENTS.cast(pa.timestamp("ms", "UTC")), MOMENTS.cast(pa.timestamp("us", "Europe/Berlin")), MOMENTS),
    "a zone and none": (MOMENTS.cast(pa.timestamp("ms", "UTC")), MOMENTS, MOMENTS),
    "dates and text of them": (MOMENTS, DAYS, MOMENTS),
    "lists of numbers and of text": (pa.array([[1]] * 12), pa.array([["u"]] * 12), None),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_a_look_takes_files_of_other_types_as_one_column(tmp_path, name):
    first, second, one_type = OTHER_TYPES[name]
    same_values = "truth" not in name and "floats" not in name
    info = ingest(two_files(tmp_path / "f", first, second), tmp_path / "s", target="y", schema="auto")
    assert info.rows == 24
    if one_type is not None:
        alike = ingest(two_files(tmp_path / "g", one_type, one_type), tmp_path / "t", target="y", schema="auto")
        assert info.columns == alike.columns
        if same_values:
            X, expected = (open_table(tmp_path / store).read(0, 24).X for store in ("s", "t"))
            np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (WHOLE.cast(pa.duration("s")), WHOLE, r"1\.arrow.*'a' holds numbers, and in .*0\.arrow.* durations"),
        (TEXT, WHOLE.cast(pa.duration("s")), r"1\.arrow.*'a' holds durations, and in .*0\.arrow.* text"),
        (TEXT, pa.array([[1]] * 12), r"1\.arrow.*'a' holds lists, and in .*0\.arrow.* text"),
    ],
)
def test_files_of_types_that_are_no_column_are_named(tmp_path, first, second, words):
    with pytest.raises(SourceFormatError, match=words):
        ingest(two_files(tmp_path / "f", first, second), tmp_path / "s", target="y", schema="auto")
    assert not (tmp_path / "s").exists()
