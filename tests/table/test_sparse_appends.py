"""Rows appended to a table of sparse rows: what one ingest of all would have made; readers keep what they opened."""

from __future__ import annotations

import json
import os
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sparse_rows import sparse_rows

from streamkernel import KernelRidge
from streamkernel.errors import CorruptChunkError, ParameterError, ShapeMismatchError, SourceFormatError
from streamkernel.pairs import as_csr
from streamkernel.table import Table, open_table
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.writers import sparse_writer as writer

M, D = 160, 30
X = sparse_rows(M, D, 3.0)  # the last row is full, the others have few entries
Y = np.arange(float(M))
W = np.random.default_rng(0).choice([0.0, 0.5, 2.0], M)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_ENTRIES", 110)
    monkeypatch.setattr(writer, "_POINTERS", 40)


def part(start: int, stop: int, **columns: Any) -> Table:
    return open_table(X[start:stop], **{name: rows[start:stop] for name, rows in columns.items()}, sparse=True)


def grown(path: Path, ends: tuple[int, ...], chunk_rows: int, **columns: Any) -> Path:
    """Rows up to each of `ends`, the first ingested, the others appended."""
    ingest(part(0, ends[0], **columns), path, chunk_rows=chunk_rows, dtype="float64")
    for start, stop in pairwise(ends):
        assert append_rows(part(start, stop, **columns), path).rows == stop
    return path


def dense_of(table: Table) -> np.ndarray[Any, Any]:
    return as_csr(table.read(table.start, table.stop).X, D).toarray()


def manifest_of(path: Path) -> Any:
    return json.loads((path / "COMPLETE").read_text(encoding="utf-8"))


@given(
    cuts=st.lists(st.integers(1, M - 1), max_size=3, unique=True),
    chunk_rows=st.sampled_from([7, 32, 160, 500]),
    weighted=st.booleans(),
    targets=st.booleans(),
)
@settings(max_examples=4)
def test_any_split_is_one_ingest(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], chunk_rows: int, weighted: bool, targets: bool
) -> None:
    folder = tmp_path_factory.mktemp("append")
    columns = ({"y": Y} if targets else {}) | ({"weights": W} if weighted else {})
    store = grown(folder / "store", (*sorted(cuts), M), chunk_rows, **columns)
    ingest(part(0, M, **columns), folder / "whole", chunk_rows=chunk_rows, dtype="float64")
    ours, theirs = manifest_of(store)["arrays"], manifest_of(folder / "whole")["arrays"]
    if targets or weighted or not cuts:  # with neither, nothing says of how many rows the chunks once were
        assert {name: ours[name] for name in ours if name != "statistics"} == {
            name: theirs[name] for name in theirs if name != "statistics"
        }
    one, other = open_table(store, sparse=True), open_table(folder / "whole", sparse=True)
    assert (dense_of(one) == X.toarray()).all()
    assert one.features.most == other.features.most == D  # type: ignore[attr-defined]
    for part_of in ("X", "y") if targets else ("X",):
        found, wanted = (getattr(each.statistics, part_of) for each in (one, other))
        assert found.count == wanted.count == M
        assert found.weight == pytest.approx(wanted.weight)
        for name in ("mean", "std", "minimum", "maximum"):
            assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-12)
    if targets:
        assert (np.concatenate([block.Y[:, 0] for block in one.blocks(0, M, 9) if block.Y is not None]) == Y).all()
    assert sorted(os.listdir(folder)) == ["store", "whole"], "no generation is left behind"
    attributes = zarr.open_group(store, mode="r").attrs
    assert (attributes["version"], attributes.get("appended", {"times": 0})["times"]) == (5 if cuts else 4, len(cuts))
    # A table that grew is read like any other: by an ingest of it, too.
    assert ingest(store, folder / "copy", dtype="float64").entries == X.nnz


def test_a_reader_goes_on_with_the_rows_that_it_opened(tmp_path: Path) -> None:
    store = grown(tmp_path / "store", (75,), 32, y=Y)
    before = open_table(store, sparse=True)
    sent, fingerprint = pickle.dumps(before), before.fingerprint
    blocks = before.blocks(0, 75, 10)
    next(blocks)
    for start, stop in ((75, 80), (80, 128), (128, M)):
        append_rows(part(start, stop, y=Y), store)
        for table in (before, pickle.loads(sent)):
            table.check_unchanged()
            assert (table.n_rows, table.fingerprint) == (75, fingerprint)
            assert (dense_of(table) == X[:75].toarray()).all()
            assert (table.read(0, 75).Y[:, 0] == Y[:75]).all()
            table.check_unchanged()
    assert sum(len(block) for block in blocks) >= 60
    again = pickle.loads(pickle.dumps(pickle.loads(sent).slice(30, 70)))
    assert (dense_of(again) == X[30:70].toarray()).all()
    assert (dense_of(open_table(store, sparse=True)) == X.toarray()).all()


