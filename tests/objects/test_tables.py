"""Tables at URLs: pinned, grown by layers, damaged, copied by hand."""

from __future__ import annotations

import io
import os
import pickle
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zarr
from objects.places import IN_MEMORY
from sparse_rows import sparse_rows

from streamkernel.blobs import Generations, blobs_at, upload
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    InputChangedError,
    MissingChunkError,
    ParameterError,
    RunLockedError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.table import Table, open_table
from streamkernel.table.info import TableInfo
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.writers import sparse_writer
from streamkernel.table.ingest.writers.locked_table import LockedObjects
from streamkernel.table.stored.blob_store import BlobStore

CRC = [zarr.codecs.Crc32cCodec()]


def values(table: Table) -> bytes:
    block = table.read(table.start, table.stop)
    assert block.Y is not None
    return block.X.tobytes() + block.Y.tobytes()


def keys(url: str) -> list[str]:
    """Of the chunks of the current generation, in full."""
    place = Generations(url)
    latest = place.latest()
    assert latest is not None
    return [key for key in place.blobs.keys(latest.prefix) if "/c/" in key]


@IN_MEMORY
def test_weights_at_a_url(url: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(300, 2)), rng.choice([0.0, 0.5, 2.0], 300)
    np.savez(tmp_path / "s.npz", X=X, w=w)
    here = ingest(tmp_path / "s.npz", tmp_path / "t", weight="w", chunk_rows=128)
    there = ingest(tmp_path / "s.npz", url, weight="w", chunk_rows=128)
    assert (there.fingerprint, there.weight, there.statistics) == (here.fingerprint, "w", here.statistics)
    first = open_table(url)
    append_rows(tmp_path / "s.npz", url)
    for table in (open_table(url), pickle.loads(pickle.dumps(open_table(url)))):
        np.testing.assert_array_equal(table.read(0, 600).weights, np.tile(w, 2))
    np.testing.assert_array_equal(first.read(0, 300).weights, w)
    assert ingest(url, tmp_path / "back").weight == "w"


@IN_MEMORY
@pytest.mark.parametrize("options", [{}, {"shuffle": True, "seed": 3}, {"dtype": "float64"}])
def test_the_same_table_as_on_a_disk(url: str, sources: tuple[Path, Path], tmp_path: Path, options: dict) -> None:  # type: ignore[type-arg]
    here = ingest(sources[0], tmp_path / "t", chunk_rows=128, **options)
    there = ingest(sources[0], url, chunk_rows=128, **options)
    assert there.fingerprint == here.fingerprint
    assert (there.bytes_stored, there.chunks, there.statistics) == (here.bytes_stored, here.chunks, here.statistics)
    assert values(open_table(url)) == values(open_table(tmp_path / "t"))
    assert TableInfo.of(url).path == url


