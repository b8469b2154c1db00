"""Targets: numbers stay numbers, text becomes classes."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table.sources import FRAME, M, X, Y, csv, npz

from streamkernel.errors import (
    DataError,
)
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest


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
