"""No write follows a link that we did not make: symbolic or hard, in the place of any name of ours."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs.written import X

from streamkernel.blobs import blobs_at
from streamkernel.errors import StoreAccessError, StoreError, StoreExistsError
from streamkernel.following._lock import only_follower
from streamkernel.jobs import connect
from streamkernel.store import Checkpoints, RowSink

LINKS: dict[str, Callable[[Path, Path], None]] = {
    "symbolic": lambda link, to: link.symlink_to(to),
    "hard": lambda link, to: os.link(to, link),
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("precious")
    return folder


def whole(victim: Path) -> bool:
    return os.listdir(victim) == ["file"] and (victim / "file").read_text() == "precious"


@pytest.mark.parametrize("link", list(LINKS))
def test_the_lock_of_a_run(tmp_path: Path, victim: Path, link: str) -> None:
    run = tmp_path / ".model.run"
    run.mkdir()
    LINKS[link](run / "lock", victim / "file")
    with pytest.raises(StoreAccessError, match=f"{run}/lock is a link, or has another name .*remove it"):
        Checkpoints(run, {"a": 1})
    assert whole(victim)
    (run / "lock").unlink()
    with Checkpoints(run, {"a": 1}):
        assert (run / "lock").read_text() == f"{os.getpid()} on {socket.gethostname()}\n"


@pytest.mark.parametrize("link", list(LINKS))
def test_the_lock_of_a_follower(tmp_path: Path, victim: Path, link: str) -> None:
    LINKS[link](tmp_path / ".m.follow", victim / "file")
    with (
        pytest.raises(StoreAccessError, match=r"\.m\.follow is a link.*remove it"),
        only_follower(str(tmp_path / "m"), "rows"),
    ):
        raise AssertionError
    assert whole(victim)


def test_folders_of_ours(tmp_path: Path, victim: Path) -> None:
    (tmp_path / ".m.run").symlink_to(victim)
    with pytest.raises(StoreAccessError, match=r"\.m\.run is a symbolic link"):
        Checkpoints(tmp_path / ".m.run", {})
    (tmp_path / ".rows.unfinished").symlink_to(victim)
    with pytest.raises(StoreAccessError, match=r"\.rows\.unfinished is a symbolic link"):
        sink(tmp_path / "rows")
    (tmp_path / ".jobs").symlink_to(victim)
    with connect() as session, pytest.raises(StoreAccessError, match=r"\.jobs is a symbolic link"):
        session.job(tmp_path / "m")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "log").symlink_to(victim)
    for write in (blobs_at(tmp_path / "place").write, blobs_at(tmp_path / "place").create):
        for key in ("log/1", "log/deeper/1"):
            with pytest.raises(StoreAccessError, match="log is a symbolic link"):
                write(key, b"1")
    assert whole(victim)


def sink(path: Path, *, resume: bool = False) -> RowSink:
    return RowSink.create(path, 64, {"G": (2, "f8")}, 16, fingerprint="f", resume=resume)


@pytest.mark.parametrize("link", list(LINKS))
def test_journals_and_chunks_of_what_is_unfinished(tmp_path: Path, victim: Path, link: str) -> None:
    begun = sink(tmp_path / "rows")
    assert isinstance(begun.folder, Path)
    journal = begun.folder.with_name(f"{begun.folder.name}.journal")
    LINKS[link](journal / "G-0.log", victim / "file")
    with pytest.raises(StoreAccessError, match=r"G-0\.log is a link"):
        begun.write("G", 0, X[:16])
    begun.abort()
    os.rename(begun.folder / "G" / "c", tmp_path / "moved")
    (begun.folder / "G" / "c").symlink_to(tmp_path / "moved")
    with pytest.raises(StoreError, match="symbolic link"):
        sink(tmp_path / "rows", resume=True)
    assert whole(victim)


def test_checkpoints_and_run_files_that_are_links_are_replaced_not_followed(tmp_path: Path, victim: Path) -> None:
    run = tmp_path / ".m.run"
    with Checkpoints(run, {"a": 1}) as kept:
        (run / "0001-look").symlink_to(victim)
        kept.save(1, "look", {"s": X})
        assert not (run / "0001-look").is_symlink()
    assert whole(victim)


@pytest.mark.parametrize("name", ["thesis.txt", "drafts", "0001-Look"])
def test_what_is_not_ours_in_a_folder_of_ours(tmp_path: Path, name: str) -> None:
    """A run's folder is removed when the run is over, but for somebody else's things."""
    for folder in (".m.run", ".rows.unfinished"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("x")
    with Checkpoints(tmp_path / ".m.run", {}) as kept:
        kept.save(1, "look", {"s": X})
        kept.discard()
    with pytest.raises(StoreExistsError, match=f"it holds '{name}', which streamkernel did not write"):
        sink(tmp_path / "rows")
    for folder in (".m.run", ".rows.unfinished"):
        assert os.listdir(tmp_path / folder) == [name]
        assert (tmp_path / folder / name).read_text() == "x"


def test_a_fit_by_a_planted_lock(tmp_path: Path, victim: Path, monkeypatch: Any) -> None:
    from streamkernel.cli import main

    np.savez(tmp_path / "s.npz", X=X, y=X[:, 0])
    assert main(["ingest", str(tmp_path / "s.npz"), str(tmp_path / "t"), "--quiet"]) == 0
    (tmp_path / ".model.run").mkdir()
    (tmp_path / ".model.run" / "lock").symlink_to(victim / "file")
    fit = ["fit", str(tmp_path / "t"), str(tmp_path / "model"), "--basis", "4", "--scheduler", "threads", "--quiet"]
    assert main(fit) == 1
    assert whole(victim)
    assert not (tmp_path / "model").exists()
