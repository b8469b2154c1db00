"""Files where commands want a store: fit, evaluate and predict ingest them on the way; columns that are left out."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from slow_cases import slow_but

from streamkernel import KernelPCA, KernelRidge, ingest, open_table
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


def test_a_header_of_names_x1_x2_is_one_of_names(cli: Run, tmp_path: Path) -> None:
    """The target was taken for a further feature, as the names look like those of columns without names."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    frame = pd.DataFrame({"x1": X[:, 0], "x2": X[:, 1], "y": X[:, 0] + 2.0 * X[:, 1], "x3": X[:, 2]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert cli("fit", tmp_path / "rows.csv", tmp_path / "m", "--target", "y", *PLAIN, *THREADS).status == 0
    assert cli("predict", tmp_path / "m", tmp_path / "rows.csv", tmp_path / "a.csv", *THREADS).status == 0
    frame[["x3", "x2", "x1"]].to_csv(tmp_path / "new.csv", index=False)
    assert cli("predict", tmp_path / "m", tmp_path / "new.csv", tmp_path / "b.csv", *THREADS).status == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize(("target", "first"), [("-1", False), ("0", True), ("x2", False)])
def test_a_file_without_a_header_has_its_target_in_its_place(
    cli: Run, tmp_path: Path, target: str, first: bool
) -> None:
    """Its first line was taken for a header without the target; and a feature x2 of another file for the target."""
    X = np.random.default_rng(0).standard_normal((200, 2))
    y = X[:, 0] + 2.0 * X[:, 1]
    rows = pd.DataFrame(np.column_stack([y, X] if first else [X, y]))
    rows.to_csv(tmp_path / "bare.csv", index=False, header=False)
    assert cli("fit", tmp_path / "bare.csv", tmp_path / "m", "--target", target, *PLAIN, *THREADS).status == 0
    assert cli("evaluate", tmp_path / "m", tmp_path / "bare.csv", *THREADS, "--json").result["r2"] > 0.9
    named = rows.set_axis(["x0", "x1", "x2"], axis=1)
    named.to_csv(tmp_path / "same.csv", index=False)
    assert cli("evaluate", tmp_path / "m", tmp_path / "same.csv", *THREADS, "--json").result["r2"] > 0.9
    # Another file, of which the column with the default name of the target is a feature.
    given = {"x0": rows[0], "x1": rows[1]} if first else {"x1": rows[0], "x2": rows[1]}
    pd.DataFrame({**given, "y": rows[2]}).to_csv(tmp_path / "other.csv", index=False)
    assert (
        "other.csv has a header; give a file without one"
        in cli("evaluate", tmp_path / "m", tmp_path / "other.csv", *THREADS).error
    )


@pytest.mark.parametrize(("target", "place"), [("-1", 3), ("0", 0), ("x2", 2)])
def test_predictions_of_a_file_without_a_header_leave_out_its_target(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, place: int
) -> None:
    """The file of the fit was refused for its target, and predict has no option that drops a column."""
    rows = np.random.default_rng(0).standard_normal((200, 4))
    rows[:, place] = np.delete(rows, place, axis=1) @ [1.0, 2.0, -1.0]
    bare = {"index": False, "header": False}
    pd.DataFrame(rows).to_csv(tmp_path / "bare.csv", **bare)
    pd.DataFrame(np.delete(rows, place, axis=1)).to_csv(tmp_path / "features.csv", **bare)
    assert cli("fit", tmp_path / "bare.csv", tmp_path / "m", "--target", target, *PLAIN, *THREADS).status == 0

    def predicted(name: str) -> Any:
        ran = cli("predict", tmp_path / "m", tmp_path / name, tmp_path / "p.csv", "--overwrite", *THREADS)
        return pd.read_csv(tmp_path / "p.csv")["prediction"].to_numpy() if ran.status == 0 else ran.error

    expected = predicted("features.csv")
    assert np.corrcoef(expected, rows[:, place])[0, 1] > 0.9
    np.testing.assert_array_equal(predicted("bare.csv"), expected)
    pd.DataFrame(rows).set_axis(["x0", "x1", "x2", "x3"], axis=1).to_csv(tmp_path / "same.csv", index=False)
    np.testing.assert_array_equal(predicted("same.csv"), expected)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((tmp_path / "bare.csv").read_bytes())))
    assert cli("predict", tmp_path / "m", "-", tmp_path / "q.csv", *THREADS).status == 0
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "q.csv")["prediction"], expected)
    # A further column could stand anywhere, and one of the target's default name in a header be another.
    pd.DataFrame(np.column_stack([rows, rows[:, 0]])).to_csv(tmp_path / "more.csv", **bare)
    assert "has 5 features" in predicted("more.csv")
    other = [f"x{place}" if each == 0 else f"c{each}" for each in range(4)]
    pd.DataFrame(rows).set_axis(other, axis=1).to_csv(tmp_path / "other.csv", index=False)
    assert "has 4 columns, and the model was fitted to 3 columns" in predicted("other.csv")


