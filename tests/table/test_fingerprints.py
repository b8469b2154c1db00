"""The fingerprint of a table depends on its rows and its schema. Its source and its reader do not count."""

from __future__ import annotations

import io
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamkernel import append_rows, ingest, open_table
from streamkernel.atomic import text_digest
from streamkernel.errors import CorruptMetadataError

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((300, 4))
NAMES = "a,b,c,y"


def csv(path: Path, rows: Any = ROWS, names: str = NAMES) -> Path:
    np.savetxt(path, rows, delimiter=",", header=names, comments="")
    return path


def made(folder: Path, source: Any, **options: Any) -> str:
    return ingest(source, folder / "made.zarr", target="y", overwrite=True, **options).fingerprint


def manifest_of(table: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((table / "COMPLETE").read_text(encoding="utf-8"))
    return found


def test_sources_of_the_same_rows_give_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = csv(tmp_path / "one.csv")
    wanted = made(tmp_path, one)
    assert made(tmp_path, csv(tmp_path / "other.csv")) == wanted
    parts = [csv(tmp_path / "part-0.csv", ROWS[:100]), csv(tmp_path / "part-1.csv", ROWS[100:])]
    assert made(tmp_path, parts) == wanted
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(one.read_bytes())))
    assert made(tmp_path, "-") == wanted
    assert open_table(tmp_path / "made.zarr").fingerprint == wanted
    assert pickle.loads(pickle.dumps(open_table(tmp_path / "made.zarr"))).fingerprint == wanted


CHANGES: dict[str, Callable[[Path], str]] = {
    "a value": lambda folder: made(folder, csv(folder / "x.csv", ROWS + np.eye(300, 4))),
    "the order": lambda folder: made(folder, csv(folder / "x.csv", ROWS[::-1])),
    "a name": lambda folder: made(folder, csv(folder / "x.csv", names="a,b,d,y")),
    "chunks": lambda folder: made(folder, csv(folder / "x.csv"), chunk_rows=100),
    "dtype": lambda folder: made(folder, csv(folder / "x.csv"), dtype="float64"),
    "shuffle": lambda folder: made(folder, csv(folder / "x.csv"), shuffle=True),
    "weights": lambda folder: made(folder, csv(folder / "x.csv", np.abs(ROWS)), weight="c"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_rows_or_another_schema_give_another(change: str, tmp_path: Path) -> None:
    assert CHANGES[change](tmp_path) != made(tmp_path, csv(tmp_path / "one.csv"))


def test_readers_from_before_an_append_keep_theirs(tmp_path: Path) -> None:
    store = tmp_path / "rows.zarr"
    first = ingest(csv(tmp_path / "one.csv"), store, target="y").fingerprint
    before = open_table(store)
    now = append_rows(csv(tmp_path / "more.csv", ROWS[:50]), store).fingerprint
    before.check_unchanged()
    assert before.fingerprint == pickle.loads(pickle.dumps(before)).fingerprint == first != now


def test_a_table_of_an_earlier_release_keeps_its_own(tmp_path: Path) -> None:
    """It has no content in its manifest: models and factors know it by the manifest."""
    store = tmp_path / "rows.zarr"
    ingest(csv(tmp_path / "one.csv"), store, target="y")
    manifest = manifest_of(store)
    del manifest["content"]
    (store / "COMPLETE").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    digests = (text_digest((store / name).read_text(encoding="utf-8")) for name in ("X/zarr.json", "COMPLETE"))
    wanted = text_digest("/".join(digests))
    earlier = open_table(store)
    assert earlier.features.fingerprint == wanted
    append_rows(csv(tmp_path / "more.csv", ROWS[:50]), store)
    assert manifest_of(store)["content"]
    earlier.check_unchanged()
    assert earlier.features.fingerprint == pickle.loads(pickle.dumps(earlier)).features.fingerprint == wanted


@pytest.mark.parametrize("damage", ["a digest", "content"])
def test_an_edited_manifest_is_refused(damage: str, tmp_path: Path) -> None:
    store = tmp_path / "rows.zarr"
    ingest(csv(tmp_path / "one.csv"), store, target="y")
    manifest = manifest_of(store)
    if damage == "content":
        manifest["content"] = manifest["content"][::-1]
    else:
        manifest["arrays"]["X"]["digests"][0] = "0" * 32
    (store / "COMPLETE").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CorruptMetadataError, match="COMPLETE lists other digests than it was written with"):
        open_table(store)
