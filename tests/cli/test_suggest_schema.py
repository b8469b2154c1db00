"""`ingest --suggest-schema` of every kind of source, the standard input among them."""

from __future__ import annotations

import bz2
import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from messy_tables import messy

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    messy(200).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    return lambda content: monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_the_standard_input_is_looked_at_once_it_is_copied(
    cli: Run, folder: Path, piped: Callable[[bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    text = (folder / "rows.csv").read_bytes()
    of_file = cli("ingest", folder / "rows.csv", "-", "--suggest-schema", "--target", "y").out
    for name in ("-", "/dev/stdin"):
        piped(text)
        assert cli("ingest", name, "-", "--suggest-schema", "--target", "y").out == of_file
    piped(text)
    made = cli("ingest", "-", tmp_path / "s.toml", "--suggest-schema", "--target", "y", "--quiet", "--json")
    assert made.result["schema"] == str(tmp_path / "s.toml")
    assert (tmp_path / "s.toml").read_text() == of_file
    piped(b"")
    assert "standard input:1:1: it is empty" in cli("ingest", "-", "-", "--suggest-schema").error
    piped(text)
    assert (
        "standard input: there is no target column 'z'"
        in cli("ingest", "-", "-", "--suggest-schema", "--target", "z").error
    )
    assert not any(temporary.iterdir())


def test_where_a_suggestion_cannot_go_is_said_before_the_standard_input_is_read(
    cli: Run, piped: Callable[[bytes], None], tmp_path: Path
) -> None:
    (tmp_path / "there.toml").write_text("mine")
    for place, why in (("there.toml", "exists"), ("no/s.toml", "does not exist"), ("s.csv", ".json or .toml")):
        piped(b"a,y\n1,2\n")
        assert why in cli("ingest", "-", tmp_path / place, "--suggest-schema").error
        assert sys.stdin.buffer.tell() == 0
    piped(b"a,y\n1,2\n")
    assert "there.toml" in cli("ingest", "-", tmp_path / "there.toml", "--suggest-schema", "--overwrite").error
    assert (tmp_path / "there.toml").read_text() == "mine"


def test_every_source_gives_a_suggestion_or_says_that_it_needs_none(cli: Run, tmp_path: Path) -> None:
    def of(*sources: object) -> list[tuple[str, str]]:
        found = cli("ingest", *sources, "-", "--suggest-schema", "--target", "y", "--json").result
        return [(each["name"], each.get("kind", "number")) for each in found["columns"]]

    frame = pd.DataFrame({"a": np.arange(20) + 0.5, "c": ["u", "v"] * 10, "y": np.arange(20)})
    text = frame.to_csv(index=False).encode()
    for name in ("f=1/p.csv", "f=2/p.csv", "g/1.csv", "g/2.csv"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(text)
    (tmp_path / "r.csv.bz2").write_bytes(bz2.compress(text))
    with pa.output_stream(tmp_path / "r.csv.zst", compression="zstd") as out:
        out.write(text)
    frame.to_feather(tmp_path / "r.feather")
    plain = [("a", "number"), ("c", "category"), ("y", "number")]
    parts = tmp_path / "t" / "g"
    for sources in ([parts / "*.csv"], [parts], [parts / "1.csv", parts / "2.csv"]):
        assert of(*sources) == plain
    for name in ("r.csv.bz2", "r.csv.zst", "r.feather"):
        assert of(tmp_path / name) == plain
    shutil.rmtree(parts)
    assert of(tmp_path / "t") == [*plain, ("f", "number")]

    X, y = np.ones((20, 3)), np.arange(20.0)
    np.savez(tmp_path / "r.npz", X=X, y=y)
    np.save(tmp_path / "r.npy", X)
    (tmp_path / "r.svm").write_text("1 1:2\n2 1:3\n")
    group = zarr.open_group(tmp_path / "r.zarr", mode="w")
    group["X"], group["y"] = X, y
    for source in (
        *(tmp_path / f"r.{suffix}" for suffix in ("npz", "npy", "svm", "zarr")),
        "synthetic://friedman?rows=9",
    ):
        error = cli("ingest", source, "-", "--suggest-schema").error
        assert "its rows are numbers, which need no schema" in error
