"""Named arrays as members of one Zarr v3 group, uncompressed with CRC32C: a chunk on disk is the numbers themselves.

Uncompressed for two reasons: whitened sums and coefficients do not compress; and the size of each chunk's file follows
from the metadata, so that a torn chunk is found before it is read, and no chunk can inflate.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.codec import Codec
from zarr.codecs import BytesCodec, Crc32cCodec, Endian
from zarr.storage import MemoryStore, StorePath

from streamkernel.atomic import json_content, parsed_json, read_file
from streamkernel.blobs import LocalBlobs, first_line
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    DTypeError,
    MissingChunkError,
    ModelFormatError,
    ParameterError,
    ResourceLimitError,
)
from streamkernel.store._chunk import chunk_values, write_chunk
from streamkernel.store.plain import read_object
from streamkernel.type_aliases import AnyArray, AnyDType, FieldsView

ZARR_JSON = "zarr.json"
MAX_CHUNK_BYTES = 16 * 2**20

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")


def check_name(name: str) -> None:
    """Raise `ParameterError` unless an array name is an identifier: without separators it cannot leave its folder."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(f"{name!r} is no array name; use letters, digits and underscores, a letter first")


def storable(name: str, array: AnyArray) -> AnyArray:
    """`array` in little-endian byte order, if it holds numbers or booleans.

    Raises
    ------
    DTypeError
        Complex numbers, text, objects, dates, or more than 64 bits per value.
    """
    values = np.asarray(array)
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise DTypeError(
            f"array {name} has dtype {values.dtype}; only booleans, integers and floats of up to 64 bits are stored"
            " (text belongs in the configuration)"
        )
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


# The rounds of a fit write arrays of the same shapes again and again.
@lru_cache(maxsize=256)
def array_metadata(
    shape: tuple[int, ...], dtype: AnyDType, chunks: tuple[int, ...], dimensions: tuple[str, ...] | None = None
) -> bytes:
    """The ``zarr.json`` of an array without chunks."""
    contents: dict[str, Buffer] = {}
    zarr.create_array(
        MemoryStore(contents),
        shape=shape,
        dtype=dtype,
        chunks=chunks,
        # A chunk that was never written must not read as valid numbers.
        fill_value=math.nan if dtype.kind == "f" else dtype.type(0),
        filters=None,
        dimension_names=dimensions,
        compressors=[Crc32cCodec()],
    )
    return contents[ZARR_JSON].to_bytes()


def write_array(folder: Path, name: str, values: AnyArray) -> None:
    """Write a whole array, chunk by chunk; chunks of zeros too, so that an absent chunk is always a lost one."""
    chunks = _chunk_shape(values.shape, values.dtype.itemsize)
    (folder / name).mkdir()
    (folder / name / ZARR_JSON).write_bytes(array_metadata(values.shape, values.dtype, chunks))
    blobs = LocalBlobs(folder)
    for coordinates, region in chunk_grid(values.shape, chunks):
        write_chunk(blobs, chunk_key(name, coordinates), np.asarray(values[region], order="C"), chunks, durable=False)


@lru_cache(maxsize=256)
def _described(text: str) -> tuple[tuple[int, ...], AnyDType, tuple[int, ...], bool]:
    """Shape, dtype and chunks of the array with this ``zarr.json``; whether its chunks are numbers and CRC32C alone."""
    # Not zarr.open_array: its store would create what is missing.
    array: zarr.Array[Any] = zarr.Array.from_dict(StorePath(MemoryStore({})), parsed_json(text))
    codecs: tuple[Codec, ...] = getattr(array.metadata, "codecs", ())
    plainly = [type(codec) for codec in codecs] == [BytesCodec, Crc32cCodec]
    return array.shape, array.dtype, array.chunks, plainly and getattr(codecs[0], "endian", None) != Endian.big


def group_metadata(attributes: FieldsView, members: Mapping[str, bytes]) -> bytes:
    """The ``zarr.json`` of a group, with that of each of its members consolidated in it.

    We consolidate them ourselves: plain zarr then lists the members from here, without warning about our JSON files.
    """
    metadata = {name: json.loads(members[name]) for name in sorted(members)}
    content = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": dict(attributes),
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": metadata},
    }
    return json_content(content)


def write_group(folder: Path, attributes: FieldsView, names: Iterable[str]) -> None:
    """Write the metadata of a group whose members are in its folder."""
    members = {name: (folder / name / ZARR_JSON).read_bytes() for name in names}
    (folder / ZARR_JSON).write_bytes(group_metadata(attributes, members))


