"""S3, Google Cloud Storage and Azure through obstore; credentials come from the environment, as for their own tools."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar
from urllib.parse import quote

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import from_url

from streamkernel.blobs._exclusive_create import TestedBlobs
from streamkernel.blobs.blobs import Level, Stamp
from streamkernel.blobs.retries import REQUEST_SECONDS, http_status_passes, with_retries
from streamkernel.errors import ParameterError, StoreAccessError, StoreError, StoreNotFoundError
from streamkernel.type_aliases import Untyped

# obstore does not retry: all retries are ours (`retries`).
_NO_RETRIES: Untyped = {"max_retries": 0, "retry_timeout": timedelta(seconds=REQUEST_SECONDS)}
_CONNECT_TIMEOUT = "4s"
# Name of a bucket; for Azure, with its account.
_BUCKET = re.compile(r"[\w.:@-]*", re.ASCII)
# S3's own error codes; they come with other HTTP statuses too, and for single keys of a request for many.
_PASSING = re.compile(r"(?:<Code>|\(code: )(?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout)\b")
_STATUS = re.compile(r"\bstatus code: (\d{3})\b")

T = TypeVar("T")


def object_store(url: str) -> Untyped:
    """The obstore store at a URL, with our timeouts; every process makes its own, from its own environment."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        # Some characters make obstore panic (Rust), and a panic is no Exception.
        raise ParameterError(f"{url} cannot be opened: {bucket!r} is no name of a bucket (letters, digits, . _ -)")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: Untyped = {
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "connect_timeout": _CONNECT_TIMEOUT,
        # Plain HTTP only if the user's endpoint has this scheme.
        "allow_http": endpoint.startswith("http://"),
    }
    try:
        # obstore decodes the URL, so every character of the key is encoded first.
        return from_url(f"{scheme}://{bucket}/{quote(key)}", client_options=options, retry_config=_NO_RETRIES)
    except (BaseError, ValueError, OSError) as error:
        raise ParameterError(f"{url} cannot be opened: {_first_line(error)}") from error


class ObjectBlobs(TestedBlobs):
    """Objects below a URL such as ``s3://bucket/prefix``."""

    def __init__(self, url: str) -> None:
        self.location = url
        self._store = object_store(url)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        # Credentials are not pickled: the receiver has its own.
        return type(self), (self.location,)

    def read(self, key: str) -> bytes | None:
        return self._asked("reading", key, lambda: bytes(obstore.get(self._store, key).bytes()))

    def read_part(self, key: str, first: int, last: int | None) -> bytes | None:
        def part() -> bytes:
            if first >= 0 and last is not None:
                return bytes(obstore.get_range(self._store, key, start=first, end=last))
            # Azure has no ranges relative to the end.
            start = first if first >= 0 else max(0, int(obstore.head(self._store, key)["size"]) + first)
            return bytes(obstore.get(self._store, key, options={"range": {"offset": start}}).bytes())

        return self._asked("reading", key, part)

    def write(self, key: str, value: bytes) -> None:
        self._asked("writing", key, lambda: obstore.put(self._store, key, value, use_multipart=False))

    def _create(self, key: str, value: bytes) -> bool:
        def put() -> bool:
            try:
                obstore.put(self._store, key, value, mode="create")
            except AlreadyExistsError:
                return False
            return True

        return bool(self._asked("creating", key, put))

    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        # obstore lists by whole segments of a key; the rest of the prefix is compared here.
        folder = prefix.rpartition("/")[0] or None

        def listed() -> dict[str, Stamp]:
            return {
                entry["path"]: _stamp(entry)
                for page in obstore.list(self._store, folder, chunk_size=1000)
                for entry in page
                if entry["path"].startswith(prefix)
            }

        return self._asked("listing", prefix, listed) or {}

    def level(self, prefix: str = "") -> Level:
        def listed() -> Level:
            found = obstore.list_with_delimiter(self._store, prefix.rstrip("/") or None)
            prefixes = sorted(f"{name}/" for name in found["common_prefixes"])
            return Level(prefixes, {entry["path"]: _stamp(entry) for entry in found["objects"]})

        return self._asked("listing", prefix, listed) or Level([], {})

    def holds(self, prefix: str = "") -> bool:
        folder = prefix.rpartition("/")[0] or None

        def found() -> bool:
            pages = obstore.list(self._store, folder)
            return any(entry["path"].startswith(prefix) for page in pages for entry in page)

        return bool(self._asked("listing", prefix, found))

    def remove(self, key: str) -> None:
        self._asked("removing", key, lambda: obstore.delete(self._store, key))

    def remove_all(self, keys: Sequence[str]) -> None:
        def removed() -> bool:
            obstore.delete(self._store, list(keys))
            return True

        if keys and self._asked("removing", keys[0], removed) is None:
            # One key was absent, and the answer does not tell which others were removed: remove them one by one.
            super().remove_all(keys)

    def size(self, key: str) -> int:
        size = self._asked("reading", key, lambda: int(obstore.head(self._store, key)["size"]))
        return -1 if size is None else size

    def _asked(self, doing: str, key: str, request: Callable[[], T]) -> T | None:
        """The answer to a request that may safely be sent twice; None if there is no such object."""
        with self._errors(doing, key):
            try:
                return with_retries(request, _may_pass)
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                return None

    def _refuse_missing_bucket(self, error: BaseException) -> None:
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            scheme, _, rest = self.location.partition("://")
            bucket = f"{scheme}://{rest.partition('/')[0]}"
            raise StoreNotFoundError(f"there is no bucket {bucket}; check its name") from error

    @contextmanager
    def _errors(self, doing: str, key: str) -> Iterator[None]:
        # The user knows the location, not the keys, so each message names the location.
        what = key or "it"
        refused = (
            f"{self.location} may not be used ({doing} {what} was refused); check the credentials in the environment"
        )
        try:
            yield
        except StoreError:
            raise
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise StoreAccessError(refused) from error
        except (InvalidPathError, ValueError) as error:
            where = f"{self.location}/{key}" if key else self.location
            raise ParameterError(f"{where} is no name of an object: {_first_line(error)}") from error
        except (BaseError, OSError) as error:
            self._refuse_missing_bucket(error)
            if " 403 " in str(error) or "AccessDenied" in str(error):
                raise StoreAccessError(refused) from error
            raise StoreError(
                f"{self.location} failed while {doing} {what} ({_first_line(error)}); check the endpoint and run again"
            ) from error


def _may_pass(error: BaseException) -> bool:
    """Whether a request failed in transit, or the server refused it for now."""
    if not isinstance(error, GenericError):
        return False  # obstore's other classes stand for definite answers of the server
    text = str(error).partition("Debug source:")[0]
    if _PASSING.search(text):
        return True
    status = _STATUS.search(text)
    return http_status_passes(int(status[1])) if status else "HTTP error" in text


def _stamp(entry: Untyped) -> Stamp:
    tag = entry["e_tag"] or entry["version"] or ""
    time = int(entry["last_modified"].timestamp() * 1e6) * 1000
    return Stamp(int(entry["size"]), time, int.from_bytes(hashlib.sha256(tag.encode()).digest()[:7], "big"))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(": <?xml")[0][:200] if lines else type(error).__name__
