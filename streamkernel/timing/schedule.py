"""Seconds of one sweep on a number of workers: a formula for the schedule that the engine makes.

    T_W = max(R t_leaf + S t_task, L t_task + t_leaf, (L + N) t_task)
          + (L - 1) / S t_combine + D (t_combine + 8 n^2 / bandwidth) + D' t_task

with L leaves, S threads of all workers, and N tasks that add states (ALGORITHMS 23). Leaves are begun in their order,
in ``R = ceil(L / S)`` rounds. The first task comes to the last thread after ``S t_task``; where the scheduler is slower
than the threads, its tasks are the time. Sums are added on the threads between leaves. After the last leaf one path of
the tree is left: D' tasks that add D states, each of which may come from another worker. Where a task adds the states
of b leaves, and others pairs of these, there are ``B = ceil(L / b)`` branches, ``N = 2 B - 1``,
``D = b - 1 + ceil(log2 B)`` and ``D' = 1 + ceil(log2 B)``; with b = 2 this is a tree of pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamkernel.timing.rates import Rates

BRANCH = 2  # neighbouring leaves whose states one task adds; the formula holds for more, too


def sum_tasks(leaves: int, branch: int) -> int:
    """Number of tasks that add states."""
    if leaves == 1 or branch == 2:
        return leaves - 1  # a last leaf without a neighbour needs no task
    return 2 * math.ceil(leaves / branch) - 1


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
    leaves : number of tasks that read rows.
    work : seconds of a core for one leaf, decoding included.
    leaf_bytes : bytes that a leaf reads from the storage.
    branch : number of neighbouring leaves whose states one task adds.
    state_bytes : bytes of one state.
    payload_bytes : bytes that each worker gets before its first leaf.
    """

    leaves: int
    work: float
    leaf_bytes: float = 0.0
    state_bytes: float = 0.0
    payload_bytes: float = 0.0
    branch: int = BRANCH


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
    combine = 3 * cost.state_bytes / rates.memory_bytes * slower
    branches = math.ceil(cost.leaves / cost.branch)
    pairs = (branches - 1).bit_length()  # ceil(log2 B)
    depth = min(cost.branch, cost.leaves) - 1 + pairs
    rounds = math.ceil(cost.leaves / slots.count)
    merging = (cost.leaves - 1) / at_once * combine + depth * combine
    check = rates.check_seconds if cost.leaf_bytes else 0.0
    if slots.workers == 0:
        return SweepSeconds(rounds * leaf + merging + check + rates.thread_sweep_seconds, 0.0, bound)
    task = rates.task_seconds
    last_round = (cost.leaves - 1) % slots.count + 1
    leaves = max(rounds * leaf + last_round * task, (rounds - 1) * leaf + at_once * task)
    scheduling = max(cost.leaves * task + leaf, (cost.leaves + sum_tasks(cost.leaves, cost.branch)) * task)
    if scheduling > leaves:
        leaves, bound = scheduling, "scheduler"
    moved = min(slots.workers, cost.leaves) - 1
    send, payload = (each / rates.network_bytes for each in (cost.state_bytes, cost.payload_bytes))
    # Workers pass the payload on, so that those which have it double; the last state goes to the driver.
    spread = payload * (1 + math.ceil(math.log2(moved + 1)))
    across = min(depth, math.ceil(math.log2(moved + 1)) + cost.branch - 2) if moved else 0
    last = (pairs + 1 if cost.leaves > 1 else 0) * task
    seconds = rates.sweep_seconds + check + spread + leaves + merging + last + (across + 1) * send
    # Of two neighbouring states one is where they are added, as a rule; with one worker both are.
    states = 0.0 if moved == 0 else (cost.leaves - 1) * moved / (moved + 1)
    network = (moved + 1) * cost.payload_bytes + (states + 1) * cost.state_bytes
    return SweepSeconds(seconds, network, bound)
