"""A store that grows, followed in this process: what is folded when, what passes, what ends it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zarr_of_chunks
from updates import FITTED, M, X, Y, check_is_refit, fit, update

from streamkernel import append_rows, follow, ingest, open_table
from streamkernel.engine import Session, ThreadExecutor
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
from streamkernel.estimators import RidgeModel, follower_lock, following, updating_saved
from streamkernel.estimators.follower_lock import only_follower
from streamkernel.estimators.following import Fold, Follower, Limits
from streamkernel.estimators.kept_in_memory import KeptInMemory
from streamkernel.estimators.passing import Trouble, may_pass
from streamkernel.estimators.updating_saved import update_saved
from streamkernel.table.generation import table_generation

QUICK: dict[str, Any] = {"interval": 0.01}


@pytest.fixture
def model(store: Path) -> Path:
    """Fitted to the rows of the store."""
    path = store.with_name("model")
    fit(open_table(store)).save(path)
    return path


def append(store: Path, start: int, stop: int) -> None:
    append_rows(open_table(X[start:stop], Y[start:stop]), store)


def by_hand(model: Path, store: Path, *rows: int) -> None:
    table = open_table(store)
    update_saved(
        model, RidgeModel.load, table.slice(*rows) if rows else table, lambda kept: Session(checkpoints=kept), stale=1e9
    )


def test_each_append_is_folded_in(store: Path, model: Path) -> None:
    ends = iter([1510, 2200, M])
    folds: list[Fold] = []

    def next_append(fold: Fold) -> None:
        folds.append(fold)
        assert RidgeModel.load(model).digest == fold.digest
        with contextlib.suppress(StopIteration):
            append(store, fold.rows, next(ends))

    append(store, FITTED, 1501)
    done = follow(store, model, until_rows=M, on_fold=next_append, **QUICK)
    assert [fold.rows for fold in folds] == [1501, 1510, 2200, M]
    assert [fold.rows_folded for fold in folds] == [1, 9, 690, 800]
    assert (done.ended, done.folds, done.rows_folded, done.rows, done.retries) == ("rows", 4, M - FITTED, M, 0)
    assert done.digest == folds[-1].digest
    new = RidgeModel.load(model)
    check_is_refit(new, X, Y)
    assert new.config["seen"][0]["rows"] == [[0, M]]
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "store"]


@settings(max_examples=8)
@given(st.lists(st.tuples(st.integers(1, 300), st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_any_sequence_of_appends_and_restarts(
    tmp_path_factory: pytest.TempPathFactory, fitted: RidgeModel, steps: list[tuple[int, bool, bool]]
) -> None:
    """The bits of one update for each step; a step is an append, or two, and perhaps another follower after it."""
    folder = tmp_path_factory.mktemp("sequence")
    store, expected = folder / "store", fitted
    ingest(open_table(X[:FITTED], Y[:FITTED]), store, dtype="float64", chunk_rows=200)
    fitted.save(folder / "model")
    queue, at = list(steps), FITTED

    def grow() -> None:
        nonlocal at, expected
        size, _, twice = queue[0]
        for rows in (size // 2, size - size // 2) if twice and size > 1 else (size,):
            append(store, at, at + rows)
            at += rows
        expected = update(expected, open_table(store), stale=1e9).model

    def folded(fold: Fold) -> None:
        assert (fold.rows, fold.rows_folded, fold.digest) == (at, queue[0][0], expected.digest)
        restart = queue.pop(0)[1]
        if queue and not restart:
            grow()
        else:
            stop.set()

    while queue:
        stop = threading.Event()
        grow()
        follow(store, folder / "model", on_fold=folded, stop=stop, stale=1e9, **QUICK)
    final = RidgeModel.load(folder / "model")
    assert final.digest == expected.digest
    check_is_refit(final, X[:at], Y[:at])
    shutil.rmtree(folder)


def test_appends_that_came_during_a_fold_are_one(store: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, folds = updating_saved.update_model, []

    def slow(*arguments: Any, **options: Any) -> Any:
        if not folds:
            append(store, 1600, 1700)
            append(store, 1700, 1800)
        return work(*arguments, **options)

    monkeypatch.setattr(updating_saved, "update_model", slow)
    append(store, FITTED, 1600)
    follow(store, model, until_rows=1800, on_fold=folds.append, **QUICK)
    assert [fold.rows_folded for fold in folds] == [100, 200]
    check_is_refit(RidgeModel.load(model), X[:1800], Y[:1800])


def test_once(store: Path, model: Path) -> None:
    before = RidgeModel.load(model).digest
    done = follow(store, model, once=True)
    assert (done.ended, done.folds, done.rows, done.digest) == ("once", 0, FITTED, before)
    append(store, FITTED, M)
    assert follow(store, model, once=True).rows_folded == M - FITTED
    assert follow(store, model, seconds=0.05, **QUICK).ended == "time"
    assert follow(store, model, until_rows=5, **QUICK).ended == "rows"


# --- what is kept between two folds -----------------------------------------------------------------------------------


class Watched:
    """Counts, and appends the next rows after each fold."""

    def __init__(self, store: Path, *ends: int) -> None:
        self.store, self.ends, self.events = store, list(ends), []  # type: ignore[var-annotated]

    def folded(self, fold: Fold) -> None:
        self.events.append(fold.rows)
        if self.ends:
            append(self.store, fold.rows, self.ends.pop(0))

    def failed(self, error: Exception, seconds: float) -> None:
        self.events.append(type(error).__name__)

    def recovered(self) -> None:
        self.events.append("recovered")


def follower(store: Path, model: Path, watcher: Watched, **options: Any) -> Follower:
    @contextlib.contextmanager
    def executor() -> Iterator[ThreadExecutor]:
        watcher.events.append("started")
        yield ThreadExecutor(1)
        watcher.events.append("ended")

    fields: dict[str, Any] = {"executor": executor, "load": RidgeModel.load, "options": {}, **QUICK, **options}
    return Follower(store=str(store), model=str(model), watcher=watcher, **fields)


def test_executor_and_model_are_there_once(store: Path, model: Path) -> None:
    loads = []

    def load(path: Path) -> RidgeModel:
        loads.append(path)
        return RidgeModel.load(path)

    watched = Watched(store, 1700, 1800)
    append(store, FITTED, 1600)
    follower(store, model, watched, load=load, limits=Limits(rows=1800)).run()
    assert watched.events == ["started", 1600, 1700, 1800, "ended"]
    assert loads == [model]


def test_without_work_nothing_is_started_and_no_row_is_read(
    store: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, opened = Watched(store), []
    monkeypatch.setattr(following, "new_rows", lambda *given: opened.append(given) or open_table(store))
    follower(store, model, watched, limits=Limits(seconds=0.5)).run()
    assert watched.events == []
    assert len(opened) == 1


def test_an_update_by_hand_in_between_is_not_folded_twice(store: Path, model: Path) -> None:
    class Meddling(Watched):
        def folded(self, fold: Fold) -> None:
            super().folded(fold)
            if fold.rows == 1700:
                by_hand(model, store, 1700, 1750)

    watched = Meddling(store, 1700, 1800, 1900)
    append(store, FITTED, 1600)
    done = follower(store, model, watched, limits=Limits(rows=1900)).run()
    assert watched.events == ["started", 1600, 1700, 1800, 1900, "ended"]
    assert done.rows_folded == 400 - 50
    new = RidgeModel.load(model)
    check_is_refit(new, X[:1900], Y[:1900])
    assert new.config["updates"]["times"] == 5


def test_a_model_saved_is_read_again_only_if_another_took_its_place(store: Path, model: Path) -> None:
    loads = []
    kept = KeptInMemory(str(model), lambda path: loads.append(path) or RidgeModel.load(path))
    first = kept()
    assert kept() is first
    other = update(first, open_table(X[1600:1700], Y[1600:1700]), stale=1e9).model
    other.save(model, overwrite=True)
    kept.saved(other)
    assert kept() is other
    third = update(other, open_table(X[1700:1800], Y[1700:1800]), stale=1e9).model
    first.save(model, overwrite=True)
    # It was replaced between the saving and this line.
    kept.saved(third)
    assert kept.generation is None
    assert kept().digest == first.digest
    assert len(loads) == 2


_MEMORY = """
import sys, re, numpy as np
from streamkernel import KernelRidge, append_rows, follow, ingest, open_table
folder, n = sys.argv[1], 200
rng = np.random.default_rng(0)
def rows(m):
    X = rng.standard_normal((m, 3))
    return open_table(X, np.sin(X[:, 0]))
