"""An array of a table under construction, whose chunks are written whole, in their order."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import zarr
from zarr.abc.buffer import Buffer
from zarr.codecs import BloscCodec, BloscShuffle, Crc32cCodec
from zarr.storage import MemoryStore, StorePath

from streamkernel.atomic import array_digest, parsed_json, read_file
from streamkernel.blobs import LocalBlobs
from streamkernel.manifest import ArrayManifest
from streamkernel.table.stored.chunk_bytes import ChunkBytes
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Untyped

ZARR_JSON = "zarr.json"
# Names of the second dimension of arrays.
_SECOND = {"X": "feature", "id": "byte"}


class WrittenArray:
    """The member `name` of the group in `folder`, as its metadata file describes it; `finish` writes its length there.

    Attributes
    ----------
    shape : shape up to the end of the last chunk that was written.
    dtype, chunks : as in the metadata.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._blobs, self._file, self._name = LocalBlobs(folder), folder / name / ZARR_JSON, name
        self._content = read_file(self._file)
        self.shape, self._chunk = _described(self._content)
        self.chunks, self.dtype = self._chunk.shape, self._chunk.dtype

    @classmethod
    def create(
        cls, folder: Path, name: str, tail: tuple[int, ...], dtype: AnyDType, fill: float, chunk_rows: int
    ) -> WrittenArray:
        """A new array without rows; `tail` is the shape of a row."""
        (folder / name).mkdir()
        dimensions = ("row", _SECOND.get(name, "target"))[: 1 + len(tail)]
        (folder / name / ZARR_JSON).write_bytes(_empty(tail, dtype, fill, chunk_rows, dimensions))
        return cls(folder, name)

    def key(self, start: int) -> str:
        """Key of the chunk that begins with row `start`."""
        return "/".join([self._name, "c", str(start // self.chunks[0]), *["0"] * (len(self.shape) - 1)])

    def write(self, start: int, values: AnyArray) -> str:
        """Write the chunk of rows `start`, ..., and return the digest of its values."""
        self._blobs.write_pieces(self.key(start), self._chunk.encoded(values), durable=False)
        self.shape = (max(self.shape[0], start + len(values)), *self.shape[1:])
        return array_digest(values)

    def read(self, start: int) -> AnyArray:
        """The rows of the chunk that begins with row `start`."""
        content = read_file(self._blobs.folder / self.key(start))
        return self._chunk.decoded(content)[: self.shape[0] - start]

    def cut(self, rows: int) -> None:
        """Leave out all rows from `rows` on, which begin a chunk."""
        self.shape = (rows, *self.shape[1:])

    def finish(self, digests: list[str]) -> ArrayManifest:
        """Write the length into the metadata file."""
        metadata: Fields = parsed_json(self._content) | {"shape": list(self.shape)}
        self._file.write_bytes(json.dumps(metadata, indent=2).encode())
        return ArrayManifest(self.shape, self.chunks[0], self.dtype.str, tuple(digests))


# Tables of the same columns are written again and again.
@lru_cache(maxsize=64)
def _described(content: bytes) -> tuple[tuple[int, ...], ChunkBytes]:
    """The shape and the chunks of the array with this metadata file."""
    array: zarr.Array[Untyped] = zarr.Array.from_dict(StorePath(MemoryStore({})), parsed_json(content))
    chunk = ChunkBytes.of(array)
    assert chunk is not None, "all releases write chunks of these codecs"
    return array.shape, chunk


@lru_cache(maxsize=64)
def _empty(tail: tuple[int, ...], dtype: AnyDType, fill: float, chunk_rows: int, dimensions: tuple[str, ...]) -> bytes:
    """The metadata file of an array without rows."""
    contents: dict[str, Buffer] = {}
    zarr.create_array(
        MemoryStore(contents),
        shape=(0, *tail),
        chunks=(chunk_rows, *tail),
        dtype=dtype,
        fill_value=fill,
        dimension_names=dimensions,
        compressors=[
            BloscCodec(cname="lz4", clevel=5, shuffle=BloscShuffle.shuffle, typesize=dtype.itemsize),
            Crc32cCodec(),
        ],
        config={"write_empty_chunks": True},
    )
    return contents[ZARR_JSON].to_bytes()
