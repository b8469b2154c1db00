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


def test_columns_of_folders_are_columns_and_text_is_said_to_be_left_out(cli: Callable, tmp_path: Path) -> None:
    for year, month in ((2020, "may"), (2021, "june")):
        folder = tmp_path / "rows" / f"year={year}" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": np.arange(3.0), "y": np.arange(3.0)}), folder / "part.parquet")
    ran = cli("ingest", tmp_path / "rows", tmp_path / "store", "--target", "y", "--quiet")
    assert ran.status == 0
    assert "left out" in ran.out
    told = cli("info", tmp_path / "store", "--json").result
    assert told["columns"] == ["a", "year"]
    assert ["'month'" in part for part in told["left_out"]] == [True]


def test_several_files_and_the_last_is_the_store(cli: Callable, tmp_path: Path) -> None:
    parts = [tmp_path / f"part-{index}.csv" for index in range(3)]
    for index, part in enumerate(parts):
        part.write_text(f"a,y\n{index},1\n")
    told = cli("ingest", *parts, tmp_path / "rows", "--target", "y", "--json").result
    assert (told["rows"], told["source"]) == (3, "part-0.csv and 2 more")
    told = cli("ingest", tmp_path / "part-[12].csv", tmp_path / "rows", "--append", "--json").result
    assert told["rows"] == 5
    for forgotten in (parts, parts[:2]):
        refused = cli("ingest", *forgotten)
        assert (refused.status, refused.err) == (
            1, f"error: the last argument is the store, and {forgotten[-1]} is a file; name the new store after it\n",
        )  # fmt: skip
    assert cli("ingest", parts[0]).status == 2
    assert [part.read_text().count("\n") for part in parts] == [2, 2, 2]


def test_a_csv_of_excel_in_german(cli: Callable, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_bytes("Größe;y\r\n1,5;2\r\n2,5;3\r\n".encode("cp1252"))
    options = ["--decimal", ",", "--encoding", "cp1252"]
    told = cli("ingest", source, tmp_path / "rows", "--target", "y", *options, "--json").result
    assert (told["columns"], told["statistics"]["X"]["mean"]) == (["Größe"], [2.0])
    assert cli("ingest", source, tmp_path / "rows", "--append", *options, "--json").result["rows"] == 4
    assert "name the encoding of the file, such as --encoding latin-1" in cli("ingest", source, tmp_path / "no").error
    assert "--decimal must be '.' or ','" in cli("ingest", source, tmp_path / "no", "--decimal", ";").error


def test_arrays_of_other_names(cli: Callable, tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", pixels=np.eye(4), kind=np.array(["u", "v", "v", "u"]))
    refused = cli("ingest", tmp_path / "s.npz", tmp_path / "rows")
    assert "it has pixels, kind; name the array that is X by --X, and that of y by --y" in refused.error
    options = ["--X", "pixels", "--y", "kind"]
    told = cli("ingest", tmp_path / "s.npz", tmp_path / "rows", *options, "--json").result
    assert (told["features"], told["target_names"], told["classes"]) == (4, ["kind"], ["u", "v"])
    assert cli("ingest", tmp_path / "s.npz", tmp_path / "rows", "--append", *options, "--json").result["rows"] == 8


def test_a_store_that_is_not_named_is_what_is_missing(cli: Callable, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    ran = cli("ingest", tmp_path / "rows.csv", "--target", "y")
    assert ran.status == 2
    assert f"one path was given, {tmp_path / 'rows.csv'}, and two are needed" in " ".join(ran.err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert "Missing argument 'STORE'" in cli("ingest").err


def test_rows_that_were_appended_before(cli: Callable, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,y\n1,2\n3,4\n")
    more = tmp_path / "more.csv"
    more.write_text("a,y\n5,6\n7,9\n")
    assert cli("ingest", rows, tmp_path / "t", "--target", "y", "--quiet").status == 0
    refused = cli("ingest", rows, tmp_path / "u", "--target", "y", "--repeated", "skip")
    assert (refused.status, "--repeated is of --append" in refused.err) == (1, True)
    assert cli("ingest", more, tmp_path / "t", "--append", "--json").result["appended"] == 2
    again = cli("ingest", more, tmp_path / "t", "--append")
    assert again.status == 1
    assert "the rows of more.csv were appended before, and are rows 2:4 of" in again.err
    assert "give --repeated skip if they are to be there once, or --repeated append" in again.err
    skipped = cli("ingest", more, tmp_path / "t", "--append", "--repeated", "skip")
    assert skipped.status == 0
    assert "no rows: they were appended before" in skipped.out
    assert cli("ingest", more, tmp_path / "t", "--append", "--repeated", "append", "--json").result["rows"] == 6
