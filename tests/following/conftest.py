"""A store of the rows that the followed model was fitted to."""

from __future__ import annotations

from pathlib import Path

import pytest
from updates import store_of_fitted_rows


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_of_fitted_rows(tmp_path / "store")
