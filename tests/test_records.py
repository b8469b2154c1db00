"""Records of saved objects: what is read is written, what is wrong is named, and docs/model.md has every field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from frozen.kinds import HERE, unpacked
from test_formats import KINDS, named, tables

from streamkernel.errors import ModelFormatError
from streamkernel.factors import Factor
from streamkernel.kinds import PREDICTORS, TRANSFORMERS
from streamkernel.models.ridge import RidgeRecord
from streamkernel.records import Certificate, Record, RoundRecord, Rows
from streamkernel.records.basis import BasisRecord

CLASSES = [*(kind.model for kind in (*PREDICTORS.values(), *TRANSFORMERS.values())), Factor]
RECORDS: dict[str, type[BasisRecord]] = {kind.KIND: kind.RECORD for kind in CLASSES}
# Kinds whose options and fields are beside those of another section of the page.
BESIDE = {
    "matching-pursuit": ["Model", "Matching pursuit"],
    "support-vector-classifier": ["Support vector machine"],
    "support-vector-regression": ["Support vector machine"],
    "boosting": ["Boosting"],
    "kernel-quantile-regression": ["Support vector machine", "Quantiles"],
    "linear-programming-classifier": ["Support vector machine", "Linear programming machines"],
    "linear-programming-regression": ["Support vector machine", "Linear programming machines"],
    "one-class-support-vector-machine": ["Support vector machine", "One class"],
}


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The header of every bundle among the frozen files, by its place."""
    found = {}
    for archive in sorted(HERE.glob("*/*.tar.xz")):
        folder, _ = unpacked(archive, tmp_path_factory.mktemp("frozen"))
        for path in folder.rglob("config.json"):
            header = json.loads(path.read_text(encoding="utf-8"))
            if header["kind"] in RECORDS:
                found[f"{archive.name}/{path.parent.name}"] = header
    assert {header["kind"] for header in found.values()} == RECORDS.keys()
    return found


def test_what_is_read_is_written_again(configs: dict[str, dict[str, Any]]) -> None:
    for place, header in configs.items():
        config = header["config"]
        record = RECORDS[header["kind"]].from_config(config)
        # Text, and not values: 1 and 1.0 have different digests.
        assert json.dumps(record.to_config(), sort_keys=True) == json.dumps(config, sort_keys=True), place


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Every object within a configuration that a record describes, with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key not in ("kernel", "rule_options", "software"):
            yield from objects(inner, (*path, key))


def test_fields_that_are_not_known_are_kept_at_every_depth(configs: dict[str, dict[str, Any]]) -> None:
    for place, header in configs.items():
        config = json.loads(json.dumps(header["config"]))
        for _, inner in list(objects(config)):
            inner["of_a_later_release"] = [1, {"a": None}]
        record = RECORDS[header["kind"]].from_config(config)
        assert json.dumps(record.to_config(), sort_keys=True) == json.dumps(config, sort_keys=True), place
        assert record.changed(basis_size=7).to_config() == {**config, "basis_size": 7}


def test_every_field_is_needed_or_stays_absent(configs: dict[str, dict[str, Any]]) -> None:
    for header in configs.values():
        kind = RECORDS[header["kind"]]
        for path, inner in objects(header["config"]):
            for name in list(inner):
                value = inner.pop(name)
                words = _refused(kind, header["config"])
                if words is None:
                    assert name not in _at(kind.from_config(header["config"]).to_config(), path)
                else:
                    assert f"lacks the field {_words((*path, name))}" in words
                inner[name] = value


