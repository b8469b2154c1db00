"""The leaves of each task: nodes of the fixed tree, of eight seconds at most, as few as the scheduler needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few_examples

from streamkernel.engine import branch_leaves, levels_of, sum_tasks, summed_states, task_sizes
from streamkernel.engine._task_leaves import LeafCut, TaskSizes

MEGABYTE = 1_000_000


def check_nodes(tasks: list[range], leaves: int, branch: int) -> None:
    """All leaves once, in their order, in nodes of the tree of at most a branch; the last one may be cut off."""
    assert [leaf for task in tasks for leaf in task] == list(range(leaves))
    for task in tasks:
        nodes = 1 << (len(task) - 1).bit_length()
        assert nodes <= branch
        assert task.start % nodes == 0
        assert len(task) == nodes or task.stop == leaves


@given(
    leaves=st.integers(1, 20_000),
    threads=st.integers(1, 2000),
    seconds=st.floats(0.0, 100.0),
    branch=st.sampled_from([1, 2, 8, 64, 512]),
)
def test_tasks_are_nodes_of_the_tree(leaves: int, threads: int, seconds: float, branch: int) -> None:
    sizes = task_sizes(leaves, threads, seconds, branch)
    tasks = list(sizes.tasks(leaves))
    check_nodes(tasks, leaves, branch)
    assert sum(sizes.counts(leaves).values()) == len(tasks)
    assert all(len(task) == 1 or len(task) * seconds <= 8.0 for task in tasks)
    lengths = [len(task) for task in tasks]
    assert lengths == sorted(lengths, reverse=True)


@few_examples(0.3)
@given(st.data())
def test_a_cut_that_learns_what_leaves_take_is_one_of_nodes(data: st.DataObject) -> None:
    leaves, branch = data.draw(st.integers(1, 3000)), data.draw(st.sampled_from([1, 4, 32]))
    cut = LeafCut(leaves, branch, data.draw(st.floats(0.0, 20.0)))
    tasks = list[range]()
    while cut:
        tasks.append(cut.next(data.draw(st.integers(0, 300))))
        if data.draw(st.integers(0, 9)) == 0:
            cut.took(data.draw(st.floats(0.0, 50.0)), len(tasks[-1]))
    check_nodes(tasks, leaves, branch)


def test_the_first_task_that_ends_tells_what_a_leaf_takes() -> None:
    """Leaves that are longer than was thought get tasks of one, shorter ones of several; waiting does not count."""
    longer = LeafCut(16_000, 512, 1.0)
    assert len(longer.next(1000)) == 8
    longer.took(72.0, 8)
    assert len(longer.next(1000)) == 1
    shorter = LeafCut(16_000, 512, 4.0)
    assert len(shorter.next(1000)) == 2
    shorter.took(2.0, 2)
    shorter.took(30.0, 2)  # it has waited for a thread
    shorter.next(1000)  # to a multiple of four
    assert len(shorter.next(1000)) == 4


def test_few_threads_have_a_leaf_a_task() -> None:
    for threads in (1, 2, 16, 64):
        assert task_sizes(2048, threads, 1.0, 512) == TaskSizes(1, 1, threads)


@pytest.mark.parametrize(("seconds", "most"), [(1.2, 4000), (3.6, 10_000)])
def test_a_thousand_threads_are_kept_busy(seconds: float, most: int) -> None:
    """Of a billion rows: tasks and sums take a scheduler of 2.5 ms less time than the leaves take the threads."""
    leaves, state = 15_259, 8 * MEGABYTE
    branch, summed = branch_leaves(leaves, state, 1000, seconds), summed_states(state)
    sizes = task_sizes(leaves, 1000, seconds, branch)
    counts = sizes.counts(leaves)
    tasks = sum(counts.values())
    assert tasks < most
    assert 2.5e-3 * (tasks + sum_tasks(counts, branch, summed)) < leaves * seconds / 1000
    # The threads end together to 5 %.
    assert -(-leaves // (1000 * sizes.least)) * sizes.least <= 16


@pytest.mark.parametrize(
    ("state", "states"), [(100, 8), (5 * MEGABYTE, 8), (8 * MEGABYTE, 4), (16 * MEGABYTE, 2), (500 * MEGABYTE, 2)]
)
def test_large_states_are_added_in_pairs(state: int, states: int) -> None:
    assert summed_states(state) == states


@given(branch=st.sampled_from([1, 2, 4, 16, 64, 512]), summed=st.sampled_from([2, 4, 8]), branches=st.integers(1, 5))
def test_sums_of_single_leaves(branch: int, summed: int, branches: int) -> None:
    """Each sum of g states leaves g - 1 fewer."""
    levels = levels_of(branch, summed)
    assert [nodes for nodes, _ in levels][-1:] == ([branch] if branch > 1 else [])
    assert all(states <= summed for _, states in levels)
    expected = sum(branches * branch // nodes for nodes, _ in levels)
    assert sum_tasks({1: branches * branch}, branch, summed) == expected
    assert sum_tasks({branch: branches}, branch, summed) == 0