def test_a_model_of_arrays_leaves_out_the_column_of_its_targets_name(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=X[:, 0] - X[:, 1])
    ingest(tmp_path / "rows.npz", tmp_path / "rows")
    assert cli("fit", tmp_path / "rows", tmp_path / "m", *PLAIN, *THREADS).status == 0
    pd.DataFrame({"a": X[:, 0], "y": X[:, 0] - X[:, 1], "b": X[:, 1]}).to_csv(tmp_path / "rows.csv", index=False)
    assert cli("evaluate", tmp_path / "m", tmp_path / "rows.csv", *THREADS, "--json").result["r2"] > 0.9
    assert cli("predict", tmp_path / "m", tmp_path / "rows.csv", tmp_path / "p.csv", *THREADS).status == 0
    assert np.corrcoef(pd.read_csv(tmp_path / "p.csv")["prediction"], X[:, 0] - X[:, 1])[0, 1] > 0.9


@pytest.mark.parametrize(
    ("several", "named"), slow_but([(False, True), (True, False)], product([False, True], [False, True]))
)
def test_targets_of_a_model_of_arrays_are_named_by_an_option(
    cli: Run, tmp_path: Path, named: bool, several: bool
) -> None:
    """The model calls them y, or y0 and y1, and no column of the file has such a name."""
    X = np.random.default_rng(0).standard_normal((200, 2))
    Y = np.column_stack([X[:, 0] - X[:, 1], X[:, 1]])[:, : 2 if several else 1]
    columns = ["a", "b", *["length", "mass"][: Y.shape[1]]]
    rows = pd.DataFrame(np.column_stack([X, Y]), columns=columns)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_csv(tmp_path / "bare.csv", index=False, header=False)
    model = KernelRidge(20, metric="none", lengthscale=2.0)
    model.fit(rows[["a", "b"]] if named else X, Y if several else Y[:, 0]).save(tmp_path / "m")
    evaluate, end = ("evaluate", tmp_path / "m"), (*THREADS, "--json")
    given = [part for name in columns[2:] for part in ("--target", name)]
    scores = cli(*evaluate, tmp_path / "rows.csv", *given, *end).result
    assert scores["r2"] == pytest.approx(model.score(rows[["a", "b"]] if named else X, Y))
    places = [part for place in range(2, len(columns)) for part in ("--target", str(place))]
    assert cli(*evaluate, tmp_path / "rows.csv", *places, *end).result == scores
    if not named:
        bare = [part for place in range(2, len(columns)) for part in ("--target", f"x{place}")]
        found = cli(*evaluate, tmp_path / "bare.csv", *bare, *end).result
        assert {**found, "targets": None} == {**scores, "targets": None}
    assert "give one of them, or an index, by --target" in cli(*evaluate, tmp_path / "rows.csv", *THREADS).error
    beyond = [part for _ in columns[2:] for part in ("--target", "99")]
    assert "no target column '99'" in cli(*evaluate, tmp_path / "rows.csv", *beyond, *THREADS).error
    assert "--target is given 3 times" in cli(*evaluate, tmp_path / "rows.csv", *["--target", "a"] * 3, *THREADS).error
    ingest(tmp_path / "rows.csv", tmp_path / "rows", target=columns[2:])
    assert "--target is for a file" in cli(*evaluate, tmp_path / "rows", *given, *THREADS).error

    predict, plain = ("predict", tmp_path / "m", tmp_path / "rows.csv"), ("--quiet", *THREADS)
    assert cli(*predict, tmp_path / "p", *given, *plain).status == 0
    expected = np.asarray(model.predict(rows[["a", "b"]] if named else X))
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "p", mode="r")["prediction"][:], expected)
    if named:
        assert cli(*predict, tmp_path / "q", *plain).status == 0  # other columns are left out anyway
    else:
        error = cli(*predict, tmp_path / "q", *plain).error
        assert f"has {len(columns)} columns, and the model was fitted to 2 columns without names" in error
        assert "--target" in error

    more = rows.assign(a=rows["a"] + 1.0, b=rows["b"] - 1.0)
    more.to_csv(tmp_path / "more.csv", index=False)
    assert cli("update", tmp_path / "m", tmp_path / "more.csv", *given, *end).result["rows_folded"] == 200


