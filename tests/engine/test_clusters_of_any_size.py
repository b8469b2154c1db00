"""One sum, bit for bit: 1, 2, 4, 64 workers or threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import pytest
from ordered_sums import OrderedSums, layout, table
from thread_clients import thread_client

from streamkernel.engine import ThreadExecutor
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.cluster import DASK_CONFIG, ClusterExecutor

LEAVES = 150


@contextmanager
def in_this_process(workers: int, threads: int = 1) -> Iterator[ClusterExecutor]:
    with dask.config.set(DASK_CONFIG), thread_client(workers, threads) as client:
        yield ClusterExecutor(client, remote=False)


def sums(executor: Any, leaves: int = LEAVES) -> bytes:
    found = executor.reduce(OrderedSums(), table(leaves), layout(leaves), lambda rows: None)["sums"]
    return bytes(found.tobytes())


@pytest.fixture(scope="module")
def one_thread() -> bytes:
    return sums(ThreadExecutor(1))


@pytest.mark.parametrize("threads", [2, 4, 64])
def test_threads(one_thread: bytes, threads: int) -> None:
    assert sums(ThreadExecutor(threads)) == one_thread


@pytest.mark.parametrize(
    ("workers", "threads"), [(1, 1), (2, 1), (4, 1), (1, 64), (16, 4), pytest.param(64, 1, marks=pytest.mark.slow)]
)
def test_workers(one_thread: bytes, workers: int, threads: int) -> None:
    with in_this_process(workers, threads) as executor:
        assert sums(executor) == one_thread


@pytest.mark.parametrize("leaves", [1, 2, 3, 16, 17, 33])
def test_few_leaves(leaves: int) -> None:
    with in_this_process(2) as executor:
        assert sums(executor, leaves) == sums(ThreadExecutor(1), leaves)
        backwards = ClusterExecutor(executor._client, order=lambda numbers: numbers[::-1], remote=False)
        assert sums(backwards, leaves) == sums(ThreadExecutor(1), leaves)


def test_the_order_of_adding_shows() -> None:
    """Otherwise these tests would show nothing."""
    tree: PairingTree[Any] = PairingTree(LEAVES, OrderedSums().combine)
    rows = table(LEAVES)
    states = [ThreadExecutor(1).reduce(OrderedSums(), rows, one, lambda rows: None) for one in _single(LEAVES)]
    for leaf, state in enumerate(states):
        tree.add(leaf, state)
    in_order = states[0]
    for state in states[1:]:
        in_order = OrderedSums().combine(in_order, state)
    assert tree.root()["sums"].tobytes() == sums(ThreadExecutor(1))
    assert in_order["sums"].tobytes() != sums(ThreadExecutor(1))


def _single(leaves: int) -> Iterator[Any]:
    whole = layout(leaves)
    for span in whole.spans:
        yield type(whole)([span], whole.block_rows)
