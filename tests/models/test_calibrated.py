"""Curves from values to probabilities that are not whole are refused, by every kind that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import KernelBoostingClassifier, KernelLPClassifier, KernelSVC
from streamkernel.errors import ModelFormatError

RNG = np.random.default_rng(2)
X = RNG.standard_normal((300, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(300) > 0.0, "yes", "no")
KINDS: dict[str, Any] = {
    "svc": KernelSVC(20, C=[0.3, 3.0], calibration="isotonic"),
    "lp": KernelLPClassifier(C=[0.3, 3.0], calibration="isotonic"),
    "boosting": KernelBoostingClassifier(members=2, member_rows=60, calibration="isotonic"),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param].fit(X, Y).model_


def test_curves_without_knots(model: Any, tmp_path: Path) -> None:
    empty = {name: model.arrays[name][:, :0] for name in ("calibration_knots", "calibration_values")}
    with pytest.raises(ModelFormatError, match=r"'calibration_knots' has the shape \(1, 0\) for 1 functions"):
        type(model)(model.record, {**model.arrays, **empty}).save(tmp_path / "m")


def test_one_half_of_the_curves(model: Any, tmp_path: Path) -> None:
    half = {name: values for name, values in model.arrays.items() if name != "calibration_values"}
    with pytest.raises(ModelFormatError, match="'calibration_values', and lacks the other"):
        type(model)(model.record, half).save(tmp_path / "m")


def test_curves_of_other_functions(model: Any, tmp_path: Path) -> None:
    twice = {name: np.tile(model.arrays[name], (2, 1)) for name in ("calibration_knots", "calibration_values")}
    with pytest.raises(ModelFormatError, match=r"for 1 functions|shapes of its arrays disagree"):
        type(model)(model.record, {**model.arrays, **twice}).save(tmp_path / "m")


def test_the_model_itself_is_whole(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    assert type(model).load(tmp_path / "m").digest == model.digest
