"""A bundle: one configuration and named arrays, the form in which models, factors and checkpoints are saved.

::

    PATH/config.json    format, kind, version and the configuration, for people and programs
    PATH/zarr.json      a Zarr v3 group; zarr.open_group(PATH)["components"] just works
    PATH/components/    one array a member, uncompressed, CRC32C
    PATH/COMPLETE       written last: digests of every metadata file, shape, dtype and digest of every array
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from streamkernel.atomic import (
    array_digest,
    canonical_json,
    folder_generation,
    json_content,
    parsed_json,
    read_file,
    text_digest,
)
from streamkernel.blobs import MOST_FOLLOWED, Generations, normalised
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    ModelFormatError,
    ParameterError,
    ResourceLimitError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.manifest import BUNDLE_FORMAT, COMPLETE
from streamkernel.outputs import Kind, building_at, check_target, output_kind, translated_os_errors
from streamkernel.store._arrays import (
    ZARR_JSON,
    ArrayFiles,
    check_name,
    list_files,
    storable,
    write_array,
    write_group,
)
from streamkernel.store._fetched import fetched
from streamkernel.store.plain import plain, read_object
from streamkernel.type_aliases import AnyArray, Fields, Unchecked

FORMAT = BUNDLE_FORMAT
FORMAT_VERSION = 2
CONFIG = "config.json"

# `bundle_kind` parses a configuration below _HEAD bytes, and matches the first _HEAD bytes of a longer one.
# `read_bundle` does so above _LONG bytes before it parses: another program's file may have gigabytes.
_HEAD, _LONG = 1 << 16, 1 << 20
_FIRST = re.compile(rb'\s*\{\s*"format"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')


@dataclass(frozen=True)
class Bundle:
    """The data that a class passes to the store, and gets back from it.

    Attributes
    ----------
    kind
        Kind of the bundle, such as ``"model"``; `read_bundle` checks it.
    version
        The version of this kind's configuration and arrays.
    config
        Plain JSON: finite numbers, text, lists, dicts. Class labels that are text belong here. Fields listed in
        ``config["volatile"]`` (such as ``["timing", "memory"]``) are stored, but `bundle_digest` leaves them out.
    arrays
        Arrays of numbers or booleans, by name; any shape, 0-d and empty ones too. Stored little-endian.
    """

    kind: str
    version: int
    config: Fields = field(default_factory=dict)
    arrays: dict[str, AnyArray] = field(default_factory=dict)


def bundle_digest(bundle: Bundle) -> str:
    """SHA-256 of kind, version, configuration (without its volatile parts) and arrays: equal content, equal digest."""
    config = plain(bundle.config)
    for name in config.get("volatile", []):
        config.pop(name, None)
    arrays = {name: _array_entry(storable(name, values)) for name, values in bundle.arrays.items()}
    return text_digest(canonical_json([bundle.kind, bundle.version, config, arrays]))


def as_read(bundle: Bundle) -> Bundle:
    """The bundle as a reader will get it: plain JSON, and arrays in the store's byte order.

    Raises
    ------
    ParameterError, DTypeError
        JSON or Zarr cannot hold a value.
    """
    if not bundle.kind or isinstance(bundle.version, bool) or not isinstance(bundle.version, int):
        raise ParameterError(f"a bundle needs a kind and a version number, not {bundle.kind!r} and {bundle.version!r}")
    for name in bundle.arrays:
        check_name(name)
    arrays = {name: storable(name, values) for name, values in bundle.arrays.items()}
    return Bundle(bundle.kind, bundle.version, plain(bundle.config), arrays)


def write_bundle(path: str | os.PathLike[str], bundle: Bundle, *, overwrite: bool = False) -> None:
    """Write `bundle` to `path`; a reader finds the former bundle, none, or this one, but never a part.

    Raises
    ------
    StoreExistsError
        `path` exists and `overwrite` is false, or it does not hold a bundle; raised before any work.
    ParameterError, DTypeError
        JSON or Zarr cannot hold a value; raised before any work.
    StoreError
        The disk is full or fails; `path` is unchanged, and nothing is left beside it.
    """
    bundle, kind = as_read(bundle), output_kind(bundle.kind)
    _write(check_target(path, overwrite=overwrite, kind=kind), bundle, kind, overwrite=overwrite)


def replace_bundle(path: str | os.PathLike[str], bundle: Bundle) -> None:
    """Write `bundle` to `path` and replace whatever is there: only for our own places, such as a torn checkpoint."""
    _write(normalised(path), as_read(bundle), None, overwrite=True)


def read_bundle(
    path: str | os.PathLike[str],
    kind: str,
    *,
    versions: Collection[int] = (1,),
    arrays: Collection[str] = (),
    max_bytes: int | None = None,
) -> Bundle:
    """Read the bundle at `path` and verify every byte of it.

    Parameters
    ----------
    path
        Path or URL of the bundle.
    kind
        Expected kind.
    versions
        The versions of this kind that the caller understands.
    arrays
        Names that must be among the arrays.
    max_bytes
        Limit of the arrays' size, checked from the metadata alone; the machine's memory by default.

    Raises
    ------
    StoreNotFoundError
        Nothing at `path`; nothing was created.
    ModelFormatError
        Not a bundle, another kind, an unknown version, an array missing, a symbolic link inside.
    IncompleteStoreError
        Its writer did not finish.
    CorruptMetadataError, MissingChunkError, CorruptChunkError
        The bundle was damaged after it was written; the message names the file.
    ResourceLimitError
        The arrays would not fit into memory.
    """
    limit = psutil.virtual_memory().total if max_bytes is None else max_bytes
    place = normalised(path)
    if isinstance(place, str):
        with fetched(place, limit) as folder:
            return _read(folder, kind, versions, arrays, limit)
    folder = place
    for _ in range(MOST_FOLLOWED):
        before = folder_generation(folder)
        try:
            return _read(folder, kind, versions, arrays, limit)
        except StoreError:
            # Overwritten while we read: we may have seen parts of two generations, so read the new one.
            if folder_generation(folder) == before:
                raise
    return _read(folder, kind, versions, arrays, limit)


def _read(folder: Path, kind: str, versions: Collection[int], arrays: Collection[str], limit: int) -> Bundle:
    with translated_os_errors(folder, "reading"):
        header, config_text, files = _open(folder)
        if header["kind"] != kind:
            raise ModelFormatError(f"{folder} holds a {header['kind']}, not a {kind}", remedy="choose another path")
        if header["version"] not in versions:
            known = ", ".join(map(str, sorted(versions)))
            raise ModelFormatError(
                f"{folder} is a {kind} of version {header['version']!r}; this release reads {known}: use a newer one"
            )
        manifest = _manifest(folder, files)
        names = sorted(manifest["arrays"])
        missing = sorted(set(arrays) - set(names))
        if missing:
            raise ModelFormatError(f"{folder} lacks the array {missing[0]}", remedy=f"write the {kind} again")
        members = [ArrayFiles(folder, name, files, limit) for name in names]
        total = sum(member.nbytes for member in members)
        if total > limit:
            raise ResourceLimitError(f"the arrays of {folder} need {total} bytes, more than the {limit} allowed")
        texts = {CONFIG: config_text, ZARR_JSON: read_object(folder / ZARR_JSON)[1]}
        texts |= {f"{member.name}/{ZARR_JSON}": member.text for member in members}
        for key, text in texts.items():
            if manifest["metadata"].get(key) != text_digest(text):
                raise CorruptMetadataError(f"{folder / key} is not as it was written", remedy="restore it from a copy")
        values = {member.name: _verified(member, manifest["arrays"][member.name]) for member in members}
    return Bundle(kind, header["version"], header["config"], values)


def bundle_kind(path: str | os.PathLike[str]) -> str | None:
    """The kind of the bundle at `path`; None if there is no bundle."""
    header = _header(path)
    kind = header.get("kind") if header is not None and header.get("format") == FORMAT else None
    return kind if isinstance(kind, str) else None


def is_foreign(path: str | os.PathLike[str]) -> bool:
    """Whether `path` holds a readable configuration that is not ours."""
    header = _header(path)
    return header is not None and header.get("format") != FORMAT


def _header(path: str | os.PathLike[str]) -> Fields | None:
    """The first fields of the configuration at `path`; None if there is none or it is damaged."""
    place = normalised(path)
    try:
        head = Generations(place).read(CONFIG, _HEAD) if isinstance(place, str) else read_file(place / CONFIG, 0, _HEAD)
        header = parsed_json(head or b"") if head is None or len(head) < _HEAD else _begins(head)
    except StoreError:
        raise
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def _begins(head: bytes) -> Fields:
    """Format and kind of a long configuration, from its first bytes; another program's file may have gigabytes."""
    found = _FIRST.match(head[:_HEAD])
    return {} if found is None else {"format": found[1].decode(), "kind": found[2].decode()}


