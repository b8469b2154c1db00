"""What is read out of a model, against the numbers it was fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamkernel.errors import ParameterError, ShapeMismatchError
from streamkernel.models import RidgeModel
from streamkernel.report.facts.fit import (
    ROUNDING,
    Absent,
    gcv_curve,
    gcv_error,
    lengthscale_curve,
    memory_use,
    sweep_times,
    trace_curve,
)
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.figures.predictions import histogram
from streamkernel.report.pages import page_of


def test_trace_curve_ends_at_the_certificate(regression: RidgeModel) -> None:
    curve = trace_curve(regression)
    assert not isinstance(curve, Absent)
    certificate = regression.config["certificate"]
    assert curve.relative[0] == 1.0
    assert curve.relative[-1] == pytest.approx(certificate["relative_residual_trace"], rel=1e-12)
    assert curve.left == certificate["relative_residual_trace"]
    assert len(curve.size) == regression.config["basis_size"] + 1
    measured = curve.measured
    assert len(measured) > 1
    for size, share in measured:
        assert curve.relative[size] == pytest.approx(share, rel=1e-6)


def test_a_vanished_residual_is_drawn_at_rounding(regression: RidgeModel, changed: Any) -> None:
    path = regression.arrays["residual_path"].copy()
    path[-3:] = 0.0
    exact = {"trace": path[0], "residual_trace": 0.0, "relative_residual_trace": 0.0}
    curve = trace_curve(changed(regression, {"certificate": exact}, {"residual_path": path}))
    assert not isinstance(curve, Absent)
    assert curve.vanished
    assert (curve.relative[-3:] == ROUNDING).all()


def test_gcv_error_is_in_units_of_the_target(regression: RidgeModel) -> None:
    curve = gcv_curve(regression)
    assert not isinstance(curve, Absent)
    # The noise of the table has deviation 1, and 40 functions explain most of the rest.
    assert 0.9 < curve.chosen_error < 3.0
    assert curve.chosen_error <= 1.01 * curve.error.min()
    check = check_pairs(regression)
    assert isinstance(check, Targets)
    assert check.where == "held-out rows"
    assert check.targets[0].rmse == pytest.approx(curve.chosen_error, rel=0.2)


def test_gcv_curve_leaves_out_what_is_not_finite(regression: RidgeModel, changed: Any) -> None:
    scores = regression.arrays["gcv_scores"].copy()
    scores[:5], scores[5] = np.inf, 0.0
    curve = gcv_curve(changed(regression, arrays={"gcv_scores": scores}))
    assert not isinstance(curve, Absent)
    assert curve.left_out == 6
    assert np.isfinite(curve.error).all()
    assert isinstance(gcv_curve(changed(regression, arrays={"gcv_scores": np.full(len(scores), np.inf)})), Absent)
    assert isinstance(gcv_curve(changed(regression, without=("gcv_scores",))), Absent)


def test_several_targets_are_averaged_in_deviations(several: RidgeModel) -> None:
    error, unit = gcv_error(several, 6.0)
    assert error == 1.0
    assert "standard deviations" in unit


def test_the_models_lengthscale_is_on_its_curve_and_nearly_lowest(regression: RidgeModel, several: RidgeModel) -> None:
    curve = lengthscale_curve(regression)
    assert not isinstance(curve, Absent)
    assert curve.chosen == regression.config["lengthscale"]
    # The errors are roots of the scores, which are equal within 1 %.
    assert curve.error[curve.lengthscale.tolist().index(curve.chosen)] ** 2 <= 1.01 * curve.error.min() ** 2
    absent = lengthscale_curve(several)
    assert isinstance(absent, Absent)
    assert "median" in absent.reason


def test_costs(regression: RidgeModel, changed: Any) -> None:
    times = sweep_times(regression)
    assert not isinstance(times, Absent)
    assert sum(sweep.seconds for sweep in times.sweeps) + times.between == pytest.approx(times.total)
    assert len(times.sweeps) == regression.config["sweep_count"]
    bare = changed(regression, without=("run",))
    assert isinstance(sweep_times(bare), Absent)
    assert isinstance(memory_use(bare), Absent)


def test_errors_of_a_target(regression: RidgeModel) -> None:
    true = np.array([[0.0], [1.0], [2.0], [np.nan]])
    predicted = np.array([[0.0], [1.0], [5.0], [0.0]])
    check = check_pairs(regression, {"kind": "rows 0:4 of <b>", "true": true, "predicted": predicted})
    assert isinstance(check, Targets)
    target = check.targets[0]
    assert (target.rmse, target.mae, target.left_out) == (pytest.approx(3**0.5), 1.0, 1)
    assert target.r2 == pytest.approx(1.0 - 3.0 / (2.0 / 3.0))
    assert check.rows == "4 rows (rows 0:4 of <b>)"
    assert check.where == "the rows given"


def test_a_constant_target_has_no_r2(regression: RidgeModel) -> None:
    ones = np.full((5, 1), 0.1)
    check = check_pairs(regression, {"kind": "training", "true": ones, "predicted": ones})
    assert isinstance(check, Targets)
    assert np.isnan(check.targets[0].r2)
    assert check.where == "training rows"


def test_confusion_counts_and_margins(classifier: RidgeModel) -> None:
    true = np.eye(4)[[0, 1, 2, 3, 3]]
    scores = np.eye(4)[[0, 1, 2, 0, 3]] * 0.75
    check = check_pairs(classifier, {"kind": "held-out", "true": true, "predicted": scores})
    assert isinstance(check, ClassPairs)
    assert check.counts.sum() == 5
    assert check.counts[3, 0] == 1
    assert check.accuracy == 0.8
    assert check.baseline == 0.4
    assert not isinstance(check.margins, Absent)
    assert check.margins.tolist() == [0.75, 0.75, 0.75, -0.75, 0.75]


def test_class_labels_do_in_place_of_scores(classifier: RidgeModel) -> None:
    labels = np.array(classifier.config["classes"])
    check = check_pairs(classifier, {"kind": "training", "true": labels, "predicted": labels[::-1]})
    assert isinstance(check, ClassPairs)
    assert check.accuracy == 0.0
    assert isinstance(check.margins, Absent)
    with pytest.raises(ShapeMismatchError, match="none of the 4 classes"):
        check_pairs(classifier, {"kind": "training", "true": labels, "predicted": np.array(["?"] * 4)})


def test_many_classes_are_merged_without_losing_rows(classifier: RidgeModel, changed: Any) -> None:
    k = 300
    rng = np.random.default_rng(0)
    true, predicted = np.eye(k)[rng.integers(k, size=2000)], rng.standard_normal((2000, k))
    many = changed(classifier, {"classes": list(range(k))}, {"check_true": true, "check_predicted": predicted})
    check = check_pairs(many)
    assert isinstance(check, ClassPairs)
    assert check.counts.shape == (20, 20)
    assert check.counts.sum() == 2000
    assert check.labels[-1] == "281 others"
    assert check.n_classes == k


def test_pairs_that_do_not_fit_are_refused(regression: RidgeModel, classifier: RidgeModel) -> None:
    with pytest.raises(ParameterError, match="pairs lacks kind, predicted"):
        check_pairs(regression, {"true": np.zeros((3, 1))})
    with pytest.raises(ShapeMismatchError, match=r"\(3, 1\).*\(2, 1\)"):
        check_pairs(regression, {"kind": "training", "true": np.zeros((3, 1)), "predicted": np.zeros((2, 1))})
    with pytest.raises(ShapeMismatchError, match="2 targets"):
        check_pairs(regression, {"kind": "training", "true": np.zeros((3, 2)), "predicted": np.zeros((3, 2))})
    with pytest.raises(ShapeMismatchError, match="3 classes"):
        check_pairs(classifier, {"kind": "training", "true": np.eye(3), "predicted": np.eye(3)})


def test_histogram_counts_every_value_and_survives_outliers() -> None:
    values = np.concatenate([np.random.default_rng(0).standard_normal(1000), [1e9]])
    edges, counts, beyond = histogram(values)
    assert counts.sum() == 1001
    assert beyond == 1
    assert edges[-1] < 100.0
    for equal in (np.zeros(7), np.full(7, 3.5)):
        edges, counts, beyond = histogram(equal)
        assert (counts.sum(), beyond) == (7, 0)
        assert edges[0] < equal[0] < edges[-1]


def test_notices_name_what_is_wrong_and_nothing_else(regression: RidgeModel, changed: Any) -> None:
    fine = {**regression.config["run"], "planned_memory_bytes": 2, "peak_memory_bytes": 1}
    sound = changed(regression, {"run": fine})
    assert page_of(sound).notices == []
    over = changed(regression, {"run": {**fine, "peak_memory_bytes": 3}})
    assert ["Memory" in notice for notice in page_of(over).notices] == [True]
    far = changed(sound, arrays={"check_predicted": 100.0 + regression.arrays["check_predicted"]})
    assert ["far above" in notice for notice in page_of(far).notices] == [True]
    lost = changed(sound, {"solution": {**regression.config["solution"], "gcv": 0.0}})
    assert any("digits were lost" in notice for notice in page_of(lost).notices)
    path = regression.arrays["residual_path"].copy()
    path[-5] = path[-1] / 10.0
    rising = changed(sound, arrays={"residual_path": path})
    assert ["rises" in notice for notice in page_of(rising).notices] == [True]
