"""Targets: numbers stay numbers, text becomes classes."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies
from table.sources import FRAME, M, X, Y, csv, npz

from streamkernel.errors import (
    DataError,
    DTypeError,
    StreamKernelWarning,
)
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.schema.values import canonical
from streamkernel.table.targets import label_form


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "dictionary", "npz", "numpy"])
def test_text_targets_become_classes(tmp_path, kind, shuffle):
    names = np.array(["zebra", "Ähre", "mule", "ant"])
    labels = names[np.minimum(np.arange(M) // 500, 3)]  # met in an order that is not the sorted one
    frame = FRAME.assign(t=labels)
    target: str | None = "t"
    if kind.startswith("csv"):
        source = tmp_path / f"s.{kind}"
        frame.to_csv(source, index=False)
    elif kind in ("parquet", "dictionary"):
        source = tmp_path / "s.parquet"
        made = frame.assign(t=frame.t.astype("category")) if kind == "dictionary" else frame
        pq.write_table(pa.Table.from_pandas(made), source, row_group_size=800)
    elif kind == "npz":
        source, target = npz(tmp_path / "s.npz", X=X, y=labels)
    else:
        source, target = open_table(X, labels, classify=True), None
    info = ingest(source, tmp_path / "store", target=target, dtype="float64", shuffle=shuffle)
    assert info.classes == ("ant", "mule", "zebra", "Ähre")
    table = open_table(tmp_path / "store")
    block = table.read(0, M)
    got = table.classes[block.Y.argmax(axis=1)]
    order = [int(np.flatnonzero(X[:, 0] == value)[0]) for value in block.X[:, 0]] if shuffle else range(M)
    np.testing.assert_array_equal(got, labels[list(order)])
    assert table.statistics.y is None
    table.check_unchanged()
    again = ingest(tmp_path / "store", tmp_path / "again")
    assert again.classes == info.classes


def test_whole_numbers_stay_numbers_unless_asked(tmp_path):
    ingest(csv(tmp_path / "s.csv")[0], tmp_path / "store", target="t")
    assert open_table(tmp_path / "store").classes is None
    table = open_table(tmp_path / "store", classify=True)
    assert table.classes.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(table.read(5, 90).Y, np.eye(5)[Y[5:90].astype(int)])


def test_several_targets_and_none(tmp_path):
    targets = np.column_stack([Y, -Y])
    ingest(npz(tmp_path / "s.npz", X=X, y=targets)[0], tmp_path / "two")
    np.testing.assert_array_equal(open_table(tmp_path / "two").read(0, M).Y, targets)
    info = ingest(csv(tmp_path / "s.csv")[0], tmp_path / "none")
    assert (info.features, info.targets) == (5, 0)


def test_too_many_labels(tmp_path):
    pd.DataFrame({"a": np.arange(10_002), "t": [f"id{i}" for i in range(10_002)]}).to_csv(
        tmp_path / "s.csv", index=False
    )
    with pytest.raises(DataError, match="10000 distinct labels"):
        ingest(tmp_path / "s.csv", tmp_path / "store", target="t")
    assert os.listdir(tmp_path) == ["s.csv"]


@pytest.mark.parametrize("odd", ["?", "n.a.", "unknown"])
@pytest.mark.parametrize("where", [0, 500])
def test_numbers_that_a_few_words_spoil_are_no_classes(odd: str, where: int, tmp_path: Path) -> None:
    values = [f"{value:.3f}" for value in np.random.default_rng(0).standard_normal(900)]
    values[where] = odd
    path = tmp_path / "spoilt.csv"
    path.write_text("a,y\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
    with pytest.raises(
        DataError, match=rf"'y' holds numbers, but for 1 values, first '{re.escape(odd)}' in row {where}"
    ):
        ingest(path, tmp_path / "t.zarr", target="y")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["spoilt.csv"]


def test_classes_may_be_numbers_and_a_few_words(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    path.write_text("a,y\n" + "".join(f"{row},{['1', '2', '3', 'other'][row % 4]}\n" for row in range(400)))
    ingest(path, tmp_path / "t.zarr", target="y")
    assert open_table(tmp_path / "t.zarr").classes.tolist() == ["1", "2", "3", "other"]


MESSY_LABELS = ["yes", " yes", "yes ", "no", "1", "1.0", "01", "True", "TRUE", "Cafe\u0301", "Caf\u00e9"]
CLEAN_LABELS = ["yes", "yes", "yes", "no", "1", "1", "01", "true", "true", "Caf\u00e9", "Caf\u00e9"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "schema"])
def test_one_label_has_one_text(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(len(MESSY_LABELS), dtype=float), "y": MESSY_LABELS})
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.to_parquet(tmp_path / "s.parquet", index=False)
    source = frame if kind == "frame" else tmp_path / ("s.parquet" if kind == "parquet" else "s.csv")
    options = {"missing": "mean"} if kind == "frame" else {"schema": "auto"} if kind == "schema" else {}
    info = ingest(source, tmp_path / "t.zarr", target="y", **options)
    assert info.classes == tuple(sorted(set(CLEAN_LABELS)))
    table = open_table(tmp_path / "t.zarr")
    found = table.classes[table.read(0, table.n_rows).Y.argmax(axis=1)]
    assert found.tolist() == CLEAN_LABELS


@pytest.mark.parametrize("options", [{}, {"schema": "auto"}])
@pytest.mark.parametrize("gap", ["", "NA", "null", " "])
def test_a_gap_is_no_label(gap: str, options: dict, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(f"a,y\n1,cat\n2,dog\n3,{gap}\n")
    with pytest.raises(DataError, match=r"s.csv:4"):
        ingest(tmp_path / "s.csv", tmp_path / "t.zarr", target="y", **options)


def test_labels_that_are_appended_have_the_same_form(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,y\n1,cat\n2,True\n")
    (tmp_path / "more.csv").write_text("a,y\n1, TRUE\n2,cat \n")
    ingest(tmp_path / "s.csv", tmp_path / "t.zarr", target="y")
    assert append_rows(tmp_path / "more.csv", tmp_path / "t.zarr").rows == 4
    table = open_table(tmp_path / "t.zarr")
    assert table.classes[table.read(0, 4).Y.argmax(axis=1)].tolist() == ["cat", "true", "true", "cat"]


def test_text_of_a_table_in_memory_is_class_labels_if_it_is_said_to_be(tmp_path: Path) -> None:
    X, y = np.arange(8.0).reshape(4, 2), np.array(["a", "b", "b", "a"])
    wanted = "y holds text .* give numbers, or for class labels KernelRidgeClassifier .* opened with classify"
    with pytest.raises(DTypeError, match=wanted):
        ingest(open_table(X, y), tmp_path / "t")
    assert ingest(open_table(X, y, classify=True), tmp_path / "t").classes == ("a", "b")


@given(strategies.text(strategies.characters(exclude_categories=["Cs"])) | strategies.sampled_from(MESSY_LABELS))
def test_the_form_of_a_label_is_one_in_arrow_and_python(label: str) -> None:
    assert label_form(label) == canonical(pa.array([label], pa.string()))[0].as_py()


def test_stores_and_models_of_labels_as_files_wrote_them_go_on(tmp_path: Path) -> None:
    # An earlier version stored the labels of a file as they stood there.
    old = open_table(np.arange(4.0)[:, None], np.array(["True", "False", "yes ", "1.0"]), classify=True)
    ingest(old, tmp_path / "old.zarr")
    (tmp_path / "more.csv").write_text("x0,y\n1,true\n2,1.0\n3,yes\n")
    assert append_rows(tmp_path / "more.csv", tmp_path / "old.zarr", target="y").rows == 7
    grown = open_table(tmp_path / "old.zarr")
    assert grown.classes.tolist() == ["1.0", "False", "True", "yes "]
    assert grown.read(4, 7).Y.argmax(axis=1).tolist() == [2, 0, 3]
    # The other way round: a model of a file, and a store of an earlier version.
    seen = grown.for_model(np.array(["1", "false", "true", "yes"]), 4)
    assert seen.read(0, 4).Y.argmax(axis=1).tolist() == [2, 1, 3, 0]
    with pytest.raises(DataError, match="'yes ' is none of the model's"):
        grown.for_model(np.array(["1", "false", "true"]), 3)


def test_labels_that_differ_in_case_or_spaces_are_classes_with_a_warning(tmp_path: Path) -> None:
    labels = ["yes", "Yes", "NO", "no", "new  york", "New York", "NEW YORK", "new york", "straße", "STRASSE", "a", "A"]
    (tmp_path / "s.csv").write_text("x,kind\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    told = (
        r"^column 'kind' has labels that differ in case or spaces alone, 'Yes', 'yes'; 'NO', 'no'; "
        r"'NEW YORK', 'New York', 'new  york'; and 2 more, in .*s\.csv:3: "
        "each is a class of its own; where they are one class, write"
    )
    with pytest.warns(StreamKernelWarning, match=told):
        info = ingest(tmp_path / "s.csv", tmp_path / "t", target="kind")
    assert info.classes == tuple(sorted(labels))
    # Who opens the store has been told.
    assert open_table(tmp_path / "t").classes.tolist() == sorted(labels)


def test_labels_of_arrays_are_looked_at_too() -> None:
    with pytest.warns(StreamKernelWarning, match=r"^y has labels that differ in case or spaces alone, 'Yes', 'yes':"):
        table = open_table(np.eye(3), np.array(["yes", "Yes", "no"]), classify=True)
    assert table.classes.tolist() == ["Yes", "no", "yes"]
    # Numbers are no text, even where their text looks like a label.
    assert open_table(np.eye(3), np.array([1, 2, 1]), classify=True).classes.tolist() == [1, 2]
