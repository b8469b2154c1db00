"""Bundles and outputs of rows at URLs: whole or not at all, found damaged, resumed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from objects.places import IN_MEMORY

from streamkernel.blobs import Generations, blobs_at, joined, upload
from streamkernel.errors import (
    CheckpointMismatchError,
    ChunkAlignmentError,
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    MissingChunkError,
    ModelFormatError,
    ParameterError,
    ResourceLimitError,
    RunLockedError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    StreamKernelWarning,
)
from streamkernel.store import (
    Bundle,
    RowSink,
    bundle_digest,
    bundle_kind,
    check_target,
    read_bundle,
    write_bundle,
)
from streamkernel.table import open_table

RNG = np.random.default_rng(1)


def bundle(number: int = 0) -> Bundle:
    arrays = {
        "a": RNG.normal(size=(40, 3)),
        "flags": np.array([True, False]),
        "none": np.empty((0, 2)),
        "one": np.array(3),
    }
    return Bundle("model", 1, {"number": number, "names": ["x", "ü"]}, arrays)


def test_bundles(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundle_kind(url) is None
    with pytest.raises(StoreNotFoundError):
        read_bundle(url, "model")
    first = bundle()
    write_bundle(url, first)
    write_bundle(tmp_path / "m", first)
    assert bundle_kind(url) == "model"
    assert bundle_digest(read_bundle(url, "model")) == bundle_digest(first)
    place = Generations(url)
    prefix = place.latest().prefix  # type: ignore[union-attr]
    here = {
        str(file.relative_to(tmp_path / "m")): file.read_bytes()
        for file in (tmp_path / "m").rglob("*")
        if file.is_file()
    }
    assert {key.removeprefix(prefix): place.blobs.read(key) for key in place.blobs.keys(prefix)} == here
    with pytest.raises(StoreExistsError, match="overwrite"):
        write_bundle(url, bundle(1))
    write_bundle(url, bundle(1), overwrite=True)
    assert read_bundle(url, "model").config["number"] == 1
    with pytest.raises(ModelFormatError, match=r"where holds a model"):
        read_bundle(url, "factor")
    with monkeypatch.context() as patch:
        # Before anything is fetched.
        patch.setattr("streamkernel.store._fetched.download", None)
        with pytest.raises(ResourceLimitError, match="allowed"):
            read_bundle(url, "model", max_bytes=100)
    # A plain copy of a local one.
    copy = joined(url, "copy")
    upload(tmp_path / "m", blobs_at(copy), "")
    assert bundle_digest(read_bundle(copy, "model")) == bundle_digest(first)
    write_bundle(copy, bundle(2), overwrite=True)
    assert read_bundle(copy, "model").config["number"] == 2
    assert blobs_at(copy).read("config.json") is None


@IN_MEMORY
def test_damage_is_named(url: str) -> None:
    write_bundle(url, bundle())
    place = Generations(url)
    prefix = place.latest().prefix  # type: ignore[union-attr]
    for key in place.blobs.keys(prefix):
        content = place.blobs.read(key) or b""
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for damage in (None, b"", bytes(flipped), content[: len(content) // 2]):
            if damage is None:
                place.blobs.remove(key)
            else:
                place.blobs.write(key, damage)
            with pytest.raises(StoreError) as caught:
                read_bundle(url, "model")
            assert isinstance(
                caught.value, (CorruptMetadataError, MissingChunkError, ModelFormatError, IncompleteStoreError)
            )
            assert url in str(caught.value)
            assert "/tmp" not in str(caught.value).replace(url, "")
        place.blobs.write(key, content)
    read_bundle(url, "model")
    if url.startswith("s3"):
        with pytest.raises(ParameterError, match="no name of an object"):
            place.blobs.write(f"{prefix}a/../../../evil", b"x")
    else:
        place.blobs.write(f"{prefix}a/../../../evil", b"x")
        with pytest.raises(CorruptMetadataError, match="no name of ours"):
            read_bundle(url, "model")


@IN_MEMORY
def test_reading_while_it_is_overwritten(url: str) -> None:
    bundles = [bundle(number) for number in range(8)]
    digests = {bundle_digest(one) for one in bundles}
    write_bundle(url, bundles[0])
    over = threading.Event()

    def overwrite() -> None:
        for one in bundles[1:]:
            write_bundle(url, one, overwrite=True)
        over.set()

    writer = threading.Thread(target=overwrite)
    writer.start()
    while not over.is_set():
        assert bundle_digest(read_bundle(url, "model")) in digests
    writer.join()
    assert read_bundle(url, "model").config["number"] == 7


def test_of_writers_that_do_not_overwrite_one_succeeds(url: str) -> None:
    won, lost = [], []
    ready = threading.Barrier(4)

    def write(number: int) -> None:
        ready.wait()
        try:
            write_bundle(url, bundle(number))
            won.append(number)
        except StoreExistsError:
            lost.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)
    assert read_bundle(url, "model").config["number"] == won[0]
    assert len({key.split("/")[1] for key in blobs_at(url).keys("generations/")}) == 1


def test_targets(url: str) -> None:
    assert check_target(f"{url}/") == url
    write_bundle(url, bundle())
    with pytest.raises(StoreExistsError, match="overwrite"):
        check_target(url)
    assert check_target(url, overwrite=True) == url
    with pytest.raises(StoreExistsError, match="not an output of rows"):
        check_target(url, overwrite=True, kind="rows")
    blobs_at(joined(url, "other")).write("notes.txt", b"x")
    with pytest.raises(StoreExistsError, match="not a saved model"):
        check_target(joined(url, "other"), overwrite=True)


VALUES = {"p": RNG.normal(size=100), "G": RNG.normal(size=(100, 3)).astype("f4")}


def sink_at(target: str | Path, **options: object) -> RowSink:
    columns = {"p": (None, "f8"), "G": (3, "f4")}
    return RowSink.create(target, 100, columns, 16, attributes={"a": 1}, **options)  # type: ignore[arg-type]


def write(sink: RowSink, start: int, stop: int) -> dict[str, str]:
    return {key: digest for name in VALUES for key, digest in sink.write(name, start, VALUES[name][start:stop]).items()}


def fingerprint(target: str | Path) -> str:
    table = open_table(joined(target, "G"), joined(target, "p"))
    block = table.read(0, 100)
    assert block.Y is not None
    np.testing.assert_array_equal(block.X, VALUES["G"])
    np.testing.assert_array_equal(block.Y[:, 0], VALUES["p"])
    return table.fingerprint


@IN_MEMORY
def test_rows(url: str, tmp_path: Path) -> None:
    for target in (url, tmp_path / "out"):
        with sink_at(target) as sink:
            with pytest.raises(StoreError):
                open_table(joined(target, "G"))
            with pytest.raises(ChunkAlignmentError):
                sink.write("p", 8, VALUES["p"][8:16])
            digests = write(sink, 0, 48)
            with pytest.raises(MissingChunkError, match="not written"):
                sink.finish(digests)
            sink.finish(digests | write(sink, 48, 100))
    assert fingerprint(url) == fingerprint(tmp_path / "out")
    with pytest.raises(StoreExistsError):
        sink_at(url)
    before = blobs_at(url).keys()
    with sink_at(url, overwrite=True) as sink:
        write(sink, 0, 48)
    assert blobs_at(url).keys() == before
    with sink_at(url, overwrite=True) as sink:
        sink.finish(write(sink, 0, 100))
    assert fingerprint(url) == fingerprint(tmp_path / "out")


@IN_MEMORY
def test_rows_are_resumed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)
    with sink_at(tmp_path / "out") as sink:
        sink.finish(write(sink, 0, 100))
    with sink_at(url, fingerprint="x") as sink:
        write(sink, 0, 64)
        # While somebody builds it nobody else may, nor is anything of it to be read.
        with pytest.raises(RunLockedError):
            sink_at(url, fingerprint="x", resume=True)
    with pytest.raises(StoreError):
        open_table(joined(url, "G"))
    assert check_target(url, kind="rows") == url
    with pytest.raises(CheckpointMismatchError, match="fingerprint"):
        sink_at(url, fingerprint="y", resume=True)
    blobs = blobs_at(url)
    [zero, one, two] = [key for key in blobs.keys("generations/") if "/G/c/" in key][:3]
    blobs.remove(zero)
    blobs.write(one, (blobs.read(one) or b"")[:-1])
    content = bytearray(blobs.read(two) or b"")
    content[5] ^= 1
    blobs.write(two, bytes(content))
    with sink_at(url, fingerprint="x", resume=True) as sink:
        assert set(sink.finished()) == {"G/c/3/0", "p/c/0", "p/c/1", "p/c/2", "p/c/3"}
        np.testing.assert_array_equal(sink.read("p", 0, 64), VALUES["p"][:64])
        blobs.remove(next(key for key in blobs.keys("generations/") if key.endswith("p/c/0")))
        with pytest.raises(CorruptChunkError):
            sink.read("p", 0, 16)
    with sink_at(url, fingerprint="x", resume=True) as sink:
        assert "p/c/0" not in sink.finished()
        sink.finish(write(sink, 0, 100))
    assert fingerprint(url) == fingerprint(tmp_path / "out")
    assert {key.split("/")[1] for key in blobs.keys("UNFINISHED/")} == {"LEASE"}


@IN_MEMORY
def test_a_builder_that_died(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)
    dead = sink_at(url, fingerprint="x")
    write(dead, 0, 48)
    dead._building._lock.abandon()  # type: ignore[union-attr]
    with sink_at(url, fingerprint="x", resume=True) as sink:
        assert len(sink.finished()) == 6
        # It was only asleep: what it writes is the same, but it does not publish.
        digests = write(dead, 0, 100)
        with pytest.raises(RunLockedError, match="lost"):
            dead.finish(digests)
        sink.finish(write(sink, 48, 100))
    fingerprint(url)


@IN_MEMORY
def test_a_run_that_is_not_ours_or_is_damaged(url: str) -> None:
    with sink_at(url, fingerprint="x") as sink:
        write(sink, 0, 48)
    blobs = blobs_at(url)
    run = json.loads(blobs.read("UNFINISHED/run.json") or b"")
    for content in (
        b"",
        b"[]",
        json.dumps({**run, "name": "../../x"}).encode(),
        json.dumps({**run, "format": 1}).encode(),
    ):
        blobs.write("UNFINISHED/run.json", content)
        with pytest.raises(CorruptMetadataError, match="without resuming"):
            sink_at(url, fingerprint="x", resume=True)
    blobs.write("UNFINISHED/run.json", json.dumps(run).encode())
    blobs.write(f"generations/{run['name']}/p/zarr.json", b"{}")
    with pytest.warns(StreamKernelWarning, match="anew"):
        again = sink_at(url, fingerprint="x", resume=True)
    with again as sink:
        assert sink.finished() == {}
        sink.finish(write(sink, 0, 100))
    fingerprint(url)
    assert len({key.split("/")[1] for key in blobs.keys("generations/")}) == 1
