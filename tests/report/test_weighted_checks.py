"""Reports of weighted rows: errors, calibration and counts of classes are those of the repeated rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weighted_rows import CASES, Case, assert_same

from streamkernel import GaussianProcessClassifier, KernelRidge, KernelRidgeClassifier, open_table
from streamkernel.errors import ShapeMismatchError
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions.scores.standard_errors import without_errors
from streamkernel.report import write_report
from streamkernel.report.facts.calibration import ProbabilityCheck, distribution_check, row_intervals
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs, checked_rows
from streamkernel.report.facts.tuning import evidence_unit

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

TITLES = ("ridge", "ridge-classifier, labels, gcv", "gp, fitc", "gp, two targets", "gp-classifier", "poisson")
CHECKED = [case for case in CASES if case.title in TITLES]


def facts(model: PredictingModel) -> dict[str, Any]:
    found, check = check_pairs(model), distribution_check(model)
    assert not isinstance(found, Absent)
    numbers: dict[str, Any] = {}
    if isinstance(found, Targets):
        numbers |= {name: [getattr(each, name) for each in found.targets] for name in ("rmse", "mae", "r2")}
    else:
        shares = found.counts / found.counts.sum()
        numbers |= {"accuracy": found.accuracy, "baseline": found.baseline, "shares": shares}
    if check is not None and not isinstance(check, Absent):
        scalars = without_errors(check.calibration.scalars).items()
        numbers |= {name: value for name, value in scalars if name not in ("rows", "weight", "effective_rows")}
        if isinstance(check, ProbabilityCheck):
            numbers |= {"predicted": check.calibration.predicted, "observed": check.calibration.observed}
        else:
            numbers["transform"] = check.transform / check.transform.sum()
    intervals = row_intervals(model)
    return numbers if intervals is None else {**numbers, "inside": intervals.inside}


@pytest.mark.parametrize("case", CHECKED, ids=[case.title for case in CHECKED])
def test_facts_are_those_of_repeated_rows(case: Case) -> None:
    rows = case.rows()
    weighted, repeated = (each.model_ for each in case.fitted(rows))
    w = rows.w[rows.numbers]
    np.testing.assert_array_equal(weighted.arrays["check_weight"], w)
    assert "check_weight" not in repeated.arrays
    found, wanted = facts(weighted), facts(repeated)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        # Counts of classes are rounded to rows of equal weight.
        assert_same(found[name], value, name, 0.05 if name == "shares" else 1e-7)
    checked, check = checked_rows(weighted), distribution_check(weighted)
    assert not isinstance(checked, Absent)
    equal = round(w.sum() ** 2 / (w**2).sum())
    assert f"{len(w)} training rows" in checked.rows
    assert f"as many as {equal} of equal weight" in checked.rows
    if check is not None:
        assert not isinstance(check, Absent)
        assert check.count == equal


@pytest.mark.parametrize("case", [case for case in CHECKED if "ridge" not in case.title], ids=lambda case: case.title)
def test_evidence_of_a_row_is_that_of_repeated_rows(case: Case) -> None:
    weighted, repeated = (each.model_ for each in case.fitted(case.rows()))
    (_, shares), (_, rows) = evidence_unit(weighted), evidence_unit(repeated)
    assert shares == pytest.approx(rows)
    found, wanted = (each.record.solution.log_evidence / shares for each in (weighted, repeated))
    assert found == pytest.approx(wanted, rel=1e-6)


def test_a_page_tells_of_the_weights(tmp_path: Path) -> None:
    case = next(each for each in CHECKED if each.title == "gp, fitc")
    weighted, _ = case.fitted(case.rows())
    weighted.save(tmp_path / "model.zarr")
    loaded = type(weighted).load(tmp_path / "model.zarr").model_
    write_report(loaded, tmp_path / "page.html")
    assert "of equal weight" in (tmp_path / "page.html").read_text()


def test_weights_of_classes_are_no_weights_of_the_check() -> None:
    """Scores do not count them either; rows of weight 0 are left out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.where(X[:, 0] > 1.0, "rare", "usual")
    w = rng.integers(0, 3, 200).astype(float)
    model = KernelRidgeClassifier(10, class_weight="balanced").fit(X, y, sample_weight=w).model_
    np.testing.assert_array_equal(model.arrays["check_weight"], w[w > 0])
    model = KernelRidgeClassifier(10, class_weight="balanced").fit(X, y).model_
    assert "check_weight" not in model.arrays
    assert len(model.arrays["check_true"]) == 200


def test_held_out_rows_have_their_weights() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 2)), rng.integers(1, 4, 300).astype(float)
    gp = GaussianProcessClassifier(10, lengthscale=1.0, signal_variance=1.0, tune="none")
    gp.fit(open_table(X, X[:, 0] > 0.0, classify=True, weights=w).slice(0, 200))
    assert gp.model_.record.check.kind == "training"
    np.testing.assert_array_equal(gp.model_.arrays["check_weight"], w[:200])


def test_an_update_replaces_the_weights_of_the_check() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((120, 2)), rng.integers(1, 4, 120).astype(float)
    fitted = KernelRidge(8, lengthscale=1.0, alpha=0.1).fit(X, X[:, 0], sample_weight=w)
    assert len(fitted.model_.arrays["check_weight"]) == 120
    more = rng.standard_normal((50, 2))
    fitted.update(more, more[:, 0])
    assert "check_weight" not in fitted.model_.arrays
    fitted.update(more + 9.0, more[:, 0], sample_weight=w[:50])
    assert len(fitted.model_.arrays["check_weight"]) == len(fitted.model_.arrays["check_true"]) == 50


@pytest.mark.parametrize("weight", [np.ones(3), -np.ones(4), np.full(4, np.nan)])
def test_weights_that_do_not_fit_are_refused(weight: Any) -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    model = KernelRidge(5, lengthscale=1.0, alpha=0.1).fit(X, X[:, 0]).model_
    pairs = {"kind": "some", "true": X[:4, :1], "predicted": X[:4, :1], "weight": weight}
    with pytest.raises(ShapeMismatchError, match="one >= 0 for each row"):
        checked_rows(model, pairs)
    found = check_pairs(model, {**pairs, "predicted": X[:4, 1:], "weight": [0.0, 2.0, 0.0, 2.0]})
    assert isinstance(found, Targets)
    residual = (X[:4, 1] - X[:4, 0])[[1, 3]]
    assert found.targets[0].rmse == pytest.approx(np.sqrt((residual**2).mean()))
    assert not isinstance(found, ClassPairs)
