"""Gaussian processes, classifiers, counts and committees at the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from report.rendered import without_figures

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    append_rows,
    ingest,
    open_table,
)
from streamkernel.cli import main
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.fits.gaussian import gaussian, generalised

pytestmark = pytest.mark.usefixtures("bare_pages")

THREADS = ("--scheduler", "threads", "--quiet")
M, FITTED = 900, 700
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (M, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1]
Y = F + 0.1 * RNG.standard_normal(M)
TARGETS: dict[str, Any] = {
    "gp": Y,
    "committee": Y,
    "gp-classifier": np.where(RNG.uniform(size=M) < 1 / (1 + np.exp(-3 * F)), "yes", "no"),
    "poisson": RNG.poisson(np.exp(1 + 0.5 * F)).astype(float),
}
SOME = ["gp", *(pytest.param(name, marks=pytest.mark.slow) for name in TARGETS if name != "gp")]
OPTIONS: dict[str, tuple[Any, ...]] = {
    "gp": ("--basis", 60, "--ard"),
    "committee": ("--basis", 120, "--block-size", 100, "--lengthscale", 1.5),
    "gp-classifier": ("--basis", 30, "--lengthscale", 1.0, "--signal-variance", 4.0),
    "poisson": ("--basis", 30, "--tune", "none"),
}
ESTIMATORS: dict[str, Any] = {
    "gp": GaussianProcessRegressor,
    "committee": BayesianCommitteeMachine,
    "gp-classifier": GaussianProcessClassifier,
    "poisson": GaussianProcessPoissonRegressor,
}
UPDATED = ("gp", "committee")


@dataclass(frozen=True)
class Pair:
    store: Path
    model: Path

    @property
    def rest(self) -> tuple[Any, ...]:
        """Arguments of the rows that were not fitted."""
        return (self.model, self.store)


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Hyper-parameters are searched with few points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "SAMPLE_BASIS", 60)
        patch.setattr(generalised, "SAMPLE_BASIS", 60)
        yield


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """A store for each kind of target, and a model of its first rows."""
    found = {}
    for name, y in TARGETS.items():
        folder = tmp_path_factory.mktemp(name)
        ingest(open_table(X, y, classify=y.dtype.kind == "U"), folder / "store", dtype="float64", chunk_rows=150)
        options = ("--estimator", name, *OPTIONS[name], "--rows", f"0:{FITTED}", *THREADS)
        arguments = ["fit", folder / "store", folder / "model", *options]
        assert main([str(argument) for argument in arguments]) == 0
        found[name] = Pair(folder / "store", folder / "model")
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_evaluate_says_how_sure_a_model_is(cli: Callable, pairs: dict[str, Pair], name: str) -> None:
    pair = pairs[name]
    scores = cli("evaluate", *pair.rest, "--rows", f"{FITTED}:", *THREADS, "--json").result
    assert scores["rows"] == M - FITTED
    model, rows, y = ESTIMATORS[name].load(pair.model), X[FITTED:], TARGETS[name][FITTED:]
    if name in UPDATED:
        mean, std = model.predict(rows, return_std=True)
        nlpd = (0.5 * np.log(2 * np.pi * std**2) + (y - mean) ** 2 / (2 * std**2)).mean()
        assert scores["nlpd"] == pytest.approx(nlpd, rel=1e-9)
        covered = (np.abs(y - mean) <= 1.959963984540054 * std).mean()
        assert scores["coverage95"] == pytest.approx(covered, abs=1e-12)
        assert scores["rmse"] == pytest.approx(np.sqrt(((y - mean) ** 2).mean()), rel=1e-9)
        assert 0.85 < scores["coverage95"] <= 1.0
        assert scores["r2"] > 0.9
    elif name == "gp-classifier":
        P = model.predict_proba(rows)
        codes = np.searchsorted(model.classes_, y)
        assert scores["log_loss"] == pytest.approx(-np.log(P[np.arange(len(y)), codes]).mean(), rel=1e-9)
        assert scores["brier"] > 0.0
        assert scores["accuracy"] == pytest.approx((model.predict(rows) == y).mean(), abs=1e-12)
        assert scores["accuracy"] > 0.75
    else:
        assert {"nlpd", "rmse"} <= scores.keys()
        assert np.isfinite(list(scores.values())).all()
        assert scores["rmse"] == pytest.approx(np.sqrt(((y - model.predict(rows)) ** 2).mean()), rel=1e-9)


@pytest.mark.parametrize("name", TARGETS)
def test_predict_writes_what_the_estimator_says(
    cli: Callable, pairs: dict[str, Pair], name: str, tmp_path: Path
) -> None:
    pair, out = pairs[name], tmp_path / "p"
    std = () if name == "gp-classifier" else ("--std",)
    result = cli("predict", *pair.rest, out, *std, "--rows", "100:800", *THREADS, "--json").result
    group, model = zarr.open_group(out, mode="r"), ESTIMATORS[name].load(pair.model)
    assert result["rows"] == group["prediction"].shape[0] == 700
    if name == "gp-classifier":
        assert set(result["arrays"]) == {"prediction", "probability"}
        np.testing.assert_allclose(group["probability"][:], model.predict_proba(X[100:800]), rtol=1e-6, atol=1e-7)
        classes = np.asarray(group.attrs["classes"])
        np.testing.assert_array_equal(classes[group["prediction"][:]], model.predict(X[100:800]))
        assert "leave --std out" in cli("predict", *pair.rest, tmp_path / "q", "--std", *THREADS).error
        assert not (tmp_path / "q").exists()
    else:
        assert set(result["arrays"]) == {"prediction", "std"}
        for written, expected in zip(
            (group["prediction"][:], group["std"][:]), model.predict(X[100:800], return_std=True), strict=True
        ):
            np.testing.assert_allclose(written, expected, rtol=1e-6, atol=1e-7)
        plain = cli("predict", *pair.rest, tmp_path / "q", *THREADS, "--json").result
        assert plain["arrays"] == ["prediction"]


@pytest.mark.parametrize("name", SOME)
def test_fit_and_info_tell_what_was_found(cli: Callable, pairs: dict[str, Pair], name: str, tmp_path: Path) -> None:
    pair = pairs[name]
    again = cli(
        "fit",
        pair.store,
        tmp_path / "m",
        "--estimator",
        name,
        *OPTIONS[name],
        "--rows",
        f"0:{FITTED}",
        *THREADS,
        "--json",
    ).result
    told = cli("info", pair.model, "--json").result
    for key in ("estimator", "digest", "basis_size", "signal_variance", "log_evidence", "effective_df", "lengthscale"):
        assert told[key] == again[key], key
    assert again["peak_memory_bytes"] <= again["planned_memory_bytes"]
    assert (told["estimator"], told["rows"], told["features"]) == (name, FITTED, 3)
    if name in UPDATED:
        assert told["noise_variance"][0] == pytest.approx(0.01, rel=0.9)
        assert told["approximation"] == ("pitc" if name == "committee" else "fitc")
    else:
        assert told["likelihood"] == ("poisson" if name == "poisson" else "bernoulli")
        assert told["converged"] is True
    assert told["classes"] == (["no", "yes"] if name == "gp-classifier" else None)
    assert "log evidence" in cli("info", pair.model).out


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_reports(cli: Callable, pairs: dict[str, Pair], name: str, tmp_path: Path) -> None:
    pair = pairs[name]
    assert cli("report", pair.model, tmp_path / "r.html", *(["--png", tmp_path / "r.png"])).status == 0
    assert cli("report", pair.model, tmp_path / "d.html", "--data", pair.store, "--rows", f"{FITTED}:").status == 0
    for page in ("r.html", "d.html"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "Residual trace" in text
        assert text.count("<svg") >= 3
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", UPDATED)
def test_update(cli: Callable, pairs: dict[str, Pair], name: str, tmp_path: Path) -> None:
    store, model = tmp_path / "store", tmp_path / "model"
    ingest(open_table(X[:600], Y[:600]), store, dtype="float64", chunk_rows=150)
    # Of a fit to whole members, so that those of the fit to all rows are the same.
    options = ("--lengthscale", 1.5, "--noise-variance", 0.01, "--signal-variance", 1.0)
    members = ("--basis", 120, "--block-size", 100)
    members = members if name == "committee" else ("--basis", 30, "--approximation", "dtc")
    assert cli("fit", store, model, "--estimator", name, *options, *members, *THREADS).status == 0
    append_rows(open_table(X[600:], Y[600:]), store)
    result = cli("update", model, store, *THREADS, "--json").result
    assert (result["rows_folded"], result["rows_seen_before"], result["rows"]) == (300, 600, 900)
    estimator = ESTIMATORS[name].load(model)
    assert result["digest"] == estimator.model_.digest
    again = cli("update", model, store, *THREADS, "--json").result
    assert (again["rows_folded"], again["digest"]) == (0, result["digest"])
    old = estimator.model_
    table = old.prepare(open_table(store))
    sums = Session(ThreadExecutor(1)).sweep(old.reduction_of_rows(M), table, "again")
    whole = old.with_sums(sums)
    scaled = table.read(0, M).X
    np.testing.assert_allclose(old.predictions().values(scaled), whole.predictions().values(scaled), atol=1e-6)
    assert result["log_evidence"] == pytest.approx(whole.config["solution"]["log_evidence"], rel=1e-9)
    assert cli("evaluate", model, store, *THREADS, "--json").result["r2"] > 0.9
    with without_figures():
        assert cli("report", model, tmp_path / "r.html").status == 0
    assert "alpha" in cli("update", model, store, "--alpha", 1.0, *THREADS).error


@pytest.mark.parametrize("name", ["gp-classifier", "poisson"])
def test_what_cannot_be_updated(cli: Callable, pairs: dict[str, Pair], name: str) -> None:
    pair = pairs[name]
    assert f"is a {name} model, which cannot be updated" in cli("update", *pair.rest, *THREADS).error


@pytest.mark.parametrize("name", ["ridge", "gp", "poisson", "committee"])
def test_a_regression_on_labels_has_no_plan_either(
    cli: Callable, pairs: dict[str, Pair], tmp_path: Path, name: str
) -> None:
    store = pairs["gp-classifier"].store
    for command in (("plan", store), ("fit", store, tmp_path / "m")):
        assert "the target holds class labels" in cli(*command, "--estimator", name, "--basis", 20, *THREADS[:2]).error
    for other in ("ridge-classifier", "gp-classifier"):
        assert cli("plan", store, "--estimator", other, "--basis", 20, *THREADS[:2]).status == 0


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("gp", ("--alpha", 1.0), "--alpha means nothing to the estimator gp; it is an option of ridge"),
        ("committee", ("--alpha", "gcv"), "--alpha means nothing to the estimator committee"),
        ("committee", ("--approximation", "dtc"), "--approximation dtc means nothing to the estimator committee"),
        ("gp-classifier", ("--alpha", 1.0), "--alpha means nothing to the estimator gp-classifier"),
        ("gp-classifier", ("--noise-variance", 1.0), "--noise-variance means nothing to the estimator gp-classifier"),
        ("gp-classifier", ("--block-size", 100), "--block-size means nothing to the estimator gp-classifier"),
        ("gp-classifier", ("--tune", "full"), "tune must be one of sample, none"),
        ("poisson", ("--approximation", "dtc"), "it is an option of gp, committee"),
        ("ridge", ("--signal-variance", 1.0), "it is an option of gp, gp-classifier, poisson, committee"),
        ("ridge", ("--tune", "none"), "--tune means nothing to the estimator ridge"),
        ("ridge", ("--lengthscale", "evidence"), "lengthscale must be 'median', 'auto' or a number"),
        ("gp", ("--block-size", 50), "--block-size means nothing to the approximation fitc; it is an option of pitc"),
        (
            "gp",
            ("--partition", "cells", "--approximation", "dtc"),
            "--partition means nothing to the approximation dtc",
        ),
        ("gp", ("--degree", 2), "--degree means nothing to the kernel gaussian, it is of polynomial, poly"),
        ("ridge", ("--kernel", "matern32", "--gamma", 1.0), "--gamma means nothing to the kernel matern32"),
        ("poisson", ("--kernel", "linear", "--coef0", 1.0), "--coef0 means nothing to the kernel linear"),
        ("ridge", ("--kernel", "poly", "--degree", 100_000), "give an integer from 1 to 100"),
        ("gp", ("--signal-variance", 0.0), "--signal-variance must be"),
        ("gp", ("--noise-variance", "nan"), "--noise-variance must be"),
        ("gp", ("--ard", "--lengthscale", 1.0), "ard has lengthscales found by evidence"),
    ],
)
def test_options_that_an_estimator_does_not_have(
    cli: Callable, pairs: dict[str, Pair], tmp_path: Path, name: str, options: tuple[Any, ...], said: str
) -> None:
    store = pairs[name if name in pairs else "gp"].store
    for command in (("plan", store), ("fit", store, tmp_path / "m")):
        assert said in cli(*command, "--estimator", name, *options, *THREADS[:2]).error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("gp", "gp-classifier", "use gp-classifier"),
        ("committee", "gp-classifier", "use gp-classifier"),
        ("poisson", "gp-classifier", "use gp-classifier"),
        ("poisson", "gp", "takes finite counts >= 0"),
    ],
)
def test_targets_of_another_kind(
    cli: Callable, pairs: dict[str, Pair], tmp_path: Path, name: str, kind: str, said: str
) -> None:
    options = ("--estimator", name, "--basis", 10, "--lengthscale", 1.0, "--signal-variance", 1.0, *THREADS)
    assert said in cli("fit", pairs[kind].store, tmp_path / "m", *options).error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", TARGETS)
def test_the_plan_says_what_the_fit_did(cli: Callable, pairs: dict[str, Pair], name: str) -> None:
    pair = pairs[name]
    options = ("--estimator", name, *OPTIONS[name], "--rows", f"0:{FITTED}", "--scheduler", "threads")
    plan = cli("plan", pair.store, *options, "--json").result
    sweeps = ESTIMATORS[name].load(pair.model).n_sweeps_
    assert plan["sweeps"] == sweeps if name in UPDATED else plan["sweeps"] >= sweeps
    assert cli("plan", pair.store, *options).status == 0


def test_no_constant_is_no_constant(cli: Callable, pairs: dict[str, Pair], tmp_path: Path) -> None:
    given = ("--lengthscale", 1.5, "--signal-variance", 1.0, "--no-intercept")
    for name in ("gp-classifier", "poisson"):
        options = ("--estimator", name, "--basis", 20, *given)
        assert cli("fit", pairs[name].store, tmp_path / name, *options, *THREADS).status == 0
        assert np.ravel(ESTIMATORS[name].load(tmp_path / name).intercept_).tolist() == [0.0]
