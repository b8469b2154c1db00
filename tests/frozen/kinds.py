"""Everything that this package writes, small: how each is made, and what a reader gets from it.

`write` makes the archives beside this file; `tests/test_frozen.py` reads them with the package as it is now.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from streamkernel import (
    BayesianCommitteeMachine,
    Factor,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
    KernelCCA,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelOneClass,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Nystroem,
    append_rows,
    connect,
    factorize,
    ingest,
    open_table,
)
from streamkernel.cli import main
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import (
    Gaussian,
    Hamming,
    Laplacian,
    Linear,
    Matern,
    OfColumns,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from streamkernel.store import RowSink

__all__ = ["EXPECTED", "FROZEN", "HERE", "Frozen", "unpacked", "write"]

HERE = Path(__file__).parent
EXPECTED = "expected.npz"
Arrays = dict[str, NDArray[Any]]

_RNG = np.random.default_rng(20261122)
X = _RNG.standard_normal((160, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.1 * _RNG.standard_normal(160), X[:, 1] ** 2 + X[:, 2]])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.4, 0.4])]
COUNTS = _RNG.poisson(np.exp(Y[:, 0])).astype(np.float64)
QUERIES = _RNG.standard_normal((12, 3))
SPARSE = scipy.sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
OLD, NEW = slice(0, 120), slice(120, 160)  # rows of the fit, rows of the update after it
GRAM = (X[OLD] @ X[OLD].T + 1.0) ** 2
NAMES = ("age", "income", "rooms")


@dataclass(frozen=True)
class Frozen:
    """Something that is written.

    Attributes
    ----------
    make : writes it in an empty folder.
    read : what a reader gets from that folder, by name. Nothing in the folder is changed.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], Mapping[str, Any]]


def _saved(fit: Callable[[], Any], kind: Any, *methods: str, update: NDArray[Any] | None = None) -> Frozen:
    """An estimator: what its methods say of the queries and, with targets to update it with, what they say then."""

    def values(model: Any, prefix: str = "") -> Arrays:
        return {f"{prefix}{name}": np.asarray(_said(model, name)) for name in methods}

    def read(folder: Path) -> Arrays:
        found = values(kind.load(folder / "model"))
        if update is not None:
            found |= values(kind.load(folder / "model").update(X[NEW], update[NEW]), "updated ")
        return found

    return Frozen(lambda folder: fit().save(folder / "model"), read)


def _said(model: Any, name: str) -> Any:
    if name == "predict with std":
        return np.stack(model.predict(QUERIES, return_std=True))
    if name == "transform second":
        # The views of `_cca`.
        return np.concatenate(model.transform(QUERIES, np.column_stack([QUERIES[:, 0], QUERIES[:, 2]])))
    return getattr(model, name)(QUERIES)


def _factor(**options: Any) -> Frozen:
    def read(folder: Path) -> Arrays:
        factor = Factor.load(folder / "factor")
        rows = {} if options.get("columns") == "none" else {"G": np.asarray(factor.G)}
        return {**rows, "features": factor.basis.features(QUERIES)}

    return Frozen(lambda folder: factorize(X, folder / "factor", Y[:, 0], **options), read)


