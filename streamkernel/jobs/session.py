"""Jobs of a cluster or of a place: submission, list and search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from streamkernel.blobs import is_disk_full, is_url, joined, parent_of
from streamkernel.errors import (
    CorruptMetadataError,
    ParameterError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.jobs._damaged import UnreadableJob
from streamkernel.jobs._remove import remove_job
from streamkernel.jobs._reservation import latest_maker, reserve
from streamkernel.jobs.job import Job
from streamkernel.jobs.records import JobRecords, is_id, job_ids, new_id
from streamkernel.jobs.specification import location_of
from streamkernel.outputs import refuse_link
from streamkernel.type_aliases import FieldsView, Untyped

if TYPE_CHECKING:
    from distributed import Client

    from streamkernel.estimators.base import SavedEstimator
    from streamkernel.jobs.requests import RequestedFit

ENVIRONMENT = "STREAMKERNEL_JOBS"


def default_jobs(model: str) -> str:
    """Default location of the records of a model's jobs: beside the model."""
    return joined(parent_of(model)[0], ".jobs")


def connect(
    address: str | None = None,
    security: Untyped = None,
    *,
    jobs: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    timeout: float = 10.0,
) -> JobsSession:
    """Open a session with a Dask cluster that runs jobs; for use in a ``with`` block.

    Parameters
    ----------
    address : address of the scheduler, such as ``tls://host:8786``; None to read jobs only.
    security : certificates, from `streamkernel.engine.security.tls_security`; default: those that the environment
        names.
    jobs : place of the jobs' records, a folder that the cluster sees or a URL; default: STREAMKERNEL_JOBS, else the
        folder ``.jobs`` beside each job's model.
    insecure : whether to connect to a scheduler on another machine without encryption.
    timeout : seconds to wait for the scheduler's answer.

    Raises
    ------
    SecurityError, ClusterError
        As in `streamkernel.engine.security.connect_client`; also if the cluster's versions differ from this process's.

    Examples
    --------
    ::

        with streamkernel.connect("tls://head:8786") as session:
            job = session.submit(KernelRidge(500), "s3://b/rows.zarr", "s3://b/model.zarr")
        ...
        with streamkernel.connect("tls://head:8786", jobs="s3://b/.jobs") as session:
            session.job(job.id).result().predict(X)
    """
    place = jobs or os.environ.get(ENVIRONMENT) or None
    client = None
    if address is not None:
        # Dask takes long to load, and jobs are read without it.
        from streamkernel.jobs._scheduling import connected

        client = connected(address, security, insecure=insecure, timeout=timeout)
    return JobsSession(client, None if place is None else location_of("jobs", place))


