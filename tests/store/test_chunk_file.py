"""Chunks that are written by hand: the bytes that Zarr's codecs write."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.atomic import array_digest
from streamkernel.blobs import LocalBlobs
from streamkernel.errors import StoreError
from streamkernel.store import _chunk as chunk
from streamkernel.store._arrays import array_metadata
from streamkernel.store._chunk import PIECE_BYTES


def write_chunk(file: Path, values: np.ndarray, shape: tuple[int, ...], *, durable: bool) -> str:
    return chunk.write_chunk(LocalBlobs(file.parent), file.name, values, shape, durable=durable)


@given(
    m=st.integers(1, 20),
    rows=st.integers(1, 8),
    width=st.none() | st.integers(1, 3),
    dtype=st.sampled_from(["<f4", "<f8", "<i8", "|u1", "|b1"]),
    durable=st.booleans(),
)
def test_the_bytes_are_those_of_zarr(
    tmp_path_factory: pytest.TempPathFactory, m: int, rows: int, width: int | None, dtype: str, durable: bool
) -> None:
    ours, theirs = (tmp_path_factory.mktemp(name) for name in ("ours", "theirs"))
    tail = () if width is None else (width,)
    values = np.random.default_rng(m).integers(0, 100, (m, *tail)).astype(dtype)
    for folder in (ours, theirs):
        (folder / "G").mkdir()
        (folder / "G" / "zarr.json").write_bytes(array_metadata(values.shape, values.dtype, (rows, *tail)))
    zarr.open_array(theirs / "G", mode="r+").with_config({"write_empty_chunks": True})[:] = values
    for index, start in enumerate(range(0, m, rows)):
        key = f"G/c/{index}" + "/0" * len(tail)
        write_chunk(ours / key, values[start : start + rows], (rows, *tail), durable=durable)
        assert (ours / key).read_bytes() == (theirs / key).read_bytes()
    np.testing.assert_array_equal(zarr.open_array(ours / "G", mode="r")[:], values)


LARGE = np.random.default_rng(0).random(3 * PIECE_BYTES // 16 + 7)  # a piece and a half, and some bytes


@pytest.mark.parametrize("durable", [False, True])
def test_many_pieces(tmp_path: Path, durable: bool) -> None:
    digest = write_chunk(tmp_path / "0", LARGE, LARGE.shape, durable=durable)
    stored = (tmp_path / "0").read_bytes()
    assert stored[:-4] == LARGE.tobytes()
    assert stored[-4:] == google_crc32c.value(LARGE).to_bytes(4, "little")
    assert digest == array_digest(LARGE)


def test_the_digest_is_that_of_the_rows_alone(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(3, 2)
    assert write_chunk(tmp_path / "0", values, (5, 2), durable=True) == array_digest(values)


def test_a_full_disk_leaves_the_former_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c" / "0"
    write_chunk(file, LARGE, LARGE.shape, durable=True)
    before, write = file.read_bytes(), os.write
    written: list[int] = []

    def full(descriptor: int, data: memoryview) -> int:
        if written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(write(descriptor, data))
        return written[-1]

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="no space"):
        write_chunk(file, -LARGE, LARGE.shape, durable=True)
    monkeypatch.undo()
    assert written == [PIECE_BYTES]
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["0"]


@pytest.mark.parametrize("durable", [False, True])
def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    """Also where they leave a place that a direct write cannot go on from."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: max(4096, len(data) // 2)]))
    write_chunk(tmp_path / "0", LARGE, LARGE.shape, durable=durable)
    monkeypatch.undo()
    assert (tmp_path / "0").read_bytes()[:-4] == LARGE.tobytes()


@pytest.mark.parametrize("refused", ["open", "write"])
def test_file_systems_without_direct_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    open_file, write = os.open, os.write
    direct = getattr(os, "O_DIRECT", 0)
    if not direct:
        pytest.skip("this system has no direct writes")
    descriptors: list[int] = []

    def opening(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & direct:
            if refused == "open":
                open_file(path, flags & ~direct, mode)
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            descriptors.append(open_file(path, flags, mode))
            return descriptors[-1]
        return open_file(path, flags, mode)

    def writing(descriptor: int, data: memoryview) -> int:
        if descriptor in descriptors and fcntl.fcntl(descriptor, fcntl.F_GETFL) & direct:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return write(descriptor, data)

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "write", writing)
    write_chunk(tmp_path / "0", LARGE, LARGE.shape, durable=True)
    monkeypatch.undo()
    assert (tmp_path / "0").read_bytes()[:-4] == LARGE.tobytes()
    assert os.listdir(tmp_path) == ["0"]
