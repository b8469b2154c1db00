"""What fuzzing broke of updates and appends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import X, Y
from fuzz.command import Refused, commanded
from fuzz.damage import resealed, snapshot, taken
from fuzz.limits import Yard

from streamkernel import KernelRidge, ingest
from streamkernel.store import Bundle, read_bundle, write_bundle


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard")


@pytest.mark.parametrize("field", ["basis_size", "certificate", "solution", "target_scale"])
def test_models_that_cannot_tell_of_their_update(yard: Yard, field: str) -> None:
    """They were replaced, and only then was there no number to print."""
    model, table = yard.place("m"), yard.place("t")
    KernelRidge(5).fit(X, Y).save(model)
    bundle = read_bundle(model, "kernel-ridge")
    config: dict[str, Any] = {name: value for name, value in bundle.config.items() if name != field}
    write_bundle(model, Bundle(bundle.kind, bundle.version, config, bundle.arrays), overwrite=True)
    ingest(np.column_stack([X + 1, Y]), table, target=3)
    before = snapshot(model)
    command = ("update", model, table, "--scheduler", "threads", "--quiet")
    # What was swept is kept for the next one.
    error = yard.run(lambda: commanded(*command), may_write=[yard.folder / ".m.update"])
    assert isinstance(error, Refused)
    assert field in str(error)
    assert snapshot(model) == before


def test_appending_to_a_table_whose_manifest_lists_another_array(yard: Yard) -> None:
    table, source = yard.place("t"), yard.place("s.npy")
    ingest(X, table)
    np.save(source, X)
    files = taken(table)
    manifest = json.loads(files["COMPLETE"])
    manifest["arrays"]["x"] = manifest["arrays"]["X"]
    (table / "COMPLETE").write_bytes(resealed({**files, "COMPLETE": json.dumps(manifest).encode()})["COMPLETE"])
    before = snapshot(table)
    error = yard.run(lambda: commanded("ingest", source, table, "--append", "--quiet"))
    assert isinstance(error, Refused)
    assert "COMPLETE" in str(error)
    assert snapshot(table) == before
