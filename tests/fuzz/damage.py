"""Files with bytes changed, JSON with values replaced, links put in their place: what a hostile or dying disk gives."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamkernel.atomic import text_digest

__all__ = [
    "Change",
    "Files",
    "arrays_damaged",
    "bytes_damaged",
    "files_damaged",
    "json_damaged",
    "lay",
    "resealed",
    "snapshot",
    "taken",
]

Files = dict[str, bytes]
# What is done to a folder when its files lie there.
Change = Callable[[Path], None]

# Raw JSON that the standard encoder does not make.
_RAW = {"@deep@": "[" * 100_000 + "]" * 100_000, "@digits@": "9" * 5000, "@exponent@": "1e999", "@nan@": "NaN"}
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, 2**64 + 1, -(10**30), 10**15, 0.5, -1.5, 1e308, 5e-324,
    "", "x", "1", "../../etc/passwd", "/etc/passwd", "..", "a/b", "\0", "\ud800", "\u00e9" * 3, "y" * 5000, "NaN",
    "file:///etc/passwd", "s3://none", "<f8", "object", "float64", "zstd",
    [], {}, [[]], [None], [0], [-1], [10**15, 10**15], ["a"], [1] * 64, {"name": "zstd"}, {"a": {"b": [1]}},
    *_RAW,
]  # fmt: skip


def _places(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield where
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from _places(inner, (*where, key))


@st.composite
def json_damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The same document with one to three of its values replaced, dropped, renamed, repeated."""
    document = [copy.deepcopy(json.loads(content))]
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(document) if place]
        place = draw(st.sampled_from(places))
        holder: Any = document
        for key in place[:-1]:
            holder = holder[key]
        key, value = place[-1], holder[place[-1]]
        what = draw(st.integers(0, 7))
        if what == 0 and len(place) > 1:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "x", "..", key + " "]))] = holder.pop(key)
        elif what == 2 and isinstance(value, list):
            holder[key] = draw(st.sampled_from([value[:-1], value[1:], value * 2, [value], value[::-1]]))
        elif what == 3 and isinstance(value, (int, float)):
            holder[key] = draw(st.sampled_from([value + 1, value - 1, -value, value * 10**6, float(value), str(value)]))
        elif what == 4:
            other: Any = document
            for step in draw(st.sampled_from(places)):
                other = other[step]
            holder[key] = copy.deepcopy(other)
        else:
            holder[key] = copy.deepcopy(draw(st.sampled_from(_VALUES)))
    text = json.dumps(document[0] if document else None)
    for word, raw in _RAW.items():
        text = text.replace(f'"{word}"', raw)
    return text.encode()


