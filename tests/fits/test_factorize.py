"""A factor on disk is the Nystroem approximation of its basis, whole or resumed, however the rows are stored."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from forks import Forks
from sklearn.metrics.pairwise import rbf_kernel
from slow_cases import slow_but
from thread_clients import thread_client

from streamkernel import Factor, factorize, ingest
from streamkernel.cli.saved_objects import is_factor
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import (
    CheckpointMismatchError,
    IncompleteStoreError,
    NumericalError,
    ParameterError,
    ResourceLimitError,
    ShapeError,
    StoreExistsError,
    StoreNotFoundError,
    StreamKernelWarning,
)
from streamkernel.fits.factor import factor as module
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import open_table


def rows(m: int = 3000, p: int = 4, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((m, p)).astype(np.float32)


def stored(factor: Factor) -> Any:
    assert factor.path is not None
    return zarr.open_group(factor.path / "rows", mode="r")["G"]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks of G, though the rows are few."""
    monkeypatch.setattr(module, "_CHUNK_BYTES", 300 * 40 * 4)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_columns_and_certificate(tmp_path: Path, small_chunks: None, dtype: str) -> None:
    X = rows()
    factor = factorize(X, tmp_path / "F", n_components=40, lengthscale=2.0, scale="none", dtype=dtype)
    G = np.asarray(stored(factor)[:])
    assert G.shape == factor.shape == (3000, 40)
    assert G.dtype == dtype
    K = rbf_kernel(X.astype(np.float64), gamma=1 / 8)
    picked = factor.component_indices
    C = K[:, picked]
    approximation = C @ np.linalg.solve(C[picked], C.T)
    np.testing.assert_allclose(G @ G.T, approximation, atol=2e-6 if dtype == "float32" else 1e-10)
    left = [3000.0] + [3000.0 - (G[:, : t + 1].astype(np.float64) ** 2).sum() for t in range(40)]
    np.testing.assert_allclose(factor.residual_path, left, rtol=1e-9, atol=1e-6)
    assert np.all(np.diff(factor.residual_path) <= 0)
    assert factor.config["certificate"]["residual_trace"] == pytest.approx(3000.0 - np.trace(approximation), abs=1e-2)


def test_g_is_a_dask_array_of_what_is_stored(tmp_path: Path, small_chunks: None) -> None:
    factor = factorize(rows(), tmp_path / "F", n_components=40)
    assert isinstance(factor.G, da.Array)
    assert factor.G.dtype == np.float32
    np.testing.assert_array_equal(factor.G.compute(), stored(factor)[:])
    np.testing.assert_array_equal(Factor.load(tmp_path / "F").G[700:710].compute(), stored(factor)[700:710])


def test_loaded_is_what_was_made(tmp_path: Path) -> None:
    made = factorize(rows(), tmp_path / "F", n_components=20, rule="rpcholesky", random_state=3)
    read = Factor.load(tmp_path / "F")
    assert read.digest == made.digest
    np.testing.assert_array_equal(read.basis.points, made.basis.points)
    np.testing.assert_array_equal(read.residual_path, made.residual_path)
    features = read.rows_of(open_table(rows())).to_dask().compute()
    np.testing.assert_allclose(features, made.G.compute(), atol=1e-5)


def test_without_columns(tmp_path: Path) -> None:
    whole = factorize(rows(), tmp_path / "F", n_components=20, dtype="float64")
    bare = factorize(rows(), tmp_path / "B", n_components=20, columns="none")
    in_memory = factorize(rows(), n_components=20)
    for factor in (bare, in_memory):
        np.testing.assert_allclose(factor.residual_path, whole.residual_path, rtol=1e-9)
        with pytest.raises(StoreNotFoundError, match="rows_of"):
            factor.G
    assert not (tmp_path / "B" / "rows").exists()
    assert Factor.load(tmp_path / "B").digest == bare.digest


def test_a_kernel_that_is_not_stationary(tmp_path: Path) -> None:
    X = rows(500)
    factor = factorize(X, tmp_path / "F", n_components=15, kernel="polynomial", scale="none")
    K = factor.basis.kernel.prepare(X.astype(np.float64)).block(X.astype(np.float64))
    assert factor.residual_path[0] == pytest.approx(np.trace(K), rel=1e-6)
    quadratic = factorize(X, n_components=5, kernel="polynomial", degree=2, coef0=0.0, scale="none").basis.kernel
    np.testing.assert_allclose(np.diagonal(quadratic(X[:9].astype(np.float64))), ((X[:9] ** 2).sum(axis=1) / 4) ** 2)


