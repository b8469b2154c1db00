"""The target of a file: the column by its name or its place, for a model of files, of arrays, and of a schema."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from slow_cases import slow_but

from streamkernel import KernelPCA, KernelRidge, ingest

pytestmark = pytest.mark.usefixtures("bare_pages")

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
PLAIN = ("--basis", "30", "--kernel", "gaussian", "--metric", "none", "--alpha", "1")


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


def test_the_target_of_a_schema_keeps_its_name(cli: Run, tmp_path: Path) -> None:
    rows = _rows().assign(when="2020-01-01", id=[f"row, {i}" for i in range(400)])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", tmp_path / "rows.csv", tmp_path / "m", "--target", "y", "--drop", "w", "--schema", "auto")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    for command, *out in (("evaluate",), ("predict", tmp_path / "p")):
        wrong = cli(command, tmp_path / "m", tmp_path / "rows.csv", *out, "--target", "w", *THREADS).error
        assert "--target w: the columns of the model have a schema, in which the target is y" in wrong
    assert cli("predict", tmp_path / "m", tmp_path / "rows.csv", tmp_path / "p", "--target", "y", *THREADS).status == 0
    assert cli("evaluate", tmp_path / "m", tmp_path / "rows.csv", "--target", "y", *THREADS).status == 0


def test_labels_in_a_file_are_those_of_the_model(cli: Run, tmp_path: Path) -> None:
    rows = _rows()
    rows["kind"] = np.where(rows["y"] > 0, "up", "down")
    rows[["a", "b", "kind"]].to_csv(tmp_path / "kinds.csv", index=False)
    fit = ("fit", tmp_path / "kinds.csv", tmp_path / "m", "--target", "kind", "--estimator", "ridge-classifier")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    found = cli("evaluate", tmp_path / "m", tmp_path / "kinds.csv", *THREADS, "--json").result
    assert found["accuracy"] > 0.9
    rows.head(3).assign(kind="sideways").to_csv(tmp_path / "other.csv", index=False)
    assert "sideways" in cli("evaluate", tmp_path / "m", tmp_path / "other.csv", *THREADS).error


def _rows() -> pd.DataFrame:
    """Two features, a target and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    return pd.DataFrame({"b": X[:, 1], "a": X[:, 0], "y": y, "w": rng.integers(1, 3, 400)})