def resident():
    return int(re.search(r"VmRSS:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
ingest(rows(1000), folder + "/s", dtype="float64", chunk_rows=100)
KernelRidge(n).fit(open_table(folder + "/s")).save(folder + "/m")
found = []
def folded(fold):
    found.append(resident())
    append_rows(rows(50), folder + "/s")
append_rows(rows(50), folder + "/s")
follow(folder + "/s", folder + "/m", until_rows=1000 + 50 * 30, on_fold=folded, interval=0.01, stale=1e9)
print(found[4], found[-1], len(found))
"""


def test_memory_does_not_grow_with_the_folds(tmp_path: Path) -> None:
    """Of a model of 200 functions, about 1 MB, no other is kept for each fold."""
    command = [sys.executable, "-c", _MEMORY, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    fifth, last, folds = map(int, ended.stdout.split())
    print(f"resident after 5 folds {fifth / 1e6:.1f} MB, after {folds} {last / 1e6:.1f} MB")
    assert folds == 30
    assert last - fifth < 12e6


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_a_sweep_is_abandoned_cleanly_and_done_again(store: Path, model: Path) -> None:
    stop = threading.Event()

    class Saying:
        def begin(self, name: str, rows: int, tasks: int) -> None:
            stop.set()

        def advance(self, rows: int) -> None:
            raise AssertionError("the sweep went on")

        def end(self, seconds: float) -> None: ...
        def note(self, text: str) -> None: ...

    append(store, FITTED, M)
    before = RidgeModel.load(model).digest
    done = follow(store, model, stop=stop, progress=Saying(), **QUICK)
    assert (done.ended, done.folds, done.digest) == ("stopped", 0, before)
    assert RidgeModel.load(model).digest == before
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "store"]
    assert follow(store, model, once=True).rows == M


def test_one_follower_at_a_time(store: Path, model: Path) -> None:
    started, stop = threading.Event(), threading.Event()

    class Asked:
        def is_set(self) -> bool:
            started.set()
            return stop.is_set()

    first = threading.Thread(target=lambda: follow(store, model, stop=Asked(), **QUICK))
    first.start()
    try:
        assert started.wait(30)
        with pytest.raises(RunLockedError, match=r"being followed by process \d+ on .*, with the rows of .*store"):
            follow(store, model, once=True)
        # Another model is another matter.
        shutil.copytree(model, model.with_name("other"))
        assert follow(store, model.with_name("other"), once=True).ended == "once"
    finally:
        stop.set()
        first.join()
    assert follow(store, model, once=True).ended == "once"


# --- what goes wrong --------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("restarted", [False, True])
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
        assert may_pass(error, **usual) is passes, error
    assert not may_pass(StoreNotFoundError("path"), **{**usual, "begun": False})
    assert may_pass(RunLockedError("an update by hand"), **{**usual, "begun": False})
    assert may_pass(InputChangedError("model replaced"), **{**usual, "moved": True, "times": 99})
    assert may_pass(NonFiniteDataError("unwritten"), **{**usual, "foreign": True})
    assert may_pass(InputChangedError("being written"), **{**usual, "foreign": True})
    assert not may_pass(InputChangedError("changed"), **{**usual, "foreign": True, "times": 4})


def test_waiting_doubles_up_to_the_end_of_patience() -> None:
    now = [0.0]
    trouble, waits = Trouble(100.0, lambda: now[0]), []
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
