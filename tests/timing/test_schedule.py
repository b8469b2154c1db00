"""The formula for the seconds of a sweep, against a simulation of its schedule."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from simulated_sweep import simulated_seconds

from streamkernel.engine import branch_leaves, sum_tasks, summed_states, task_sizes
from streamkernel.timing import BUILT_IN, Rates, Slots, SweepCost, sweep_seconds

MEGABYTE = 1_000_000


def rates(**values: Any) -> Rates:
    seconds = dict.fromkeys(("sweep_seconds", "thread_sweep_seconds", "task_seconds", "check_seconds"), 0.0)
    fast = dict.fromkeys(("read_bytes", "memory_bytes", "network_bytes"), 1e30)
    return BUILT_IN.changed(**{"busy": 1.0, "storage_bytes": None, **seconds, **fast, **values})


def seconds(cost: SweepCost, slots: Slots, of: Rates) -> float:
    return sweep_seconds(cost, slots, of).seconds


@given(
    leaves=st.integers(1, 260),
    slots=st.integers(1, 64),
    combine=st.floats(0.0, 0.05),
    send=st.floats(0.0, 0.05),
    task=st.floats(0.0, 0.01),
    megabytes=st.sampled_from([0, 1, 8, 50]),
)
@example(leaves=256, slots=64, combine=0.05, send=0.05, task=0.01, megabytes=1)
@example(leaves=64, slots=64, combine=0.0, send=0.0, task=0.01, megabytes=8)
@example(leaves=260, slots=1, combine=0.0, send=0.0, task=0.01, megabytes=50)
def test_the_formula_is_the_schedule_to_some_percent(
    leaves: int, slots: int, combine: float, send: float, task: float, megabytes: int
) -> None:
    """Seconds of the tasks are shares of those of a leaf, which takes a second. Larger states have larger branches."""
    size = megabytes * MEGABYTE
    # 3 bytes are moved for a byte of a sum.
    known = rates(task_seconds=task, memory_bytes=3 * size / combine if combine and size else 1e30)
    known = known.changed(network_bytes=size / send if send and size else 1e30)
    if not size:
        combine = send = 0.0
    of = branch_leaves(leaves, size, slots, 1.0), summed_states(size)
    found = seconds(SweepCost(leaves, 1.0, state_bytes=size), Slots(slots), known)
    assert found == pytest.approx(simulated_seconds(leaves, slots, 1.0, combine, send, task, *of), rel=0.2)


@given(leaves=st.integers(1, 1000), slots=st.integers(1, 100))
def test_without_costs_beside_the_leaves_it_is_exact(leaves: int, slots: int) -> None:
    assert seconds(SweepCost(leaves, 1.0), Slots(slots), rates()) == pytest.approx(math.ceil(leaves / slots))
    assert simulated_seconds(leaves, slots, 1.0, branch=branch_leaves(leaves, 0, slots, 1.0)) == pytest.approx(
        math.ceil(leaves / slots)
    )


@given(leaves=st.integers(1, 2000), workers=st.integers(1, 500), state=st.floats(0, 1e8), payload=st.floats(0, 1e8))
@example(leaves=3, workers=3, state=0.0, payload=2e7)
@example(leaves=4, workers=3, state=7.4e6, payload=8.4e7)
@example(leaves=61, workers=202, state=9.7e6, payload=0.0)
def test_more_work_takes_longer(leaves: int, workers: int, state: float, payload: float) -> None:
    known, slots = BUILT_IN, Slots(workers)
    cost = SweepCost(leaves, 1.0, 1e6, state, payload)
    least = seconds(cost, slots, known) * (1.0 - 1e-12)
    for larger in (
        SweepCost(leaves, 2.0, 1e6, state, payload),
        SweepCost(leaves, 1.0, 2e6, state, payload),
        SweepCost(leaves, 1.0, 1e6, state, payload + 1e6),
    ):
        assert seconds(larger, slots, known) >= 0.95 * least
    # More leaves and larger states are cut into other tasks. A scheduler may hand these out faster by some percent, and
    # fewer workers, which have larger tasks, may get the payload in one round less.
    for larger in (SweepCost(leaves + 1, 1.0, 1e6, state, payload), SweepCost(leaves, 1.0, 1e6, state + 1e6, payload)):
        assert seconds(larger, slots, known) >= 0.8 * least - payload / known.network_bytes


def test_a_slow_scheduler_is_the_bound() -> None:
    slow = rates(task_seconds=0.02)
    found = sweep_seconds(SweepCost(10_000, 0.1), Slots(1000), slow)
    # Tasks have several leaves, for a scheduler of 3 ms a task. This one needs more for them, and for their sums.
    counts = task_sizes(10_000, 1000, 0.1, 64).counts(10_000)
    tasks = sum(counts.values())
    assert tasks < 3000
    sums = sum_tasks(counts, 64, 8)
    assert sums < 0.5 * tasks
    assert (found.bound, found.seconds) == ("scheduler", pytest.approx(0.02 * (tasks + sums), rel=0.1))
    few = sweep_seconds(SweepCost(10_000, 0.1), Slots(10), rates(task_seconds=0.001))
    assert few.bound == "work"


def test_a_driver_with_a_slow_network_is_the_bound() -> None:
    """Two workers send every sum, because branches are sized for 25 MB a second."""
    cost = SweepCost(100, 1.0, state_bytes=8e6)
    found = sweep_seconds(cost, Slots(2), rates(network_bytes=2e6))
    assert (found.bound, found.seconds) == ("driver", pytest.approx(400.0, rel=0.02))
    assert found.network_bytes == 100 * 8e6
    assert sweep_seconds(cost, Slots(2), rates(network_bytes=2e7)).bound == "work"


def test_reading_is_hidden_behind_work_until_it_is_the_longer() -> None:
    known = rates(read_bytes=1e6)
    assert seconds(SweepCost(8, 1.0, leaf_bytes=0.9e6), Slots(2), known) == pytest.approx(4.0)
    found = sweep_seconds(SweepCost(8, 1.0, leaf_bytes=3e6), Slots(2), known)
    assert (found.bound, found.seconds) == ("reading", pytest.approx(12.0))
    # The storage gives all workers together no more than this.
    shared = sweep_seconds(SweepCost(8, 1.0, leaf_bytes=3e6), Slots(8), rates(read_bytes=1e7, storage_bytes=1e6))
    assert (shared.bound, shared.seconds) == ("storage", pytest.approx(24.0))


def test_stored_tables_are_checked_before_and_after_a_sweep() -> None:
    known = rates(check_seconds=0.7)
    for slots in (Slots(4), Slots(0, 4)):
        assert seconds(SweepCost(4, 1.0, leaf_bytes=1.0), slots, known) == pytest.approx(1.7)
        assert seconds(SweepCost(4, 1.0), slots, known) == pytest.approx(1.0)


def test_threads_share_the_cores_that_there_are() -> None:
    cost = SweepCost(8, 1.0)
    assert seconds(cost, Slots(4, cores=2), rates()) == pytest.approx(4.0)
    assert seconds(cost, Slots(2, cores=2), rates()) == pytest.approx(4.0)
    assert seconds(cost, Slots(4), rates()) == pytest.approx(2.0)
    # A core is slower while its neighbours work; one alone is not.
    known = rates(busy=1.5, cores=2)
    assert seconds(cost, Slots(1, cores=2), known) == pytest.approx(8.0)
    assert seconds(cost, Slots(2, cores=2), known) == pytest.approx(6.0)
    # Fewer leaves than threads: the others wait.
    assert seconds(SweepCost(1, 1.0), Slots(4, cores=2), rates()) == pytest.approx(1.0)


def test_gathered_rows_are_sent_once_a_level() -> None:
    """Their states are shares of the last one: no worker waits for all of them, and the driver gets each row once."""
    known = rates(network_bytes=1e7, memory_bytes=1e9)
    whole = SweepCost(1000, 1.0, state_bytes=2e7)
    shares = SweepCost(1000, 1.0, state_bytes=2e7, grows=True)
    assert shares.node_bytes(10) == 2e5
    assert shares.node_bytes(2000) == whole.node_bytes(10) == 2e7
    found, sums = (sweep_seconds(cost, Slots(100), known) for cost in (shares, whole))
    assert found.seconds < 10.0 + 2.0 + 0.5
    assert found.seconds < 0.8 * sums.seconds
    assert found.network_bytes < 3 * 2e7 < sums.network_bytes


def test_bytes_over_the_network() -> None:
    one = sweep_seconds(SweepCost(16, 1.0, state_bytes=100.0, payload_bytes=10.0), Slots(1), rates())
    assert one.network_bytes == 10.0 + 16 * 100.0  # the payload to the worker, the sums to the driver
    four = sweep_seconds(SweepCost(16, 1.0, state_bytes=100.0, payload_bytes=10.0), Slots(4), rates())
    assert four.network_bytes == 40.0 + 16 * 100.0  # such small states come to the driver at once
    many = sweep_seconds(SweepCost(1600, 1.0, state_bytes=100.0, payload_bytes=10.0), Slots(40), rates())
    assert branch_leaves(1600, 100, 40, 1.0) == 2  # 800 sums on the workers, of states one of which is elsewhere
    assert many.network_bytes == pytest.approx(400.0 + 100.0 * (800 * 39 / 40 + 800))
    assert sweep_seconds(SweepCost(16, 1.0, state_bytes=100.0), Slots(0, 4), rates()).network_bytes == 0.0
