"""Fits of boosting: runs that were ended and go on, the codes beside them, and the plan."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory import measured
from problems import zarr_of_chunks
from slow_cases import slow_but

from streamkernel import KernelBoostingClassifier, open_table
from streamkernel.engine import Machine, Session, Silent, ThreadExecutor
from streamkernel.errors import ResourceLimitError
from streamkernel.fits.boosting.boosting import fit_boosting, plan_boosting
from streamkernel.settings.boosting import BoostingSettings
from streamkernel.store import Checkpoints

RNG = np.random.default_rng(3)
X = RNG.uniform(-2.0, 2.0, (600, 3))
Y = (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(600) > 0.0).astype(int)
GIVEN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "lengthscale": 0.7, "scale": "none"}
SMALL: dict[str, Any] = {**GIVEN, "member_rows": 40, "members": 6}


class Ending(Silent):
    """Ends a run in the sweep after some whole ones, or before it."""

    def __init__(self, sweeps: int) -> None:
        self.left = sweeps

    def end(self, seconds: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


# Of a learner whose members sweep the rows.
SWEPT = BoostingSettings(**{**SMALL, "learner": "kmp"}, n_components=10)


@cache
def undisturbed() -> str:
    """The digest of a run that nothing ended."""
    with tempfile.TemporaryDirectory() as folder:
        table = open_table(zarr_of_chunks(Path(folder) / "rows.zarr", X, Y.astype(float), 100), classify=True)
        return str(fit_boosting(table, SWEPT, Session(ThreadExecutor(1)), estimator="boosting").digest)


@pytest.mark.parametrize(("sweeps", "lost"), slow_but([(2, True), (7, False)], product([2, 4, 7], [False, True])))
def test_a_run_that_was_ended_between_members_goes_on_with_equal_bits(tmp_path: Path, sweeps: int, lost: bool) -> None:
    """Also where the codes of its members are lost, which are then computed again."""
    table = open_table(zarr_of_chunks(tmp_path / "rows.zarr", X, Y.astype(float), 100), classify=True)
    with Checkpoints(tmp_path / "run", {}) as checkpoints:
        session = Session(ThreadExecutor(1), progress=Ending(sweeps), checkpoints=checkpoints)
        with pytest.raises(KeyboardInterrupt):
            fit_boosting(table, SWEPT, session, estimator="boosting")
    assert (tmp_path / "run" / "rows").is_dir()
    if lost:
        shutil.rmtree(tmp_path / "run" / "rows")
    with Checkpoints(tmp_path / "run", {}) as checkpoints:
        session = Session(ThreadExecutor(2), checkpoints=checkpoints)
        model = fit_boosting(table, SWEPT, session, estimator="boosting")
        assert sum(record.resumed for record in session.records) == sweeps
        checkpoints.discard()
    assert model.digest == undisturbed()
    assert not (tmp_path / "run").exists()


def test_the_plan_counts_members_and_codes() -> None:
    table = open_table(np.broadcast_to(np.float32(1), (10**6, 20)), np.arange(10**6) % 2, classify=True)
    plans = [
        plan_boosting(table, BoostingSettings(**GIVEN, members=members, member_rows=2000), Machine(0, 2))
        for members in (10, 40)
    ]
    assert [plan.sweeps for plan in plans] == [13, 43]  # with those of a sample and of the vote
    codes = 10**6 * 2
    assert plans[1].disk_bytes - plans[0].disk_bytes > 30 * codes
    assert plans[0].memory_bytes < plans[1].memory_bytes < 3e9
    with pytest.raises(ResourceLimitError, match="memory"):
        KernelBoostingClassifier(**GIVEN, member_rows=20_000, learner="ridge", memory_limit="1GB").fit(
            np.broadcast_to(np.float32(1), (10**6, 20)), np.arange(10**6) % 2
        )


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["svm", "ridge", "kmp"])
def test_memory_stays_within_the_promise(tmp_path: Path, learner: str) -> None:
    given = {"kernel": "gaussian", "metric": "none", "learner": learner, "members": 6, "member_rows": 1500}
    planned, peak = measured(tmp_path, "boosting", 200_000, classes=2, **given)
    assert peak <= planned


def test_a_run_that_begins_anew_reads_no_codes_of_the_one_before(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", {"a": 1}) as checkpoints:
        assert checkpoints.rows_folder is not None
        (checkpoints.rows_folder / "digest").mkdir(parents=True)
    with Checkpoints(tmp_path / "run", {"a": 2}, fresh=True) as checkpoints:
        assert checkpoints.rows_folder is not None
        assert not checkpoints.rows_folder.exists()


def test_a_disk_without_room_for_a_folder_of_codes_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, settings = open_table(X, Y, classify=True), BoostingSettings(**SMALL)
    whole = fit_boosting(table, settings, Session(ThreadExecutor(2)), estimator="boosting")
    # No folder: a file has its name.
    with Checkpoints(tmp_path / "run", {}) as checkpoints:
        (tmp_path / "run" / "rows").touch()
        session = Session(ThreadExecutor(2), checkpoints=checkpoints)
        assert fit_boosting(table, settings, session, estimator="boosting").digest == whole.digest
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert fit_boosting(table, settings, Session(ThreadExecutor(2)), estimator="boosting").digest == whole.digest


def test_a_temporary_folder_of_codes_goes_after_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        fit_boosting(
            open_table(X, Y, classify=True),
            BoostingSettings(**SMALL),
            Session(ThreadExecutor(2), progress=Ending(4)),
            estimator="boosting",
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_workers_of_other_machines_compute_all_members_anew_and_find_the_same(voting: str) -> None:
    table, settings = open_table(X, Y, classify=True), BoostingSettings(**SMALL, voting=voting)
    here = fit_boosting(table, settings, Session(ThreadExecutor(2)), estimator="boosting")
    elsewhere = ThreadExecutor(2)
    elsewhere.remote = True
    session = Session(elsewhere)
    with session.rows_folder() as folder:
        assert folder is None
    assert fit_boosting(table, settings, session, estimator="boosting").digest == here.digest
