"""A basis that is smaller once its hyper-parameters are those of all rows: what is told of it is told of its points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor
from streamkernel.fits.gaussian import gaussian as tuning
from streamkernel.store import read_bundle

KEPT = np.array([0, 2, 3, 7, 11])


@pytest.mark.parametrize("approximation", [pytest.param("dtc", marks=pytest.mark.slow), "fitc"])
def test_points_that_depend_on_others_leave_with_what_they_gained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approximation: str
) -> None:
    data = data_sets.friedman(300, 5, 0.5, 0)
    model = GaussianProcessRegressor(12, approximation=approximation, tune="full", random_state=0)
    plain, polished, seen = tuning.polish, tuning.GaussianTuner.polished, []

    def polish(found: Any, sweep: Any, basis: Any, **options: Any) -> Any:
        # As if these alone had pivots under the kernel that was found.
        return plain(found, sweep, basis.take(KEPT), **options)

    def polished_of(self: Any, chosen: Any) -> Any:
        seen.append(chosen.selection)
        return polished(self, chosen)

    monkeypatch.setattr(tuning, "polish", polish)
    monkeypatch.setattr(tuning.GaussianTuner, "polished", polished_of)
    model.fit(data.X, data.y)
    model.save(tmp_path / "model")
    arrays = read_bundle(tmp_path / "model", model.model_.KIND).arrays
    (whole,) = seen
    np.testing.assert_array_equal(arrays["components"], whole.basis.points[KEPT])
    np.testing.assert_array_equal(arrays["component_indices"], whole.basis.rows[KEPT])
    np.testing.assert_array_equal(arrays["gains"], whole.gains[KEPT])
    loaded = GaussianProcessRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(data.X[:9]), model.predict(data.X[:9]))
