"""The schedule of a sweep, task by task: what the formula of `timing.schedule` stands for."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from streamkernel.engine import task_sizes
from streamkernel.engine._branches import Branches
from streamkernel.engine._tree import PairingTree

__all__ = ["simulated_seconds"]


def simulated_seconds(
    leaves: int,
    slots: int,
    leaf: float,
    combine: float = 0.0,
    send: float = 0.0,
    task: float = 0.0,
    branch: int = 1,
    summed: int = 2,
) -> float:
    """Seconds until the driver has the sum of all leaves.

    Leaves are cut into tasks as the engine cuts them. The scheduler hands out one task in `task` seconds, in the order
    of submission, to a slot that is free; where a sum of states is made, those that are elsewhere are sent first. A
    slot is a worker of one thread. Workers add the states of `branch` leaves, up to `summed` in a task. The driver gets
    one sum after another, and adds each as far as its neighbours are there.
    """
    inputs: list[Sequence[int]] = []
    work: list[float] = []

    def submit(places: Sequence[range], of: Sequence[int]) -> int:
        inputs.append(of)
        work.append((len(of) - 1) * combine if of else len(places[0]) * leaf + (len(places[0]) - 1) * combine)
        return len(inputs) - 1

    roots: dict[int, int] = {}  # number of the branch, by the task that makes its sum
    branches: Branches[int] = Branches(leaves, branch, summed, submit, lambda left, right: left)
    for few in task_sizes(leaves, slots, leaf, branch).tasks(leaves):
        root = branches.add_leaves(few, submit([few], ()))
        if root is not None:
            roots[root] = branches.of(few.start)
    sums: list[int] = []

    def count(left: int, right: int) -> int:
        sums.append(left + right)
        return left + right

    driver: PairingTree[int] = PairingTree(len(roots), count)
    arrived, here = 0.0, 0

    place: dict[int, int] = {}  # slot of each finished task
    free = dict.fromkeys(range(slots))  # in the order in which they became free
    missing = [len(of) for of in inputs]
    user = {each: number for number, of in enumerate(inputs) for each in of}
    ready = [number for number, of in enumerate(inputs) if not of]
    heapq.heapify(ready)
    running: list[tuple[float, int, int]] = []
    now = scheduler = 0.0
    while here < len(roots):
        while free and ready:
            number = heapq.heappop(ready)
            of = inputs[number]
            # Where one of its states is, if that slot is free.
            slot = next((place[each] for each in of if place[each] in free), next(iter(free)))
            del free[slot]
            scheduler = max(scheduler, now) + task
            moved = sum(place[each] != slot for each in of)
            heapq.heappush(running, (scheduler + work[number] + send * moved, number, slot))
        now, number, slot = heapq.heappop(running)
        place[number] = slot
        free[slot] = None
        if number in roots:
            before = len(sums)
            driver.add(roots[number], 1)
            arrived = max(now, arrived) + send + (len(sums) - before) * combine
            here += 1
        if number in user:
            missing[user[number]] -= 1
            if not missing[user[number]]:
                heapq.heappush(ready, user[number])
    return arrived
