"""The steps of a driver between its lease and its last record: open, plan, fit, publish."""

from __future__ import annotations

from typing import Any

from streamkernel.atomic import canonical_json, text_digest
from streamkernel.blobs import Lease
from streamkernel.engine import Session, check_memory, machine_of, resident_bytes
from streamkernel.errors import InputChangedError, StoreError, StoreExistsError
from streamkernel.jobs._checkpoints import JobCheckpoints
from streamkernel.jobs._cluster import DriverExecutor, DriverLimits
from streamkernel.jobs._progress_watch import ProgressWatch
from streamkernel.jobs._steps import steps_of
from streamkernel.jobs.records import JobRecords, State
from streamkernel.jobs.specification import JobSpecification
from streamkernel.models.saved import SavedModel
from streamkernel.store import check_target
from streamkernel.table import Table
from streamkernel.type_aliases import Fields


def published_digest(work: JobSpecification) -> str | None:
    """Digest of the model at a job's model location; None if no model can be read there."""
    model = _existing(work)
    return None if model is None else model.digest


def _existing(work: JobSpecification) -> SavedModel | None:
    try:
        return work.kind.model.load(work.model)
    except StoreError:
        return None


class Fitting:
    """One driver's fit.

    Parameters
    ----------
    record : state of the job in which this driver runs.
    """

    def __init__(self, records: JobRecords, work: JobSpecification, lease: Lease, record: State) -> None:
        self.records, self.work, self.lease, self.record = records, work, lease, record
        self._executor: DriverExecutor | None = None
        self.settings: Any = None
        self.whole: Table
        self.table: Table
        self.steps: JobCheckpoints

    def memory_now(self) -> int:
        """Memory of all workers now, in bytes."""
        return 0 if self._executor is None else self._executor.memory_now()

    def published_before(self) -> Fields | None:
        """The result, if an earlier driver was lost after it had published the model; else None."""
        digest = self.record.fields.digest
        if digest is None:
            return None
        model = _existing(self.work)
        return None if model is None or model.digest != digest else self._result(model)

    def prepare(self, watch: ProgressWatch) -> None:
        """Open the table and the checkpoints of earlier drivers.

        Raises
        ------
        StoreError, DataError, ParameterError
            The model's location, the table or a setting is refused.
        InputChangedError
            The table is not the one with which an earlier driver began.
        """
        if self.record.fields.digest is None:
            check_target(self.work.model, overwrite=self.work.overwrite)
        self.whole, self.table = self.work.tables()
        self.settings = self.work.opened_settings().for_table(self.table)
        pinned = {
            "estimator": self.work.estimator,
            "settings": self.settings.to_config(),
            **self.table.run_pins,
        }
        digest = text_digest(canonical_json(pinned))
        before = self.record.fields.pinned
        if before is None:
            self.record = self.records.claim(self.lease, pinned=digest)
        elif before != digest:
            raise InputChangedError(
                f"{self.work.table} is not the table that the job began with; submit a new job for the new rows"
            )
        steps_at = steps_of(self.records.id, self.work.model)
        self.steps = JobCheckpoints(steps_at, self.record.fields.attempt, digest, self.lease.check)
        if self.steps.steps():
            watch.log_event("resuming", f"resuming from {len(self.steps.steps())} checkpoints")

    def fit(self, executor: DriverExecutor, watch: ProgressWatch) -> SavedModel:
        """Check that the memory suffices, then run the fit."""
        self._executor = executor
        before = resident_bytes()
        kind, table, settings = self.work.kind, self.table, self.settings
        n, machine = settings.components(table), machine_of(executor, before)
        plan = kind.plan(table, settings, machine, n)
        limits = DriverLimits.of(executor, self.work.memory_limit)
        check_memory(plan, limits, lambda size: kind.plan(table, settings, machine, size), n)
        session = Session(executor, progress=watch, checkpoints=self.steps)
        model: SavedModel = kind.fit(table, settings, session, plan=plan, **kind.options_of_fit(self.whole))
        return model

    def publish(self, model: SavedModel, watch: ProgressWatch) -> Fields:
        """Save the model under the lease; once its digest is recorded, nobody can cancel the job."""
        watch.check()
        run = model.record.run
        assert run is not None
        watch.measured(run.peak_memory_bytes)
        if self.record.fields.digest != model.digest:
            self.record = self.records.claim(self.lease, digest=model.digest)
        self.lease.check()
        try:
            model.save(self.work.model, overwrite=self.work.overwrite)
        except StoreExistsError:
            # Written by a driver that was lost between this line and the next record.
            existing = _existing(self.work)
            if existing is None or existing.digest != model.digest:
                raise
        return self._result(model)

    def _result(self, model: SavedModel) -> Fields:
        """The summary of the model for the last record."""
        run = model.record.run
        return model.fit_summary(self.work.model, 0.0 if run is None else run.seconds)
