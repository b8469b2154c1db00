"""A model of a table as it came takes rows as that table had them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from messy_tables import messy
from service.live import Live

from streamkernel import Column, KernelRidge, Schema, TableEncoder, ingest, open_table
from streamkernel.errors import NonFiniteDataError
from streamkernel.service.formats import ARROW, MEDIA_TYPES
from streamkernel.service.http_errors import Refused
from streamkernel.service.raw_rows import RawRows
from streamkernel.service.settings import Settings

FRAME = messy(300)
ARROW_TYPE = MEDIA_TYPES[ARROW]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Any]]:
    folder: Path = tmp_path_factory.mktemp("served")
    ingest(FRAME, folder / "s", target="y", schema="auto", dtype="float64")
    model = KernelRidge(n_components=30, lengthscale=5.0, alpha=0.01).fit(open_table(folder / "s"))
    (folder / "models").mkdir()
    model.save(folder / "models" / "m")
    with (
        Live(Settings(folder / "models")) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client,
    ):
        yield client, model


def post(client: httpx.Client, body: Any) -> httpx.Response:
    return client.post("/v1/models/m/predict", json=body)


def objects(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_rows_of_the_table_are_encoded(served: tuple[httpx.Client, Any]) -> None:
    client, model = served
    rows = objects(FRAME)
    encoder = TableEncoder.of(model).set_output(transform="pandas")
    expected = model.predict(encoder.transform(FRAME))
    found = post(client, {"rows": rows}).json()["prediction"]
    np.testing.assert_array_equal(found, expected)
    # Targets, ids and other names are left alone; numbers may be text.
    fewer = [{name: value for name, value in row.items() if name not in ("y", "key")} | {"more": 1} for row in rows]
    assert post(client, {"rows": fewer}).json()["prediction"] == found
    assert post(client, {"row": rows[0] | {"hours": float(rows[0]["hours"])}}).json()["prediction"] == pytest.approx(
        found[0]
    )
    encoded = encoder.transform(FRAME.iloc[:2])
    assert post(client, {"rows": encoded.to_dict("records")}).json()["prediction"] == pytest.approx(found[:2])
    about = client.get("/v1/models/m").json()
    assert about["source_columns"] == ["age", "job", "city", "married", "when", "hours"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, "row 1: 'old' of column 'age' is not a number"),
        ({"when": "soon"}, "row 1: 'soon' of column 'when' is not a date"),
        ({"age": [1]}, "row 1, column 'age' is a list, not a value"),
        (None, "row 1 has no column 'age'; give its value, or null"),
        (7, "row 1 is no object"),
    ],
)
def test_what_is_wrong_is_said_by_row_and_column(served: tuple[httpx.Client, Any], change: Any, words: str) -> None:
    client, _ = served
    rows: list[Any] = objects(FRAME.iloc[:3].fillna({"age": 1.0}))
    if change is None:
        del rows[1]["age"]
    elif isinstance(change, dict):
        rows[1] |= change
    else:
        rows[1] = change
    answer = post(client, {"rows": rows})
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(("missing", "way_out"), [("refuse", "give its value"), ("mean", "give its value, or null")])
def test_null_is_a_way_out_only_where_gaps_are_filled(missing: str, way_out: str) -> None:
    fill = None if missing == "refuse" else 1.0
    column = Column("age", missing=missing, fill=fill, gaps=None if missing == "refuse" else False)
    rows = RawRows(Schema((column,)))
    with pytest.raises(Refused) as refused:
        rows.encoded([{}])
    assert str(refused.value) == f"row 0 has no column 'age'; {way_out}"
    if missing == "refuse":
        with pytest.raises(NonFiniteDataError):
            rows.encoded([{"age": None}])
    else:
        np.testing.assert_array_equal(rows.encoded([{"age": None}]), [[1.0]])


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return sink.getvalue().to_pybytes()


def post_arrow(client: httpx.Client, table: pa.Table) -> httpx.Response:
    return client.post("/v1/models/m/predict", content=stream(table), headers={"content-type": ARROW_TYPE})


def test_an_arrow_stream_of_the_table_is_encoded(served: tuple[httpx.Client, Any]) -> None:
    client, model = served
    expected = model.predict(TableEncoder.of(model).set_output(transform="pandas").transform(FRAME))
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    when = pa.array(pd.to_datetime(FRAME["when"]), pa.timestamp("ms"))
    of_types = {
        # Columns in another order, without a target, with others; of other types of the same values.
        "as it is": table,
        "another order": table.drop(["y", "key"]).select(["hours", "when", "married", "city", "job", "age"]),
        "dates": table.set_column(table.column_names.index("when"), "when", when),
        "long text": table.cast(
            pa.schema([pa.field(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in table.schema])
        ),
    }
    for name, given in of_types.items():
        answer = post_arrow(client, given)
        assert answer.status_code == 200, (name, answer.content[:300])
        found = pa.ipc.open_stream(answer.content).read_all().column("prediction").to_numpy()
        np.testing.assert_array_equal(found, expected, err_msg=name)
    # Features are taken as before.
    encoded = TableEncoder.of(model).set_output(transform="pandas").transform(FRAME)
    answer = post_arrow(client, pa.Table.from_pandas(encoded, preserve_index=False))
    np.testing.assert_array_equal(pa.ipc.open_stream(answer.content).read_all().column("prediction"), expected)


def test_types_of_arrow_that_hold_the_same_values_are_one(served: tuple[httpx.Client, Any]) -> None:
    client, _ = served
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    ages = pa.array(range(300), pa.float64())
    # pyarrow makes a column without a type of values that are all None.
    for name, one, other in (
        ("job", pa.nulls(300, pa.string()), pa.nulls(300)),
        ("age", pa.nulls(300, pa.float64()), pa.nulls(300)),
        ("when", pa.nulls(300, pa.date32()), pa.nulls(300)),
        ("age", ages, ages.cast(pa.decimal128(20, 2))),
    ):
        found = [post_arrow(client, _with(table, name, values)) for values in (one, other)]
        assert found[0].status_code == 200
        assert found[0].content == found[1].content
    refused = post_arrow(client, pa.table({name: pa.nulls(9) for name in table.column_names}))
    assert "holds no value in any row" in refused.json()["error"]["message"]


def test_half_of_a_surrogate_pair_is_no_text(served: tuple[httpx.Client, Any]) -> None:
    client, _ = served
    rows = [*objects(FRAME.iloc[:2].fillna({"age": 1.0})), {**objects(FRAME)[0], "job": "a\ud800"}]
    answer = client.post(
        "/v1/models/m/predict", content=json.dumps({"rows": rows}), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert "row 2, column 'job' holds half of a surrogate pair" in answer.json()["error"]["message"]


def test_true_among_numbers_is_what_it_is_alone() -> None:
    rows = RawRows(Schema((Column("age"),)))
    np.testing.assert_array_equal(rows.encoded([{"age": True}, {"age": 3}, {"age": "4"}]), [[1.0], [3.0], [4.0]])


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def test_what_is_wrong_in_an_arrow_stream_is_said_by_row_and_column(served: tuple[httpx.Client, Any]) -> None:
    client, _ = served
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    age = [*map(str, range(299)), "old"]
    wrong = {
        "row 299: 'old' of column 'age' is not a number": _with(table, "age", pa.array(age)),
        "column 'age' is missing (1 in all); give the columns": table.drop(["age"]),
        "column 'job' holds categories of text; give plain numbers, truth values, dates or text": _with(
            table, "job", table.column("job").dictionary_encode()
        ),
        "column 'job' holds lists; give plain": _with(table, "job", pa.array([["a"]] * 300)),
        "column 'job' is there twice": table.append_column("job", table.column("job")),
        "of column 'when' is not a date: the column holds numbers": _with(table, "when", pa.array([1.0] * 300)),
    }
    for words, given in wrong.items():
        answer = post_arrow(client, given)
        assert answer.status_code == 422
        assert words in answer.json()["error"]["message"]
