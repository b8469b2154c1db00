"""A column has one use, a feature one name, and rows of numbers are none of a schema: one error says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamkernel import TableEncoder, append_rows, ingest, open_table
from streamkernel.cli.wording import in_flags
from streamkernel.errors import NonFiniteDataError, NumericRangeError, ParameterError

ROWS = pa.table({"a": ["b", "c", "b"], "a=b": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 1.0], "w": [1.0, 1.0, 1.0]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "y", "weight": "y"}, "column 'y' is given by target and by weight"),
        ({"target": "y", "id": "y"}, "column 'y' is given by target and by id"),
        ({"target": ["y", "y"]}, "column 'y' is there twice as target"),
        ({"target": "y", "dates": ["y"]}, "column 'y' is given by target and by dates"),
        ({"weight": "w", "categories": ["w"]}, "column 'w' is given by weight and by categories"),
        ({"id": "a", "categories": ["a"]}, "column 'a' is given by id and by categories"),
        ({"target": "y", "categories": ["a"]}, "columns 'a' and 'a=b' both make a feature 'a=b'"),
    ],
)
def test_two_uses_of_one_column(tmp_path, options, words):
    with pytest.raises(ParameterError) as caught:
        ingest(ROWS, tmp_path / "s", **{"categories": ["a"], **options})
    assert words in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_a_real_column_and_one_that_tells_of_gaps_have_two_names():
    with pytest.raises(ParameterError, match="'a' and 'a is missing' both make a feature 'a is missing'"):
        TableEncoder().fit(pa.table({"a": [1.0, None, 2.0], "a is missing": [0.0, 1.0, 0.0]}))


def test_a_target_that_is_a_category_is_a_class(tmp_path):
    ingest(ROWS, tmp_path / "s", target="y", categories=["y"], keep=["a=b"])
    assert open_table(tmp_path / "s").targets.classes.tolist() == ["1", "2"]


def test_a_category_that_a_schema_has_not_is_added_to_it(tmp_path):
    info = ingest(ROWS, tmp_path / "s", schema=[{"name": "w"}], categories=["a"])
    assert info.columns == ("w", "a=b", "a=c")


@pytest.mark.parametrize(
    ("weight", "error", "words"),
    [
        (-1.0, ParameterError, "must not be negative, row 1, column 'w', has -1"),
        (np.nan, NonFiniteDataError, "NaN or infinity, first in row 1"),
    ],
)
def test_weights_are_checked_before_they_are_used(tmp_path, weight, error, words):
    rows = pa.table({"a": [1.0, None, 2.0], "w": [1.0, weight, 1.0]})
    with pytest.raises(error, match=words):
        ingest(rows, tmp_path / "s", weight="w", missing="mean")


def test_numbers_without_a_mean_are_refused(tmp_path):
    rows = pa.table({"a": [1.5e308, 1.5e308, None]})
    with pytest.raises(
        NumericRangeError, match="the sum of column 'a' overflows, so that it has no mean; give missing"
    ):
        ingest(rows, tmp_path / "s", missing="mean", dtype="float64")
    ingest(rows, tmp_path / "s", missing="median", dtype="float64")


def test_rows_of_numbers_are_not_appended_to_columns_of_a_schema(tmp_path):
    ingest(ROWS.select(["a", "y"]), tmp_path / "s", target="y", schema="auto")
    np.savez(tmp_path / "rows.npz", X=np.ones((2, 2)), y=np.ones(2))
    for source in (tmp_path / "rows.npz", np.ones((2, 2)), tmp_path / "s"):
        with pytest.raises(
            ParameterError, match=r"were made of columns by a schema, and .* has numbers only; give CSV"
        ):
            append_rows(source, tmp_path / "s")
    append_rows(ROWS.select(["y", "a"]), tmp_path / "s")
    assert open_table(tmp_path / "s").n_rows == 6


@pytest.mark.parametrize("name", ["categories", "dates", "drop", "keep", "target"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_between_commas_are_told_to_be_named_one_by_one(tmp_path, name, suffix):
    source = tmp_path / f"rows.{suffix}"
    frame = pd.DataFrame({"zip code": [1.0, 2.0], "b": [1.0, 2.0], "y": [1.0, 2.0]})
    frame.to_csv(source, index=False) if suffix == "csv" else frame.to_parquet(source, index=False)
    given = "zip code, b" if name == "target" else ["zip code, b"]
    with pytest.raises(ParameterError) as caught:
        ingest(source, tmp_path / "s", **{"target": "y", name: given})
    assert "'zip code, b'" in str(caught.value)
    assert f"but 'zip code' and 'b' are there; name each by itself, {name}=['zip code', 'b']" in str(caught.value)
    assert f"name each by itself, --{name} 'zip code' --{name} b" in caught.value.worded(in_flags)
    with pytest.raises(ParameterError, match=r"there is no .*'b,c'.*; its columns are zip code, b, y"):
        ingest(source, tmp_path / "s", **{"target": "y", name: "b,c" if name == "target" else ["b,c"]})


def test_a_column_may_have_a_comma_in_its_name(tmp_path):
    frame = pd.DataFrame({"a,b": ["u", "v"], "a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert ingest(frame, tmp_path / "s", target="b", categories=["a,b"]).columns == ("a,b=u", "a,b=v", "a")
