"""Chunks are written while the next are computed: an error of the writing is not lost, nor half a result kept."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streamkernel import open_table
from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import StoreError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import FeatureMap, Features
from streamkernel.store import RowSink, rows

X = np.random.default_rng(0).standard_normal((1000, 3))
BASIS = Basis(Gaussian(2.0), X[:20], np.arange(20))
TABLE = open_table(X)
WORK = FeatureMap(Features.of_basis(BASIS), dtype=np.dtype(np.float32))


def sink_at(path: Path, **options: Any) -> RowSink:
    return RowSink.create(path, len(X), WORK.columns, 37, fingerprint="G", **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_values_and_their_summary(tmp_path: Path, threads: int) -> None:
    squares = Session(ThreadExecutor(threads)).write(WORK, TABLE, sink_at(tmp_path / "G"), "write")
    G: NDArray[Any] = open_table(tmp_path / "G").read(0, len(X)).X
    np.testing.assert_allclose(G, BASIS.features(X), atol=1e-6)
    np.testing.assert_allclose(squares, (G.astype(float) ** 2).sum(axis=0), rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_disk_that_is_full_ends_the_sweep_and_a_resumed_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    Session(ThreadExecutor(threads)).write(WORK, TABLE, sink_at(tmp_path / "undisturbed"), "write")
    write, written = rows.write_chunk, []

    def filling(blobs: Any, key: str, *arguments: Any, **options: Any) -> str:
        if len(written) == 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), key)
        written.append(key)
        return write(blobs, key, *arguments, **options)

    monkeypatch.setattr(rows, "write_chunk", filling)
    with pytest.raises(StoreError, match="no space left"):
        Session(ThreadExecutor(threads)).write(WORK, TABLE, sink_at(tmp_path / "G"), "write")
    assert not (tmp_path / "G").exists()
    monkeypatch.undo()
    sink = sink_at(tmp_path / "G", resume=True)
    assert len(sink.finished()) == len(written) == 9
    Session(ThreadExecutor(threads)).write(WORK, TABLE, sink, "write")
    assert (tmp_path / "G" / "COMPLETE").read_text() == (tmp_path / "undisturbed" / "COMPLETE").read_text()
