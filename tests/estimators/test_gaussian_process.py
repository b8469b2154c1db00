"""Gaussian process regression: scikit-learn's exact one where all rows are basis, and what an estimator owes a user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from memory import measured
from naive.gaussian_process import conditional_covariance, sparse_process
from numpy.typing import NDArray
from problems import zarr_of_chunks
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor, KernelRidge, open_table
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import (
    DataError,
    DegenerateBandwidthError,
    DTypeError,
    ModelFormatError,
    ParameterError,
    StreamKernelWarning,
)
from streamkernel.estimators import GaussianSettings, fit_gaussian, plan_gaussian
from streamkernel.kernels import Gaussian

APPROXIMATIONS = ["dtc", "fitc", "pitc"]
SIGNAL, NOISE, LENGTH = 2.0, 0.05, 1.3
GIVEN: dict[str, Any] = {"lengthscale": LENGTH, "signal_variance": SIGNAL, "noise_variance": NOISE, "tune": "none"}
PLAIN: dict[str, Any] = {"rule": "uniform", "scale": "none", "fit_intercept": False}


def rows(m: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(m)


X, Y = rows(400)
FEW, FEW_Y = X[:80], Y[:80]
ASKED = np.random.default_rng(1).normal(scale=1.5, size=(40, 3))


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


# --- hyper-parameters ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned() -> dict[tuple[str, str], GaussianProcessRegressor]:
    return {
        (name, tune): GaussianProcessRegressor(40, approximation=name, tune=tune).fit(X, Y)
        for name in ("dtc", "fitc")
        for tune in ("none", "sample", "full")
    }


@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_more_search_is_more_evidence(approximation: str, tuned: dict[tuple[str, str], Any]) -> None:
    none, sample, full = (tuned[approximation, tune] for tune in ("none", "sample", "full"))
    # From the same basis on.
    np.testing.assert_array_equal(full.component_indices_, sample.component_indices_)
    assert full.n_sweeps_ > sample.n_sweeps_
    tuning, arrays = full.model_.config["tuning"], full.model_.arrays
    stages, values = arrays["tuning_stage"], arrays["tuning_values"]
    assert tuning["parameters"] == ["lengthscale", "signal variance", "noise variance"]
    assert len(arrays["tuning_parameters"]) == len(values) == len(stages)
    assert stages.tolist() == sorted(stages)
    assert stages[tuning["best"]] == 1
    # The first look at all rows is at what the sample had found.
    assert values[tuning["best"]] == values[stages == 1].max() >= values[stages == 1][0]
    assert np.exp(arrays["tuning_parameters"][tuning["best"], 0]) == pytest.approx(full.lengthscale_, rel=1e-9)
    assert set(sample.model_.arrays["tuning_stage"]) == {0}
    assert sample.log_marginal_likelihood_value_ > none.log_marginal_likelihood_value_ + 1.0
    if approximation == "dtc":
        assert full.evidence_lower_bound_ >= sample.evidence_lower_bound_ - 1e-6
        assert sample.evidence_lower_bound_ > none.evidence_lower_bound_ + 1.0
    assert 0.002 < full.noise_variance_[0] < 0.1  # 0.01, and what 40 functions leave


def test_no_search_is_the_median_lengthscale(tuned: dict[tuple[str, str], Any]) -> None:
    median = GaussianProcessRegressor(40, lengthscale="median").fit(X, Y)
    none = tuned["fitc", "none"]
    # Of a sample of 1000 or 5000 rows, which are all of them.
    assert none.lengthscale_ == pytest.approx(median.lengthscale_, rel=1e-12)
    assert none.model_.config["tuning"]["moved"] == ["signal", "noise"]
    assert tuned["dtc", "none"].model_.config["tuning"] is None
    assert none.noise_variance_[0] == pytest.approx(median.noise_variance_[0], rel=1e-9)


@pytest.mark.parametrize("tune", ["sample", "full"])
@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
@pytest.mark.parametrize(
    "given",
    [
        {"lengthscale": 1.7},
        {"gamma": 0.25},
        {"kernel": Gaussian(1.7)},
        {"kernel": "linear"},
        {"noise_variance": 0.3, "lengthscale": "median"},
        {"noise_variance": 0.3},
        {"signal_variance": 4.0},
        {"signal_variance": 4.0, "noise_variance": 0.3, "lengthscale": [1.0, 2.0, 4.0]},
    ],
    ids=lambda given: " ".join(given),
)
def test_what_is_given_is_kept(given: dict[str, Any], approximation: str, tune: str) -> None:
    options = {"approximation": approximation, "tune": tune, **given}
    model = GaussianProcessRegressor(3 if "linear" in given.values() else 20, **options).fit(X[:120], Y[:120])
    if "noise_variance" in given:
        assert model.noise_variance_[0] == pytest.approx(0.3, rel=1e-12)
    if "signal_variance" in given:
        assert model.signal_variance_[0] == pytest.approx(4.0, rel=1e-12)
    if isinstance(given.get("lengthscale"), (float, list)):
        assert model.lengthscale_ == given["lengthscale"]
    if "gamma" in given:
        assert model.lengthscale_ == pytest.approx(np.sqrt(2.0))
    if isinstance(given.get("kernel"), Gaussian):
        assert model.kernel_ == given["kernel"]
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_a_feature_that_is_noise_gets_a_long_lengthscale() -> None:
    model = GaussianProcessRegressor(60, ard=True).fit(X, Y)
    lengths = np.asarray(model.lengthscale_)
    assert lengths.shape == (3,)
    assert lengths[2] > 5 * lengths[:2].max()
    shared = GaussianProcessRegressor(60).fit(X, Y)
    assert model.log_marginal_likelihood_value_ > shared.log_marginal_likelihood_value_ + 10
    names = model.model_.config["tuning"]["parameters"]
    assert names == [*(f"lengthscale of x{j}" for j in range(3)), "signal variance", "noise variance"]
    Q, q = rows(500, seed=5)
    assert model.score(Q, q) > shared.score(Q, q)


@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_units_of_targets_and_features(approximation: str, tuned: dict[tuple[str, str], Any]) -> None:
    model = GaussianProcessRegressor(40, approximation=approximation).fit(X * [1.0, 50.0, 1e-3], 1e3 * Y - 5e4)
    plain = tuned[approximation, "sample"]
    mean, std = model.predict(ASKED * [1.0, 50.0, 1e-3], return_std=True)
    expected, deviation = plain.predict(ASKED, return_std=True)
    np.testing.assert_allclose(std, 1e3 * deviation, rtol=1e-2)
    np.testing.assert_allclose(mean, 1e3 * expected - 5e4, atol=5.0)
    np.testing.assert_allclose(model.noise_variance_, 1e6 * plain.noise_variance_, rtol=1e-2)


def test_intervals_cover_what_they_say() -> None:
    A, a = rows(1500, seed=7)
    Q, q = rows(2000, seed=8)
    mean, std = GaussianProcessRegressor(80, ard=True).fit(A, a).predict(Q, return_std=True)
    assert 0.92 < (np.abs(q - mean) < 1.96 * std).mean() < 0.98


def test_several_targets_have_variances_of_their_own() -> None:
    rng = np.random.default_rng(3)
    both = np.column_stack([Y, 100.0 * (Y + rng.standard_normal(400))])
    model = GaussianProcessRegressor(40, approximation="dtc").fit(X, both)
    assert model.noise_variance_.shape == model.signal_variance_.shape == model.effective_df_.shape == (2,)
    assert 5e3 < model.noise_variance_[1] < 2e4
    assert model.noise_variance_[0] < 0.1
    options: dict[str, Any] = {"lengthscale": 1.3, "rule": "uniform", "approximation": "dtc"}
    one, two = GaussianProcessRegressor(40, **options).fit(X, Y), GaussianProcessRegressor(40, **options).fit(X, both)
    np.testing.assert_allclose(two.noise_variance_[0], one.noise_variance_[0], rtol=1e-6)
    np.testing.assert_allclose(two.predict(ASKED)[:, 0], one.predict(ASKED), rtol=1e-6, atol=1e-8)
    # Of the others the ratio of the two variances is shared, their level is not.
    both_fitc = GaussianProcessRegressor(40, approximation="fitc").fit(X, both)
    ratios = both_fitc.signal_variance_ / both_fitc.noise_variance_
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)
    assert both_fitc.noise_variance_[1] > 1e3 * both_fitc.noise_variance_[0]


# --- awkward data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 3.0, -1e8])
def test_constant_targets(constant: float) -> None:
    targets = np.full(400, constant)
    with pytest.raises(DataError, match=r"constant, and no evidence tells .* give these as numbers"):
        GaussianProcessRegressor(20).fit(X, targets)
    for options in (GIVEN, {**GIVEN, "approximation": "dtc"}, {"tune": "none", "approximation": "dtc"}):
        mean, std = GaussianProcessRegressor(20, **options).fit(X, targets).predict(ASKED, return_std=True)
        np.testing.assert_allclose(mean, constant, rtol=1e-9, atol=1e-9)
        assert np.isfinite(std).all()
    mixed = GaussianProcessRegressor(20).fit(X, np.column_stack([targets, Y]))
    np.testing.assert_allclose(mixed.predict(ASKED)[:, 0], constant, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        mixed.predict(ASKED)[:, 1], GaussianProcessRegressor(20).fit(X, Y).predict(ASKED), atol=0.02
    )


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_duplicate_rows(approximation: str) -> None:
    copies, targets = np.repeat(X[:20], 5, axis=0), np.repeat(Y[:20], 5) + 0.1 * np.tile([-2, -1, 0, 1, 2], 20)
    model = GaussianProcessRegressor(60, approximation=approximation, block_size=10)
    with pytest.warns(StreamKernelWarning, match="only 20 of 60 basis functions are linearly independent"):
        model.fit(copies, targets)
    assert len(model.components_) == 20
    assert model.noise_variance_[0] == pytest.approx(0.02, rel=0.7)  # of the copies, 0.02
    assert model.score(copies, targets) > 0.9


def test_more_functions_than_the_kernel_has() -> None:
    options: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    with pytest.warns(StreamKernelWarning, match=r"only 1\d of 30"):
        model = GaussianProcessRegressor(30, **options).fit(X, 1.0 + X[:, 0] * X[:, 1] + 0.1 * Y)
    assert 10 <= len(model.components_) <= 12  # 10, and what rounding tells apart
    assert model.relative_residual_trace_ < 1e-9
    np.testing.assert_allclose(model.predict(ASKED), 1.0 + ASKED[:, 0] * ASKED[:, 1], atol=1.0)


@pytest.mark.filterwarnings("ignore:.*columns are constant")
def test_equal_rows_have_no_median_lengthscale() -> None:
    with pytest.raises(DegenerateBandwidthError, match="give a lengthscale as a number"):
        GaussianProcessRegressor(5).fit(np.ones((50, 3)), Y[:50])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_very_few_rows(m: int) -> None:
    mean, std = GaussianProcessRegressor(1, scale="none", **GIVEN).fit(X[:m], Y[:m]).predict(ASKED, return_std=True)
    assert np.isfinite(mean).all()
    assert (std**2 >= NOISE * (1 - 1e-12)).all()
    assert (std**2 <= SIGNAL + NOISE + 1e-12).all()


class Untouchable:
    """Rows that fail the test when anything is asked of them."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the rows before the parameters were checked")


