"""Tables, outputs, runs and jobs as they lie on disk: how each is made, and what a reader gets from it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from frozen.models import ridge, ridge_settings
from frozen.rows import LABELS, NAMES, NEW, OLD, QUERIES, SPARSE, Arrays, Frozen, X, Y

from streamkernel import KernelRidge, append_rows, connect, ingest, open_table
from streamkernel.cli import main
from streamkernel.store import RowSink


def _csv(path: Path, rows: slice) -> Path:
    lines = [",".join([*NAMES, "class"])]
    lines += [",".join([*map(repr, row), label]) for row, label in zip(X[rows].tolist(), LABELS[rows], strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _make_table(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as beside:
        ingest(_csv(Path(beside, "old.csv"), OLD), folder / "table", target="class", chunk_rows=50, dtype="float64")
        append_rows(_csv(Path(beside, "new.csv"), NEW), folder / "table")


def _read_table(folder: Path) -> Arrays:
    table = open_table(folder / "table")
    block = table.read(0, table.n_rows)
    return {"X": block.X, "Y": block.Y, "names": np.array(table.columns), "classes": np.array(table.classes)}


def _make_sparse_table(folder: Path) -> None:
    table = open_table(SPARSE, Y[:, 0], weights=np.arange(160.0), sparse=True)
    ingest(table, folder / "table", chunk_rows=50, dtype="float64")


def _make_grown_sparse_table(folder: Path) -> None:
    w = np.arange(160.0)
    first, *others = (
        open_table(SPARSE[part], Y[part, 0], weights=w[part], sparse=True)
        for part in (slice(0, 70), slice(70, 100), slice(100, 160))
    )
    ingest(first, folder / "table", chunk_rows=50, dtype="float64")
    for rows in others:
        append_rows(rows, folder / "table")


def _read_sparse_table(folder: Path) -> Arrays:
    table = open_table(folder / "table", sparse=True)
    block = table.as_sparse(False).read(0, table.n_rows)
    assert table.own_statistics is not None
    return {"X": block.X, "Y": block.Y, "w": block.weights, "std": table.own_statistics.X.std}  # type: ignore[dict-item]


_OPTIONS = ("--scheduler", "threads", "--quiet")


def _run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments] + list(_OPTIONS)) == 0


def _make_rows(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as beside:
        ridge().save(Path(beside, "model"))
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
        session.submit(ridge_settings(), folder / "table", folder / "model").result()
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


PLACES: dict[str, Frozen] = {
    "table": Frozen(_make_table, _read_table),
    "table-sparse": Frozen(_make_sparse_table, _read_sparse_table),
    "table-sparse-grown": Frozen(_make_grown_sparse_table, _read_sparse_table),
    "rows": Frozen(_make_rows, _read_rows),
    "run": Frozen(_make_run, _read_run),
    "unfinished": Frozen(_make_unfinished, _read_unfinished),
    "jobs": Frozen(_make_jobs, _read_jobs),
}
