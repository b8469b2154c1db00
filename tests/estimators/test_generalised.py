"""Classification and counts: scikit-learn's classifiers where they can be compared, dense formulas where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from generalised_rows import ASKED, COUNTS, FEW, GIVEN, K_QM, LENGTH, PLAIN, RNG, SIGNAL, THREE, TWO, K, X
from memory import measured
from naive.generalised import average_logistic, generalised, laplace_posterior
from numpy.typing import NDArray
from problems import zarr_of_chunks
from sklearn.gaussian_process import GaussianProcessClassifier as Reference
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from streamkernel import GaussianProcessClassifier, GaussianProcessPoissonRegressor, open_table
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import (
    ModelFormatError,
    StreamKernelWarning,
)
from streamkernel.fits import fit_generalised, plan_generalised
from streamkernel.kernels import Gaussian
from streamkernel.settings import GeneralisedSettings

pytestmark = pytest.mark.usefixtures("few_points")


def latent(model: Any, asked: NDArray[Any]) -> NDArray[Any]:
    """E f (q, c) of a model without a scaler."""
    posterior = model.model_.posterior
    return np.asarray(posterior.basis.block(asked) @ posterior.coefficients + posterior.intercept)


# --- against scikit-learn and dense ones --------------------------------------------------------------------------


def test_without_a_constant_the_mode_is_scikit_learns() -> None:
    """Its classifier has no constant; the settings of ours can leave it out."""
    table = open_table(X[FEW], TWO[FEW], classify=True)
    options = {**GIVEN, **PLAIN, "n_components": 70, "fit_intercept": False}
    model = fit_generalised(
        table, GeneralisedSettings(**options), Session(ThreadExecutor(1)), estimator="gp-classifier"
    )
    kernel = ConstantKernel(SIGNAL, "fixed") * RBF(LENGTH, "fixed")
    theirs = Reference(kernel, optimizer=None, max_iter_predict=100).fit(X[FEW], TWO[FEW])
    assert model.arrays["intercept"].tolist() == [0.0]
    assert model.config["solution"]["log_evidence"] == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-7)
    posterior = model.posterior
    f = posterior.basis.block(ASKED) @ posterior.coefficients
    inner = theirs.base_estimator_
    np.testing.assert_allclose(
        f[:, 0], inner.kernel_(ASKED, X[FEW]) @ (inner.y_train_ - inner.pi_), rtol=1e-6, atol=1e-7
    )
    # Its integral is by five error functions, good to some 1e-3.
    probability = model.predictions().map_block(open_table(ASKED).read(0, 25))["probability"]
    np.testing.assert_allclose(probability, theirs.predict_proba(ASKED), atol=2e-3)


def test_mode_variance_and_evidence_are_the_dense_ones_with_a_free_constant() -> None:
    model = GaussianProcessClassifier(70, **GIVEN, **PLAIN).fit(X[FEW], TWO[FEW])
    y = (TWO[FEW] == "yes").astype(float)
    dense = generalised(K, y, "bernoulli", intercept=True)
    mean, cov, log_evidence = laplace_posterior(K, y, "bernoulli", dense, K_QM, SIGNAL * Gaussian(LENGTH)(ASKED))
    np.testing.assert_allclose(latent(model, ASKED), mean, rtol=1e-6, atol=1e-6)
    assert model.log_marginal_likelihood_value_ == pytest.approx(log_evidence, rel=1e-7)
    expected = [average_logistic(float(m), float(v)) for m, v in zip(mean[:, 0], cov[:, 0, 0], strict=True)]
    np.testing.assert_allclose(model.predict_proba(ASKED)[:, 1], expected, atol=1e-6)
    assert model.signal_variance_ == SIGNAL


def test_three_classes_are_the_dense_softmax() -> None:
    model = GaussianProcessClassifier(70, **GIVEN, **PLAIN).fit(X[FEW], THREE[FEW])
    codes = np.searchsorted(model.classes_, THREE[FEW])
    dense = generalised(K, codes, "softmax", classes=3, intercept=True)
    mean = laplace_posterior(K, codes, "softmax", dense, K_QM, SIGNAL * Gaussian(LENGTH)(ASKED))[0]
    found = latent(model, ASKED)
    np.testing.assert_allclose(
        found - found.mean(axis=1, keepdims=True), mean - mean.mean(axis=1, keepdims=True), atol=1e-5
    )


def test_the_mode_is_logistic_regression_on_whitened_features() -> None:
    model = GaussianProcessClassifier(40, lengthscale=1.2, signal_variance=2.0, rule="uniform", newton_tol=1e-12)
    model.fit(X, TWO)
    rows = (X - model.model_.scaler.mean) / model.model_.scaler.scale
    G = model.model_.basis.features(rows)
    # Penalty |w|^2 / (2 C) of theirs, |u|^2 / 2 with w = sqrt(s) u of ours.
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=2000).fit(G, TWO)
    np.testing.assert_allclose(latent(model, rows)[:, 0], theirs.decision_function(G), atol=1e-5)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_[0], atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(G))
    # Probabilities are averages over what is not known: on the same side, and less certain.
    ours, sure = model.predict_proba(X)[:, 1], theirs.predict_proba(G)[:, 1]
    assert (np.abs(ours - 0.5) <= np.abs(sure - 0.5) + 1e-9).all()
    assert np.abs(ours - sure).max() > 0.01


def test_counts_are_poisson_regression_on_whitened_features() -> None:
    model = GaussianProcessPoissonRegressor(30, lengthscale=1.2, signal_variance=2.0, rule="uniform", newton_tol=1e-12)
    model.fit(X, COUNTS)
    rows = (X - model.model_.scaler.mean) / model.model_.scaler.scale
    G = model.model_.basis.features(rows)
    # Theirs minimises the mean deviance / 2 + alpha |w|^2 / 2.
    theirs = PoissonRegressor(alpha=1 / (2.0 * 300), solver="newton-cholesky", tol=1e-12).fit(G, COUNTS)
    np.testing.assert_allclose(np.exp(latent(model, rows)[:, 0]), theirs.predict(G), rtol=1e-5)
    # The mean of e^f is above e^(mean of f).
    assert (model.predict(X) > theirs.predict(G)).all()


# --- what users see -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", [TWO, THREE, (THREE == "mid") * 5 - 7, THREE.astype(object)], ids=["two", "three", "numbers", "objects"]
)
def test_labels_and_probabilities(labels: NDArray[Any]) -> None:
    model = GaussianProcessClassifier(30, **GIVEN).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    P = model.predict_proba(X)
    assert P.shape == (300, len(model.classes_))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert ((P > 0.0) & (P < 1.0)).all()
    np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
    assert model.predict(X).dtype.kind == np.asarray(model.classes_).dtype.kind
    assert model.score(X, labels) > 0.75
    # Far from all rows nothing but their shares is known.
    far = model.predict_proba(np.full((1, 2), 1e3))[0]
    assert far.max() < 0.95
    reached = model.predict_proba(X).max()
    assert far.max() < reached


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_rows_outside_memory(labels: NDArray[Any], tmp_path: Path) -> None:
    expected = GaussianProcessClassifier(30, **GIVEN).fit(X, labels)
    rows, codes = da.from_array(X, chunks=(80, -1)), da.from_array(labels, chunks=80)
    model = GaussianProcessClassifier(30, **GIVEN).fit(rows, codes)
    P, predicted = model.predict_proba(rows), model.predict(rows)
    assert isinstance(P, da.Array)
    assert isinstance(predicted, da.Array)
    assert P.shape == (300, len(model.classes_))
    np.testing.assert_allclose(P.compute(scheduler="threads"), expected.predict_proba(X), rtol=1e-6, atol=1e-8)
    found = predicted.compute(scheduler="threads")
    assert (found == expected.predict(X)).mean() > 0.99
    assert predicted.dtype == found.dtype


@pytest.mark.parametrize("ard", [pytest.param(False, marks=pytest.mark.slow), True])
def test_hyper_parameters_by_evidence(ard: bool) -> None:
    wide = np.column_stack([X, RNG.standard_normal(300)])
    model = GaussianProcessClassifier(30, ard=ard).fit(wide, TWO)
    tuning = model.model_.config["tuning"]
    assert tuning["objective"] == "laplace"
    assert len(tuning["parameters"]) == (4 if ard else 2)
    assert len(model.model_.arrays["tuning_values"]) == len(model.model_.arrays["tuning_parameters"])
    best = np.exp(model.model_.arrays["tuning_parameters"][tuning["best"]])
    np.testing.assert_allclose(best[:-1], model.lengthscale_, rtol=1e-9)
    assert best[-1] == pytest.approx(model.signal_variance_, rel=1e-9)
    if ard:
        assert model.lengthscale_[2] > 2 * max(model.lengthscale_[:2])
    other = GaussianProcessClassifier(30, lengthscale=0.3, signal_variance=0.1).fit(wide, TWO)
    assert model.log_marginal_likelihood_value_ > other.log_marginal_likelihood_value_ + 5
    assert other.model_.config["tuning"] is None


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        ({"lengthscale": 1.7}, ["signal"]),
        ({"signal_variance": 2.5}, ["lengthscale"]),
        ({"tune": "none"}, ["signal"]),
        pytest.param({"kernel": Gaussian(0.9)}, ["signal"], marks=pytest.mark.slow),
        pytest.param({"gamma": 0.5}, ["signal"], marks=pytest.mark.slow),
    ],
    ids=["lengthscale", "signal", "tune", "kernel", "gamma"],
)
@pytest.mark.parametrize("estimator", [GaussianProcessClassifier, GaussianProcessPoissonRegressor])
def test_what_is_given_is_kept(given: dict[str, Any], moved: list[str], estimator: Any) -> None:
    y = TWO if estimator is GaussianProcessClassifier else COUNTS
    model = estimator(15, **given).fit(X[:120], y[:120])
    length = {"lengthscale": 1.7, "kernel": 0.9, "gamma": 1.0}.get(next(iter(given)))
    if length is not None:
        assert model.kernel_.lengthscale == pytest.approx(length, rel=1e-12)
    if "signal_variance" in given:
        assert model.signal_variance_ == 2.5
    assert model.model_.config["tuning"]["moved"] == moved


def test_counts_recover_a_rate() -> None:
    rng = np.random.default_rng(4)
    Q = rng.uniform(-2, 2, (1500, 2))
    rate = np.exp(1.0 + np.sin(1.5 * Q[:, 0]))
    model = GaussianProcessPoissonRegressor(30).fit(Q[:1000], rng.poisson(rate[:1000]))
    mean, std = model.predict(Q[1000:], return_std=True)
    np.testing.assert_allclose(mean, model.predict(Q[1000:]), rtol=1e-12)
    assert np.abs(mean / rate[1000:] - 1).mean() < 0.08
    # Counts vary by their rate, and by what is not known of it.
    assert (std**2 >= mean).all()
    assert (std**2 < 1.5 * mean + 0.1 * mean**2).all()
    lazy = model.predict(da.from_array(Q, chunks=(400, -1)), return_std=True)
    np.testing.assert_allclose(lazy[1].compute(scheduler="threads")[1000:], std, rtol=1e-9)
    assert 0.5 < model.score(Q[1000:], rate[1000:]) <= 1.0
    assert model.score(Q[1000:], rng.poisson(rate[1000:])) > 0.2


def test_saved_and_loaded(tmp_path: Path) -> None:
    cases: dict[str, Any] = {
        "two": GaussianProcessClassifier(20).fit(X, TWO),
        "three": GaussianProcessClassifier(20, **GIVEN).fit(X, THREE),
        "counts": GaussianProcessPoissonRegressor(20, **GIVEN).fit(X, COUNTS),
    }
    for name, model in cases.items():
        model.save(tmp_path / name)
        again = type(model).load(tmp_path / name)
        assert again.model_.digest == model.model_.digest
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for attribute in ("dual_coef_", "intercept_", "components_", "signal_variance_", "lengthscale_", "n_iter_",
                          "log_marginal_likelihood_value_", "relative_residual_trace_"):  # fmt: skip
            np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
        if name == "counts":
            np.testing.assert_array_equal(again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1])
            with pytest.raises(ModelFormatError, match="'poisson' model"):
                GaussianProcessClassifier.load(tmp_path / name)
        else:
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(again.classes_, model.classes_)


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_a_fit_that_ends_early_warns_where_it_was_asked_for(labels: NDArray[Any]) -> None:
    with pytest.warns(StreamKernelWarning, match="made 1 iterations and another would take") as caught:
        GaussianProcessClassifier(20, **{**GIVEN, "max_iterations": 1}).fit(X, labels)
    assert {warning.filename for warning in caught} == {__file__}


# --- the plan -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_promise_of_memory_is_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_components": 200, "lengthscale": 2.0, "signal_variance": 1.0}
    planned, peak = measured(tmp_path, "gp-classifier", 30_000, classes=2, **options)
    assert peak <= planned < 3 * peak


@pytest.mark.slow
@pytest.mark.parametrize("classes", [0, 2, 5])
def test_the_promise_of_memory_is_kept_by_searches(tmp_path: Path, classes: int) -> None:
    planned, peak = measured(
        tmp_path, "gp-classifier" if classes else "poisson", 40_000, classes=classes, n_components=200
    )
    assert peak <= planned


def test_the_plan_of_a_store(tmp_path: Path) -> None:
    path = zarr_of_chunks(tmp_path / "rows.zarr", X, (THREE == "mid").astype(float), 100)
    table = open_table(path, classify=True)
    plan = plan_generalised(table, GeneralisedSettings(n_components=20, **GIVEN), Machine(0, 1))
    session = Session(ThreadExecutor(1))
    model = fit_generalised(table, GeneralisedSettings(n_components=20, **GIVEN), session, estimator="gp-classifier")
    assert len(session.records) == model.config["sweep_count"] <= plan.sweeps
    assert plan.disk_bytes > 0
