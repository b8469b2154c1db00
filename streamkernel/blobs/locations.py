"""Locations: a local path or a URL, as text, and the place that belongs to it."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from streamkernel.blobs._normal_form import OBSTORE_SCHEMES, normalised
from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.local import LocalBlobs
from streamkernel.errors import ParameterError


def local_path(location: str | os.PathLike[str]) -> Path:
    """The absolute path of a location of this machine.

    Raises
    ------
    ParameterError
        The location is a URL, and the caller needs a path.
    """
    place = normalised(location)
    if isinstance(place, str):
        raise ParameterError(f"{place} is a URL where a path of this machine is needed")
    return place


def joined(location: str | os.PathLike[str], *names: str) -> str:
    """The location of a name below another location."""
    place = normalised(location)
    return "/".join([place, *names]) if isinstance(place, str) else str(place.joinpath(*names))


def parent_of(location: str | os.PathLike[str]) -> tuple[str, str]:
    """The parent of this location, and the name of this location in it."""
    place = normalised(location)
    if isinstance(place, Path):
        return str(place.parent), place.name
    parent, _, name = place.rpartition("/")
    if parent.endswith(":/"):
        raise ParameterError(f"{place} is a whole bucket; name a place in it, such as {place}/model")
    return parent, name


def beside(location: str | os.PathLike[str], name: str) -> str:
    """The location of `name` in the parent of `location`; ``{}`` in `name` stands for the last name of `location`."""
    around, own = parent_of(location)
    return joined(around, name.format(own))


def blobs_at(location: str | os.PathLike[str]) -> Blobs:
    """The byte strings below a folder or URL; nothing is created and no request is sent before the first call.

    obstore serves the large object stores, fsspec every other scheme; each is loaded with the first URL that needs it.

    Raises
    ------
    ParameterError
        No installed driver knows the scheme.
    """
    place = normalised(location)
    if isinstance(place, Path):
        return LocalBlobs(place)
    large = place.partition("://")[0] in OBSTORE_SCHEMES
    driver, name = ("_object_store", "ObjectBlobs") if large else ("_filesystem", "FilesystemBlobs")
    try:
        store: Blobs = getattr(import_module(f"streamkernel.blobs.{driver}"), name)(place)
    except ImportError:  # pragma: no cover - the extra is part of the development environment
        raise ParameterError(
            f"{place} needs the driver of object stores: pip install 'streamkernel[objects]'"
        ) from None
    return store
