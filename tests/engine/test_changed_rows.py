"""Rows of others that are rewritten while they are worked on: noticed before the next sweep, and after the last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from streamkernel import KernelRidge, factorize, ingest, open_table
from streamkernel.cli import main
from streamkernel.engine import Session, Silent
from streamkernel.errors import InputChangedError
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.store import Checkpoints, RowSink
from streamkernel.table import Table
from streamkernel.table._sparse_rows import CSRParts, SparseRows
from streamkernel.table.ingest.writers.writer import ChunkWriter
from streamkernel.table.parts.row_parts import ContentParts
from streamkernel.table.parts.weights import PartWeights
from streamkernel.table.rows import ColumnRows, ConstantRows
from streamkernel.updating.update import update_model

ROWS, CHUNK = 400, 100
rng = np.random.default_rng(2)
X, Y = rng.normal(size=(ROWS, 3)), rng.normal(size=ROWS)

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")


@pytest.fixture
def group(tmp_path: Path) -> zarr.Group:
    made = zarr.create_group(tmp_path / "foreign")
    made.create_array("X", shape=X.shape, chunks=(CHUNK, 3), dtype="f8")[:] = X
    made.create_array("y", shape=Y.shape, chunks=(CHUNK,), dtype="f8")[:] = Y
    return made


class Rewriting(Silent):
    """Rewrites a chunk when the sweep of a number begins, goes on, or ends."""

    def __init__(self, rewrite: Callable[[], None], number: int, when: str) -> None:
        self.rewrite, self.number, self.when = rewrite, number, when
        self.begun: list[str] = []

    def _at(self, when: str) -> None:
        if when == self.when and len(self.begun) == self.number:
            self.number = -1
            self.rewrite()

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.begun.append(name)
        self._at("begin")

    def advance(self, rows: int) -> None:
        self._at("advance")

    def end(self, seconds: float) -> None:
        self._at("end")


def fit(table: Table, progress: Silent, checkpoints: Any = None) -> Any:
    settings = RidgeSettings(n_components=8, lengthscale=1.0, alpha=0.1, seed=1)
    return fit_ridge(table, settings, Session(progress=progress, checkpoints=checkpoints))


def rewriting(group: zarr.Group, name: str) -> Callable[[], None]:
    def rewrite() -> None:
        array: Any = group[name]
        array[:CHUNK] = array[:CHUNK] + 1.0

    return rewrite


@pytest.fixture
def sweeps(tmp_path: Path, group: zarr.Group) -> int:
    """How many a fit takes."""
    watched = Rewriting(lambda: None, -1, "")
    fit(open_table(tmp_path / "foreign"), watched)
    assert len(watched.begun) >= 2
    return len(watched.begun)


@pytest.mark.parametrize("name", ["X", "y"])
def test_rewritten_before_the_first_sweep(tmp_path: Path, group: zarr.Group, name: str) -> None:
    """The first rows are read before that, and what is wrong with them now says nothing of those that were opened."""
    table, watched = open_table(tmp_path / "foreign"), Rewriting(lambda: None, -1, "")
    array: Any = group[name]
    array[:CHUNK] = np.nan
    with pytest.raises(InputChangedError, match=f"{name}/c/0.* was rewritten; start again"):
        fit(table, watched)
    shutil.rmtree(tmp_path / "foreign")
    with pytest.raises(InputChangedError, match="it is no longer there; start again"):
        fit(table, watched)
    assert watched.begun == []


@pytest.mark.parametrize("name", ["X", "y"])
def test_rewritten_between_two_sweeps(tmp_path: Path, group: zarr.Group, sweeps: int, name: str) -> None:
    for number in range(1, sweeps):
        watched = Rewriting(rewriting(group, name), number, "end")
        with pytest.raises(InputChangedError, match=f"{name}/c/0.* was rewritten; start again"):
            fit(open_table(tmp_path / "foreign"), watched)
        # Of what has changed not a row more is read.
        assert len(watched.begun) == number


@pytest.mark.parametrize("name", ["X", "y"])
@pytest.mark.parametrize("when", ["begin", "advance"])
def test_rewritten_in_the_last_sweep(tmp_path: Path, group: zarr.Group, sweeps: int, name: str, when: str) -> None:
    watched = Rewriting(rewriting(group, name), sweeps, when)
    with (
        Checkpoints(tmp_path / "run", {}) as kept,
        pytest.raises(InputChangedError, match=f"{name}/c/0.* was rewritten; start again"),
    ):
        fit(open_table(tmp_path / "foreign"), watched, kept)
    with Checkpoints(tmp_path / "run", {}) as kept:
        # What a resumed run would go on with is of the rows as they were.
        assert len(kept.steps()) == sweeps - 1


@pytest.mark.parametrize("name", ["X", "y"])
def test_rewritten_after_the_last_sweep(tmp_path: Path, group: zarr.Group, sweeps: int, name: str) -> None:
    """Rows for the report's picture, and the digests of the rows that the model has seen, are read then."""
    with pytest.raises(InputChangedError, match=f"{name}/c/0.* was rewritten; start again"):
        fit(open_table(tmp_path / "foreign"), Rewriting(rewriting(group, name), sweeps, "end"))


