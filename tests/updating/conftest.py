"""A model, and a store of the rows that it was fitted to."""

from __future__ import annotations

from pathlib import Path

import pytest
from updates import FITTED, X, Y, fit, store_of_fitted_rows

from streamkernel import open_table
from streamkernel.models import RidgeModel


@pytest.fixture(scope="session")
def fitted() -> RidgeModel:
    """On the first rows, in memory."""
    return fit(open_table(X[:FITTED], Y[:FITTED]))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_of_fitted_rows(tmp_path / "store")
