"""The bytes of a chunk, without zarr's event loop: the numbers, compressed by Blosc or as they are, then their CRC32C.

They equal those of zarr's own codecs. zarr hands each chunk to four threads, one after another, and waits for them; a
chunk of some thousand numbers takes ten times as long to hand over as to decode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import google_crc32c
import numpy as np
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, Endian
from zarr.registry import get_numcodec

from streamkernel.blobs import Bytes
from streamkernel.table.stored.metadata import ZarrArray
from streamkernel.type_aliases import AnyArray, AnyDType, Untyped

_HEADER = 16  # bytes of Blosc's header; the decoded size is in bytes 4 to 8, the encoded one in bytes 12 to 16


@dataclass(frozen=True)
class ChunkBytes:
    """How an array stores its chunks, each of which holds whole rows.

    Attributes
    ----------
    shape : shape of a chunk.
    dtype : dtype of the numbers, in little-endian byte order.
    fill : number in the place of rows behind the end of the array.
    blosc : codec of the numbers; None where they are stored as they are.
    """

    shape: tuple[int, ...]
    dtype: AnyDType
    fill: Untyped
    blosc: Untyped

    @classmethod
    def of(cls, array: ZarrArray) -> ChunkBytes | None:
        """Those of an array as streamkernel writes it; None for any other, which zarr reads."""
        metadata: Untyped = array.metadata
        if metadata.zarr_format != 3 or array.dtype.kind not in "biuf" or array.chunks[1:] != array.shape[1:]:
            return None
        codecs, blosc = list(metadata.codecs), None
        if len(codecs) == 3 and isinstance(codecs[1], BloscCodec):
            options: Untyped = codecs.pop(1).to_dict()["configuration"]
            # The codec takes the size of the numbers that it is given.
            if options.pop("typesize") != array.dtype.itemsize:
                return None
            shuffle = ("noshuffle", "shuffle", "bitshuffle").index(options["shuffle"])
            options |= {"id": "blosc", "shuffle": shuffle}
            blosc = get_numcodec(options)
        if [type(codec) for codec in codecs] != [BytesCodec, Crc32cCodec] or codecs[0].endian == Endian.big:
            return None
        return cls(array.chunks, array.dtype.newbyteorder("<"), metadata.fill_value, blosc)

    def encoded(self, values: AnyArray) -> tuple[Bytes, Bytes]:
        """The compressed numbers of a chunk, which at the end of the array may have fewer rows, and their checksum."""
        if len(values) < self.shape[0]:
            whole = np.full(self.shape, self.fill, self.dtype)
            whole[: len(values)] = values
        else:
            whole = np.ascontiguousarray(values, self.dtype)
        content = whole if self.blosc is None else self.blosc.encode(whole)
        numbers = np.frombuffer(content, np.uint8)
        return numbers, np.frombuffer(google_crc32c.value(numbers).to_bytes(4, "little"), np.uint8)

    def decoded(self, content: bytes) -> AnyArray:
        """The numbers of a whole chunk with these bytes.

        Raises
        ------
        ValueError, RuntimeError
            The bytes are damaged, or would decode to another size than that of the chunk.
        """
        numbers = np.frombuffer(content, np.uint8)[:-4]
        if len(content) < 4 or google_crc32c.value(numbers) != int.from_bytes(content[-4:], "little"):
            raise ValueError("its bytes do not have the checksum that is stored with them")
        size = math.prod(self.shape) * self.dtype.itemsize
        declared = len(numbers) if self.blosc is None else int.from_bytes(numbers[4:8].tobytes(), "little")
        if declared > size:
            raise ValueError(f"it would inflate to more than the {size} bytes of its shape")
        if declared < size or (self.blosc is not None and len(numbers) < _HEADER):
            raise ValueError(f"it has fewer than the {size} bytes of its shape")
        if self.blosc is not None and len(numbers) != int.from_bytes(numbers[12:_HEADER].tobytes(), "little"):
            # Blosc takes the size from its header alone: it would read other memory.
            raise ValueError("it has not the size that its header has")
        values = np.empty(self.shape, self.dtype)
        if self.blosc is None:
            values.reshape(-1).view(np.uint8)[:] = numbers
        else:
            self.blosc.decode(numbers, values)
        return values
