"""Schemas as files: JSON and TOML say the same, and what means nothing is refused by its place."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.table.schema import Column, Schema

WHOLE = Schema(
    (
        Column("age", missing="indicator", fill=40.25, gaps=True, unit=10.0),
        Column("job", "category", missing="mean", unknown="ignore", encoding="one-hot", categories=("a", "é\n", '"')),
        Column(
            "zip",
            "category",
            encoding="target-mean",
            categories=("1", "2"),
            outputs=("y",),
            means=((1.5,), (-2.0,)),
            overall=(0.1,),
        ),
        Column("when", "date", parts=("elapsed", "year"), format="%d.%m.%Y", origin="2020-01-01"),
        Column("yes", "boolean", missing="median", missing_values=("?",)),
        Column("note", "text"),
        Column("key", "text", "id"),
        Column("w", "number", "weight"),
        Column("y", "number", "target"),
    )
)


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_a_schema_is_read_as_it_was_written(tmp_path, suffix):
    path = tmp_path / f"s.{suffix}"
    WHOLE.write(path)
    assert Schema.read(path) == WHOLE
    with pytest.raises(StoreExistsError):
        WHOLE.write(path)
    WHOLE.write(path, overwrite=True)


def test_only_a_schema_is_replaced(tmp_path):
    (tmp_path / "other.json").write_text('{"columns": 1}')
    with pytest.raises(ParameterError, match="is no schema"):
        WHOLE.write(tmp_path / "other.json", overwrite=True)
    assert (tmp_path / "other.json").read_text() == '{"columns": 1}'


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, min_size=1, max_size=5))
def test_any_names_stand_in_toml(names):
    schema = Schema(tuple(Column(name, missing_values=(name,)) for name in names))
    assert Schema.from_config(tomllib.loads(schema.to_toml())) == schema


def test_what_a_user_writes_by_hand_is_enough(tmp_path):
    (tmp_path / "s.toml").write_text('[[columns]]\nname = "a"\n\n[[columns]]\nname = "b"\nkind = "category"\n')
    assert Schema.read(tmp_path / "s.toml") == Schema((Column("a"), Column("b", "category")))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": "a", "kind": "numeric"}, "kind must be one of number, boolean, category, date, text, not 'numeric'"),
        ({"name": "a", "sort": 1}, "has a field 'sort'"),
        ({"kind": "number"}, "needs a name"),
        ({"name": "a", "unit": 0}, "unit must be a number > 0"),
        ({"name": "a", "unit": True}, "unit must be a number > 0"),
        ({"name": "a", "categories": ["x"]}, "categories is for a category"),
        ({"name": "a", "kind": "category", "categories": ["x", "x"]}, "different texts"),
        ({"name": "a", "kind": "category", "categories": []}, "different texts"),
        ({"name": "a", "kind": "category", "categories": "xy"}, "list of texts"),
        ({"name": "a", "kind": "category", "categories": [1]}, "list of texts"),
        ({"name": "a", "kind": "date", "parts": ["month"]}, "parts must be some of elapsed, year, week, day"),
        ({"name": "a", "kind": "date", "origin": "1.1.2020"}, "origin must be a date"),
        ({"name": "a", "kind": "date", "role": "target"}, "a target is a number or a category, not a date"),
        ({"name": "a", "fill": "0"}, "fill must be a number"),
        ({"name": "a", "missing": "mode"}, "missing must be one of"),
        (
            {"name": "a", "kind": "category", "categories": ["x"], "outputs": ["y"], "means": [[1, 2]], "overall": [1]},
            "must be 1 numbers each",
        ),
        (7, "needs a name"),
    ],
)
def test_a_field_that_means_nothing_is_refused(tmp_path, config, words):
    (tmp_path / "s.json").write_text(json.dumps({"columns": [config]}))
    with pytest.raises(ParameterError) as caught:
        Schema.read(tmp_path / "s.json")
    assert words in str(caught.value)
    assert "s.json" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "is no schema"),
        ('{"columns": [], "more": 1}', "has a field 'more'"),
        ('{"columns": [], "version": 2}', "of version 2"),
        ('{"columns": [{"name": "a"}, {"name": "a"}]}', "there twice"),
        ('{"columns": [{"name": "a", "role": "id"}, {"name": "b", "role": "id"}]}', "choose one"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_files_that_are_no_schema(tmp_path, text, words):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ParameterError, match=words):
        Schema.read(tmp_path / "s.json")


def test_a_name_without_a_known_suffix_and_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ParameterError, match=r"named \.json or \.toml"):
        Schema.read(tmp_path / "s.yaml")
    with pytest.raises(StoreNotFoundError, match="there is no schema"):
        Schema.read(tmp_path / "s.json")
    with pytest.raises(StoreNotFoundError, match="does not exist"):
        WHOLE.write(tmp_path / "none" / "s.json")
