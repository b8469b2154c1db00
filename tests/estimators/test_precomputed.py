"""A precomputed kernel: the answers are those of the kernel itself on the rows, from a matrix in memory or in Zarr."""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pytest
import zarr
from estimators.kernel_matrices import GIVEN, KERNEL, KQ, K, M, Q, X, Y, changed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.svm import SVC

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
    KernelCCA,
    KernelMatchingPursuit,
    KernelOneClass,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Nystroem,
    cross_validate,
)
from streamkernel.byte_counts import format_bytes
from streamkernel.engine import Silent
from streamkernel.errors import (
    ModelFormatError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeMismatchError,
    StreamKernelError,
    StreamKernelWarning,
)
from streamkernel.kernels import Gaussian, Precomputed
from streamkernel.models.ridge import RidgeModel
from streamkernel.planning import plan
from streamkernel.table import open_table


@pytest.fixture
def stored(tmp_path):
    group = zarr.open_group(tmp_path / "matrix.zarr", mode="w")
    for name, values, chunks in (("X", K, (80, 128)), ("y", Y, (80,))):
        group.create_array(name, shape=values.shape, chunks=chunks, dtype="float64")[:] = values
    return open_table(group)


pytestmark = [pytest.mark.usefixtures("few_points"), pytest.mark.filterwarnings("ignore:.*no checksum codec")]


def test_a_full_basis_is_scikit_learns_ridge():
    rough = Gaussian(0.5)
    k = 0.5 * (rough(X) + rough(X).T)
    for alpha in (0.01, 1.0):
        ours = KernelRidge(M, kernel="precomputed", alpha=alpha, fit_intercept=False).fit(k, Y)
        theirs = TheirRidge(alpha=alpha, kernel="precomputed").fit(k, Y)
        assert len(ours.component_indices_) == M
        assert_allclose(ours.predict(rough(Q, X)), theirs.predict(rough(Q, X)), atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "sgma"},
        {"rule": "csi-lookahead"},
        {"rule": "incomplete-cholesky"},
        pytest.param({"rule": "csi"}, marks=pytest.mark.slow),
        pytest.param({"rule": "leverage"}, marks=pytest.mark.slow),
        {"rule": "uniform", "fit_intercept": False},
        {"solver": "cg"},
        {"tol": 0.05},
    ],
    ids=str,
)
def test_a_fit_is_that_of_the_kernel(options):
    given = {**GIVEN, "alpha": 0.1, **options}
    ours = KernelRidge(30, **given).fit(K, Y)
    theirs = KernelRidge(30, **{**given, "kernel": KERNEL, "scale": "none", "metric": "none"}).fit(X, Y)
    assert_array_equal(ours.component_indices_, theirs.component_indices_)
    assert_allclose(ours.predict(KQ), theirs.predict(Q), rtol=1e-9, atol=1e-9)
    assert ours.residual_trace_ == pytest.approx(theirs.residual_trace_)
    assert ours.score(KQ, Q[:, 0]) == pytest.approx(theirs.score(Q, Q[:, 0]))


OF_ALL_KINDS = [
    (KernelPCA(3, basis_size=30), "transform"),
    (Nystroem(30), "transform"),
    (KernelRidgeClassifier(30, metric="none", alpha=0.1), "decision_function"),
    (KernelSVC(30, metric="none"), "decision_function"),
    (KernelSVC(30, metric="none", loss="hinge"), "predict"),
    (KernelSVR(30, metric="none"), "predict"),
    (KernelOneClass(30), "decision_function"),
    (KernelQuantileRegressor(20, metric="none"), "predict"),
    (GaussianProcessRegressor(12), "predict"),
    (GaussianProcessRegressor(30, approximation="dtc", noise_variance=0.1), "predict"),
    (GaussianProcessClassifier(30, tune="none", signal_variance=4.0), "predict_proba"),
    (GaussianProcessPoissonRegressor(30, tune="none", signal_variance=0.5), "predict"),
]


