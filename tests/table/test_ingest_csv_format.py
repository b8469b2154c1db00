"""Separators, decimal commas and encodings of CSV."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table.sources import FRAME, M, X, Y

from streamkernel import open_table
from streamkernel.errors import NonFiniteDataError, ParameterError, SourceFormatError
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.csv.records import is_number


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("separator", [None, ";"])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas_as_excel_writes_them(tmp_path, separator, header):
    FRAME.to_csv(tmp_path / "s.csv", sep=";", decimal=",", index=False, header=header, encoding="utf-8-sig")
    info = ingest(tmp_path / "s.csv", tmp_path / "s", target=-1, decimal=",", separator=separator, dtype="float64")
    assert info.columns == (tuple("abcd") if header else ("x0", "x1", "x2", "x3"))
    block = open_table(tmp_path / "s").read(0, M)
    np.testing.assert_array_equal(block.X, X)
    np.testing.assert_array_equal(block.Y[:, 0], Y)
    append_rows(tmp_path / "s.csv", tmp_path / "s", decimal=",", target=-1)
    assert open_table(tmp_path / "s").n_rows == 2 * M


def test_commas_that_separate_and_decimal_commas_in_quotes(tmp_path):
    source = write(tmp_path / "s.csv", 'a,b\n"1,5",2\n"-,5","1e3"\n')
    ingest(source, tmp_path / "s", separator=",", decimal=",")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 2).X, [[1.5, 2], [-0.5, 1000]])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("0123456789.,+-einfaN ", min_size=1, max_size=8), st.sampled_from(".,"))
def test_the_slow_parser_takes_what_the_fast_one_takes(tmp_path, text, decimal):
    source = write(tmp_path / "s.csv", f"a;t\n1;u\n{text};u\n")
    try:
        ingest(source, tmp_path / "s", target="t", separator=";", decimal=decimal, overwrite=True, dtype="float64")
        taken = True
    except NonFiniteDataError:
        taken = True
    except SourceFormatError as error:
        assert "s.csv:3:1: " in str(error)  # noqa: PT017 (no error is right, too)
        taken = False
    assert taken == is_number(text, decimal)


@pytest.mark.parametrize("separator", ["|", "tab", "\\t", "\t", " ", ":", "~"])
def test_any_separator(tmp_path, separator):
    mark = "\t" if separator in ("tab", "\\t") else separator
    source = write(tmp_path / "s.csv", f"a,x{mark}y;z\n1{mark}2\n")
    assert ingest(source, tmp_path / "s", separator=separator).columns == ("a,x", "y;z")


# Compressed text is decoded by the same reader: an encoding of one byte a character, one with a mark and one without.
@pytest.mark.parametrize(
    ("encoding", "written", "suffix"),
    [
        ("latin-1", "latin-1", ""), ("cp1252", "cp1252", ""), ("utf-16", "utf-16", ""), ("utf-16-le", "utf-16-le", ""),
        ("UTF8", "utf-8-sig", ""), ("utf-8-sig", "utf-8", ""), ("utf-32", "utf-32", ""),
        ("iso8859-15", "iso8859-15", ""), ("latin-1", "latin-1", ".gz"), ("utf-16", "utf-16", ".gz"),
        ("utf-8-sig", "utf-8", ".gz"),
    ],
)  # fmt: skip
def test_encodings(tmp_path, encoding, written, suffix):
    rows = 40_000  # several blocks
    text = "größe;art\r\n" + "1,25;été\r\n2,5;août\r\n" * (rows // 2)
    content = text.encode(written)
    source = tmp_path / f"s.csv{suffix}"
    source.write_bytes(gzip.compress(content, 1) if suffix else content)
    info = ingest(source, tmp_path / "s", target="art", encoding=encoding, decimal=",")
    assert (info.rows, info.columns, info.classes) == (rows, ("größe",), ("août", "été"))
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 2).X, [[1.25], [2.5]])


def test_text_that_is_not_in_the_encoding_is_named_with_its_line(tmp_path):
    source = write(tmp_path / "s.csv", "a;t\n" + "1;é\n" * 2000, "latin-1")
    with pytest.raises(SourceFormatError, match=r"s\.csv:2:2: byte 0xe9 is not UTF-8; .*encoding='latin-1'$"):
        ingest(source, tmp_path / "s", target="t")
    with pytest.raises(SourceFormatError, match=r"s\.csv:2:1: the line is not ascii .*; give another encoding"):
        ingest(source, tmp_path / "s", target="t", encoding="ascii")
    source = write(tmp_path / "s.csv", "a;t\n" + "1;e\n" * 200_000 + "1;é\n")
    with pytest.raises(SourceFormatError, match=r"s\.csv:200002:1: the line is not ascii"):
        ingest(source, tmp_path / "s", target="t", encoding="ascii")
    source = write(tmp_path / "s.csv", "a;t\n1;e\n", "utf-16")
    with pytest.raises(SourceFormatError, match=r"the file is UTF-16, not UTF-8; give encoding='utf-16'"):
        ingest(source, tmp_path / "s", target="t")


def test_problems_are_told_with_their_line(tmp_path):
    good = "a;b\n" + "1,5;2\n" * 1500
    for line, says in (("1.5;2", "'1.5' in column 'a'"), ("1.000,5;2", "'1.000,5' in column 'a'"), ("1", "1 field")):
        source = write(tmp_path / "s.csv", good + line + "\n", "utf-16")
        with pytest.raises(SourceFormatError, match=rf"s\.csv:1502:1: {says}"):
            ingest(source, tmp_path / "s", decimal=",", encoding="utf-16")


# 1,000 was said to be a number with a decimal comma: the way out read one thousand as one.
@pytest.mark.parametrize(
    ("field", "separator", "options", "says"),
    [
        ("1,5", ";", {}, "'1,5' in column 'a' is a number with a decimal comma; give decimal=','$"),
        ('"1,5"', ",", {}, "is a number with a decimal comma; give decimal=',' and separator=','$"),
        ("1,000", ";", {}, "with a comma; where it separates thousands, leave it out, and where it is decimal, give d"),
        ('"12,345"', ",", {}, "where it separates thousands, leave it out, .* give decimal=',' and separator=','"),
        ("0,500", ";", {}, "is a number with a decimal comma"),
        ('"1,234,567"', ",", {}, "is a number with other signs; write numbers alone, such as 1234.5"),
        ("1 000", ",", {}, "is a number with other signs"),
        ("$1.50", ",", {}, "is a number with other signs"),
        ("7%", ",", {}, "is a number with other signs"),
        ("1.000,5", ";", {"decimal": ","}, "is a number with other signs; write numbers alone, such as 1234,5"),
        ("1-2", ",", {}, "is not a number; mend it"),
    ],
)
def test_a_number_with_other_signs_is_not_said_to_be_text(tmp_path, field, separator, options, says):
    source = write(tmp_path / "s.csv", f"a{separator}y\n1{separator}2\n{field}{separator}3\n")
    with pytest.raises(SourceFormatError, match=r"s\.csv:3:1: ") as caught:
        ingest(source, tmp_path / "s", target="y", **options)
    assert re.search(says, str(caught.value))


def test_the_way_out_of_a_decimal_comma_among_commas(tmp_path):
    source = write(tmp_path / "s.csv", 'a,y\n"1,5",2\n"2,5",3\n')
    ingest(source, tmp_path / "s", target="y", decimal=",", separator=",")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 2).X, [[1.5], [2.5]])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"separator": ";;"}, "separator must be one ASCII letter"), ({"separator": ""}, "separator must"),
        ({"separator": "x"}, "separator must"), ({"separator": "\n"}, "separator must"), ({"separator": "é"}, "separa"),
        ({"separator": "."}, "separator must"), ({"separator": '"'}, "separator must"), ({"separator": 3}, "separator"),
        ({"decimal": ";"}, "decimal must be '.' or ','"), ({"decimal": None}, "decimal must"),
        ({"encoding": "klingon"}, "encoding must be a text encoding"), ({"encoding": "base64"}, "encoding must"),
        ({"encoding": None}, "encoding must"), ({"encoding": "utf-8\0"}, "encoding must"),
        ({"encoding": "undefined"}, "encoding must"),
    ],
)  # fmt: skip
def test_what_is_no_format_is_refused_before_the_file_is_looked_at(tmp_path, given, says):
    for call in (ingest, append_rows):
        with pytest.raises(ParameterError, match=f"^{says}"):
            call(tmp_path / "absent.csv", tmp_path / "s", **given)


def test_options_of_csv_for_what_is_none(tmp_path):
    np.save(tmp_path / "s.npy", X)
    FRAME.to_parquet(tmp_path / "s.parquet")
    ingest(X, tmp_path / "zarr")
    sources = tmp_path / "s.npy", tmp_path / "s.parquet", tmp_path / "zarr", X, "synthetic://friedman?rows=9"
    for source in sources:
        for wanted in ({"separator": ";"}, {"decimal": ","}, {"encoding": "latin-1"}):
            with pytest.raises(ParameterError, match=f"^{next(iter(wanted))} is for CSV, and .* is none"):
                ingest(source, tmp_path / "s", **wanted)


def test_a_format_has_a_normal_form():
    assert CsvFormat("tab", ".", "UTF8") == CsvFormat("\t", encoding="utf-8-sig")
