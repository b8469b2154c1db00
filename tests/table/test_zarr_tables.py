"""Zarr stores, whole and damaged: right rows, or an error that names the chunk or file; never fill, nothing created."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import MemoryStore, WrapperStore, ZipStore

from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    DTypeError,
    IncompleteStoreError,
    InputChangedError,
    MissingChunkError,
    NonFiniteDataError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
    UncheckedChunksWarning,
)
from streamkernel.table import Table, open_table, table_info
from streamkernel.table.ingest import ingest
from streamkernel.table.zarr_metadata import node_kind

RNG = np.random.default_rng(0)
X = RNG.standard_normal((230, 6)).astype(np.float32)
Y = RNG.standard_normal(230)
CRC = {"compressors": [Crc32cCodec()], "fill_value": np.nan, "config": {"write_empty_chunks": True}}


def foreign(path, x_chunks=(40, 6), y_chunks=(70,), **options):
    group = zarr.create_group(path)
    for name, values, chunks in (("X", X, x_chunks), ("y", Y, y_chunks)):
        made = {**CRC, **options}
        if "shards" in made:
            made["shards"] = tuple(c * s for c, s in zip(chunks, options["shards"], strict=False))
        group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **made)[:] = values
    return group


@pytest.fixture
def store(tmp_path):
    np.savez(tmp_path / "source.npz", X=X, y=Y)
    ingest(tmp_path / "source.npz", tmp_path / "store", chunk_rows=32)
    return tmp_path / "store"


def gathered(table: Table, rows: int = 50) -> np.ndarray:
    return np.concatenate([np.column_stack([b.X, b.Y]) for s in table.spans(rows) for b in table.blocks(*s, rows)])


WANT = np.column_stack([X, Y])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# --- what is not there, or not ours -------------------------------------------------------------------------------


def test_missing_path_creates_nothing(tmp_path):
    with pytest.raises(StoreNotFoundError, match="nothing was created"):
        open_table(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreNotFoundError, match=r"zarr\.json"):
        open_table(tmp_path / "empty")
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(StoreError, match="ingest"):
        open_table(tmp_path / "a.csv")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "empty"]
    assert os.listdir(tmp_path / "empty") == []


def test_group_without_rows_names_what_it_needs(tmp_path):
    zarr.create_group(tmp_path / "g")
    with pytest.raises(StoreNotFoundError, match="no array X"):
        open_table(tmp_path / "g")
    zarr.create_group(tmp_path / "model", attributes={"format": "streamkernel.model"})
    with pytest.raises(ParameterError, match=r"streamkernel\.model, not a table"):
        open_table(tmp_path / "model")
    with pytest.raises(StoreNotFoundError):
        open_table(X, tmp_path / "nowhere")


@pytest.mark.parametrize("node", ["", "X", "y"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        ('{"zarr_format": 3, "node_ty', "truncated"),
        ("[]", "list"),
        ("null", "NoneType"),
        ('{"zarr_format": 3, "node_type": "teapot"}', "teapot"),
        ('{"zarr_format": 9, "node_type": "array"}', "zarr_format 9"),
    ],
)
def test_damaged_metadata_is_named(tmp_path, node, content, says):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / node / "zarr.json"
    file.write_text(content)
    with pytest.raises(CorruptMetadataError, match=says) as caught:
        open_table(tmp_path / "g")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    "change", ["group for array", "no shape", "no codecs", "odd dtype", "zero chunk", "chunk list"]
)
def test_array_metadata_that_is_json_but_wrong(tmp_path, change):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / "X" / "zarr.json"
    value = json.loads(file.read_text())
    if change == "group for array":
        value = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    elif change == "no shape":
        value["shape"] = "many"
    elif change == "no codecs":
        del value["codecs"]
    elif change == "odd dtype":
        value["data_type"] = "float33"
    elif change == "zero chunk":
        value["chunk_grid"]["configuration"]["chunk_shape"] = [0, 6]
    else:
        value["chunk_grid"] = []
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match=r"X"):
        open_table(tmp_path / "g")


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((10**15, 20), (1000, 20)), ((100, 10**12), (10, 10**12)), ((10**12, 4), (10**11, 4)), ((5, 10**9), (5, 10))],
)
def test_huge_grids_are_refused_from_metadata_alone(tmp_path, shape, chunks):
    file = tmp_path / "big"
    zarr.create_array(file, shape=(10, 2), chunks=(5, 2), dtype="f8", **CRC)
    value = json.loads((file / "zarr.json").read_text())
    value["shape"] = shape
    value["chunk_grid"]["configuration"]["chunk_shape"] = chunks
    (file / "zarr.json").write_text(json.dumps(value))
    code = (
        "import resource, sys\n"
        "from streamkernel.errors import ResourceLimitError\n"
        "from streamkernel.table import open_table\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "import time; began = time.perf_counter()\n"
        "try: open_table(sys.argv[1])\n"
        "except ResourceLimitError as error: print(error)\n"
        "else: sys.exit('opened')\n"
        "took = time.perf_counter() - began\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "assert grown < 50_000, grown\n"
        "assert took < 1, took\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stderr
    assert "rewrite it with" in done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("complex", X.astype(complex), DTypeError),
        ("3-d", np.ones((4, 2, 2)), ShapeError),
        ("1-d", np.ones(4), ShapeError),
    ],
)
def test_arrays_that_are_no_table(tmp_path, name, values, error):
    made = {**CRC, "fill_value": 0}
    zarr.create_array(tmp_path / "a", shape=values.shape, dtype=values.dtype, chunks=values.shape, **made)[:] = values
    with pytest.raises(error):
        open_table(tmp_path / "a")


def test_lengths_that_differ_and_text_targets(tmp_path):
    foreign(tmp_path / "g")
    with pytest.raises(ShapeMismatchError, match=r"\(230, 6\).*\(3,\)"):
        open_table(tmp_path / "g", np.ones(3))
    labels = np.array(["b", "a"] * 115)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr's own remark that text arrays have no specification yet
        array = zarr.create_array(tmp_path / "t", data=labels, chunks=(50,), compressors=[ZstdCodec(checksum=True)])
        table = open_table(tmp_path / "g", array, classify=True)
        assert table.classes.tolist() == ["a", "b"]
        np.testing.assert_array_equal(table.read(0, 3).Y, [[0, 1], [1, 0], [0, 1]])


def test_a_store_without_permission(store, monkeypatch):
    # As root every mode may be read, so the answer of the system is given instead of the mode.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StoreAccessError, match="may not be read"):
        open_table(store)


# --- chunks -------------------------------------------------------------------------------------------------------


def chunk_files(path):
    return sorted(file for file in path.rglob("c/**/*") if file.is_file())


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


def test_chunk_that_vanishes_during_the_read_is_not_fill(store, monkeypatch):
    table = open_table(store).without_targets()
    target = chunk_files(store / "X")[1]
    plain = zarr.Array.__getitem__

    def read(self, selection):
        target.unlink(missing_ok=True)
        return plain(self, selection)

    monkeypatch.setattr(zarr.Array, "__getitem__", read)
    with pytest.raises(MissingChunkError, match="X/c/1/0"):
        table.read(0, 230)


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


# --- pins ---------------------------------------------------------------------------------------------------------


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


def test_store_without_manifest_is_incomplete(store):
    (store / "COMPLETE").unlink()
    with pytest.raises(IncompleteStoreError, match="did not finish"):
        open_table(store)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": "streamkernel.table", "version": 1}', '{"format": 3}'])
def test_torn_manifest(store, content):
    (store / "COMPLETE").write_text(content)
    with pytest.raises(CorruptMetadataError, match="COMPLETE"):
        open_table(store)


def test_unknown_version_and_exchanged_metadata(store):
    file = store / "zarr.json"
    value = json.loads(file.read_text())
    value["attributes"]["version"] = 99
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match="version 99"):
        open_table(store)
    value["attributes"]["version"] = 1
    value["attributes"]["columns"] = list("uvwxyz")
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match=r"zarr\.json is not the file"):
        open_table(store)


class Endpoint(WrapperStore):
    """A remote store whose every request fails."""

    error: Exception = ConnectionError()

    async def get(self, key, prototype, byte_range=None):
        raise self.error


class DriverError(Exception):
    """As an object store's client raises: of no common class."""


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (PermissionError(13, "403"), StoreAccessError),
        (ConnectionRefusedError(111, "refused"), StoreError),
        (DriverError("endpoint down"), StoreError),
        (OSError(28, "odd"), StoreError),
    ],
)
def test_remote_stores_fail_with_distinct_errors_and_never_as_empty(error, becomes):
    endpoint = Endpoint(zarr.storage.MemoryStore())
    endpoint.error = error
    with pytest.raises(StoreError) as caught:
        node_kind(endpoint, "")
    assert type(caught.value) is becomes


