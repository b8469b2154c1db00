"""One value has one meaning, however a file or frame stores it."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamkernel import TableEncoder, append_rows, ingest, open_table, suggest_schema
from streamkernel.errors import SourceFormatError
from streamkernel.table.schema import Column, Schema
from streamkernel.table.schema.values import WrongValueError, categories, dates, numbers

TIMES = [dt.datetime(2020, 1, 31, 12, 30), dt.datetime(1969, 12, 31, 23, 59, 59)]
STAMPS = pa.array(TIMES, pa.timestamp("s"))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1", " 2 ", "2.5", None]),
        pa.array(["1.0", "2", "2.5", "NA"], pa.large_string()),
        pa.array([1.0, 2.0, 2.5, np.nan]),
        pa.array([1.0, 2.0, 2.5, None], pa.float32()),
        pa.array([1.0, 2.0, 2.5, None]).dictionary_encode(),
        pa.array([decimal.Decimal(text) for text in ("1.00", "2.00", "2.50")] + [None], pa.decimal128(10, 2)),
        pa.array([b"1", b"2", b"2.5", None]),
        pa.array(["1", "2", "2.5", None]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], pa.array(["1", "2", "2.5", None])),
    ],
    ids=lambda column: str(column.type),
)
def test_a_category_has_one_text(column):
    codes, labels = categories(column)
    assert labels.to_pylist() == ["1", "2", "2.5"]
    assert codes.tolist() == [0, 1, 2, -1]


def test_truth_values_and_composed_letters_are_one_category():
    assert categories(pa.array([True, False, None]))[1].to_pylist() == ["true", "false"]
    codes, labels = categories(pa.array(["True", "TRUE", "true", "False"]))
    assert (codes.tolist(), labels.to_pylist()) == ([0, 0, 0, 1], ["true", "false"])
    codes, labels = categories(pa.array(["\u00e9", "e\u0301", "E\u0301"]))
    assert (codes.tolist(), labels.to_pylist()) == ([0, 0, 1], ["\u00e9", "\u00c9"])


def test_whole_numbers_keep_their_digits():
    big = [2**53 + 1, 2**53, -0, 10**15]
    assert categories(pa.array(big))[1].to_pylist() == [str(each) for each in big]
    assert categories(pa.array([1e15, -0.0, 1e300]))[1].to_pylist() == ["1000000000000000", "0", "1e+300"]
    assert categories(pa.array(["007", "1.10", "1.0.0"]))[1].to_pylist() == ["007", "1.10", "1.0.0"]


def test_categories_of_a_dictionary_that_no_row_has_are_no_features():
    frame = pd.DataFrame({"c": pd.Categorical(["u", "v", "u"], categories=["u", "unused", "v"])})
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["c=u", "c=v"]


@pytest.mark.parametrize("values", [[[1], [2]], [{"x": 1}, None], [b"\xff", b"a"]])
def test_values_without_a_text_are_no_categories(tmp_path, values):
    with pytest.raises(
        SourceFormatError, match=r"Table \(row 0\): .* of column 'c' is not a category: the column holds"
    ):
        ingest(pa.table({"c": values}), tmp_path / "s", categories=["c"])


def test_a_categorical_of_numbers_is_a_category_in_a_look():
    frame = pd.DataFrame(
        {"c": pd.Categorical([1, 2, 1]), "d": pd.Categorical(pd.to_datetime(["2020", "2021", "2020"]))}
    )
    assert {column.kind for column in suggest_schema(frame).columns} == {"category"}


@pytest.mark.parametrize(
    "column",
    [
        STAMPS,
        STAMPS.cast(pa.timestamp("ns")),
        STAMPS.cast(pa.timestamp("us", "UTC")),
        STAMPS.dictionary_encode(),
        pa.array(["2020-01-31T12:30", "1969-12-31 23:59:59.000000000"]),
        pa.array(["2020-01-31T13:30+01:00", "1969-12-31T23:59:59Z"]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_date_has_one_number(column):
    days = [(moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1) for moment in TIMES]
    np.testing.assert_allclose(dates(column, None), days, rtol=1e-14)


@pytest.mark.parametrize(
    ("column", "form", "row"),
    [
        (pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), None, 1),
        (pa.array([-(2**31), 0], pa.int32()).cast(pa.date32()), None, 0),
        (pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("s")), None, 1),
        (pa.array(["2020-01-01", None, "0000-01-01"]), None, 2),
        (pa.array(["28.02.2020", "31.02.2020"]), "%d.%m.%Y", 1),
        (pa.array(["29/02/2020", "29/02/2021 "]), "%d/%m/%Y", 1),
        (pa.array(["01.03.2020", None, "x"]), "%d.%m.%Y", 2),
    ],
)
def test_days_that_are_not_there_are_refused(column, form, row):
    with pytest.raises(WrongValueError) as caught:
        dates(column, form)
    assert caught.value.row == row


def test_first_and_last_year_of_the_calendar(tmp_path):
    (tmp_path / "rows.csv").write_text("when\n0001-01-01\n9999-12-31\n")
    ingest(tmp_path / "rows.csv", tmp_path / "s", dates=["when"], dtype="float64")
    assert open_table(tmp_path / "s").read(0, 2).X[:, 0].tolist() == [0.0, 3652058.0]
    (tmp_path / "rows.csv").write_text("when\n2020-01-01\n0000-12-31\n")
    with pytest.raises(SourceFormatError, match=r"rows\.csv:3: '0000-12-31' of column 'when' is not a date"):
        ingest(tmp_path / "rows.csv", tmp_path / "t", dates=["when"])


@pytest.mark.parametrize(
    ("text", "form", "moment"),
    [
        ("2020-01-31 10:00:00.250000", "%Y-%m-%d %H:%M:%S.%f", dt.datetime(2020, 1, 31, 10, 0, 0, 250_000)),
        ("2020-01-31 10:00+0200", "%Y-%m-%d %H:%M%z", dt.datetime(2020, 1, 31, 8)),
        ("1.3.2020", "%d.%m.%Y", dt.datetime(2020, 3, 1)),
        ("Mar 1 2020", "%b %d %Y", dt.datetime(2020, 3, 1)),
        ("03/01/70", "%m/%d/%y", dt.datetime(1970, 3, 1)),
    ],
)
def test_formats(text, form, moment):
    assert dates(pa.array([text]), form)[0] == pytest.approx((moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1))


@pytest.mark.parametrize("row", [0, 1, 57, 199])
def test_the_first_wrong_row_is_named(row):
    values = [str(i) for i in range(200)]
    values[row] = values[-1] = "x"
    for column in (pa.array(values), pa.array(values[::-1]).dictionary_encode().take(pa.array(range(199, -1, -1)))):
        with pytest.raises(WrongValueError) as caught:
            numbers(column)
        assert (caught.value.row, caught.value.value) == (row, "x")


def test_a_number_that_stands_for_a_gap_does_so_in_its_column_alone(tmp_path):
    schema = Schema((Column("a", missing="mean", missing_values=("-9", "?")), Column("b", missing="mean")))
    table = pa.table({"a": [-9, 2, 4], "b": [-9, 5, 6]})
    (tmp_path / "rows.csv").write_text("a,b\n-9.0,-9\n2,5\n4,6\n")
    for source in (table, tmp_path / "rows.csv", table.cast(pa.schema({"a": pa.string(), "b": pa.float32()}))):
        ingest(source, tmp_path / "s", schema=schema, overwrite=True)
        assert open_table(tmp_path / "s").read(0, 3).X.tolist() == [[3, -9], [2, 5], [4, 6]]


def test_later_rows_of_another_type_have_the_same_categories(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,true\n2,false\n")
    ingest(tmp_path / "rows.csv", tmp_path / "s", categories=["a", "b"])
    (tmp_path / "more.csv").write_text("a,b\n1.0,True\n2.0,False\n")
    append_rows(tmp_path / "more.csv", tmp_path / "s")
    append_rows(pa.table({"a": [1.0, 2.0], "b": [True, False]}), tmp_path / "s", repeated="append")
    X = open_table(tmp_path / "s").read(0, 6).X
    np.testing.assert_array_equal(X, np.tile(X[:2], (3, 1)))


def test_categories_that_a_schema_writes_in_another_way_are_known(tmp_path):
    schema = [{"name": "a", "kind": "category", "categories": [" e\u0301 ", "1.0"]}]
    ingest(pa.table({"a": ["1", "\u00e9"]}), tmp_path / "s", schema=schema)
    assert open_table(tmp_path / "s").read(0, 2).X.tolist() == [[0, 1], [1, 0]]
