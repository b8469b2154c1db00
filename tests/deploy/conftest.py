"""A cluster with TLS, certificates of somebody else, and rows."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from clusters import ROOT, topology
from problems import zarr_of_chunks


@pytest.fixture(scope="session")
def tls_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Scheduler and two workers, every port with certificates."""
    with topology(tmp_path_factory.mktemp("tls-cluster"), tls=True, s3=False, service=False) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-five chunks of rows."""
    data = data_sets.friedman(25_000, 5, 0.5, 1)
    path = tmp_path_factory.mktemp("rows") / "rows.zarr"
    zarr_of_chunks(path, data.X.astype(np.float32), data.y, 1_000)
    return path


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of somebody else's CA."""
    folder = tmp_path_factory.mktemp("foreign") / "tls"
    subprocess.run([ROOT / "deploy" / "tls.sh", folder], check=True, capture_output=True)
    return folder
