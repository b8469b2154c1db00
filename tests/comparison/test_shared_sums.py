"""Folds from the sums of one sweep: NumPy's errors, no look at the rows that are left out, what cannot share sums."""

from __future__ import annotations

from functools import partial
from typing import Any

import data_sets
import numpy as np
import pytest
from comparison import shared_fits
from comparison.shared_fits import GIVEN, PLAIN, features_of, models_of, ridge_errors
from slow_cases import slow_but

from streamkernel import (
    GaussianProcessRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVR,
    cross_validate,
    open_table,
)
from streamkernel.comparison.candidates import candidates_of
from streamkernel.comparison.cross_validation import CrossValidation
from streamkernel.engine import Machine, MemoryLimits, Session, Silent, ThreadExecutor
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.fits import fit_ridge
from streamkernel.fits.steps import fold_rows
from streamkernel.table.ingest import ingest
from streamkernel.table.parts.search import content_parts
from streamkernel.table.parts.weights import part_numbers

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

RNG = np.random.default_rng(5)
M, K, N = 12_600, 2, 30
X = RNG.standard_normal((M, 2))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(M)
LABELS = np.where(Y > 0.8, "c", np.where(Y > -0.2, "b", "a"))
ESTIMATORS: dict[str, Any] = {
    "ridge": KernelRidge(N, alpha="cv", **PLAIN),
    "gcv": KernelRidge(N, alpha="gcv", fit_intercept=False, **PLAIN),
    "searched": KernelRidge(N, alpha="cv", lengthscale="auto", metric="none"),
    "classes": KernelRidgeClassifier(N, alpha="cv", class_weight={"a": 2.0, "b": 1.0, "c": 1.0}, **PLAIN),
    "gp": GaussianProcessRegressor(N, **GIVEN),
    "dtc": GaussianProcessRegressor(N, approximation="dtc", lengthscale=1.0),
}
MODERATE = {"ridge", "gcv", "classes", "gp", "dtc"}


