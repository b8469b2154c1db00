"""Rows that were appended before: refused, left alone or appended once more, as the caller says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import zarr

from streamkernel.atomic import text_digest
from streamkernel.errors import DataError, ParameterError
from streamkernel.table import open_table
from streamkernel.table.ingest import _appended, append_rows, ingest

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 3)), RNG.standard_normal(40)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ingest(open_table(X[:20], Y[:20]), tmp_path / "rows.zarr", chunk_rows=8)
    return tmp_path / "rows.zarr"


def batch(first: int, last: int) -> object:
    return open_table(X[first:last], Y[first:last])


def test_a_repeated_append_is_refused_and_changes_nothing(store: Path) -> None:
    assert append_rows(batch(20, 30), store).appended == 10
    fingerprint = open_table(store).fingerprint
    with pytest.raises(DataError, match=r"are rows 20:30 of .*rows\.zarr: nothing was appended; give repeated='skip'"):
        append_rows(batch(20, 30), store)
    assert (open_table(store).n_rows, open_table(store).fingerprint) == (30, fingerprint)
    assert [each.name for each in store.parent.iterdir()] == ["rows.zarr"]


def test_skip_leaves_the_table_and_says_so(store: Path) -> None:
    append_rows(batch(20, 30), store)
    info = append_rows(batch(20, 30), store, repeated="skip")
    assert (info.appended, info.rows) == (0, 30)
    # What is not there is appended, whatever is said of repeated rows.
    assert append_rows(batch(30, 40), store, repeated="skip").appended == 10
    np.testing.assert_array_equal(open_table(store).read(0, 40).X, X.astype(np.float32))


def test_append_has_the_rows_once_more_and_the_latest_place_is_named(store: Path) -> None:
    append_rows(batch(20, 30), store)
    assert append_rows(batch(20, 30), store, repeated="append").rows == 40
    with pytest.raises(DataError, match="rows 30:40"):
        append_rows(batch(20, 30), store)


def test_a_loop_over_files_may_begin_anew(store: Path) -> None:
    """Every earlier append is known, not the last one alone."""
    for _ in range(2):
        for first in range(20, 40, 5):
            append_rows(batch(first, first + 5), store, repeated="skip")
    np.testing.assert_array_equal(open_table(store).read(0, 40).X, X.astype(np.float32))


@pytest.mark.parametrize("change", ["a value", "a target", "the order", "one row less"])
def test_other_rows_are_other_rows(store: Path, change: str) -> None:
    rows, targets = X[20:30].copy(), Y[20:30].copy()
    append_rows(open_table(rows.copy(), targets.copy()), store)
    if change == "a value":
        rows[9, 2] += 1e-3
    elif change == "a target":
        targets[0] += 1e-9
    elif change == "the order":
        rows, targets = rows[::-1].copy(), targets[::-1].copy()
    else:
        rows, targets = rows[:-1], targets[:-1]
    assert append_rows(open_table(rows, targets), store).appended == len(rows)


def test_rows_of_the_first_ingest_are_no_append(store: Path) -> None:
    assert append_rows(batch(0, 20), store).appended == 20


def test_weights_and_ids_are_of_the_rows(tmp_path: Path) -> None:
    def frame(weight: float, key: str) -> pa.Table:
        return pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0], "n": [1.0, weight], "key": ["p", key]})

    def names(kind: str) -> dict[str, str]:
        return {"weight": "n"} if kind == "w" else {"id": "key"}

    for kind, others in {"w": [(3.0, "q"), (4.0, "q")], "id": [(3.0, "q"), (3.0, "r")]}.items():
        left = "key" if kind == "w" else "n"
        first, *more = (frame(*each).drop_columns([left]) for each in [(2.0, "o"), *others])
        ingest(first, tmp_path / kind, target="y", **names(kind))
        for rows in more:
            assert append_rows(rows, tmp_path / kind).appended == 2
        with pytest.raises(DataError, match="appended before"):
            append_rows(more[0], tmp_path / kind)


def test_the_same_rows_from_another_kind_of_file(tmp_path: Path) -> None:
    """Labels count by their codes in the table, and the cut into batches does not count."""
    kinds = np.array(["ant", "bee", "cow"])[RNG.integers(0, 3, 5000)]
    rows = pa.table({"a": np.arange(5000.0), "kind": kinds})
    pa.csv.write_csv(rows, tmp_path / "rows.csv")
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=700)
    ingest(tmp_path / "rows.csv", tmp_path / "t", target="kind")
    append_rows(tmp_path / "rows.csv", tmp_path / "t")
    assert append_rows(tmp_path / "rows.parquet", tmp_path / "t", repeated="skip").appended == 0


def test_sparse_rows_are_known_by_their_entries(tmp_path: Path) -> None:
    rows = scipy.sparse.random_array((30, 50), density=0.1, format="csr", random_state=0)
    ingest(open_table(rows[:10], sparse=True), tmp_path / "t")
    append_rows(open_table(rows[10:], sparse=True), tmp_path / "t")
    stored = scipy.sparse.csr_array(rows[10:])
    stored.data[0] = 0.0  # an entry that is 0 is none
    assert append_rows(open_table(stored, sparse=True), tmp_path / "t").appended == 20
    without = stored.copy()
    without.eliminate_zeros()
    assert append_rows(open_table(without, sparse=True), tmp_path / "t", repeated="skip").appended == 0


def test_appends_of_earlier_releases_are_not_known_and_do_no_harm(store: Path) -> None:
    old = store.with_name("old.zarr")
    ingest(batch(0, 30), old, chunk_rows=8)
    described = json.loads((old / "zarr.json").read_text(encoding="utf-8"))
    described["attributes"]["appended"] = {"times": 1, "rows": 10}
    content = json.dumps(described)
    manifest = json.loads((old / "COMPLETE").read_text(encoding="utf-8"))
    manifest["metadata"][""] = text_digest(content)
    (old / "zarr.json").write_text(content, encoding="utf-8")
    (old / "COMPLETE").write_text(json.dumps(manifest), encoding="utf-8")
    assert append_rows(batch(20, 30), old).rows == 40
    assert zarr.open_group(old, mode="r").attrs["appended"]["times"] == 2
    with pytest.raises(DataError, match="rows 30:40"):
        append_rows(batch(20, 30), old)


def test_an_append_that_was_skipped_leaves_no_trace(store: Path) -> None:
    other = store.with_name("other.zarr")
    ingest(batch(0, 20), other, chunk_rows=8)
    for place, policies in {store: ["refuse"], other: ["refuse", "skip"]}.items():
        for policy in policies:
            append_rows(batch(20, 30), place, repeated=policy)
        append_rows(batch(30, 40), place)
    assert (store / "zarr.json").read_bytes() == (other / "zarr.json").read_bytes()
    assert (store / "COMPLETE").read_bytes() == (other / "COMPLETE").read_bytes()


def test_a_policy_that_there_is_not(store: Path) -> None:
    with pytest.raises(ParameterError, match="repeated must be one of refuse, skip, append, not 'twice'"):
        append_rows(batch(20, 30), store, repeated="twice")


def test_the_oldest_appends_are_forgotten(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata does not grow without end; the numbers of appends and rows are those of all."""
    monkeypatch.setattr(_appended, "_KNOWN", 2)
    for first in range(20, 32, 4):
        append_rows(batch(first, first + 4), store)
    appended = json.loads((store / "zarr.json").read_text())["attributes"]["appended"]
    assert [entry[:2] for entry in appended["batches"]] == [[24, 4], [28, 4]]
    assert (appended["times"], appended["rows"]) == (3, 12)
    with pytest.raises(DataError, match="rows 24:28"):
        append_rows(batch(24, 28), store)
    assert append_rows(batch(20, 24), store).rows == 36
