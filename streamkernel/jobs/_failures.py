"""Errors of a job: stored as class and message, and raised again as the same class for the user who asks for it."""

from __future__ import annotations

from streamkernel.errors import ClusterError, ResourceLimitError, StreamKernelError, error_class
from streamkernel.type_aliases import Fields


def as_record(error: BaseException) -> dict[str, str]:
    """Class and message of an error, for the records."""
    if isinstance(error, StreamKernelError):
        return {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, MemoryError):
        return {
            "type": ResourceLimitError.__name__,
            "message": f"the driver ran out of memory ({error}); give its worker more, or choose a smaller basis",
        }
    return {
        "type": StreamKernelError.__name__,
        "message": f"unexpected {type(error).__name__} in the job: {error} (its log shows where it came from)",
    }


def as_error(record: Fields) -> StreamKernelError:
    """The error of such a record."""
    kind = error_class(str(record.get("type"))) or ClusterError
    return kind(str(record.get("message")))