def test_full_chunks_are_not_copied(tmp_path: Path) -> None:
    store = grown(tmp_path / "store", (100,), 32, y=Y)
    before = {file: file.stat().st_ino for file in store.rglob("c/*") if file.is_file()}
    append_rows(part(100, M, y=Y), store)
    kept = {file for file, number in before.items() if file.stat().st_ino == number}
    entries = X[:96].nnz  # of the full chunks of rows
    assert {file.relative_to(store).as_posix() for file in kept} == {
        *(f"y/c/{chunk}" for chunk in range(3)),
        *(f"indptr/c/{chunk}" for chunk in range(97 // 40)),
        *(f"{name}/c/{chunk}" for name in ("indices", "data") for chunk in range(entries // 110)),
    }


@pytest.mark.parametrize("key", ["indptr/c/0", "data/c/1", "indices/c/0", "y/c/2"])
def test_damage_is_found_by_readers_of_every_generation(tmp_path: Path, key: str) -> None:
    store = grown(tmp_path / "store", (75,), 32, y=Y)
    before = open_table(store, sparse=True)
    append_rows(part(75, M, y=Y), store)
    bits = bytearray((store / key).read_bytes())
    bits[-6] ^= 1
    (store / key).unlink()
    (store / key).write_bytes(bits)
    for table in (before, open_table(store, sparse=True)):
        with pytest.raises(CorruptChunkError, match=key):
            table.read(0, 75)


def test_a_fuller_row_does_not_make_chunks_of_rows_larger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read with room for the fullest: in smaller chunks than before."""
    monkeypatch.setattr(writer, "_ENTRIES", 1 << 17)
    monkeypatch.setattr(writer, "_POINTERS", 1 << 16)
    wide = scipy.sparse.csr_array((np.ones(1100), np.zeros(1100, int), np.arange(1101)), (1100, 50_000))
    full = scipy.sparse.csr_array(np.ones((1, 50_000)))
    ingest(open_table(wide, np.zeros(1100), sparse=True), tmp_path / "store", chunk_rows=1024)
    append_rows(open_table(full, np.ones(1), sparse=True), tmp_path / "store")
    append_rows(open_table(wide[:100], np.zeros(100), sparse=True), tmp_path / "store")
    table = open_table(tmp_path / "store", sparse=True)
    assert table.n_rows == 1201
    assert table.chunk_rows < 1024 / 8
    assert manifest_of(tmp_path / "store")["arrays"]["y"]["chunk_rows"] == 1024
    block = table.read(1099, 1102)
    assert as_csr(block.X, 50_000).sum(axis=1).tolist() == [1.0, 50_000.0, 1.0]
    assert block.Y is not None
    assert block.Y[:, 0].tolist() == [0.0, 1.0, 0.0]


def test_a_fit_to_a_table_that_grew_and_an_update(tmp_path: Path) -> None:
    y = np.sin(X @ np.arange(D)) + 0.01 * Y
    store = grown(tmp_path / "store", (100,), 32, y=y)
    options = {"kernel": "gaussian", "metric": "none", "alpha": 0.1}
    model = KernelRidge(20, **options).fit(store)
    append_rows(part(100, M, y=y), store)
    model.update(store)
    assert model.last_update_.rows_folded == M - 100
    dense = KernelRidge(20, **options).fit(X[:100].toarray(), y[:100]).update(X.toarray(), y)
    assert_allclose(model.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)
    whole = KernelRidge(20, **options).fit(store)
    assert_allclose(
        whole.predict(X), KernelRidge(20, **options).fit(X.toarray(), y).predict(X.toarray()), rtol=1e-8, atol=1e-8
    )


def svm(folder: Path, text: str, name: str = "s.svm") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("sparse", [True, False])
def test_libsvm_text_has_the_columns_of_the_table(tmp_path: Path, sparse: bool) -> None:
    store = tmp_path / "store"
    ingest(svm(tmp_path, "1 1:2 9:4\n-1 2:0.5\n"), store, sparse=sparse, dtype="float64")
    assert append_rows(svm(tmp_path, "3 2:1\n\n4\n"), store).rows == 4
    wanted = np.zeros((4, 9))
    wanted[0, [0, 8]], wanted[1, 1], wanted[2, 1] = [2, 4], 0.5, 1
    found = open_table(store, sparse=True)
    assert (wanted == found.as_sparse(False).read(0, 4).X).all()
    assert found.sparse == sparse
    with pytest.raises(SourceFormatError, match=r"s\.svm:1:3: index 10 is beyond 9, the last of the columns of the"):
        append_rows(svm(tmp_path, "3 10:1\n"), store)


def test_labels_keep_their_codes(tmp_path: Path) -> None:
    labels = np.array(["b", "a", "c"])[np.arange(M) % 3]
    store = tmp_path / "store"
    ingest(open_table(X[:50], labels[:50], classify=True, sparse=True), store, dtype="float64")
    append_rows(open_table(X[50:], labels[50:], classify=True, sparse=True), store)
    found = open_table(store, sparse=True)
    assert found.classes is not None
    assert (found.classes[found.read(0, M).Y.argmax(axis=1)] == labels).all()


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    store = grown(tmp_path / "store", (75,), 32, y=Y)
    (tmp_path / "rows.csv").write_text("x0,x1,y\n1,2,3\n")
    before, names = open_table(store, sparse=True).fingerprint, sorted(os.listdir(tmp_path))
    for source in (X[:5].toarray(), tmp_path / "rows.csv", open_table(X[:5].toarray(), Y[:5])):
        with pytest.raises(ParameterError, match=r"rows of the table are sparse.*dense; give libsvm text, or sparse"):
            append_rows(source, store)
    narrow = open_table(X[:5, :9], Y[:5], sparse=True)
    for rows, words in ((part(0, 5), "have the target"), (narrow, "30 columns")):
        with pytest.raises(ShapeMismatchError, match=words):
            append_rows(rows, store)
    with pytest.raises(ParameterError, match="weights"):
        append_rows(part(75, 80, y=Y, weights=W), store)
    assert open_table(store, sparse=True).fingerprint == before
    assert sorted(os.listdir(tmp_path)) == names
