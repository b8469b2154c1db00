"""The newest checkpoint is torn, empty or half-written: the one before it is gone on from, with a warning."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import At, Counter, fit, run_of

from streamkernel.errors import StreamKernelWarning


class Stop(Exception):
    """The first life of the run is over."""


def stop() -> None:
    raise Stop


def empty(newest: Path) -> None:
    shutil.rmtree(newest)
    newest.mkdir()


def tear(newest: Path) -> None:
    chunk = max((path for path in newest.rglob("*") if path.parent.name != newest.name and path.is_file()), key=size)
    chunk.write_bytes(chunk.read_bytes()[: size(chunk) // 2])


def size(path: Path) -> int:
    return path.stat().st_size


def leave_unfinished(newest: Path) -> None:
    (newest / "COMPLETE").unlink()


def leave_partial(newest: Path) -> None:
    newest.rename(newest.parent / f".{newest.name}.0a1b2c3d.partial")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty": empty,
    "torn": tear,
    "unfinished": leave_unfinished,
    "partial": leave_partial,
}


@pytest.fixture(scope="module")
def undisturbed(store: str) -> Counter:
    """The sweeps of the whole run."""
    counter = Counter()
    fit(store, progress=counter)
    return counter


@pytest.mark.fault("torn")
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_one_before_it(
    store: str, whole: Any, undisturbed: Counter, tmp_path: Path, figure: Any, damage: str
) -> None:
    folder = tmp_path / "run"
    with run_of(store, folder) as checkpoints, pytest.raises(Stop):
        fit(store, checkpoints=checkpoints, progress=At(4, stop, 0))
    DAMAGES[damage](min(folder.glob("0003-*")))
    counter = Counter()
    with warnings.catch_warnings(record=True) as caught, run_of(store, folder) as checkpoints:
        warnings.simplefilter("always")
        assert fit(store, checkpoints=checkpoints, progress=counter).digest == whole.digest
    assert counter.begun == undisturbed.begun[3:]
    # What a writer left half-made is no checkpoint yet, and no loss.
    said = [str(warning.message) for warning in caught if issubclass(warning.category, StreamKernelWarning)]
    assert len(said) == (damage != "partial"), said
    assert not list(folder.glob(".*partial"))
    figure(f"{damage}: equal")
