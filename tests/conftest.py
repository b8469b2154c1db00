"""What every test shares: Hypothesis profiles and the real data sets that may lie beside the repository."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Dask's profiler takes a few percent of a core for each worker, idle ones too, and so does the look at the event loop's
# delay, fifty times a second: before Dask is loaded, for children too.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "1s")

import dask.array  # noqa: F401 - before `gc.disable`: its slices leave the collector as it was when Dask was loaded
import data_sets
import numpy as np
import pytest
from clusters import Cluster
from forks import Forks
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray
from s3_server import S3Server, running_s3
from searches import few_points

# Deterministic and without a deadline: a busy machine is no failure. HYPOTHESIS_PROFILE=thorough digs deeper.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=20,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# Twelve thousand tests are 800,000 objects that stay: each full collection of garbage looked at all of them, for .8 s.
# What is there once they are found is left out of all later ones: 200 tests take 4 % less processor time. Tests load
# and build more than they throw away: after 20,000 new objects in place of 700, collections take half as long.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


_SLOW_SECONDS = (
    1200.0  # a limit that only ends what hangs: slow tests reach it on no machine that does other things, too
)

# A process takes whole files, in their order: with the longest ones first none is left with one when all others end.
_LONGEST = (
    "engine/test_elastic.py", "test_docs.py", "estimators/test_scikit_learn.py", "tuning/test_gaussian_tuning.py",
    "cli/test_every_kind.py", "test_notebooks.py", "fits/test_solver.py", "selection/test_every_rule.py",
    "comparison/test_shared_parts.py", "report/test_renderers.py", "fits/test_scaling_fits.py",
    "table/test_ingest_weights.py",
)  # fmt: skip


_TESTS = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Each process of a whole run finds the tests in an order of its own.

    To write the assertions of all files anew, as pytest does where nobody has done so before, takes 12 seconds of a
    core. Processes that go through the files side by side would do it all, each for itself.
    """
    worker: dict[str, Any] = getattr(config, "workerinput", {})  # of pytest-xdist
    if not worker or [Path(each).resolve() for each in config.args] != [_TESTS.resolve()]:
        return
    places = sorted(each for each in _TESTS.iterdir() if each.is_dir() or each.match("test_*.py"))
    files = [sum(1 for _ in each.rglob("test_*.py")) or 1 for each in places]
    share = int(worker["workerid"].removeprefix("gw")) / worker["workercount"]
    first = next(at for at in range(len(files)) if sum(files[: at + 1]) > share * sum(files))
    config.args[:] = [str(each) for each in (*places[first:], *places[:first])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {_TESTS / name: number for number, name in enumerate(_LONGEST)}
    # The same order in all processes, whatever the one is in which they found them.
    items.sort(key=lambda item: (rank.get(item.path, len(rank)), str(item.path)))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_SECONDS))


def _no_wait_for_the_disk(file: int) -> None:
    """In the place of `os.fsync`: no test ends with a power cut, and a fit of a second waits 200 times."""
    os.fstat(file)


os.fsync = _no_wait_for_the_disk  # type: ignore[assignment]


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Mapping[str, NDArray[Any]]]:
    """``shared_data("abalone")`` is the .npz of that name in ``../shared/data``, or in STREAMKERNEL_DATA."""

    def load(name: str) -> Mapping[str, NDArray[Any]]:
        path = data_sets.FOLDER / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"data set {name} is not in {data_sets.FOLDER}; name its folder with STREAMKERNEL_DATA")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load


@pytest.fixture(scope="module", autouse=True)
def blas_is_given_back() -> Iterator[None]:
    """No module leaves BLAS at one thread behind: tests of other modules are about that number."""
    yield
    threads = sys.modules.get("streamkernel.linalg.threads")
    until = time.monotonic() + 10  # a thread that nobody waits for may still be at work
    while threads is not None and threads._depth:
        assert time.monotonic() < until, "something that was started here still limits BLAS"
        time.sleep(0.01)


@pytest.fixture(scope="module", autouse=True)
def garbage_is_collected() -> Iterator[None]:
    """No module leaves the collector off behind: all later tests of the process would keep their garbage."""
    yield
    assert gc.isenabled(), "something here has turned the collection of garbage off"


@pytest.fixture(scope="module", name="few_points")
def searches_have_few_points() -> Iterator[None]:
    """For modules that are not about what a search by evidence finds: see `searches`."""
    with few_points():
        yield


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """``forks.run(code, *arguments)`` is ``python -c``, without the second that loading the libraries takes."""
    with Forks(tmp_path_factory.mktemp("forks")) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server on loopback, one a test process."""
    with running_s3(tmp_path_factory.mktemp("s3") / "moto.log") as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a new bucket; the environment says how to reach it."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.bucket()


@pytest.fixture(scope="session")
def dask_cluster(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and a worker of one thread, for tests that leave them as they were; they can reach `s3`, too."""
    # A machine that stood still for a minute would cost the worker, and each later test the scheduler has none for.
    never_given_up = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1 day"}
    # The cluster is idle most of the time. Half of its processor time then went into monitoring of system and memory.
    seldom = {
        "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
        "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "2s",
    }
    environment = {**s3_server.environment(), **never_given_up, **seldom}
    running = Cluster(tmp_path_factory.mktemp("cluster"), environment=environment)
    running.start()
    yield running
    running.stop()
