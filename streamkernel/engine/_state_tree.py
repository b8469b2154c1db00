"""The tree of states on a cluster: combined where they lie, and kept so that no worker's end costs more than a leaf.

The tree is that of `PairingTree`. The driver holds futures, and no state but the last. Three rules:

- **Branches.** The states of up to 16 neighbouring leaves are combined by one task, in the order of the tree, and from
  there on pairs. Dask runs a task on a worker that holds one of its inputs. A branch has fewer leaves where 16 of them
  are more than 5 s of work and the cluster has fewer threads, or where 16 states are large; the bits are the same.
- **Copies.** A state of more work than one leaf may cost is made on a second worker too, and what it is made of is kept
  until then. If a worker ends, the copies take over; what has no copy is made again from its inputs. Without this, a
  worker that ends near the end of a sweep takes half of the sweep's work with it.
- **Dask's own repair** is the last resort: it runs again whatever led to a lost state that is still wanted. Therefore a
  lost future is given up at once where there is a copy. Some leaves may begin again in that moment.

A state travels once or twice for each branch that it is in: with 5 s of work behind each, n = 1,000 and m = 1e9 these
are about 3 MB/s for each worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from streamkernel.engine._cluster_tasks import combine_states, pass_on
from streamkernel.engine._completions import Completions
from streamkernel.engine._tree import parent_is_complete, width
from streamkernel.engine.layout import BRANCH, LONG_SPAN

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

_EXPOSED = 1.5 * LONG_SPAN  # operations behind a state, above which it is copied
_BRANCH_BYTES = 128 << 20  # limit on the states that one task combines, but for two
FIRST = 10  # priority of combining: it frees memory


class Tasks(Protocol):
    """The cluster as the tree sees it."""

    def submit(
        self,
        function: Callable[..., Any],
        name: str,
        *arguments: Future,
        workers: Sequence[str] = (),
        priority: int = 0,
    ) -> Future:
        """Submit a task of the sweep, on one of `workers` if some are given."""

    def checked(self, future: Future) -> Future:
        """The future of a task that adds up sums, if it has not failed; else its error is raised."""

    def places(self, futures: Sequence[Future]) -> list[tuple[str, str]]:
        """For each finished future, the address of a worker that holds its result, and of one that does not, or ""."""

    def is_there(self, worker: str) -> bool:
        """Whether a worker is part of the cluster."""


class Node:
    """A state of the tree: of some neighbouring leaves.

    Attributes
    ----------
    copies : finished futures of the state, on different workers.
    places : addresses of their workers, by key, where they are known.
    safe : whether it is copied, or need not be.
    task : future of the task that makes it, while it is not done.
    inputs : the nodes that it is made of, while they are kept.
    leaves : numbers of its leaves.
    work : operations behind the state.
    """

    def __init__(self, leaves: range, work: float, inputs: list[Node]) -> None:
        self.leaves, self.work, self.inputs = leaves, work, inputs
        self.copies: list[Future] = []
        self.places: dict[Any, str] = {}
        self.safe = True
        self.task: Future | None = None
        self.copying: Future | None = None
        self.used: list[Future] = []
        self.parent: Node | None = None
        for node in inputs:
            node.parent = self

    @property
    def there(self) -> Future | None:
        """A future whose state is in memory."""
        return next((copy for copy in self.copies if copy.status == "finished"), None)


class StateTree:
    """Combines the states of leaves as they finish.

    Parameters
    ----------
    tasks : the cluster.
    completions : futures that the driver waits for.
    work : operations of each leaf.
    threads : threads of the cluster.
    state_bytes : bytes of a state.
    """

    def __init__(
        self, tasks: Tasks, completions: Completions, work: Sequence[float], threads: int, state_bytes: int
    ) -> None:
        self._tasks, self._completions, self._work = tasks, completions, work
        self._level = branch_level(max(work), threads, state_bytes)
        self._branches = width(len(work), self._level)
        self._leaves: dict[int, dict[int, Node]] = {}  # of each branch, those that are there
        self._waiting: dict[tuple[int, int], Node] = {}
        self._nodes: set[Node] = set()
        self._uncopied: list[Node] = []
        self._numbers = count()
        self._root: Node | None = None

    def add(self, leaf: int, future: Future) -> None:
        """Add the finished state of a leaf."""
        node = Node(range(leaf, leaf + 1), self._work[leaf], [])
        self._nodes.add(node)
        node.copies.append(future)
        node.safe = node.work <= _EXPOSED
        if not node.safe:
            self._copy(node)
        branch = leaf >> self._level
        leaves = self._leaves.setdefault(branch, {})
        leaves[leaf] = node
        if len(leaves) == min(1 << self._level, len(self._work) - (branch << self._level)):
            del self._leaves[branch]
            self._place(self._level, branch, self._combined([leaves[each] for each in sorted(leaves)]))

    def root(self) -> Future | None:
        """The state of all leaves, when it is there."""
        return None if self._root is None else self._root.there

    @property
    def held(self) -> int:
        """Number of states in the workers' memory, without those of tasks at work."""
        return sum(len(node.copies) for node in self._nodes)

    # --- combining ---------------------------------------------------------------------------------------------------

    def _place(self, level: int, index: int, node: Node) -> None:
        """Combine a node with its sibling, if that has come; the tasks wait for their inputs."""
        while (level, index) != (self._top, 0):
            if not parent_is_complete(len(self._work), level, index):
                sibling = self._waiting.pop((level, index ^ 1), None)
                if sibling is None:
                    self._waiting[(level, index)] = node
                    return
                node = self._combined([sibling, node] if index % 2 else [node, sibling])
            level, index = level + 1, index // 2
        self._root = node

    @property
    def _top(self) -> int:
        return max((len(self._work) - 1).bit_length(), self._level)

    def _combined(self, inputs: list[Node]) -> Node:
        if len(inputs) == 1:
            return inputs[0]
        leaves = range(inputs[0].leaves.start, inputs[-1].leaves.stop)
        node = Node(leaves, sum(each.work for each in inputs), inputs)
        self._nodes.add(node)
        self._start(node)
        return node

    def _start(self, node: Node) -> None:
        """Submit the task of a node, if its inputs are in memory and safe."""
        if not all(each.safe and each.there is not None for each in node.inputs):
            return
        node.used = _nearest(node.inputs)
        name = f"node-{next(self._numbers)}"
        node.task = self._tasks.submit(combine_states, name, *node.used, priority=FIRST)
        self._completions.watch(node.task, partial(self._done, node))

    def _done(self, node: Node, future: Future) -> None:
        if future is not node.task:
            return
        node.copies.append(self._tasks.checked(future))
        node.task, node.used = None, []
        node.safe = node.work <= _EXPOSED or node is self._root
        if node.safe:
            self._settle(node)
        else:
            self._copy(node)

    def _copy(self, node: Node) -> None:
        """Copy a state to a second worker, with others of this moment: one question where they are."""
        self._uncopied.append(node)

    def _copy_all(self) -> None:
        found = [(node, node.there) for node in self._uncopied if node in self._nodes]
        sources = [(node, source) for node, source in found if source is not None and node.copying is None]
        self._uncopied = [node for node, source in found if source is None]
        if not sources:
            return
        places = self._tasks.places([source for _, source in sources])
        for (node, source), (here, other) in zip(sources, places, strict=True):
            if not other:
                self._settle(node)  # without a second worker it is as safe as it can be
                continue
            name = f"copy-{next(self._numbers)}"
            # A second sum, from the same inputs: of a result that is passed on Dask keeps one copy where it likes.
            inputs = [each.there for each in node.inputs]
            again = bool(inputs) and None not in inputs
            function, used = (combine_states, _nearest(node.inputs, other)) if again else (pass_on, [source])
            node.copying = self._tasks.submit(function, name, *used, workers=[other], priority=FIRST)
            node.places = {source.key: here, node.copying.key: other}
            self._completions.watch(node.copying, partial(self._copied, node))

    def _copied(self, node: Node, future: Future) -> None:
        if future is not node.copying:
            return
        node.copying = None
        if node not in self._nodes:
            return
        if future.status == "finished":
            node.copies.append(future)
        self._settle(node)  # also where it cannot be copied: then Dask repairs a loss

    def _settle(self, node: Node) -> None:
        """Let go of what a state was made of, and go on with it."""
        for each in node.inputs:
            self._drop(each)
        node.inputs, node.safe = [], True
        parent = node.parent
        if parent is not None and parent.task is None and not parent.copies:
            self._start(parent)

    def _drop(self, node: Node) -> None:
        self._nodes.discard(node)
        self._forget(node)
        node.parent = None
        self._settle(node)

    def _forget(self, node: Node) -> None:
        """Give up all futures of a node."""
        for future in (node.task, node.copying):
            if future is not None:
                self._completions.forget(future)
        for copy in node.copies:
            copy.release()
        node.copies, node.task, node.copying, node.used = [], None, None, []

    # --- losses ------------------------------------------------------------------------------------------------------

    def mend(self) -> None:
        """Copy what is new, and replace what workers took with them by a copy, or make it again from its inputs."""
        for node in list(self._nodes):
            if any(copy.status == "lost" for copy in node.copies):
                self._replace(node)
        for node in list(self._nodes):
            if node.task is not None and any(used.status != "finished" for used in node.used):
                # Its inputs are lost or made again; with other copies it need not wait, and Dask not repair them.
                if all(each.there is not None for each in node.inputs):
                    self._completions.forget(node.task)
                    node.task = None
                    self._start(node)
            elif node.task is None and not node.copies and node.inputs:
                self._start(node)
            if node.copying is not None and not self._tasks.is_there(node.places.get(node.copying.key, "")):
                self._completions.forget(node.copying)  # its worker left before it
                node.copying = None
                self._copy(node)
        self._copy_all()

    def _replace(self, node: Node) -> None:
        if node.there is not None:
            for copy in node.copies:
                if copy.status == "lost":
                    copy.release()
            node.copies = [copy for copy in node.copies if copy.status == "finished"]
            if node.copying is not None and len(node.copies) == 1:
                self._completions.forget(node.copying)
                node.copying = None
            self._copy(node)
        elif node.inputs and all(each.there is not None for each in node.inputs):
            self._remake(node)

    def _remake(self, node: Node) -> None:
        """Make a state again from its inputs."""
        self._forget(node)
        if node.parent is not None and node.parent.task is not None:
            self._completions.forget(node.parent.task)  # it waits for the lost state
            node.parent.task = None
        self._start(node)


def _nearest(nodes: Sequence[Node], worker: str = "") -> list[Future]:
    """A copy of each state, as many of them as possible on one worker, or on the one that is given.

    What is on the same worker need not travel. And a state that travels though its worker's neighbour holds it would
    end with both copies on one worker: Dask keeps one of the results of a key.
    """
    there = [[copy for copy in node.copies if copy.status == "finished"] for node in nodes]
    places = [
        {node.places.get(copy.key, ""): copy for copy in copies} for node, copies in zip(nodes, there, strict=True)
    ]
    common = Counter(place for each in places for place in each if place)
    best = worker or max(common, key=lambda place: common[place], default="")
    return [each.get(best, copies[0]) for each, copies in zip(places, there, strict=True)]


def branch_level(work: float, threads: int, state_bytes: int) -> int:
    """Levels of the tree that one task combines.

    Parameters
    ----------
    work : operations of a leaf.
    threads : threads of the cluster: so many leaves end at about the same time.
    """
    leaves = BRANCH
    while leaves > 2 and (leaves * state_bytes > _BRANCH_BYTES or (leaves > threads and leaves * work > _EXPOSED)):
        leaves //= 2
    return leaves.bit_length() - 1
