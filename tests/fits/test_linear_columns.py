"""The linear kernel on the columns: every kind of fit is its linear one, and the plan says what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from problems import cut_session
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from updates import plain_sums, update

import streamkernel as sk
from streamkernel.engine import Machine, Session
from streamkernel.errors import ParameterError, SingularKernelError
from streamkernel.fits.ridge.ridge import fit_ridge, plan_ridge
from streamkernel.kernels import Linear
from streamkernel.models import RidgeModel
from streamkernel.report import write_report
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.table import open_table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 6)) * [1, 2, 3, 1, 5, 0.1] + 3
Y = X @ RNG.standard_normal(6) + 0.3 * RNG.standard_normal(400)
CLASS = np.median(Y) < Y
S = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("options", [{}, {"rule": "columns"}, {"rule": "columns", "n_components": 6}, {"solver": "cg"}])
def test_ridge_is_linear_ridge(options: Any) -> None:
    ours = sk.KernelRidge(kernel="linear", alpha=2.0, **options).fit(X, Y)
    theirs = Ridge(alpha=2.0).fit(S, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(S), rtol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_.ravel(), theirs.coef_, rtol=1e-9)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-10)
    np.testing.assert_array_equal(ours.component_indices_, [-1] * 6)
    assert ours.model_.record.rule == "columns"
    assert ours.residual_trace_ < 1e-10 * len(X)


def test_the_columns_are_those_of_a_metric() -> None:
    metric = RNG.standard_normal((6, 2))
    ours = sk.KernelRidge(kernel="linear", alpha=2.0, metric=metric).fit(X, Y)
    theirs = Ridge(alpha=2.0).fit(S @ metric, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(S @ metric), rtol=1e-9)
    assert ours.components_.shape == (2, 6)


@pytest.mark.parametrize("scale", ["none", "robust", "rank"])
def test_any_scaling(scale: str) -> None:
    ours = sk.KernelRidge(kernel="linear", alpha=2.0, scale=scale).fit(X, Y)
    G = ours.model_.scaler.apply(X, np.dtype(float)) if ours.model_.scaler else X
    np.testing.assert_allclose(ours.predict(X), Ridge(alpha=2.0).fit(G, Y).predict(G), rtol=1e-9)


def test_a_wide_table_has_its_rows_as_basis_unless_told_otherwise() -> None:
    wide = RNG.standard_normal((20, 50))
    assert sk.KernelRidge(kernel="linear").fit(wide, wide[:, 0]).model_.record.rule == "few-sweep prediction"
    ours = sk.KernelRidge(kernel="linear", rule="columns", alpha=1.0, scale="none").fit(wide, wide[:, 0])
    assert len(ours.components_) == 50
    np.testing.assert_allclose(ours.predict(wide), Ridge(alpha=1.0).fit(wide, wide[:, 0]).predict(wide), atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"n_components": 4}, {"rule": "uniform"}, {"tol": 0.1}, {"rule_options": {"candidates": 5}}]
)
def test_what_is_named_is_taken(options: Any) -> None:
    model = sk.KernelRidge(kernel="linear", **{"n_components": 4, **options}).fit(X, Y).model_
    assert (model.component_indices >= 0).all()
    assert len(model.basis) <= 4


def test_a_kernel_object_is_the_same() -> None:
    named, given = (sk.KernelRidge(kernel=kernel, alpha=1.0).fit(X, Y) for kernel in ("linear", Linear()))
    assert given.model_.record.rule == "columns"
    np.testing.assert_array_equal(named.dual_coef_, given.dual_coef_)


def test_wrong_sizes_and_kernels() -> None:
    for n in (5, 7):
        with pytest.raises(
            ParameterError, match=f"n_components is {n}, and the rule 'columns' has .* of the 6 columns"
        ):
            sk.KernelRidge(kernel="linear", rule="columns", n_components=n).fit(X, Y)
    with pytest.raises(ParameterError, match="not of 'gaussian'; give kernel='linear'"):
        sk.KernelRidge(rule="columns", kernel="gaussian").fit(X, Y)


def test_columns_that_depend_on_each_other() -> None:
    twice = np.column_stack([X, X[:, 0] - X[:, 1]])
    G = (twice - twice.mean(axis=0)) / twice.std(axis=0)
    ours = sk.KernelRidge(kernel="linear", alpha=1.0).fit(twice, Y)
    np.testing.assert_allclose(ours.predict(twice), Ridge(alpha=1.0).fit(G, Y).predict(G), rtol=1e-8)
    with pytest.raises(SingularKernelError, match="alpha = 0"):
        sk.KernelRidge(kernel="linear", alpha=0.0).fit(twice, Y)


# ------------------------------------------------------------------------------------------------------- other kinds
@pytest.mark.parametrize("approximation", ["dtc", "fitc", "pitc"])
def test_a_gaussian_process_is_bayesian_linear_regression(approximation: str) -> None:
    ours = sk.GaussianProcessRegressor(
        kernel="linear", approximation=approximation, signal_variance=1.5, noise_variance=0.2, fit_intercept=False
    ).fit(X, Y)
    K = 1.5 * S @ S.T
    mean, variance, _ = naive.gaussian_process(K, Y, 0.2, K[:9], np.diag(K)[:9])
    found, std = ours.predict(X[:9], return_std=True)
    np.testing.assert_allclose(found, mean, rtol=1e-7)
    assert ours.model_.record.rule == "columns"
    assert (std**2 >= variance * (1 - 1e-6)).all()


@pytest.mark.parametrize(
    ("estimator", "targets"),
    [
        (sk.KernelRidgeClassifier, CLASS),
        (sk.GaussianProcessClassifier, CLASS),
        (sk.BayesianCommitteeMachine, Y),
    ],
)
def test_other_estimators(estimator: Any, targets: Any) -> None:
    model = estimator(kernel="linear").fit(X, targets)
    assert model.model_.record.rule == "columns"
    assert model.score(X, targets) > 0.9


def test_transformers_and_factors(tmp_path: Path) -> None:
    features = sk.Nystroem(kernel="linear").fit_transform(X)
    np.testing.assert_allclose(features, S, rtol=1e-10, atol=1e-12)
    ours, theirs = sk.KernelPCA(kernel="linear", n_components=3).fit_transform(X), PCA(3).fit_transform(S)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-7, atol=1e-9)
    factor = sk.factorize(X, tmp_path / "factor", kernel="linear", dtype="float64")
    np.testing.assert_allclose(factor.G[:], S, rtol=1e-10, atol=1e-12)
    assert factor.residual_trace == pytest.approx(0.0, abs=1e-9)


# --------------------------------------------------------------------------------------------- plan, storage, updates
def fitted(session: Session | None = None, rows: Any = X, **options: Any) -> Any:
    settings = RidgeSettings(kernel="linear", **{"alpha": 1.0, **options})
    return fit_ridge(open_table(rows, Y[: len(rows)]), settings, session or Session())


def test_chunks_and_workers_do_not_matter() -> None:
    one, two = (fitted(cut_session((150, 1, 249), 64, threads)) for threads in (1, 2))
    assert one.digest == two.digest
    np.testing.assert_allclose(fitted().arrays["dual_coef"], one.arrays["dual_coef"], rtol=1e-9)


def test_the_plan_has_the_size_and_no_sweep_of_the_rule() -> None:
    table, settings = open_table(X, Y), RidgeSettings(kernel="linear", alpha=1.0)
    session, machine = Session(), Machine(0, 1, 1 << 20)
    plan = plan_ridge(table, settings, machine)
    fit_ridge(table, settings, session)
    assert plan.sweeps == len(session.records)
    sized = plan_ridge(table, RidgeSettings(6, "linear", rule="uniform", alpha=1.0), machine)
    assert plan.sweeps <= sized.sweeps
    assert plan.memory_bytes <= sized.memory_bytes


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "model")
    again = RidgeModel.load(tmp_path / "model")
    np.testing.assert_array_equal(again.component_indices, [-1] * 6)
    assert again.digest == model.digest
    write_report(model, tmp_path / "page.html")
    assert "columns" in (tmp_path / "page.html").read_text()


def test_updates_are_exact() -> None:
    part, whole = fitted(rows=X[:250], scale="none"), fitted(scale="none")
    found = update(part, open_table(X, Y), grow=5)
    assert (found.rows_folded, len(found.model.basis)) == (150, 6)
    np.testing.assert_allclose(found.model.arrays["dual_coef"], whole.arrays["dual_coef"], rtol=1e-9)
    scaled = update(fitted(rows=X[:250]), open_table(X[250:], Y[250:])).model
    for name, expected in plain_sums(scaled, X, Y).items():
        np.testing.assert_allclose(scaled.arrays[f"sum_{name}"], expected, rtol=1e-9, atol=1e-9)
