"""Test of the promise on which all writers rely: if two of them create one object, one fails.

Some servers, proxies and drivers accept a conditional put and ignore the condition. Then both writers believe that they
were first: two leases are held, or two models are published. So each process tests each place once, before it creates
the first object there; a place is a bucket at an endpoint.
"""

from __future__ import annotations

import os
import threading
import uuid
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import StoreError

PROBE = "PROBE/"

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_proved: set[tuple[str | None, ...]] = set()
_guard = threading.Lock()


def prove_create(blobs: Blobs, create: Callable[[str, bytes], bool]) -> None:
    """Create an object twice, unless this process has tested the place before, and remove it.

    Parameters
    ----------
    blobs : the place.
    create : its method that creates an object, without this test.

    Raises
    ------
    StoreError
        The second creation was not refused, or the place has no conditional put.
    """
    bucket = "/".join(blobs.location.split("/")[:3])
    place = (bucket, *map(os.environ.get, _ENDPOINTS))
    with _guard:
        if place in _proved:
            return
        key = f"{PROBE}{uuid.uuid4().hex}"
        try:
            create(key, b"first")
            held = not create(key, b"second") and blobs.read(key) == b"first"
        except StoreError as error:
            if not any(word in str(error.__cause__) for word in ("NotImplemented", "Not Implemented", " 501 ")):
                # Nothing is removed: a place that does not answer would cost six more tries.
                raise
            held = False
        with suppress(StoreError):
            blobs.remove(key)
        if not held:
            raise StoreError(
                f"{bucket} cannot hold outputs: an object can be created there twice (it ignores the condition "
                'If-None-Match: "*" of a put), so that two writers would both win; write to a store that has '
                "conditional puts, or to a folder"
            )
        _proved.add(place)


class TestedBlobs(Blobs):
    """A place whose `create` is tested before its first use."""

    def create(self, key: str, value: bytes) -> bool:
        self.prove_create()
        return self._create(key, value)

    def prove_create(self) -> None:
        prove_create(self, self._create)

    @abstractmethod
    def _create(self, key: str, value: bytes) -> bool:
        """`create`, without the test."""
