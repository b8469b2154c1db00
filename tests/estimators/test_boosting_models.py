"""Models of boosting: probabilities, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimators.boosting_problem import GIVEN, SMALL, THREE, X, Y

from streamkernel import KernelBoostingClassifier
from streamkernel.errors import ModelFormatError, NumericalError, ParameterError
from streamkernel.kinds import KINDS, settings_of
from streamkernel.models.boosting import BoostingModel


@pytest.mark.parametrize(
    ("labels", "calibration"),
    [
        pytest.param(Y, "platt", id="two-platt"),
        pytest.param(THREE, "isotonic", id="three-isotonic"),
        pytest.param(Y, "isotonic", id="two-isotonic", marks=pytest.mark.slow),
        pytest.param(THREE, "platt", id="three-platt", marks=pytest.mark.slow),
    ],
)
def test_probabilities_of_held_out_rows_are_shares(calibration: str, labels: Any) -> None:
    rng = np.random.default_rng(5)
    rows = rng.uniform(-2.0, 2.0, (3000, 3))
    given = np.digitize(rows[:, 0] + rows[:, 1] + rng.standard_normal(3000), [0.0] if labels is Y else [-1.0, 1.0])
    model = KernelBoostingClassifier(
        **GIVEN, member_rows=150, members=15, learner="kmp", n_components=10, validation=0.5, calibration=calibration
    ).fit(rows[:2000], given[:2000])
    p = model.predict_proba(rows[2000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.mean(axis=0) == pytest.approx(np.bincount(given[2000:]) / 1000, abs=0.06)
    own = p[np.arange(1000), given[2000:]]
    assert -np.log(own).mean() < -np.log(np.bincount(given[:2000]) / 2000)[given[2000:]].mean() - 0.1
    right = model.predict(rows[2000:]) == given[2000:]
    assert right.mean() == pytest.approx(p.max(axis=1).mean(), abs=0.1)


def test_a_model_without_calibration_has_no_probabilities() -> None:
    assert not hasattr(KernelBoostingClassifier(**SMALL).fit(X, Y), "predict_proba")


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL, calibration="isotonic").fit(X, THREE)
    model.save(tmp_path / "model.zarr")
    other = KernelBoostingClassifier.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.member_weights_, model.member_weights_)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("member_ends", lambda ends: ends[::-1].copy()),
        ("member_positions", lambda positions: positions + 10_000),
        ("member_weights", lambda weights: -weights),
        ("dual_coef", lambda c: np.hstack([c, c])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, name: str, change: Any) -> None:
    model = KernelBoostingClassifier(**SMALL).fit(X, Y).model_
    broken = BoostingModel(model.record, {**model.arrays, name: change(model.arrays[name])})
    with pytest.raises(ModelFormatError):
        broken.save(tmp_path / "model.zarr")


@pytest.mark.parametrize(
    "change",
    [
        lambda solution: {"members": ()},
        lambda solution: {"members": tuple(each.changed(factor=1e5) for each in solution.members)},
        lambda solution: {"members": tuple(each.changed(error=-1.0) for each in solution.members)},
    ],
)
def test_members_of_a_record_that_do_not_fit_are_refused(tmp_path: Path, change: Any) -> None:
    model = KernelBoostingClassifier(**SMALL, voting="hard").fit(X, Y).model_
    found = model.record.solution
    broken = BoostingModel(model.record.changed(solution=found.changed(**change(found))), model.arrays)
    with pytest.raises(ModelFormatError):
        broken.save(tmp_path / "model.zarr")


def test_curves_without_knots_are_refused(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL, calibration="isotonic").fit(X, Y).model_
    empty = {name: model.arrays[name][:, :0] for name in ("calibration_knots", "calibration_values")}
    with pytest.raises(ModelFormatError, match="calibration_knots"):
        BoostingModel(model.record, {**model.arrays, **empty}).save(tmp_path / "model.zarr")


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_rows": 1},
        {"member_rows": 2.5},
        {"member_rows": 0},
        {"member_rows": 30_000},
        {"members": 0},
        {"method": "bagging"},
        {"learner": "tree"},
        {"C": 0.0},
        {"member_alpha": -1.0},
        {"validation": 0.6},
        {"validation": 0.0, "patience": 2},
        {"validation": 0.0, "calibration": "platt"},
        {"search_rows": 10},
        {"voting": "soft", "method": "filtering"},
        {"voting": "weak"},
        {"masses": "bounded", "method": "filtering"},
        {"masses": "heavy"},
        {"member_rows": 100, "n_components": 50},
        {"kernel": "sigmoid"},
    ],
)
def test_bad_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        KernelBoostingClassifier(**{**GIVEN, **wrong}).fit(X, Y)


def test_a_ridge_that_is_lost_in_rounding_is_named() -> None:
    """Rows that come twice have a singular kernel matrix."""
    twice = {**GIVEN, "learner": "ridge", "member_alpha": 1e-30, "member_rows": 100, "validation": 0.0}
    with pytest.raises(NumericalError, match="a larger member_alpha"), pytest.warns(match="60 of 120 rows"):
        KernelBoostingClassifier(**twice).fit(np.repeat(X[:60], 2, axis=0), np.repeat(Y[:60], 2))


@pytest.mark.parametrize("given", [{"rule": "uniform"}, {"rule_options": {"pool": "shared"}}, {"tol": np.ones(2)}])
def test_options_of_the_choice_of_a_basis_are_refused(given: dict[str, Any]) -> None:
    """From the command line and of jobs: the estimator does not have them."""
    with pytest.raises(ParameterError, match=next(iter(given))):
        settings_of(KINDS["boosting"], given)


@pytest.mark.parametrize("scale", ["robust", "rank", "standard"])
def test_points_in_the_units_of_the_columns_are_those_of_all_members(tmp_path: Path, scale: str) -> None:
    """With a metric, or a scaling that cannot be inverted, the model stores its rows as they were, each once."""
    given: dict[str, Any] = {"scale": scale, "members": 3, "member_rows": 40, "validation": 0, "lengthscale": 1.0}
    metric = [[1.0, 0.0], [0.5, 1.0], [0.0, 2.0]] if scale == "standard" else "none"
    model = KernelBoostingClassifier(kernel="gaussian", metric=metric, **given).fit(X, Y)
    np.testing.assert_allclose(model.components_, X[model.component_indices_], atol=1e-9)
    model.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(KernelBoostingClassifier.load(tmp_path / "model.zarr").predict(X), model.predict(X))