BAD: dict[str, list[Any]] = {
    "n_components": [0, 2.5, "10", True],
    "signal_variance": [0.0, -1.0, np.nan, np.inf, "gcv", True, None, [1.0]],
    "noise_variance": [0.0, -1.0, np.nan, np.inf, "much", True, None, [1.0]],
    "lengthscale": [0.0, -1.0, np.nan, "long", [1.0, -1.0, 1.0]],
    "tune": ["yes", None, True, 3],
    "approximation": ["vfe", "exact", None],
    "block_size": [0, -5, 2.5, True, "many", None],
    "partition": ["order", None],
    "ard": ["yes", None, 2],
    "kernel": ["gauss", 3],
    "memory_limit": ["lots"],
    "random_state": [-1],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name, values in BAD.items() for v in values], ids=repr)
def test_bad_parameters_before_any_io(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        GaussianProcessRegressor(**{name: value}).fit(Untouchable(), Untouchable())
    message = str(caught.value)
    assert "\n" not in message
    assert "random_state" in message or name.partition("_")[0] in message


@pytest.mark.parametrize(
    "given", [{"lengthscale": 1.0}, {"gamma": 1.0}, {"tune": "none"}, {"kernel": "linear"}], ids=str
)
def test_lengthscales_that_are_given_are_not_found_for_each_feature(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="ard has lengthscales found by evidence"):
        GaussianProcessRegressor(ard=True, **given).fit(Untouchable(), Untouchable())


def test_bad_rows_and_targets() -> None:
    with pytest.raises(DTypeError, match="text"):
        GaussianProcessRegressor(5).fit(X, np.where(Y > 0, "a", "b"))
    with pytest.raises(ParameterError, match="class labels, gp is a regression; use gp-classifier"):
        GaussianProcessRegressor(5).fit(open_table(X, np.where(Y > 0, "a", "b"), classify=True))
    with pytest.raises(ParameterError, match="more than the 400 rows"):
        GaussianProcessRegressor(401).fit(X, Y)
    with pytest.raises(ParameterError, match="no targets"):
        GaussianProcessRegressor(5).fit(da.from_array(X))


# --- the plan -----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("options", [{}, {"tune": "none", "approximation": "dtc"}, {"approximation": "pitc"}], ids=str)
def test_the_fit_sweeps_as_often_as_planned(options: dict[str, Any]) -> None:
    table, session = open_table(X, Y), Session(ThreadExecutor(1))
    settings = GaussianSettings(n_components=200, block_size=50, **options)
    model = fit_gaussian(table, settings, session)
    assert len(session.records) == plan_gaussian(table, settings, Machine(0, 1)).sweeps == model.config["sweep_count"]
