"""A service that takes jobs for the shared cluster: tables, models and jobs below it, and what nobody may see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import data_sets
import httpx
import numpy as np
import pytest
from clusters import Cluster
from problems import zarr_of_chunks
from service.live import Live
from service.submitting import settings_of


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tables, models and jobs below it, and something beside them that nobody may see."""
    folder = tmp_path_factory.mktemp("served")
    small, large = data_sets.friedman(600, 5, seed=1), data_sets.friedman(40_000, 5, seed=1)
    for name in ("models", "tables", "secret"):
        (folder / name).mkdir()
    zarr_of_chunks(folder / "tables" / "rows.zarr", small.X, small.y, 100)
    zarr_of_chunks(folder / "tables" / "large.zarr", large.X.astype(np.float32), large.y, 1000)
    zarr_of_chunks(folder / "secret" / "rows.zarr", small.X, small.y, 100)
    broken = small.X.copy()
    broken[321, 2] = np.nan
    zarr_of_chunks(folder / "tables" / "broken.zarr", broken, small.y, 100)
    for name in ("models", "tables"):
        os.symlink(folder / "secret", folder / name / "escape")
    return folder


# Not of the session: a service holds BLAS at one thread while it runs, and other tests are about that number.
@pytest.fixture(scope="module")
def running(dask_cluster: Cluster, folder: Path) -> Iterator[Live]:
    found = Live(settings_of(folder, dask_cluster.address))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def asking(running: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        yield client
