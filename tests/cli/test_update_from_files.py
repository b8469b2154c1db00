"""streamkernel update MODEL FILE: the file is ingested on the way, and no row is counted twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from messy_tables import messy

from streamkernel import ingest

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
PLAIN = ("--basis", "30", "--kernel", "gaussian", "--metric", "none", "--alpha", "1", "--lengthscale", "5")
FRAME = messy().drop(columns="city")  # a column of mean targets has a test of its own


def numbers(m: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, m))
    return pd.DataFrame({"text": "x", "b": b, "a": a, "y": a + b, "w": rng.integers(1, 4, m)})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_only_the_new_rows_of_a_grown_file_are_folded_in(cli: Run, tmp_path: Path, suffix: str) -> None:
    FRAME[:400].to_csv(tmp_path / "rows.csv", index=False)
    given = ("--target", "y", "--schema", "auto", *PLAIN, *THREADS)
    assert cli("fit", tmp_path / "rows.csv", tmp_path / "m", *given).status == 0
    # Another order of columns, and another kind of file: rows are known by their content.
    grown = FRAME[["y", "when", "hours", "married", "age", "job"]]
    getattr(grown, f"to_{suffix}")(tmp_path / f"grown.{suffix}", index=False)
    updated = ("update", tmp_path / "m", tmp_path / f"grown.{suffix}", *THREADS, "--json")
    found = cli(*updated).result
    assert (found["rows_folded"], found["rows_seen_before"], found["rows"]) == (200, 400, 600)
    again = cli(*updated).result
    assert (again["rows_folded"], again["digest"]) == (0, found["digest"])
    # The same as from a store that has grown.
    ingest(tmp_path / "rows.csv", tmp_path / "s", target="y", schema="auto")
    assert cli("fit", tmp_path / "s", tmp_path / "m2", *PLAIN, *THREADS).status == 0
    FRAME[400:].to_csv(tmp_path / "more.csv", index=False)
    assert cli("ingest", tmp_path / "more.csv", tmp_path / "s", "--append", "--quiet").status == 0
    stored = cli("update", tmp_path / "m2", tmp_path / "s", *THREADS, "--json").result
    names = ("rows_folded", "rows", "residual_trace", "gcv", "effective_df")
    assert [stored[name] for name in names] == pytest.approx([found[name] for name in names], rel=1e-9)


def test_rows_of_a_fit_with_mean_targets_are_not_counted_twice(cli: Run, tmp_path: Path) -> None:
    messy().to_csv(tmp_path / "rows.csv", index=False)
    messy(50, 1).to_csv(tmp_path / "new.csv", index=False)
    given = ("--target", "y", "--schema", "auto", *PLAIN, *THREADS)
    assert cli("fit", tmp_path / "rows.csv", tmp_path / "m", *given).status == 0
    refused = cli("update", tmp_path / "m", tmp_path / "rows.csv", *THREADS).error
    assert "the mean targets of 'city' in a row of the fit leave out its own target" in refused
    new = cli("update", tmp_path / "m", tmp_path / "new.csv", "--as-new", *THREADS, "--json").result
    assert new["rows_folded"] == 50
    again = cli("update", tmp_path / "m", tmp_path / "new.csv", "--as-new", *THREADS, "--json").result
    assert (again["rows_folded"], again["rows_seen_before"]) == (0, 50)


def test_weights_of_a_file_are_named_or_refused(cli: Run, tmp_path: Path) -> None:
    numbers().to_csv(tmp_path / "rows.csv", index=False)
    numbers(400).to_csv(tmp_path / "grown.csv", index=False)
    fit = ("fit", tmp_path / "rows.csv", tmp_path / "m", "--target", "y", "--weight", "w", "--drop", "text")
    assert cli(*fit, *PLAIN, *THREADS).status == 0
    update = ("update", tmp_path / "m", tmp_path / "grown.csv", *THREADS)
    assert "name the column of" in cli(*update).error
    assert cli(*update, "--weight", "w", "--json").result["rows"] == 300 + 400
    schema = tmp_path / "s.toml"
    suggest = ("ingest", tmp_path / "rows.csv", schema, "--suggest-schema", "--target", "y", "--quiet")
    assert cli(*suggest).status == 0
    schema.write_text(schema.read_text().replace('name = "w"', 'name = "w"\nrole = "weight"').replace(
        'role = "weight"\nmissing = "indicator"', 'role = "weight"'
    ))  # fmt: skip
    fit = ("fit", tmp_path / "rows.csv", "--schema", schema, *PLAIN, *THREADS, "--json")
    weighted = cli(*fit, tmp_path / "m2").result
    plain = cli(*fit, tmp_path / "m3", "--weight", "none").result
    assert weighted["digest"] != plain["digest"]
    scores = [cli("evaluate", tmp_path / "m2", tmp_path / "rows.csv", *THREADS, "--json", *w).result["rmse"] for w in
              ((), ("--weight", "w"), ("--weight", "none"))]  # fmt: skip
    assert scores[0] == scores[1] != scores[2]


def test_a_job_needs_a_store(cli: Run, tmp_path: Path) -> None:
    numbers().to_csv(tmp_path / "rows.csv", index=False)
    ran = cli("submit", tmp_path / "rows.csv", tmp_path / "m", "--scheduler", "tcp://127.0.0.1:9")
    assert "rows.csv is a file, and a job reads its rows from the workers of the cluster" in ran.error
