"""Workers that come, go, stop and lag in the middle of a sweep: real processes, the same bits, little work twice."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dask
import psutil
import pytest
from clusters import ROOT, Cluster, Process, wait_until
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from ordered_sums import ROWS, NotedSums, OrderedSums, layout, table

from streamkernel.engine import ThreadExecutor, _task_leaves
from streamkernel.engine._branches import Branches, branch_leaves
from streamkernel.engine._task_leaves import TaskSizes
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.cluster import DASK_CONFIG, ClusterExecutor, _executor
from streamkernel.engine.cluster._worker_tasks import Payload, combine_states

HERE = str(Path(__file__).parent)
Workers = Callable[[int], Cluster]  # the cluster, with so many


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler without workers: each process takes a second of a core to start."""
    folder = tmp_path_factory.mktemp("cluster")
    running = Cluster(folder, environment={"PYTHONPATH": os.pathsep.join([str(ROOT), HERE])})
    running.start(workers=0)
    try:
        yield running
    finally:
        running.stop()


def whole(worker: Process) -> bool:
    """Neither dead nor stopped."""
    with suppress(psutil.Error):
        return worker.alive and psutil.Process(worker.pid).status() != psutil.STATUS_STOPPED
    return False


@pytest.fixture
def cluster(started: Cluster) -> Workers:
    """With so many workers that are whole: those that earlier tests have left, and new ones in the places of others."""

    def of(workers: int) -> Cluster:
        left = [worker for worker in started.workers if whole(worker)]
        for worker in started.workers:
            if worker not in left[:workers] and worker.alive:
                started.kill(worker)
        started.workers[:] = left[:workers]
        started.add_workers(workers - len(started.workers))
        with Client(started.address) as client:
            # The scheduler has heard of the end of those that are gone.
            wait_until("the workers", started.scheduler, lambda: len(client.nthreads()) == workers, 60)
        return started

    return of


def noted(folder: Path, seconds: float = 0.2) -> NotedSums:
    notes = folder / "notes"
    notes.mkdir()
    return NotedSums(folder=str(notes), seconds=seconds)


