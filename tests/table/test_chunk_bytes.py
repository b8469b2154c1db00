"""Chunks that are made and read without zarr: the bytes that its codecs make, and the errors of damaged ones."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ZstdCodec
from zarr.storage import MemoryStore

from streamkernel.table.stored.chunk_bytes import ChunkBytes

LZ4: Any = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}
DTYPES = ["<f4", "<f8", "<i8", "|u1", "|b1"]


def made(shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str, compressors: list[Any], **options: Any) -> Any:
    """An array that zarr writes into memory, and the stored bytes by their keys."""
    contents: dict[str, Any] = {}
    options = {"fill_value": 1, "config": {"write_empty_chunks": True}, **options}
    array = zarr.create_array(
        MemoryStore(contents), shape=shape, chunks=chunks, dtype=dtype, compressors=compressors, **options
    )
    return array, contents


@given(
    m=st.integers(1, 40),
    rows=st.integers(1, 20),
    width=st.none() | st.integers(1, 5),
    dtype=st.sampled_from(DTYPES),
    blosc=st.none() | st.sampled_from(["noshuffle", "shuffle", "bitshuffle"]),
)
def test_the_bytes_are_those_of_zarr(m: int, rows: int, width: int | None, dtype: str, blosc: str | None) -> None:
    tail = () if width is None else (width,)
    values = np.random.default_rng(m).integers(0, 100, (m, *tail)).astype(dtype)
    codec = [] if blosc is None else [BloscCodec(**{**LZ4, "shuffle": blosc}, typesize=values.itemsize)]
    array, contents = made(values.shape, (rows, *tail), dtype, [*codec, Crc32cCodec()])
    array[:] = values
    chunk = ChunkBytes.of(array)
    assert chunk is not None
    for start in range(0, m, rows):
        theirs = contents[array.metadata.encode_chunk_key((start // rows, *(0 for _ in tail)))].to_bytes()
        part = values[start : start + rows]
        assert b"".join(map(bytes, chunk.encoded(part))) == theirs
        decoded = chunk.decoded(theirs)
        np.testing.assert_array_equal(decoded[: len(part)], part)
        assert (decoded[len(part) :] == 1).all()
        assert decoded.dtype == values.dtype
        assert decoded.flags.writeable


def test_large_chunks_of_numbers_that_do_not_compress() -> None:
    """More than one block of Blosc, and more bytes than numbers."""
    values = np.random.default_rng(0).random((1 << 15, 9))
    array, contents = made(values.shape, values.shape, "<f8", [BloscCodec(**LZ4, typesize=8), Crc32cCodec()])
    array[:] = values
    chunk = ChunkBytes.of(array)
    assert chunk is not None
    [stored] = [content.to_bytes() for key, content in contents.items() if key != "zarr.json"]
    assert b"".join(map(bytes, chunk.encoded(values))) == stored
    np.testing.assert_array_equal(chunk.decoded(stored), values)


@pytest.mark.parametrize("blosc", [False, True])
def test_damage_is_an_error(blosc: bool) -> None:
    values = np.arange(60.0).reshape(20, 3)
    codec = [BloscCodec(**LZ4, typesize=8)] if blosc else []
    chunk = ChunkBytes.of(made(values.shape, values.shape, "<f8", [*codec, Crc32cCodec()])[0])
    other = ChunkBytes.of(made((20, 4), (20, 4), "<f8", [*codec, Crc32cCodec()])[0])
    assert chunk is not None
    assert other is not None
    content = b"".join(map(bytes, chunk.encoded(values)))
    for damaged in (
        content[:-1],
        content[1:],
        content[:5],
        content[:3],
        content[:10] + bytes([content[10] ^ 1]) + content[11:],
    ):
        with pytest.raises(ValueError, match="checksum"):
            chunk.decoded(damaged)
    # Whole chunks of other shapes.
    with pytest.raises(ValueError, match="fewer than the 640 bytes"):
        other.decoded(content)
    with pytest.raises(ValueError, match="inflate to more than the 480 bytes"):
        chunk.decoded(b"".join(map(bytes, other.encoded(np.zeros((20, 4))))))
    for numbers in (b"", b"\x02\x01\x21\x08\xe0\x01\0\0"):  # the second one begins as a whole chunk does
        with pytest.raises(ValueError, match="fewer"):
            chunk.decoded(numbers + google_crc32c.value(numbers).to_bytes(4, "little"))


@pytest.mark.parametrize("values", [np.arange(60.0), np.random.default_rng(0).random(60)], ids=["packed", "as it is"])
@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
def test_a_header_that_lies_about_its_size(values: Any, shuffle: str) -> None:
    """With a right checksum, as a writer makes that lost the end: Blosc read the memory behind it."""
    codec = BloscCodec(**{**LZ4, "shuffle": shuffle}, typesize=8)
    chunk = ChunkBytes.of(made(values.shape, values.shape, "<f8", [codec, Crc32cCodec()])[0])
    assert chunk is not None
    numbers = bytes(chunk.encoded(values)[0])
    for stored in (*(numbers[:size] for size in range(16, len(numbers))), numbers + b"\0"):
        with pytest.raises(ValueError, match="has not the size that its header has"):
            chunk.decoded(stored + google_crc32c.value(stored).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype", "compressors", "options"),
    [
        ((20, 4), (20, 2), "<f8", [Crc32cCodec()], {}),
        ((20, 4), (10, 4), "<f8", [Crc32cCodec()], {"shards": (20, 4)}),
        ((20, 4), (20, 4), "<f8", [ZstdCodec(), Crc32cCodec()], {}),
        ((20, 4), (20, 4), "<f8", [Crc32cCodec(), BloscCodec(**LZ4, typesize=8)], {}),
        ((20, 4), (20, 4), "<f8", [BloscCodec(**LZ4, typesize=2), Crc32cCodec()], {}),
        ((20, 4), (20, 4), "<f8", [BloscCodec(**LZ4, typesize=8)], {}),
        ((20, 4), (20, 4), "<f8", [], {}),
        ((20, 4), (20, 4), "<f8", [Crc32cCodec()], {"serializer": BytesCodec(endian="big")}),
        ((20,), (20,), "<c16", [Crc32cCodec()], {}),
        ((20,), (20,), "<U3", [Crc32cCodec()], {"fill_value": "a"}),
        ((20, 4), (20, 4), "<f8", None, {"zarr_format": 2}),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of zarr, about text and order of codecs
def test_zarr_reads_all_others(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str, compressors: Any, options: dict[str, Any]
) -> None:
    assert ChunkBytes.of(made(shape, chunks, dtype, compressors, **options)[0]) is None
