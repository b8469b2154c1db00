"""Chunks that are written by hand: the bytes that Zarr's codecs write."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from streamkernel.store import chunk_file
from streamkernel.store.arrays import create_array, open_for_writing
from streamkernel.store.chunk_file import write_chunk


@given(
    m=st.integers(1, 20),
    chunk=st.integers(1, 8),
    width=st.none() | st.integers(1, 3),
    dtype=st.sampled_from(["<f4", "<f8", "<i8", "|u1", "|b1"]),
    durable=st.booleans(),
)
def test_the_bytes_are_those_of_zarr(
    tmp_path_factory: pytest.TempPathFactory, m: int, chunk: int, width: int | None, dtype: str, durable: bool
) -> None:
    ours, theirs = (tmp_path_factory.mktemp(name) for name in ("ours", "theirs"))
    tail = () if width is None else (width,)
    values = np.random.default_rng(m).integers(0, 100, (m, *tail)).astype(dtype)
    for folder in (ours, theirs):
        create_array(folder, "G", values.shape, values.dtype, (chunk, *tail))
    open_for_writing(theirs, "G")[:] = values
    for index, start in enumerate(range(0, m, chunk)):
        key = f"G/c/{index}" + "/0" * len(tail)
        write_chunk(ours / key, values[start : start + chunk], (chunk, *tail), durable=durable)
        assert (ours / key).read_bytes() == (theirs / key).read_bytes()
    np.testing.assert_array_equal(zarr.open_array(ours / "G", mode="r")[:], values)


def test_a_full_disk_leaves_the_former_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old = tmp_path / "c" / "0", np.arange(4.0)
    write_chunk(file, old, (4,), durable=True)
    before = file.read_bytes()

    def full(descriptor: int, data: memoryview) -> None:
        os.write(descriptor, data[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(chunk_file, "_write_all", full)
    with pytest.raises(OSError, match="No space"):
        write_chunk(file, -old, (4,), durable=True)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["0"]


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    write_chunk(tmp_path / "0", np.arange(4.0), (4,), durable=False)
    monkeypatch.undo()
    assert (tmp_path / "0").read_bytes()[:32] == np.arange(4.0).tobytes()
    assert (tmp_path / "0").stat().st_size == 36
