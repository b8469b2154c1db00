"""The locations that requests may read and write: those below the roots, folders and URLs that the operator has named.

A path is compared after its links were followed, and used in the form that was compared. A URL is compared as text, so
it must be in plain form: no empty parts, no `..`, no escapes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from streamkernel.blobs import blobs_at, is_url, joined
from streamkernel.errors import ParameterError
from streamkernel.service.http_errors import Refused, without_paths
from streamkernel.table.synthetic import is_synthetic, normal_form

# Schemes of object stores. Others, such as http:// or memory://, reach what does not belong to the operator.
SCHEMES = frozenset({"s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"})

_MOST_CHARACTERS = 1024
# One part of a path. No leading dot, because records and unfinished outputs begin with one; and no character that has
# a meaning in URLs or shells.
_NAME = re.compile(r"\w[\w.,+= -]*")
# Addresses of processes, which occur in logs.
_ADDRESS = re.compile(r"\b(?:tcp|tls|wss?|ucx|inproc)://[\w.:\[\]-]+")
# A folder with any of these is a table, an array, a model or a state. No output may be put inside it.
_MARKS = ("COMPLETE", "config.json", "zarr.json", ".zgroup", ".zarray")


class AllowedLocations:
    """Parameters
    ----------
    locations : the roots, folders and URLs; that of the models first.
    reserved : location of the jobs' records, which no request may name even where it is below a root.

    Raises
    ------
    ParameterError
        A folder does not exist, or a URL is not one of an object store.
    """

    def __init__(self, locations: Iterable[str | os.PathLike[str]], reserved: str) -> None:
        self._roots: list[str] = []
        spelled: set[str] = set()
        for location in (os.fspath(each) for each in locations):
            if is_url(location):
                url = location.rstrip("/")
                if url.partition("://")[0] not in SCHEMES or "::" in url:
                    raise ParameterError(f"{location} cannot be a root of data; give a folder, or a URL such as s3://b")
                self._roots.append(url)
            else:
                folder = Path(os.path.realpath(location))
                if not folder.is_dir():
                    raise ParameterError(f"there is no folder {location} to be a root of data; give the path of one")
                spelled.add(os.path.abspath(location))
                self._roots.append(str(folder))
        # Where the models are in a folder, a URL must be written out: no name is looked up in an object store.
        folders = [root for root in self._roots if not is_url(root)]
        self._named_roots = self._roots if self._roots and is_url(self._roots[0]) else folders
        # As they are spelled in messages. The longest first, because a root may be below another.
        self._spelled_roots = sorted({*self._roots, *spelled}, key=len, reverse=True)
        self._reserved = reserved if is_url(reserved) else os.path.realpath(reserved)

    def location(self, noun: str, given: str, *, output: bool = False) -> str:
        """Resolve a location that a request names.

        A table that is made when it is read is at no place, and so below no root: any request may read one.

        Parameters
        ----------
        noun : noun for the message, such as "table".
        given : a URL, a path, or a name below a root. A name means the first root for an output, else the first root
            that has it.
        output : whether the location is to be written.

        Raises
        ------
        Refused
            The location is not below a root, or is not in plain form.
        ParameterError
            It is the URL of a synthetic table, with a mistake in it.
        StoreError
            The object store does not answer.
        """
        if not given or len(given) > _MOST_CHARACTERS or not given.isprintable() or "::" in given or "\\" in given:
            raise _forbidden(noun, "it is no plain path or URL")
        if is_synthetic(given) and not output:
            return normal_form(given)
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", given)
        resolved = self._path(noun, given, output) if scheme is None else self._url(noun, given, scheme[1])
        if resolved == self._reserved or resolved.startswith(self._reserved + "/"):
            raise _forbidden(noun, "it is among the records of jobs")
        if output and any(_is_store(folder) for folder in self._enclosing(resolved)):
            raise _forbidden(noun, "it is inside of a table or model")
        return resolved

    def _url(self, noun: str, given: str, scheme: str) -> str:
        if scheme not in SCHEMES:
            raise _forbidden(noun, f"a URL must be of {', '.join(sorted(SCHEMES))}")
        url = given.rstrip("/")
        if not self._is_below(url):
            raise _forbidden(noun, "it is not below a root of this service")
        return url

    def _path(self, noun: str, given: str, output: bool) -> str:
        if ".." in given.split("/"):
            raise _forbidden(noun, "it has .. in it")
        candidates = (
            [given] if given.startswith("/") else [joined(root, given.rstrip("/")) for root in self._named_roots]
        )
        if output:
            candidates = candidates[:1]
        real = [each if is_url(each) else os.path.realpath(each) for each in candidates]
        if not real or not all(map(self._is_below, real)):
            raise _forbidden(noun, "it is not below a root of this service")
        return next(filter(_exists, real), real[0]) if len(real) > 1 else real[0]

    def _is_below(self, location: str) -> bool:
        return any(
            location.startswith(f"{root}/") and all(map(_NAME.fullmatch, location[len(root) + 1 :].split("/")))
            for root in self._roots
        )

    def _enclosing(self, location: str) -> Iterator[str]:
        """The folders that enclose a location, the innermost first, its root last."""
        while location not in self._roots:
            location = location.rpartition("/")[0]
            yield location

    def public_name(self, location: str) -> str:
        """The public name of a location: its path below a root, or its last part if it is below none."""
        if is_synthetic(location):
            return location
        for root in self._spelled_roots:
            if location.startswith(root + "/"):
                return location[len(root) + 1 :]
        return location.rstrip("/").rpartition("/")[2]

    def without_locations(self, text: str) -> str:
        """A message with locations and addresses replaced by their public names."""
        for root in self._spelled_roots:
            text = text.replace(root + "/", "")
        return without_paths(_ADDRESS.sub("a worker", text))


def _exists(location: str) -> bool:
    return _is_store(location) if is_url(location) else os.path.exists(location)


def _is_store(location: str) -> bool:
    if is_url(location):
        blobs = blobs_at(location)
        return blobs.holds("CURRENT/") or any(blobs.size(mark) >= 0 for mark in _MARKS)
    return any(os.path.lexists(joined(location, mark)) for mark in _MARKS)


def _forbidden(noun: str, why: str) -> Refused:
    return Refused(403, f"the {noun} cannot be there: {why}", "ForbiddenLocation")
