"""One contract for folders, S3 and fsspec's drivers."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from objects.flaky_proxy import flaky
from s3_server import S3Server

from streamkernel.atomic import HeldLock
from streamkernel.blobs import Blobs, blobs_at, is_url, joined, local_path, parent_of, retries
from streamkernel.blobs._filesystem import FilesystemBlobs
from streamkernel.errors import ParameterError, StoreAccessError, StoreError, StoreNotFoundError


@pytest.fixture(params=["folder", "s3", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "folder":
        return blobs_at(tmp_path / "not" / "yet")
    if request.param == "memory":
        return blobs_at(f"memory://{uuid.uuid4().hex}/place")
    return blobs_at(f"{request.getfixturevalue('s3')}/place")


def test_read_and_write(blobs: Blobs) -> None:
    assert blobs.read("a/b") is None
    assert blobs.size("a/b") == -1
    blobs.write("a/b", b"first")
    blobs.write("a/b", b"second one")
    assert blobs.read("a/b") == b"second one"
    assert blobs.size("a/b") == 10
    blobs.write("a/empty", b"")
    assert blobs.read("a/empty") == b""


def test_create_succeeds_once(blobs: Blobs) -> None:
    assert blobs.create("lock", b"mine")
    assert not blobs.create("lock", b"yours")
    assert blobs.read("lock") == b"mine"
    blobs.remove("lock")
    assert blobs.create("lock", b"yours")


def test_keys(blobs: Blobs) -> None:
    assert blobs.keys() == blobs.keys("x/") == []
    for key in ("x/2", "x/1", "xy", "z/a/b"):
        blobs.write(key, b"1")
    assert blobs.keys() == ["x/1", "x/2", "xy", "z/a/b"]
    assert blobs.keys("x") == ["x/1", "x/2", "xy"]
    assert blobs.keys("x/") == ["x/1", "x/2"]
    assert blobs.keys("x/2") == ["x/2"]
    blobs.remove("x/1")
    blobs.remove("x/1")
    assert blobs.keys("x/") == ["x/2"]


@pytest.mark.parametrize("durable", [False, True])
def test_pieces_are_one_value(blobs: Blobs, durable: bool) -> None:
    pieces = [np.arange(size, dtype=np.uint8) for size in (5, 0, 200, 1)]
    blobs.write("c/0", b"former")
    blobs.write_pieces("c/0", iter(pieces), durable=durable)
    assert blobs.read("c/0") == b"".join(piece.tobytes() for piece in pieces)
    assert blobs.keys() == ["c/0"]


def test_all_below_a_prefix_is_removed(blobs: Blobs) -> None:
    blobs.remove_below("x/")
    for key in ("x/2", "x/1/a", "xy", "z/a"):
        blobs.write(key, b"1")
    blobs.remove_below("x/")
    assert blobs.keys() == ["xy", "z/a"]
    assert blobs.exists()
    blobs.remove_below()
    assert blobs.keys() == []


def test_pieces_are_not_written_through_links(tmp_path: Path) -> None:
    place = blobs_at(tmp_path / "place")
    assert not place.exists()
    place.write("a", b"1")
    assert place.exists()
    (tmp_path / "place" / "c").symlink_to(tmp_path)
    with pytest.raises(StoreAccessError, match="c is a symbolic link"):
        place.write_pieces("c/0", [np.zeros(3, np.uint8)], durable=True)
    place.remove_below("c/")
    assert tmp_path.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place"]


def test_one_level(blobs: Blobs) -> None:
    assert blobs.level() == blobs.level("x/") == ([], {})
    for key in ("x/2", "x/1/a/b", "x/1/c", "xy", "z/a/b", "w w/é"):
        blobs.write(key, b"12")
    level = blobs.level()
    assert level.prefixes == ["w w/", "x/", "z/"]
    # Which stamps a listing has is for each place to say; both listings say the same.
    assert level.stamps == {"xy": blobs.stamps()["xy"]}
    assert level.stamps["xy"].size == 2
    level = blobs.level("x/")
    assert (level.prefixes, list(level.stamps)) == (["x/1/"], ["x/2"])
    assert blobs.level("z/") == (["z/a/"], {})
    assert blobs.level("w w/") == ([], blobs.stamps("w w/"))
    # Neither a value nor half of a name is a level.
    assert blobs.level("xy/") == blobs.level("no/") == ([], {})


def test_one_level_of_a_whole_bucket(s3: str) -> None:
    blobs_at(s3).write("a/b/c", b"1")
    assert blobs_at(s3).level() == (["a/"], {})
    assert blobs_at(f"{s3}/a").level() == (["b/"], {})


def test_what_lies_deeper_is_not_asked_for(s3: str, s3_server: S3Server, monkeypatch: Any) -> None:
    blobs_at(f"{s3}/place").write("table/X/c/0", b"1")
    with flaky(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        assert blobs_at(f"{s3}/place").level() == (["table/"], {})
        assert [("delimiter=%2F" in path) for _, path in proxy.seen] == [True]


def test_one_level_of_a_folder_follows_no_links(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "out").symlink_to(tmp_path)
    (tmp_path / "place" / "torn").symlink_to(tmp_path / "none")
    assert blobs_at(tmp_path / "place").level() == ([], {})


def test_one_of_many_creates(tmp_path: Path, s3: str) -> None:
    for place in (blobs_at(tmp_path), blobs_at(f"{s3}/p")):
        won: list[int] = []
        ready = threading.Barrier(8)

        def attempt(number: int, place: Blobs = place, won: list[int] = won, ready: threading.Barrier = ready) -> None:
            ready.wait()
            if place.create("prize", str(number).encode()):
                won.append(number)

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert place.read("prize") == str(won[0]).encode()


def test_pickled_without_credentials(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-very-secret-key")
    place = blobs_at(f"{s3}/p")
    place.write("a", b"1")
    sent = pickle.dumps(place)
    assert b"secret" not in sent
    assert pickle.loads(sent).read("a") == b"1"


def test_no_such_bucket(s3: str) -> None:
    bucket = f"s3://no-{uuid.uuid4().hex[:8]}"
    place = blobs_at(f"{bucket}/p/basis")
    for call in (lambda: place.read("a"), place.keys, place.level, lambda: place.write("a", b"1")):
        with pytest.raises(StoreNotFoundError, match=f"^there is no bucket {bucket}; check its name$"):
            call()


def test_a_dead_endpoint(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(retries, "PAUSES", (0.01,))
    place = blobs_at(f"{s3}/p")
    with pytest.raises(StoreError, match=rf"^{s3}/p failed while reading a \(.*\); check the endpoint") as caught:
        place.read("a")
    assert not isinstance(caught.value, (StoreNotFoundError, StoreAccessError))


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streamkernel.blobs.local.os.link", refused)
    place = blobs_at(tmp_path)
    with pytest.raises(StoreAccessError, match="no permission"):
        place.create("a", b"1")
    assert place.keys() == []


def test_files_of_killed_writers_are_removed_by_later_ones(tmp_path: Path) -> None:
    """Not those of a writer that lives, however old, nor what was made a moment ago or has another name."""
    old = time.time() - 7200.0
    names = [".a.json.0123abcd.partial", ".held.json.0123abcd.partial", ".a.partial", ".young.0123abcd.partial"]
    for name in names:
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, None if "young" in name else (old, old))
    for name in (".folder.0123abcd.partial", ".0.0123abcd.partial"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (old, old))
    (tmp_path / ".1.0123abcd.partial").symlink_to(tmp_path / ".a.partial")
    others = [".0.0123abcd.partial", ".1.0123abcd.partial", ".a.partial", ".folder.0123abcd.partial"]
    place, lock = blobs_at(tmp_path), HeldLock.acquire(tmp_path / names[1])
    assert lock is not None
    assert place.create("b", b"1")
    assert sorted(os.listdir(tmp_path)) == [*others, *names[1:2], names[3], "b"]
    lock.release()
    assert not place.create("b", b"2")
    assert place.create("c", b"3")
    assert names[1] not in os.listdir(tmp_path)


@pytest.mark.parametrize("hours", [-2.0, 2.0])
def test_the_clock_of_the_disk_tells_how_old_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """Not ours, which may be hours ahead of it or behind: a writer locks its file a moment after it has made it."""
    now = time.time()
    for name, age in ((".old.0123abcd.partial", 5400.0), (".young.0123abcd.partial", 1.0)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (now - age, now - age))
    monkeypatch.setattr(time, "time", lambda: now + 3600.0 * hours)
    blobs_at(tmp_path).write("a", b"1")
    assert sorted(os.listdir(tmp_path)) == [".young.0123abcd.partial", "a"]


def test_a_record_is_made_in_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    assert blobs_at(tmp_path).create("a", b"1")


def test_a_writer_holds_its_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[HeldLock | None] = []

    def linked(temporary: Path, path: Path) -> None:
        tried.append(HeldLock.acquire(temporary))

    monkeypatch.setattr("streamkernel.blobs.local.os.link", linked)
    blobs_at(tmp_path).create("a", b"1")
    assert tried == [None]


def test_locations(tmp_path: Path) -> None:
    assert is_url("s3://b/p")
    assert is_url("memory://x")
    assert not is_url("file:///x")
    assert not is_url(tmp_path)
    assert not is_url("C:/x")
    assert joined("s3://b/p/", "q", "r") == "s3://b/p/q/r"
    assert joined(tmp_path, "q") == str(tmp_path / "q")
    assert parent_of("s3://b/p/q") == ("s3://b/p", "q")
    assert parent_of(tmp_path / "q") == (str(tmp_path), "q")
    assert local_path("file:///a/b") == Path("/a/b")
    with pytest.raises(ParameterError, match="whole bucket"):
        parent_of("s3://b")
    with pytest.raises(ParameterError, match="is a URL"):
        local_path("s3://b/p")
    with pytest.raises(ParameterError, match="fsspec"):
        blobs_at("nonsense://a/b")


def test_a_file_in_the_place_of_a_folder_is_no_object(tmp_path: Path) -> None:
    """fsspec raises one class for both."""
    (tmp_path / "PROBE").write_text("a file")
    place = FilesystemBlobs(f"local://{tmp_path}")
    with pytest.raises(StoreError, match=r"exists|irectory") as raised:
        place.create("PROBE/key", b"value")
    assert "twice" not in str(raised.value)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError):
        place.remove("folder")
    assert (tmp_path / "folder").is_dir()
