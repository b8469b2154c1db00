"""Folds by group and by time from the sums of one sweep: NumPy's errors on the same rows and basis, honest choices."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from comparison.shared_fits import GIVEN, PLAIN, features_of, models_of, request_of, ridge_errors
from slow_cases import slow_but

from streamkernel import GaussianProcessRegressor, KernelRidge, KernelRidgeClassifier, cross_validate, open_table
from streamkernel.comparison.cross_validation import CrossValidation
from streamkernel.engine import Silent, ThreadExecutor
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.table.ingest import ingest
from streamkernel.table.parts.weights import part_numbers

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

RNG = np.random.default_rng(17)
M, N = 17_000, 20
X = RNG.standard_normal((M, 2))
TIMES = RNG.permutation(M).astype(float) // 3
GROUPS = RNG.integers(0, 90, M)
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + TIMES / M + 0.3 * RNG.standard_normal(M) + 0.2 * np.sin(GROUPS)
LABELS = np.where(Y > 0.8, "c", np.where(Y > -0.2, "b", "a"))
SPLITS: dict[str, dict[str, Any]] = {"time": {"time": TIMES}, "group": {"groups": GROUPS}}
RIDGE = KernelRidge(N, alpha="cv", **PLAIN)


def fitted_to(by: str, part: Any, fold: int) -> tuple[Any, Any]:
    """Masks of the rows that fold v is fitted to, and that it leaves out."""
    return (part <= fold, part == fold + 1) if by == "time" else (part != fold, part == fold)


@pytest.mark.parametrize(
    ("by", "alpha"),
    slow_but([("time", "cv"), ("group", "gcv"), ("group", 0.5)], product(SPLITS, ["gcv", "cv", 0.5])),
)
def test_errors_are_those_of_plain_numpy(by: str, alpha: Any) -> None:
    request = request_of(KernelRidge(N, alpha=alpha, **PLAIN), Y, rows=X, folds=3, **SPLITS[by])
    part = part_numbers(request.splits.parts, 0, M)
    rows, models = models_of(request)
    found = request.run(ThreadExecutor(), Silent())
    assert found.estimators[0].shared
    assert found.by == by
    beside = part == (0 if by == "time" else 3)
    np.testing.assert_array_equal(rows.chosen_on.weights_of(0, M) > 0.0, beside)
    for fold, (model, error) in enumerate(zip(models, found.estimators[0].errors, strict=True)):
        trained, held = fitted_to(by, part, fold)
        assert (found.fitted_rows[fold], found.left_out_rows[fold]) == (trained.sum(), held.sum())
        assert beside[model.arrays["component_indices"]].all()
        square, count = ridge_errors(features_of(model, X), Y, trained, held, model.record.alpha)
        np.testing.assert_allclose(error, np.sqrt(square / count), rtol=1e-6)


@pytest.mark.parametrize("by", SPLITS)
def test_alpha_is_chosen_by_rows_that_a_fit_sees(by: str) -> None:
    """By time by the fold before, predicted from what is before it; by group by the fold after."""
    request = request_of(RIDGE, Y, rows=X, folds=3, **SPLITS[by])
    part = part_numbers(request.splits.parts, 0, M)
    _, models = models_of(request)
    for fold, model in enumerate(models):
        trained, _ = fitted_to(by, part, fold)
        inner = {"time": [[], [1], [2]], "group": [[1], [2], [0]]}[by][fold]
        own = model.record.validation
        if not inner:  # a quarter of the distinct rows of the first part
            assert own.rows == pytest.approx(trained.sum() / 4, rel=0.2)
            continue
        assert own.folds == len(inner)
        assert own.rows == np.isin(part, inner).sum()
        G = features_of(model, X)
        for alpha, known in zip(own.alphas, own.errors, strict=True):
            sums = [ridge_errors(G, Y, trained & (part != u), part == u, alpha) for u in inner]
            expected = sum(each[0] for each in sums) / sum(each[1] for each in sums) / model.record.target_scale[0] ** 2
            np.testing.assert_allclose(known, expected, rtol=1e-6)


ESTIMATORS: dict[str, Any] = {
    "ridge": RIDGE,
    "gcv": KernelRidge(N, alpha="gcv", fit_intercept=False, **PLAIN),
    "classes": KernelRidgeClassifier(N, alpha="cv", **PLAIN),
    "gp": GaussianProcessRegressor(N, **GIVEN),
    "dtc": GaussianProcessRegressor(N, approximation="dtc", lengthscale=1.0),
}
# Each estimator with one of the splits: who is fitted to which rows is told in one place for all estimators.
QUICK = [("time", "ridge"), ("group", "gcv"), ("time", "classes"), ("group", "gp"), ("time", "dtc")]


@pytest.mark.parametrize(("by", "name"), slow_but(QUICK, product(SPLITS, ESTIMATORS)))
def test_no_row_that_is_left_out_has_a_part_in_a_model(by: str, name: str) -> None:
    """Other targets of fold 1, and by time of all after it, change no model that must not know them."""
    y = LABELS if name == "classes" else Y
    request = request_of(ESTIMATORS[name], y, rows=X, folds=3, **SPLITS[by])
    part = part_numbers(request.splits.parts, 0, M)
    unseen = part >= 2 if by == "time" else part == 1
    other = np.where(unseen, "a" if name == "classes" else 50.0, y)
    _, models = models_of(request)
    _, changed = models_of(request_of(ESTIMATORS[name], other, rows=X, folds=3, **SPLITS[by]))
    for at, (model, again) in enumerate(zip(models, changed, strict=True)):
        for array in ("component_indices", "components"):
            np.testing.assert_array_equal(model.arrays[array], again.arrays[array])
        same = at <= 1 if by == "time" else at == 1
        close = np.allclose(model.arrays["dual_coef"], again.arrays["dual_coef"], rtol=1e-4, atol=1e-5)
        assert close == same
    assert models[1].record.kernel == changed[1].record.kernel


# Of each kind of targets and of errors one, and both splits: the test before has the others.
@pytest.mark.parametrize(
    ("by", "name"), slow_but([("time", "ridge"), ("time", "classes"), ("group", "gp")], product(SPLITS, ESTIMATORS))
)
def test_errors_are_about_those_of_fits_of_their_own(by: str, name: str) -> None:
    y, weights = LABELS if name == "classes" else Y, RNG.uniform(0.5, 2.0, M)
    request = request_of(ESTIMATORS[name], y, rows=X, folds=3, weights=weights, **SPLITS[by])
    found = request.run(ThreadExecutor(), Silent())
    alone = CrossValidation(request.candidates, request.splits, request.error).run(ThreadExecutor(), Silent())
    assert (found.estimators[0].shared, alone.estimators[0].shared) == (True, False)
    assert (found.left_out_rows, found.fitted_rows) == (alone.left_out_rows, alone.fitted_rows)
    np.testing.assert_allclose(found.estimators[0].errors, alone.estimators[0].errors, rtol=0.08)


def test_a_column_of_a_store_and_any_chunks(tmp_path: Any) -> None:
    """The column is read with the features, and is none; weights in another order of chunks change nothing."""
    rows = np.column_stack([X, TIMES])
    ingest(open_table(rows, Y), tmp_path / "store", chunk_rows=700, dtype="float64")
    stored, given = (
        cross_validate(tmp_path / "store", RIDGE, 3, time="x2", share=True),
        cross_validate(X, RIDGE, 3, y=Y, time=TIMES, share=True),
    )
    assert stored.estimators[0].shared
    np.testing.assert_allclose(stored.estimators[0].errors, given.estimators[0].errors, rtol=1e-6)


def test_by_time_fewer_rows_have_folds_of_the_same_cut() -> None:
    """Sharing moves no fold by time, as a part is before all of them in any case."""
    few, plain = slice(0, 3000), KernelRidge(3, **PLAIN)
    found = cross_validate(X[few], RIDGE, 3, y=Y[few], time=TIMES[few], share=True)
    assert not found.estimators[0].shared
    assert found.fitted_rows == cross_validate(X[few], plain, 3, y=Y[few], time=TIMES[few]).fitted_rows
    shared = cross_validate(X, RIDGE, 3, y=Y, time=TIMES, share=True)
    assert shared.estimators[0].shared
    assert shared.fitted_rows == cross_validate(X, plain, 3, y=Y, time=TIMES).fitted_rows


def test_a_past_of_one_class_is_refused() -> None:
    labels = np.where(TIMES < 500, "a", LABELS)
    late = np.where(TIMES < 4500, "a", LABELS)
    classifier = ESTIMATORS["classes"]
    found = cross_validate(X, classifier, 3, y=np.where(TIMES < 500, "b", labels), time=TIMES, share=True)
    assert found.estimators[0].shared
    with pytest.raises(SingleClassError, match="one class only"):
        cross_validate(X, classifier, 3, y=late, time=TIMES, share=True)


def test_each_fit_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    request = request_of(RIDGE, Y, rows=X, folds=3, time=TIMES)
    [each] = request.candidates
    shared = each.kind.folds
    assert shared is not None

    def counted(*given: Any) -> Any:
        planned.append(given[-1])
        return shared.plan(*given)

    monkeypatch.setattr(type(each.kind), "folds", replace(shared, plan=counted))
    request.run(ThreadExecutor(), Silent())
    assert planned == [None]


def test_classes_of_one_fold_each() -> None:
    """A fold without which one class is left chooses no alpha; where there is no other, there are no probabilities."""
    [two, three] = (
        part_numbers(request_of(RIDGE, Y, rows=X, folds=k, groups=GROUPS).splits.parts, 0, M) for k in (2, 3)
    )
    lacking, found = (
        np.where((part == 0) & (X[:, 0] > 1.0), "b", np.where((part == 1) & (X[:, 0] < -1.0), "c", "a"))
        for part in (two, three)
    )
    classifier = ESTIMATORS["classes"]
    [each] = cross_validate(X, classifier, 2, y=lacking, groups=GROUPS, share=True).estimators
    assert each.shared
    with pytest.raises(ParameterError, match=r"fold 1 of ridge-classifier has no log_loss, but .* or other folds"):
        cross_validate(X, classifier, 2, y=lacking, groups=GROUPS, share=True, error="log_loss")
    losses = cross_validate(X, classifier, 3, y=found, groups=GROUPS, share=True, error="log_loss").estimators[0].errors
    assert all(np.isfinite(losses))
