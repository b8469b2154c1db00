"""A small table and outputs of every kind, and folders that only look like them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from streamkernel import KernelRidge, ingest
from streamkernel.store import Bundle, RowSink, write_bundle

X = np.random.default_rng(3).normal(size=(64, 2))


def model(path: Any, *, overwrite: bool = False) -> None:
    """A bundle, as models are."""
    write_bundle(path, Bundle("kernel-ridge", 1, {"a": 1}, {"w": X, "scalar": np.array(2.0)}), overwrite=overwrite)


def rows(path: Any, *, overwrite: bool = False) -> None:
    """Predictions."""
    with RowSink.create(path, 64, {"prediction": (None, "f8")}, 16, overwrite=overwrite) as sink:
        sink.finish(sink.write("prediction", 0, X[:, 0]))


def table(path: Any, *, overwrite: bool = False) -> None:
    """An ingested table."""
    ingest((X if not overwrite else X + 1), path, chunk_rows=16, dtype="float64", overwrite=overwrite)


WRITERS: dict[str, Callable[..., None]] = {"model": model, "rows": rows, "table": table}


def language_model(folder: Path) -> None:
    """What other programs keep under the same names."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096}))
    (folder / "model.safetensors").write_bytes(b"weights")


def foreign_zarr(folder: Path) -> None:
    group = zarr.create_group(folder)
    group.create_array("X", shape=(4, 2), dtype="f8")[:] = 1.0
    (folder / "notes.txt").write_text("thesis")


def forged(folder: Path) -> None:
    """A marker and a format name, and nothing that we wrote."""
    folder.mkdir()
    (folder / "zarr.json").write_text('{"attributes": {"format": "streamkernel.table"}, "note": "streamkernel.rows"}')
    (folder / "config.json").write_text('{"format": "streamkernel.bundle"}')
    (folder / "thesis.tex").write_text("thesis")


def a_file(folder: Path) -> None:
    folder.write_text("thesis")


FOREIGN = {each.__name__: each for each in (language_model, foreign_zarr, forged, a_file)}


def held(place: Path) -> dict[str, bytes | str]:
    """Everything below a folder, links as what they lead to."""
    if place.is_file():
        return {"": place.read_bytes()}
    found: dict[str, bytes | str] = {}
    for path in sorted(place.rglob("*")):
        key = str(path.relative_to(place))
        found[key] = str(path.readlink()) if path.is_symlink() else b"/" if path.is_dir() else path.read_bytes()
    return found


def ridge() -> KernelRidge:
    return KernelRidge(8, lengthscale=1.0, random_state=0)
