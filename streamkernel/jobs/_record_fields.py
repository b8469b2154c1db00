"""The fields of a job's records, and their one reader. A record may have further fields, which are for people."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from streamkernel.errors import (
    ClusterError,
    CorruptMetadataError,
    ModelFormatError,
    ResourceLimitError,
    StreamKernelError,
    error_class,
)
from streamkernel.jobs.specification import JobSpecification
from streamkernel.records import Record
from streamkernel.records.json_types import AtLeast, Count, NonNegative

T = TypeVar("T", bound=Record)

Time = NonNegative  # Unix time, in seconds


class SubmittedJob(Record):
    """The file that is written on submission."""

    format: Literal["streamkernel.job"]
    version: int
    submitted: Time
    work: JobSpecification


class Failure(Record):
    """The error that ended a job: its class, and its message in Python's words.

    `marked` is the message with the marks of `streamkernel.wording`, where it has some; earlier releases did not write
    it.
    """

    type: str
    message: str
    marked: str | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The fields of an error."""
        if isinstance(error, MemoryError) and not isinstance(error, StreamKernelError):
            error = ResourceLimitError(
                f"the driver ran out of memory ({error}); give its worker more, or choose a smaller basis"
            )
        if not isinstance(error, StreamKernelError):
            error = StreamKernelError(
                f"unexpected {type(error).__name__} in the job: {error} (its log shows where it came from)"
            )
        marked = {"marked": error.message} if error.message != str(error) else {}
        return cls(type=type(error).__name__, message=str(error), **marked)

    def as_error(self) -> StreamKernelError:
        """An error of the same class and message."""
        return (error_class(self.type) or ClusterError)(self.marked or self.message)


class FitResult(Record):
    """The fields of every model's summary that the service shows."""

    basis_size: Count
    relative_residual_trace: float
    resumed_sweeps: Count
    seconds: float
    digest: str


class StateFields(Record):
    """One state of a job.

    `asked` is the number of the state that asked for a driver, and `attempt` counts the drivers. `steps` is the number
    of checkpoints when the last driver began, and `fruitless` the number of drivers in a row that saved no further one.
    `pinned` is the digest of all that determines the result, and `digest` that of the model that is being published.
    """

    status: Literal["queued", "running", "interrupted", "done", "failed", "cancelling", "cancelled", "removing"]
    time: Time
    asked: Count
    holder: str | None = None
    worker: str | None = None
    attempt: Count = 0
    steps: Annotated[int, AtLeast(-1)] = -1
    fruitless: Count | None = 0  # earlier releases wrote null for 0 at times
    pinned: str | None = None
    digest: str | None = None
    error: Failure | None = None
    result: FitResult | None = None
    keep_checkpoints: bool = False

    @classmethod
    def from_config(cls, config: object, where: str = "") -> Self:
        fields = super().from_config(config, where)
        if fields.status == "failed" and fields.error is None:
            raise ModelFormatError("it lacks the field error")
        return fields


class ProgressFields(Record):
    """The latest progress of a driver; see `Job.progress`."""

    attempt: Count
    worker: str
    sweep: str
    sweeps_done: Count
    sweeps_planned: Count | None
    sweeps_resumed: Count
    rows_done: Count
    rows_total: Count
    planned_bytes: Count | None
    peak_bytes: Count
    seconds: float
    time: Time
    host: str
    process: int
    share: NonNegative | None = None  # earlier releases wrote neither this nor the next
    seconds_left: NonNegative | None = None


class EventFields(Record):
    """One event of the log."""

    time: Time
    event: str
    level: str
    text: str
    host: str
    process: int


def read_fields(kind: type[T], config: object, where: str) -> T:
    """The fields of a record that was read at `where`.

    Raises
    ------
    CorruptMetadataError
        A field is missing, or has a wrong type or value; the message names record and field.
    """
    try:
        return kind.from_config(config)
    except ModelFormatError as error:
        raise CorruptMetadataError(
            f"{where} is no record of a job that this release reads: {error}; restore it from a copy, or remove it"
        ) from error
