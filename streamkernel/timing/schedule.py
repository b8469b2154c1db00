"""Seconds of one sweep on a number of workers: a formula for the schedule that the engine makes.

With L leaves of t_leaf, in K tasks of z leaves at the end and more before (`engine._task_leaves`), S threads of all
workers, and branches of b neighbouring leaves, of which there are ``B = ceil(L / b)``::

    T = max(R z t_leaf + S t_task,  K t_task + z t_leaf,  (K + N) t_task,
            z t_leaf + B (t_send + t_combine))
        + (L - B) / S t_combine + sum_levels ((g - 1) (t_combine + t_send) + t_task) + t_send + E t_combine

Tasks are begun in the order of their leaves, the last ones in ``R = ceil(L / (S z))`` rounds. The first task comes to
the last thread after ``S t_task``; where the scheduler is slower than the threads, its tasks are the time: K of leaves,
and N that add up to g states of a branch each. Workers do these between leaves; the sum of a branch comes to the
driver, which adds all B (ALGORITHMS 23). After the last leaf a sum of each level of its branch is left, whose states
come from other workers, and ``E = ceil(log2 B)`` sums of the driver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamkernel.engine import branch_leaves, levels_of, sum_tasks, summed_states, task_sizes
from streamkernel.timing.rates import Rates


@dataclass(frozen=True)
class Slots:
    """The threads that do the tasks of a sweep.

    Attributes
    ----------
    workers : number of workers; 0 for threads of the driver, without a scheduler and without a network.
    threads : number of threads of each worker, or of the driver.
    cores : number of cores that all threads share; None for a core each.
    """

    workers: int
    threads: int = 1
    cores: int | None = None

    @property
    def count(self) -> int:
        """All threads."""
        return max(self.workers, 1) * self.threads

    def slower(self, tasks: int, busy: float, cores: int) -> float:
        """Factor by which each of so many tasks at once is slower than one alone.

        Parameters
        ----------
        busy, cores : a core is slower by `busy` if all `cores` of its machine are at work (`Rates`).
        """
        if self.cores is None:
            # Workers of a cluster fill their machines.
            return busy
        shared = 1.0 if cores <= 1 else 1.0 + (busy - 1.0) * (min(tasks, self.cores) - 1) / (cores - 1)
        return max(1.0, min(shared, busy)) * max(1.0, tasks / self.cores)


@dataclass(frozen=True)
class SweepCost:
    """What one sweep needs, whatever the number of workers.

    Attributes
    ----------
    leaves : number of spans of rows, of which a task has one or several.
    work : seconds of a core for one leaf, decoding included.
    leaf_bytes : bytes that a leaf reads from the storage.
    state_bytes : bytes of one state, of all rows.
    payload_bytes : bytes that each worker gets before its first leaf.
    grows : whether the state of some leaves has their share of the bytes, as that of rows which are gathered.
    parts : number of parts of the state, of which a leaf has one (`Reduction.divided`).
    """

    leaves: int
    work: float
    leaf_bytes: float = 0.0
    state_bytes: float = 0.0
    payload_bytes: float = 0.0
    grows: bool = False
    parts: int = 1

    def node_bytes(self, leaves: int) -> float:
        """Bytes of the state of so many leaves."""
        if not self.grows and self.parts == 1:
            return self.state_bytes
        return self.state_bytes * min(max(leaves / self.leaves, 0.0 if self.grows else 1.0 / self.parts), 1.0)


@dataclass(frozen=True)
class SweepSeconds:
    """Seconds of a sweep, bytes over the network, and what the seconds are bound by."""

    seconds: float
    network_bytes: float
    bound: str


def sweep_seconds(cost: SweepCost, slots: Slots, rates: Rates) -> SweepSeconds:
    """The formula above, for one sweep."""
    at_once = min(slots.count, cost.leaves)
    slower = slots.slower(at_once, rates.busy, rates.cores)
    work = cost.work * slower
    # Rows are read while those before them are worked on, so that a leaf takes the longer of the two.
    alone, together = cost.leaf_bytes / rates.read_bytes, 0.0
    if rates.storage_bytes is not None:
        together = cost.leaf_bytes * at_once / rates.storage_bytes
    leaf = max(work, alone, together)
    bound = "work" if leaf == work else "reading" if leaf == alone else "storage"
    check = rates.check_seconds if cost.leaf_bytes else 0.0

    def combine(leaves: int) -> float:
        return 3 * cost.node_bytes(leaves) / rates.memory_bytes

    def send(leaves: int) -> float:
        return cost.node_bytes(leaves) / rates.network_bytes

    if slots.workers == 0:
        rounds = math.ceil(cost.leaves / slots.count)
        sums = (cost.leaves - 1) / at_once * combine(1) + sum(
            combine(1 << each) for each in range(_levels(cost.leaves))
        )
        return SweepSeconds(rounds * leaf + sums * slower + check + rates.thread_sweep_seconds, 0.0, bound)
    size = branch_leaves(cost.leaves, round(cost.node_bytes(1)), slots.count, leaf)
    summed = summed_states(round(cost.node_bytes(size)))
    sizes = task_sizes(cost.leaves, slots.count, leaf, size)
    counts, branches = sizes.counts(cost.leaves), math.ceil(cost.leaves / size)
    tasks, last = sum(counts.values()), sizes.least * leaf
    task = rates.task_seconds
    rounds = math.ceil(cost.leaves / (slots.count * sizes.least))
    last_round = (math.ceil(cost.leaves / sizes.least) - 1) % slots.count + 1
    leaves = max(rounds * last + last_round * task, (rounds - 1) * last + min(slots.count, tasks) * task)
    scheduling = max(tasks * task + last, (tasks + sum_tasks(counts, size, summed)) * task)
    arriving = last + (branches - 1) * (send(size) + combine(size))
    if max(scheduling, arriving) > leaves:
        leaves, bound = max((scheduling, "scheduler"), (arriving, "driver"))
    moved = min(slots.workers, tasks) - 1
    # Workers pass the payload on, so that those which have it double.
    spread = cost.payload_bytes / rates.network_bytes * (1 + math.ceil(math.log2(moved + 1)))
    merging = (cost.leaves - branches) / at_once * combine(1) * slower
    levels = levels_of(min(size, cost.leaves), summed, sizes.least)
    for nodes, states in levels:
        one = nodes // states
        merging += (states - 1) * (combine(one) * slower + (send(one) if moved else 0.0)) + task
    merging += send(size) + sum(combine(size << each) for each in range(_levels(branches)))
    seconds = rates.sweep_seconds + check + spread + leaves + merging
    return SweepSeconds(seconds, _network_bytes(cost, tasks, branches, len(levels), moved), bound)


def _network_bytes(cost: SweepCost, tasks: int, branches: int, levels: int, moved: int) -> float:
    """Bytes of the payload to each of ``moved + 1`` workers, and of the states."""
    # As a rule, one of two neighbouring states is already where they are added; with one worker all are.
    share = moved / (moved + 1)
    states = 1 + levels * share if cost.grows else (tasks - branches) * share + branches
    if cost.parts > 1:
        # Those of the leaves of each part, and the sums of parts as they grow together.
        states = 1 + (tasks / cost.parts + levels) * share
    return (moved + 1) * cost.payload_bytes + states * cost.state_bytes


def _levels(leaves: int) -> int:
    """Levels of a tree of pairs: ``ceil(log2 leaves)``."""
    return (leaves - 1).bit_length()
