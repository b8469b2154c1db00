"""The schedule of a sweep, task by task: what the formula of `timing.schedule` stands for."""

from __future__ import annotations

import heapq

from streamkernel.engine._tree import PairingTree

__all__ = ["simulated_seconds"]


def simulated_seconds(
    leaves: int, slots: int, leaf: float, combine: float = 0.0, send: float = 0.0, task: float = 0.0, branch: int = 1
) -> float:
    """Seconds until the driver has the sum of all leaves.

    The scheduler hands out one task in `task` seconds, in the order of submission, to a slot that is free; where a sum
    of states is made, those that are elsewhere are sent first. A slot is a worker of one thread. Workers add the states
    of `branch` leaves in pairs. The driver gets one sum after another, and adds each as far as its neighbours are
    there.
    """
    inputs: list[tuple[int, ...]] = []

    def submit(*of: int) -> int:
        inputs.append(of)
        return len(inputs) - 1

    roots: dict[int, int] = {}  # number of the branch, by the task that makes its sum
    for first in range(0, leaves, branch):
        few = range(first, min(first + branch, leaves))
        tree: PairingTree[int] = PairingTree(len(few), submit)
        for number in few:
            tree.add(number - first, submit())
        roots[tree.root()] = first // branch
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
            work = (len(of) - 1) * combine + send * moved if of else leaf
            heapq.heappush(running, (scheduler + work, number, slot))
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
