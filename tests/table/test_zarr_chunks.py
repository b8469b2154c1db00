"""Chunks that are lost, damaged or changed: an error that names them, never fill."""

import json
import os
import pickle
import shutil

import numpy as np
import pytest
import zarr
from table.zarr_stores import WANT, X, chunk_files, foreign, gathered
from zarr.codecs import Crc32cCodec, ZstdCodec

from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    InputChangedError,
    MissingChunkError,
    NonFiniteDataError,
    UncheckedChunksWarning,
)
from streamkernel.table import open_table


def test_every_missing_or_empty_chunk_is_named(store):
    table = open_table(store)
    files = chunk_files(store)
    assert len(files) == 16
    for file in files:
        key = str(file.relative_to(store))
        content = file.read_bytes()
        for damage in (file.unlink, lambda file=file: file.write_bytes(b"")):
            damage()
            for look in (lambda: open_table(store), table.check_unchanged, lambda: gathered(table)):
                with pytest.raises(MissingChunkError, match=key) as caught:
                    look()
                assert caught.value.key == key
        file.write_bytes(content)
    table.check_unchanged()
    np.testing.assert_array_equal(gathered(table), WANT)


def test_every_flipped_or_truncated_chunk_is_named(store):
    table = open_table(store)
    for file in chunk_files(store):
        key = str(file.relative_to(store))
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[len(flipped) // 2] ^= 16
        for damaged in (bytes(flipped), content[:-7], content[:3]):
            stamp = file.stat()
            file.write_bytes(damaged)
            if damaged is not content[:3]:
                os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            with pytest.raises(CorruptChunkError, match=key) as caught:
                gathered(table)
            assert caught.value.key == key
        with pytest.raises(CorruptChunkError, match=key):
            table.check_unchanged()
        file.write_bytes(content)
    table.check_unchanged()


def test_a_chunk_swapped_for_another_valid_one_is_corrupt(store):
    table = open_table(store)
    first, second = chunk_files(store / "X")[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(CorruptChunkError, match="COMPLETE"):
        table.read(0, 5)


@pytest.mark.parametrize("codec", ["crc", "zstd"])
def test_foreign_chunks_with_a_checksum(tmp_path, codec):
    codecs = [Crc32cCodec()] if codec == "crc" else [ZstdCodec(level=1, checksum=True)]
    foreign(tmp_path / "g", x_chunks=(40, 4), compressors=codecs)
    table = open_table(tmp_path / "g")
    file = tmp_path / "g" / "X" / "c" / "2" / "1"
    content = bytearray(file.read_bytes())
    content[-30] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(CorruptChunkError, match="X/c/2/1"):
        table.read(0, 230)
    assert len(table.read(0, 80)) == 80
    with pytest.raises(CorruptChunkError, match="X/c/2/1"):
        table.check_unchanged()


def test_missing_inner_chunk_of_a_shard(tmp_path):
    array = zarr.create_array(
        tmp_path / "a",
        shape=(100, 2),
        shards=(40, 2),
        chunks=(10, 2),
        dtype="i4",
        compressors=[Crc32cCodec()],
        fill_value=0,
    )
    array[:] = 1
    table = open_table(tmp_path / "a")
    array[10:20] = 0  # zarr leaves out what equals the fill value
    with pytest.raises(MissingChunkError, match=r"inner chunk \(1, 0\) of shard c/0/0"):
        table.read(12, 15)
    assert table.read(40, 60).X.sum() == 40
    file = tmp_path / "a" / "c" / "1" / "0"
    file.write_bytes(b"short")
    with pytest.raises(CorruptChunkError, match="shard index"):
        table.read(40, 60)


def vanishing(monkeypatch, target):
    """The file goes between the look before a read and the read."""
    plain = zarr.Array.__getitem__

    def read(self, selection):
        target.unlink(missing_ok=True)
        return plain(self, selection)

    monkeypatch.setattr(zarr.Array, "__getitem__", read)


def test_chunk_that_vanishes_is_not_fill(store):
    table = open_table(store).without_targets()
    chunk_files(store / "X")[1].unlink()
    first, last = table.features.chunk_span(table.features.chunk_rows)
    with pytest.raises(MissingChunkError, match="X/c/1/0") as caught:
        table.read(first, last)
    # Its digest would tell of damage where there is none.
    assert type(caught.value) is MissingChunkError


def test_chunk_of_a_foreign_array_that_vanishes_during_the_read_is_not_fill(tmp_path, monkeypatch):
    """Nothing else tells its rows from rows of zeros, where zarr reads them."""
    codec = ZstdCodec(checksum=True)
    array = zarr.create_array(tmp_path / "a", shape=(90, 2), chunks=(30, 2), dtype="f8", compressors=[codec])
    array[:] = 1.0
    table = open_table(tmp_path / "a")
    vanishing(monkeypatch, tmp_path / "a" / "c" / "1" / "0")
    with pytest.raises(MissingChunkError, match="c/1/0"):
        table.read(30, 60)


@pytest.mark.parametrize("name", ["X", "y"])
def test_metadata_of_another_array_under_the_manifest(store, name):
    """Also where rows could be read with it: what was written is a whole."""
    table, sent = open_table(store), pickle.dumps(open_table(store))
    file = store / name / "zarr.json"
    content = json.loads(file.read_text())
    content["attributes"]["note"] = "edited"
    file.write_text(json.dumps(content))
    with pytest.raises(InputChangedError, match=f"{name}/zarr.json was rewritten"):
        table.check_unchanged()
    with pytest.raises(InputChangedError, match=f"{name}/zarr.json is another one"):
        pickle.loads(sent)
    with pytest.raises(CorruptMetadataError, match="not the file that COMPLETE was written with"):
        open_table(store)


def test_no_checksum_is_warned_of_once(tmp_path):
    foreign(tmp_path / "g", compressors=None)
    with pytest.warns(UncheckedChunksWarning, match="checksum") as caught:
        table = open_table(tmp_path / "g")
    assert len(caught) == 2  # X and y
    open_table(tmp_path / "g")  # and not again: warnings are errors here
    pickle.loads(pickle.dumps(table))


def test_nan_in_a_chunk_is_named(tmp_path):
    group = foreign(tmp_path / "g")
    group["X"][101, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"row 101, column 'x2', in chunk X/c/2/0 of .*g"):
        open_table(tmp_path / "g").read(0, 230)


def test_resized_or_rewritten_input_is_noticed(tmp_path):
    group = foreign(tmp_path / "g")
    table = open_table(tmp_path / "g")
    table.check_unchanged()
    group["X"][0:40] = X[0:40] + 1
    with pytest.raises(InputChangedError, match=r"X/c/0/0.*rewritten"):
        table.check_unchanged()
    table = open_table(tmp_path / "g")
    group["y"].resize((231,))
    with pytest.raises(InputChangedError, match=r"y/zarr\.json"):
        table.check_unchanged()
    shutil.rmtree(tmp_path / "g")
    with pytest.raises(InputChangedError, match="no longer there"):
        table.check_unchanged()


def test_touched_but_equal_chunks_of_an_ingested_store_are_unchanged(store):
    table = open_table(store)
    for file in chunk_files(store):
        os.utime(file)
    table.check_unchanged()