@pytest.mark.parametrize("chunk", slow_but([777], [100, 777, 3000]))
def test_any_chunks_and_threads_give_the_same_picks_and_columns(tmp_path: Path, small_chunks: None, chunk: int) -> None:
    X = rows()
    once = factorize(X, tmp_path / "F", n_components=40)
    again = factorize(da.from_array(X, chunks=(chunk, 4)), tmp_path / "A", n_components=40)
    np.testing.assert_array_equal(again.component_indices, once.component_indices)
    np.testing.assert_allclose(again.G.compute(), once.G.compute(), atol=1e-6)


def test_one_digest_on_threads_and_on_a_cluster(tmp_path: Path, small_chunks: None) -> None:
    table, settings = open_table(rows()), BasisSettings(n_components=40, objective="trace")
    digests = set()
    with thread_client() as client:
        for place, executor in (("A", ThreadExecutor(1)), ("B", ThreadExecutor(2)), ("C", ClusterExecutor(client))):
            digests.add(module.make_factor(table, settings, Session(executor), tmp_path / place).digest)
    assert len(digests) == 1


SCRIPT = """
import os, signal, sys
import numpy as np
from streamkernel import factorize
from streamkernel.fits.factor import factor as module
from streamkernel.store import RowSink
module._CHUNK_BYTES = 300 * 40 * 4
left, write = int(sys.argv[2]), RowSink.write
def limited(self, name, start, values):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return write(self, name, start, values)
RowSink.write = limited
X = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
factorize(X, sys.argv[1], n_components=40)
"""


def files(folder: Path, depth: int) -> dict[tuple[str, ...], tuple[int, int]]:
    """Time and number of each chunk file of G: both change when it is written again."""
    return {
        path.relative_to(folder).parts[depth:]: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.glob("**/G/c/**/*")
        if path.is_file()
    }


def test_killed_and_resumed_is_the_undisturbed_one(forks: Forks, tmp_path: Path, small_chunks: None) -> None:
    whole = factorize(rows(), tmp_path / "W", n_components=40)
    done = forks.run(SCRIPT, tmp_path / "F", 6)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(IncompleteStoreError, match=r"factorize\(resume=\.\.\.\)"):
        Factor.load(tmp_path / "F")
    before = files(tmp_path / "F" / ".rows.unfinished", 1)
    assert 4 <= len(before) <= 6
    resumed = factorize(rows(), tmp_path / "F", n_components=40, resume=True)
    assert resumed.digest == whole.digest
    after = files(tmp_path / "F" / "rows", 0)
    assert len(after) == 10
    assert {key: after[key] for key in before} == before


@pytest.mark.slow
def test_resuming_something_else_is_refused(forks: Forks, tmp_path: Path, small_chunks: None) -> None:
    done = forks.run(SCRIPT, tmp_path / "F", 3)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(CheckpointMismatchError, match="fingerprint"):
        factorize(rows(), tmp_path / "F", n_components=40, lengthscale=1.0, resume=True)
    # Without resuming it starts anew.
    factorize(rows(), tmp_path / "F", n_components=40, lengthscale=1.0)


def test_what_is_there_is_not_lost(tmp_path: Path) -> None:
    first = factorize(rows(), tmp_path / "F", n_components=10)
    for again in ({}, {"resume": True}):
        with pytest.raises(StoreExistsError):
            factorize(rows(), tmp_path / "F", n_components=12, **again)
    assert Factor.load(tmp_path / "F").digest == first.digest
    factorize(rows(), tmp_path / "F", n_components=12, overwrite=True)
    assert Factor.load(tmp_path / "F").shape == (3000, 12)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(StoreExistsError, match="is not a factor"):
        factorize(rows(), tmp_path / "other", n_components=12, overwrite=True)


def test_columns_of_a_replaced_factor_are_removed(forks: Forks, tmp_path: Path, small_chunks: None) -> None:
    factorize(rows(), tmp_path / "F", n_components=10)
    killed = forks.run(SCRIPT.replace("n_components=40", "n_components=40, overwrite=True"), tmp_path / "F", 2)
    assert killed.returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path / "F")) == [".rows.unfinished", "basis", "rows"]
    factorize(rows(), tmp_path / "F", n_components=12, columns="none", overwrite=True)
    assert os.listdir(tmp_path / "F") == ["basis"]
    assert Factor.load(tmp_path / "F").record.columns is None


