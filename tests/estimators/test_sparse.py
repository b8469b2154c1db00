"""Estimators on sparse rows: the answers are those on the dense copies, and what needs dense rows says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_sparse_data
from sparse_rows import sparse_problem, sparse_rows

import streamkernel
from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
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
)
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import (
    ModelFormatError,
    NonFiniteDataError,
    ParameterError,
    StreamKernelWarning,
)
from streamkernel.kinds import KINDS
from streamkernel.planning import plan
from streamkernel.table import open_table

pytestmark = pytest.mark.usefixtures("few_points")

OPTIONS = {"kernel": "gaussian", "metric": "none"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"scale": "none"}, marks=pytest.mark.slow),  # the next ones have it
        {"kernel": "laplacian", "alpha": 1e-3},
        {"kernel": "2*matern + linear", "scale": "none"},
        {"kernel": "polynomial", "scale": "none", "rule": "rpcholesky"},
        {"kernel": "cosine", "scale": "none", "objective": "trace"},
        {"lengthscale": "auto", "alpha": 0.1},
        {"solver": "cg", "alpha": 0.01},
        {"rule": "sgma"},
        {"rule": "incomplete-cholesky"},
        pytest.param({"rule": "csi"}, marks=pytest.mark.slow),
        {"rule": "uniform", "fit_intercept": False},
        pytest.param({"rule": "leverage"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_fit_is_that_of_the_dense_rows(options):
    X, y = sparse_problem(600, 60, 4.0)
    given = {**OPTIONS, "alpha": 0.1, **options}
    sparse, dense = KernelRidge(40, **given).fit(X, y), KernelRidge(40, **given).fit(X.toarray(), y)
    assert sparse.component_indices_.tolist() == dense.component_indices_.tolist()
    assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-9, atol=1e-9)
    assert_allclose(sparse.components_.toarray(), dense.components_, rtol=1e-12, atol=1e-12)
    assert sparse.score(X, y) == pytest.approx(dense.score(X.toarray(), y))


# Of a lengthscale for which so few query points are enough.
COMMITTEE = BayesianCommitteeMachine(
    20, block_size=50, tune="none", lengthscale=60.0, signal_variance=1.0, noise_variance=0.5
)
OF_ALL_KINDS = [
    (KernelPCA(3, basis_size=30), "transform"),
    (Nystroem(30), "transform"),
    (KernelSVC(30, metric="none", kernel="gaussian"), "decision_function"),
    pytest.param(
        KernelSVC(30, metric="none", kernel="laplacian", loss="hinge"), "decision_function", marks=pytest.mark.slow
    ),
    (KernelSVC(machine="full", loss="hinge", metric="none", kernel="gaussian"), "decision_function"),
    (KernelSVR(30, metric="none", kernel="matern"), "predict"),
    (KernelOneClass(30, scale="none"), "decision_function"),
    (KernelQuantileRegressor(20, metric="none", kernel="gaussian"), "predict"),
    (GaussianProcessRegressor(30, kernel="gaussian", tune="none", signal_variance=1.0, noise_variance=0.1), "predict"),
    pytest.param(
        GaussianProcessRegressor(30, kernel="matern", approximation="dtc", lengthscale=9.0, noise_variance=0.1),
        "predict",
        marks=pytest.mark.slow,
    ),
    (GaussianProcessClassifier(30, tune="none", signal_variance=4.0), "predict_proba"),
    (GaussianProcessPoissonRegressor(30, tune="none", signal_variance=0.5), "predict"),
    (COMMITTEE, "predict"),
    (KernelMatchingPursuit(12, kernel="gaussian"), "predict"),
    pytest.param(
        KernelMatchingPursuit(12, kernel="laplacian", pool="split", draw="residual", variant="basic"),
        "predict",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        KernelMatchingPursuit(12, kernel="matern", pool="full", validation=0.2, variant="back-fitting"),
        "predict",
        marks=pytest.mark.slow,
    ),
    (KernelMatchingPursuitClassifier(12, kernel="gaussian", loss="logistic"), "decision_function"),
    (KernelBoostingClassifier(members=4, member_rows=60, kernel="gaussian", metric="none"), "decision_function"),
    pytest.param(
        KernelBoostingClassifier(members=3, member_rows=60, learner="ridge", kernel="laplacian"),
        "decision_function",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        KernelBoostingClassifier(8, members=3, member_rows=60, learner="kmp", voting="hard"),
        "decision_function",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        KernelBoostingClassifier(member_rows=60, method="filtering", kernel="matern"),
        "decision_function",
        marks=pytest.mark.slow,
    ),
    (KernelLPClassifier(C=1.0, kernel="gaussian", metric="none"), "decision_function"),
    pytest.param(
        KernelLPClassifier(C=(0.1, 1.0), kernel="laplacian", candidates=100, calibration="none"),
        "decision_function",
        marks=pytest.mark.slow,
    ),
    (KernelLPRegressor(C=1.0, kernel="gaussian", metric="none"), "predict"),
]


@pytest.mark.parametrize(("estimator", "values"), OF_ALL_KINDS, ids=lambda each: str(each)[:60])
def test_other_kinds_answer_as_on_dense_rows(estimator, values, tmp_path):
    X, y = sparse_problem(400, 40, 4.0)
    y = y > 0 if is_classifier(estimator) else np.round(np.abs(2 * y)) if "Poisson" in str(estimator) else y
    sparse, dense = clone(estimator).fit(X, y), clone(estimator).fit(X.toarray(), y)
    assert sparse.component_indices_.tolist() == dense.component_indices_.tolist()
    found, wanted = getattr(sparse, values)(X), getattr(dense, values)(X.toarray())
    sparse.save(tmp_path / "model")
    loaded = type(sparse).load(tmp_path / "model")
    assert (getattr(loaded, values)(X) == found).all()
    assert loaded.model_.digest == sparse.model_.digest
    assert (loaded.components_ != sparse.components_).nnz == 0
    if values == "transform":  # directions have no sign
        found, wanted = np.abs(found), np.abs(wanted)
    assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_held_out_rows_of_a_pursuit_are_another_table_of_either_kind(tmp_path):
    """The fullest row is among them, and not among those of the fit."""
    X, y = sparse_problem(400, 40, 4.0)
    streamkernel.ingest(open_table(X[300:], y[300:], sparse=True), tmp_path / "held_out", dtype="float64")
    others = [(X[300:], y[300:]), (X[300:].toarray(), y[300:]), str(tmp_path / "held_out")]
    found = [KernelMatchingPursuit(12, kernel="gaussian", validation=other).fit(X[:300], y[:300]) for other in others]
    dense = KernelMatchingPursuit(12, kernel="gaussian", validation=others[1]).fit(X[:300].toarray(), y[:300])
    for model in found:
        assert model.active_set_.tolist() == dense.active_set_.tolist()
        assert_allclose(model.path_.validation, dense.path_.validation, rtol=1e-8)
    for stage, wanted in zip(found[0].staged_predict(X), dense.staged_predict(X.toarray()), strict=True):
        assert_allclose(stage, wanted, rtol=1e-8, atol=1e-8)


def test_a_committee_of_sparse_rows_is_updated_and_takes_no_queries():
    X, y = sparse_problem(400, 40, 4.0)
    sparse, dense = (clone(COMMITTEE).fit(rows[:300], y[:300]).update(rows, y) for rows in (X, X.toarray()))
    assert sparse.last_update_.rows_folded == dense.last_update_.rows_folded == 100
    assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)
    for queries, words in ((X[:5], "queries are sparse"), (X[:5].toarray(), "rows are sparse.*queries are dense")):
        with pytest.raises(ParameterError, match=words):
            clone(COMMITTEE).set_params(queries=queries).fit(X, y)


def test_a_search_by_evidence_finds_as_much_as_on_dense_rows():
    """It stops where a step gains little, which rounding may move."""
    X, y = sparse_problem(200, 30, 4.0)
    sparse, dense = (GaussianProcessRegressor(15).fit(rows, y) for rows in (X, X.toarray()))
    assert sparse.model_.record.tuning.value == pytest.approx(dense.model_.record.tuning.value, rel=0.01)


def test_standard_deviations_of_a_process():
    X, y = sparse_problem(300, 40, 4.0)
    model = GaussianProcessRegressor(30, lengthscale=5.0, noise_variance=0.1, signal_variance=1.0, kernel="gaussian")
    (_, sparse), (_, dense) = (model.fit(rows, y).predict(rows, return_std=True) for rows in (X, X.toarray()))
    assert_allclose(sparse, dense, rtol=1e-8)


def test_options_of_processes_that_need_dense_rows_are_refused():
    X, y = sparse_problem(100, 20, 3.0)
    for options, words in (({"ard": True}, "ard"), ({"approximation": "pitc", "partition": "cells"}, "cells")):
        with pytest.raises(ParameterError, match=rf"sparse.*{words}"):
            GaussianProcessRegressor(10, **options).fit(X, y)


def test_folds_repeats_and_weights_are_those_of_the_dense_rows():
    X, y = sparse_problem(2200, 60, 4.0)
    X = scipy.sparse.vstack([X, X[:400]], format="csr")  # of which some repeat others
    y = np.concatenate([y, y[:400]])
    w = np.minimum(np.random.default_rng(0).integers(0, 12, 2600), 2).astype(float)
    for fit in (lambda model, rows: model.fit(rows, y), lambda model, rows: model.fit(rows, y, w)):
        with pytest.warns(StreamKernelWarning, match="are distinct"):
            sparse, dense = fit(KernelRidge(30, **OPTIONS), X), fit(KernelRidge(30, **OPTIONS), X.toarray())
        assert sparse.alpha_ == pytest.approx(dense.alpha_, rel=1e-6)
        assert sparse.model_.record.validation is not None
        assert sparse.model_.record.independent == pytest.approx(dense.model_.record.independent)
        assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize("estimator", [KernelRidge(9, alpha=0.1), KernelRidgeClassifier(9, alpha=0.1)], ids=str)
def test_scikit_learns_check_of_equivalence(estimator):
    check_sample_weight_equivalence_on_sparse_data(type(estimator).__name__, estimator)


def test_left_to_the_fit_sparse_rows_have_the_gaussian_kernel_and_no_metric():
    X, y = sparse_problem(2100, 30, 3.0)
    record = KernelRidge(20).fit(X, y).model_.record
    assert record.kernel["kernel"] == "sparse"
    assert record.kernel["part"]["kernel"] == "gaussian"
    assert record.metric_choice is None


def test_a_classifier_saved_and_loaded(tmp_path):
    X, y = sparse_problem(500, 50, 4.0)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    sparse, dense = (KernelRidgeClassifier(40, **OPTIONS).fit(rows, labels) for rows in (X, X.toarray()))
    assert_allclose(sparse.decision_function(X), dense.decision_function(X.toarray()), atol=1e-9)
    assert (sparse.predict(X) == dense.predict(X.toarray())).all()
    sparse.save(tmp_path / "model")
    loaded = KernelRidgeClassifier.load(tmp_path / "model")
    assert (loaded.decision_function(X) == sparse.decision_function(X)).all()
    assert (loaded.components_ != sparse.components_).nnz == 0
    assert loaded.model_.digest == sparse.model_.digest


def test_predictions_do_not_depend_on_the_fullest_row_of_a_table():
    X, y = sparse_problem(300, 50, 4.0)
    model = KernelRidge(30, **OPTIONS).fit(X, y)
    whole = model.predict(X)
    assert_allclose(np.concatenate([model.predict(X[[i]]) for i in range(0, 300, 29)]), whole[::29], rtol=1e-12)
    full = sparse_rows(20, 50, 45.0)
    assert np.diff(full.indptr).max() <= 50
    assert_allclose(model.predict(scipy.sparse.vstack([X, full]))[:300], whole, rtol=1e-12)


def test_equal_bits_for_any_number_of_threads():
    X, y = sparse_problem(9000, 40, 3.0)
    table, found = open_table(X, y, sparse=True), set()
    for threads in (1, 3):
        settings = KINDS["ridge"].settings(n_components=20, alpha=0.1).for_table(table)
        found.add(KINDS["ridge"].fit(table, settings, Session(ThreadExecutor(threads)), estimator="ridge").digest)
    assert len(found) == 1


def test_rows_of_the_other_kind_are_turned():
    X, y = sparse_problem(2500, 20, 3.0)
    sparse, dense = KernelRidge(10, **OPTIONS).fit(X, y), KernelRidge(10, **OPTIONS).fit(X.toarray(), y)
    assert_allclose(sparse.predict(X.toarray()), sparse.predict(X), rtol=1e-12)
    assert_allclose(dense.predict(X), dense.predict(X.toarray()), rtol=1e-12)
    lazy = sparse.predict(open_table(X.toarray()))
    assert_allclose(np.asarray(lazy), sparse.predict(X), rtol=1e-12)
    assert_allclose(np.asarray(sparse.predict(open_table(X, sparse=True))), sparse.predict(X), rtol=1e-12)
    assert sparse.score(open_table(X, y, sparse=True)) == pytest.approx(sparse.score(X, y))


def test_rows_of_another_width_are_refused():
    X, y = sparse_problem(200, 20, 3.0)
    sparse = KernelRidge(10, **OPTIONS).fit(X, y)
    with pytest.raises(ValueError, match="20 features"):
        sparse.predict(X[:, :19])
    with pytest.raises(ValueError, match="20 features"):
        sparse.update(X[:, :19], y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "hamming"}, "hamming"),
        ({"kernel": "auto"}, "auto"),
        ({"lengthscale": [1.0] * 20}, "one for each column"),
        ({"metric": "learned"}, "metric"),
        ({"metric": np.eye(20)}, "metric"),
        ({"scale": "robust"}, "zeros"),
        ({"scale": "rank"}, "zeros"),
        ({"rule": "kmeans"}, "kmeans"),
        ({"rule": "columns", "kernel": "linear"}, "columns"),
    ],
    ids=str,
)
def test_options_of_dense_rows_are_refused_before_a_row_is_read(options, words, monkeypatch):
    X, y = sparse_problem(200, 20, 3.0)
    monkeypatch.setattr("streamkernel.table._sparse_rows.SparseRows.load", None)
    with pytest.raises(ParameterError, match=words) as error:
        KernelRidge(10, **{"kernel": "gaussian", **options}).fit(X, y)
    assert "sparse" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_value_that_is_no_number_is_named():
    X, y = sparse_problem(60, 10, 3.0)
    X.data[5] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"first in row \d+, column 'x\d'"):
        KernelRidge(10).fit(X, y)


def test_a_plan_reads_nothing_and_holds():
    X, y = sparse_problem(3000, 400, 5.0)
    found = plan(KernelRidge(50, alpha=0.1), open_table(X, y, sparse=True)).plan
    fitted = KernelRidge(50, alpha=0.1).fit(X, y).model_.record.run
    assert 0 < found.memory_bytes < 2**30
    assert fitted.peak_memory_bytes > 0


@pytest.mark.parametrize("damage", ["column", "kernel", "order", "scaler"])
def test_a_forged_model_is_refused(tmp_path, damage):
    X, y = sparse_problem(100, 20, 3.0)
    model = KernelRidge(10, **OPTIONS).fit(X, y).model_
    config, arrays = json.loads(json.dumps(model.config)), dict(model.arrays)
    if damage == "column":
        arrays["components"] = np.where(arrays["components"] == 10.0, 1e9, arrays["components"])
    elif damage == "order":
        arrays["components"] = arrays["components"][:, ::-1].copy()
    elif damage == "kernel":
        config["kernel"]["n_columns"] = 10**6
    else:
        config["scaler"] = {**config["scaler"], "kind": "standard", "mean": [0.0] * 20}
    with pytest.raises(ModelFormatError):
        type(model).from_config(config, arrays).checked("model")
