"""What `ingest` took for features and what for the target, and what it left out: said, and listed in --json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def test_features_and_target(cli: Callable, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,age,price,rent\n1,20,3.5,1\n2,30,4.5,2\n3,40,5.5,3\n")
    ran = cli("ingest", source, tmp_path / "rows", "--target", "price", "--quiet")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "columns id, age, rent" in lines
    assert "target price" in lines
    told = cli("ingest", source, tmp_path / "json", "--target", "price", "--json").result
    assert (told["columns"], told["target_names"], told["left_out"]) == (["id", "age", "rent"], ["price"], [])
    none = cli("ingest", source, tmp_path / "none", "--quiet").out
    assert "none: every column is a feature" in none


def test_one_column_of_classes_is_one_target(cli: Callable, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("a,kind\n1,cat\n2,dog\n3,cow\n")
    ran = cli("ingest", source, tmp_path / "rows", "--target", "kind", "--quiet")
    assert "kind (labels of 3 classes)" in ran.out
    assert cli("info", tmp_path / "rows", "--json").result["targets"] == 1


def test_a_column_of_row_weights(cli: Callable, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("a,y,n\n1,2,3\n4,5,6\n7,8,0\n")
    ran = cli("ingest", source, tmp_path / "rows", "--target", "y", "--weight", "n", "--quiet")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "columns a" in lines
    assert "weight n" in lines
    by_index = cli("ingest", source, tmp_path / "json", "--target", "1", "--weight", "-1", "--json").result
    assert (by_index["columns"], by_index["weight"]) == (["a"], "n")
    more = cli("ingest", source, tmp_path / "rows", "--append", "--json").result
    assert (more["rows"], more["statistics"]["X"]["weight"]) == (6, 18.0)
    told = cli("info", tmp_path / "rows", "--json").result
    assert (told["weight"], told["statistics"]["y"]["weight"]) == ("n", 18.0)
    assert "weight n" in " ".join(cli("info", tmp_path / "rows", "--quiet").out.split())
    source.write_text("a,y\n1,2\n")
    refused = cli("ingest", source, tmp_path / "rows", "--append")
    assert refused.status == 1
    assert "name another by --weight" in refused.err


def test_a_partitions_column_is_said_to_be_left_out(cli: Callable, tmp_path: Path) -> None:
    for year in (2020, 2021):
        folder = tmp_path / "rows" / f"year={year}" / "month=1"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": np.arange(3.0), "y": np.arange(3.0)}), folder / "part.parquet")
    ran = cli("ingest", tmp_path / "rows", tmp_path / "store", "--target", "y", "--quiet")
    assert ran.status == 0
    assert "left out" in ran.out
    told = cli("info", tmp_path / "store", "--json").result["left_out"]
    assert ["'year'" in part for part in told] == [True, False]
    assert ["'month'" in part for part in told] == [False, True]
