"""What is written for every row (predictions, factors) is read back as rows, and held against its manifest."""

import os
import pickle

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    InputChangedError,
    ParameterError,
)
from streamkernel.store import Bundle, RowSink, write_bundle
from streamkernel.table import open_table, table_info
from streamkernel.table.ingest import ingest

RNG = np.random.default_rng(0)
G = RNG.standard_normal((100, 3))
F = RNG.standard_normal(100)


def written(path, **arrays):
    columns = {name: (None if values.ndim == 1 else values.shape[1], values.dtype) for name, values in arrays.items()}
    sink = RowSink.create(path, 100, columns, 16)
    sink.finish({k: d for name, values in arrays.items() for k, d in sink.write(name, 0, values).items()})
    return path


@pytest.fixture
def factor(tmp_path):
    return written(tmp_path / "factor", G=G)


@pytest.fixture
def predictions(tmp_path):
    return written(tmp_path / "predictions", prediction=F)


def test_outputs_open_as_rows_and_as_targets(factor, predictions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for X, y in [
        (factor, predictions),
        (factor / "G", predictions / "prediction"),
        ("factor/G", "predictions/prediction"),
        (zarr.open_group(factor, mode="r"), zarr.open_group(predictions, mode="r")),
        (zarr.open_group(factor, mode="r")["G"], zarr.open_group(predictions, mode="r")["prediction"]),
        (zarr.open_array(factor / "G", mode="r"), zarr.open_array(predictions / "prediction", mode="r")),
    ]:
        table = open_table(X, y)
        for same in (table, pickle.loads(pickle.dumps(table))):
            block = same.read(0, 100)
            np.testing.assert_array_equal(block.X, G)
            np.testing.assert_array_equal(block.Y[:, 0], F)
            assert same.chunk_rows == 16
        assert table.fingerprint == open_table(factor, predictions).fingerprint
    assert table_info(factor)["features"] == 3


def swap(folder):
    """Two chunks exchanged: each passes its own checksum."""
    first, second = sorted(file for file in folder.rglob("c/**/*") if file.is_file())[:2]
    os.rename(first, folder / "aside")
    os.rename(second, first)
    os.rename(folder / "aside", second)


def test_digests_are_compared(factor, predictions, tmp_path):
    tables = [open_table(factor, predictions), open_table(factor / "G", predictions / "prediction")]
    swap(factor / "G")
    for table in tables:
        with pytest.raises(CorruptChunkError, match=r"G/c/0/0 .*COMPLETE"):
            table.read(0, 5)
        with pytest.raises(CorruptChunkError, match=r"G/c/0/0"):
            table.check_unchanged()
    swap(factor / "G")
    swap(predictions / "prediction")
    for table in tables:
        with pytest.raises(CorruptChunkError, match=r"prediction/c/0 .*COMPLETE"):
            table.read(0, 5)
    swap(predictions / "prediction")
    for table in tables:
        table.check_unchanged()
    # The arrays of an ingested table, given alone, have the same protection.
    ingest(G, tmp_path / "table", chunk_rows=16)
    alone = open_table(tmp_path / "table" / "X")
    swap(tmp_path / "table" / "X")
    with pytest.raises(CorruptChunkError, match="COMPLETE"):
        alone.read(0, 5)


@pytest.mark.parametrize("alone", [False, True])
def test_outputs_without_or_with_another_manifest(factor, alone):
    path = factor / "G" if alone else factor
    table = open_table(path)
    manifest = factor / "COMPLETE"
    text = manifest.read_text()
    manifest.unlink()
    with pytest.raises(IncompleteStoreError, match="did not finish; write it again"):
        open_table(path)
    manifest.write_text(text[:50])
    with pytest.raises(CorruptMetadataError, match="COMPLETE"):
        open_table(path)
    manifest.write_text(text.replace('"<f8"', '"<f4"'))
    with pytest.raises(CorruptMetadataError, match="describes G as"):
        open_table(path)
    with pytest.raises(InputChangedError, match="COMPLETE manifest is another one"):
        table.check_unchanged()
    manifest.write_text(text)
    (factor / "zarr.json").write_text((factor / "zarr.json").read_text() + " ")
    with pytest.raises(CorruptMetadataError, match=r"zarr\.json is not the file that COMPLETE was written with"):
        open_table(path)


def test_outputs_that_are_no_table(predictions, tmp_path):
    with pytest.raises(ParameterError, match=r"one value a row \(prediction\), not a table; it can be y"):
        open_table(predictions)
    several = written(tmp_path / "several", a=G, b=F)
    with pytest.raises(ParameterError, match=r"2 arrays; give the path of one: .*several/a, .*several/b"):
        open_table(several)
    np.testing.assert_array_equal(open_table(several / "a", several / "b").read(0, 100).X, G)


def test_arrays_in_other_groups_are_read_as_they_are(tmp_path):
    write_bundle(tmp_path / "model", Bundle("model", 1, {}, {"components": G}))
    np.testing.assert_array_equal(open_table(tmp_path / "model" / "components").read(0, 100).X, G)
    store = LocalStore(tmp_path / "nested")
    zarr.create_group(store)
    array = zarr.create_array(store, name="a/b/X", data=G, chunks=(30, 3), compressors=[zarr.codecs.Crc32cCodec()])
    np.testing.assert_array_equal(open_table(array).read(0, 100).X, G)
