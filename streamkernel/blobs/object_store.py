"""S3, Google Cloud Storage and Azure through obstore; credentials come from the environment, as their own tools' do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import from_url

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import ParameterError, StoreAccessError, StoreError, StoreNotFoundError

__all__ = ["ObjectBlobs", "object_store"]

# An endpoint that is down is said to be so within 30 s (docs/reliability.md), one that stumbles is asked again.
_RETRIES: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=25)}
_TIMEOUT = "20s"
_CONNECT_TIMEOUT = "4s"


def object_store(url: str) -> Any:
    """The obstore store at a URL, with our patience; made anew in each process, from its own environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: Any = {
        "timeout": _TIMEOUT,
        "connect_timeout": _CONNECT_TIMEOUT,
        # Plain HTTP only where the endpoint that was given says so.
        "allow_http": endpoint.startswith("http://"),
    }
    try:
        return from_url(url, client_options=options, retry_config=_RETRIES)
    except (BaseError, ValueError, OSError) as error:
        raise ParameterError(f"{url} cannot be opened: {_first_line(error)}") from error


class ObjectBlobs(Blobs):
    """Objects below a URL such as ``s3://bucket/prefix``."""

    def __init__(self, url: str) -> None:
        self.location = url
        self._store = object_store(url)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        # Credentials stay where they are: the receiver has its own.
        return type(self), (self.location,)

    def read(self, key: str) -> bytes | None:
        with self._errors("reading", key):
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                return None

    def write(self, key: str, value: bytes) -> None:
        with self._errors("writing", key):
            obstore.put(self._store, key, value)

    def create(self, key: str, value: bytes) -> bool:
        with self._errors("creating", key):
            try:
                obstore.put(self._store, key, value, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def keys(self, prefix: str = "") -> list[str]:
        # Object stores list by whole segments of a key; the rest of the prefix is looked for here.
        folder = prefix.rpartition("/")[0]
        with self._errors("listing", prefix):
            found = [entry["path"] for page in obstore.list(self._store, folder or None) for entry in page]
        return sorted(key for key in found if key.startswith(prefix))

    def remove(self, key: str) -> None:
        with self._errors("removing", key):
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)

    def size(self, key: str) -> int:
        with self._errors("reading", key):
            try:
                return int(obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return -1

    def _refuse_missing_bucket(self, error: BaseException) -> None:
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            raise StoreNotFoundError(f"there is no bucket for {self.location}; check its name") from error

    @contextmanager
    def _errors(self, doing: str, key: str) -> Iterator[None]:
        where = f"{self.location}/{key}" if key else self.location
        try:
            yield
        except StoreError:
            raise
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise StoreAccessError(
                f"{where} may not be used ({doing} it was refused); check the credentials in the environment"
            ) from error
        except FileNotFoundError as error:
            self._refuse_missing_bucket(error)
            raise StoreNotFoundError(f"nothing at {where}; check the address") from error
        except InvalidPathError as error:
            raise ParameterError(f"{where} is no name of an object: {_first_line(error)}") from error
        except (BaseError, OSError) as error:
            self._refuse_missing_bucket(error)
            if " 403 " in str(error) or "AccessDenied" in str(error):
                raise StoreAccessError(
                    f"{where} may not be used ({doing} it was refused); check the credentials in the environment"
                ) from error
            raise StoreError(
                f"{where} failed while {doing} it ({_first_line(error)}); check the endpoint and run again"
            ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(": <?xml")[0][:200] if lines else type(error).__name__
