"""A store that grows, followed in this process: what is folded when, what passes, what ends it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from updates import FITTED, M, X, Y, check_is_refit, fit, store_of_fitted_rows, update
from watched import QUICK, Watched, append, by_hand, follower

from streamkernel import follow, open_table
from streamkernel.errors import (
    RunLockedError,
)
from streamkernel.following import follower as following
from streamkernel.following import update_saved as updating_saved
from streamkernel.following._model_cache import CachedModel
from streamkernel.following.follower import Fold, Limits
from streamkernel.models import RidgeModel


@pytest.fixture
def model(store: Path) -> Path:
    """Fitted to the rows of the store."""
    path = store.with_name("model")
    fit(open_table(store)).save(path)
    return path


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


@settings(max_examples=4)
@given(st.lists(st.tuples(st.integers(1, 300), st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_any_sequence_of_appends_and_restarts(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool, bool]]
) -> None:
    """The bits of one update for each step; a step is an append, or two, and perhaps another follower after it."""
    folder = tmp_path_factory.mktemp("sequence")
    store = store_of_fitted_rows(folder / "store")
    expected = fit(open_table(X[:FITTED], Y[:FITTED]))
    expected.save(folder / "model")
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
    kept = CachedModel(str(model), lambda path: loads.append(path) or RidgeModel.load(path))
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


@pytest.mark.slow
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
