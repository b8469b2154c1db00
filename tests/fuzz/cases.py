"""What is fuzzed: stores as they are written, and what reads them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from fuzz.damage import Files, taken

from streamkernel import (
    BayesianCommitteeMachine,
    Factor,
    GaussianModel,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    PursuitModel,
    RidgeModel,
    factorize,
    ingest,
    open_table,
)
from streamkernel.blobs import Generations, LocalBlobs, RecordLog
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.jobs.records import JobRecords
from streamkernel.store import Bundle, Checkpoints, read_bundle, write_bundle

__all__ = ["MODELS", "SOURCES", "STORES", "Case", "read_table"]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(X[:, 0])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
COUNTS = np.round(1.0 + Y)
JOB = "20260131-235959-0a1b2c3d"
CONFIG = {"alpha": 0.5, "input": {"rows": 60, "digest": "ab"}}

Case = tuple[Callable[[Path], object], Callable[[Path], object]]


def read_table(path: Path) -> int:
    """Every row of a table; how many there are."""
    table = open_table(path)
    return sum(block.X.shape[0] for block in table.blocks(0, table.n_rows, 64))


def _table(path: Path) -> None:
    ingest(np.column_stack([X, Y]), path, target=3, chunk_rows=16)


def _foreign(path: Path) -> None:
    group = zarr.create_group(path)
    group.create_array("X", data=X, chunks=(10, 3), shards=(20, 3))
    group.create_array("y", data=Y, chunks=(16,))


def _second_version(path: Path) -> None:
    group = zarr.create_group(path, zarr_format=2)
    group.create_array("X", data=X, chunks=(16, 3))
    group.create_array("y", data=Y, chunks=(16,))


def _bundle(path: Path) -> None:
    write_bundle(path, Bundle("model", 1, {"a": [1, 2]}, {"v": np.arange(5.0), "s": np.float64(2)}))


def _checkpoints(path: Path) -> None:
    with Checkpoints(path, CONFIG) as run:
        run.save(1, "look", {"v": np.arange(4.0)})
        run.save(2, "sums", {"K": np.eye(3)})


def _resume(path: Path) -> None:
    with Checkpoints(path, CONFIG) as run:
        for step, name in run.steps():
            run.load(step, name)
        run.save(3, "sums", {"K": np.eye(3)})


def _records(path: Path) -> None:
    log = RecordLog(LocalBlobs(path), "CURRENT")
    generations = Generations(str(path))
    generations._log = log
    before = None
    for name in ("0123456789ab", "ba9876543210", "0123456789ac"):
        value = {"generation": name, "digest": "ab", "layers": [["0123456789ab", 0], [name, 4]]}
        before = log.append(value, after=before)


def _latest(path: Path) -> None:
    generations = Generations("memory://x")
    generations.blobs = LocalBlobs(path)
    generations._log = RecordLog(generations.blobs, "CURRENT")
    generations.latest()


def _job(path: Path) -> None:
    records = JobRecords(str(path), JOB)
    work = {"estimator": "ridge", "settings": {}, "table": "t", "model": "m"}
    spec = {"format": "streamkernel.job", "version": 1, "id": JOB, "submitted": 1.0, "by": {}, "work": work}
    (path / "specs").mkdir(parents=True)
    (path / "specs" / f"{JOB}.json").write_text(json.dumps(spec))
    before = records.advance(None, "queued")
    records.advance(before, "running")
    records.note("submitted", "submitted")


def _follow_job(path: Path) -> None:
    records = JobRecords(str(path), JOB)
    records.spec()
    records.state.latest()
    records.log.all()


STORES: dict[str, Case] = {
    "table": (_table, read_table),
    "foreign table": (_foreign, read_table),
    "second version": (_second_version, read_table),
    "bundle": (_bundle, lambda path: read_bundle(path, "model")),
    "checkpoints": (_checkpoints, _resume),
    "records": (_records, _latest),
    "job": (_job, _follow_job),
}
WRITES = {"checkpoints"}


def _predicted(kind: Any) -> Callable[[Path], object]:
    return lambda path: kind.load(path).predict(X[:3])


def _factor_read(path: Path) -> None:
    factor = Factor.load(path)
    assert factor.digest
    assert isinstance(factor.relative_residual_trace, float)
    factor.rows.table.read(0, factor.rows.shape[0])
    factor.rows_of(open_table(X)).gram(Session(ThreadExecutor(1)))


def _path_read(path: Path) -> None:
    pursuit = KernelMatchingPursuit.load(path)
    pursuit.predict(X[:3])
    assert len(list(pursuit.staged_predict(X[:3]))) == len(pursuit.active_set_)
    assert len(pursuit.path_.rss) > len(pursuit.active_set_)


def _probabilities_read(path: Path) -> None:
    pursuit = KernelMatchingPursuitClassifier.load(path)
    pursuit.predict(X[:3])
    # Of the logistic loss alone.
    assert hasattr(pursuit, "predict_proba") == (pursuit.model_.config["settings"]["loss"] == "logistic")
    if hasattr(pursuit, "predict_proba"):
        pursuit.predict_proba(X[:3])


def _variates_read(path: Path) -> None:
    correlated = KernelCCA.load(path)
    correlated.canonical_variates(X[:3], X[:3, :2])
    assert correlated.bound_ is not None


def _components_read(path: Path) -> None:
    sparse = KernelPCA.load(path)
    sparse.transform(X[:3])
    assert sparse.bound_ is not None


MODELS: dict[str, Case] = {
    "ridge": (lambda path: KernelRidge(8).fit(X, Y).save(path), _predicted(KernelRidge)),
    "ridge model": (lambda path: KernelRidge(8).fit(X, Y).save(path), RidgeModel.load),
    "classifier": (
        lambda path: KernelRidgeClassifier(8).fit(X, np.where(Y > 0, "a", "b")).save(path),
        _predicted(KernelRidgeClassifier),
    ),
    "gp": (
        lambda path: GaussianProcessRegressor(8, lengthscale=1.5, tune="none").fit(X, Y).save(path),
        lambda path: GaussianProcessRegressor.load(path).predict(X[:3], return_std=True),
    ),
    "gp model": (
        lambda path: GaussianProcessRegressor(8, lengthscale=1.5, tune="none").fit(X, Y).save(path),
        GaussianModel.load,
    ),
    "gp classifier": (
        lambda path: GaussianProcessClassifier(8, lengthscale=1.5, tune="none").fit(X, LABELS).save(path),
        lambda path: GaussianProcessClassifier.load(path).predict_proba(X[:3]),
    ),
    "poisson": (
        lambda path: GaussianProcessPoissonRegressor(8, lengthscale=1.5, tune="none").fit(X, COUNTS).save(path),
        lambda path: GaussianProcessPoissonRegressor.load(path).predict(X[:3]),
    ),
    "committee": (
        lambda path: BayesianCommitteeMachine(8, block_size=20, lengthscale=1.5, tune="none").fit(X, Y).save(path),
        lambda path: BayesianCommitteeMachine.load(path).predict(X[:3], return_std=True),
    ),
    "nystroem": (lambda path: Nystroem(8).fit(X).save(path), lambda path: Nystroem.load(path).transform(X[:3])),
    "kernel pca": (
        lambda path: KernelPCA(2, basis_size=8).fit(X).save(path),
        lambda path: KernelPCA.load(path).transform(X[:3]),
    ),
    "sparse kernel pca": (lambda path: KernelPCA(2, sparse=6).fit(X).save(path), _components_read),
    "kernel cca": (
        lambda path: KernelCCA(2, basis_size=6, bound_gamma=0.5).fit(X, X[:, :2] + 0.1).save(path),
        _variates_read,
    ),
    "kernel cca of columns": (
        lambda path: KernelCCA(1, basis_size=6, view_columns=([0, 1], [2])).fit(X).save(path),
        lambda path: KernelCCA.load(path).canonical_variates(X[:3]),
    ),
    "kmp": (lambda path: KernelMatchingPursuit(6, validation=0.2).fit(X, Y).save(path), _path_read),
    "kmp model": (lambda path: KernelMatchingPursuit(6).fit(X, Y).save(path), PursuitModel.load),
    "kmp classifier": (
        lambda path: KernelMatchingPursuitClassifier(6, loss="logistic").fit(X, np.where(Y > 0, "a", "b")).save(path),
        _probabilities_read,
    ),
    "factor": (lambda path: factorize(X, path, n_components=8), _factor_read),
}
# Parts of a factor: bundles, and rows that have a manifest of their own.
PARTS = {"factor": ("basis/", "rows/")}


def _source(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _arrow(file: io.BytesIO, opened: Callable[..., Any], compression: str | None) -> None:
    table = _FRAME if opened is pa.ipc.new_stream and compression is None else _KINDS
    with opened(file, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=7)


_FRAME = pa.table({"a": X[:20, 0], "b": X[:20, 1].astype(np.float32), "t": np.arange(20)})
_KINDS = _FRAME.append_column("kind", pa.array(["u", "v", "v", "w"] * 5).dictionary_encode())
_CSV = "a,b,t\n" + "".join(f"{a:.3f},{b:.2e},{i % 3}\n" for i, (a, b) in enumerate(X[:20, :2]))
_LABELLED = 'a,"b, c",t\r\n' + "".join(f'{a:.3f},{b:.3f},"{"no" if a < b else "yes"}"\r\n' for a, b in X[:20, :2])
_TEXT = "# rows\n" + "".join(f"{i % 2} qid:1 1:{a:.3f} 3:{b:.3f} # note\n" for i, (a, b) in enumerate(X[:20, :2]))

# By the suffix of the file: what it may hold, and the target that is asked for.
SOURCES: dict[str, list[tuple[bytes, str | int | None]]] = {
    ".csv": [(_CSV.encode(), "t"), (_LABELLED.encode(), -1), (_CSV.encode(), None)],
    ".csv.zst": [(pa.compress(_CSV.encode(), "zstd", asbytes=True), "t")],
    ".arrow": [
        (_source(lambda file: _arrow(file, pa.ipc.new_file, None)), "kind"),
        (_source(lambda file: _arrow(file, pa.ipc.new_file, "lz4")), "kind"),
        (_source(lambda file: _arrow(file, pa.ipc.new_stream, "zstd")), "kind"),
        (_source(lambda file: _arrow(file, pa.ipc.new_stream, None)), None),
    ],
    ".libsvm": [(_TEXT.replace(" qid:1", "").encode(), None), (_TEXT.encode(), None)],
    ".npy": [
        (_source(lambda file: np.save(file, X[:20])), 2),
        (_source(lambda file: np.save(file, np.asfortranarray(X[:20].astype(">f4")))), None),
    ],
    ".npz": [
        (_source(lambda file: np.savez(file, X=X[:20], y=Y[:20])), None),
        (_source(lambda file: np.savez_compressed(file, X=X[:20], y=Y[:20])), None),
    ],
    ".parquet": [
        (_source(lambda file: pq.write_table(_FRAME, file, row_group_size=7)), "t"),
        (_source(lambda file: pq.write_table(_FRAME, file, compression="zstd", use_dictionary=True)), None),
    ],
}  # fmt: skip


def written(case: Case, folder: Path) -> Files:
    """The files of a case, as they should be."""
    case[0](folder)
    return taken(folder)
