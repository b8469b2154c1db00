"""A job with damaged records: it is listed with its error, so that it does not hide other jobs and is not hidden."""

from __future__ import annotations

from typing import NoReturn

from streamkernel.errors import StoreError
from streamkernel.jobs._record_fields import Failure
from streamkernel.jobs.job import Job
from streamkernel.jobs.records import UNREADABLE, JobRecords
from streamkernel.type_aliases import Fields


class UnreadableJob(Job):
    """A job with `status` "unreadable" and an `error`; all other attributes and methods raise this error.

    Parameters
    ----------
    records : records of the job.
    damage : error that was raised when they were read.
    """

    def __init__(self, records: JobRecords, damage: StoreError) -> None:
        self._records, self._client, self._damage = records, None, damage
        self.id, self.jobs = records.id, records.location

    @property
    def status(self) -> str:
        return UNREADABLE

    def refresh(self) -> str:
        return UNREADABLE

    @property
    def failure(self) -> StoreError:
        return self._damage

    def _failure(self) -> Failure:
        return Failure.of(self._damage)

    def to_config(self) -> Fields:
        unknown = dict.fromkeys(("estimator", "table", "rows", "model", "submitted", "changed", "result"))
        return {"id": self.id, "status": UNREADABLE, "jobs": self.jobs, **unknown, "progress": {}, "error": self.error}

    def _raise(self, *arguments: object, **options: object) -> NoReturn:
        raise self._damage

    work = progress = property(_raise)
    logs = wait = cancel = resume = _raise