@pytest.mark.parametrize(("estimator", "values"), OF_ALL_KINDS, ids=lambda each: str(each)[:60])
def test_all_kinds_answer_as_with_the_kernel(estimator, values, tmp_path):
    y = Y > 0 if is_classifier(estimator) else np.round(np.abs(2 * Y)) if "Poisson" in str(estimator) else Y
    ours = clone(estimator).set_params(**GIVEN).fit(K, y)
    theirs = clone(estimator).set_params(**{**GIVEN, "kernel": KERNEL, "scale": "none"}).fit(X, y)
    assert_array_equal(ours.component_indices_, theirs.component_indices_)
    needs = isinstance(estimator, GaussianProcessClassifier | GaussianProcessPoissonRegressor)
    own = {"diagonal": np.ones(len(Q))} if needs else {}
    found = getattr(ours, values)(KQ, **own)
    assert_allclose(found, getattr(theirs, values)(Q), rtol=1e-8, atol=1e-9)
    ours.save(tmp_path / "model")
    loaded = type(ours).load(tmp_path / "model")
    assert_array_equal(getattr(loaded, values)(KQ, **own), found)
    assert loaded.model_.digest == ours.model_.digest
    n = len(ours.component_indices_)
    assert ours.components_.shape == (n, n)  # k(Z, Z), whatever m is
    assert_array_equal(loaded.components_, K[np.ix_(ours.component_indices_, ours.component_indices_)])


def test_a_full_machine_is_scikit_learns():
    labels = np.where(Y > 0, 1, -1)
    ours = KernelSVC(machine="full", loss="hinge", kernel="precomputed", C=2.0, gap_tol=1e-8).fit(K, labels)
    theirs = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, labels)
    assert_allclose(ours.decision_function(KQ), theirs.decision_function(KQ), atol=2e-3)


def test_standard_deviations_need_the_diagonal(stored):
    variances = {"signal_variance": 1.0, "noise_variance": 0.1}
    ours = GaussianProcessRegressor(30, **GIVEN, **variances).fit(K, Y)
    theirs = GaussianProcessRegressor(30, kernel=KERNEL, rule="rpcholesky", scale="none", **variances).fit(X, Y)
    wanted = theirs.predict(Q, return_std=True)
    assert_allclose(ours.predict(KQ, return_std=True, diagonal=np.ones(len(Q))), wanted, rtol=1e-8)
    # The matrix of the fit holds it, in memory, and in a table of which a slice is predicted.
    wanted = theirs.predict(X, return_std=True)[1]
    assert_allclose(ours.predict(K, return_std=True)[1], wanted, rtol=1e-8)
    part = ours.predict(stored.slice(100, 150), return_std=True)[1].compute()
    assert_allclose(part, wanted[100:150], rtol=1e-8)
    given = ours.predict(stored.slice(100, 150), return_std=True, diagonal=4 * np.ones(50))[1].compute()
    assert (given > part).all()
    for wrong in (lambda: ours.predict(KQ, return_std=True), lambda: ours.predict(K[::-1], return_std=True)):
        with pytest.raises(ParameterError, match=r"precomputed, and k\(x, x\) of new rows.*diagonal=\.\.\."):
            wrong()
    with pytest.raises(ShapeMismatchError, match=r"diagonal has shape \(3,\), X 40 rows"):
        ours.predict(KQ, return_std=True, diagonal=np.ones(3))
    with pytest.raises(NumericRangeError, match="has -1 on its diagonal in row 0"):
        ours.predict(KQ, return_std=True, diagonal=-np.ones(len(Q)))
    with pytest.raises(ParameterError, match="the kernel of this model is not precomputed"):
        theirs.predict(Q, return_std=True, diagonal=np.ones(len(Q)))
    for wrong in (lambda: ours.predict(KQ, return_cov=True), lambda: ours.sample_y(KQ)):
        with pytest.raises(ParameterError, match="kernel values of new rows with each other"):
            wrong()


@pytest.mark.parametrize("kept", ["first", "basis"])
def test_rows_in_another_order_have_no_diagonal(kept, tmp_path):
    """Even where the row of the first function, or of all functions, stays in its place."""
    process = GaussianProcessRegressor(12, signal_variance=1.0, noise_variance=0.1, **GIVEN).fit(K, Y)
    own = process.predict(K, return_std=True)
    fixed = process.component_indices_[: 1 if kept == "first" else None]
    order, moved = np.arange(M), np.setdiff1d(np.arange(M), fixed)
    order[moved] = np.roll(moved, 1)
    assert_allclose(process.predict(K[order]), own[0][order], rtol=1e-12)
    with pytest.raises(ParameterError, match=r"k\(x, x\) of new rows, which variances need"):
        process.predict(K[order], return_std=True)
    assert_allclose(process.predict(K[order], return_std=True, diagonal=np.diagonal(K))[1], own[1][order], rtol=1e-9)
    stored = zarr.create_array(str(tmp_path / "K"), data=K[order], chunks=(32, 100))
    with pytest.raises(ParameterError, match="which variances need"):
        process.predict(stored, return_std=True)[1].compute()


