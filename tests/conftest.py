"""What every test shares: Hypothesis profiles and the real data sets that may lie beside the repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

# Deterministic and without a deadline: a busy machine is no failure. HYPOTHESIS_PROFILE=thorough digs deeper.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Mapping[str, NDArray[Any]]]:
    """``shared_data("abalone")`` is the .npz of that name in ``../shared/data``, or in STREAMKERNEL_DATA."""
    folder = Path(os.environ.get("STREAMKERNEL_DATA", REPOSITORY.parent / "shared" / "data"))

    def load(name: str) -> Mapping[str, NDArray[Any]]:
        path = folder / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"data set {name} is not in {folder}; name its folder with STREAMKERNEL_DATA")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load
