"""Records and specs of jobs, damaged: who looks at them, or cancels, is told in one line; no cluster is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import JOB, X, Y
from fuzz.command import Refused, commanded
from fuzz.damage import Files, files_damaged, lay
from fuzz.forgery import of_inputs
from fuzz.jobs import STATES, place_of_job
from fuzz.limits import Yard
from hypothesis import given, seed
from hypothesis import strategies as st

from streamkernel import ingest
from streamkernel.jobs import connect
from streamkernel.jobs.records import JobRecords
from streamkernel.service import JobsPlace
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.http_errors import Refused as RefusedByTheService
from streamkernel.service.job_actions import JobActions

QUICK, MANY = 8, 250


@pytest.fixture(scope="module")
def jobs(yard: Yard) -> dict[str, Files]:
    """Files of a place with one job, by its state."""
    ingest(np.column_stack([X, Y]), yard.place("rows"), target=3, chunk_rows=16)
    return {state: place_of_job(yard, state) for state in STATES}


def looks(place: Path, model: Path) -> dict[str, Callable[[], object]]:
    """What is asked of a place."""
    records = JobRecords(str(place), JOB)

    def work() -> None:
        done = records.work()
        done.opened_settings()
        done.tables()

    def wait() -> None:
        with connect(jobs=place) as session:
            session.job(JOB).wait(0)

    def served(ask: Callable[[JobActions], object]) -> Callable[[], object]:
        return lambda: answered(ask, place)

    def listed(desk: JobActions) -> object:
        told = desk.list_jobs(10)
        assert [job["id"] for job in told] == [JOB] * (place / "specs" / f"{JOB}.json").is_file()
        return told

    return {
        "status": lambda: commanded("status", JOB, "--jobs", place),
        "status as JSON": lambda: commanded("status", JOB, "--jobs", place, "--json"),
        "status of a model": lambda: commanded("status", model, "--jobs", place),
        "jobs": lambda: commanded("jobs", place),
        "logs": lambda: commanded("logs", JOB, "--jobs", place),
        "cancel": lambda: commanded("cancel", JOB, "--jobs", place),
        "work": work,
        "wait": wait,
        "list of the service": served(listed),
        "job of the service": served(lambda desk: desk.status(JOB)),
        "logs of the service": served(lambda desk: desk.logs(JOB, 0)),
        "cancel by the service": served(lambda desk: desk.cancel(JOB)),
    }


def answered(ask: Callable[[JobActions], object], place: Path) -> None:
    """What the service is asked; its answer is JSON, or a refusal that is no fault of its own.

    Raises
    ------
    Refused
    """
    desk, refusal = JobActions(JobsPlace(str(place)), AllowedLocations([place.parent], str(place))), None
    try:
        json.dumps(ask(desk), allow_nan=False)
    except RefusedByTheService as error:
        refusal = error
    if refusal is not None:
        assert refusal.status in (404, 409, 503), refusal
        assert str(place.parent) not in str(refusal)
        raise Refused(refusal.status, str(refusal))


LOOKS = list(looks(Path("store"), Path("model")))


def fuzz_jobs(yard: Yard, files: Files, examples: int) -> None:
    @of_inputs(examples)
    @seed(1)
    @given(damaged=files_damaged(files), look=st.sampled_from(LOOKS))
    def run(damaged: tuple[Files, list[Any], list[str]], look: str) -> None:
        found, changes, _ = damaged
        place = yard.place("store")
        lay(place, found, changes)
        # Who finds a job without a state, or cancels it, writes the next one.
        yard.run(looks(place, yard.place_of("model"))[look], may_write=place)

    run()
    yard.place("store")


@pytest.mark.parametrize("state", STATES)
def test_damaged_jobs(yard: Yard, jobs: dict[str, Files], told: Any, state: str) -> None:
    with told(f"job that is {state}", QUICK):
        fuzz_jobs(yard, jobs[state], QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_damaged_jobs(yard: Yard, jobs: dict[str, Files], told: Any) -> None:
    with told("damaged jobs", len(STATES) * MANY):
        for state in STATES:
            fuzz_jobs(yard, jobs[state], MANY)
