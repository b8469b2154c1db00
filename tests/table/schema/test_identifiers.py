"""UUIDs, as text, as Python's objects and as Arrow's type, are text: ids, labels and categories, and never numbers."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamkernel import ingest, open_table, suggest_schema
from streamkernel.cli.wording import in_flags
from streamkernel.errors import StreamKernelError
from streamkernel.table._row_ids import as_texts
from streamkernel.table.rows import RowReader
from streamkernel.table.schema.arrow_types import plain_batch
from streamkernel.table.schema.values import is_identifier

KEYS = [uuid.UUID(int=(i << 64) + 7) for i in range(12)]
KINDS = ["csv", "parquet of text", "pandas", "pandas with a gap of text", "parquet of uuid", "arrow of uuid"]


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Rows with a column `key` of UUIDs."""
    numbers = {"a": np.arange(12.0), "y": np.arange(12.0) % 5}
    frame = pd.DataFrame({"key": KEYS, **numbers})
    kind = request.param
    if kind == "pandas":
        return frame
    if kind == "pandas with a gap of text":
        return frame.assign(key=[str(KEYS[0]), *KEYS[1:]])
    if "uuid" in kind:
        if not hasattr(pa, "uuid"):
            pytest.skip("this Arrow has no type of UUIDs")
        rows = pa.table({"key": pa.array([key.bytes for key in KEYS], pa.uuid()), **numbers})
        if kind.startswith("arrow"):
            return rows
        pq.write_table(rows, tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"
    frame["key"] = frame["key"].astype(str)
    if kind == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path / "rows.csv"
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    return tmp_path / "rows.parquet"


def test_numbers_are_refused_with_the_way_out_which_works(source: Any, tmp_path: Path) -> None:
    with pytest.raises(StreamKernelError) as caught:
        ingest(source, tmp_path / "s", target="y")
    told = caught.value.worded(in_flags)
    assert "column 'key'" in told
    assert "--id" in told
    assert "--drop" in told
    assert ingest(source, tmp_path / "dropped", target="y", drop=["key"]).columns == ("a",)
    assert ingest(source, tmp_path / "s", target="y", id="key").columns == ("a",)
    assert as_texts(RowReader(open_table(tmp_path / "s").ids).read(0, 12)) == list(map(str, KEYS))


def test_they_are_text_of_any_use(source: Any, tmp_path: Path) -> None:
    assert suggest_schema(source, target="y")["key"].role == "id"
    features = ingest(source, tmp_path / "one", target="y", categories=["key"]).columns
    assert features == (*(f"key={key}" for key in KEYS), "a")
    ingest(source, tmp_path / "labels", target="key", drop=["y"])
    assert open_table(tmp_path / "labels").targets.classes.tolist() == list(map(str, KEYS))


def test_a_schema_that_says_number_is_told_of_the_identifier(source: Any, tmp_path: Path) -> None:
    with pytest.raises(StreamKernelError, match=r"'00000000-.*column 'key' .* an identifier.*id='key'.*drop=\['key'\]"):
        ingest(source, tmp_path / "s", schema=[{"name": "key"}, {"name": "a"}])


@pytest.mark.parametrize("text", [str(KEYS[3]), str(KEYS[3]).upper(), f"{{{KEYS[3]}}}", f" {KEYS[3]} "])
def test_identifiers(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize("text", [KEYS[3].hex, str(KEYS[3])[:-1], "1-2-3", "", None, 7.0])
def test_no_identifiers(text: object) -> None:
    assert not is_identifier(text)


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this Arrow has no type of UUIDs")
def test_gaps_and_other_columns_stay() -> None:
    keys = pa.array([KEYS[0].bytes, None], pa.uuid())
    plain = plain_batch(pa.record_batch({"key": keys, "a": pa.array([1, 2])}))
    assert plain.to_pydict() == {"key": [str(KEYS[0]), None], "a": [1, 2]}
    same = pa.record_batch({"a": pa.array([1, 2])})
    assert plain_batch(same) is same
