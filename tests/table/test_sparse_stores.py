"""Sparse rows on disk: CSR in chunks, from libsvm text or SciPy's matrices, read back as the same rows."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose
from sparse_rows import sparse_rows

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    SourceFormatError,
    StoreError,
)
from streamkernel.pairs import as_csr
from streamkernel.table import ColumnStatistics, open_table
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.writers import sparse_writer as writer


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(writer, "_ENTRIES", 150)
    monkeypatch.setattr(writer, "_POINTERS", 64)


def stored(tmp_path, X, y=None, name="rows.zarr", weights=None, **options):
    table = open_table(X, y, weights=weights, sparse=True)
    return ingest(table, tmp_path / name, **{"dtype": "float64", **options})


@pytest.mark.parametrize(("m", "chunk_rows"), [(300, None), (20, 1), (100, 7), (300, 64), (300, 500)])
def test_rows_come_back(tmp_path, m, chunk_rows):
    X, y = sparse_rows(m, 40, 3.0), np.arange(float(m))
    info = stored(tmp_path, X, y, chunk_rows=chunk_rows)
    assert (info.rows, info.features, info.entries, info.checksummed, info.ingested) == (m, 40, X.nnz, True, True)
    table = open_table(tmp_path / "rows.zarr", sparse=True)
    for copy in (table, pickle.loads(pickle.dumps(table))):
        for rows in (13, m):
            blocks = list(copy.blocks(0, m, rows))
            found = np.concatenate([as_csr(block.X, 40).toarray() for block in blocks])
            assert (found == X.toarray()).all()
            assert (np.concatenate([block.Y[:, 0] for block in blocks]) == y).all()
    wanted = ColumnStatistics.of(X.toarray())
    assert_allclose(table.statistics.X.std, wanted.std, rtol=1e-10)
    assert_allclose(table.statistics.X.minimum, wanted.minimum)
    assert table.statistics.y.mean[0] == y.mean()
    table.check_unchanged()
    group = zarr.open_group(tmp_path / "rows.zarr", mode="r")
    assert group.attrs["version"] == 4
    assert (np.asarray(group["indptr"]) == X.indptr).all()
    assert (np.asarray(group["indices"]) == X.indices).all()
    assert (np.asarray(group["data"]) == X.data).all()


def test_a_fit_does_not_depend_on_the_place_and_the_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_ENTRIES", 5000)
    monkeypatch.setattr(writer, "_POINTERS", 1000)
    X = sparse_rows(2300, 40, 3.0)
    y = np.asarray(X.sum(axis=1)) + np.random.default_rng(0).standard_normal(2300)
    memory, dense = KernelRidge(30).fit(X, y), KernelRidge(30, kernel="gaussian", metric="none").fit(X.toarray(), y)
    for chunk_rows in (300, 1024):
        stored(tmp_path, X, y, f"{chunk_rows}.zarr", chunk_rows=chunk_rows)
        model = KernelRidge(30).fit(tmp_path / f"{chunk_rows}.zarr")
        assert model.component_indices_.tolist() == memory.component_indices_.tolist()
        assert model.component_indices_.tolist() == dense.component_indices_.tolist()
        assert_allclose(
            np.asarray(model.predict(tmp_path / f"{chunk_rows}.zarr")), dense.predict(X.toarray()), atol=1e-8
        )
        assert model.score(tmp_path / f"{chunk_rows}.zarr") == pytest.approx(dense.score(X.toarray(), y))


def test_labels_weights_and_a_random_order(tmp_path):
    X = sparse_rows(200, 30, 3.0)
    labels, w = np.array(["b", "a", "c"])[np.arange(200) % 3], np.arange(200.0)
    table = open_table(X, labels, classify=True, weights=w, sparse=True)
    ingest(table, tmp_path / "rows.zarr", shuffle=True, seed=3, dtype="float64", chunk_rows=64)
    found = open_table(tmp_path / "rows.zarr", sparse=True)
    assert found.classes.tolist() == ["a", "b", "c"]
    block = found.read(0, 200)
    order = block.weights.astype(int)
    assert sorted(order) == list(range(200)) != order.tolist()
    assert (as_csr(block.X, 30).toarray() == X.toarray()[order]).all()
    names = found.classes[block.Y.argmax(axis=1)]
    assert (names == labels[order]).all()
    assert_allclose(found.statistics.X.mean, np.average(X.toarray(), axis=0, weights=w), rtol=1e-10)
    KernelRidgeClassifier(10, alpha=0.1).fit(tmp_path / "rows.zarr")


def test_a_store_is_copied_made_dense_and_appended_to_a_dense_one(tmp_path):
    X, y = sparse_rows(50, 12, 3.0), np.arange(50.0)
    stored(tmp_path, X, y)
    assert ingest(tmp_path / "rows.zarr", tmp_path / "copy.zarr", dtype="float64").entries == X.nnz
    for source, name in ((tmp_path / "rows.zarr", "a.zarr"), (open_table(X, y, sparse=True), "b.zarr")):
        assert ingest(source, tmp_path / name, sparse=False, dtype="float64").entries is None
        append_rows(source, tmp_path / name)
        found = open_table(tmp_path / name).read(0, 100)
        assert (np.concatenate([X.toarray()] * 2) == found.X).all()
        assert (found.Y[:, 0] == np.concatenate([y, y])).all()


def test_text_that_would_stay_sparse_is_appended_to_a_dense_table(tmp_path):
    source = svm(tmp_path, "1 1:2 1500:4\n-1 2:0.5\n")
    ingest(source, tmp_path / "dense.zarr", sparse=False)
    assert append_rows(source, tmp_path / "dense.zarr").rows == 4
    found = open_table(tmp_path / "dense.zarr").read(0, 4).X
    assert (found[:2] == found[2:]).all()
    assert found[2, 1499] == 4.0


def test_values_beyond_the_dtype_are_refused(tmp_path):
    X = sparse_rows(20, 10, 3.0)
    X.data[3] = 1e100
    with pytest.raises(NumericRangeError, match=r"row \d+, column 'x\d'.*float64"):
        stored(tmp_path, X, dtype="float32")
    X.data[3] = np.inf
    with pytest.raises(NonFiniteDataError, match=r"column 'x\d'"):
        stored(tmp_path, X)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_a_damaged_chunk_is_named(tmp_path, name):
    stored(tmp_path, sparse_rows(300, 40, 3.0))
    chunk = sorted((tmp_path / "rows.zarr" / name / "c").iterdir())[1]
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(bytes(content))
    with pytest.raises(CorruptChunkError, match=name):
        list(open_table(tmp_path / "rows.zarr", sparse=True).blocks(0, 300, 50))
    chunk.unlink()
    with pytest.raises(StoreError, match=name):
        list(open_table(tmp_path / "rows.zarr", sparse=True).blocks(0, 300, 50))


def test_a_store_that_is_incomplete_or_of_another_version_is_refused(tmp_path):
    stored(tmp_path, sparse_rows(30, 10, 3.0))
    path = tmp_path / "rows.zarr" / "zarr.json"
    before = path.read_text()
    config = json.loads(before)
    config["attributes"]["sparse"]["most_entries"] = 1
    path.write_text(json.dumps(config))
    with pytest.raises(CorruptMetadataError):
        open_table(tmp_path / "rows.zarr", sparse=True)
    config["attributes"]["version"] = 99
    path.write_text(json.dumps(config))
    with pytest.raises(CorruptMetadataError, match="99"):
        open_table(tmp_path / "rows.zarr", sparse=True)
    path.write_text(before)
    (tmp_path / "rows.zarr" / "COMPLETE").unlink()
    with pytest.raises(IncompleteStoreError):
        open_table(tmp_path / "rows.zarr", sparse=True)


def test_what_sparse_stores_cannot_do_is_refused(tmp_path):
    X = sparse_rows(30, 10, 3.0)
    stored(tmp_path, X)
    with pytest.raises(ParameterError, match="sparse"):
        open_table(tmp_path / "rows.zarr")
    with pytest.raises(ParameterError, match="sparse"):
        append_rows(np.zeros((3, 10)), tmp_path / "rows.zarr")
    with pytest.raises(ParameterError, match="sparse"):
        stored(tmp_path, X, name="other.zarr", target="x3")
    with pytest.raises(ParameterError, match="sparse"):
        ingest(X.toarray(), tmp_path / "other.zarr", sparse=True)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    for options in ({"sparse": True}, {"columns": 5}):
        with pytest.raises(ParameterError, match=r"libsvm text, and .*a\.csv"):
            ingest(tmp_path / "a.csv", tmp_path / "other.zarr", **options)


def svm(tmp_path, text, name="s.svm"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 1:2 3:4\n-1 2:0.5\n", [[2, 0, 4], [0, 0.5, 0]]),
        ("1 0:2 3:4\n-1 2:0.5\n", [[2, 0, 0, 4], [0, 0, 0.5, 0]]),  # counts from 0
        ("# what it is\n1 1:2 # a remark\n\n-1\n", [[2], [0]]),  # an empty row
        ("1 qid:7 1:2\n-1 qid:7 2:1\n", [[2, 0], [0, 1]]),
        ("1 1:0 2:3\n-1 2:-0\n", [[0, 3], [0, 0]]),  # zeros that are written
        ("-1\n1 5:1e2\n", [[0, 0, 0, 0, 0], [0, 0, 0, 0, 100]]),
    ],
)
def test_libsvm_text(tmp_path, text, rows, sparse):
    info = ingest(svm(tmp_path, text), tmp_path / "rows.zarr", sparse=sparse)
    assert (info.entries is not None) == sparse
    table = open_table(tmp_path / "rows.zarr", sparse=True)
    assert table.columns == tuple(f"x{j}" for j in range(len(rows[0])))
    assert table.as_sparse(False).read(0, len(rows)).X.tolist() == rows
    assert set(np.abs(table.read(0, len(rows)).Y[:, 0])) == {1.0}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("1 1:2\n1 3:1 2:1\n", "s.svm:2:7", "does not rise"),
        ("1 1:2\n1 3:1 3:1\n", "s.svm:2:7", "does not rise"),
        ("1 1:2\n1 2:x\n", "s.svm:2:3", "index:value"),
        ("1 1:2\n1 -1:1\n", "s.svm:2:3", "index:value"),
        ("1 1:2\n1 2:1 99999999999:1\n", "s.svm:2:7", "beyond"),
    ],
)
def test_faults_of_libsvm_text_are_named(tmp_path, text, place, words, sparse):
    with pytest.raises(SourceFormatError, match=words) as error:
        ingest(svm(tmp_path, text), tmp_path / "rows.zarr", sparse=sparse)
    assert place in str(error.value)
    assert not (tmp_path / "rows.zarr").exists()


@pytest.mark.parametrize("sparse", [True, False])
def test_the_number_of_columns_may_be_given(tmp_path, sparse):
    source = svm(tmp_path, "1 1:2 3:4\n-1 2:0.5\n")
    assert ingest(source, tmp_path / "wide.zarr", columns=7, sparse=sparse).features == 7
    with pytest.raises(SourceFormatError, match=r"s\.svm:1:7: index 3 is beyond 2.*columns"):
        ingest(source, tmp_path / "narrow.zarr", columns=2, sparse=sparse)
    assert ingest(svm(tmp_path, "1 0:2\n"), tmp_path / "zero.zarr", columns=3, sparse=sparse).features == 3
    for wrong in (0, 2.5, True, 2**31):
        with pytest.raises(ParameterError, match="columns"):
            ingest(source, tmp_path / "wrong.zarr", columns=wrong)
    with pytest.raises(ParameterError, match="sparse"):
        ingest(source, tmp_path / "wrong.zarr", sparse="yes")


def test_rows_stay_sparse_where_that_takes_less_memory(tmp_path):
    def entries(name, columns, each):
        rng = np.random.default_rng(0)
        lines = [" ".join(f"{j}:1" for j in np.sort(rng.choice(columns, n, replace=False)) + 1) for n in each]
        source = svm(tmp_path, "".join(f"1 {line}\n" for line in lines), f"{name}.svm")
        return ingest(source, tmp_path / f"{name}.zarr", columns=columns).entries

    assert entries("wide", 1001, [3] * 20) == 60
    assert entries("narrow", 1000, [3] * 20) is None
    assert entries("full", 1001, [60] * 20) is None
    assert entries("half", 1001, [3] * 20 + [300]) is None  # a row of many entries: each would have room for as many


def test_a_stored_value_of_float32_is_that_of_the_dense_table(tmp_path):
    source = svm(tmp_path, "1 1:0.1 3:4\n-1 2:0.3\n")
    for sparse in (True, False):
        ingest(source, tmp_path / f"{sparse}.zarr", sparse=sparse)
    found = [open_table(tmp_path / f"{name}.zarr", sparse=True).as_sparse(False).read(0, 2).X for name in (True, False)]
    assert (found[0] == found[1]).all()
