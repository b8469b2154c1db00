"""Codes of rows between sweeps: what is written is read, and what is absent or damaged is as if never written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamkernel.store import RowCodes


def test_what_is_written_is_read_in_other_blocks(tmp_path: Path) -> None:
    codes = RowCodes(tmp_path, 8, np.dtype(np.uint8))
    values = np.arange(30, dtype=np.uint8)
    codes.write("a", 0, values[:16])
    codes.write("a", 16, values[16:])
    for start, count in ((0, 30), (8, 8), (8, 22), (24, 6)):
        found = codes.read("a", start, count)
        assert found is not None
        np.testing.assert_array_equal(found, values[start : start + count])
    assert codes.read("b", 0, 8) is None


def test_a_damaged_or_absent_chunk_is_none(tmp_path: Path) -> None:
    codes = RowCodes(tmp_path, 8, np.dtype(np.uint16))
    codes.write("a", 0, np.arange(16, dtype=np.uint16))
    chunk = tmp_path / "a" / "c" / "1"
    content = bytearray(chunk.read_bytes())
    content[3] ^= 1
    chunk.write_bytes(bytes(content))
    assert codes.read("a", 8, 8) is None
    assert codes.read("a", 0, 16) is None
    assert codes.read("a", 0, 8) is not None
    chunk.unlink()
    assert codes.read("a", 8, 8) is None
    # What the system cannot read, here a link to itself.
    chunk.symlink_to(chunk)
    assert codes.read("a", 8, 8) is None


def test_a_place_that_takes_nothing_costs_time_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    codes = RowCodes(blocked, 8, np.dtype(np.uint8))
    codes.write("a", 0, np.zeros(8, dtype=np.uint8))
    assert codes.read("a", 0, 8) is None