def _csv(path: Path, rows: slice) -> Path:
    lines = [",".join([*NAMES, "class"])]
    lines += [",".join([*map(repr, row), label]) for row, label in zip(X[rows].tolist(), LABELS[rows], strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _make_table(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as beside:
        ingest(_csv(Path(beside, "old.csv"), OLD), folder / "table", target="class", chunk_rows=50, dtype="float64")
        append_rows(_csv(Path(beside, "new.csv"), NEW), folder / "table")


def _make_sparse_table(folder: Path) -> None:
    table = open_table(SPARSE, Y[:, 0], weights=np.arange(160.0), sparse=True)
    ingest(table, folder / "table", chunk_rows=50, dtype="float64")


def _read_sparse_table(folder: Path) -> Arrays:
    table = open_table(folder / "table", sparse=True)
    block = table.as_sparse(False).read(0, table.n_rows)
    assert table.own_statistics is not None
    return {"X": block.X, "Y": block.Y, "w": block.weights, "std": table.own_statistics.X.std}  # type: ignore[dict-item]


def _make_sparse_model(folder: Path) -> None:
    KernelRidge(8, alpha=0.1, lengthscale=1.5, random_state=0).fit(SPARSE[OLD], Y[OLD]).save(folder / "model")


def _read_sparse_model(folder: Path) -> Arrays:
    model = KernelRidge.load(folder / "model")
    return {"predict": np.asarray(model.predict(SPARSE[NEW])), "components": model.components_.toarray()}


def _make_matrix_model(folder: Path) -> None:
    KernelRidge(8, kernel="precomputed", alpha=0.1, random_state=0).fit(GRAM, Y[OLD]).save(folder / "model")


def _read_matrix_model(folder: Path) -> Arrays:
    model = KernelRidge.load(folder / "model")
    return {"predict": np.asarray(model.predict((QUERIES @ X[OLD].T + 1.0) ** 2)), "components": model.components_}


def _read_table(folder: Path) -> Arrays:
    table = open_table(folder / "table")
    block = table.read(0, table.n_rows)
    return {"X": block.X, "Y": block.Y, "names": np.array(table.columns), "classes": np.array(table.classes)}


_OPTIONS = ("--scheduler", "threads", "--quiet")


def _run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments] + list(_OPTIONS)) == 0


def _make_rows(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as beside:
        _ridge().save(Path(beside, "model"))
        ingest(open_table(X[OLD], Y[OLD]), Path(beside, "table"), chunk_rows=50, dtype="float64")
        _run("predict", Path(beside, "model"), Path(beside, "table"), folder / "rows")


def _read_rows(folder: Path) -> Arrays:
    import zarr

    return {"prediction": np.asarray(zarr.open_group(folder / "rows", mode="r")["prediction"])}


_FIT = ("fit", "table", "model", "--basis", "8", "--lengthscale", "1.5", "--seed", "0")
_KILLED = """
import os, signal, sys
from streamkernel.store import Checkpoints
save = Checkpoints.save
def killing(*given, **options):
    save(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)
Checkpoints.save = killing
from streamkernel.cli import main
main(sys.argv[1:])
"""


def _make_run(folder: Path) -> None:
    """A fit that was killed as its first sweep was saved."""
    ingest(open_table(X[OLD], Y[OLD, :1]), folder / "table", chunk_rows=50, dtype="float64")
    done = subprocess.run([sys.executable, "-c", _KILLED, *_FIT, *_OPTIONS], cwd=folder, check=False)
    assert done.returncode == -signal.SIGKILL


def _read_run(folder: Path) -> Arrays:
    with tempfile.TemporaryDirectory() as beside:
        place = shutil.copytree(folder, Path(beside, "run"))
        before = Path.cwd()
        try:
            os.chdir(place)
            _run(*_FIT, "--resume")
        finally:
            os.chdir(before)
        return {"predict": KernelRidge.load(place / "model").predict(QUERIES)}


def _unfinished(folder: Path, *, resume: bool) -> RowSink:
    columns = {"G": (3, np.float32), "code": (None, np.int64)}
    attributes = {"model": "a"}
    return RowSink.create(folder / "out", 50, columns, 4, fingerprint="f", attributes=attributes, resume=resume)


def _write_unfinished(sink: RowSink, start: int, stop: int) -> dict[str, str]:
    codes = np.arange(start, stop)
    features = np.outer(codes, [1, 2, 3]).astype(np.float32)
    return {**sink.write("G", start, features), **sink.write("code", start, codes)}


def _make_unfinished(folder: Path) -> None:
    """An output of rows of which the first half was written."""
    with _unfinished(folder, resume=False) as sink:
        _write_unfinished(sink, 0, 24)


def _read_unfinished(folder: Path) -> Arrays:
    with tempfile.TemporaryDirectory() as beside:
        place = shutil.copytree(folder, Path(beside, "place"))
        with _unfinished(place, resume=True) as sink:
            finished = len(sink.finished())
            sink.finish(_write_unfinished(sink, 24, 50))
        complete = (place / "out" / "COMPLETE").read_bytes()
        left = len(list(place.iterdir()))
    return {"finished": np.asarray(finished), "complete": np.frombuffer(complete, np.uint8), "left": np.asarray(left)}


_PLACE = "PLACE"  # stands in archives for the folder, which records of jobs name


def _make_jobs(folder: Path) -> None:
    """A job that is done."""
    from distributed import LocalCluster

    ingest(open_table(X[OLD], Y[OLD, :1]), folder / "table", chunk_rows=50, dtype="float64")
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        connect(cluster.scheduler_address, jobs=folder / "jobs") as session,
    ):
        session.submit(_ridge_settings(), folder / "table", folder / "model").result()
    for path in (folder / "jobs").rglob("*.json"):
        path.write_text(path.read_text().replace(str(folder), _PLACE))


def _read_jobs(folder: Path) -> Arrays:
    with tempfile.TemporaryDirectory() as beside:
        place = shutil.copytree(folder, Path(beside, "jobs"))
        for path in (place / "jobs").rglob("*.json"):
            path.write_text(path.read_text().replace(_PLACE, str(place)))
        with connect(jobs=place / "jobs") as session:
            (job,) = session.jobs()
            return {"status": np.array(job.status), "predict": job.result().predict(QUERIES)}


def _ridge_settings(**options: Any) -> KernelRidge:
    return KernelRidge(8, **{"lengthscale": 1.5, "random_state": 0, **options})


def _ridge(targets: NDArray[Any] = Y, **options: Any) -> KernelRidge:
    return _ridge_settings(**options).fit(X[OLD], targets[OLD])


def _gp(**options: Any) -> GaussianProcessRegressor:
    given = {"lengthscale": 1.5, "signal_variance": 2.0, "noise_variance": 0.1, "random_state": 0}
    return GaussianProcessRegressor(8, **{**given, **options}).fit(X[OLD], Y[OLD, 0])


def _committee(**options: Any) -> BayesianCommitteeMachine:
    given = {"lengthscale": 1.5, "signal_variance": 2.0, "noise_variance": 0.1, "random_state": 0}
    return BayesianCommitteeMachine(8, block_size=40, **{**given, **options}).fit(X[OLD], Y[OLD, 0])


def _generalised(kind: Any, targets: NDArray[Any]) -> Any:
    return kind(8, lengthscale=1.5, signal_variance=2.0, random_state=0).fit(X[OLD], targets[OLD])


def _cca() -> KernelCCA:
    return KernelCCA(2, basis_size=8, lengthscale=1.5, random_state=0).fit(
        X[OLD], np.column_stack([X[OLD, 0], Y[OLD, 1]])
    )


_SUM = (
    Gaussian((1.5, 1.0, 2.0)) + Matern(2.0, nu=2.5) * Linear() + Laplacian(3.0) + RationalQuadratic(2.0) + Polynomial(2)
)
_OF_COLUMNS = OfColumns(Gaussian(1.5), (0, 1)) + 0.5 * OfColumns(Periodic(1.0, 3.0), (2,)) * Hamming(2.0)
_EXPRESSION = "2*gaussian + matern52(lengthscale=2) + linear"
_GP = ("predict with std",)

FROZEN: dict[str, Frozen] = {
    "ridge": _saved(_ridge, KernelRidge, "predict", update=Y),
    "ridge-one-target": _saved(lambda: _ridge(Y[:, 0]), KernelRidge, "predict", update=Y[:, 0]),
    "ridge-float32-mixture": _saved(lambda: _ridge(Y.astype(np.float32), objective=0.5), KernelRidge, "predict"),
    "ridge-look-ahead": _saved(lambda: _ridge(Y[:, 0], rule="csi-lookahead"), KernelRidge, "predict"),
    "ridge-cg": _saved(lambda: _ridge(solver="cg", alpha=0.1), KernelRidge, "predict"),
    "ridge-kernels": _saved(lambda: _ridge(kernel=_SUM, lengthscale=None), KernelRidge, "predict"),
    "ridge-columns": _saved(lambda: _ridge(kernel=_OF_COLUMNS, lengthscale=None, scale="none"), KernelRidge, "predict"),
    "ridge-expression": _saved(lambda: _ridge(kernel=_EXPRESSION, lengthscale="median"), KernelRidge, "predict"),
    "ridge-updated": _saved(lambda: _ridge().update(X[NEW], Y[NEW]), KernelRidge, "predict"),
    "ridge-classifier": _saved(
        lambda: KernelRidgeClassifier(8, lengthscale=1.5, random_state=0).fit(X[OLD], LABELS[OLD]),
        KernelRidgeClassifier,
        "predict",
        "decision_function",
        update=LABELS,
    ),
    "svc": _saved(
        lambda: KernelSVC(8, lengthscale=1.5, kernel="gaussian", C=[0.5, 5.0], random_state=0).fit(X, LABELS),
        KernelSVC,
        "decision_function",
        "predict_proba",
    ),
    "svc-hinge": _saved(
        lambda: KernelSVC(
            8, lengthscale=1.5, kernel="gaussian", C=2.0, loss="hinge", calibration="isotonic", random_state=0
        ).fit(X, LABELS == "low"),
        KernelSVC,
        "decision_function",
        "predict_proba",
    ),
    "svr": _saved(
        lambda: KernelSVR(8, lengthscale=1.5, kernel="gaussian", C=[1.0, 10.0], random_state=0).fit(X, Y),
        KernelSVR,
        "predict",
    ),
    "lp": _saved(
        lambda: KernelLPClassifier(lengthscale=1.5, kernel="gaussian", C=[0.5, 5.0], random_state=0).fit(X, LABELS),
        KernelLPClassifier,
        "decision_function",
        "predict_proba",
    ),
    "lp-regressor": _saved(
        lambda: KernelLPRegressor(lengthscale=1.5, kernel="gaussian", C=5.0, random_state=0).fit(X, Y),
        KernelLPRegressor,
        "predict",
    ),
    "one-class": _saved(
        lambda: KernelOneClass(8, lengthscale=1.5, nu=0.2, random_state=0).fit(X, sample_weight=1.0 + COUNTS % 3),
        KernelOneClass,
        "decision_function",
        "predict",
    ),
    "boosting": _saved(
        lambda: KernelBoostingClassifier(
            lengthscale=1.5, kernel="gaussian", members=3, member_rows=20, calibration="platt", random_state=0
        ).fit(X, LABELS),
        KernelBoostingClassifier,
        "decision_function",
        "predict_proba",
    ),
    "boosting-filtering": _saved(
        lambda: KernelBoostingClassifier(
            5, lengthscale=1.5, kernel="gaussian", method="filtering", learner="kmp", member_rows=20, random_state=0
        ).fit(X, LABELS == "low"),
        KernelBoostingClassifier,
        "decision_function",
        "predict",
    ),
    "quantile": _saved(
        lambda: KernelQuantileRegressor(
            8, lengthscale=1.5, kernel="gaussian", quantile=[0.1, 0.5, 0.9], C=[1.0, 10.0], random_state=0
        ).fit(X, Y[:, 0]),
        KernelQuantileRegressor,
        "predict",
    ),
    "gp-fitc": _saved(_gp, GaussianProcessRegressor, *_GP, update=Y[:, 0]),
    "gp-dtc": _saved(lambda: _gp(approximation="dtc"), GaussianProcessRegressor, *_GP, update=Y[:, 0]),
    "gp-pitc": _saved(lambda: _gp(approximation="pitc", block_size=40), GaussianProcessRegressor, *_GP),
    "gp-tuned": _saved(
        lambda: GaussianProcessRegressor(8, tune="full", ard=True, random_state=0).fit(X[OLD], Y[OLD, 0]),
        GaussianProcessRegressor,
        *_GP,
    ),
    "committee": _saved(_committee, BayesianCommitteeMachine, *_GP),
    "committee-cells": _saved(
        lambda: _committee(partition="cells", queries=X[:3] + 0.5), BayesianCommitteeMachine, *_GP
    ),
    "gp-classifier": _saved(
        lambda: _generalised(GaussianProcessClassifier, LABELS), GaussianProcessClassifier, "predict", "predict_proba"
    ),
    "gp-classifier-two": _saved(
        lambda: _generalised(GaussianProcessClassifier, LABELS == "low"), GaussianProcessClassifier, "predict_proba"
    ),
    "poisson": _saved(
        lambda: _generalised(GaussianProcessPoissonRegressor, COUNTS), GaussianProcessPoissonRegressor, *_GP
    ),
    "kmp": _saved(
        lambda: KernelMatchingPursuit(8, lengthscale=1.5, random_state=0).fit(X[OLD], Y[OLD, 0]),
        KernelMatchingPursuit,
        "predict",
    ),
    "kmp-classifier": _saved(
        lambda: KernelMatchingPursuitClassifier(8, loss="logistic", lengthscale=1.5, random_state=0).fit(
            X[OLD], LABELS[OLD]
        ),
        KernelMatchingPursuitClassifier,
        "predict",
        "predict_proba",
    ),
    "nystroem": _saved(lambda: Nystroem(8, lengthscale=1.5, random_state=0).fit(X), Nystroem, "transform"),
    "kernel-pca": _saved(
        lambda: KernelPCA(4, basis_size=8, lengthscale=1.5, random_state=0).fit(X), KernelPCA, "transform"
    ),
    "kernel-pca-sparse": _saved(
        lambda: KernelPCA(2, sparse="bound", basis_size=12, lengthscale=1.5, random_state=0).fit(X),
        KernelPCA,
        "transform",
    ),
    "kernel-cca": _saved(_cca, KernelCCA, "transform", "transform second"),
    "factor": _factor(n_components=8, lengthscale=1.5, random_state=0),
    "factor-look-ahead": _factor(n_components=8, lengthscale=1.5, random_state=0, rule="csi-lookahead"),
    "factor-bound": _factor(n_components=20, lengthscale=1.5, random_state=0, stop="bound", dtype="float64"),
    "factor-no-columns": _factor(n_components=8, lengthscale=1.5, random_state=0, columns="none"),
    "table": Frozen(_make_table, _read_table),
    "table-sparse": Frozen(_make_sparse_table, _read_sparse_table),
    "ridge-sparse": Frozen(_make_sparse_model, _read_sparse_model),
    "ridge-precomputed": Frozen(_make_matrix_model, _read_matrix_model),
    "rows": Frozen(_make_rows, _read_rows),
    "run": Frozen(_make_run, _read_run),
    "unfinished": Frozen(_make_unfinished, _read_unfinished),
    "jobs": Frozen(_make_jobs, _read_jobs),
}


def unpacked(archive: Path, folder: Path) -> tuple[Path, Arrays]:
    """(the folder as it was written, what a reader got from it then)."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    with np.load(folder / EXPECTED) as expected:
        values = dict(expected)
    (folder / EXPECTED).unlink()
    return folder, values


def write(name: str, archive: Path) -> None:
    """Write one of `FROZEN`, and what a reader gets from it, as an archive."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        folder = Path(place, name)
        folder.mkdir()
        FROZEN[name].make(folder)
        values = {key: np.asarray(value) for key, value in FROZEN[name].read(folder).items()}
        np.savez(folder / EXPECTED, **values)
        with tarfile.open(archive, "w:xz") as opened:
            for path in sorted(folder.rglob("*")):
                opened.add(path, path.relative_to(folder), recursive=False, filter=_nobody)


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry that says nothing of who wrote it, and when."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or FROZEN:
        write(each, target / f"{each}.tar.xz")
        print(each, (target / f"{each}.tar.xz").stat().st_size)
