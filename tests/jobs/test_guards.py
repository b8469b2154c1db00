"""What a driver asks itself before it writes: each of these, left out, would publish what is another's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fits import rows_at, small, written
from thread_clients import thread_client

from streamkernel.blobs import Lease
from streamkernel.engine import Plan, Silent, make_plan
from streamkernel.errors import InputChangedError, ParameterError, RunLockedError
from streamkernel.fits.ridge import ridge
from streamkernel.jobs import connect
from streamkernel.jobs._cluster import DriverExecutor
from streamkernel.jobs._fit_and_publish import Fitting
from streamkernel.jobs.records import CANCELLED, QUEUED, RUNNING, JobRecords, Stopped


def lost() -> None:
    raise RunLockedError("lost")


def stopped() -> None:
    raise Stopped("closing")


@pytest.fixture
def records(tmp_path: Path) -> JobRecords:
    return written(tmp_path / "jobs", rows_at(tmp_path / "rows.zarr"), tmp_path / "model")


def fitting(records: JobRecords, **lease: Any) -> Fitting:
    held = (
        SimpleNamespace(held=True, holder="me", check=lambda: None, **lease) if not lease else SimpleNamespace(**lease)
    )
    return Fitting(records, records.work(), held, records.latest())  # type: ignore[arg-type]  # what of a lease is asked


def model(saved: list[str]) -> Any:
    run = SimpleNamespace(peak_memory_bytes=1, seconds=1.0)
    record = SimpleNamespace(run=run)
    return SimpleNamespace(digest="d", record=record, save=lambda where, overwrite: saved.append(where))


def test_nothing_is_published_without_the_lease(records: JobRecords) -> None:
    saved: list[str] = []
    watch: Any = SimpleNamespace(check=lambda: None, measured=lambda peak: None)
    with pytest.raises(RunLockedError):
        fitting(records, held=True, holder="me", check=lost).publish(model(saved), watch)
    assert saved == []


def test_nothing_is_claimed_by_who_was_told_to_stop(records: JobRecords) -> None:
    before, saved = records.latest(), list[str]()
    watch: Any = SimpleNamespace(check=stopped, measured=lambda peak: None)
    with pytest.raises(Stopped):
        fitting(records).publish(model(saved), watch)
    assert (saved, records.latest()) == ([], before)


def test_a_job_is_not_claimed_without_its_lease(records: JobRecords) -> None:
    before = records.latest()
    with pytest.raises(Stopped, match="lost"):
        records.claim(SimpleNamespace(held=False, holder="me"))  # type: ignore[arg-type]
    assert records.latest() == before


def test_another_table_is_not_gone_on_with(records: JobRecords, tmp_path: Path) -> None:
    watch: Any = SimpleNamespace(tell=lambda *_: None)
    first = fitting(records)
    first.record = records.advance(records.latest(), RUNNING, holder="me", attempt=1, pinned="of other rows")  # type: ignore[assignment]
    with pytest.raises(InputChangedError, match="submit a new job"):
        first.prepare(watch)


def test_a_driver_plans_once(records: JobRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    class Watch(Silent):
        def tell(self, *told: Any) -> None: ...

        def planned(self, plan: Plan) -> None:
            plans.append(plan)

    made, plans = list[Plan](), list[Plan]()

    def counted(*arguments: Any, **options: Any) -> Plan:
        made.append(make_plan(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(ridge, "make_plan", counted)
    driven, watch = fitting(records), Watch()
    driven.record = records.advance(records.latest(), RUNNING, holder="me", attempt=1)  # type: ignore[assignment]
    driven.prepare(watch)  # type: ignore[arg-type]  # what of a watch is asked
    with thread_client() as client:
        model = driven.fit(DriverExecutor(client), watch)  # type: ignore[arg-type]
    assert made == plans
    assert len(plans) == 1
    assert model.record.run.planned_memory_bytes == plans[0].memory_bytes


def test_what_is_being_published_is_not_cancelled(tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    records = written(tmp_path / "jobs", rows, tmp_path / "model", status=RUNNING, digest="d", attempt=1)
    lease = Lease.acquire(records.blobs, "lease", ttl=10.0, wait=0.0)
    assert lease is not None
    with (
        lease,
        connect(jobs=tmp_path / "jobs") as session,
        pytest.raises(ParameterError, match=r"is publishing .* too"),
    ):
        session.job(records.id).cancel()
    assert records.latest().value["status"] == RUNNING


@pytest.mark.parametrize("status", [RUNNING, QUEUED])
def test_what_was_lost_while_it_was_published(tmp_path: Path, status: str) -> None:
    """It is cancelled, or else no other job could ever make that model; unless the model is there."""
    rows, model = rows_at(tmp_path / "rows.zarr"), tmp_path / "model"
    fitted = small().fit(rows)
    fitted.save(model)
    digest = fitted.model_.digest
    cancelled, published = (
        written(tmp_path / "jobs", rows, model, status=status, digest=each, attempt=1, number=number)
        for number, each in enumerate(("of another", digest))
    )
    with connect(jobs=tmp_path / "jobs") as session:
        session.job(cancelled.id).cancel()
        assert cancelled.latest().value["status"] == CANCELLED
        with pytest.raises(ParameterError, match="has published its model; it is too late to cancel it, and resume"):
            session.job(published.id).cancel()
    assert published.latest().value["status"] == status


@pytest.mark.parametrize("id", ["", "..", "../20260101-000000-01234567", "20260101-000000-01234567/state"])
def test_an_id_is_no_path(tmp_path: Path, id: str) -> None:
    with pytest.raises(ParameterError, match="is not the id of a job"):
        JobRecords(str(tmp_path), id)
