"""Folders among the temporary files go with their process, at the latest when the next process needs one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from streamkernel.atomic import HeldLock
from streamkernel.outputs import TemporaryFolder

USING = """
import sys, time
from streamkernel.outputs import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "rows").mkdir()
(folder.path / "rows" / "0").write_bytes(bytes(1000))
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_there_during_its_block_only(around: Path) -> None:
    with TemporaryFolder() as folder:
        (folder / "values").touch()
        assert folder.parent == around
    assert list(around.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), TemporaryFolder():
        raise KeyboardInterrupt
    assert list(around.iterdir()) == []


def test_a_killed_process_leaves_its_folder_to_the_next_one_that_needs_one(around: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", USING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    theirs = Path(process.stdout.readline().strip())
    # While that process lives, its folder stays.
    with TemporaryFolder():
        assert (theirs / "rows" / "0").exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert theirs.exists()
    with TemporaryFolder() as ours:
        assert list(around.iterdir()) == [ours]


def test_two_folders_of_one_process_leave_each_other_alone() -> None:
    with TemporaryFolder() as first, TemporaryFolder() as second:
        assert first.exists()
        assert second.exists()


def test_nothing_is_removed_that_is_not_ours(around: Path) -> None:
    host = os.uname().nodename
    with TemporaryFolder() as folder:
        ours = folder.name
    outside = around / "outside"
    outside.mkdir()
    (outside / "rows").touch()
    others = [
        ours.removesuffix(".work") + ".unlocked",  # of a file system without locks
        ours.removesuffix(".work") + ".new",  # the same, of an earlier release
        "streamkernel-elsewhere-12345678.work",  # of another machine
        f"streamkernel-{host}-12345678",
        "streamkernel-rows-12345678",
        ours,  # a link to a folder of the user
    ]
    for name in others[:-1]:
        (around / name).mkdir()
        (around / name / "rows").touch()
    (around / ours).symlink_to(outside, target_is_directory=True)
    with TemporaryFolder():
        pass
    assert {each.name for each in around.iterdir()} == {*others, "outside"}
    assert (outside / "rows").exists()


def test_without_locks_a_folder_still_comes_and_goes(around: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(path: Path, *, create: bool = False) -> HeldLock | None:
        raise OSError("no locks available")

    monkeypatch.setattr(HeldLock, "acquire", no_locks)
    with TemporaryFolder() as first, TemporaryFolder() as second:
        assert first.exists()
        assert second.exists()
    assert list(around.iterdir()) == []


def test_a_place_that_takes_no_folder_says_so(around: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(around / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        TemporaryFolder()


def test_a_process_that_was_killed_before_its_folder_had_a_lock_leaves_nothing_for_ever(around: Path) -> None:
    with TemporaryFolder() as folder:
        unnamed = folder.with_suffix(".new").with_stem(folder.stem[:-8] + "12345678")
    unnamed.mkdir()
    with TemporaryFolder() as ours:
        assert list(around.iterdir()) == [ours]


def test_a_folder_that_another_process_takes_for_a_stray_is_made_again(
    around: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, removed = HeldLock.acquire, []

    def too_late(path: Path, *, create: bool = False) -> HeldLock | None:
        if not removed:
            path.rmdir()
            removed.append(path)
        return acquire(path, create=create)

    monkeypatch.setattr(HeldLock, "acquire", too_late)
    with TemporaryFolder() as ours:
        assert ours.is_dir()
        assert removed
        assert ours.stem != removed[0].stem


def test_nobody_else_may_look_into_a_folder() -> None:
    with TemporaryFolder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
