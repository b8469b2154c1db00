"""A COMPLETE that does not fit itself is none: what it says of chunks and of earlier generations is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import append_rows, ingest, open_table
from streamkernel.errors import CorruptMetadataError
from streamkernel.manifest import parse_manifest

X = np.arange(40.0).reshape(20, 2)

FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a digest less": lambda config: config["arrays"]["X"]["digests"].pop(),
    "a digest more": lambda config: config["arrays"]["X"]["digests"].append("0" * 32),
    "more rows than digests": lambda config: config["arrays"]["X"].update(shape=[200, 2]),
    "an earlier generation with more rows": lambda config: config["history"][0].update(rows=31),
    "no earlier digests": lambda config: config["history"][0].pop("last"),
    "another format": lambda config: config.update(format="somebody.table"),
    "another version": lambda config: config.update(version=99),
    "chunks of no rows": lambda config: config["arrays"]["X"].update(chunk_rows=0),
}


@pytest.mark.parametrize("forged", list(FORGED))
def test_what_does_not_fit_itself(tmp_path: Path, forged: str) -> None:
    ingest(X, tmp_path / "t", chunk_rows=8)
    append_rows(X[:10], tmp_path / "t")
    file = tmp_path / "t" / "COMPLETE"
    config = json.loads(file.read_text())
    assert parse_manifest(json.dumps(config), str(file)).history
    FORGED[forged](config)
    with pytest.raises(CorruptMetadataError, match=f"{file} is not a streamkernel manifest"):
        parse_manifest(json.dumps(config), str(file))
    file.write_text(json.dumps(config))
    with pytest.raises(CorruptMetadataError):
        open_table(tmp_path / "t")