def test_an_overwrite_that_ends_between_columns_and_basis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever meets what is left, or resumes without `overwrite`, is told how that run is finished."""
    factorize(rows(), tmp_path / "F", n_components=10)
    with monkeypatch.context() as patched:
        patched.setattr(Factor, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            factorize(rows(), tmp_path / "F", n_components=12, overwrite=True)
    with pytest.raises(IncompleteStoreError, match=r"finish that run with factorize\(overwrite=.*, resume=.*\)"):
        Factor.load(tmp_path / "F")
    with pytest.raises(StoreExistsError, match=r"to resume a run that replaces it, ask for overwrite .* too"):
        factorize(rows(), tmp_path / "F", n_components=12, resume=True)
    factorize(rows(), tmp_path / "F", n_components=12, overwrite=True, resume=True)
    assert Factor.load(tmp_path / "F").shape == (3000, 12)


def interrupted(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_a_name_too_long_is_refused_before_the_work(tmp_path: Path) -> None:
    """The factor was made, and then its checkpoints could not be renamed and removed."""
    with pytest.raises(ParameterError, match="has 224 bytes"):
        factorize(rows(), tmp_path / ("n" * 224), n_components=10)
    assert os.listdir(tmp_path) == []


def test_a_folder_with_a_table_of_rows_is_no_factor(tmp_path: Path) -> None:
    """Its name begins as that of a factor's part does."""
    ingest(rows(), tmp_path / "rows.zarr")
    assert not is_factor(str(tmp_path))
    with pytest.raises(StoreExistsError, match=r"is not a factor \(it holds rows\.zarr\)"):
        factorize(rows(), tmp_path, n_components=10)
    assert os.listdir(tmp_path) == ["rows.zarr"]
    factorize(rows(), tmp_path / "F", n_components=10)
    with pytest.raises(StoreExistsError, match="no output is made inside of another one"):
        ingest(rows(), tmp_path / "F" / "rows.zarr")


def test_what_lies_among_the_columns_is_not_removed(tmp_path: Path) -> None:
    factorize(rows(), tmp_path / "F", n_components=10)
    (tmp_path / "F" / "rows" / "notes.txt").write_text("")
    with pytest.raises(StoreExistsError, match=r"notes\.txt"):
        factorize(rows(), tmp_path / "F", n_components=12, columns="none", overwrite=True)
    assert Factor.load(tmp_path / "F").shape == (3000, 10)


def test_columns_of_another_basis_are_not_read(tmp_path: Path) -> None:
    factorize(rows(), tmp_path / "F", n_components=10)
    factorize(rows(), tmp_path / "E", n_components=10, random_state=1)
    (tmp_path / "F" / "rows").rename(tmp_path / "old")
    (tmp_path / "E" / "rows").rename(tmp_path / "F" / "rows")
    with pytest.raises(IncompleteStoreError, match="not those of its basis"):
        Factor.load(tmp_path / "F")


def test_bad_input(tmp_path: Path) -> None:
    X = rows(200)
    for options, said in (
        ({"columns": "some"}, "columns must be 'G' or 'none'"),
        ({"dtype": "int8"}, "dtype must be 'float32' or 'float64'"),
        ({"rule": "best"}, "unknown rule 'best'"),
        ({"lengthscale": "auto"}, "give 'median' here"),
    ):
        with pytest.raises(ParameterError, match=said):
            factorize(X, tmp_path / "F", **options)
    with pytest.raises(ResourceLimitError, match="exceeds allowed memory"):
        factorize(X, tmp_path / "F", memory_limit="10MB")
    assert not (tmp_path / "F").exists()
    with pytest.raises(StoreNotFoundError, match="does not exist"):
        Factor.load(tmp_path / "nothing")
    with pytest.raises(ShapeError, match="was made from 4"):
        factorize(X, n_components=5).rows_of(open_table(rows(50, 3)))


def test_rank_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="only 5 of 20 basis functions"):
        factor = factorize(np.repeat(rows(5), 40, axis=0), tmp_path / "F", n_components=20, lengthscale=1.0)
    assert factor.shape == (200, 5)
    assert factor.residual_trace < 1e-4


@pytest.mark.parametrize("columns", ["G", "none"])
def test_a_kernel_that_is_nothing_has_no_factor(columns: str, tmp_path: Path) -> None:
    X, options = np.zeros((20, 2)), {"kernel": "linear", "scale": "none", "columns": columns}
    with (
        pytest.warns(StreamKernelWarning, match="only 0 of 3"),
        pytest.raises(NumericalError, match="the linear kernel is 0 on all 20 rows"),
    ):
        factorize(X, tmp_path / "G", n_components=3, **options)
    assert list(tmp_path.iterdir()) == []
