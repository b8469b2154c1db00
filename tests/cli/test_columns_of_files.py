"""Tables as they come, by the command line: from a raw file to a model, a report and predictions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from messy_tables import messy

from streamkernel import KernelRidge, ingest, open_table
from streamkernel.errors import ParameterError
from streamkernel.table.schema import Schema

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
PLAIN = ("--basis", "40", "--kernel", "gaussian", "--metric", "none", "--alpha", ".01", "--lengthscale", "5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    messy().to_csv(tmp_path / "rows.csv", index=False)
    messy(50, 1).drop(columns="y").to_parquet(tmp_path / "new.parquet", index=False)
    return tmp_path


def test_from_a_raw_file_to_a_report_in_two_commands(cli: Run, folder: Path) -> None:
    fitted = cli(
        "fit", folder / "rows.csv", folder / "m", "--target", "y", "--schema", "auto", *PLAIN, *THREADS, "--json"
    )
    assert fitted.result["rows"] == 600
    assert cli("report", folder / "m", folder / "m.html", "--json").status == 0
    assert "city (mean of y)" in (folder / "m.html").read_text()
    ingest(folder / "rows.csv", folder / "s", target="y", schema="auto")
    two = cli("fit", folder / "s", folder / "m2", *PLAIN, *THREADS, "--json")
    assert two.result["digest"] == fitted.result["digest"]


def test_later_files_go_by_the_schema_of_the_model(cli: Run, folder: Path) -> None:
    cli("fit", folder / "rows.csv", folder / "m", "--target", "y", "--schema", "auto", *PLAIN, *THREADS)
    scored = cli("evaluate", folder / "m", folder / "rows.csv", *THREADS, "--json").result
    assert scored["r2"] > 0.7
    assert cli("predict", folder / "m", folder / "new.parquet", folder / "p.csv", *THREADS).status == 0
    predicted = pd.read_csv(folder / "p.csv")
    assert len(predicted) == 50
    messy(50, 1)[["when", "hours", "married", "age", "city", "job"]].to_csv(folder / "mixed.csv", index=False)
    assert cli("predict", folder / "m", folder / "mixed.csv", folder / "q.csv", *THREADS).status == 0
    np.testing.assert_allclose(pd.read_csv(folder / "q.csv"), predicted[["row", "prediction"]], rtol=1e-12)
    assert predicted["key"].tolist() == messy(50, 1)["key"].tolist()
    error = cli("predict", folder / "m", folder / "rows.csv", folder / "r.csv", "--unknown", "refuse", *THREADS)
    assert error.status == 0  # all are known
    messy(50, 1).assign(job="pirate").to_csv(folder / "odd.csv", index=False)
    odd = cli("predict", folder / "m", folder / "odd.csv", folder / "o.csv", *THREADS)
    assert "odd.csv:2: 'pirate' of column 'job' is none of its categories; 50 rows" in odd.err.replace("\n", " ")
    odd = cli("predict", folder / "m", folder / "odd.csv", folder / "o2.csv", "--unknown", "refuse", *THREADS)
    assert "let --unknown ignore count it as none of them" in odd.error


def test_a_file_without_the_target_is_not_evaluated_and_not_appended(cli: Run, folder: Path) -> None:
    cli("fit", folder / "rows.csv", folder / "m", "--target", "y", "--schema", "auto", *PLAIN, *THREADS)
    scored = cli("evaluate", folder / "m", folder / "new.parquet", *THREADS)
    assert "new.parquet: there is no target column 'y'; its columns are" in scored.error
    ingest(folder / "rows.csv", folder / "s", target="y", schema="auto")
    error = cli("ingest", folder / "new.parquet", folder / "s", "--append").error
    assert "have the target y, and the source has none; give rows with it" in error


@pytest.mark.parametrize(
    "option",
    [
        ("--append",),
        ("--shuffle",),
        ("--seed", 0),
        ("--chunk-rows", 64),
        ("--dtype", "float32"),
        ("--sparse",),
        ("--dense",),
        ("--columns", 3),
        ("--X", "X"),
        ("--y", "y"),
    ],
)
def test_a_suggestion_refuses_what_has_no_effect_on_it(cli: Run, folder: Path, option: tuple[object, ...]) -> None:
    for place in ("s.toml", "-"):
        refused = cli("ingest", folder / "rows.csv", place, "--suggest-schema", "--target", "y", *option).error
        assert f"{option[0]} means nothing with --suggest-schema: " in refused
        assert refused.endswith("; leave it out")
    assert not (folder / "s.toml").exists()


def test_a_printed_suggestion_replaces_nothing_and_is_json_where_that_is_asked_for(cli: Run, folder: Path) -> None:
    arguments = ("ingest", folder / "rows.csv", "-", "--suggest-schema", "--target", "y")
    assert "--overwrite means nothing with --suggest-schema to -" in cli(*arguments, "--overwrite").error
    printed = cli(*arguments, "--json").result
    assert Schema.from_config(printed, "stdout").to_toml() == cli(*arguments).out


def test_a_seed_without_a_shuffle_is_refused(cli: Run, folder: Path) -> None:
    rows, store = folder / "rows.csv", folder / "seeded"
    refused = cli("ingest", rows, store, "--target", "y", "--schema", "auto", "--seed", 0)
    assert "--seed is of --shuffle: " in refused.error
    assert not store.exists()


def test_a_suggested_schema_is_changed_and_given(cli: Run, folder: Path) -> None:
    arguments = ("ingest", folder / "rows.csv", folder / "s.toml", "--suggest-schema", "--target", "y")
    assert cli(*arguments, "--json").result["columns"][0] == {"name": "key", "kind": "text", "role": "id"}
    assert "exists" in cli(*arguments).error
    text = (folder / "s.toml").read_text().replace('encoding = "target-mean"', 'encoding = "one-hot"')
    (folder / "s.toml").write_text(text)
    made = cli("ingest", folder / "rows.csv", folder / "t", "--schema", folder / "s.toml", "--quiet", "--json").result
    assert made["target_names"] == ["y"]
    assert sum(name.startswith("city=") for name in made["columns"]) == 60
    printed = cli("ingest", folder / "rows.csv", "-", "--suggest-schema")
    assert printed.out.startswith('format = "streamkernel.schema"')


def test_a_suggested_schema_has_the_weight_that_an_option_names(cli: Run, folder: Path) -> None:
    arguments = ("ingest", folder / "rows.csv", folder / "s.toml", "--suggest-schema", "--target", "y")
    for weight in ("age", "1"):
        found = cli(*arguments, "--weight", weight, "--overwrite", "--json").result["columns"]
        assert [column["role"] for column in found if column["name"] == "age"] == ["weight"]
    assert "no column of row weights" in cli(*arguments, "--weight", "shares", "--overwrite").error


def test_each_option_by_itself(cli: Run, folder: Path) -> None:
    options = ("--categories", "job", "--dates", "when", "--missing", "median", "--id", "key", "--drop", "city")
    made = cli(
        "ingest",
        folder / "rows.csv",
        folder / "t",
        "--target",
        "y",
        *options,
        "--drop",
        "hours",
        "--drop",
        "married",
        "--json",
    ).result
    assert [name for name in made["columns"] if not name.startswith("when")] == [
        "age",
        "job=private",
        "job=self",
        "job=state",
        "job is missing",
    ]
    assert Schema.from_config(made["schema"])["age"].missing == "median"
    error = cli("ingest", folder / "rows.csv", folder / "u", "--target", "y", "--drop", "key").error
    assert "--categories or --dates, or let --schema auto look at the rows" in error


def test_options_of_files_mean_nothing_to_a_store(cli: Run, folder: Path) -> None:
    ingest(np.random.default_rng(0).standard_normal((50, 3)), folder / "t", target=0)
    for command in ("fit", "plan"):
        arguments = [folder / "m"] if command == "fit" else []
        error = cli(command, folder / "t", *arguments, "--schema", "auto").error
        assert "--schema is for a file as STORE" in error
    KernelRidge(n_components=5).fit(np.eye(8), np.arange(8.0)).save(folder / "m")
    error = cli("predict", folder / "m", folder / "t", folder / "p.csv", "--unknown", "ignore", *THREADS).error
    assert "--unknown is for a file as STORE" in error


def test_a_report_takes_a_raw_file(cli: Run, folder: Path) -> None:
    cli("fit", folder / "rows.csv", folder / "m", "--target", "y", "--schema", "auto", *PLAIN, *THREADS)
    arguments = ("report", folder / "m", folder / "m.html", "--data", folder / "rows.csv", "--rows", "0:300")
    assert cli(*arguments).status == 0
    assert "rows 0:300 of rows.csv" in (folder / "m.html").read_text()
    kind = ("--estimator", "kernel-pca", "--basis", "20")
    fitted = cli("fit", folder / "rows.csv", folder / "p", "--target", "y", "--schema", "auto", *kind, *THREADS)
    assert fitted.status == 0, fitted.err
    assert cli("report", folder / "p", folder / "p.html", "--data", folder / "rows.csv").status == 0


def test_plan_and_transform_take_files(cli: Run, folder: Path) -> None:
    given = ("--schema", "auto", "--target", "y")
    assert cli("plan", folder / "rows.csv", *given, *PLAIN, "--json").result["rows"] == 600
    made = cli(
        "fit", folder / "rows.csv", folder / "m", *given, "--estimator", "nystroem", "--basis", "10", *THREADS, "--json"
    )
    assert made.status == 0
    assert cli("transform", folder / "m", folder / "new.parquet", folder / "f.parquet", *THREADS).status == 0
    assert pd.read_parquet(folder / "f.parquet").shape == (50, 12)


def test_german_csv(cli: Run, folder: Path) -> None:
    frame = messy().drop(columns=["key", "hours"])
    frame.to_csv(folder / "de.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    how = ("--decimal", ",", "--encoding", "latin-1")
    fitted = cli("fit", folder / "de.csv", folder / "m", "--target", "y", "--schema", "auto", *how, *PLAIN, *THREADS)
    assert fitted.status == 0, fitted.err
    assert cli("evaluate", folder / "m", folder / "de.csv", *how, *THREADS, "--json").result["r2"] > 0.7


def test_a_second_file_goes_by_the_schema_of_a_store_or_a_model(cli: Run, folder: Path) -> None:
    ingest(folder / "rows.csv", folder / "s", target="y", schema="auto", dtype="float64")
    assert cli("fit", folder / "s", folder / "m", *PLAIN, *THREADS).status == 0
    second = messy(80, 5)
    second.loc[0, "job"] = "pirate"  # which the first rows have not
    second[["y", "when", "hours", "married", "age", "city", "job", "key"]].to_csv(folder / "two.csv", index=False)
    Schema.from_config(open_table(folder / "s").schema).write(folder / "s.json")
    stores = {"file": folder / "s.json", "store": folder / "s", "model": folder / "m"}
    for name, schema in stores.items():
        ran = cli("ingest", folder / "two.csv", folder / name, "--schema", schema, "--dtype", "float64")
        assert "'pirate' of column 'job' is none of its categories" in ran.err.replace("\n", " ")
    tables = [open_table(folder / name) for name in stores]
    assert len({table.fingerprint for table in tables}) == 1
    assert tables[0].columns == open_table(folder / "s").columns
    assert tables[0].target_names == ("y",)
    # A file without the target is ingested, too; and a fit takes the schema as ingest does.
    second.drop(columns="y").to_csv(folder / "three.csv", index=False)
    found = cli("ingest", folder / "three.csv", folder / "no-y", "--schema", folder / "m", "--json").result
    assert found["target_names"] == []
    two = cli("fit", folder / "two.csv", folder / "m2", "--schema", folder / "m", *PLAIN, *THREADS, "--json")
    assert two.result["rows"] == 80
    one = cli("plan", folder / "two.csv", "--schema", folder / "s", *PLAIN, *THREADS, "--json")
    assert one.status == 0


def test_the_schema_of_a_transformer_is_taken(cli: Run, folder: Path) -> None:
    given = ("--schema", "auto", "--drop", "y", "--estimator", "nystroem", "--basis", "20", "--kernel", "gaussian")
    assert cli("fit", folder / "rows.csv", folder / "n", *given, *THREADS).status == 0
    found = cli("ingest", folder / "rows.csv", folder / "s", "--schema", folder / "n", "--json").result
    assert "job=self" in found["columns"]
    assert "age is missing" in found["columns"]


def test_what_carries_no_schema_is_refused(cli: Run, folder: Path) -> None:
    ingest(open_table(np.eye(9), np.arange(9.0)), folder / "numbers")
    (folder / "empty").mkdir()
    ingested = ("ingest", folder / "rows.csv", folder / "s", "--schema")
    assert "numbers was made of rows of numbers and has no schema" in cli(*ingested, folder / "numbers").error
    assert "empty" in cli(*ingested, folder / "empty").error
    assert "no schema at" in cli(*ingested, folder / "nothing.json").error
    assert "is named .json or .toml; choose another name, or --schema auto" in cli(*ingested, folder / "atuo").error
    assert not (folder / "s").exists()
    with pytest.raises(ParameterError, match="is a folder, not the JSON or TOML file of a schema"):
        ingest(folder / "rows.csv", folder / "s", schema=folder / "numbers")
