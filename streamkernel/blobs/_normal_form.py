"""A location means exactly the key of an object store, or the path of this machine, that it spells; or it is refused.

Every location that a user gives goes through `normalised`, and so does every place that is opened (`blobs_at`). Parsers
of URLs end the key at ``#`` and ``?``, decode ``%41``, follow ``..`` and drop line feeds. They would then read or
replace another object than the one that the user wrote.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from streamkernel.errors import ParameterError

# We encode the keys of these schemes ourselves; the drivers of other schemes interpret some characters.
OBSTORE_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")

# Scheme of tables that are made when they are read (`table.synthetic`): no place, so nothing is read or written there.
GENERATED = "synthetic"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/", re.ASCII)
_FILE = "file://"


def is_url(location: str | os.PathLike[str]) -> bool:
    """Whether this is a URL with another scheme than ``file``, and so not a path of this machine."""
    found = _URL.match(os.fsdecode(location))
    return found is not None and found[1].lower() != "file"


def normalised(location: str | os.PathLike[str]) -> str | Path:
    """The place that a location means: a URL as text, without a final slash, or an absolute path.

    Raises
    ------
    ParameterError
        The location is empty, or a driver would read another place from it than it spells.
    """
    text = os.fsdecode(location)
    return _url(text) if is_url(text) else _path(text)


def display_form(location: str | os.PathLike[str]) -> str | Path:
    """The same place, but a path stays as the user wrote it: for messages, and for locations that are only read."""
    place = normalised(location)
    text = os.fsdecode(location)
    return place if isinstance(place, str) or text[: len(_FILE)].lower() == _FILE else Path(text)


def _url(text: str) -> str:
    found = _URL.match(text)
    assert found is not None
    scheme = found[1].lower()
    if scheme == GENERATED:
        raise ParameterError(
            f"{shown(text)} is a table that is made when it is read, not a place; give a path or a URL of a store here"
        )
    key = text[found.end() :].removesuffix("/")
    url = f"{scheme}://{key}"
    parts = key.split("/")
    if any(unicodedata.category(letter) == "Cc" for letter in key):
        raise _no_place(text, "it has a control character in it")
    if any(unicodedata.category(letter) == "Cs" for letter in key):
        raise _no_place(text, "it is not UTF-8")
    if any(part in (".", "..") for part in parts):
        raise _no_place(text, "it has . or .. in it")
    if "" in parts[1:]:
        raise _no_place(text, "it has a name without letters in it (//)")
    if scheme in OBSTORE_SCHEMES:
        return url
    http = scheme in ("http", "https")
    for letters in ("::", "#", "?", *(("%2e", "%2f", "%5c", "%00") if http else ("%",))):
        if letters in key.lower():
            raise _no_place(text, f"the driver of {scheme}:// reads {letters} in its own way")
    return url


def _path(text: str) -> Path:
    if text[: len(_FILE)].lower() == _FILE:
        text = text[len(_FILE) :]
        if not text.startswith("/"):
            raise _no_place(f"file://{text}", "what follows file:// is no absolute path (file:///folder/name)")
    if not text:
        raise ParameterError("a location is empty; give a path or a URL (is a variable of your shell not set?)")
    if "\0" in text:
        raise _no_place(text, "no path has the character 0 in it")
    if "://" in text or _ONE_SLASH.match(text):
        hint = "a URL begins with its scheme and two slashes, and pathlib.Path keeps but one: give it as text"
        raise ParameterError(f"{shown(text)} is no path and no URL ({hint}; a path can begin with ./)")
    if ".." not in text.split("/"):
        return Path(os.path.abspath(text))
    # After a link, .. is the parent of the link's target, not of the link: resolve links up to the last .. first.
    head, _, tail = text.rpartition("..")
    return Path(os.path.abspath(os.path.realpath(f"{head}..") + tail))


def _no_place(text: str, why: str) -> ParameterError:
    return ParameterError(f"{shown(text)} means no place: {why}; choose another name")


def shown(text: str) -> str:
    """A location for a message: one line of printable characters, not too long."""
    shown = text if text.isprintable() else ascii(text)
    return shown if len(shown) <= 300 else f"{shown[:300]}..."