def test_blocks_on_the_diagonal_are_symmetric_in_every_sweep(tmp_path, monkeypatch):
    """A row that was moved out of the sight of the checks before a fit is refused in its first sweep."""
    monkeypatch.setattr("streamkernel.fits.steps.kernel_matrix._MOST_ROWS", 8)
    monkeypatch.setattr("streamkernel.fits.steps.kernel_matrix._SEEN_ROWS", 8)
    order = np.arange(M)
    order[[100, 101]] = 101, 100
    with pytest.raises(ParameterError, match=r"not symmetric: .* in row 10[01]"):
        KernelRidge(10, alpha=0.1, **GIVEN).fit(K[order], Y)
    infinite = K.copy()
    infinite[90, 90] = np.inf
    with pytest.raises(NonFiniteDataError):
        KernelRidge(10, alpha=0.1, **GIVEN).fit(infinite, Y)


def test_a_stored_matrix_is_read_block_by_block(stored, tmp_path):
    """Some rows of it are the rows of the fit; others are predicted."""
    part = stored.slice(20, 200)
    ours = KernelRidge(30, alpha=0.1, **GIVEN).fit(part)
    predicted = ours.predict(stored.slice(200, M)).compute()
    assert ours.component_indices_.min() >= 20
    assert ours.component_indices_.max() < 200
    assert_allclose(predicted, ours.predict(K[200:]), rtol=1e-12)
    assert np.sqrt(np.mean((predicted - Y[200:]) ** 2)) < 0.5


def test_the_plan_holds_no_matrix():
    rows = 100_000
    big = da.zeros((rows, rows), chunks=(64, rows))
    for options in ({"rule": "uniform"}, {}, {"objective": "trace"}):
        made = plan(KernelRidge(100, kernel="precomputed", alpha=0.1, **options), big, np.zeros(rows)).plan
        assert made.memory_bytes < 8 * rows * rows / 3, format_bytes(made.memory_bytes)


def test_folds_of_scikit_learn_cut_rows_and_columns():
    search = GridSearchCV(KernelRidge(30, **GIVEN), {"alpha": [0.1, 1000.0]}, cv=3).fit(K, Y)
    assert search.best_params_ == {"alpha": 0.1}
    assert search.best_score_ > 0.9
    assert cross_val_predict(KernelRidge(30, alpha=0.1, **GIVEN), K, Y, cv=3).shape == (M,)
    for kernel, pairwise in (("precomputed", True), (Precomputed(), True), ("gaussian", False)):
        assert KernelRidge(kernel=kernel).__sklearn_tags__().input_tags.pairwise is pairwise


def test_estimators_are_compared_by_weights(stored):
    ridges = {str(n): KernelRidge(n, alpha=0.1, **GIVEN) for n in (10, 60)}
    found = cross_validate(stored, ridges, folds=2)
    assert found.best.name == "60"
    of_kernel = {"10": KernelRidge(10, alpha=0.1, kernel=KERNEL, scale="none", metric="none", rule="uniform")}
    wanted = cross_validate(X, of_kernel, folds=2, y=Y).estimators[0].mean
    ours = {"10": KernelRidge(10, alpha=0.1, kernel="precomputed", rule="uniform")}
    assert cross_validate(K, ours, folds=2, y=Y).estimators[0].mean == pytest.approx(wanted, rel=0.5)


def test_weights_and_float32_and_whole_numbers():
    weights = np.repeat([0.0, 1.0, 2.0], M // 3)
    ours = KernelRidge(20, alpha=0.1, **GIVEN).fit(K, Y, weights)
    theirs = KernelRidge(20, alpha=0.1, kernel=KERNEL, rule="rpcholesky", scale="none", metric="none")
    assert_allclose(ours.predict(KQ), theirs.fit(X, Y, weights).predict(Q), rtol=1e-9, atol=1e-9)
    single = KernelRidge(20, alpha=0.1, **GIVEN).fit(K.astype(np.float32), Y).predict(KQ.astype(np.float32))
    assert_allclose(single, KernelRidge(20, alpha=0.1, **GIVEN).fit(K, Y).predict(KQ), atol=0.05)
    counts = (np.round(3 * X) @ np.round(3 * X).T).astype(int)  # of a linear kernel; some rows have k(x, x) = 0
    assert KernelRidge(3, alpha=0.1, **GIVEN).fit(counts, Y).predict(counts).shape == (M,)


def test_copies_of_rows_count_once():
    """Their columns in the matrix differ in nothing but their places."""
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(80), 3))
    y = Y + np.random.default_rng(2).standard_normal(M)
    given = {"rule": "rpcholesky", "alpha": "gcv"}
    with pytest.warns(StreamKernelWarning, match="about 80 of 240 rows are distinct"):
        ours = KernelRidge(40, kernel="precomputed", **given).fit(K[np.ix_(rows, rows)], y[rows])
    with pytest.warns(StreamKernelWarning, match="about 80 of 240 rows are distinct"):
        theirs = KernelRidge(40, kernel=KERNEL, scale="none", metric="none", **given).fit(X[rows], y[rows])
    assert ours.alpha_ == pytest.approx(theirs.alpha_)