def swept(cluster: Cluster, work: NotedSums, leaves: int, event: Callable[[int], None]) -> bytes:
    """The sums as bytes; `event` is called with the number of leaves that are done, from 1 to all."""
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        for _ in range(rows // ROWS):
            done += 1
            event(done)

    with dask.config.set(DASK_CONFIG), Client(cluster.address) as client:
        state = ClusterExecutor(client, remote=False).reduce(work, table(leaves), layout(leaves), advance)
    assert done == leaves
    return bytes(state["sums"].tobytes())


def expected(leaves: int) -> bytes:
    state = ThreadExecutor(1).reduce(OrderedSums(), table(leaves), layout(leaves), lambda rows: None)
    return bytes(state["sums"].tobytes())


def test_workers_that_join_get_leaves(cluster: Workers, tmp_path: Path) -> None:
    running = cluster(1)
    work, leaves = noted(tmp_path), 60

    def event(done: int) -> None:
        if done == 4:
            running.add_workers(2)

    assert swept(running, work, leaves, event) == expected(leaves)
    runs = Counter(process for _, process in work.runs())
    assert set(runs) == {worker.pid for worker in running.workers}
    assert min(runs.values()) > leaves // 10


def test_workers_without_a_task_do_not_repeat_those_of_others(cluster: Workers, tmp_path: Path) -> None:
    """More workers than leaves, which take longer than the least patience: none is late."""
    running = cluster(3)
    work = noted(tmp_path, 3.0)
    assert swept(running, work, 2, lambda done: None) == expected(2)
    assert len(work.runs()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_branch_of_several_leaves_loses_a_worker(
    cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Sums of its parts were with the worker: the branch runs again, and no other one."""
    monkeypatch.setattr(_executor, "branch_leaves", lambda leaves, state_bytes, threads, seconds: 8)
    running = cluster(3)
    work, leaves = noted(tmp_path), 64

    def event(done: int) -> None:
        if done == 44:
            os.kill(running.workers[0].pid, number)

    assert swept(running, work, leaves, event) == expected(leaves)
    assert len(work.runs()) - leaves <= 3 * 8


@pytest.mark.parametrize("number", [pytest.param(signal.SIGSTOP, marks=pytest.mark.slow), signal.SIGKILL])
def test_tasks_of_several_leaves_lose_a_worker(
    cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """It costs the tasks that it had, one that ran and one that waited, and what was not added up yet."""
    monkeypatch.setattr(_executor, "branch_leaves", lambda leaves, state_bytes, threads, seconds: 4)
    monkeypatch.setattr(_task_leaves, "task_sizes", lambda leaves, threads, seconds, branch: TaskSizes(1, 4, threads))
    running = cluster(3)
    work, leaves = noted(tmp_path, 0.1), 50

    def event(done: int) -> None:
        if done == (30 if number == signal.SIGKILL else leaves - 8):
            os.kill(running.workers[0].pid, number)

    assert swept(running, work, leaves, event) == expected(leaves)
    again = [leaf for leaf, runs in Counter(leaf for leaf, _ in work.runs()).items() if runs > 1]
    assert len(again) <= 3 * 4


@pytest.mark.parametrize("killed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_lost_worker_costs_what_it_ran(cluster: Workers, tmp_path: Path, killed: int) -> None:
    """Its sums are with the driver: not all of its leaves run again."""
    running = cluster(3)
    work, leaves = noted(tmp_path, 0.1), 90

    def event(done: int) -> None:
        if done == leaves // 2:
            for worker in running.workers[:killed]:
                running.kill(worker)

    assert swept(running, work, leaves, event) == expected(leaves)
    assert len(work.runs()) - leaves <= 4 * killed


@pytest.mark.parametrize(("workers", "leaves"), [(3, 30), pytest.param(2, 16, marks=pytest.mark.slow)])
def test_a_stopped_worker_does_not_hold_the_sweep(cluster: Workers, tmp_path: Path, workers: int, leaves: int) -> None:
    """It is not dead: nothing is heard of it, and its connections stay open. Its leaves are given to others once."""
    running = cluster(workers)
    work, stopped = noted(tmp_path), list[int]()

    def event(done: int) -> None:
        if done == leaves - 2 * workers - 2:
            stopped.append(running.workers[0].pid)
            os.kill(stopped[0], signal.SIGSTOP)

    assert swept(running, work, leaves, event) == expected(leaves)
    times = Counter(leaf for leaf, _ in work.runs())
    again = [leaf for leaf, runs in times.items() if runs > 1]
    assert len(again) <= 4
    assert max(times.values()) <= 2
    assert all({process for leaf, process in work.runs() if leaf == each} - set(stopped) for each in again)


@pytest.mark.slow
def test_all_workers_are_replaced(cluster: Workers, tmp_path: Path) -> None:
    """Spot machines: every worker of the beginning is gone at the end."""
    running = cluster(2)
    work, leaves, first = noted(tmp_path, 0.1), 60, list(running.workers)

    def event(done: int) -> None:
        if done == 10:
            running.add_workers(2)
        if done in (20, 30):
            running.kill(first[done // 10 - 2])

    assert swept(running, work, leaves, event) == expected(leaves)
    assert len(work.runs()) - leaves <= 8


@given(
    leaves=st.integers(1, 130),
    size=st.sampled_from([1, 2, 4, 8, 64]),
    summed=st.sampled_from([2, 4, 8]),
    data=st.data(),
)
def test_tasks_and_branches_are_parts_of_the_tree(leaves: int, size: int, summed: int, data: st.DataObject) -> None:
    """Words in place of sums tell the order: the same for tasks and branches of any sizes, in any order."""

    def joined(left: str, right: str) -> str:
        return f"({left} {right})"

    def of(payload: Any, places: Any, *states: str) -> str:
        assert len(states) <= summed
        return cast("str", combine_states(payload, places, *states))  # type: ignore[arg-type]

    def summed_up(places: Sequence[range], states: Sequence[str]) -> str:
        return of(Payload(None, SimpleNamespace(combine=joined)), [(each.start, each.stop) for each in places], *states)

    whole: PairingTree[str] = PairingTree(leaves, joined)
    for leaf in range(leaves):
        whole.add(leaf, str(leaf))
    tasks, first = list[range](), 0
    while first < leaves:
        sizes = [each for each in (1, 2, 4, 8, 64) if each <= size and first % each == 0]
        tasks.append(range(first, min(first + data.draw(st.sampled_from(sizes)), leaves)))
        first = tasks[-1].stop
    branches: Branches[str] = Branches(leaves, size, summed, summed_up, joined)  # type: ignore[arg-type]
    for few in data.draw(st.permutations(tasks)):
        # A task adds its leaves as a sum adds leaves.
        one: PairingTree[str] = PairingTree(len(few), joined)
        for leaf in few:
            one.add(leaf - few.start, str(leaf))
        complete = branches.add_leaves(few, one.root())
        if complete is not None:
            branches.sums.add(branches.of(few.start), complete)  # type: ignore[arg-type]
    assert branches.sums.root() == whole.root()


@pytest.mark.parametrize(
    ("threads", "state", "size"),
    [
        (2, 8 << 20, 1),  # each leaf comes to the driver: two states of n = 1,000 a second
        (64, 8 << 20, 32),
        (1000, 8 << 20, 512),
        (1000, 100, 64),  # small states are not many a second either
        (4, 128 << 20, 32),  # n = 4,000
    ],
)
def test_the_driver_takes_in_little(threads: int, state: int, size: int) -> None:
    assert branch_leaves(16_384, state, threads, 1.0) == branch_leaves(16_384, state, threads, 60.0) == size
    assert branch_leaves(4, state, threads, 1.0) <= 4
    assert branch_leaves(16, 8 << 20, threads, 0.0) == 16  # of no rows that take a time
    assert branch_leaves(16_384, state, threads, 0.25) in (size, 2 * size, 4 * size)  # four times as many a second
    assert threads * state / size <= 25e6 or size == 16_384
