"""A run that is killed and resumed is the uninterrupted one, bit for bit; what is finished is not done again."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import data_sets
import fitting
import pytest
from fitting import fit, make_store, run_of
from forks import Forks
from problems import zarr_of_chunks

from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import CheckpointMismatchError, RunLockedError, StreamKernelWarning
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.store import Checkpoints
from streamkernel.table import open_table


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(tmp_path_factory.mktemp("resume") / "rows.zarr")


@pytest.fixture(scope="module")
def whole(store: str) -> Any:
    return fit(store)


def killed(forks: Forks, store: str, folder: Path, *when: int) -> None:
    """Run the fit in another process until it kills itself."""
    program = f"import runpy; runpy.run_path({fitting.__file__!r}, run_name='__main__')"
    done = forks.run(program, store, folder, *when)
    assert done.returncode == -signal.SIGKILL, done.stderr


class Counter(Silent):
    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.begun.append(name)


@pytest.mark.slow
def test_killed_after_the_second_sweep_and_resumed(forks: Forks, store: str, whole: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed(forks, store, folder, 2)
    counter = Counter()
    with run_of(store, folder) as checkpoints:
        assert [step for step, _ in checkpoints.steps()] == [0, 1]
        model = fit(store, executor=ThreadExecutor(2), checkpoints=checkpoints, progress=counter)
    assert model.digest == whole.digest
    assert len(counter.begun) == whole.config["sweep_count"] - 2
    assert [record["resumed"] for record in model.config["run"]["sweeps"]][:3] == [True, True, False]


def test_killed_in_the_middle_of_a_sweep(forks: Forks, store: str, whole: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed(forks, store, folder, 3, 40_000)
    with run_of(store, folder) as checkpoints:
        assert len(checkpoints.steps()) == 3
        assert fit(store, checkpoints=checkpoints).digest == whole.digest


MADE = "synthetic://friedman?rows=40000&features=5&chunk=2000"


@pytest.mark.slow
def test_rows_that_are_made_when_they_are_read(forks: Forks, tmp_path: Path) -> None:
    made, folder = MADE, tmp_path / "run"
    killed(forks, made, folder, 1, 20_000)
    with run_of(made, folder) as checkpoints:
        assert len(checkpoints.steps()) == 1
        assert fit(made, executor=ThreadExecutor(2), checkpoints=checkpoints).digest == fit(made).digest


def test_rows_that_are_made_otherwise_are_another_table(tmp_path: Path) -> None:
    with run_of(MADE, tmp_path / "run"):
        pass
    with pytest.raises(CheckpointMismatchError, match="table"):
        run_of(f"{MADE}&seed=1", tmp_path / "run")


@pytest.mark.slow
def test_resumed_twice_and_from_the_end(forks: Forks, store: str, whole: Any, tmp_path: Path) -> None:
    """Killed after every sweep or two: each life adds its own; the last one reads no row."""
    folder = tmp_path / "run"
    killed(forks, store, folder, 1)
    killed(forks, store, folder, 5)
    with run_of(store, folder) as checkpoints:
        assert fit(store, checkpoints=checkpoints).digest == whole.digest
    counter = Counter()
    with run_of(store, folder) as checkpoints:
        assert fit(store, checkpoints=checkpoints, progress=counter).digest == whole.digest
    assert counter.begun == []


@pytest.mark.slow
def test_a_metric_is_learned_again_from_the_same_rows(tmp_path: Path) -> None:
    """The search is no sweep and has no checkpoint: after a resume it starts with the rows of one."""

    class Stop(Counter):
        def begin(self, name: str, rows: int, tasks: int) -> None:
            super().begin(name, rows, tasks)
            if name == "final sweep":
                raise KeyboardInterrupt

    data = data_sets.friedman(3000, 8, seed=1)
    table = open_table(zarr_of_chunks(tmp_path / "rows.zarr", data.X, data.y, 500))
    settings = RidgeSettings(n_components=32, kernel="gaussian", metric="learned", alpha="gcv")
    config = {"table": table.fingerprint, "settings": settings.to_config()}
    with Checkpoints(tmp_path / "run", config) as checkpoints, pytest.raises(KeyboardInterrupt):
        fit_ridge(table, settings, Session(ThreadExecutor(1), checkpoints=checkpoints, progress=Stop()))
    counter = Counter()
    with Checkpoints(tmp_path / "run", config) as checkpoints:
        model = fit_ridge(table, settings, Session(ThreadExecutor(2), checkpoints=checkpoints, progress=counter))
    assert counter.begun == ["final sweep"]
    assert model.metric is not None
    assert model.digest == fit_ridge(table, settings, Session(ThreadExecutor(1))).digest


@pytest.mark.slow
def test_a_torn_newest_checkpoint_is_done_again(forks: Forks, store: str, whole: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed(forks, store, folder, 3)
    newest = min(folder.glob("0002-*"))
    (newest / "COMPLETE").unlink()
    stray = folder / ".0003-look.partial-1"
    shutil.copytree(newest, stray)
    with run_of(store, folder) as checkpoints, pytest.warns(StreamKernelWarning, match="done again"):
        assert fit(store, checkpoints=checkpoints).digest == whole.digest


def test_another_configuration_is_refused(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with run_of(store, folder) as checkpoints:
        config = dict(checkpoints.config)
    config["settings"] = {**config["settings"], "seed": 4}
    with pytest.raises(CheckpointMismatchError, match="seed"):
        Checkpoints(folder, config)


def test_a_second_driver_is_refused(store: str, tmp_path: Path) -> None:
    with run_of(store, tmp_path / "run"), pytest.raises(RunLockedError):
        run_of(store, tmp_path / "run")


def test_the_session_asks_for_its_steps_in_order(store: str, tmp_path: Path) -> None:
    with run_of(store, tmp_path / "run") as checkpoints:
        session = Session(ThreadExecutor(2), checkpoints=checkpoints)
        fit_ridge(open_table(store), fitting.settings_of("prediction"), session)
        assert [step for step, _ in checkpoints.steps()] == list(range(len(session.records)))
        assert [name for _, name in checkpoints.steps()] == ["gather_sampled_rows", "final_sweep"]
        checkpoints.discard()
    assert not (tmp_path / "run").exists()
