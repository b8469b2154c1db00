"""Compressed tables that are written: their columns and names, kills, updates of their models."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compressed_rows import problem

from streamkernel import KernelRidge, compress, ingest, open_table
from streamkernel.errors import (
    StoreExistsError,
)
from streamkernel.table import table_info


def write_source(folder: Path, y: Any, weights: bool = True) -> Path:
    X, _, w = problem()
    lines = ["length,width,depth,mass,times,target" if weights else "length,width,depth,mass,target"]
    for row, count, target in zip(X.tolist(), w.astype(int).tolist(), y.tolist(), strict=True):
        lines.append(",".join(map(str, [*row, count, target] if weights else [*row, target])))
    (folder / "source.csv").write_text("\n".join(lines) + "\n")
    store = folder / "source.zarr"
    ingest(folder / "source.csv", store, target="target", weight="times" if weights else None)
    return store


@pytest.mark.parametrize("targets", ["labels", "numbers", "numeric labels"])
def test_a_written_table_is_like_the_one_it_was_made_of(tmp_path: Path, targets: str) -> None:
    _, y, _ = problem("labels" if targets == "labels" else "numbers")
    if targets == "numeric labels":
        y = (y > 0.0).astype(int)
    store, out = write_source(tmp_path, y), tmp_path / "small.zarr"
    classify = targets == "numeric labels" or None
    found = compress(store, size=30, path=out, classify=classify)
    before, after = table_info(store), table_info(out)
    same = ("columns", "target_names", "classes", "dtype", "weight", "features", "targets", "ingested")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["weight"] == "times"
    table = open_table(out, classify=bool(classify))
    block = table.read(0, table.n_rows)
    assert np.array_equal(block.X, found.X)
    assert np.array_equal(block.weights, found.weights)
    assert table.named
    if targets == "labels":
        assert table.classes.tolist() == sorted(set(y.tolist()))
        assert (table.classes[block.Y.argmax(axis=1)] == found.y).all()
    fingerprints = table.fingerprint, found.table.fingerprint
    assert targets == "numeric labels" or fingerprints[0] == open_table(out).fingerprint
    with pytest.raises(StoreExistsError, match=r"exists; choose another path or ask for overwrite"):
        compress(store, size=30, path=out, classify=classify)
    compress(store, size=20, path=out, classify=classify, overwrite=True)
    assert open_table(out).n_rows <= 20


def test_names_of_weights(tmp_path: Path) -> None:
    _, y, _ = problem()
    store = write_source(tmp_path, y, weights=False)
    compress(store, size=30, path=tmp_path / "a.zarr")
    assert table_info(tmp_path / "a.zarr")["weight"] == "w"
    table = open_table(store)
    positive = ingest_positive(tmp_path, table)
    weighted = open_table(positive).weighted_by("mass")
    compress(weighted, size=30, path=tmp_path / "b.zarr")
    assert table_info(tmp_path / "b.zarr")["weight"] == "mass"
    assert table_info(tmp_path / "b.zarr")["columns"] == ["length", "width", "depth"]


def ingest_positive(folder: Path, table: Any) -> Path:
    """The same table with a column mass >= 0."""
    block = table.read(0, table.n_rows)
    lines = ["length,width,depth,mass,target"]
    for row, label in zip(np.abs(block.X).tolist(), block.Y.argmax(axis=1).tolist(), strict=True):
        lines.append(",".join(map(str, [*row, f"class {label}"])))
    (folder / "positive.csv").write_text("\n".join(lines) + "\n")
    ingest(folder / "positive.csv", folder / "positive.zarr", target="target")
    return folder / "positive.zarr"


DYING = """
import os, signal, sys
from streamkernel import compress
from streamkernel.table.ingest.writers.writer import ChunkWriter
write = ChunkWriter._write_chunk
def dying(self, name, start, values):
    if name == "y":
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, name, start, values)
ChunkWriter._write_chunk = dying
compress(sys.argv[1], size=30, path=sys.argv[2], overwrite=True)
"""


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_half_written(tmp_path: Path) -> None:
    _, y, _ = problem()
    store, out = write_source(tmp_path, y), tmp_path / "small.zarr"
    compress(store, size=20, method="subsample", path=out)
    before = open_table(out).fingerprint
    done = subprocess.run([sys.executable, "-c", DYING, str(store), str(out)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert open_table(out).fingerprint == before
    compress(store, size=30, path=out, overwrite=True)
    assert [path.name for path in tmp_path.iterdir() if "small" in path.name] == ["small.zarr"]


def test_a_model_of_a_compressed_table_takes_new_rows_of_the_table_that_it_stands_for() -> None:
    """They have a column of weights only where the table had one."""
    X, y, w = problem("numbers")
    named, options = pd.DataFrame(X, columns=list("abcd")), {"metric": "none", "lengthscale": 2.0}
    for weights in (None, w):
        model = KernelRidge(10, **options).fit(compress(named, y, size=60, sample_weight=weights).table)
        assert model.model_.record.weight_column is None
        model.update(named, y)
    weighted = named.assign(times=w)
    small = compress(open_table(weighted, y).weighted_by("times"), size=60)
    one, other = (KernelRidge(10, **options).fit(small.table) for _ in range(2))
    assert one.model_.record.weight_column == "times"
    one.update(open_table(weighted, y))
    other.update(open_table(named, y, weights=w))
    np.testing.assert_allclose(one.predict(named), other.predict(named), rtol=1e-4)


def test_the_rows_that_are_compressed_are_never_replaced(tmp_path: Path) -> None:
    store = write_source(tmp_path, problem()[1])
    (tmp_path / "folder").symlink_to(tmp_path)
    for out in (store, tmp_path / "folder" / "source.zarr"):
        with pytest.raises(StoreExistsError, match="has the rows that are compressed, which would be"):
            compress(store, size=30, path=out, overwrite=True)
    assert open_table(store).n_rows == 600
