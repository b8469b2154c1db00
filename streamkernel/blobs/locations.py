"""Where something is: a local path or a URL, as text, and the place that belongs to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.drivers import remote_blobs
from streamkernel.blobs.local import LocalBlobs
from streamkernel.errors import ParameterError

__all__ = ["beside", "blobs_at", "is_url", "joined", "local_path", "parent_of"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_url(location: str | os.PathLike[str]) -> bool:
    """Whether this names something in an object store rather than a path of this machine."""
    found = _URL.match(os.fspath(location))
    return found is not None and found[1].lower() != "file"


def local_path(location: str | os.PathLike[str]) -> Path:
    """The absolute path of a location of this machine.

    Raises
    ------
    ParameterError
        A URL: what is done here needs a path.
    """
    text = os.fspath(location)
    if is_url(text):
        raise ParameterError(f"{text} is a URL where a path of this machine is needed")
    return Path(os.path.abspath(text.removeprefix("file://")))


def joined(location: str | os.PathLike[str], *names: str) -> str:
    """The location of something below another one."""
    text = os.fspath(location)
    return "/".join([text.rstrip("/"), *names]) if is_url(text) else str(local_path(text).joinpath(*names))


def parent_of(location: str | os.PathLike[str]) -> tuple[str, str]:
    """The location around this one, and the name that this one has there."""
    text = os.fspath(location)
    if not is_url(text):
        path = local_path(text)
        return str(path.parent), path.name
    parent, _, name = text.rstrip("/").rpartition("/")
    if parent.endswith(":/"):
        raise ParameterError(f"{text} is a whole bucket; name a place in it, such as {text.rstrip('/')}/model")
    return parent, name


def beside(location: str | os.PathLike[str], name: str) -> str:
    """The location of `name` in what is around another one; a ``{}`` in it stands for the other one's own name."""
    around, own = parent_of(location)
    return joined(around, name.format(own))


def blobs_at(location: str | os.PathLike[str]) -> Blobs:
    """The byte strings below a folder or URL; nothing is created, and nothing asked, before the first call.

    Raises
    ------
    ParameterError
        A scheme that no installed driver knows.
    """
    text = os.fspath(location)
    if not is_url(text):
        return LocalBlobs(local_path(text))
    return remote_blobs(text.rstrip("/"))