class Notes(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def request_of(estimator: Any, y: Any = Y, *, rows: Any = X, folds: int = K, **options: Any) -> CrossValidation:
    return shared_fits.request_of(estimator, y, rows=rows, folds=folds, **options)


def targets_of(name: str) -> Any:
    return LABELS if name == "classes" else Y


def test_errors_are_those_of_plain_numpy() -> None:
    """alpha of each fold too: the least error on the fold after it, of a fit to neither."""
    folds, ridge = 3, KernelRidge(N, rule="rpcholesky", alpha="cv", **PLAIN)
    request = request_of(ridge, folds=folds)
    part = part_numbers(request.splits.parts, 0, M)
    _, models = models_of(request)
    found = request.run(ThreadExecutor(), Silent())
    assert found.estimators[0].shared
    assert found.left_out_rows == tuple(np.bincount(part)[:folds])
    assert found.fitted_rows == tuple(M - np.bincount(part)[:folds])
    for fold, (model, error) in enumerate(zip(models, found.estimators[0].errors, strict=True)):
        G, others = features_of(model, X), part != fold
        square, count = ridge_errors(G, Y, others, ~others, model.record.alpha)
        np.testing.assert_allclose(error, np.sqrt(square / count), rtol=1e-7)
        own = model.record.validation
        inner = [(fold + 1) % folds]  # one of four parts is as large a share as two of the eight of a fit
        assert own.folds == 1
        for alpha, known in zip(own.alphas, own.errors, strict=True):
            sums = [ridge_errors(G, Y, others & (part != u), part == u, alpha) for u in inner]
            expected = sum(each[0] for each in sums) / sum(each[1] for each in sums) / model.record.target_scale[0] ** 2
            np.testing.assert_allclose(known, expected, rtol=1e-7)
        assert own.error <= min(own.errors) * (1.0 + 1e-4)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_row_of_a_fold_has_a_part_in_its_model(name: str) -> None:
    """Other targets of a fold change its model by the rounding of the sums; choices not by a bit."""
    y = targets_of(name)
    request = request_of(ESTIMATORS[name], y)
    rows, models = models_of(request)
    part = part_numbers(request.splits.parts, 0, M)
    np.testing.assert_array_equal(rows.chosen_on.weights_of(0, M) > 0.0, part == K)
    other = np.where(part == 1, "a" if name == "classes" else 50.0, y)
    _, changed = models_of(request_of(ESTIMATORS[name], other))
    for model in models:
        assert (part[model.arrays["component_indices"]] == K).all()
    for name_of, values in models[1].arrays.items():
        again = changed[1].arrays[name_of]
        if name_of in ("component_indices", "components"):
            np.testing.assert_array_equal(again, values)
        elif name_of in ("dual_coef", "intercept", "signal_variance", "noise_variance"):
            scale = np.abs(values).max()
            np.testing.assert_allclose(again, values, rtol=1e-5, atol=1e-6 * scale, err_msg=name_of)
    assert models[1].record.kernel == changed[1].record.kernel
    assert not np.allclose(models[0].arrays["dual_coef"], changed[0].arrays["dual_coef"], rtol=1e-3)


def test_choices_are_those_of_a_fit_to_the_part_in_no_fold() -> None:
    ridge = KernelRidge(N, rule="rpcholesky", alpha="gcv", **PLAIN)
    rows, models = models_of(request_of(ridge))
    [each] = candidates_of(ridge)
    alone = fit_ridge(rows.chosen_on, each.settings, Session(ThreadExecutor()))
    for model in models:
        np.testing.assert_array_equal(model.arrays["component_indices"], alone.arrays["component_indices"])
        assert model.record.scaler == alone.record.scaler


@pytest.mark.parametrize("name", slow_but(["classes", "gp", "ridge"], sorted(MODERATE)))
def test_errors_are_about_those_of_fits_of_their_own(name: str) -> None:
    """On the same folds, from sums or not."""
    y, weights = targets_of(name), RNG.uniform(0.5, 2.0, M)
    found = cross_validate(X, ESTIMATORS[name], K, y=y, sample_weight=weights, share=True)
    request = request_of(ESTIMATORS[name], y, weights=weights)
    alone = CrossValidation(request.candidates, request.splits, request.error).run(ThreadExecutor(), Silent())
    assert (found.estimators[0].shared, alone.estimators[0].shared) == (True, False)
    assert found.left_out_rows == alone.left_out_rows
    assert found.fitted_rows == alone.fitted_rows
    np.testing.assert_allclose(found.estimators[0].errors, alone.estimators[0].errors, rtol=0.06)
    assert found.estimators[0].functions == alone.estimators[0].functions


def test_on_real_rows() -> None:
    real = data_sets.load("kin40k")
    if real is None:
        pytest.skip("needs the data sets")
    ridge = KernelRidge(40, lengthscale=2.5, metric="none", kernel="gaussian")
    kept = np.random.default_rng(0).permutation(len(real.X))[:20_000]
    rows, y = real.X[kept], np.asarray(real.y, np.float64).reshape(len(real.X), -1)[kept, 0]
    shared, alone = (cross_validate(rows, ridge, 2, y=y, share=share).estimators[0] for share in (True, False))
    assert (shared.shared, alone.shared) == (True, False)
    assert shared.mean == pytest.approx(alone.mean, rel=0.1)


def test_weights_are_repeated_rows() -> None:
    w = np.random.default_rng(2).integers(0, 3, M)
    copies = np.repeat(np.arange(M), w)
    ridge = KernelRidge(N, rule="incomplete-cholesky", alpha=0.1, **PLAIN)
    weighted = cross_validate(X, ridge, K, y=Y, sample_weight=w.astype(float), share=True).estimators[0]
    repeated = cross_validate(X[copies], ridge, K, y=Y[copies], share=True).estimators[0]
    assert weighted.shared
    assert repeated.shared
    np.testing.assert_allclose(weighted.errors, repeated.errors, rtol=1e-6)


def test_chunks_and_threads(tmp_path: Any) -> None:
    """The same bits for any number of threads, the same numbers for any chunks."""
    ridge = ESTIMATORS["ridge"]
    one, two = (request_of(ridge).run(ThreadExecutor(threads), Silent()).estimators[0] for threads in (1, 2))
    assert one.errors == two.errors
    ingest(open_table(X, Y), tmp_path / "store", chunk_rows=900, dtype="float64")
    stored = cross_validate(tmp_path / "store", ridge, K, share=True).estimators[0]
    assert stored.shared
    np.testing.assert_allclose(stored.errors, one.errors, rtol=1e-8)


def test_several_targets_and_other_errors() -> None:
    both = cross_validate(X, ESTIMATORS["ridge"], K, y=np.column_stack([Y, -Y]), share=True).estimators[0]
    one = cross_validate(X, ESTIMATORS["ridge"], K, y=Y, error="mae", share=True)
    assert both.shared
    assert one.error == "mae"
    assert all(0.2 < error < 0.5 for error in (*both.errors, *one.estimators[0].errors))
    assert all(
        error < 1.0
        for error in cross_validate(X, ESTIMATORS["gp"], K, y=Y, error="nlpd", share=True).estimators[0].errors
    )
    brier = cross_validate(X, ESTIMATORS["classes"], K, y=LABELS, error="brier", share=True).estimators[0]
    assert brier.shared
    assert all(0.0 < error < 0.6 for error in brier.errors)


def test_estimators_that_cannot_share_see_the_same_folds() -> None:
    svr = KernelSVR(N, C=1.0, **PLAIN)
    found = cross_validate(X, [ESTIMATORS["ridge"], svr], K, y=Y, share=True)
    assert [each.shared for each in found.estimators] == [True, False]
    assert [each["shared"] for each in found.to_config()["estimators"]] == [True, False]
    alone = cross_validate(X, svr, K, y=Y, share=True)
    assert sum(alone.left_out_rows) == M > sum(found.left_out_rows)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (ESTIMATORS["ridge"], {"share": False}),
        (ESTIMATORS["ridge"], {"groups": np.arange(M) % 7}),  # too few to choose on those of one part
        (KernelRidge(230, **PLAIN), {}),  # 20 rows for each function
        (KernelRidge(N), {}),  # a metric from 8,000 rows
        (ESTIMATORS["ridge"], {"folds": 6}),
        (KernelRidge(N, alpha=0.1, solver="cg", **PLAIN), {}),
        (KernelRidgeClassifier(N, class_weight="balanced", **PLAIN), {"y": LABELS}),
        (GaussianProcessRegressor(N, approximation="pitc", **GIVEN), {}),
        (GaussianProcessRegressor(N, tune="full"), {}),
        (ESTIMATORS["ridge"], {"rows": np.resize(X[content_parts(open_table(X), 3).of(X) != 1][:40], X.shape)}),
    ],
    ids=["no", "groups", "large", "metric", "folds", "cg", "balanced", "pitc", "full", "copies"],
)
def test_what_shares_no_sums_has_all_rows_in_folds(estimator: Any, options: Any) -> None:
    given = dict(options)
    request = request_of(estimator, given.pop("y", Y), rows=given.pop("rows", X), **given)
    assert request.splits.fold_rows is None
    assert not request.sharing
    assert request.splits.parts.count == request.splits.folds + (request.splits.by == "time")


