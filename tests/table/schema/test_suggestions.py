"""What a look at the rows says of each column."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from streamkernel import ingest, open_table, suggest_schema
from streamkernel.errors import SourceFormatError, StreamKernelWarning
from streamkernel.table._row_ids import as_texts
from streamkernel.table.ingest import _declared
from streamkernel.table.rows import RowReader
from streamkernel.table.schema import Column

MANY = [f"word {i % 40}" for i in range(200)]
UNKNOWN = {"unknown": "ignore", "missing": "indicator"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", "", "-3e4"], Column("c", missing="indicator")),
        (["1", "?", *map(str, range(40))], Column("c", missing="indicator", missing_values=("?",))),
        (["1", "?", "-", *map(str, range(60))], Column("c", missing="indicator", missing_values=("?", "-"))),
        (["1", "few", "many", *map(str, range(60))], Column("c", "text")),
        (["yes", "no", "", "Yes"], Column("c", "boolean", missing="indicator")),
        (["true", "false"], Column("c", "boolean", missing="indicator")),
        (["0", "1", "1"], Column("c", missing="indicator")),
        (["00501", "10001", "00501"], Column("c", "category", **UNKNOWN)),
        (["2020-01-31", "", "2020-02-28T10:00"], Column("c", "date", missing="indicator")),
        (["2020-01-31T10:00Z", "2020-01-31 10:00+02:00"], Column("c", "date", missing="indicator")),
        (["31.01.2020", "01.02.2020"], Column("c", "date", missing="indicator", format="%d.%m.%Y")),
        (["31/01/2020", "01/02/2020"], Column("c", "date", missing="indicator", format="%d/%m/%Y")),
        (["01/31/2020", "01/02/2020"], Column("c", "date", missing="indicator", format="%m/%d/%Y")),
        (["a", "b", "a"], Column("c", "category", **UNKNOWN)),
        (MANY, Column("c", "category", encoding="target-mean", **UNKNOWN)),
        ([f"free text {i}" for i in range(50)], Column("c", "text")),
        (["", "", ""], Column("c", "text")),
        ([1, 2, 3], Column("c", missing="indicator")),
        ([1.5, None, np.nan], Column("c", missing="indicator")),
        ([True, None, False], Column("c", "boolean", missing="indicator")),
        ([dt.date(2020, 1, 1)], Column("c", "date", missing="indicator")),
        ([[1], [2]], Column("c", "text")),
        ([None, None], Column("c", "text")),
        ([np.nan, None], Column("c", "text")),
        (pa.nulls(3, pa.int64()), Column("c", "text")),
        (pa.nulls(3, pa.date32()), Column("c", "text")),
    ],
)
def test_kinds(values, expected):
    frame = pa.table({"c": values, "y": np.arange(float(len(values)))})
    assert suggest_schema(frame, target="y")["c"] == expected


def test_numbers_that_begin_after_the_look_stay():
    late = pa.table({"c": pa.concat_arrays([pa.nulls(100_000, pa.float64()), pa.array([1.0])]), "y": [0.0] * 100_001})
    assert suggest_schema(late, target="y")["c"] == Column("c", missing="indicator")


def test_a_look_at_a_part_leaves_the_encoding_to_the_pass_over_all_rows(tmp_path):
    many = pa.table({"c": ["a", "b"] * 55_000 + [f"c{i % 300}" for i in range(900)], "y": np.arange(110_900.0)})
    assert suggest_schema(many, target="y")["c"] == Column("c", "category", **UNKNOWN)
    assert ingest(many, tmp_path / "s", target="y", schema="auto").columns == ("c (mean of y)",)
    assert suggest_schema(many, drop=["y"])["c"].encoding == "one-hot"


def test_of_several_columns_that_look_like_ids_the_first_or_the_named_one_is_it(tmp_path):
    """Two of them were refused as two ids, and so was the one that the user named beside another."""
    many = {"id": range(40), "user_id": [f"u{i}" for i in range(40)], "key": range(40, 80), "a": np.arange(40.0)}
    table = pa.table(many)
    assert [suggest_schema(table)[name].role for name in table.column_names] == ["id", *["feature"] * 3]
    assert [suggest_schema(table)[name].kind for name in ("user_id", "key")] == ["text", "text"]
    for name, first in (("user_id", "u0"), ("key", "40")):
        info = ingest(table, tmp_path / name, schema="auto", id=name)
        assert info.columns == ("a",)
        assert as_texts(RowReader(open_table(tmp_path / name).ids).read(0, 1)) == [first]


def test_a_date_of_both_orders_is_a_category_and_not_guessed():
    table = pa.table({"c": ["01/02/2020", "03/04/2020", "01/02/2020"]})
    with pytest.warns(StreamKernelWarning, match="give its format in the schema; it is not read as a date"):
        assert suggest_schema(table)["c"].kind == "category"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *((name, "id") for name in ("id", "user_id", "userId", "index", "ID", "Id", "A KEY", "Kunden-Nr", "Name")),
        *((name, "feature") for name in ("paid", "PAID", "grid", "Monkey", "username")),
    ],
)
def test_ids_are_whole_numbers_or_texts_that_differ(name, role):
    for values in (list(range(50)), [f"u{i}" for i in range(50)]):
        found = suggest_schema(pa.table({name: values, "a": np.ones(50)}))[name]
        assert found.role == role
    assert suggest_schema(pa.table({name: [1, 1, 2]}))[name].role == "feature"


def test_without_a_target_there_are_no_means():
    assert suggest_schema(pa.table({"c": MANY}))["c"].kind == "text"


def test_options_go_before_the_look(tmp_path):
    (tmp_path / "a.csv").write_text("a;b;c;d\n1,5;x;7;0\n2,5;y;7;1\n")
    found = suggest_schema(
        tmp_path / "a.csv", target="d", decimal=",", categories=["c"], drop=["b"], missing="refuse", unknown="refuse"
    )
    assert found["a"] == Column("a")
    assert found["b"] == Column("b", "text")
    assert found["c"] == Column("c", "category")
    assert found["d"] == Column("d", "number", "target")


def test_text_numbers_with_commas_of_other_sources_are_no_matter_of_csv():
    """The way out of CSV, decimal=',', is none here: it was named, and the frame was refused as before."""
    told = r"^.*Table: '\d,5' in column 'a' is text, a number with a comma; make numbers of such columns in the source$"
    for table in (pa.table({"a": ["1,000", "2,5"]}), pa.table({"a": pa.array(["1,5", "2,5"]).dictionary_encode()})):
        with pytest.raises(SourceFormatError, match=told):
            suggest_schema(table)


def test_dates_of_a_look_are_not_looked_at_again(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("when,other,y\n2020-01-31,01.02.2020,1\n2020-02-28,31.12.2020,2\n")
    looks, first_rows = [], _declared._first_rows

    def noted(stream, names):
        looks.append(list(names))
        return first_rows(stream, names)

    monkeypatch.setattr(_declared, "_first_rows", noted)
    assert suggest_schema(tmp_path / "a.csv", target="y")["other"].format == "%d.%m.%Y"
    assert looks == [["when", "other", "y"]]
    looks.clear()
    assert suggest_schema(tmp_path / "a.csv", schema=[{"name": "y"}], dates=["other"])["other"].format == "%d.%m.%Y"
    assert looks == [["other"]]
