"""What earlier versions of this package wrote: loads, and says the same; or is refused with the way out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frozen.kinds import FROZEN, HERE, unpacked, write

ARCHIVES = sorted(HERE.glob("*/*.tar.xz"))
# Sums of few rows, on other processors than those of the archives.
RTOL, ALPHA_RTOL = 1e-7, 1e-4


def _name(archive: Path) -> str:
    return archive.name.removesuffix(".tar.xz")


def _tolerance(name: str, key: str) -> float:
    """Updates of these models, and a run that is done again, choose alpha anew: it is found to a thousandth."""
    updated = name in ("ridge", "ridge-classifier", "ridge-one-target") and key.startswith("updated ")
    return ALPHA_RTOL if updated or name == "run" else RTOL


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: f"{path.parent.name}-{_name(path)}")
def test_reads_as_it_did(archive: Path, tmp_path: Path) -> None:
    folder, expected = unpacked(archive, tmp_path)
    found = FROZEN[_name(archive)].read(folder)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        got, rtol = np.asarray(found[key]), _tolerance(_name(archive), key)
        assert (got.shape, got.dtype.kind) == (value.shape, value.dtype.kind)
        if value.dtype.kind == "f":
            np.testing.assert_allclose(got, value, rtol=rtol, atol=rtol * np.abs(value).max(), err_msg=key)
        else:
            np.testing.assert_array_equal(got, value, err_msg=key)


def test_every_kind_has_an_archive() -> None:
    """A kind that is added later has one in a later folder."""
    assert {_name(path) for path in ARCHIVES} == FROZEN.keys()


def test_what_is_written_now_is_read(tmp_path: Path) -> None:
    """The archives can be made again."""
    write("ridge", tmp_path / "ridge.tar.xz")
    folder, expected = unpacked(tmp_path / "ridge.tar.xz", tmp_path / "ridge")
    np.testing.assert_array_equal(FROZEN["ridge"].read(folder)["predict"], expected["predict"])
