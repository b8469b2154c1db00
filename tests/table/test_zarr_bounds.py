"""Chunks that inflate beyond their shape are refused before memory is given to them."""

import gzip
import tracemalloc

import numcodecs
import numpy as np
import pyarrow as pa
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from streamkernel.errors import CorruptChunkError, UncheckedChunksWarning
from streamkernel.table import open_table
from streamkernel.table.stored._bounds import _deflate, _zstd

# zarr's remark on a codec outside of its specification, and ours on those without a checksum.
pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs", "ignore::streamkernel.errors.UncheckedChunksWarning")

ROWS, BOMB = 100, 2_000_000
X = np.round(np.random.default_rng(0).standard_normal((ROWS, 4)), 2)

VERSION_3 = {
    "zstd": [ZstdCodec(level=1)],
    "zstd with checksum": [ZstdCodec(level=1, checksum=True)],
    "blosc lz4": [BloscCodec(cname="lz4", typesize=8)],
    "blosc zstd": [BloscCodec(cname="zstd", typesize=8)],
    "gzip": [GzipCodec(level=1)],
    "blosc, crc32c": [BloscCodec(cname="lz4", typesize=8), Crc32cCodec()],
    "crc32c, zstd": [Crc32cCodec(), ZstdCodec(level=1)],
    "numcodecs.zlib": [{"name": "numcodecs.zlib", "configuration": {"level": 1}}],
}
VERSION_2 = {
    "blosc": numcodecs.Blosc("lz4", 5, 1),
    "zstd": numcodecs.Zstd(1),
    "gzip": numcodecs.GZip(1),
    "zlib": numcodecs.Zlib(1),
    "lz4": numcodecs.LZ4(),
}


def made(path, rows, values, name, kind):
    """An array of one chunk or, as a shard, of one chunk of `rows` rows in its first shard."""
    options = {"shape": (rows, 4), "chunks": (rows, 4), "dtype": "f8", "overwrite": True}
    options["config"] = {"write_empty_chunks": True}
    if kind == "version 2":
        options |= {"zarr_format": 2, "compressors": VERSION_2[name], "filters": None}
    else:
        options |= {"compressors": VERSION_3[name]}
        if kind == "shard":
            options |= {"shards": (rows, 4)}
    zarr.create_array(path, **options)[:] = values
    return path / ("0.0" if kind == "version 2" else "c/0/0")


CASES = [
    *(("version 3", name) for name in VERSION_3),
    ("shard", "blosc lz4"),
    ("shard", "zstd"),
    *(("version 2", name) for name in VERSION_2),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_bombs_are_refused_and_chunks_are_read(tmp_path, kind, name):
    file = made(tmp_path / "a", ROWS, X, name, kind)
    np.testing.assert_array_equal(open_table(tmp_path / "a").read(0, ROWS).X, X)
    bomb = made(tmp_path / "large", BOMB, 0.0, name, kind).read_bytes()
    assert len(bomb) < 4e6
    table = open_table(tmp_path / "a")
    file.write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptChunkError, match=r"0.0 .*it would inflate to more than the 3200 bytes"):
            table.read(0, ROWS)
        # What was read, twice as zarr hands it on, and a piece of what was counted.
        assert tracemalloc.get_traced_memory()[1] < 4 * len(bomb) + 2e6
    finally:
        tracemalloc.stop()
    file.unlink()
    made(tmp_path / "a", ROWS, 0.0, name, kind)
    assert open_table(tmp_path / "a").read(0, ROWS).X.sum() == 0


def streamed(pieces):
    """Zstandard as a writer makes it that does not know how much will come, and flushes."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for piece in pieces:
            stream.write(piece)
            stream.flush()
    return bytes(sink.getvalue())


def repeated(blocks, declared=None):
    """A Zstandard frame of blocks that each repeat one byte 128 KiB long, in 4 bytes."""
    size = b"" if declared is None else declared.to_bytes(8, "little")
    block = (2**17 << 3 | 2).to_bytes(3, "little") + b"\0"
    last = (2**17 << 3 | 3).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd" + (b"\0" if declared is None else b"\xc0") + b"\x38" + size + block * (blocks - 1) + last


def test_zstandard_frames_of_every_kind(tmp_path):
    file = made(tmp_path / "a", ROWS, X, "zstd", "version 3")
    table = open_table(tmp_path / "a")
    content, skipped = X.tobytes(), b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    whole, zstd = zstd_frame(content), numcodecs.Zstd(1)
    for harmless in (
        whole,
        skipped + whole,
        zstd_frame(content[:800]) + skipped + zstd_frame(content[800:]),
        zstd_frame(b"") + whole,
        streamed([content]),
        streamed([content[i : i + 320] for i in range(0, 3200, 320)]),
        zstd_frame(content[:800]) + streamed([content[800:]]),
    ):
        assert bytes(zstd.decode(harmless)) == content
        file.write_bytes(harmless)
        np.testing.assert_array_equal(table.read(0, ROWS).X, X)
    for bomb in (
        repeated(1000),
        repeated(1000, 1000 * 2**17),
        repeated(1, 2**60),
        skipped + repeated(1000),
        whole + repeated(1000),
        repeated(1) + repeated(1, 2**40),
        streamed([bytes(10**6)] * 40),
    ):
        file.write_bytes(bomb)
        with pytest.raises(CorruptChunkError, match="inflate"):
            table.read(0, ROWS)


def zstd_frame(content):
    return bytes(numcodecs.Zstd(1).encode(content)) if content else bytes.fromhex("28b52ffd2000010000")


def test_declared_and_counted_sizes():
    limit = 10**9
    for size in (1, 255, 256, 300, 65791, 65792, 10**6):
        assert _zstd(memoryview(zstd_frame(bytes(size))), limit) == size
        assert _deflate(memoryview(gzip.compress(bytes(size))), limit) == pytest.approx(size, abs=300)
    noise = np.random.default_rng(0).bytes(300_000)
    assert _deflate(memoryview(gzip.compress(noise) + gzip.compress(noise)), limit) == 600_000
    assert _deflate(memoryview(gzip.compress(bytes(10**7))), 10**6) < 1.2e6
    # Not theirs at all: left to the codec, which says so.
    for junk in (b"", b"\x28", noise[:50], b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff"):
        assert _deflate(memoryview(junk), limit) == 0
        assert _zstd(memoryview(junk), limit) <= limit


def test_a_checksum_is_still_seen(tmp_path):
    made(tmp_path / "a", ROWS, X, "zstd with checksum", "version 3")
    assert open_table(tmp_path / "a").features.checksummed
    made(tmp_path / "b", ROWS, X, "zstd", "version 3")
    with pytest.warns(UncheckedChunksWarning):
        assert not open_table(tmp_path / "b").features.checksummed
