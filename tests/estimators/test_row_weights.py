"""Row weights in scikit-learn's manner: fit, update and score take them from any input."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn
import xarray as xr
import zarr
from problems import zarr_of_chunks
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data
from slow_cases import slow_but

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelOneClass,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Nystroem,
    open_table,
)
from streamkernel.errors import (
    DTypeError,
    EmptyDataError,
    NonFiniteDataError,
    ParameterError,
    ShapeMismatchError,
    StreamKernelError,
)

RNG = np.random.default_rng(0)
M = 300
X = RNG.standard_normal((M, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(M)
LABELS = np.array(["low", "mid", "top"])[np.digitize(y, [-0.7, 0.7])]
w = RNG.integers(0, 4, M).astype(np.float64)


def stored(folder: Path) -> str:
    array = zarr.create_array(str(folder / "w.zarr"), shape=(M,), chunks=(70,), dtype="float64")
    array[:] = w
    return str(folder / "w.zarr")


KINDS: dict[str, Callable[[Path], Any]] = {
    "array": lambda folder: w,
    "whole numbers": lambda folder: w.astype(np.int8),
    "float32": lambda folder: w.astype(np.float32),
    "list": lambda folder: w.tolist(),
    "column of a DataFrame": lambda folder: pd.DataFrame({"w": w}, index=np.arange(M)[::-1])["w"],
    "big endian": lambda folder: w.astype(">f4"),
    "Arrow": lambda folder: pd.Series(w, dtype="double[pyarrow]"),
    "nullable": lambda folder: pd.Series(w).astype("Int64"),
    "dask": lambda folder: da.from_array(w, chunks=64),
    "one block": lambda folder: da.from_array(w, chunks=1000),
    "xarray": lambda folder: xr.DataArray(w),
    "zarr": lambda folder: zarr.open_array(stored(folder), mode="r"),
    "path": stored,
    "pathlib": lambda folder: Path(stored(folder)),
}


def model(**options: Any) -> KernelRidge:
    return KernelRidge(30, alpha=0.1, lengthscale=1.5, **options)


@cache
def fitted_to_all() -> tuple[KernelRidge, KernelRidge, KernelRidgeClassifier]:
    """With the weights and without, and a classifier without: what every kind of weights is held against."""
    return model().fit(X, y, sample_weight=w), model().fit(X, y), KernelRidgeClassifier(30).fit(X, LABELS)


def distance(first: Any, second: Any) -> float:
    return float(np.abs(np.asarray(first) - np.asarray(second)).max())


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
@pytest.mark.parametrize(
    "kind",
    slow_but(["array", "list", "column of a DataFrame", "nullable", "dask", "xarray", "zarr", "path"], KINDS),
)
def test_weights_of_any_kind(kind: str, tmp_path: Path) -> None:
    given = KINDS[kind](tmp_path)
    expected, unweighted, _ = fitted_to_all()
    assert distance(unweighted.predict(X), expected.predict(X)) > 1e-3
    np.testing.assert_array_equal(model().fit(X, y, sample_weight=given).dual_coef_, expected.dual_coef_)
    rows = zarr_of_chunks(tmp_path / "rows.zarr", X, y, 90)
    of_store = model().fit(rows, sample_weight=given)
    np.testing.assert_allclose(of_store.predict(X), expected.predict(X), atol=1e-9)


def test_truth_values_are_weights_of_1_and_0() -> None:
    expected = model().fit(X, y, sample_weight=(w > 1.0).astype(float)).dual_coef_
    for given in (w > 1.0, pd.Series(w > 1.0).astype("boolean"), (w > 1.0).tolist()):
        np.testing.assert_array_equal(model().fit(X, y, sample_weight=given).dual_coef_, expected)


def test_the_weights_of_a_table_hold_unless_others_are_given() -> None:
    table = open_table(X, y, weights=w)
    expected = model().fit(X, y, sample_weight=w).dual_coef_
    np.testing.assert_array_equal(model().fit(table).dual_coef_, expected)
    np.testing.assert_array_equal(model().fit(open_table(X, y), sample_weight=w).dual_coef_, expected)
    plain = model().fit(X, y).predict(X)
    np.testing.assert_array_equal(model().fit(table, sample_weight=1).predict(X), plain)


FIXED: dict[str, Any] = {"scale": "none", "lengthscale": 2.0}
GIVEN: dict[str, Any] = {"tune": "none", "signal_variance": 4.0}
REPEATED: dict[str, Any] = {
    "ridge": KernelRidge(9, alpha=0.1, **FIXED),
    "ridge, gcv": KernelRidge(9, **FIXED),
    "ridge, cg": KernelRidge(9, alpha=0.1, solver="cg", **FIXED),
    "ridge, median": KernelRidge(9, alpha=0.1, scale="none"),
    "ridge classifier": KernelRidgeClassifier(9, alpha=0.1, class_weight="balanced", **FIXED),
    "svc": KernelSVC(9, C=2.0, class_weight="balanced", **FIXED),
    "svc, hinge": KernelSVC(9, C=2.0, loss="hinge", **FIXED),
    "svr": KernelSVR(9, C=2.0, **FIXED),
    "one class": KernelOneClass(9, nu=0.3, **FIXED),
    "lp": KernelLPClassifier(9, C=2.0, class_weight="balanced", gap_tol=1e-10, **FIXED),
    "lp regressor": KernelLPRegressor(9, C=2.0, gap_tol=1e-10, **FIXED),
    "quantiles": KernelQuantileRegressor(9, C=2.0, quantile=0.7, **FIXED),
    "ridge, scaled": KernelRidge(9, alpha=0.1, lengthscale=2.0),
    "fitc": GaussianProcessRegressor(9, noise_variance=0.1, **GIVEN, **FIXED),
    "dtc": GaussianProcessRegressor(9, approximation="dtc", noise_variance=0.1, **GIVEN),
    "gp classifier": GaussianProcessClassifier(9, **GIVEN, **FIXED),
    "poisson": GaussianProcessPoissonRegressor(9, **GIVEN),
    "pursuit": KernelMatchingPursuit(7, validation=None, pool="full", **FIXED),
}


@pytest.mark.filterwarnings("ignore:about 9 of 21 rows are distinct")
@pytest.mark.parametrize(
    "name",
    slow_but(
        REPEATED.keys() - {"ridge, gcv", "ridge, cg", "ridge, median", "ridge, scaled", "svc, hinge", "dtc"}, REPEATED
    ),
)
def test_whole_weights_are_repeated_rows(name: str) -> None:
    """As scikit-learn's check of the equivalence, where all distinct rows are functions of the basis."""
    rows, targets, times = X[:9], np.arange(9) % 3, np.arange(9) % 3 + 1
    times[0] = 4
    estimator = REPEATED[name]
    methods = ("decision_function", "predict_proba", "predict")
    values = next(method for method in methods if hasattr(estimator, method))
    again = np.repeat(np.arange(9), times)
    repeated = getattr(estimator.fit(rows[again], targets[again]), values)(X)
    weighted = getattr(estimator.fit(rows, targets, sample_weight=times), values)(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


# Of the rows of scikit-learn's check 9 have a weight > 0: all are functions of the basis.
OF_ALL_ROWS = [
    KernelRidge(9),
    KernelRidgeClassifier(9, class_weight="balanced"),
    GaussianProcessRegressor(9, noise_variance=0.1, **GIVEN),
    # Slow, as `REPEATED` or the class before has the same sums.
    pytest.param(BayesianCommitteeMachine(9, noise_variance=0.1, **GIVEN), marks=pytest.mark.slow),
    pytest.param(GaussianProcessClassifier(9, **GIVEN), marks=pytest.mark.slow),
    pytest.param(GaussianProcessPoissonRegressor(9, **GIVEN), marks=pytest.mark.slow),
    KernelMatchingPursuit(7, validation=None, pool="full"),
    pytest.param(KernelMatchingPursuitClassifier(7, validation=None, pool="full"), marks=pytest.mark.slow),
    KernelPCA(4, basis_size=9),
    pytest.param(Nystroem(9), marks=pytest.mark.slow),
    KernelCCA(basis_size=9),
]


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize("estimator", OF_ALL_ROWS, ids=lambda each: type(each).__name__)
def test_scikit_learns_check_of_equivalence(estimator: Any) -> None:
    check_sample_weight_equivalence_on_dense_data(type(estimator).__name__, estimator)


def test_one_number_is_the_weight_of_all_rows() -> None:
    one, many = model().fit(X, y, sample_weight=2.5), model().fit(X, y, sample_weight=np.full(M, 2.5))
    np.testing.assert_array_equal(one.dual_coef_, many.dual_coef_)
    assert one.model_.record.totals.weight == pytest.approx(2.5 * M)
    assert open_table(X, weights=2.5).fingerprint == open_table(X.copy(), weights=np.float32(2.5)).fingerprint
    assert open_table(X, weights=2.5).fingerprint != open_table(X, weights=2.0).fingerprint


ERRORS: dict[str, tuple[Any, type[StreamKernelError], str]] = {
    "negative": (np.where(np.arange(M) == 7, -1.0, w), ParameterError, r"must not be negative, row 7 has -1"),
    "NaN": (np.where(np.arange(M) == 9, np.nan, w), NonFiniteDataError, r"NaN or infinity, first in row 9"),
    "infinity": (np.where(np.arange(M) == 9, np.inf, w), NonFiniteDataError, r"NaN or infinity, first in row 9"),
    "all zero": (np.zeros(M), EmptyDataError, "all 300 weights are zero"),
    "too few": (w[:-1], ShapeMismatchError, r"weights have shape \(299,\) and X has shape \(300, 3\)"),
    "a column": (w[:, None], ShapeMismatchError, r"weights have shape \(300, 1\)"),
    "text": (["a"] * M, DTypeError, "weights holds text"),
    "objects": ([None] * M, DTypeError, "weights holds Python objects"),
    "complex": (w * 1j, DTypeError, "weights holds complex numbers"),
    "a complex number": (1j, ShapeMismatchError, r"weights have shape \(\)"),
    "a negative number": (-2.0, ParameterError, "must not be negative"),
    "zero": (0, EmptyDataError, "all 300 weights are zero"),
    "no number": (float("nan"), NonFiniteDataError, "NaN or infinity"),
}


@pytest.mark.parametrize("case", ERRORS)
@pytest.mark.parametrize("estimator", [KernelRidge(5), KernelRidgeClassifier(5), KernelPCA(2), Nystroem(5)])
def test_wrong_weights_are_refused_before_any_work(case: str, estimator: Any) -> None:
    given, error, message = ERRORS[case]
    with pytest.raises(error, match=message) as caught:
        estimator.fit(X, LABELS if isinstance(estimator, KernelRidgeClassifier) else y, sample_weight=given)
    assert isinstance(caught.value, ValueError)
    assert not hasattr(estimator, "model_")


def test_scores_refuse_the_same_weights() -> None:
    fitted = model().fit(X, y)
    for case in ("negative", "NaN", "too few", "text"):
        given, error, message = ERRORS[case]
        with pytest.raises(error, match=message):
            fitted.score(X, y, sample_weight=given)
    with pytest.raises(ParameterError, match="no targets to compare"):
        fitted.score(open_table(X))


@pytest.mark.filterwarnings("ignore::streamkernel.errors.UncheckedChunksWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_weighted(kind: str, tmp_path: Path) -> None:
    given = KINDS[kind](tmp_path)
    _, regression, classifier = fitted_to_all()
    expected = r2_score(y, regression.predict(X), sample_weight=w)
    share = accuracy_score(LABELS, classifier.predict(X), sample_weight=w)
    assert regression.score(X, y, sample_weight=given) == pytest.approx(expected, rel=1e-12)
    assert classifier.score(X, LABELS, sample_weight=given) == pytest.approx(share, rel=1e-12)


def test_the_score_of_one_row_is_undefined_in_memory_and_outside() -> None:
    regression = model().fit(X, y)
    for rows, targets in ((X[:1], y[:1]), (open_table(X[:1], y[:1]), None), (da.from_array(X[:1]), y[:1])):
        with pytest.warns(UndefinedMetricWarning, match="less than two|fewer than two"):
            assert np.isnan(regression.score(rows, targets))


def test_scores_of_rows_outside_memory(tmp_path: Path) -> None:
    regression, classifier = model().fit(X, y), KernelRidgeClassifier(30).fit(X, LABELS)
    plain = regression.score(X, y)
    rows = zarr_of_chunks(tmp_path / "rows.zarr", X, y, 90)
    assert regression.score(rows) == pytest.approx(plain, rel=1e-12)
    assert regression.score(da.from_array(X, chunks=(70, 3)), da.from_array(y, chunks=70)) == pytest.approx(plain)
    assert classifier.score(open_table(X), LABELS) == pytest.approx(classifier.score(X, LABELS), rel=1e-12)


def test_an_update_takes_weights() -> None:
    whole = model().fit(X, y)
    parts = model().fit(X[:200], y[:200], sample_weight=w[:200]).update(X[200:], y[200:], sample_weight=w[200:])
    assert parts.last_update_.rows_folded == 100
    assert parts.model_.record.totals.weight == pytest.approx(w.sum())
    table = open_table(X, y, weights=w)
    again = parts.update(table.slice(0, 200), alpha="keep")
    assert again.last_update_.rows_folded == 0
    with pytest.raises(ShapeMismatchError, match="weights have shape"):
        whole.update(X[:5] + 9.0, y[:5], sample_weight=w)


def test_rows_seen_with_other_weights_are_other_rows() -> None:
    fitted = model().fit(X, y, sample_weight=w)
    before = fitted.model_.digest
    assert fitted.update(X, y, sample_weight=w).last_update_.rows_folded == 0
    assert fitted.model_.digest == before
    others = np.where(np.arange(M) == 3, w + 1.0, w)
    assert fitted.update(X, y, sample_weight=others).last_update_.rows_folded == M


def test_requests_route_weights_through_pipelines_and_searches() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        ridge = model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), ridge)
        pipeline.fit(X, y, sample_weight=w)
        scaled = StandardScaler().fit(X, sample_weight=w).transform(X)
        expected = model().fit(scaled, y, sample_weight=w)
        np.testing.assert_array_equal(pipeline[-1].dual_coef_, expected.dual_coef_)
        assert pipeline.score(X, y, sample_weight=w) == expected.score(scaled, y, sample_weight=w)
        # scikit-learn 1.6 does not route to the score of a pipeline's last step: a scorer takes its place.
        r2 = get_scorer("r2").set_score_request(sample_weight=True)
        alphas = {"kernelridge__alpha": [0.1, 10.0]}
        search = GridSearchCV(pipeline, alphas, scoring=r2, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=w)
        last = np.arange(M) >= 2 * M // 3
        one = make_pipeline(StandardScaler(), model())
        one[0].fit(X[~last], sample_weight=w[~last])
        one[1].fit(one[0].transform(X[~last]), y[~last], sample_weight=w[~last])
        told = one[1].score(one[0].transform(X[last]), y[last], sample_weight=w[last])
        assert search.cv_results_["split2_test_score"][0] == pytest.approx(told, rel=1e-12)


def test_requests_of_the_other_classes() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        nystroem = Nystroem(20).set_fit_request(sample_weight=True)
        pursuit = KernelMatchingPursuit(5).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(nystroem, pursuit).fit(X, y, sample_weight=w)
        assert pipeline[0].model_.record.table_fingerprint == open_table(X, weights=w).fingerprint
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(StandardScaler(), GaussianProcessRegressor(5)).fit(X, y, sample_weight=w)