def test_a_kernel_matrix_shares_no_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows it has; another estimator that could share reads its rows as features."""
    monkeypatch.setattr(fold_rows, "LEAST_CHOSEN_ON", 20)
    monkeypatch.setattr(fold_rows, "LEAST_PER_FUNCTION", 1)
    matrix = np.exp(-0.5 * ((X[:120, None] - X[:120]) ** 2).sum(axis=2))
    of_matrix = KernelRidge(10, kernel="precomputed", alpha=0.1)
    plain = KernelRidge(10, rule="uniform", alpha=0.1, **PLAIN)
    found = cross_validate(matrix, {"matrix": of_matrix, "rows": plain}, K, y=Y[:120], share=True)
    assert [each.shared for each in found.estimators] == [False, True]
    alone = cross_validate(matrix, of_matrix, K, y=Y[:120], share=True)
    assert not alone.estimators[0].shared
    assert sum(alone.left_out_rows) == 120
    assert alone.estimators[0].errors == cross_validate(matrix, of_matrix, K, y=Y[:120]).estimators[0].errors


def test_memory_of_all_sums_is_checked() -> None:
    """One line says that a plan of all folds is too large, and each fold has a fit of its own."""
    machine = Machine(0, 2)
    ridge = KernelRidge(N, rule="rpcholesky", **PLAIN)
    few, request = (request_of(ridge, folds=folds) for folds in (2, 5))
    [each], rows = request.candidates, request.splits.fold_rows
    assert rows is not None
    assert few.splits.fold_rows is not None
    assert each.kind.folds is not None
    plans = partial(each.kind.folds.plan, rows, each.settings, machine)
    assert (
        plans(3000).memory_bytes > each.kind.folds.plan(few.splits.fold_rows, each.settings, machine, 3000).memory_bytes
    )
    together = plans(None)
    assert [step.name for step in together.steps if step.where == "sweep"][-2:] == ["sums by fold", "scores"]
    none = MemoryLimits(total=together.memory_bytes - 1, worker=None, driver=None, by={})
    assert [len(request.planned(machine, limits).shared) for limits in (none, MemoryLimits())] == [0, 1]


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="share must be True or False, not 'yes'"):
        cross_validate(X, "ridge", y=Y, share="yes")
    part = part_numbers(request_of(ESTIMATORS["ridge"]).splits.parts, 0, M)
    with pytest.raises(SingleClassError, match="of one class only"):
        cross_validate(X, KernelRidgeClassifier(N, alpha="cv", **PLAIN), K, y=np.where(part == 0, "a", "b"), share=True)


def test_notes_tell_what_is_shared() -> None:
    notes = Notes()
    request_of(ESTIMATORS["ridge"]).run(ThreadExecutor(), notes)
    assert sum("2 folds from the sums of one sweep" in line for line in notes.lines) == 1
    assert sum("fold 2 of 2: rmse" in line for line in notes.lines) == 1
