"""Checkpoints at a URL: one driver, whoever it is; killed, and resumed with the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import Forks
from objects.places import IN_MEMORY

from streamkernel.blobs import blobs_at
from streamkernel.cli import main
from streamkernel.errors import CheckpointMismatchError, RunLockedError, StreamKernelWarning
from streamkernel.store import Checkpoints
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

STATE = {"sums": np.arange(6.0).reshape(2, 3), "count": np.array(7)}
FIT = ("--basis", "30", "--scheduler", "threads", "--seed", "3")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that gives no sign of life for a second is dead."""
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)


def same(found: dict[str, Any] | None, want: dict[str, Any]) -> None:
    assert found is not None
    assert found.keys() == want.keys()
    for name, values in want.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_step_whose_writer_was_killed_is_absent(url: str, short: None) -> None:
    """Its objects are there, and no record makes them current: done again, and without a warning."""
    with Checkpoints(url, {"seed": 1}) as run:
        run.save(0, "look", STATE)
        blobs_at(f"{url}/0000-look").remove_below("CURRENT/")
        assert blobs_at(f"{url}/0000-look").keys() != []
        assert run.load(0, "look") is None
        run.save(0, "look", STATE)
        same(run.load(0, "look"), STATE)
        blobs_at(f"{url}/0001-final").write("theirs.txt", b"of somebody else")
        with pytest.warns(StreamKernelWarning, match="is not a saved model"):
            assert run.load(1, "final") is None


@IN_MEMORY
def test_steps(url: str, short: None) -> None:
    with Checkpoints(url, {"seed": 1}) as run:
        assert run.steps() == []
        assert run.load(0, "look") is None
        run.save(0, "look", STATE)
        run.save(1, "final", {"a": np.zeros(3)})
        run.save(1, "final", STATE)
        with pytest.raises(RunLockedError, match="another process"):
            Checkpoints(url, {"seed": 1})
    with Checkpoints(url, {"seed": 1}) as run:
        assert run.steps() == [(0, "look"), (1, "final")]
        same(run.load(0, "look"), STATE)
        same(run.load(1, "final"), STATE)
        place = f"{url}/0000-look"
        torn = next(key for key in blobs_at(place).keys("generations/") if key.endswith("COMPLETE"))
        blobs_at(place).remove(torn)
        with pytest.warns(StreamKernelWarning, match=r"done again \(.* COMPLETE[^;]*\)$"):  # nothing to be restored
            assert run.load(0, "look") is None
    with pytest.raises(CheckpointMismatchError, match="seed"):
        Checkpoints(url, {"seed": 2})
    with Checkpoints(url, {"seed": 2}, fresh=True) as run:
        assert run.steps() == []
        run.save(0, "look", STATE)
        run.discard()
        assert {key.split("/")[0] for key in blobs_at(url).keys("")} == {"lock"}
        with pytest.raises(RunLockedError):
            run.save(1, "final", STATE)


def test_a_driver_that_slept_too_long_writes_nothing_more(url: str, short: None) -> None:
    asleep = Checkpoints(url, {})
    asleep.save(0, "look", STATE)
    asleep._storage.lock.abandon()
    with Checkpoints(url, {}) as run:
        same(run.load(0, "look"), STATE)
        for use in (lambda: asleep.save(1, "final", STATE), asleep.discard, asleep.check_open):
            with pytest.raises(RunLockedError, match="lost"):
                use()
        assert run.steps() == [(0, "look")]


KILLED = """
import os, signal, sys
from streamkernel.blobs import lock
from streamkernel.store import Checkpoints
lock.LEASE_SECONDS = 1.0
save = Checkpoints.save
def killing(self, *args):
    save(self, *args); os.kill(os.getpid(), signal.SIGKILL)
Checkpoints.save = killing
from streamkernel.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_fit_is_resumed_with_the_same_bits(
    forks: Forks, run: Callable[..., dict[str, Any]], sources: tuple[Path, Path], tmp_path: Path, s3: str, short: None
) -> None:
    ingest(sources[0], f"{s3}/t", chunk_rows=256)
    ingest(sources[0], tmp_path / "t", chunk_rows=256)
    want = run("fit", tmp_path / "t", tmp_path / "m", *FIT)["digest"]
    command = ["fit", f"{s3}/t", f"{s3}/m", *FIT, "--quiet"]
    done = forks.run(KILLED, *command)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert blobs_at(f"{s3}/m").keys() == []
    found = run("fit", f"{s3}/t", f"{s3}/m", *FIT, "--resume")
    assert found["resumed_sweeps"] == 1
    assert found["digest"] == want


APPENDING = """
import os, signal, sys
from importlib import import_module
from streamkernel.blobs import lock
from streamkernel.table.ingest import append_rows
lock.LEASE_SECONDS = 1.0
module, owner, name, times, source, store = sys.argv[1:]
place = getattr(import_module(module), owner)
function, left = getattr(place, name), [int(times)]
def killing(*arguments, **options):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **options)
setattr(place, name, killing)
append_rows(source, store)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "rows"),
    [
        (("streamkernel.blobs.generations", "Generations", "publish", 1), 1500),
        pytest.param(("streamkernel.table.ingest.writers.writer", "ChunkWriter", "_write_chunk", 3), 1500),
        pytest.param(("streamkernel.blobs.generations", "Generations", "_prune", 1), 2200),
    ],
)
def test_an_append_killed_at_any_moment(
    sources: tuple[Path, Path], s3: str, moment: tuple[object, ...], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(sources[0], f"{s3}/t", chunk_rows=256)
    done = subprocess.run(
        [sys.executable, "-c", APPENDING, *map(str, moment), sources[1], f"{s3}/t"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert open_table(f"{s3}/t").n_rows == rows
    monkeypatch.setattr("streamkernel.blobs.lock.LEASE_SECONDS", 1.0)
    assert append_rows(sources[1], f"{s3}/t", repeated="skip").rows == 2200
    table = open_table(f"{s3}/t")
    table.check_unchanged()
    with np.load(sources[1]) as added:
        np.testing.assert_array_equal(table.read(1500, 2200).X, added["X"].astype(np.float32))


def test_a_second_fit_is_refused(
    sources: tuple[Path, Path], s3: str, short: None, capsys: pytest.CaptureFixture[str]
) -> None:
    ingest(sources[0], f"{s3}/t", chunk_rows=256)
    with Checkpoints(f"{s3}/.m.run", {}):
        assert main(["fit", f"{s3}/t", f"{s3}/m", *FIT, "--quiet"]) == 1
    assert "driven by another process" in capsys.readouterr().err
    assert blobs_at(f"{s3}/m").keys() == []