def _refused(kind: type[Record], config: dict[str, Any]) -> str | None:
    try:
        kind.from_config(config)
    except ModelFormatError as error:
        return str(error)
    return None


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _words(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"alpha": "1"}, "field alpha is '1', not a finite number"),
        ({"alpha": True}, "field alpha is True, not a finite number"),
        ({"alpha": float("inf")}, "field alpha is inf, not a finite number"),
        ({"sweep_count": 1.0}, "field sweep_count is 1.0, not a whole number"),
        ({"sweep_count": 2**70}, "field sweep_count is 1180591620717411303424, not a whole number"),
        ({"sweep_count": -1}, "field sweep_count is -1, not a number >= 0"),
        ({"columns": "ab"}, "field columns is 'ab', not a list"),
        ({"columns": ["a", 1]}, r"field columns\[1\] is 1, not text"),
        ({"scaler": []}, r"field scaler is \[\], not an object"),
        ({"kernel": None}, "field kernel is None, not an object"),
        ({"rows": {"start": 0, "stop": 1}}, "lacks the field rows.count"),
        ({"solution": {"solver": "guess", "gcv": None}}, "field solution.solver is 'guess', not one of 'direct', 'cg'"),
        ({"seen": [{"rows": [[0, 5, 6]], "marks": []}]}, r"field seen\[0\].rows\[0\] is \[0, 5, 6\], not a list of 2"),
    ],
)
def test_what_is_wrong_is_named(configs: dict[str, dict[str, Any]], fields: dict[str, Any], words: str) -> None:
    config = configs["ridge.tar.xz/model"]["config"]
    if "solution" in fields:
        fields = {"solution": {**config["solution"], **fields["solution"]}}
    with pytest.raises(ModelFormatError, match=words):
        RidgeRecord.from_config({**config, **fields})


def test_numbers_are_not_converted() -> None:
    record = Certificate.from_config({"trace": 1, "residual_trace": 0.5, "relative_residual_trace": 1.0})
    assert json.dumps(record.to_config()) == '{"trace": 1, "residual_trace": 0.5, "relative_residual_trace": 1.0}'


def test_a_record_is_a_value() -> None:
    rows = Rows(start=0, stop=2, count=2)
    assert rows == Rows.from_config({"start": 0, "stop": 2, "count": 2})
    assert rows.changed(stop=3).stop == 3
    assert rows.stop == 2
    assert rows != Rows(start=0, stop=2, count=1)
    assert repr(rows) == "Rows(start=0, stop=2, count=2)"
    with pytest.raises(AttributeError, match="cannot be set"):
        rows.stop = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="needs the field count"):
        Rows(start=0, stop=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has the fields start, stop, count, not start, end"):
        Rows(start=0, end=2)  # type: ignore[call-arg]
    assert RoundRecord(0, 1, None, 2, 3).candidates == 2


def parts(kind: Any) -> Iterator[type[Record]]:
    """The record classes within a type."""
    if isinstance(kind, type) and issubclass(kind, Record):
        yield kind
    for argument in get_args(kind):
        yield from parts(argument)


def names_within(record: type[Record]) -> Iterator[str]:
    for name, kind in get_type_hints(record).items():
        if not name.startswith("_"):
            yield name
            for part in parts(kind):
                yield from names_within(part)


# Matching pursuits have the fields of a model, but neither alpha and its validation nor what has been seen; a factor is
# one of a matrix of rows, which have no weights.
LACKING = {
    "matching-pursuit": {"alpha", "multilabel", "seen", "updates", "validation"},
    "factor": {"weight_column", "table_schema"},
}


@pytest.mark.parametrize("kind", RECORDS)
def test_the_page_has_every_field(kind: str) -> None:
    sections = BESIDE.get(kind) or [section for section, stored in KINDS.items() if stored == kind]
    page = named(tables("Fields of every configuration", "field")[0])
    for section in sections:
        for name, cells in named(tables(section, "field")[0]).items():
            page[name] = [*page.get(name, []), *cells]
    updates = named(tables("What a model has seen", "name")[0])
    hints = get_type_hints(RECORDS[kind])
    fields = {name for name in hints if not name.startswith("_")}
    assert page.keys() - fields == LACKING.get(kind, set())
    assert fields <= page.keys()
    for name in fields:
        for part in parts(hints[name]):
            for inner in names_within(part):
                assert f"`{inner}`" in " ".join(page[name]) or (name == "updates" and inner in updates), (name, inner)