def test_a_matrix_of_zeros_predicts_the_mean():
    with pytest.warns(StreamKernelWarning, match=r"only 0 of 5 .*\(duplicate rows, or a matrix of this rank\)"):
        ours = KernelRidge(5, kernel="precomputed", alpha=0.1).fit(np.zeros((9, 9)), np.arange(9.0))
    assert_allclose(ours.predict(np.zeros((2, 9))), 4.0)


@pytest.mark.parametrize(
    ("asked", "options", "used"),
    [
        ("few-sweep", {}, "rpcholesky"),
        ("few-sweep", {"candidates": 8}, "few-sweep prediction"),
        ("uniform", {}, "uniform"),
    ],
)
def test_a_note_tells_the_rule(asked, options, used):
    notes, progress = [], Silent()
    progress.note = notes.append
    KernelRidge(10, kernel="precomputed", alpha=0.1, rule=asked, rule_options=options, progress=progress).fit(K, Y)
    assert [line for line in notes if "kernel matrix" in line] == [
        f"rows of a kernel matrix: the rule {used} chooses among them"
    ]


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (KernelRidge(lengthscale=2.0), "lengthscale is of kernels of features"),
        (KernelRidge(lengthscale="auto"), "lengthscale is of kernels of features"),
        (KernelRidge(gamma=0.1), "gamma is of kernels of features"),
        (KernelRidge(degree=3), "degree is of kernels of features"),
        (KernelRidge(kernel_params={"nu": 1.5}), "kernel_params is of kernels of features"),
        (KernelRidge(scale="robust"), "scale is of kernels of features"),
        (KernelRidge(metric="learned"), "metric is of kernels of features"),
        (KernelRidge(metric=np.eye(M)), "metric is of kernels of features"),
        (KernelRidge(metric_rank=2), "metric_rank is of kernels of features"),
        (KernelRidge(rule="kmeans"), "the rule 'kmeans' makes points that are no rows"),
        (KernelRidge(rule="columns"), "the rule 'columns'"),
        (GaussianProcessRegressor(ard=True), "ard"),
        (GaussianProcessRegressor(approximation="pitc", partition="cells"), "partition is of rows of features"),
        (KernelPCA(3, fit_inverse_transform=True), "fit_inverse_transform is of rows of features"),
        (KernelMatchingPursuit(20), "takes no precomputed kernel"),
        (BayesianCommitteeMachine(20), "takes no precomputed kernel"),
        (KernelBoostingClassifier(), "takes no precomputed kernel"),
        (KernelCCA(2), "takes no precomputed kernel"),
    ],
    ids=lambda each: str(each)[:60],
)
def test_what_needs_features_is_refused(estimator, text):
    with pytest.raises(ParameterError, match=text):
        estimator.set_params(kernel="precomputed").fit(K, Y > 0 if is_classifier(estimator) else Y)


def test_other_errors(tmp_path):
    with pytest.raises(ParameterError, match="a part of the kernel is precomputed"):
        KernelRidge(kernel=2.0 * Precomputed() + KERNEL).fit(K, Y)
    model = KernelRidge(20, alpha=0.1, **GIVEN).fit(K, Y)
    with pytest.raises(ParameterError, match="further rows would be further columns of its matrix"):
        model.update(K, Y)
    with pytest.raises(StreamKernelError, match="precomputed"):
        model.partial_fit(K, Y)
    with pytest.raises(ValueError, match=f"expecting {M} features"):
        model.predict(KQ[:, :100])
    with pytest.raises(NonFiniteDataError, match="X contains"):
        model.predict(changed(1, 2, np.inf))
    # An archive whose points are no rows of k(Z, Z).
    damaged = {**model.model_.arrays, "components": model.model_.arrays["components"][:, :-1].copy()}
    with pytest.raises(ModelFormatError, match="no rows of a kernel matrix"):
        RidgeModel(model.model_.record, damaged).save(tmp_path / "model")


def test_the_kernel_as_json():
    from streamkernel.kernels import as_kernel, kernel_from_config

    assert as_kernel("precomputed") == Precomputed()
    assert kernel_from_config(json.loads(json.dumps(Precomputed(30).to_config()))) == Precomputed(30)
