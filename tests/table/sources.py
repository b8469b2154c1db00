"""Sources of every kind with the same rows, and sources that are damaged: what the tests of ingest read."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from sklearn.datasets import dump_svmlight_file
from zarr.codecs import Crc32cCodec

RNG = np.random.default_rng(0)
M = 3000
X = RNG.standard_normal((M, 4))
Y = RNG.integers(0, 5, M).astype(float)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(t=Y)


def csv(path, header=True, **options):
    FRAME.to_csv(path, index=False, header=header, **options)
    return path, "t" if header else -1


def parquet(path):
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=700)
    return path, "t"


def parquet_folder(path):
    (path / "parts").mkdir(parents=True)
    for index in range(3):
        part = pa.Table.from_pandas(FRAME.iloc[index * 1000 : (index + 1) * 1000], preserve_index=False)
        pq.write_table(part, path / "parts" / f"part-{index}.parquet")
    (path / "_SUCCESS.parquet").write_bytes(b"")
    return path, "t"


def npz(path, save=np.savez, **arrays):
    save(path, **(arrays or {"X": X, "y": Y, "meta": np.array("other members are left alone")}))
    return path, None


def npy(path, order="C"):
    np.save(path, np.asarray(FRAME.to_numpy(), order=order))
    return path, 4


def libsvm(path):
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path, None


def foreign_zarr(path):
    group = zarr.create_group(path)
    group.create_array("X", data=X, chunks=(170, 3), compressors=[Crc32cCodec()])
    made = group.create_array(
        "y", shape=(M,), dtype="f8", chunks=(999,), config={"write_empty_chunks": True}, compressors=[Crc32cCodec()]
    )
    made[:] = Y
    return path, None


def bare_zarr(path):
    zarr.create_array(path, data=FRAME.to_numpy(), chunks=(400, 5), compressors=[Crc32cCodec()])
    return path, "-1"


def write(name, content):
    def make(path):
        data = content.encode() if isinstance(content, str) else content
        (path / name).write_bytes(data)
        return path / name

    return make


def save(name, **arrays):
    def make(path):
        np.savez(path / name, **arrays) if name.endswith("z") else np.save(path / name, *arrays.values())
        return path / name

    return make


def truncated(make):
    def cut(path):
        source = make(path)[0]
        content = source.read_bytes()
        source.write_bytes(content[: len(content) // 2])
        return source

    return cut


GOOD = "a,b,t\n" + "1,2,3\n" * 2000
