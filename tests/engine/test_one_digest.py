"""Same inputs, same seed, same machine type: same bits, wherever and in whatever order the tasks run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fitting import CHUNK, ROWS, SETTINGS, fit, fit_in_memory, make_store

from streamkernel.engine import Silent, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor, local_cluster
from streamkernel.settings import _kernel_choice as searched

RULES = list(SETTINGS)


@pytest.fixture(scope="module", autouse=True)
def few_rows_of_the_search() -> Iterator[None]:
    """The search of the defaults, which goes through no tasks of the rows, has a sample of 2,000 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched, "METRIC_ROWS", 2_000)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = make_store(tmp_path_factory.mktemp("digest") / "rows.zarr")
    assert ROWS // CHUNK >= 20
    return path


@pytest.fixture(scope="module")
def digests(store: str) -> dict[str, str]:
    """One thread, one task after the other: what all others are held against."""
    return {name: fit(store, name).digest for name in RULES}


def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


def test_several_spans_exist(store: str) -> None:
    tasks: list[int] = []

    class Watcher(Silent):
        def begin(self, name: str, rows: int, tasks_: int) -> None:
            tasks.append(tasks_)

    fit(store, progress=Watcher())
    assert len(tasks) == 6  # gather, four looks, the final one
    assert min(tasks) >= 10


@pytest.mark.parametrize("name", RULES)
def test_threads(store: str, digests: dict[str, str], name: str) -> None:
    assert fit(store, name, ThreadExecutor(3, shuffled)).digest == digests[name]


def test_the_digest_tells_fits_apart(digests: dict[str, str]) -> None:
    assert len(set(digests.values())) == len(RULES)


@pytest.mark.parametrize(
    ("workers", "threads", "names"),
    [
        (2, 1, ["trace", "prediction", "given metric"]),
        (1, 1, ["trace", "rpcholesky"]),
        (1, 2, ["mixture, tolerance", "sgma shared"]),
    ],
)
@pytest.mark.slow
def test_local_clusters(store: str, digests: dict[str, str], workers: int, threads: int, names: list[str]) -> None:
    with local_cluster(workers, threads) as executor:
        for name in names:
            assert fit(store, name, executor).digest == digests[name]
        other = ClusterExecutor(executor._client, order=shuffled, remote=False)
        assert fit(store, names[0], other).digest == digests[names[0]]


@pytest.mark.slow
def test_killed_workers_cost_time_and_no_bit(store: str, digests: dict[str, str]) -> None:
    """kill -9 in mid-reduction, one worker of two and later both: tasks run again, the sums are the same."""
    with local_cluster(2, 1) as executor:
        killed: list[int] = []

        class Assassin(Silent):
            def __init__(self) -> None:
                self.sweeps, self.victims = 0, list[int]()

            def begin(self, name: str, rows: int, tasks: int) -> None:
                self.sweeps += 1
                if self.sweeps in (4, 6):
                    executor._client.wait_for_workers(2, timeout=30)
                    self.victims = list(executor._client.run(os.getpid).values())[: self.sweeps // 2 - 1]

            def advance(self, rows: int) -> None:
                while self.victims:
                    killed.append(self.victims.pop())
                    os.kill(killed[-1], signal.SIGKILL)

        assert fit(store, "trace", executor, progress=Assassin()).digest == digests["trace"]
        assert len(set(killed)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("blas_threads", ["1", "2"])
def test_the_number_of_blas_threads_outside(blas_threads: str) -> None:
    """Factorisations and products on the driver run on one thread, whatever the environment says."""
    here = Path(__file__).parent
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": blas_threads,
        "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)]),
    }
    program = "from fitting import fit_in_memory\nprint(fit_in_memory().digest)"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [fit_in_memory().digest]


def test_the_path_is_no_part_of_the_fit(store: str, digests: dict[str, str]) -> None:
    """What the rows are and how they lie is."""
    moved = Path(store).rename(Path(store).with_name("moved.zarr"))
    try:
        assert fit(str(moved)).digest == digests["trace"]
    finally:
        moved.rename(store)
