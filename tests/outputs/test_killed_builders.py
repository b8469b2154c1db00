"""What a builder that was killed leaves beside its output is removed by the next one, and nothing that is held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from outputs.written import table

from streamkernel.atomic import HeldLock
from streamkernel.manifest import COMPLETE
from streamkernel.outputs import PartialFolder, new_file, remove_stray_partials

KILLED = """
import os, signal, sys
import numpy as np
import streamkernel.table.ingest.writers.writer as writer
from streamkernel import ingest
finish = writer.ChunkWriter.finish
def killed(self, *arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
writer.ChunkWriter.finish = killed
ingest(np.ones((64, 2)), sys.argv[1], chunk_rows=16, shuffle=sys.argv[2] == "shuffle")
"""


@pytest.mark.slow
def test_a_killed_ingest(tmp_path: Path) -> None:
    store = tmp_path / "place" / "table"
    store.parent.mkdir()
    for how in ("in order", "shuffle"):
        done = subprocess.run([sys.executable, "-c", KILLED, str(store), how], timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL
        left = os.listdir(store.parent)
        # The next one, killed as well, has removed what the one before had left.
        assert len(left) == (1 if how == "in order" else 2)
        assert all(name.endswith(".partial") for name in left)
    table(store)
    assert os.listdir(store.parent) == ["table"]


FILE = """
import sys
from pathlib import Path
from streamkernel.outputs import new_file
with new_file(Path(sys.argv[1]), overwrite=True) as path:
    path.write_text("half")
    print(path, flush=True)
    sys.stdin.read()
"""


def test_a_killed_writer_of_one_file(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")
    command = [sys.executable, "-c", FILE, str(target)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    theirs = Path(process.stdout.readline().strip())
    with new_file(target, overwrite=True) as path:
        path.write_text("while the other one lives")
    assert theirs.read_text() == "half"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert len(os.listdir(tmp_path)) == 2
    with new_file(target, overwrite=True) as path:
        path.write_text("after")
    assert os.listdir(tmp_path) == ["report.html"]
    assert target.read_text() == "after"


def test_what_is_being_built_is_left_alone(tmp_path: Path) -> None:
    for kind in ("table", None):
        held = PartialFolder(tmp_path / "table", kind)
        (held.folder / "chunk").write_bytes(b"x")
        table(tmp_path / "table", overwrite=(tmp_path / "table").exists())
        assert (held.folder / "chunk").read_bytes() == b"x"
        held.abandon()
    assert os.listdir(tmp_path) == ["table"]


@pytest.mark.parametrize("grown", [False, True])
def test_a_former_output_whose_builder_has_not_yet_let_go(tmp_path: Path, grown: bool) -> None:
    """Between its publishing and the release of its lock, another builder replaces it: it is removed, not left."""
    target = tmp_path / "table"
    table(target)
    lock = HeldLock.acquire(target)
    assert lock is not None
    later = threading.Timer(0.1, lock.release)
    later.start()
    built = PartialFolder(target, "table", grown=grown)
    built.publish((target / COMPLETE).read_bytes(), overwrite=True)
    later.join()
    assert os.listdir(tmp_path) == ["table"]


def test_a_stray_that_was_exchanged_since_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is then that of another folder, and whose name it is may be removed by somebody else at this time."""
    stray, built = tmp_path / ".table.01234567.partial", tmp_path / "built"
    for folder in (stray, built):
        folder.mkdir()
        (folder / folder.name).write_text("")
    held = HeldLock.acquire(built)
    still_at, exchanged = HeldLock.still_at, []

    def exchanging(lock: HeldLock, path: Path) -> bool:
        if not exchanged:
            exchanged.append(path)
            stray.rename(tmp_path / "published")
            built.rename(stray)
        return still_at(lock, path)

    monkeypatch.setattr(HeldLock, "still_at", exchanging)
    remove_stray_partials(tmp_path, "table")
    assert exchanged == [stray]
    assert sorted(os.listdir(tmp_path)) == [stray.name, "published"]
    assert os.listdir(stray) == ["built"]
    assert held is not None
    held.release()


def test_what_looks_like_one_and_is_none(tmp_path: Path) -> None:
    theirs = [".table.partial", ".table.0123456.partial", ".tables.01234567.partial", ".table.0123456g.partial"]
    for name in theirs:
        (tmp_path / name).mkdir()
    (tmp_path / ".table.01234567.partial").write_text("a file")
    (tmp_path / ".table.11234567.partial").symlink_to(tmp_path)
    (tmp_path / ".table.21234567.partial").mkdir()
    (tmp_path / ".table.31234567.new").mkdir()
    (tmp_path / ".table.41234567.new").mkdir()
    (tmp_path / ".table.41234567.new" / "x").write_text("x")
    remove_stray_partials(tmp_path, "table")
    assert sorted(os.listdir(tmp_path)) == sorted(
        [*theirs, ".table.01234567.partial", ".table.11234567.partial", ".table.41234567.new"]
    )


def test_a_folder_removed_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir, removed = Path.mkdir, []

    def raced(self: Path, *arguments: int, **options: bool) -> None:
        mkdir(self, *arguments, **options)
        if self.suffix == ".new" and not removed:
            removed.append(self)
            remove_stray_partials(tmp_path, "table")

    monkeypatch.setattr(Path, "mkdir", raced)
    made = PartialFolder(tmp_path / "table", None)
    assert removed
    assert made.folder.is_dir()
    made.abandon()