def test_a_header_is_no_doubt_where_the_target_is_named(cli: Run, tmp_path: Path) -> None:
    """Of a model of columns without names, x2 in a header may be another column than the third; not with --target."""
    X = np.random.default_rng(0).standard_normal((200, 2))
    rows = pd.DataFrame(np.column_stack([X, X[:, 0] - X[:, 1]]))
    rows.to_csv(tmp_path / "bare.csv", index=False, header=False)
    rows.set_axis(["a", "b", "x2"], axis=1).to_csv(tmp_path / "named.csv", index=False)
    assert cli("fit", tmp_path / "bare.csv", tmp_path / "m", "--target", "x2", *PLAIN, *THREADS).status == 0
    evaluate = ("evaluate", tmp_path / "m", tmp_path / "named.csv", *THREADS, "--json")
    assert "has a header" in cli(*evaluate).error
    assert cli(*evaluate, "--target", "x2").result["r2"] > 0.9


def test_a_map_of_columns_without_names_takes_all_columns_of_a_file(cli: Run, tmp_path: Path) -> None:
    """It has no targets that a file could have beside them."""
    X = np.random.default_rng(0).standard_normal((50, 2))
    pd.DataFrame(X).to_csv(tmp_path / "bare.csv", index=False, header=False)
    KernelPCA(2, basis_size=10).fit(X).save(tmp_path / "map")
    found = cli("transform", tmp_path / "map", tmp_path / "bare.csv", tmp_path / "out", "--quiet", *THREADS)
    assert found.status == 0, found.error


def test_a_page_is_of_the_targets_that_an_option_names(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200, 2))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "mass": X[:, 0] - X[:, 1]}).to_csv(tmp_path / "rows.csv", index=False)
    KernelRidge(20, metric="none", lengthscale=2.0).fit(X, X[:, 0] - X[:, 1]).save(tmp_path / "m")
    KernelPCA(2, basis_size=10).fit(X).save(tmp_path / "map")
    page, named = tmp_path / "page.html", ("--target", "mass")
    data = ("--data", tmp_path / "rows.csv")
    assert "no target column 'y'" in cli("report", tmp_path / "m", page, *data, "--quiet").error
    assert cli("report", tmp_path / "m", page, *data, *named, "--quiet").status == 0
    assert page.stat().st_size > 10_000
    for given in ((tmp_path / "m", page), (tmp_path / "m", tmp_path / "m", page, *data)):
        assert "--target names targets of --data, for a page" in cli("report", *given, *named).error
    assert "--target is of models that predict" in cli("report", tmp_path / "map", tmp_path / "p", *data, *named).error


def test_many_targets_have_lists_in_place_of_lines(cli: Run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200, 2))
    for count in (8, 9):
        Y = np.repeat(X[:, :1] - X[:, 1:], count, axis=1)
        np.savez(tmp_path / f"{count}.npz", X=X, y=Y)
        ingest(tmp_path / f"{count}.npz", tmp_path / f"{count}")
        model = tmp_path / f"m{count}"
        KernelRidge(20, metric="none", lengthscale=2.0).fit(X, Y).save(model)
        text = cli("evaluate", model, tmp_path / f"{count}", *THREADS).out
        assert (f"rmse of y{count - 1}" in text) == (count == 8)


def test_the_target_of_a_schema_keeps_its_name(cli: Run, folder: Path, frame: pd.DataFrame) -> None:
    fit = ("fit", folder / "rows.csv", folder / "m", "--target", "y", "--drop", "w", "--schema", "auto")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    for command, *out in (("evaluate",), ("predict", folder / "p")):
        wrong = cli(command, folder / "m", folder / "rows.csv", *out, "--target", "w", *THREADS).error
        assert "--target w: the columns of the model have a schema, in which the target is y" in wrong
    assert cli("predict", folder / "m", folder / "rows.csv", folder / "p", "--target", "y", *THREADS).status == 0
    assert cli("evaluate", folder / "m", folder / "rows.csv", "--target", "y", *THREADS).status == 0


def test_labels_in_a_file_are_those_of_the_model(cli: Run, folder: Path, frame: pd.DataFrame) -> None:
    frame["kind"] = np.where(frame["y"] > 0, "up", "down")
    frame[["a", "b", "kind"]].to_csv(folder / "kinds.csv", index=False)
    fit = ("fit", folder / "kinds.csv", folder / "m", "--target", "kind", "--estimator", "ridge-classifier")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    found = cli("evaluate", folder / "m", folder / "kinds.csv", *THREADS, "--json").result
    assert found["accuracy"] > 0.9
    frame.head(3).assign(kind="sideways").to_csv(folder / "other.csv", index=False)
    assert "sideways" in cli("evaluate", folder / "m", folder / "other.csv", *THREADS).error


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
