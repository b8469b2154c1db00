"""One byte of a store flipped, or its end cut off: the same content or one error, never other content in silence."""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from streamkernel import KernelCCA, KernelRidgeClassifier, append_rows, ingest, open_table
from streamkernel.errors import StreamKernelError
from streamkernel.store import Checkpoints, RowSink

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(X)
SPARSE = scipy.sparse.csr_array(np.where(np.abs(X) > 0.6, X, 0.0))
LABELS = np.where(Y[:, 0] > 0, "high", "low")
FLIPS = 15

Content = dict[str, str]


def digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.hexdigest()


def rows_of(path: Path) -> Content:
    table = open_table(path, sparse=True)
    blocks = [(block.X, block.Y, block.weights) for block in table.blocks(0, table.n_rows, 64)]
    described = table.columns, table.target_names, table.schema, table.statistics and table.statistics.to_config()
    return {
        "rows": digest(*[part for parts in blocks for part in parts]),
        "table": digest(table.fingerprint, described),
    }


def model_of(kind: Any) -> Callable[[Path], Content]:
    return lambda path: {"model": kind.load(path).model_.digest}


def write_grown(path: Path) -> None:
    ingest(open_table(SPARSE[:40], Y[:40], sparse=True), path, chunk_rows=16)
    append_rows(open_table(SPARSE[40:], Y[40:], sparse=True), path)


def write_rows(path: Path) -> None:
    with RowSink.create(path, 60, {"a": (3, "f8")}, 16) as sink:
        sink.finish(sink.write("a", 0, Y))


def write_steps(path: Path) -> None:
    with Checkpoints(path, {"a": 1}) as run:
        run.save(1, "look", {"v": Y[0]})
        run.save(2, "sums", {"K": Y})


def steps_of(path: Path) -> Content:
    """Steps that are done again are left out; a warning says so."""
    with Checkpoints(path, {"a": 1}) as run:
        read = {name: run.load(step, name) for step, name in run.steps()}
    return {name: digest(*arrays.values()) for name, arrays in read.items() if arrays is not None}


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], Content]]] = {
    "table": (lambda path: ingest(np.column_stack([X, Y[:, 0]]), path, target=3, chunk_rows=16), rows_of),
    "sparse table that grew": (write_grown, rows_of),
    "values of rows": (write_rows, rows_of),
    "classifier": (
        lambda path: KernelRidgeClassifier(5, kernel="gaussian", lengthscale=1.5, alpha=0.1).fit(X, LABELS).save(path),
        model_of(KernelRidgeClassifier),
    ),
    "two views": (
        lambda path: KernelCCA(1, basis_size=5, lengthscale=1.5).fit(SPARSE, Y).save(path),
        model_of(KernelCCA),
    ),
    "checkpoints": (write_steps, steps_of),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_is_what_was_written(name: str, tmp_path: Path) -> None:
    write, read = KINDS[name]
    path, draw = tmp_path / "store", random.Random(name)
    write(path)
    whole, files = read(path), sorted(file for file in path.rglob("*") if file.is_file() and file.stat().st_size)
    for _ in range(FLIPS):
        file = draw.choice(files)
        content = file.read_bytes()
        at = draw.randrange(len(content))
        flipped = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        damaged = draw.choice([flipped, flipped, flipped, content[:at]])
        file.write_bytes(damaged)
        # Without an error it is what was written; only of checkpoints may a step be missing.
        with warnings.catch_warnings(), suppress(StreamKernelError):
            warnings.simplefilter("ignore")
            found = read(path)
            assert found.items() <= whole.items(), f"{file.relative_to(path)}, byte {at}"
            assert name == "checkpoints" or found == whole
        file.write_bytes(content)
    assert read(path) == whole
