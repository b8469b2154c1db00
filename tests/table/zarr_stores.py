"""The Zarr stores that the tests of tables read, and what is in them."""

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec

from streamkernel.table import Table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((230, 6)).astype(np.float32)
Y = RNG.standard_normal(230)
CRC = {"compressors": [Crc32cCodec()], "fill_value": np.nan, "config": {"write_empty_chunks": True}}


def foreign(path, x_chunks=(40, 6), y_chunks=(70,), **options):
    group = zarr.create_group(path)
    for name, values, chunks in (("X", X, x_chunks), ("y", Y, y_chunks)):
        made = {**CRC, **options}
        if "shards" in made:
            made["shards"] = tuple(c * s for c, s in zip(chunks, options["shards"], strict=False))
        group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **made)[:] = values
    return group


def gathered(table: Table, rows: int = 50) -> np.ndarray:
    return np.concatenate([np.column_stack([b.X, b.Y]) for s in table.spans(rows) for b in table.blocks(*s, rows)])


WANT = np.column_stack([X, Y])


def chunk_files(path):
    return sorted(file for file in path.rglob("c/**/*") if file.is_file())
