"""S3, Google Cloud Storage and Azure through obstore; credentials come from the environment, as for their own tools."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import timedelta
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

from streamkernel.blobs._remote import RemoteBlobs, version_number
from streamkernel.blobs.blobs import Level, Stamp
from streamkernel.blobs.os_errors import first_line
from streamkernel.blobs.retries import CONNECT_SECONDS, REQUEST_SECONDS, http_status_passes
from streamkernel.errors import ParameterError, StoreNotFoundError, StreamKernelError
from streamkernel.type_aliases import Untyped

# obstore does not retry: all retries are ours (`retries`).
_NO_RETRIES: Untyped = {"max_retries": 0, "retry_timeout": timedelta(seconds=REQUEST_SECONDS)}
# Name of a bucket; for Azure, with its account.
_BUCKET = re.compile(r"[\w.:@-]*", re.ASCII)
# S3's own error codes; they come with other HTTP statuses too, and for single keys of a request for many.
_PASSING = re.compile(r"(?:<Code>|\(code: )(?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout)\b")
_STATUS = re.compile(r"\bstatus code: (\d{3})\b")


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
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        # Plain HTTP only if the user's endpoint has this scheme.
        "allow_http": endpoint.startswith("http://"),
    }
    try:
        # obstore decodes the URL, so every character of the key is encoded first.
        return from_url(f"{scheme}://{bucket}/{quote(key)}", client_options=options, retry_config=_NO_RETRIES)
    except (BaseError, ValueError, OSError) as error:
        raise ParameterError(f"{url} cannot be opened: {first_line(error)}") from error


class ObjectBlobs(RemoteBlobs):
    """Objects below a URL such as ``s3://bucket/prefix``."""

    failures = (BaseError, OSError, ValueError)

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._store = object_store(url)

    def read(self, key: str, first: int = 0, last: int | None = None) -> bytes | None:
        def part() -> bytes:
            if last is not None:
                return bytes(obstore.get_range(self._store, key, start=first, end=last))
            # Azure has no ranges relative to the end.
            start = first if first >= 0 else max(0, int(obstore.head(self._store, key)["size"]) + first)
            return bytes(obstore.get(self._store, key, options={"range": {"offset": start}} if start else {}).bytes())

        return self._request("reading", key, part)

    def write(self, key: str, value: bytes) -> None:
        self._request("writing", key, lambda: obstore.put(self._store, key, value, use_multipart=False))

    def _create(self, key: str, value: bytes) -> bool:
        def put() -> bool:
            try:
                obstore.put(self._store, key, value, mode="create")
            except AlreadyExistsError:
                return False
            return True

        return bool(self._request("creating", key, put))

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

        return self._request("listing", prefix, listed) or {}

    def level(self, prefix: str = "") -> Level:
        def listed() -> Level:
            found = obstore.list_with_delimiter(self._store, prefix.rstrip("/") or None)
            prefixes = sorted(f"{name}/" for name in found["common_prefixes"])
            return Level(prefixes, {entry["path"]: _stamp(entry) for entry in found["objects"]})

        return self._request("listing", prefix, listed) or Level([], {})

    def holds(self, prefix: str = "") -> bool:
        folder = prefix.rpartition("/")[0] or None

        def found() -> bool:
            pages = obstore.list(self._store, folder)
            return any(entry["path"].startswith(prefix) for page in pages for entry in page)

        return bool(self._request("listing", prefix, found))

    def remove(self, key: str) -> None:
        self._request("removing", key, lambda: obstore.delete(self._store, key))

    def remove_all(self, keys: Sequence[str]) -> None:
        def removed() -> bool:
            obstore.delete(self._store, list(keys))
            return True

        if keys and self._request("removing", keys[0], removed) is None:
            # One key was absent, and the answer does not tell which others were removed: remove them one by one.
            super().remove_all(keys)

    def size(self, key: str) -> int:
        size = self._request("reading", key, lambda: int(obstore.head(self._store, key)["size"]))
        return -1 if size is None else size

    def _translated(self, error: Exception, doing: str, key: str) -> StreamKernelError:
        if isinstance(error, (InvalidPathError, ValueError)):
            where = f"{self.location}/{key}" if key else self.location
            return ParameterError(f"{where} is no name of an object: {first_line(error)}")
        if self._is_lost(error):
            bucket = "/".join(self.location.split("/")[:3])
            return StoreNotFoundError(f"there is no bucket {bucket}", remedy="check its name")
        return super()._translated(error, doing, key)

    def _is_refused(self, error: Exception) -> bool:
        known = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
        return known or " 403 " in str(error) or "AccessDenied" in str(error)

    def _may_pass(self, error: BaseException) -> bool:
        if not isinstance(error, GenericError):
            return False  # obstore's other classes stand for definite answers of the server
        text = str(error).partition("Debug source:")[0]
        if _PASSING.search(text):
            return True
        status = _STATUS.search(text)
        return http_status_passes(int(status[1])) if status else "HTTP error" in text

    def _is_lost(self, error: Exception) -> bool:
        return "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error)


def _stamp(entry: Untyped) -> Stamp:
    time = int(entry["last_modified"].timestamp() * 1e6) * 1000
    return Stamp(int(entry["size"]), time, version_number(entry["e_tag"] or entry["version"] or ""))
