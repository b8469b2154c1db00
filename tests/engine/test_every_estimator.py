"""Equal bits of Gaussian processes, classifiers and committees: on any executor, and of a run that was killed."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import data_sets
import fitting
import numpy as np
import pytest
from fitting import RECIPE_SETTINGS, fit_recipe
from forks import Forks
from problems import zarr_of_chunks

from streamkernel.engine import Silent, ThreadExecutor
from streamkernel.engine.cluster import local_cluster
from streamkernel.store import Checkpoints

ROWS, CHUNK = 16_000, 700


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same features, and targets of the estimator's kind."""
    folder = tmp_path_factory.mktemp("estimators")
    data = data_sets.friedman(ROWS, 5, seed=1)
    targets = {
        "kmp": data.y,
        "kmp-classifier": (data.y > 14.0).astype(np.float64),
        "gp": data.y,
        "gp-classifier": (data.y > 14.0).astype(np.float64),
        "poisson": np.maximum(np.round(data.y / 4.0), 0.0),
        "committee": data.y,
        **dict.fromkeys(("svc", "svc, hinge", "svc, full", "boosting", "lp"), (data.y > 14.0).astype(np.float64)),
        **dict.fromkeys(("svr", "quantile", "one-class"), data.y),
    }
    X = data.X.astype(np.float32)
    return {name: zarr_of_chunks(folder / f"{name}.zarr", X, y, CHUNK) for name, y in targets.items()}


class Spans(Silent):
    """Counts the tasks of every sweep."""

    def __init__(self) -> None:
        self.tasks: list[int] = []

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.tasks.append(tasks)


class Whole:
    """Fits of one thread, one task after the other: what all others are held against."""

    def __init__(self, stores: dict[str, str]) -> None:
        self._stores = stores
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            spans = Spans()
            self._found[name] = fit_recipe(self._stores[name], name, progress=spans)
            assert min(spans.tasks) >= 4
        return self._found[name]


@pytest.fixture(scope="module")
def whole(stores: dict[str, str]) -> Whole:
    return Whole(stores)


def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


# Their reductions are those of others, their estimator has this test, too (svc, full), or their solver has one of its
# own (lp, boosting, committee).
ALIKE = (
    *("kmp-classifier", "svc, full", "poisson", "svc, hinge", "svr", "quantile", "one-class"),
    *("lp", "boosting", "committee"),
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ALIKE else name for name in RECIPE_SETTINGS]
)
def test_threads(stores: dict[str, str], whole: Whole, name: str) -> None:
    assert fit_recipe(stores[name], name, ThreadExecutor(3, shuffled)).digest == whole[name].digest


@pytest.mark.slow
def test_local_clusters(stores: dict[str, str], whole: Whole) -> None:
    with local_cluster(2, 1) as executor:
        for name in ("kmp", "gp-classifier", "committee", "svc", "svc, full", "quantile", "boosting"):
            assert fit_recipe(stores[name], name, executor).digest == whole[name].digest, name


@pytest.mark.parametrize(
    "name",
    [
        "kmp",
        "svc",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "kmp-classifier",
                "gp",
                "gp-classifier",
                "committee",
                "svc, hinge",
                "svc, full",
                "quantile",
                "one-class",
                "boosting",
                "lp",
            )
        ),
    ],
)
def test_killed_and_resumed(forks: Forks, stores: dict[str, str], whole: Whole, name: str, tmp_path: Path) -> None:
    folder, config = tmp_path / "run", {"estimator": name}
    sweeps = min(2, len(whole[name].config["run"]["sweeps"]) - 1)  # of those before it is killed
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from fitting import *\n"
        "with Checkpoints(sys.argv[3], {'estimator': sys.argv[4]}) as checkpoints:\n"
        "    fit_recipe(sys.argv[2], sys.argv[4], progress=Killer(int(sys.argv[5]), None), checkpoints=checkpoints)"
    )
    done = forks.run(program, Path(fitting.__file__).parent, stores[name], folder, name, str(sweeps))
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Checkpoints(folder, config) as checkpoints:
        assert len(checkpoints.steps()) == sweeps
        model = fit_recipe(stores[name], name, ThreadExecutor(2), checkpoints=checkpoints)
    assert model.digest == whole[name].digest
    resumed = [record["resumed"] for record in model.config["run"]["sweeps"]]
    assert resumed == [True] * sweeps + [False] * (len(resumed) - sweeps)
    assert 1 <= sweeps < len(resumed)
