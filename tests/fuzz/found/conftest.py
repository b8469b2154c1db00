"""A yard for each finding alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.limits import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard")
