"""Choice of the driver for a URL: obstore for the large object stores, fsspec for every other scheme."""

from __future__ import annotations

from importlib import import_module

from streamkernel.blobs._normal_form import OBSTORE_SCHEMES, normalised
from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import ParameterError


def remote_blobs(url: str) -> Blobs:
    """The byte strings below `url`; the library for its scheme is loaded with the first URL that needs it."""
    url = str(normalised(url))
    scheme = url.partition("://")[0].lower()
    if scheme not in OBSTORE_SCHEMES:
        other: Blobs = import_module("streamkernel.blobs._filesystem").FilesystemBlobs(url)
        return other
    try:
        driver = import_module("streamkernel.blobs._object_store")
    except ImportError:  # pragma: no cover - the extra is part of the development environment
        raise ParameterError(f"{url} needs the driver of object stores: pip install 'streamkernel[objects]'") from None
    store: Blobs = driver.ObjectBlobs(url)
    return store
