"""Hyper-parameters of Gaussian process regression: what is found, what stays, and what the targets' units do."""

from __future__ import annotations

from typing import Any

import data_sets
import numpy as np
import pytest
from gaussian_rows import ASKED, X, Y, rows
from sklearn.base import clone

from streamkernel import GaussianProcessRegressor, open_table
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.fits import fit_gaussian, plan_gaussian
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import ConstantNoise, GaussianEquations
from streamkernel.settings import GaussianSettings
from streamkernel.solvers import GaussianSystem

pytestmark = pytest.mark.usefixtures("few_points")

# --- hyper-parameters ---------------------------------------------------------------------------------------------


class Tuned(dict[tuple[str, str], GaussianProcessRegressor]):
    """Fits by approximation and search, made when a test asks for them."""

    def __missing__(self, key: tuple[str, str]) -> GaussianProcessRegressor:
        name, tune = key
        self[key] = GaussianProcessRegressor(40, approximation=name, tune=tune).fit(X, Y)
        return self[key]


@pytest.fixture(scope="module")
def tuned() -> Tuned:
    return Tuned()


@pytest.mark.parametrize("approximation", [pytest.param("dtc", marks=pytest.mark.slow), "fitc"])
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
        # All searches maximise the evidence of FITC: of the two bounds either may be the larger one.
        assert tuning["objective"] == "fitc"
        assert min(each.evidence_lower_bound_ for each in (sample, full)) > none.evidence_lower_bound_ + 1.0
    assert 0.002 < full.noise_variance_[0] < 0.1  # 0.01, and what 40 functions leave


def test_no_search_is_the_median_lengthscale(tuned: dict[tuple[str, str], Any]) -> None:
    median = GaussianProcessRegressor(40, lengthscale="median").fit(X, Y)
    none = tuned["fitc", "none"]
    # Of a sample of 1000 or 5000 rows, which are all of them.
    assert none.lengthscale_ == pytest.approx(median.lengthscale_, rel=1e-12)
    assert none.model_.config["tuning"]["moved"] == ["signal", "noise"]
    assert tuned["dtc", "none"].model_.config["tuning"] is None
    assert none.noise_variance_[0] == pytest.approx(median.noise_variance_[0], rel=1e-9)


# Two of the four searches: what is given is taken out of the parameters before any of them.
@pytest.mark.parametrize(("approximation", "tune"), [("dtc", "sample"), ("fitc", "full")])
@pytest.mark.parametrize(
    "given",
    [
        {"lengthscale": 1.7},
        pytest.param({"gamma": 0.25}, marks=pytest.mark.slow),
        pytest.param({"kernel": Gaussian(1.7)}, marks=pytest.mark.slow),
        {"kernel": "linear"},
        {"noise_variance": 0.3, "lengthscale": "median"},
        {"noise_variance": 0.3},
        pytest.param({"signal_variance": 4.0}, marks=pytest.mark.slow),
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


@pytest.mark.parametrize("approximation", [pytest.param("dtc", marks=pytest.mark.slow), "fitc"])
def test_units_of_targets_and_features(approximation: str) -> None:
    # Uniform rows are the same ones: those that a score picks depend on the last digits of the lengthscale.
    process = GaussianProcessRegressor(40, approximation=approximation, rule="uniform")
    model, plain = clone(process).fit(X * [1.0, 50.0, 1e-3], 1e3 * Y - 5e4), process.fit(X, Y)
    mean, std = model.predict(ASKED * [1.0, 50.0, 1e-3], return_std=True)
    expected, deviation = plain.predict(ASKED, return_std=True)
    # The search ends where the evidence is flat: rounding, which the units change, moves its end by .5 % and the means
    # by 2 % of their deviations.
    np.testing.assert_allclose(std, 1e3 * deviation, rtol=2e-2)
    np.testing.assert_array_less(np.abs(mean - (1e3 * expected - 5e4)), 0.06 * std)
    np.testing.assert_allclose(model.noise_variance_, 1e6 * plain.noise_variance_, rtol=2e-2)


def test_intervals_cover_what_they_say() -> None:
    A, a = rows(1500, seed=7)
    Q, q = rows(2000, seed=8)
    mean, std = GaussianProcessRegressor(40, ard=True).fit(A, a).predict(Q, return_std=True)
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


@pytest.mark.slow
def test_of_smooth_functions_the_sums_of_dtc_keep_their_digits() -> None:
    """Long lengthscales, and a noise of 1e-3 of the signal: rounding that whitening lifts would hide all below 0.1."""
    data = data_sets.friedman(2400, 10, 1.0, 2)
    dtc, fitc = (
        GaussianProcessRegressor(300, approximation=name, ard=True).fit(data.X[:400], data.y[:400])
        for name in ("dtc", "fitc")
    )
    errors = [float(np.sqrt(np.mean((model.predict(data.X[400:]) - data.y[400:]) ** 2))) for model in (dtc, fitc)]
    assert errors[0] < 1.02 * errors[1] < 1.1
    np.testing.assert_allclose(dtc.noise_variance_, fitc.noise_variance_, rtol=0.05)
    # Where they say so little is left open, the bound is as large as it can be at the variances of fitc.
    model = dtc.model_
    basis, bound = model.basis, dtc.evidence_lower_bound_
    equations = GaussianEquations(basis, model.arrays["centre"], ConstantNoise())
    table = open_table(data.X[:400], data.y[:400]).with_scaler(model.scaler)
    sums = Session(ThreadExecutor(1)).sweep(equations, table, "again")
    there = GaussianSystem(basis, sums, ConstantNoise()).solve(fitc.signal_variance_, fitc.noise_variance_).bound
    assert there is not None
    assert bound >= there[0]
    own = GaussianSystem(basis, sums, ConstantNoise()).solve(dtc.signal_variance_, dtc.noise_variance_).bound
    assert own is not None
    assert bound == pytest.approx(own[0], rel=1e-6)


@pytest.mark.parametrize("approximation", [pytest.param("dtc", marks=pytest.mark.slow), "fitc"])
def test_the_sums_of_the_last_step_over_all_rows_are_those_of_the_model(approximation: str) -> None:
    table, session = open_table(X, Y), Session(ThreadExecutor(1))
    settings = GaussianSettings(n_components=40, approximation=approximation, tune="full")
    model = fit_gaussian(table, settings, session)
    names = [record.name for record in session.records]
    looks = int((model.arrays["tuning_stage"] == 1).sum())
    assert sum(name.startswith("evidence") for name in names) == 2 * looks
    assert names.count("final sweep") == (approximation == "dtc")
    assert len(names) == model.config["sweep_count"] <= plan_gaussian(table, settings, Machine(0, 1)).sweeps
    again = Session(ThreadExecutor(1)).sweep(
        GaussianEquations(model.basis, model.arrays["centre"], model.row_noise),
        table.with_scaler(model.scaler),
        "again",
    )
    tolerance = 0.0 if approximation == "fitc" else 1e-9
    for name in ("H", "g", "YY", "squares"):
        expected = getattr(again, name)
        atol = tolerance * np.abs(expected).max()
        np.testing.assert_allclose(model.arrays.get(f"sum_{name}"), expected, rtol=tolerance, atol=atol)
    assert model.config["totals"]["log_det"] == pytest.approx(again.log_det, rel=1e-12)