@st.composite
def bytes_damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The same bytes with some flipped, taken out, put in, written twice, or an end cut off."""
    body = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(body) - 1)))
        what = draw(st.integers(0, 5))
        if what == 0 and body:
            body[at] ^= 1 << draw(st.integers(0, 7))
        elif what == 1:
            del body[at : at + draw(st.integers(1, 40))]
        elif what == 2:
            body[at:at] = draw(st.binary(max_size=20))
        elif what == 3:
            del body[at:]
        elif what == 4:
            body[at:at] = body[at : at + draw(st.integers(1, 200))]
        else:
            body[at : at + 4] = draw(
                st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", b"9" * 12, b"\n,\n"])
            )
    return bytes(body)


_PUT: dict[str, Change] = {
    "gone": lambda path: None,
    "empty": lambda path: path.write_bytes(b"") and None,
    "folder": lambda path: path.mkdir(),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("../../nowhere"),
    "link outside": lambda path: path.symlink_to(_outside(path)),
    "link to zeros": lambda path: path.symlink_to("/dev/zero"),
    "pipe": lambda path: os.mkfifo(path),  # reading it waits for a writer who never comes
}


def _outside(path: Path) -> Path:
    return next(parent for parent in path.parents if (parent / "neighbour").exists()) / "neighbour" / "secret"


def _put(name: str, what: str) -> Change:
    def change(folder: Path) -> None:
        path = folder / name
        path.unlink()
        _PUT[what](path)

    return change


@st.composite
def files_damaged(draw: st.DrawFn, files: Mapping[str, bytes]) -> tuple[Files, list[Change], list[str]]:
    """Files of a store of which one or two are damaged, what else to do when they lie there, and which were hit."""
    found, changes, hit = dict(files), [], []
    named = sorted(files, key=lambda name: (_chunk(name), name))
    metadata = [name for name in named if not _chunk(name)]
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(metadata if draw(st.integers(0, 3)) else named))
        what = draw(st.integers(0, 10))
        hit.append(name)
        if what == 10:
            folder, _, last = name.rpartition("/")
            found[f"{folder}/{draw(st.sampled_from(['0000' + last, last + ' ', 'x', '99999999.json']))}"] = found.pop(
                name
            )
            break
        if what == 0:
            changes.append(_put(name, draw(st.sampled_from(sorted(_PUT)))))
            break
        if what == 1:
            found[name] = draw(st.sampled_from([b"", b"[]", b"null", b"{}", b"{", b'""', b"\xff\xfe", b"[" * 100_000]))
        elif what <= 3 or _chunk(name):
            found[name] = draw(bytes_damaged(found[name]))
        else:
            try:
                found[name] = draw(json_damaged(found[name]))
            except (ValueError, RecursionError):  # no longer JSON
                found[name] = draw(bytes_damaged(found[name]))
    return found, changes, hit


@st.composite
def arrays_damaged(draw: st.DrawFn, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays of a model of which one or two have other values, another shape, another dtype, or are gone."""
    found = dict(arrays)
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(found)))
        values, what = found[name], draw(st.integers(0, 6))
        if what == 0:
            del found[name]
        elif what == 1 and values.ndim:
            found[name] = values[draw(st.sampled_from([slice(0), slice(1), slice(1, None)]))]
        elif what == 2:
            found[name] = values[..., None]
        elif what == 3:
            found[name] = values.reshape(-1)
        elif what == 4:
            found[name] = np.full(values.shape, draw(st.sampled_from([np.nan, np.inf, 0.0, -1.0, 1e308])))
        elif what == 5:
            with np.errstate(all="ignore"):
                found[name] = values.astype(draw(st.sampled_from([bool, np.int8, np.uint64, np.float16, np.float32])))
        else:
            found[name] = np.full(values.shape, draw(st.sampled_from([-1, 2**40, -(2**62)])))
    return found


def _chunk(name: str) -> bool:
    return not name.endswith((".json", "COMPLETE", ".zarray", ".zgroup", ".zattrs"))


def resealed(files: Files, below: str = "") -> Files:
    """The files, the manifest `below` made to agree with its metadata: the work of someone who knows the format."""
    try:
        manifest = json.loads(files[f"{below}COMPLETE"])
        for key in manifest["metadata"]:
            name = key if key.endswith(".json") else f"{key}/zarr.json".lstrip("/")
            manifest["metadata"][key] = text_digest(files[f"{below}{name}"].decode())
        manifest.pop("content", None)  # as of a table of an earlier release
        return {**files, f"{below}COMPLETE": json.dumps(manifest).encode()}
    except (KeyError, TypeError, ValueError, RecursionError):
        return files


def taken(folder: Path) -> Files:
    """Every file of a folder, by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lay(folder: Path, files: Mapping[str, bytes], changes: list[Change]) -> None:
    """Write files to a new folder."""
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for change in changes:
        change(folder)


def snapshot(folder: Path) -> dict[str, Any]:
    """What would show that something was written: names, kinds, sizes, times; a link is not followed."""
    found: dict[str, Any] = {}
    for base, folders, names in os.walk(folder):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(base, name))
            found[os.path.join(base, name)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found
