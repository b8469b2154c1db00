"""Zarr stores, whole: the right rows, however they are cut, given and sent."""

import json
import pickle
import shutil
import threading
import time

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from strategies import few_examples
from table.zarr_stores import CRC, WANT, X, Y, foreign, gathered
from zarr.storage import MemoryStore, ZipStore

from streamkernel.errors import (
    InputChangedError,
    MissingChunkError,
    UncheckedChunksWarning,
)
from streamkernel.table import open_table, table_info
from streamkernel.table.ingest import ingest


@few_examples(0.3)
@given(st.data())
def test_any_chunking_reads_the_same_rows(tmp_path, data):
    x_chunks = (data.draw(st.integers(1, 240)), data.draw(st.integers(1, 6)))
    y_chunks = (data.draw(st.integers(1, 240)),)
    options = {"shards": (data.draw(st.integers(1, 3)),) * 2} if data.draw(st.booleans()) else {}
    path = tmp_path / str(time.monotonic_ns())
    foreign(path, x_chunks, y_chunks, **options)
    start = data.draw(st.integers(0, 229))
    stop = data.draw(st.integers(start + 1, 230))
    table = open_table(path, rows=(start, stop))
    table.check_unchanged()
    np.testing.assert_array_equal(gathered(table, data.draw(st.integers(1, 240))), WANT[start:stop])
    shutil.rmtree(path)


def test_kinds_of_zarr_input(tmp_path):
    group = foreign(tmp_path / "g")
    for table in (
        open_table(str(tmp_path / "g")),
        open_table(group),
        open_table(group["X"], group["y"]),
        open_table(tmp_path / "g" / "X", tmp_path / "g" / "y"),
        open_table(group["X"], Y),
        open_table(f"file://{tmp_path / 'g'}"),
    ):
        np.testing.assert_array_equal(gathered(table), WANT)
        np.testing.assert_array_equal(gathered(pickle.loads(pickle.dumps(table))), WANT)
        assert not table.in_memory
        assert table.chunk_bytes == 40 * 6 * 4
    memory = MemoryStore()
    zarr.create_array(memory, name="X", shape=X.shape, dtype="f4", chunks=(50, 6), **CRC)[:] = X
    np.testing.assert_array_equal(open_table(zarr.open_group(memory, mode="r")).read(0, 230).X, X)
    with ZipStore(tmp_path / "z.zip", mode="w") as archive:
        zarr.create_array(archive, name="X", shape=X.shape, dtype="f4", chunks=(50, 6), **CRC)[:] = X
    np.testing.assert_array_equal(
        open_table(zarr.open_group(ZipStore(tmp_path / "z.zip", mode="r"), mode="r")).read(3, 200).X, X[3:200]
    )


def test_version_2_and_big_endian_and_integers(tmp_path):
    group = zarr.create_group(tmp_path / "v2", zarr_format=2)
    group.create_array("X", data=(X * 10).astype(">i4"), chunks=(50, 4), compressors=None)
    with pytest.warns(UncheckedChunksWarning):
        block = open_table(tmp_path / "v2").read(0, 230)
    np.testing.assert_array_equal(block.X, (X * 10).astype(">i4").astype(float))


def test_each_chunk_is_decoded_once_a_pass(store, monkeypatch):
    table = open_table(store)
    seen: list[int] = []
    plain = type(table.features).load
    monkeypatch.setattr(type(table.features), "load", lambda self, a, b: (seen.append(a), plain(self, a, b))[1])
    list(table.without_targets().blocks(0, 230, 7))
    assert seen == list(range(0, 230, 32))


def test_pickle_is_small_and_fingerprint_ignores_the_path(store, tmp_path):
    table = open_table(store)
    assert len(pickle.dumps(table)) < 4000
    shutil.copytree(store, tmp_path / "copy")
    assert open_table(tmp_path / "copy").fingerprint == table.fingerprint
    assert pickle.loads(pickle.dumps(table)).fingerprint == table.fingerprint
    assert open_table(store, rows=(0, 100)).fingerprint != table.fingerprint
    assert open_table(store, dtype="float64").fingerprint != table.fingerprint


def test_a_group_of_a_pickled_table_that_was_replaced_is_refused(store, tmp_path):
    pinned = pickle.dumps(open_table(store))
    np.savez(tmp_path / "source.npz", X=X + 1, y=Y)
    ingest(tmp_path / "source.npz", store, chunk_rows=32, overwrite=True)
    with pytest.raises(InputChangedError, match="COMPLETE"):
        pickle.loads(pinned)


def test_threads_share_one_table(store):
    table = open_table(store)
    parts: dict[int, np.ndarray] = {}

    def read(index: int, span: tuple[int, int]) -> None:
        parts[index] = np.concatenate([np.column_stack([b.X, b.Y]) for b in table.blocks(*span, 9)])

    threads = [threading.Thread(target=read, args=item) for item in enumerate(table.spans(20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.concatenate([parts[i] for i in range(len(threads))]), WANT)


def test_info(store, tmp_path):
    info = table_info(store)
    json.dumps(info)
    assert (info["rows"], info["features"], info["targets"], info["chunks"]) == (230, 6, 1, 8)
    assert info["ingested"]
    assert info["checksummed"]
    np.testing.assert_allclose(info["statistics"]["X"]["mean"], X.astype(float).mean(axis=0), rtol=1e-12, atol=1e-15)
    foreign(tmp_path / "g")
    other = table_info(tmp_path / "g")
    assert not other["ingested"]
    assert other["statistics"] is None


def test_a_process_that_goes_to_another_folder_reads_on(store, tmp_path, monkeypatch):
    """Also one whose tasks are elsewhere: what was opened is a place, and not what its name means there."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(store.parent)
    table = open_table(store.name)
    sent = pickle.dumps(table)
    (store / "X" / "c" / "1" / "0").rename(tmp_path / "lost")
    with pytest.raises(MissingChunkError, match=f"chunk X/c/1/0 of {store.name} is missing"):
        table.read(0, 230)
    (tmp_path / "lost").rename(store / "X" / "c" / "1" / "0")
    monkeypatch.chdir(elsewhere)
    for each in (table, pickle.loads(sent)):
        each.check_unchanged()
        np.testing.assert_array_equal(gathered(each), WANT)
