"""Files where commands want a store: fit, evaluate and predict ingest them on the way; columns that are left out."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

from streamkernel import KernelPCA, ingest, open_table
from streamkernel.engine import Session
from streamkernel.errors import ParameterError, SourceFormatError

pytestmark = pytest.mark.usefixtures("bare_pages")

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
PLAIN = ("--basis", "30", "--kernel", "gaussian", "--metric", "none", "--alpha", "1")


@pytest.fixture
def frame() -> pd.DataFrame:
    """Two features among text and dates, which no table can hold."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    return pd.DataFrame(
        {
            "id": [f"row, {i}" for i in range(400)],
            "b": X[:, 1],
            "when": "2020-01-01",
            "a": X[:, 0],
            "y": np.sin(X[:, 0]) + X[:, 1],
            "w": rng.integers(1, 3, 400),
        }
    )


@pytest.fixture
def folder(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rows as files, and an empty temporary folder beside them."""
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def test_the_standard_input_counts_as_a_file(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (folder / "rows.csv").read_bytes()

    def piped(*arguments: object) -> Any:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return cli(*arguments)

    given = ("--target", "y", "--drop", "id", "--drop", "when", *PLAIN, *THREADS, "--json")
    wanted = cli("fit", folder / "rows.csv", folder / "one", *given).result
    # The digest knows the name of the source; the fit is the same.
    found = piped("fit", "-", folder / "two", *given).result
    assert (found["residual_trace"], found["gcv"]) == (wanted["residual_trace"], wanted["gcv"])
    scores = cli("evaluate", folder / "one", folder / "rows.csv", *THREADS, "--json").result
    assert piped("evaluate", folder / "two", "-", *THREADS, "--json").result["rmse"] == scores["rmse"]
    for name, source in (("a.csv", folder / "rows.csv"), ("b.csv", "/dev/stdin")):
        assert piped("predict", folder / "one", source, folder / name, *THREADS).status == 0
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fit_to_a_file_is_that_to_its_table(cli: Run, folder: Path, suffix: str) -> None:
    source, left = folder / f"rows.{suffix}", ("--drop", "id", "--drop", "when")
    assert cli("ingest", source, folder / "table", "--target", "y", "--weight", "w", *left, "--quiet").status == 0
    wanted = cli("fit", folder / "table", folder / "one", *PLAIN, *THREADS, "--json").result
    given = ("--target", "y", "--weight", "w", *left)
    found = cli("fit", source, folder / "two", *given, *PLAIN, *THREADS, "--json").result
    assert found["digest"] == wanted["digest"]
    assert list((folder / "temporary").iterdir()) == []


def test_a_model_reads_its_columns_from_any_file(cli: Run, folder: Path, frame: pd.DataFrame) -> None:
    left = ("--drop", "id", "--drop", "when", "--drop", "w")
    assert cli("fit", folder / "rows.csv", folder / "m", "--target", "y", *left, *PLAIN, *THREADS).status == 0
    scores = [
        cli("evaluate", folder / "m", folder / f"rows.{suffix}", *THREADS, "--json").result
        for suffix in ("csv", "parquet")
    ]
    assert scores[0] == scores[1]
    assert scores[0]["rows"] == 400
    weighted = cli("evaluate", folder / "m", folder / "rows.csv", "--weight", "w", *THREADS, "--json").result
    assert weighted["rmse"] != scores[0]["rmse"]
    assert (
        cli("evaluate", folder / "m", folder / "rows.csv", "--weight", "none", *THREADS, "--json").result == scores[0]
    )
    # New rows have no target, and their columns stand in another order.
    frame[["a", "when", "b"]].to_csv(folder / "new.csv", index=False)
    assert cli("predict", folder / "m", folder / "new.csv", folder / "p.csv", "--rows", "5:9", *THREADS).status == 0
    new = pd.read_csv(folder / "p.csv")
    assert cli("predict", folder / "m", folder / "rows.parquet", folder / "q.csv", *THREADS).status == 0
    old = pd.read_csv(folder / "q.csv")
    assert new["row"].tolist() == [5, 6, 7, 8]
    np.testing.assert_allclose(new["prediction"], old["prediction"][5:9], rtol=1e-12)
    assert list((folder / "temporary").iterdir()) == []
    lacking = frame[["a"]].copy()
    lacking.to_csv(folder / "lacking.csv", index=False)
    assert (
        "there is no column 'b'; its columns are a"
        in cli("predict", folder / "m", folder / "lacking.csv", folder / "r.csv", *THREADS).error
    )
    assert "no target column 'y'" in cli("evaluate", folder / "m", folder / "new.csv", *THREADS).error


def test_a_map_of_columns_without_names_takes_all_columns_of_a_file(cli: Run, tmp_path: Path) -> None:
    """It has no targets that a file could have beside them."""
    X = np.random.default_rng(0).standard_normal((50, 2))
    pd.DataFrame(X).to_csv(tmp_path / "bare.csv", index=False, header=False)
    KernelPCA(2, basis_size=10).fit(X).save(tmp_path / "map")
    found = cli("transform", tmp_path / "map", tmp_path / "bare.csv", tmp_path / "out", "--quiet", *THREADS)
    assert found.status == 0, found.error


def test_a_fit_to_a_file_is_resumed(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder / "rows.csv"
    given = ("--target", "y", "--drop", "id", "--drop", "when", *PLAIN, *THREADS)
    whole = cli("fit", source, folder / "whole", *given, "--json").result
    with monkeypatch.context() as patched:
        sweep = Session.sweep

        def stopped(self: Session, work: Any, table: Any, name: str) -> Any:
            if name == "final sweep":
                raise OSError(28, "no space left")
            return sweep(self, work, table, name)

        patched.setattr(Session, "sweep", stopped)
        assert cli("fit", source, folder / "m", *given).status == 1
    found = cli("fit", source, folder / "m", *given, "--resume", "--json").result
    assert found["resumed_sweeps"] >= 1
    assert found["digest"] == whole["digest"]


def test_what_cannot_be_is_refused(cli: Run, folder: Path) -> None:
    source = folder / "rows.csv"
    refused = {
        "has no targets": ("fit", source, folder / "m", "--drop", "id", "--drop", "when"),
        "'row, 0' in column 'id' is not a number": ("fit", source, folder / "m", "--target", "y"),
        "there is no column 'idd'": ("fit", source, folder / "m", "--target", "y", "--drop", "idd"),
        "column 'y' is in use": ("fit", source, folder / "m", "--target", "y", "--drop", "y"),
    }
    for words, command in refused.items():
        assert words in cli(*command, *THREADS).error
    table = ingest(open_table(np.eye(9), np.arange(9.0)), folder / "table").path
    assert "--target is for a file as STORE" in cli("fit", table, folder / "m", "--target", "y", *THREADS).error
    elsewhere = ("--scheduler", "tcp://127.0.0.1:9", "--quiet")
    assert "read by this process" in cli("fit", source, folder / "m", "--target", "y", *elsewhere).error
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_are_dropped_or_kept_by_name(folder: Path, suffix: str) -> None:
    source = folder / f"rows.{suffix}"
    info = ingest(source, folder / "one", target="y", drop=["id", "when"])
    assert (info.columns, info.left_out) == (("b", "a", "w"), ("column 'id' (dropped)", "column 'when' (dropped)"))
    # An index is that of the file, whatever is left out of it.
    info = ingest(source, folder / "two", target=4, weight=-1, keep=("a",))
    assert (info.columns, info.target_names, info.weight) == (("a",), ("y",), "w")
    # With a schema, too, a number that is not kept is no text.
    info = ingest(source, folder / "named", target="y", id="id", keep=["a"], schema="auto")
    assert info.columns == ("a",)
    assert info.left_out == (
        "column 'id' (the id of the row)",
        *(f"column {name!r} (not kept)" for name in ("b", "when", "w")),
    )
    with pytest.raises(ParameterError, match="both choose columns"):
        ingest(source, folder / "three", drop=["a"], keep=["b"])
    with pytest.raises(ParameterError, match="must be names of columns"):
        ingest(source, folder / "three", drop="id")
    with pytest.raises(ParameterError, match="chooses columns of CSV, Parquet and Arrow files"):
        ingest(np.eye(4), folder / "three", drop=["x0"])


def test_a_damaged_number_is_told_and_dropped_text_is_not(folder: Path, frame: pd.DataFrame) -> None:
    frame["a"] = frame["a"].astype(object)
    frame.loc[7, "a"] = "seven"
    frame.to_csv(folder / "bad.csv", index=False)
    with pytest.raises(SourceFormatError, match=r"bad.csv:9:4: 'seven' in column 'a' is not a number"):
        ingest(folder / "bad.csv", folder / "t", target="y", drop=["id", "when"])


def test_remedies_that_only_a_fit_has_are_told_to_be_of_the_fit(cli: Run, folder: Path, frame: pd.DataFrame) -> None:
    """They named --missing and --categories to predict, which has none."""
    plain = frame[["a", "b", "y"]]
    plain.to_csv(folder / "plain.csv", index=False)
    assert cli("fit", folder / "plain.csv", folder / "m", "--target", "y", *PLAIN, *THREADS).status == 0
    plain.assign(a=np.where(np.arange(400) % 9 == 0, np.nan, plain["a"])).to_csv(folder / "gaps.csv", index=False)
    plain.assign(a="soon").to_csv(folder / "text.csv", index=False)
    again = "; such options are those of the fit: fit the model again with them"
    for name, words in (("gaps.csv", "--missing mean"), ("text.csv", "'soon' in column 'a' is not a number")):
        for command in (
            ("predict", folder / "m", folder / name, folder / "p.csv"),
            ("evaluate", folder / "m", folder / name),
        ):
            refused = cli(*command, *THREADS).error
            assert words in refused
            assert refused.endswith(again)
    ingest(folder / "plain.csv", folder / "rows", target="y")
    appended = cli("ingest", folder / "gaps.csv", folder / "rows", "--append").error
    assert appended.endswith("such options are those of the first rows: ingest all rows anew with them")
    # The way out works to the end.
    fit = ("fit", folder / "gaps.csv", folder / "m", "--target", "y", "--missing", "mean", "--overwrite")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    assert cli("predict", folder / "m", folder / "gaps.csv", folder / "p.csv", *THREADS).status == 0


def test_a_folder_of_files_is_one_source(cli: Run, folder: Path, frame: pd.DataFrame) -> None:
    """It was so of ingest alone, beside patterns."""
    for kind in ("cat", "a dog"):
        (folder / "t" / f"kind={kind}").mkdir(parents=True)
        frame[["a", "b", "y"]].to_parquet(folder / "t" / f"kind={kind}" / "part.parquet", index=False)
    fit = ("fit", folder / "t", folder / "m", "--target", "y", "--schema", "auto")
    assert cli(*fit, *PLAIN, *THREADS, "--json").result["rows"] == 800
    assert cli("evaluate", folder / "m", folder / "t", *THREADS, "--json").result["rows"] == 800
    assert cli("predict", folder / "m", folder / "t", folder / "p.csv", *THREADS).status == 0
    (folder / "none").mkdir()
    assert "holds no Zarr array or group" in cli("evaluate", folder / "m", folder / "none", *THREADS).error


@pytest.mark.parametrize(
    ("arrays", "names"),
    [
        ({"X": (9, 2), "y": (9,)}, ""),
        ({"features": (9, 2), "label": (9,)}, " --X features --y label"),
        ({"my rows": (9, 2), "t": (9, 1), "other": (4,), "number": ()}, " --X 'my rows' --y t"),
        ({"a": (9, 2), "b": (9, 2), "c": (9,)}, " --X NAME --y NAME"),
        ({"a": (9, 2), "c": (9,), "d": (9,)}, " --X a --y NAME"),
        ({"a": (9, 2)}, " --X a"),
    ],
)
def test_a_file_of_arrays_is_answered_with_the_command_that_makes_its_store(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: dict[str, Any], names: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("some rows.npz", **{name: rng.standard_normal(shape) for name, shape in arrays.items()})
    error = cli("fit", "some rows.npz", "m", "--basis", 4).error
    command = f"ingest 'some rows.npz' 'some rows.zarr'{names}"
    assert f"make a store by streamkernel {command}, and give some rows.zarr" in error
    if "NAME" not in names:
        assert cli(*shlex.split(command), "--quiet").status == 0


def test_a_model_is_no_group_of_other_names(cli: Run, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert cli("fit", "synthetic://friedman?rows=60&features=5", model, *PLAIN).status == 0
    assert cli("fit", model, tmp_path / "other").error.endswith("not a table; give the path of a table")


@pytest.mark.parametrize(
    ("arrays", "names"),
    [
        ({"features": (9, 2), "my label": (9,)}, " --X features --y 'my label'"),
        ({"a": (9, 2), "b": (9, 2)}, " --X NAME"),
        ({"p": (9,), "t": (9,)}, " --target NAME"),
    ],
)
def test_a_group_of_other_names_is_answered_with_the_command_that_makes_its_store(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: dict[str, Any], names: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, shape in arrays.items():
        zarr.open_group("g.zarr", mode="a").create_array(name, data=np.random.default_rng(0).standard_normal(shape))
    command = f"ingest g.zarr g-rows.zarr{names}"
    told = f"the Zarr group g.zarr has no array X; make a store by streamkernel {command}, and give g-rows.zarr"
    for given in (("fit", "g.zarr", "m"), ("plan", "g.zarr")):
        assert told in cli(*given, "--basis", 4).error
    if "NAME" not in names:
        assert cli(*shlex.split(command), "--quiet").status == 0


def test_a_sparse_matrix_of_scipy_is_no_archive_of_rows(cli: Run, tmp_path: Path) -> None:
    matrix = scipy.sparse.random(9, 4, density=0.3, format="csr", random_state=0)
    scipy.sparse.save_npz(tmp_path / "s.npz", matrix)
    for given in (("ingest", tmp_path / "s.npz", tmp_path / "r"), ("fit", tmp_path / "s.npz", tmp_path / "m")):
        assert "s.npz is a sparse matrix as scipy.sparse.save_npz writes it, without targets" in cli(*given).error
    # As the message says.
    ingest(open_table(scipy.sparse.load_npz(tmp_path / "s.npz"), np.arange(9.0), sparse=True), tmp_path / "r")
    assert open_table(tmp_path / "r", sparse=True).sparse


@pytest.mark.parametrize("name", ["r.npy", "r.svm"])
def test_other_files_of_numbers_are_answered_with_the_command(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("r.npy", np.ones((5, 2)))
    Path("r.svm").write_text("1 1:2\n0 1:3\n")
    assert f"streamkernel ingest {name} r.zarr, and give r.zarr" in cli("plan", name).error
    assert cli("ingest", name, "r.zarr", "--quiet").status == 0
    Path("r.npz").write_text("no archive")
    assert "r.npz is not an .npz archive" in cli("plan", "r.npz").error
