"""The promises of an output under construction, each once for folders, S3 and fsspec's drivers."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel.blobs import Generations, blobs_at, joined, normalised, parent_of
from streamkernel.errors import CheckpointMismatchError, RunLockedError, StoreError, StoreExistsError
from streamkernel.outputs import Building, building_at
from streamkernel.store import Bundle, RowSink, read_bundle, write_bundle
from streamkernel.table import open_table

FORMER = Bundle("model", 1, {"number": 1})
VALUES = np.arange(12.0).reshape(12, 1)


@pytest.fixture(params=["folder", "s3", pytest.param("memory", marks=pytest.mark.slow)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    if request.param == "folder":
        return tmp_path / "around" / "out"
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}/around/out"
    return f"{request.getfixturevalue('s3')}/around/out"


def files(target: str | Path) -> list[str]:
    """All that is at the target and beside it, but for the records of leases and generations."""
    return [key for key in blobs_at(parent_of(target)[0]).keys("") if "/LEASE/" not in key and "/CURRENT/" not in key]


def begun(target: str | Path) -> Building:
    building = building_at(normalised(target), "rows")
    (building.folder / "c").mkdir()
    for name in ("c/0", "c/1"):
        (building.folder / name).write_bytes(name.encode())
    building.send("c/0")
    return building


def read(target: str | Path, name: str) -> bytes | None:
    place = normalised(target)
    if isinstance(place, Path):
        return blobs_at(place).read(name)
    return Generations(place).read(name)


def test_absent_until_it_is_published_and_whole_then(target: str | Path) -> None:
    building = begun(target)
    assert read(target, "c/0") is None
    building.fetch("c/0")
    assert (building.folder / "c/0").read_bytes() == b"c/0"
    building.publish(b"{}")
    building.abandon()
    assert [read(target, name) for name in ("c/0", "c/1", "COMPLETE")] == [b"c/0", b"c/1", b"{}"]
    assert not building.folder.exists()
    assert len(files(target)) == 3


def test_nothing_is_left_of_what_was_given_up(target: str | Path) -> None:
    building = begun(target)
    building.abandon()
    building.abandon()
    assert files(target) == []
    assert not building.folder.exists()


def test_what_came_meanwhile_stays(target: str | Path) -> None:
    building = begun(target)
    write_bundle(target, FORMER)
    with pytest.raises(StoreExistsError):
        building.publish(b"{}")
    building.abandon()
    assert read_bundle(target, "model").config == FORMER.config
    assert sum(name.endswith("COMPLETE") for name in files(target)) == 1


def sink_at(target: str | Path, fingerprint: str, *, resume: bool) -> RowSink:
    return RowSink.create(target, 12, {"p": (1, "f8")}, 4, fingerprint=fingerprint, resume=resume)


def write(sink: RowSink, start: int, stop: int) -> dict[str, str]:
    return sink.write("p", start, VALUES[start:stop])


def test_one_builder_at_a_time_and_the_next_one_goes_on(target: str | Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)
    sink = sink_at(target, "a", resume=False)
    write(sink, 0, 8)
    with pytest.raises(RunLockedError, match="another process"):
        sink_at(target, "a", resume=True)
    sink.abort()
    with pytest.raises(CheckpointMismatchError, match="fingerprint"):
        sink_at(target, "b", resume=True)
    with pytest.raises(StoreError):
        open_table(joined(target, "p"))
    with sink_at(target, "a", resume=True) as sink:
        assert set(sink.finished()) == {"p/c/0/0", "p/c/1/0"}
        sink.finish(write(sink, 8, 12))
    np.testing.assert_array_equal(open_table(joined(target, "p")).read(0, 12).X, VALUES)
    assert sum("p/c/" in name for name in files(target)) == 3