def _write(target: str | Path, bundle: Bundle, kind: Kind | None, *, overwrite: bool) -> None:
    arrays = bundle.arrays
    building = building_at(target, kind)
    try:
        folder = building.folder
        with translated_os_errors(target, "writing"):
            for name, values in arrays.items():
                write_array(folder, name, values)
            header = {"format": FORMAT, "kind": bundle.kind, "version": bundle.version}
            write_group(folder, header, arrays)
            config = {**header, "format_version": FORMAT_VERSION, "config": bundle.config}
            (folder / CONFIG).write_bytes(json_content(config))
            metadata = [CONFIG, ZARR_JSON, *(f"{name}/{ZARR_JSON}" for name in arrays)]
            manifest = {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "metadata": {key: text_digest((folder / key).read_text(encoding="utf-8")) for key in metadata},
                "arrays": {name: _array_entry(values) for name, values in arrays.items()},
            }
        building.publish(json_content(manifest), overwrite=overwrite)
    finally:
        building.abandon()


def _array_entry(values: AnyArray) -> Fields:
    return {"shape": list(values.shape), "dtype": values.dtype.name, "digest": array_digest(values)}


def _open(folder: Path) -> tuple[Fields, str, dict[str, int]]:
    """The header (its format and version are checked), its text, and the sizes of the existing files."""
    if not folder.exists():
        raise StoreNotFoundError(f"nothing at {folder}", remedy="check the path")
    if not folder.is_dir():
        raise ModelFormatError(f"{folder} is a file, not a saved model", remedy="choose another path")
    files = list_files(folder)
    if CONFIG not in files:
        raise ModelFormatError(f"{folder} is not a saved model (no {CONFIG})", remedy="choose another path")
    if files[CONFIG] > _LONG and _begins(read_file(folder / CONFIG, 0, _HEAD)).get("format") != FORMAT:
        raise ModelFormatError(f"{folder / CONFIG} has another format than {FORMAT}", remedy="choose another path")
    header, text = read_object(folder / CONFIG)
    if header.get("format") != FORMAT:
        raise ModelFormatError(
            f"{folder / CONFIG} has format {header.get('format')!r}, not {FORMAT}", remedy="choose another path"
        )
    if header.get("format_version") != FORMAT_VERSION:
        raise ModelFormatError(
            f"{folder} has format version {header.get('format_version')!r}; this release reads {FORMAT_VERSION}:"
            " use a newer one"
        )
    if not isinstance(header.get("kind"), str) or not isinstance(header.get("config"), dict) or "version" not in header:
        raise CorruptMetadataError(
            f"{folder / CONFIG} lacks its kind, version or config", remedy="restore it from a copy"
        )
    return header, text, files