def test_rewritten_after_the_last_sweep_of_an_update(tmp_path: Path, group: zarr.Group) -> None:
    fitted = KernelRidge(8, lengthscale=1.0, alpha=0.1, random_state=0).fit(X[:CHUNK], Y[:CHUNK]).model_
    watched = Rewriting(rewriting(group, "y"), 1, "end")
    with pytest.raises(InputChangedError, match=r"y/c/0.* was rewritten; start again"):
        update_model(fitted, open_table(tmp_path / "foreign"), Session(progress=watched))
    assert len(watched.begun) == 1


@pytest.mark.parametrize("name", ["X", "y"])
def test_rewritten_while_they_are_ingested(
    tmp_path: Path, group: zarr.Group, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, rewrite = ChunkWriter.append, rewriting(group, name)

    def rewritten(self: ChunkWriter, *arguments: Any) -> None:
        append(self, *arguments)
        rewrite()

    monkeypatch.setattr(ChunkWriter, "append", rewritten)
    with pytest.raises(InputChangedError, match=f"{name}/c/0.* was rewritten; start again"):
        ingest(tmp_path / "foreign", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_what_a_run_pins_of_rows_of_others(tmp_path: Path, group: zarr.Group) -> None:
    pins = open_table(tmp_path / "foreign").run_pins
    # A copy with its times, as of a backup that is restored, is gone on with.
    shutil.copytree(tmp_path / "foreign", tmp_path / "copy")
    assert open_table(tmp_path / "copy").run_pins == pins
    for name in ("X", "y"):
        before = open_table(tmp_path / "foreign").run_pins
        rewriting(group, name)()
        after = open_table(tmp_path / "foreign").run_pins
        assert after["table"] == before["table"]
        assert after["chunk_times"] != before["chunk_times"]
    ingest(X, tmp_path / "ours", chunk_rows=CHUNK)
    assert open_table(tmp_path / "ours").run_pins.keys() == {"table", "rows"}


class Stamped(ConstantRows):
    """Rows of others, by the times of their chunk files."""

    stamp = "times "


def test_rows_that_follow_from_rows_of_others_are_pinned_by_their_times() -> None:
    rows, entries = Stamped(1.0, 40, "X"), Stamped(1.0, 41, "entries")
    assert ColumnRows(rows, 0, "y").stamp == rows.stamp
    assert PartWeights(ContentParts(rows, 2), (0,), None).stamp == rows.stamp
    assert PartWeights(ContentParts(rows, 2), (0,), Stamped(1.0, 40, "w")).stamp == 2 * rows.stamp
    assert SparseRows(CSRParts(entries, entries, entries), 3, 1, CHUNK).stamp == 3 * rows.stamp


def test_the_rows_of_a_factor_are_pinned_by_the_times_of_their_chunks(
    tmp_path: Path, group: zarr.Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that was written is gone on with; its rows must be those of the rest."""
    create, pinned = RowSink.create, list[Any]()

    def created(*given: Any, **options: Any) -> RowSink:
        pinned.append(options["fingerprint"])
        return create(*given, **options)

    monkeypatch.setattr(RowSink, "create", created)
    for seconds in (0, 0, 60):
        os.utime(tmp_path / "foreign" / "X" / "c" / "0" / "0", (seconds, seconds))
        factorize(tmp_path / "foreign", tmp_path / "F", n_components=8, lengthscale=1.0, overwrite=True)
    assert pinned[0] == pinned[1] != pinned[2]


def test_rewritten_before_a_run_is_resumed(
    tmp_path: Path, group: zarr.Group, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sweeps of the rows as they were would be mixed with sweeps of those that there are now."""
    sweep, done = Session.sweep, []

    def interrupted(self: Session, *arguments: Any) -> Any:
        if done:
            raise KeyboardInterrupt
        done.append(arguments)
        return sweep(self, *arguments)

    command = ["fit", str(tmp_path / "foreign"), str(tmp_path / "model"), "--basis", "8", "--scheduler", "threads"]
    with monkeypatch.context() as patched:
        patched.setattr(Session, "sweep", interrupted)
        assert main(command) == 130
    rewriting(group, "X")()
    assert main([*command, "--resume"]) == 1
    error = capsys.readouterr().err
    assert "began with a table whose chunks had other sizes or times" in error
    assert "options" not in error
    assert not (tmp_path / "model").exists()
    assert main(command) == 0


@pytest.mark.parametrize("when", ["before", "advance"])
def test_rewritten_while_predictions_are_written(tmp_path: Path, group: zarr.Group, when: str) -> None:
    fitted = KernelRidge(8, lengthscale=1.0, alpha=0.1, random_state=0).fit(X, Y).model_
    table = open_table(tmp_path / "foreign").without_targets()
    rewrite = rewriting(group, "X")
    watched = Rewriting(rewrite, 1, when)
    if when == "before":
        rewrite()
    work = fitted.outputs(std=False)
    sink = RowSink.create(tmp_path / "out", ROWS, work.columns, CHUNK)
    with pytest.raises(InputChangedError, match="was rewritten"):
        Session(progress=watched).write(work, fitted.prepare(table), sink, "predict")
    sink.abort()
    assert len(watched.begun) == (0 if when == "before" else 1)
    assert not (tmp_path / "out").exists()
