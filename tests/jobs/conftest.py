"""A session with the shared cluster, clusters that may be harmed, and a table whose fit takes a dozen of sweeps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from problems import zarr_of_chunks

sys.path.insert(0, str(Path(__file__).parent))

from clusters import Cluster
from fits import estimator

from streamkernel import connect
from streamkernel.jobs import JobsSession, job

ROWS, CHUNK = 10_000, 500


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a job looks every 0.05 s, not 0.5 s."""
    monkeypatch.setattr(job, "_POLL", 0.05)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = data_sets.friedman(ROWS, 5, seed=1)
    return zarr_of_chunks(tmp_path_factory.mktemp("jobs") / "rows.zarr", data.X.astype(np.float32), data.y, CHUNK)


@pytest.fixture(scope="session")
def digest(store: str) -> str:
    """Of the same fit on threads of this process."""
    return str(estimator().fit(store).model_.digest)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts a cluster; what is left of it is killed in the end."""
    started: list[Cluster] = []

    def start(environment: dict[str, str] | None = None, **options: Any) -> Cluster:
        folder = tmp_path / f"cluster-{len(started)}"
        folder.mkdir()
        started.append(Cluster(folder, environment=environment))
        started[-1].start(**options)
        return started[-1]

    yield start
    for each in started:
        each.stop()
        # Shown of a test that fails.
        print(each.logs())


@pytest.fixture
def session(dask_cluster: Cluster, tmp_path: Path) -> Iterator[JobsSession]:
    with connect(dask_cluster.address, jobs=tmp_path / "jobs") as session:
        yield session


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A place of jobs that tests write records to."""
    return tmp_path / "jobs"


@pytest.fixture
def looking(place: Path) -> Iterator[JobsSession]:
    """A session without a cluster, which looks at these jobs."""
    with connect(jobs=place) as session:
        yield session