def _manifest(folder: Path, files: Mapping[str, int]) -> Fields:
    if COMPLETE not in files:
        raise IncompleteStoreError(f"{folder} has no {COMPLETE}: its writer did not finish", remedy="write it again")
    if ZARR_JSON not in files:
        raise CorruptMetadataError(f"{folder / ZARR_JSON} is missing", remedy="restore it from a copy")
    manifest, _ = read_object(folder / COMPLETE)
    arrays, metadata = manifest.get("arrays"), manifest.get("metadata")
    if manifest.get("format") != FORMAT or not isinstance(arrays, dict) or not isinstance(metadata, dict):
        raise CorruptMetadataError(f"{folder / COMPLETE} is not a manifest of ours", remedy="restore it from a copy")
    for name in arrays:
        try:
            check_name(name)
        except ParameterError as error:
            raise ModelFormatError(f"{folder / COMPLETE}: {error}") from error
    return manifest


def _verified(member: ArrayFiles, promised: Unchecked) -> AnyArray:
    values = member.read()
    found = _array_entry(values)
    if found != promised:
        where = f"array {member.name} in {member.folder}"
        if not isinstance(promised, dict) or any(found[key] != promised.get(key) for key in ("shape", "dtype")):
            raise CorruptMetadataError(
                f"{where} has not the shape and dtype that {COMPLETE} promises", remedy="restore it"
            )
        raise CorruptChunkError(
            f"{where} is not as it was written", f"{member.name}/c", remedy="restore it from a copy"
        )
    return np.ascontiguousarray(values) if values.ndim else values