@IN_MEMORY
@pytest.mark.parametrize("shuffle", [False, True])
def test_copies_of_rows_that_wait_to_be_sent_are_for_their_owner_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a,b\n" + b"1,2\n" * 300)))
    modes = set()

    def looked(*call: object) -> None:
        modes.update(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    ingest("-", url, shuffle=shuffle, progress=looked)
    assert modes == {0o700}
    assert list(tmp_path.iterdir()) == []


@IN_MEMORY
def test_labels(url: str, tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{'zebra' if i % 3 else 'ant'}" for i in range(200))
    (tmp_path / "a.csv").write_text(f"x,kind\n{rows}\n")
    here = ingest(tmp_path / "a.csv", tmp_path / "t", target="kind", chunk_rows=32)
    there = ingest(tmp_path / "a.csv", url, target="kind", chunk_rows=32)
    assert there.fingerprint == here.fingerprint
    assert there.classes == ("ant", "zebra")
    assert (
        append_rows(tmp_path / "a.csv", url).fingerprint == append_rows(tmp_path / "a.csv", tmp_path / "t").fingerprint
    )
    assert values(open_table(url)) == values(open_table(tmp_path / "t"))


@IN_MEMORY
def test_appends_are_layers_and_copy_nothing(url: str, sources: tuple[Path, Path], tmp_path: Path) -> None:
    ingest(sources[0], tmp_path / "t", chunk_rows=256)
    ingest(sources[0], url, chunk_rows=256)
    readers = [open_table(url)]
    for _ in range(3):
        here, there = (append_rows(sources[1], place, repeated="append") for place in (tmp_path / "t", url))
        assert there.fingerprint == here.fingerprint
        assert there.bytes_stored == here.bytes_stored
        readers.append(open_table(url))
    layers = Generations(url).latest().layers  # type: ignore[union-attr]
    assert [layer.first for layer in layers] == [0, 1500 // 256, 2200 // 256, 2900 // 256]
    # 700 rows of X and y: the last chunk of before and those that are new.
    assert len(keys(url)) == 2 * (-(-3600 // 256) - 2900 // 256)
    whole = open_table(tmp_path / "t").read(0, 3600).X
    for reader, rows in zip(readers, (1500, 2200, 2900, 3600), strict=True):
        reader.check_unchanged()
        for one in (reader, pickle.loads(pickle.dumps(reader))):
            np.testing.assert_array_equal(one.read(0, rows).X, whole[:rows])
    ingest(sources[1], url, overwrite=True)
    ingest(sources[1], url, overwrite=True)
    assert len({key.split("/")[1] for key in blobs_at(url).keys("generations/")}) == 2


@IN_MEMORY
def test_appends_of_sparse_rows_are_layers_too(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer of a chunk depends on its array: chunks of rows and chunks of entries have numbers of their own."""
    monkeypatch.setattr(sparse_writer, "_ENTRIES", 60)
    monkeypatch.setattr(sparse_writer, "_POINTERS", 50)
    X, y = sparse_rows(200, 20, 3.0), np.arange(200.0)
    readers = []
    for place in (tmp_path / "t", url):
        ingest(open_table(X[:90], y[:90], sparse=True), place, chunk_rows=16, dtype="float64")
    for ends in ((90, 120), (120, 130), (130, 200)):
        readers.append(open_table(url, sparse=True))
        new = open_table(X[slice(*ends)], y[slice(*ends)], sparse=True)
        assert append_rows(new, url).fingerprint == append_rows(new, tmp_path / "t").fingerprint
    latest = Generations(url).latest()
    assert latest is not None
    assert latest.layers[1].first_of("y") == 90 // 16
    assert latest.layers[1].first_of("data") == X[:80].nnz // 60
    assert latest.layers[1].first_of("statistics") == 0
    assert len(latest.layers) == 4
    whole = open_table(tmp_path / "t", sparse=True).as_sparse(False).read(0, 200)
    for reader in (*readers, open_table(url, sparse=True)):
        reader.check_unchanged()
        for one in (reader, pickle.loads(pickle.dumps(reader))):
            block = one.as_sparse(False).read(0, one.stop)
            np.testing.assert_array_equal(block.X, whole.X[: one.stop])
            np.testing.assert_array_equal(block.Y, whole.Y[: one.stop])


@IN_MEMORY
def test_a_reader_keeps_its_generation_while_one_is_written(url: str, sources: tuple[Path, Path]) -> None:
    ingest(sources[0], url, chunk_rows=128)
    reader = open_table(url)
    want = values(reader)
    ingest(sources[1], url, chunk_rows=128, overwrite=True)
    assert values(reader) == want
    reader.check_unchanged()
    ingest(sources[1], url, chunk_rows=256, overwrite=True)
    # Its generation is gone now: what is there is another table.
    with pytest.raises(StoreError):
        values(reader)
    with pytest.raises(InputChangedError):
        reader.check_unchanged()
    assert open_table(url).n_rows == 700


@pytest.mark.slow
def test_readers_while_it_is_overwritten_again_and_again(url: str, sources: tuple[Path, Path]) -> None:
    want = {}
    for source in sources:
        ingest(source, url, chunk_rows=512, overwrite=True)
        want[open_table(url).n_rows] = values(open_table(url))
    over = threading.Event()

    def overwrite() -> None:
        for turn in range(6):
            ingest(sources[turn % 2], url, chunk_rows=512, overwrite=True)
        over.set()

    writer = threading.Thread(target=overwrite)
    writer.start()
    read = failed = 0
    while not over.is_set() or read == 0:
        try:
            table = open_table(url)
            found = values(table)
        except StoreError:
            failed += 1  # overwritten twice between two lines
            continue
        assert found == want[table.n_rows]
        read += 1
    writer.join()
    assert read >= failed


@IN_MEMORY
def test_every_chunk_that_is_lost_or_flipped_is_named(url: str, sources: tuple[Path, Path]) -> None:
    ingest(sources[0], url, chunk_rows=512)
    blobs = blobs_at(url)
    table = open_table(url)
    sent = pickle.dumps(table)
    for key in keys(url):
        content = blobs.read(key)
        assert content is not None
        name = key.split("/", 2)[2]
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for damage, error in ((None, MissingChunkError), (b"", MissingChunkError), (flipped, CorruptChunkError)):
            if damage is None:
                blobs.remove(key)
            else:
                blobs.write(key, bytes(damage))
            for use in (lambda: values(table), lambda: values(pickle.loads(sent)), lambda: table.check_unchanged()):
                with pytest.raises(error) as caught:
                    use()
                assert caught.value.key == name
        blobs.write(key, content)
    # Written anew, and proved by their digests to be the same.
    table.check_unchanged()


@IN_MEMORY
@pytest.mark.parametrize(
    ("zarr_format", "encoding", "separator"),
    [(2, "v2", "."), (2, "v2", "/"), (3, "v2", "."), (3, "default", "."), (3, "default", "/")],
)
@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
def test_a_lost_chunk_with_any_key(url: str, tmp_path: Path, zarr_format: Any, encoding: str, separator: str) -> None:
    X = np.arange(1.0, 41.0).reshape(20, 2)
    group = zarr.create_group(tmp_path / "g", zarr_format=zarr_format)
    keys: Any = {"name": encoding, "separator": separator}
    array = group.create_array(
        "X", shape=X.shape, chunks=(5, 2), dtype="f8", compressors=None, fill_value=0.0, chunk_key_encoding=keys
    )
    array[:] = X
    upload(tmp_path / "g", blobs_at(url), "")
    table = open_table(url)
    np.testing.assert_array_equal(table.read(0, 20).X, X)
    key = f"X/{array.metadata.encode_chunk_key((2, 0))}"
    blobs_at(url).remove(key)
    np.testing.assert_array_equal(table.read(0, 10).X, X[:10])
    # zarr would give the fill value.
    with pytest.raises(MissingChunkError, match="is missing or empty") as caught:
        table.read(10, 15)
    assert caught.value.key == key


def test_a_foreign_chunk_rewritten_between_sweeps(url: str, tmp_path: Path) -> None:
    X = np.arange(40.0).reshape(20, 2)
    group = zarr.create_group(tmp_path / "g")
    group.create_array("X", shape=X.shape, chunks=(5, 2), dtype="f8", compressors=None)[:] = X
    upload(tmp_path / "g", blobs_at(url), "")
    with pytest.warns(UserWarning, match="checksum"):
        table = open_table(url)
    np.testing.assert_array_equal(table.read(0, 20).X, X)
    table.check_unchanged()
    content = blobs_at(url).read("X/c/1/0")
    assert content is not None
    blobs_at(url).write("X/c/1/0", content[::-1])
    with pytest.raises(InputChangedError, match="c/1/0"):
        table.check_unchanged()


@IN_MEMORY
@pytest.mark.parametrize("shards", [None, (16, 4)])
def test_plain_copies(url: str, sources: tuple[Path, Path], tmp_path: Path, shards: tuple[int, int] | None) -> None:
    if shards is None:
        ingest(sources[0], tmp_path / "t", chunk_rows=128)
    else:
        group = zarr.create_group(tmp_path / "t")
        X = np.random.default_rng(0).normal(size=(50, 4))
        made = group.create_array("X", shape=X.shape, chunks=(4, 4), shards=shards, dtype="f8", compressors=CRC)
        made[:] = X
    upload(tmp_path / "t", blobs_at(url), "")
    here = open_table(tmp_path / "t")
    for there in (open_table(url), open_table(f"{url}/X")):
        assert there.features.fingerprint == here.features.fingerprint
        np.testing.assert_array_equal(there.read(0, 50).X, here.read(0, 50).X)
    if shards is None:
        assert append_rows(sources[1], url).fingerprint == append_rows(sources[1], tmp_path / "t").fingerprint
        assert values(open_table(url)) == values(open_table(tmp_path / "t"))
        ingest(sources[1], url, overwrite=True)
        ingest(sources[1], url, overwrite=True)
        assert blobs_at(url).read("X/zarr.json") is None


@IN_MEMORY
def test_one_appends_at_a_time(url: str, sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(sources[0], url, chunk_rows=128)
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)
    held = LockedObjects(url)
    with pytest.raises(RunLockedError, match="another process"):
        append_rows(sources[1], url)
    # One that was killed gives no sign of life: the next one waits for that, and goes on.
    held.lock.abandon()  # type: ignore[union-attr]
    assert append_rows(sources[1], url).rows == 2200


@IN_MEMORY
def test_an_ingest_that_overwrites_under_an_append(
    url: str, sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(sources[0], url, chunk_rows=128)
    check = LockedObjects.check_current

    def replaced(self: LockedObjects) -> None:
        check(self)
        ingest(sources[1], url, overwrite=True)

    monkeypatch.setattr(LockedObjects, "check_current", replaced)
    with pytest.raises(InputChangedError, match="nothing was appended"):
        append_rows(sources[1], url)
    assert open_table(url).n_rows == 700


@IN_MEMORY
def test_an_append_that_has_lost_its_lease_publishes_nothing(
    url: str, sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may have taken it over, and have cleared what this one left."""
    ingest(sources[0], url, chunk_rows=128)
    plain = LockedObjects.building

    def building(self: LockedObjects) -> Any:
        made = plain(self)
        self.lock.abandon()
        return made

    monkeypatch.setattr(LockedObjects, "building", building)
    with pytest.raises(RunLockedError, match="was lost"):
        append_rows(sources[1], url)
    assert open_table(url).n_rows == 1500


@IN_MEMORY
def test_what_is_not_whole(url: str, sources: tuple[Path, Path]) -> None:
    with pytest.raises(StoreNotFoundError):
        open_table(url)
    ingest(sources[0], url, chunk_rows=128)
    place = Generations(url)
    prefix = place.latest().prefix  # type: ignore[union-attr]
    kept = {name: place.blobs.read(prefix + name) or b"" for name in ("COMPLETE", "zarr.json", "X/zarr.json")}
    for name, error in (
        ("COMPLETE", IncompleteStoreError),
        ("zarr.json", StoreNotFoundError),
        ("X/zarr.json", StoreError),
    ):
        place.blobs.remove(prefix + name)
        with pytest.raises(error):
            open_table(url)
        for content in (b"", b"[]", kept[name][:20]):
            place.blobs.write(prefix + name, content)
            with pytest.raises(CorruptMetadataError):
                open_table(url)
        place.blobs.write(prefix + name, kept[name])
    assert open_table(url).n_rows == 1500


def test_pickles_hold_no_credentials(s3: str, sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-very-secret-key")
    ingest(sources[0], f"{s3}/t")
    sent = pickle.dumps(open_table(f"{s3}/t"))
    assert b"secret" not in sent
    assert os.environ["AWS_ENDPOINT_URL"].encode() not in sent
    assert pickle.loads(sent).read(0, 5).X.shape == (5, 4)


def test_the_store_is_only_read(url: str, sources: tuple[Path, Path]) -> None:
    ingest(sources[0], url, chunk_rows=512)
    group = zarr.open_group(BlobStore(url), mode="r")
    np.testing.assert_array_equal(group["X"][:10], open_table(url).read(0, 10).X)  # type: ignore[index]
    with pytest.raises((NotImplementedError, ValueError)):
        zarr.create_group(BlobStore(url), path="more")
    with pytest.raises(ParameterError):
        open_table(url, target="nothing")
