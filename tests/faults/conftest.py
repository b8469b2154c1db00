"""A table of twenty chunks, a cluster of real processes, and the figures that the tests reach, in one summary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clusters import topology
from runs import Cluster, fit, make_store
from summary import PROPERTY, print_table


def pytest_terminal_summary(terminalreporter: Any) -> None:
    print_table(terminalreporter)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """``figure("8.2 s")``: what this test reached of the row of the fault table that its mark names."""
    row = request.node.get_closest_marker("fault").args[0]
    told = [row, ""]
    request.node.user_properties.append((PROPERTY, told))

    def tell(reached: str) -> None:
        told[1] = reached

    return tell


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(tmp_path_factory.mktemp("faults") / "rows.zarr")


@pytest.fixture(scope="session")
def whole(store: str) -> Any:
    """The fit that nothing disturbs, on one thread: what all others are held against."""
    return fit(store)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster.started(topology, tmp_path_factory.mktemp("shared")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """Two workers, each with a nanny, that do nothing odd yet."""
    shared.behave()
    shared.wait_for_workers(2)
    yield shared
    shared.behave()
