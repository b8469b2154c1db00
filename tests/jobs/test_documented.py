"""The Python of docs/jobs.md, on a cluster of this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import Cluster
from problems import zarr_of_chunks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jobs.md"


def test_the_page(dask_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((600, 3))
    zarr_of_chunks(tmp_path / "rows.zarr", X, X[:, 0], 100)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("tls://head:8786", dask_cluster.address), names)
    assert capsys.readouterr().out.splitlines()[-1] == f"finished: {tmp_path / 'model.zarr'}"