def test_memory_url_that_is_not_there():
    with pytest.raises(StoreNotFoundError):
        open_table("memory://bucket/none")
    with pytest.raises(StoreError, match="driver"):
        open_table("nosuchscheme://bucket/none")


class Flaky(WrapperStore):
    """Fails the first `times` reads of chunks."""

    def __init__(self, store, error=None, times=0):
        super().__init__(store)
        self.error, self.times = error, times

    async def get(self, key, prototype, byte_range=None):
        if self.times > 0 and "/c/" in key:
            self.times -= 1
            raise self.error
        return await super().get(key, prototype, byte_range)


@pytest.mark.parametrize(
    "error", [ConnectionResetError("reset"), TimeoutError("slow"), OSError(5, "Input/output error")]
)
def test_transient_errors_are_tried_again(store, error):
    flaky = Flaky(zarr.storage.LocalStore(store, read_only=True))
    table = open_table(zarr.open_group(flaky, mode="r"))
    flaky.error, flaky.times = error, 2
    np.testing.assert_array_equal(gathered(table), WANT)
    flaky.times = 10**9
    with pytest.raises(StoreError, match="3 attempts"):
        gathered(table)


def test_permanent_errors_are_not(store):
    flaky = Flaky(zarr.storage.LocalStore(store, read_only=True))
    table = open_table(zarr.open_group(flaky, mode="r"))
    flaky.error, flaky.times = PermissionError(13, "403"), 1
    with pytest.raises(StoreAccessError, match="access"):
        gathered(table)


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
