"""Gaussian process regression: scikit-learn's exact one where all rows are basis, and what an estimator owes a user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from gaussian_rows import APPROXIMATIONS, ASKED, FEW, FEW_Y, GIVEN, LENGTH, NOISE, PLAIN, SIGNAL, X, Y
from memory import measured
from naive.gaussian_process import conditional_covariance, sparse_process
from problems import zarr_of_chunks
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor, KernelRidge, open_table
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import (
    ModelFormatError,
    ParameterError,
    StreamKernelWarning,
)
from streamkernel.fits import fit_gaussian, plan_gaussian
from streamkernel.kernels import Gaussian
from streamkernel.settings import GaussianSettings

pytestmark = pytest.mark.usefixtures("few_points")


def exact(unit: Any, y: Any = FEW_Y) -> Any:
    kernel = ConstantKernel(SIGNAL, "fixed") * unit + WhiteKernel(NOISE, "fixed")
    return Reference(kernel, alpha=0.0, optimizer=None).fit(FEW, y)


# --- against exact and dense ones ---------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_all_rows_as_basis_are_scikit_learns(approximation: str, targets: int) -> None:
    y = FEW_Y if targets == 1 else np.column_stack([FEW_Y, 3 - 2 * FEW_Y])
    ours = GaussianProcessRegressor(80, approximation=approximation, block_size=16, **GIVEN, **PLAIN).fit(FEW, y)
    theirs = exact(RBF(LENGTH, "fixed"), y)
    for asked in (ASKED, FEW):
        mean, std = ours.predict(asked, return_std=True)
        same_mean, cov = ours.predict(asked, return_cov=True)
        np.testing.assert_allclose(mean, theirs.predict(asked), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(std, theirs.predict(asked, return_std=True)[1], rtol=1e-7)
        np.testing.assert_allclose(same_mean, mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.predict(asked), mean, rtol=1e-12, atol=1e-12)
        expected = theirs.predict(asked, return_cov=True)[1]
        np.testing.assert_allclose(cov, expected, rtol=1e-7, atol=1e-8)
        assert (mean.shape, std.shape, cov.shape) == ((len(asked), *y.shape[1:]),) * 2 + (expected.shape,)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-8)
    np.testing.assert_array_equal(ours.signal_variance_, np.full(targets, SIGNAL))
    np.testing.assert_array_equal(ours.noise_variance_, np.full(targets, NOISE))
    assert ours.score(ASKED, theirs.predict(ASKED)) > 1 - 1e-9
    if approximation == "dtc":
        assert ours.evidence_lower_bound_ == pytest.approx(ours.log_marginal_likelihood_value_, rel=1e-8)
    else:
        assert ours.evidence_lower_bound_ is None


def test_another_kernel_and_a_lengthscale_for_each_feature() -> None:
    lengths = [0.8, 1.5, 3.0]
    ours = GaussianProcessRegressor(80, kernel="matern52", **{**GIVEN, "lengthscale": lengths}, **PLAIN)
    theirs = exact(Matern(lengths, "fixed", nu=2.5))
    mean, std = ours.fit(FEW, FEW_Y).predict(ASKED, return_std=True)
    np.testing.assert_allclose(mean, theirs.predict(ASKED), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, theirs.predict(ASKED, return_std=True)[1], rtol=1e-8)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


def test_an_intercept_is_the_mean_of_the_targets() -> None:
    options = {**PLAIN, "fit_intercept": True}
    ours = GaussianProcessRegressor(80, **GIVEN, **options).fit(FEW, FEW_Y + 100.0)
    theirs = exact(RBF(LENGTH, "fixed"), FEW_Y - FEW_Y.mean())
    assert ours.intercept_ == pytest.approx(100.0 + FEW_Y.mean(), rel=1e-12)
    np.testing.assert_allclose(ours.predict(ASKED), theirs.predict(ASKED) + ours.intercept_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:the committee has 12 query points")
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_few_basis_functions_are_the_dense_formulas(approximation: str) -> None:
    model = GaussianProcessRegressor(12, approximation=approximation, block_size=16, **GIVEN, **PLAIN)
    model.fit(FEW, FEW_Y)
    k, Z = Gaussian(LENGTH), FEW[model.component_indices_]
    R = k(FEW) - k(FEW, Z) @ np.linalg.solve(k(Z), k(Z, FEW))
    size = {"dtc": 0, "fitc": 1, "pitc": 16}[approximation]
    members = [range(first, first + size) for first in range(0, 80, size)] if size else None
    Om = conditional_covariance(R, NOISE, SIGNAL, members)
    dense = sparse_process(k(FEW, Z), k(Z), k(FEW), FEW_Y, Om, k(ASKED, Z), k(ASKED), SIGNAL)
    mean, cov = model.predict(ASKED, return_cov=True)
    np.testing.assert_allclose(mean, dense.mean[:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(cov, dense.covariance + NOISE * np.eye(40), rtol=1e-8, atol=1e-9)
    assert model.log_marginal_likelihood_value_ == pytest.approx(dense.log_evidence[0], rel=1e-9)
    if approximation == "dtc":
        assert model.evidence_lower_bound_ == pytest.approx(dense.bound[0], rel=1e-9)
        theirs = exact(RBF(LENGTH, "fixed"))
        assert model.evidence_lower_bound_ < theirs.log_marginal_likelihood_value_


def test_one_block_is_exact_at_the_basis_points_and_blocks_of_a_row_are_fitc() -> None:
    theirs = exact(RBF(LENGTH, "fixed"))

    def fitted(**options: Any) -> GaussianProcessRegressor:
        return GaussianProcessRegressor(12, **options, **GIVEN, **PLAIN).fit(FEW, FEW_Y)

    with pytest.warns(StreamKernelWarning, match="12 query points for"):
        one, ones = fitted(approximation="pitc", block_size=80), fitted(approximation="pitc", block_size=1)
    Z = one.components_
    mean, std = one.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, theirs.predict(Z), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std, theirs.predict(Z, return_std=True)[1], rtol=1e-9)
    assert np.abs(fitted(approximation="dtc").predict(Z) - theirs.predict(Z)).max() > 1e-3
    assert one.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)
    for name in ("dual_coef_", "log_marginal_likelihood_value_", "effective_df_"):
        np.testing.assert_allclose(getattr(ones, name), getattr(fitted(approximation="fitc"), name), rtol=1e-9)


# --- input of any kind, and disk ----------------------------------------------------------------------------------


INPUTS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "dask": lambda folder: (da.from_array(X, chunks=(90, -1)), da.from_array(Y, chunks=90)),
    "path": lambda folder: (zarr_of_chunks(folder / "rows.zarr", X, Y, 90), None),
    "table": lambda folder: (open_table(X, Y), None),
    "xarray": lambda folder: (xr.Dataset({"X": (("row", "feature"), X), "y": (("row",), Y)}), None),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, GaussianProcessRegressor]:
    return {name: GaussianProcessRegressor(30, approximation=name, **GIVEN).fit(X, Y) for name in ("dtc", "fitc")}


@pytest.mark.parametrize("kind", INPUTS)
def test_rows_of_any_kind_and_lazy_predictions(
    kind: str, fitted: dict[str, GaussianProcessRegressor], tmp_path: Path
) -> None:
    source, y = INPUTS[kind](tmp_path)
    model, expected = GaussianProcessRegressor(30, **GIVEN).fit(source, y), fitted["fitc"]
    np.testing.assert_array_equal(model.component_indices_, expected.component_indices_)
    found, wanted = model.predict(source, return_std=True), expected.predict(X, return_std=True)
    for lazy, eager in zip([*found, model.predict(source)], [*wanted, wanted[0]], strict=True):
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == ((400,), np.float64)
        np.testing.assert_allclose(lazy.compute(scheduler="threads"), eager, rtol=1e-7, atol=1e-8)
    with pytest.raises(ParameterError, match="return_cov is for rows in memory"):
        model.predict(source, return_cov=True)
    with pytest.raises(ParameterError, match="exclude each other"):
        model.predict(X, return_std=True, return_cov=True)


def test_float32_rows() -> None:
    single = GaussianProcessRegressor(30, **GIVEN).fit(X.astype(np.float32), Y)
    double = GaussianProcessRegressor(30, **GIVEN).fit(X.astype(np.float32).astype(np.float64), Y)
    for one, two in zip(
        single.predict(X.astype(np.float32), return_std=True), double.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


SAVED: dict[str, Callable[[], GaussianProcessRegressor]] = {
    "tuned": lambda: GaussianProcessRegressor(20, ard=True).fit(FEW, FEW_Y),
    "two targets": lambda: GaussianProcessRegressor(20, approximation="fitc", **GIVEN).fit(X, np.c_[Y, -Y]),
    "one column": lambda: GaussianProcessRegressor(20, scale="none", **GIVEN).fit(X, Y[:, None]),
    "blocks in cells": lambda: GaussianProcessRegressor(
        200, approximation="pitc", block_size=20, partition="cells", **{**GIVEN, "lengthscale": 2.0}
    ).fit(X, Y),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = SAVED[name]()
    model.save(tmp_path / "model")
    again = GaussianProcessRegressor.load(tmp_path / "model")
    assert again.model_.digest == model.model_.digest
    for one, two in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, two)
        assert one.shape == (400, *model.dual_coef_.shape[1:])
    np.testing.assert_array_equal(again.predict(FEW, return_cov=True)[1], model.predict(FEW, return_cov=True)[1])
    for attribute in (
        "components_", "component_indices_", "dual_coef_", "intercept_", "signal_variance_", "noise_variance_",
        "effective_df_", "log_marginal_likelihood_value_", "evidence_lower_bound_", "lengthscale_", "kernel_",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))


def test_models_of_another_kind_are_refused(tmp_path: Path, fitted: dict[str, GaussianProcessRegressor]) -> None:
    fitted["dtc"].save(tmp_path / "gp")
    for other in (KernelRidge, BayesianCommitteeMachine):
        with pytest.raises(ModelFormatError):
            other.load(tmp_path / "gp")


# --- the plan -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_promise_of_memory_is_kept(tmp_path: Path) -> None:
    planned, peak = measured(tmp_path, "gp", 30_000, approximation="dtc", tune="none", n_components=200)
    assert peak <= planned < 3 * peak


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"tune": "sample", "approximation": "dtc"},
        {"tune": "sample", "ard": True},
        {"tune": "full"},
        {"tune": "none", "approximation": "pitc", "block_size": 500, "partition": "cells"},
    ],
    ids=str,
)
def test_the_promise_of_memory_is_kept_by_searches_and_blocks(tmp_path: Path, options: dict[str, Any]) -> None:
    planned, peak = measured(tmp_path, "gp", 60_000, n_components=300, **options)
    assert peak <= planned


@pytest.mark.filterwarnings("ignore:the committee has 70 query points")
@pytest.mark.parametrize("options", [{}, {"tune": "none", "approximation": "dtc"}, {"approximation": "pitc"}], ids=str)
def test_the_fit_sweeps_as_often_as_planned(options: dict[str, Any]) -> None:
    table, session = open_table(X[:150], Y[:150]), Session(ThreadExecutor(1))
    settings = GaussianSettings(n_components=70, block_size=20, **options)
    model = fit_gaussian(table, settings, session)
    assert len(session.records) == plan_gaussian(table, settings, Machine(0, 1)).sweeps == model.config["sweep_count"]