def chunk_grid(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Every chunk's coordinates and the region of the array that it covers; none if the array is empty."""
    for coordinates in _coordinates([-(-side // chunk) for side, chunk in zip(shape, chunks, strict=True)]):
        yield (
            coordinates,
            tuple(
                slice(i * chunk, min((i + 1) * chunk, side))
                for i, chunk, side in zip(coordinates, chunks, shape, strict=True)
            ),
        )


def _coordinates(counts: list[int]) -> Iterator[tuple[int, ...]]:
    # Unlike itertools.product, no tuples of the ranges are made: metadata may declare 10^12 chunks that do not exist.
    if not counts:
        yield ()
    elif 0 not in counts:
        for first in range(counts[0]):
            for others in _coordinates(counts[1:]):
                yield (first, *others)


def chunk_key(name: str, coordinates: tuple[int, ...]) -> str:
    """The file of a chunk, relative to the group: Zarr's default encoding, ``components/c/0/0``."""
    return "/".join([name, "c", *map(str, coordinates)])


def list_files(folder: Path) -> dict[str, int]:
    """Size of every file below `folder`, by its relative path.

    Raises
    ------
    ModelFormatError
        A symbolic link: through it, a store could read or show files outside of its folder.
    """
    sizes: dict[str, int] = {}
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                relative = prefix + entry.name
                if entry.is_symlink():
                    raise ModelFormatError(f"{folder}/{relative} is a symbolic link; a store must hold its own files")
                if entry.is_dir():
                    pending.append(relative + "/")
                else:
                    sizes[relative] = entry.stat().st_size
    return sizes


class ArrayFiles:
    """One member, as its metadata describe it, compared with the files that exist. It reads only metadata at first."""

    def __init__(self, folder: Path, name: str, files: Mapping[str, int], max_bytes: int) -> None:
        self.folder, self.name = folder, name
        path = folder / name / ZARR_JSON
        if f"{name}/{ZARR_JSON}" not in files:
            raise ModelFormatError(
                f"array {name} is missing in {folder}", remedy="restore it from a copy or write it again"
            )
        metadata, self.text = read_object(path)
        if metadata.get("node_type") != "array":
            raise CorruptMetadataError(f"{path} does not describe an array", remedy="restore it from a copy")
        try:
            self.shape, self.dtype, self.chunks, plainly = _described(self.text)
        except Exception as error:  # zarr raises whatever its parsers stumble over
            raise CorruptMetadataError(f"{path} is not valid Zarr metadata ({first_line(error)})") from error
        if 0 in self.chunks:
            raise CorruptMetadataError(
                f"{path} has chunks without values {self.chunks}", remedy="restore it from a copy"
            )
        if not plainly:
            raise ModelFormatError(f"array {name} in {folder} is compressed, as we write none", remedy="write it again")
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        largest = max(self.nbytes, math.prod(self.chunks) * self.dtype.itemsize)
        if largest > max_bytes:
            raise ResourceLimitError(
                f"array {name} in {folder} would need {largest} bytes, more than the {max_bytes} allowed;"
                " is this the store you meant?"
            )
        self._check_presence(files)

    def _check_presence(self, files: Mapping[str, int]) -> None:
        # Zarr reads an absent chunk as fill values, and a zero-length chunk in a shard as zeros.
        for coordinates, _ in chunk_grid(self.shape, self.chunks):
            key = chunk_key(self.name, coordinates)
            if not files.get(key):
                state = "missing" if key not in files else "empty"
                raise MissingChunkError(
                    f"chunk {key} in {self.folder} is {state}", key, remedy="restore it from a copy"
                )

    def read(self) -> AnyArray:
        """All values, read one chunk at a time, so that an error can name the chunk."""
        values = np.empty(self.shape, dtype=self.dtype)
        for coordinates, region in chunk_grid(self.shape, self.chunks):
            key = chunk_key(self.name, coordinates)
            chunk = chunk_values(read_file(self.folder / key), self.chunks, self.dtype)
            if chunk is None:
                raise CorruptChunkError(
                    f"chunk {key} in {self.folder} is damaged", key, remedy="restore it from a copy"
                )
            values[region] = chunk[tuple(slice(part.stop - part.start) for part in region)]
        return values


def _chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The whole array, or its leading axes cut evenly until a chunk has at most 16 MiB."""
    chunks = [max(1, side) for side in shape]
    for axis, side in enumerate(chunks):
        excess = -(-math.prod(chunks) * itemsize // MAX_CHUNK_BYTES)
        if excess <= 1:
            break
        chunks[axis] = max(1, side // excess)
    return tuple(chunks)
