"""What every kind of model and estimator must have is asked for when one is made, not when it is missed."""

from __future__ import annotations

import pytest

from streamkernel.estimators.base import PredictingEstimator, SavedEstimator
from streamkernel.models.predicting import PredictingModel


@pytest.mark.parametrize(
    ("base", "missing"),
    [
        (PredictingModel, {"predictions", "outputs", "scores", "solution_fields"}),
        (SavedEstimator, {"_adopt"}),
        (PredictingEstimator, {"_fit"}),
    ],
)
def test_a_kind_that_lacks_a_method_cannot_be_made(base: type, missing: set[str]) -> None:
    incomplete = type("Incomplete", (base,), {})
    with pytest.raises(TypeError, match="abstract") as caught:
        incomplete()
    assert all(name in str(caught.value) for name in missing)
