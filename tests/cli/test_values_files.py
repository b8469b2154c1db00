"""Predictions and components as CSV and Parquet files, and what `info` says of outputs of rows."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import zarr

from streamkernel import KernelRidge, KernelRidgeClassifier, KernelSVC, ingest, open_table
from streamkernel.errors import StoreError
from streamkernel.outputs import PartialFolder
from streamkernel.table import row_outputs
from streamkernel.table.row_outputs import RowOutput

Run = Callable[..., Any]
TABLE = "synthetic://friedman?rows=400&features=5"
THREADS = ("--scheduler", "threads", "--quiet")
PLAIN = {"kernel": "gaussian", "metric": "none", "alpha": 1.0}


def lines_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def ridge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "ridge"
    KernelRidge(20, **PLAIN).fit(TABLE).save(path)
    return path


@pytest.mark.parametrize("batch", [7, 1 << 22])
def test_files_have_the_values_of_the_group(
    cli: Run, ridge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(row_outputs, "_BATCH", batch)
    for out in ("rows", "rows.csv", "rows.parquet"):
        assert cli("predict", str(ridge), TABLE, str(tmp_path / out), "--rows", "100:350", *THREADS).status == 0
    values = zarr.open_group(tmp_path / "rows")["prediction"][:]
    header, *lines = lines_of(tmp_path / "rows.csv")
    assert header == ["row", "prediction"]
    assert [int(line[0]) for line in lines] == list(range(100, 350))
    np.testing.assert_array_equal([float(line[1]) for line in lines], values)  # digits enough for the same bits
    table = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(table["prediction"].to_numpy(), values)
    np.testing.assert_array_equal(table["row"].to_numpy(), np.arange(100, 350))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", "rows.csv", "rows.parquet"]


def test_labels_of_classes_are_text(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((90, 2))
    labels = np.array(["a,b", 'say "c"', "d"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    model = KernelRidgeClassifier(20, **PLAIN).fit(X, labels)
    model.save(tmp_path / "model")
    ingest(open_table(X), tmp_path / "x")
    assert cli("predict", str(tmp_path / "model"), str(tmp_path / "x"), str(tmp_path / "o.CSV"), *THREADS).status == 0
    assert [line[1] for line in lines_of(tmp_path / "o.CSV")[1:]] == model.predict(X).tolist()


def test_whole_numbers_as_labels_stay_numbers(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((90, 2))
    model = KernelSVC(20, C=1.0, kernel="gaussian").fit(X, np.where(X[:, 0] > 0, 7, 3))
    model.save(tmp_path / "model")
    ingest(open_table(X), tmp_path / "x")
    out = tmp_path / "o.parquet"
    assert cli("predict", str(tmp_path / "model"), str(tmp_path / "x"), str(out), *THREADS).status == 0
    assert set(pyarrow.parquet.read_table(out)["prediction"].to_pylist()) == {3, 7}


def test_columns_are_named_by_targets_levels_and_classes(cli: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    ingest(open_table(X, np.column_stack([X[:, 0], X[:, 1]])), tmp_path / "xy")
    ingest(open_table(X, X[:, 0]), tmp_path / "x")
    ingest(open_table(X, np.where(X[:, 0] > 0, "up", "down"), classify=True), tmp_path / "c")
    kinds = {
        "ridge": ("xy", ["prediction_y0", "prediction_y1"]),
        "quantile": ("x", ["prediction_0.1", "prediction_0.9"]),
        "gp": ("x", ["prediction", "std"]),
        "gp-classifier": ("c", ["prediction", "probability_down", "probability_up"]),
    }
    given = ["--lengthscale", "1", "--signal-variance", "1"]
    options = {
        "quantile": ["--quantile", "0.1,0.9"],
        "ridge": ["--alpha", "1"],
        "gp": [*given, "--noise-variance", ".1"],
        "gp-classifier": given,
    }
    for kind, (table, names) in kinds.items():
        model, out = str(tmp_path / kind), tmp_path / f"{kind}.csv"
        fitted = cli(
            "fit", str(tmp_path / table), model, "--estimator", kind, "--basis", "10", *options.get(kind, []), *THREADS
        )
        assert fitted.status == 0, fitted.err
        std = ["--std"] if "std" in names else []
        assert cli("predict", model, str(tmp_path / table), str(out), *std, *THREADS).status == 0
        assert lines_of(out)[0] == ["row", *names]


def test_what_a_killed_process_left_beside_a_file_goes_with_the_next_one(cli: Run, ridge: Path, tmp_path: Path) -> None:
    held = PartialFolder(tmp_path / "rows.csv", None)  # of a process that still writes the file
    dead = tmp_path / ".rows.csv.0123abcd.partial"
    (dead / "rows").mkdir(parents=True)
    (dead / "rows.csv").write_text("row,predic")
    other = tmp_path / ".other.csv.0123abcd.partial"  # of another output
    other.mkdir()
    assert cli("predict", str(ridge), TABLE, str(tmp_path / "rows.csv"), *THREADS).status == 0
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", held.folder.name, other.name}
    held.abandon()


def test_info_tells_of_a_file_what_it_tells_of_the_group(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    labels = np.where(X[:, 0] > 0, "line\nbreak", 'say "no"')
    KernelSVC(10, C=1.0, kernel="gaussian", calibration="platt").fit(X, labels).save(tmp_path / "model")
    ingest(open_table(X), tmp_path / "x")
    predict = ("predict", str(tmp_path / "model"), str(tmp_path / "x"))
    for name in ("group", "rows.csv", "rows.PARQUET"):
        assert cli(*predict, str(tmp_path / name), "--rows", "10:50", *THREADS).status == 0
        found = cli("info", str(tmp_path / name), "--json").result
        assert (found["rows"], found["columns"][0], len(found["columns"])) == (40, "prediction", 3)
    assert cli("info", str(tmp_path / "rows.csv")).status == 0
    (tmp_path / "mine.csv").write_text("row,x\n1,2\n")
    assert "convert it by streamkernel ingest first" in cli("info", str(tmp_path / "mine.csv")).error


@pytest.mark.parametrize("name", ["out.tsv", "out.JSON", "out.csv.gz", "out.npy", "out.pq"])
def test_no_group_has_the_name_of_a_file(cli: Run, ridge: Path, tmp_path: Path, name: str) -> None:
    ran = cli("predict", str(ridge), TABLE, str(tmp_path / name), *THREADS)
    assert ran.status == 1
    assert f"{name}: values of rows are written as a .csv or .parquet file, or as a Zarr group" in ran.error
    assert list(tmp_path.iterdir()) == []


def test_components_as_a_file(cli: Run, tmp_path: Path) -> None:
    model, out = str(tmp_path / "pca"), tmp_path / "scores.csv"
    fit = ("fit", TABLE, model, "--estimator", "kernel-pca", "--basis", "10", "--components", "2")
    assert cli(*fit, *THREADS).status == 0
    assert cli("transform", model, TABLE, str(out), *THREADS).status == 0
    assert lines_of(out)[0] == ["row", "scores_0", "scores_1"]


def test_only_files_of_ours_are_replaced(cli: Run, ridge: Path, tmp_path: Path) -> None:
    predict = ("predict", str(ridge), TABLE)
    for suffix in ("csv", "parquet"):
        out = tmp_path / f"out.{suffix}"
        assert cli(*predict, str(out), *THREADS).status == 0
        assert "exists; choose another path or give --overwrite" in cli(*predict, str(out), *THREADS).error
        assert cli(*predict, str(out), "--overwrite", *THREADS).status == 0
        mine = tmp_path / f"mine.{suffix}"
        mine.write_text("row,x\n1,2\n")
        assert "holds no rows that streamkernel has written" in cli(*predict, str(mine), "--overwrite", *THREADS).error
        assert mine.read_text() == "row,x\n1,2\n"
        link = tmp_path / f"link.{suffix}"
        link.symlink_to(out)
        assert "symbolic link" in cli(*predict, str(link), "--overwrite", *THREADS).error
        (tmp_path / f"folder.{suffix}").mkdir()
        assert "is a folder" in cli(*predict, str(tmp_path / f"folder.{suffix}"), "--overwrite", *THREADS).error
    assert "written to a local path" in cli(*predict, "s3://bucket/out.csv", *THREADS).error
    assert "does not exist; make it first" in cli(*predict, str(tmp_path / "no" / "out.csv"), *THREADS).error


def test_a_damaged_group_leaves_no_file(cli: Run, ridge: Path, tmp_path: Path) -> None:
    assert cli("predict", str(ridge), TABLE, str(tmp_path / "rows"), *THREADS).status == 0
    chunk = next((tmp_path / "rows" / "prediction" / "c").iterdir())
    chunk.write_bytes(chunk.read_bytes()[:-3] + b"abc")
    output = RowOutput.open(tmp_path / "rows")
    assert output is not None
    with pytest.raises(StoreError):
        output.write(tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_another_process_made_meanwhile_stays(
    cli: Run, ridge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    out, opened = tmp_path / f"out.{suffix}", row_outputs._writer

    def meanwhile(path: Path, kind: str, schema: Any) -> Any:
        out.write_text("theirs")
        return opened(path, kind, schema)

    monkeypatch.setattr(row_outputs, "_writer", meanwhile)
    assert "exists; choose another path" in cli("predict", str(ridge), TABLE, str(out), *THREADS).error
    assert out.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_info_knows_outputs_of_rows(cli: Run, ridge: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows"
    assert cli("predict", str(ridge), TABLE, str(out), "--rows", "100:350", *THREADS).status == 0
    found = cli("info", str(out), "--json").result
    assert (found["rows"], found["of_rows"], found["columns"]) == (250, [100, 350], ["prediction"])
    assert found["arrays"] == {"prediction": [250]}
    assert found["target_names"] == ["y"]
    shown = cli("info", str(out))
    assert shown.status == 0
    assert "100:350" in shown.out
    # Written before columns had names.
    assert RowOutput(str(out), {"rows": [5, 9]}, {"a": open_table(np.eye(4)).features}).columns[3] == ("a_3", "a", 3)
