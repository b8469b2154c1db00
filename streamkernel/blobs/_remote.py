"""What the drivers of URLs share: the retries, the errors, and a test of the promise on which all writers rely.

The promise: if two writers create one object, one fails. Some servers, proxies and drivers accept a conditional put and
ignore the condition. Then both writers believe that they were first: two leases are held, or two models are published.
So each process tests each place once, before it creates the first object there; a place is a bucket at an endpoint.
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, TypeVar

from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.os_errors import first_line
from streamkernel.blobs.retries import with_retries
from streamkernel.errors import StoreAccessError, StoreError, StreamKernelError

PROBE = "PROBE/"

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_proved: set[tuple[str | None, ...]] = set()
_guard = threading.Lock()

T = TypeVar("T")


class RemoteBlobs(Blobs):
    """A place at a URL. It pickles without credentials: the receiver has its own."""

    failures: ClassVar[tuple[type[Exception], ...]]
    """The classes of the driver's errors."""

    def __init__(self, url: str) -> None:
        self.location = url

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.location,)

    def _request(self, doing: str, key: str, request: Callable[[], T]) -> T | None:
        """The answer to a request that may safely be sent twice; None if it reads or removes what is not there."""
        try:
            return with_retries(request, self._may_pass)
        except StreamKernelError:
            raise
        except self.failures as error:
            absent = _ABSENT if doing != "removing" else _ABSENT[:2]  # a folder is there, and is not removed
            if isinstance(error, absent) and doing not in ("writing", "creating") and not self._is_lost(error):
                return None
            raise self._translated(error, doing, key) from error

    def _translated(self, error: Exception, doing: str, key: str) -> StreamKernelError:
        """Our error for a driver's error. The user knows the location, not the keys, so it names the location."""
        what = key or "it"
        if self._is_refused(error):
            return StoreAccessError(
                f"{self.location} may not be used ({doing} {what} was refused)",
                remedy="check the credentials in the environment",
            )
        return StoreError(
            f"{self.location} failed while {doing} {what} ({first_line(error)})",
            remedy="check the endpoint and run again",
        )

    @abstractmethod
    def _may_pass(self, error: BaseException) -> bool:
        """Whether a request failed in transit, or the server refused it for now."""

    def _is_refused(self, error: Exception) -> bool:
        """Whether the place does not accept our credentials."""
        return isinstance(error, PermissionError)

    def _is_lost(self, error: Exception) -> bool:
        """Whether an answer that something is not there is about the whole place."""
        return False

    def create(self, key: str, value: bytes) -> bool:
        self.prove_create()
        return self._create(key, value)

    @abstractmethod
    def _create(self, key: str, value: bytes) -> bool:
        """`create`, without the test of the place."""

    def prove_create(self) -> None:
        """Create an object twice, unless this process has tested the place before, and remove it.

        Raises
        ------
        StoreError
            The second creation was not refused, or the place has no conditional put.
        """
        bucket = "/".join(self.location.split("/")[:3])
        place = (bucket, *map(os.environ.get, _ENDPOINTS))
        with _guard:
            if place in _proved:
                return
            key = f"{PROBE}{uuid.uuid4().hex}"
            try:
                self._create(key, b"first")
                held = not self._create(key, b"second") and self.read(key) == b"first"
            except StoreError as error:
                if not any(word in str(error.__cause__) for word in ("NotImplemented", "Not Implemented", " 501 ")):
                    # Nothing is removed: a place that does not answer would cost six more tries.
                    raise
                held = False
            with suppress(StoreError):
                self.remove(key)
            if not held:
                raise StoreError(
                    f"{bucket} cannot hold outputs: an object can be created there twice (it ignores the condition "
                    'If-None-Match: "*" of a put), so that two writers would both win',
                    remedy="write to a store that has conditional puts, or to a folder",
                )
            _proved.add(place)


def version_number(tag: str) -> int:
    """The number of a version for a `Stamp`."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:7], "big")