class JobsSession:
    """Jobs of a cluster or of a place; see `connect`.

    Parameters
    ----------
    client : client of the cluster; None if jobs can only be read.
    place : place of the records; None for a folder beside each model.
    """

    def __init__(self, client: Client | None, place: str | None) -> None:
        self._client, self.place = client, place
        self._places: dict[str, None] = {} if place is None else {place: None}

    def submit(
        self,
        estimator: SavedEstimator | str | RequestedFit,
        table: str | os.PathLike[str],
        model: str | os.PathLike[str],
        *,
        settings: FieldsView | None = None,
        rows: tuple[int | None, int | None] | None = None,
        queries: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        memory_limit: int | str | None = None,
        lease_seconds: float = 15.0,
        check: bool = True,
        weight: str | None = None,
    ) -> Job:
        """Fit an estimator on the cluster; the job goes on if this process ends.

        Parameters
        ----------
        estimator : one of our estimators, not fitted; or its name on the command line, with its `settings` by name.
        table, model : locations of the rows and of the fitted model; the cluster must see both.
        rows : half-open slice of the stored rows.
        queries : location of the query points of a committee.
        overwrite : whether an existing model is replaced, once the new one is whole.
        memory_limit : bytes or text such as "4GB", for all processes together; default: that of the estimator.
        lease_seconds : seconds without a record of the driver after which it is replaced.
        check : whether to check table and model here too; False if only the cluster sees them.
        weight : name of the column that is the row weights, or "none" for no weights; default: those of the table.

        Raises
        ------
        ParameterError
            Plain JSON cannot hold the settings, or there is no cluster.
        StoreExistsError
            The model exists, or another job is making it.
        StoreError, DataError
            The metadata of the table show an error.
        """
        if self._client is None:
            raise ParameterError("no cluster can run a job here; connect to a scheduler's address to submit one")
        # Those who read or stop jobs do without the fits and without Dask.
        from streamkernel.jobs._scheduling import submit_driver
        from streamkernel.jobs._submission import checked_work

        work = checked_work(
            estimator,
            table,
            model,
            settings=settings,
            rows=rows,
            queries=queries,
            overwrite=overwrite,
            memory_limit=memory_limit,
            lease_seconds=lease_seconds,
            check=check,
            weight=weight,
        )
        place = self._place_of(work.model)
        records = JobRecords(place, new_id())
        queued = records.create(work)
        try:
            reserve(records, work.model)
        except StoreError:
            records.withdraw()
            raise
        submit_driver(self._client, records, queued)
        return Job(records, self._client)

    def jobs(self) -> list[Job]:
        """All jobs of the place, oldest first; interrupted jobs get a new driver.

        A job with damaged records is among them: its `status` is "unreadable", and its `error` gives the damage.

        Raises
        ------
        ParameterError
            No place is known.
        """
        found = [self._listed(JobRecords(place, id)) for place in self._known_places() for id in job_ids(place)]
        return sorted((job for job in found if job is not None), key=lambda job: job.id)

    def job(self, id: str | os.PathLike[str]) -> Job:
        """The job with an id, or the latest job that makes a model at a location; if interrupted, it is driven again.

        Raises
        ------
        StoreNotFoundError
            There is no such job.
        CorruptMetadataError
            Its records are damaged; the message names the damaged one.
        """
        name = os.fspath(id)
        job = Job(self._of_id(name) if is_id(name) else self._of_model(location_of("model", name)), self._client)
        job.refresh()
        return job

    def remove(self, id: str) -> None:
        """Remove a job that has ended: its records, log and checkpoints; never its model.

        A second call finishes an interrupted removal.

        Raises
        ------
        ParameterError
            The job has not ended.
        StoreNotFoundError
            There is no such job.
        CorruptMetadataError
            Its records are damaged, so it is not known whether it still runs.
        StoreError
            A part cannot be removed; another call removes the rest.
        """
        remove_job(self._of_id(id))

    def _listed(self, records: JobRecords) -> Job | None:
        """A job, or an `UnreadableJob` if its records are damaged; None if it has just been removed."""
        try:
            job = Job(records, self._client)
            try:
                job.refresh()
            except StoreError as error:
                # It cannot be driven now; its `error` says why.
                if not is_disk_full(error):
                    raise
            job.to_config()
        except StoreNotFoundError:
            return None
        except (CorruptMetadataError, StoreAccessError) as error:
            return UnreadableJob(records, error)
        return job

    def _known_places(self) -> list[str]:
        if not self._places:
            raise ParameterError(
                f"the place of the jobs is not known; name it: connect(..., jobs='.../.jobs'), or {ENVIRONMENT}"
            )
        return list(self._places)

    def _of_id(self, id: str) -> JobRecords:
        places = self._known_places()
        for place in places[:-1]:
            if id in job_ids(place):
                return JobRecords(place, id)
        return JobRecords(places[-1], id)

    def _of_model(self, model: str) -> JobRecords:
        place = self._place_of(model)
        latest = latest_maker(place, model)
        if latest is None:
            raise StoreNotFoundError(f"no job in {place} makes {model}; name the place of the jobs as on submission")
        return JobRecords(place, latest)

    def _place_of(self, model: str) -> str:
        place = self.place or default_jobs(model)
        if self.place is None and not is_url(place):
            # A link that the user names is followed; a link with our own default name is not.
            refuse_link(Path(place))
        self._places[place] = None
        return place

    def close(self) -> None:
        """Disconnect from the cluster; its jobs go on."""
        if self._client is not None:
            self._client.close()

    def __enter__(self) -> JobsSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
