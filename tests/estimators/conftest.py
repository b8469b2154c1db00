"""A model, and a store of the rows that it was fitted to, for the tests of updates."""

from __future__ import annotations

from pathlib import Path

import pytest
from updates import FITTED, X, Y, fit

from streamkernel import ingest, open_table
from streamkernel.models import RidgeModel


@pytest.fixture(scope="session")
def fitted() -> RidgeModel:
    """On the first rows, in memory."""
    return fit(open_table(X[:FITTED], Y[:FITTED]))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Half of the rows, in float64, the last chunk not full."""
    ingest(open_table(X[:FITTED], Y[:FITTED]), tmp_path / "store", dtype="float64", chunk_rows=200)
    return tmp_path / "store"
