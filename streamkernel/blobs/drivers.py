"""Choice of the driver for a URL: obstore for the large object stores, fsspec for every other scheme."""

from __future__ import annotations

from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.normal_form import OBSTORE_SCHEMES, normalised
from streamkernel.errors import ParameterError

try:
    from streamkernel.blobs.object_store import ObjectBlobs
except ImportError:  # pragma: no cover - the extra is part of the development environment
    ObjectBlobs = None  # type: ignore[assignment,misc]  # a class may not be None

from streamkernel.blobs.filesystem import FilesystemBlobs

__all__ = ["OBSTORE_SCHEMES", "remote_blobs"]


def remote_blobs(url: str) -> Blobs:
    """The byte strings below `url`."""
    url = str(normalised(url))
    scheme = url.partition("://")[0].lower()
    if scheme not in OBSTORE_SCHEMES:
        return FilesystemBlobs(url)
    if ObjectBlobs is None:
        raise ParameterError(f"{url} needs the driver of object stores: pip install 'streamkernel[objects]'")
    return ObjectBlobs(url)
