"""What goes wrong while a store is followed, what of it passes, and stores of others."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from problems import zarr_of_chunks
from updates import FITTED, X, Y, check_is_refit, fit
from watched import QUICK, Watched, append, follower

from streamkernel import append_rows, follow, ingest, open_table
from streamkernel.blobs import blobs_at
from streamkernel.cli import main
from streamkernel.engine import Session
from streamkernel.errors import (
    ClusterError,
    CorruptChunkError,
    InputChangedError,
    ModelFormatError,
    NonFiniteDataError,
    NumericalError,
    ParameterError,
    ResourceLimitError,
    RunLockedError,
    SecurityError,
    ShapeMismatchError,
    StoreNotFoundError,
    StreamKernelWarning,
)
from streamkernel.following import _lock as follower_lock
from streamkernel.following import update_saved as updating_saved
from streamkernel.following._lock import only_follower
from streamkernel.following._temporary_errors import ErrorStreak, is_temporary
from streamkernel.following.follower import Fold, Limits
from streamkernel.models import RidgeModel
from streamkernel.table.generation import table_generation


@pytest.fixture
def model(store: Path) -> Path:
    """Fitted to the rows of the store."""
    path = store.with_name("model")
    fit(open_table(store)).save(path)
    return path


def test_a_store_that_is_away_for_a_moment(store: Path, model: Path) -> None:
    class Hiding(Watched):
        def folded(self, fold: Fold) -> None:
            super().folded(fold)
            if fold.rows == 1600:
                append(store, 1600, 1700)
                store.rename(store.with_name("away"))

        def failed(self, error: Exception, seconds: float) -> None:
            super().failed(error, seconds)
            if len(self.events) == 4:
                store.with_name("away").rename(store)

    watched = Hiding(store)
    append(store, FITTED, 1600)
    done = follower(store, model, watched, limits=Limits(rows=1700)).run()
    missing = "StoreNotFoundError"
    assert watched.events == ["started", 1600, missing, missing, "recovered", 1700, "ended"]
    assert done.retries == 2
    check_is_refit(RidgeModel.load(model), X[:1700], Y[:1700])


def test_a_lost_cluster_is_asked_for_again(store: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, calls = updating_saved.update_model, []

    def losing(model: Any, table: Any, session: Callable[[], Session], **options: Any) -> Any:
        calls.append(table)
        if len(calls) == 2:
            raise ClusterError("the scheduler was lost")
        return work(model, table, session, **options)

    monkeypatch.setattr(updating_saved, "update_model", losing)
    watched = Watched(store, 1700)
    append(store, FITTED, 1600)
    follower(store, model, watched, limits=Limits(rows=1700)).run()
    assert watched.events == ["started", 1600, "ended", "ClusterError", "started", "recovered", 1700, "ended"]


@pytest.mark.parametrize("restarted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_store_that_shrank_or_is_another_ends_it(store: Path, model: Path, restarted: bool) -> None:
    shrunk, other = store.with_name("shrunk"), store.with_name("other")
    append(store, FITTED, 1800)
    ingest(open_table(X[:1600], Y[:1600]), shrunk, dtype="float64", chunk_rows=200)
    ingest(open_table(X[1000:], Y[1000:]), other, dtype="float64", chunk_rows=200)
    for replacement, words in (
        (shrunk, "shrunk|ends within a piece" if restarted else "1600 rows, it had 1800: it has shrunk"),
        (other, "it is another one"),
    ):

        def replace(fold: Fold | None = None, by: Path = replacement) -> None:
            shutil.rmtree(store)
            shutil.copytree(by, store)

        fit(open_table(X[:FITTED], Y[:FITTED])).save(model, overwrite=True)
        if restarted:
            follow(store, model, once=True)
            replace()
        with pytest.raises((InputChangedError, ParameterError), match=words):
            follow(store, model, on_fold=replace, patience=0.5, **QUICK)
        assert RidgeModel.load(model).config["totals"]["rows"] == 1800
        shutil.rmtree(store)
        ingest(open_table(X[:1800], Y[:1800]), store, dtype="float64", chunk_rows=200)
    assert not model.with_name(".model.follow").exists()


def test_the_file_of_a_killed_follower_is_removed_by_an_update(store: Path, model: Path) -> None:
    file = model.with_name(".model.follow")
    command = ["update", str(model), str(store), "--scheduler", "threads", "--quiet"]
    with only_follower(str(model), str(store)):
        assert main(command) == 0
        assert file.exists()
    file.write_text("{}")
    assert main(command) == 0
    assert not file.exists()


def test_patience_has_an_end(store: Path, model: Path) -> None:
    failed = []
    with pytest.raises(StoreNotFoundError, match="no store at"):
        follow(
            store,
            model,
            on_fold=lambda fold: shutil.rmtree(store),
            on_trouble=lambda error, seconds: failed.append(seconds),
            patience=0.6,
            **QUICK,
        ) if append(store, FITTED, 1600) is None else None
    assert failed[0] == 0.25
    assert sum(failed) <= 0.61


def test_what_is_wrong_from_the_first(store: Path, model: Path) -> None:
    empty = store.with_name("empty")
    for arguments, kind, words in (
        ((store.with_name("none"), model), StoreNotFoundError, "no store at"),
        ((store, store.with_name("none")), StoreNotFoundError, "nothing at"),
        ((store, empty / "none"), StoreNotFoundError, "nothing at"),
        ((store, store), ModelFormatError, "is not a saved model"),
    ):
        with pytest.raises(kind, match=words):
            follow(*arguments, **QUICK)
    for options in ({"interval": 0}, {"patience": -1}, {"seconds": "1"}, {"until_rows": 0}, {"stale": -1}):
        with pytest.raises(ParameterError):
            follow(store, model, **options)
    append(store, FITTED, 1600)
    with pytest.raises(ResourceLimitError):
        follow(store, model, memory_limit="1kB")
    with pytest.raises(ParameterError, match="has no 'beta'"):
        follow(store, model, beta=1.0)
    assert RidgeModel.load(model).config["updates"] is None
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "store"]


def test_a_stale_basis_is_warned_of_and_grows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 3))
    rows[1000:] += 3.0
    y = np.sin(rows[:, 0])
    ingest(open_table(rows[:1000], y[:1000]), tmp_path / "s", dtype="float64", chunk_rows=256)
    fit(open_table(tmp_path / "s"), n_components=40).save(tmp_path / "m")
    shutil.copytree(tmp_path / "m", tmp_path / "n")
    append_rows(open_table(rows[1000:], y[1000:]), tmp_path / "s")
    folds: list[Fold] = []
    with pytest.warns(StreamKernelWarning, match="the basis is stale"):
        follow(tmp_path / "s", tmp_path / "n", once=True, on_fold=folds.append)
    with pytest.warns(StreamKernelWarning, match="10 functions were added"):
        follow(tmp_path / "s", tmp_path / "m", once=True, grow=10, on_fold=folds.append)
    assert [(fold.stale, fold.grown, fold.basis_size, fold.rows) for fold in folds] == [
        (True, 0, 40, 2000),
        (False, 10, 50, 2000),
    ]
    assert folds[0].residual_of_new is not None
    assert folds[0].residual_of_new > 2 * folds[0].residual_of_fit


def test_which_errors_may_pass() -> None:
    usual = {"begun": True, "moved": False, "foreign": False, "times": 0}
    for error, passes in (
        (StoreNotFoundError("gone"), True),
        (CorruptChunkError("torn"), True),
        (RunLockedError("an update by hand"), True),
        (ClusterError("lost"), True),
        (OSError(5, "input/output"), True),
        (InputChangedError("changed"), False),
        (ModelFormatError("another kind"), False),
        (NonFiniteDataError("NaN"), False),
        (ShapeMismatchError("y is short"), False),
        (NumericalError("NaN"), False),
        (ResourceLimitError("memory"), False),
        (SecurityError("unencrypted"), False),
        (ParameterError("wrong"), False),
        (AssertionError(), False),
    ):
        assert is_temporary(error, **usual) is passes, error
    assert not is_temporary(StoreNotFoundError("path"), **{**usual, "begun": False})
    assert is_temporary(RunLockedError("an update by hand"), **{**usual, "begun": False})
    assert is_temporary(InputChangedError("model replaced"), **{**usual, "moved": True, "times": 99})
    assert is_temporary(NonFiniteDataError("unwritten"), **{**usual, "foreign": True})
    assert is_temporary(InputChangedError("being written"), **{**usual, "foreign": True})
    assert not is_temporary(InputChangedError("changed"), **{**usual, "foreign": True, "times": 4})


def test_waiting_doubles_up_to_the_end_of_patience() -> None:
    now = [0.0]
    trouble, waits = ErrorStreak(100.0, lambda: now[0]), []
    while (seconds := trouble.again()) is not None:
        waits.append(seconds)
        now[0] += seconds
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 8.25]
    assert trouble.over()
    assert not trouble.over()
    assert trouble.again() == 0.25


# --- stores of others -------------------------------------------------------------------------------------------------


def test_arrays_of_others_that_grow_in_place(tmp_path: Path) -> None:
    """X first, then y, each resized before its chunks are written: what is seen in between is not folded in."""
    path = zarr_of_chunks(tmp_path / "s", X[:1400], Y[:1400], 200)
    fit(open_table(path)).save(tmp_path / "m")
    failures: list[str] = []
    unfinished = iter(range(3))

    def write(what: str, first: int, last: int) -> None:
        group = zarr.open_group(path, mode="r+")
        values = {"X": X, "y": Y}[what][first:last]
        array: Any = group[what]
        array.resize((last, *array.shape[1:]))
        array[first:last] = values.reshape(last - first, *array.shape[1:])

    def go_on(error: Exception, seconds: float) -> None:
        failures.append(type(error).__name__)
        step = next(unfinished)
        if step == 0:
            array: Any = zarr.open_group(path, mode="r+")["y"]
            array.resize((1600, *array.shape[1:]))
        elif step == 1:
            write("y", 1400, 1600)

    write("X", 1400, 1600)
    done = follow(path, tmp_path / "m", until_rows=1600, on_trouble=go_on, interval=0.02)
    assert failures == ["IncompleteStoreError", "MissingChunkError"]
    assert (done.folds, done.rows_folded) == (1, 200)
    write("X", 1600, 1700)
    write("y", 1600, 1700)
    assert follow(path, tmp_path / "m", until_rows=1700, interval=0.02).rows_folded == 100
    write("X", 1700, 1900)
    write("y", 1700, 1900)
    follow(path, tmp_path / "m", once=True, interval=0.02)
    new = RidgeModel.load(tmp_path / "m")
    check_is_refit(new, X[:1900], Y[:1900])
    assert new.config["seen"][0]["rows"] == [[0, 1900]]


def test_generations_of_tables(store: Path, tmp_path: Path) -> None:
    assert table_generation(tmp_path / "none") is None
    ours, path = table_generation(store), zarr_of_chunks(tmp_path / "s", X[:1400], Y[:1400], 200)
    theirs = table_generation(path)
    open_table(store).read(0, 10)
    assert (table_generation(store), table_generation(path)) == (ours, theirs)
    append(store, FITTED, 1600)
    array: Any = zarr.open_group(path, mode="r+")["X"]
    array.resize((1500, X.shape[1]))
    assert table_generation(store) != ours
    assert table_generation(path) != theirs


def test_generations_of_arrays_of_others_at_a_url(tmp_path: Path) -> None:
    path, place = Path(zarr_of_chunks(tmp_path / "s", X[:1400], Y[:1400], 200)), f"memory://{uuid.uuid4().hex}/s"
    blobs = blobs_at(place)
    for file in path.rglob("*"):
        if file.is_file():
            blobs.write(str(file.relative_to(path)), file.read_bytes())
    before = table_generation(place)
    assert before is not None
    assert table_generation(place) == before
    array: Any = zarr.open_group(path, mode="r+")["X"]
    array.resize((1500, X.shape[1]))
    blobs.write("X/zarr.json", (path / "X" / "zarr.json").read_bytes())
    assert table_generation(place) != before


# --- in an object store -----------------------------------------------------------------------------------------------


def test_one_follower_of_a_model_at_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_lock, "_TTL", 0.3)
    model = "memory://followed/model"
    with only_follower(model, "memory://followed/store") as check:
        with (
            pytest.raises(RunLockedError, match=r"process \d+ on .*, with the rows of memory://followed/store"),
            only_follower(model, "elsewhere"),
        ):
            pass
        check()
    with only_follower(model, "elsewhere"):
        pass


@pytest.mark.slow
def test_store_and_model_at_urls(s3: str) -> None:
    store, model = f"{s3}/store", f"{s3}/model"
    ingest(open_table(X[:FITTED], Y[:FITTED]), store, dtype="float64", chunk_rows=200)
    fit(open_table(store)).save(model)
    watched = Watched(store, 1700)  # type: ignore[arg-type]
    append_rows(open_table(X[FITTED:1600], Y[FITTED:1600]), store)
    loads: list[Any] = []

    def load(path: Any) -> RidgeModel:
        loads.append(path)
        return RidgeModel.load(path)

    follower(store, model, watched, load=load, limits=Limits(rows=1700)).run()  # type: ignore[arg-type]
    assert watched.events == ["started", 1600, 1700, "ended"]
    assert loads == [model]
    check_is_refit(RidgeModel.load(model), X[:1700], Y[:1700])
