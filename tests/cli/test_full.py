"""Disks that are full or only to be read, and a stdout that takes nothing: one line, for every command that writes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from problems import zarr_of_chunks

from streamkernel.cli import main
from streamkernel.errors import StoreAccessError, StoreError
from streamkernel.report.publish import publish_file

pytestmark = pytest.mark.usefixtures("bare_pages")

_PROGRAM = "import sys; from streamkernel.cli import main; sys.exit(main())"
# No file may grow: what a full disk says, without one.
_FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)); " + _PROGRAM


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    data = data_sets.friedman(300, 5)
    zarr_of_chunks(folder / "rows.zarr", data.X, data.y, 100)
    np.savez(folder / "rows.npz", X=data.X, y=data.y)
    assert (
        main(["fit", str(folder / "rows.zarr"), str(folder / "model"), "--basis", "10", "--rows", "0:200", *HERE]) == 0
    )
    return folder


# A command that prints, and loads nothing for it: what becomes of that is the same for all of them.
_PRINTS = (
    """
import sys, types, click
module = types.ModuleType("info")
module.command = click.Command("info", callback=lambda: print("told"))
sys.modules["streamkernel.cli.commands.info"] = module
"""
    + _PROGRAM
)

HERE = ["--scheduler", "threads", "--quiet"]
WRITES: dict[str, list[str]] = {
    "ingest": ["ingest", "rows.npz", "new.zarr", "--quiet"],
    "ingest shuffled": ["ingest", "rows.npz", "new.zarr", "--shuffle", "--quiet"],
    "fit": ["fit", "rows.zarr", "other", "--basis", "10", *HERE],
    "factor": ["factor", "rows.zarr", "factor", "--basis", "10", *HERE],
    "predict": ["predict", "model", "rows.zarr", "out", *HERE],
    "report": ["report", "model", "page.html"],
    "update": ["update", "model", "rows.zarr", *HERE],
    "follow": ["follow", "rows.zarr", "model", "--once", "--patience", "0", *HERE],
}
QUICK = ("ingest shuffled",)


def run(program: str, *arguments: str, place: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, cwd=place, text=True, check=False, **given)


def seen(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


@pytest.mark.parametrize(
    "command",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WRITES],
)
def test_a_full_disk(place: Path, command: str) -> None:
    before = seen(place)
    done = run(_FULL, *WRITES[command], place=place)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 1
    assert "no space left while " in line
    assert "unexpected" not in done.stderr
    assert "Traceback" not in done.stderr
    assert seen(place) == before


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (errno.EROFS, StoreAccessError, "read-only"),
        (errno.ENOSPC, StoreError, "no space left"),
        (errno.EDQUOT, StoreError, "no space left"),
        (errno.EIO, StoreError, "input/output error"),
    ],
)
@pytest.mark.parametrize("fails", ["open", "fsync", "replace"])
def test_a_page_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, number: int, kind: type[StoreError], said: str
) -> None:
    def failing(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "page.html"))

    target = "builtins.open" if fails == "open" else f"os.{fails}"
    with monkeypatch.context() as patch:
        patch.setattr(target, failing)
        with pytest.raises(kind, match=f"{said}.* writing .*page.html"):
            publish_file(tmp_path / "page.html", b"page", overwrite=True)
    assert list(tmp_path.iterdir()) == []


def test_the_systems_word_is_one_line(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Of a place that nobody thought of."""

    def failing(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")

    monkeypatch.setattr("streamkernel.cli.output.Display.emit", failing)
    assert cli("info", place / "model").error.startswith("error: No space left on device: /tmp/x; ")


def test_a_page_without_its_picture_is_said_to_be_there(
    cli: Callable[..., Any], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("report", model, "page.html", "--png", "picture.png")
    with monkeypatch.context() as patched:

        def full(*_: Any, **__: Any) -> None:
            raise StoreError("no space left while writing picture.png")

        patched.setattr("streamkernel.cli.commands.report.draw_png", full)
        error = cli(*arguments).error
    assert "no space left while writing picture.png (the page page.html is written, and the picture is not: " in error
    assert "give --overwrite to write both" in error
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    assert cli(*arguments, "--overwrite").status == 0
    assert {each.name for each in tmp_path.iterdir()} == {"page.html", "picture.png"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["info"], ["--version"], ["--help"], ["info", "--help"]], ids=" ".join)
def test_a_stdout_that_takes_nothing(tmp_path: Path, arguments: list[str], unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = run(_PRINTS, *arguments, place=tmp_path, stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr.startswith("error: the result cannot be written to stdout (No space left on device)")
    assert done.stderr.count("\n") == 1


def test_who_has_read_enough(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(_PRINTS, "info", place=tmp_path, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_streams_that_are_closed(place: Path, tmp_path: Path, closed: str) -> None:
    out = tmp_path / "out"
    program = (
        f"exec {sys.executable} -W ignore -m streamkernel predict model rows.zarr {out} --scheduler threads {closed}"
    )
    done = subprocess.run(["bash", "-c", program], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert main(["info", str(out.parent / "out")]) in (0, 1)
    assert json.loads((out / "COMPLETE").read_text())
