"""A model on disk: Zarr arrays and JSON, read back whole or refused; the report's numbers are in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from pickles import is_pickle
from problems import zarr_of_chunks

from streamkernel import KernelRidge, KernelRidgeClassifier, RidgeModel, open_table
from streamkernel.cli import main
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ModelFormatError, StoreExistsError, StoreNotFoundError
from streamkernel.fits import fit_ridge
from streamkernel.report import write_report
from streamkernel.settings import RidgeSettings
from streamkernel.solvers import RidgeSystem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
MODELS: dict[str, Any] = {
    "one target": lambda: KernelRidge(30).fit(X, Y[:, 0]),
    "two targets": lambda: KernelRidge(30, kernel="matern32", lengthscale=[1.0, 2.0, 3.0]).fit(X, Y),
    "one column": lambda: KernelRidge(30, scale="none").fit(X, Y[:, :1]),
    "float32": lambda: KernelRidge(30, kernel="laplacian").fit(X.astype(np.float32), Y[:, 0]),
    "text labels": lambda: KernelRidgeClassifier(30).fit(X, np.where(Y[:, 0] > 0, "yes", "no")),
    "number labels": lambda: KernelRidgeClassifier(30).fit(X, np.digitize(Y[:, 0], [-0.5, 0.5]) * 10),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    rows = X.astype(np.float32) if name == "float32" else X
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again.predict(rows).shape == model.predict(rows).shape
    assert again.predict(rows).dtype == model.predict(rows).dtype
    for attribute in ("components_", "component_indices_", "dual_coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
    assert again.alpha_ == model.alpha_
    assert again.kernel_ == model.kernel_
    assert again.model_.digest == model.model_.digest


def test_plain_zarr_reads_it_and_nothing_is_pickled(tmp_path: Path) -> None:
    model = KernelRidge(30).fit(X, Y[:, 0])
    model.save(tmp_path / "model")
    group: Any = zarr.open_group(str(tmp_path / "model"), mode="r")
    np.testing.assert_array_equal(group["dual_coef"][:, 0], model.dual_coef_)
    Z = group["components"][:]
    scaler = json.loads((tmp_path / "model" / "config.json").read_text())["config"]["scaler"]
    rows = (X - np.array(scaler["mean"])) / np.array(scaler["scale"])
    K = np.exp(-((rows[:, None] - Z) ** 2).sum(axis=2) / (2 * model.lengthscale_**2))
    np.testing.assert_allclose(K @ group["dual_coef"][:, 0] + group["intercept"][0], model.predict(X), rtol=1e-9)
    for path in (tmp_path / "model").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not is_pickle(content)
            assert b"streamkernel.estimators" not in content
            assert str(tmp_path).encode() not in content


def test_sums_are_kept_for_other_alphas() -> None:
    """The whole path again without a row: sums, basis and units are in the model."""
    model = KernelRidge(30).fit(X, Y)
    stored = model.model_
    system = RidgeSystem(stored.basis, stored.sums, scale=np.array(stored.config["target_scale"]) ** 2)
    assert system.choose_alpha() == pytest.approx(model.alpha_, rel=1e-6)
    np.testing.assert_allclose(system.solve(model.alpha_).coefficients, model.dual_coef_, rtol=1e-9)
    fixed = KernelRidge(30, alpha=3.0).fit(X, Y)
    np.testing.assert_allclose(system.solve(3.0).coefficients, fixed.dual_coef_, rtol=1e-9)
    assert system.residual_trace == pytest.approx(model.residual_trace_)


def test_what_a_report_needs_is_in_it() -> None:
    table = open_table(X, Y[:, 0])
    session = Session(ThreadExecutor(1))
    model = fit_ridge(table.slice(0, 300), RidgeSettings(n_components=20), session, whole=table)
    config, arrays = model.config, model.arrays
    assert config["rows"] == {"start": 0, "stop": 300, "count": 300}
    assert config["check"]["kind"] == "held-out"
    held = np.ravel(arrays["check_true"])
    assert set(held) <= set(Y[300:, 0])
    np.testing.assert_allclose(np.ravel(arrays["check_predicted"]), held, atol=0.5)
    assert len(arrays["gcv_alphas"]) == len(arrays["gcv_scores"]) == len(arrays["gcv_effective_df"])
    assert len(arrays["residual_path"]) == 21
    assert arrays["residual_path"][-1] == config["certificate"]["residual_trace"]
    assert (arrays["component_indices"] < 300).all()
    assert config["run"]["planned_memory_bytes"] > 0
    assert config["sweep_count"] == len(session.records)
    whole = fit_ridge(table, RidgeSettings(n_components=20), Session(ThreadExecutor(1)))
    assert whole.config["check"]["kind"] == "training"


def test_no_degree_of_freedom_left_is_no_gcv_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """m basis functions of m rows and next to no alpha: GCV divides by zero, for which JSON has no word."""
    rows, store = X[:30], tmp_path / "rows.zarr"
    zarr_of_chunks(store, rows, Y[:30, 0], 10)
    model = KernelRidge(30, kernel="laplacian", alpha=1e-14).fit(rows, Y[:30, 0])
    assert model.model_.config["solution"]["gcv"] is None
    model.save(tmp_path / "model")
    again = RidgeModel.load(tmp_path / "model")
    assert again.digest == model.model_.digest
    write_report(again, tmp_path / "report.html")
    assert "no degrees of freedom are left" in (tmp_path / "report.html").read_text(encoding="utf-8")
    options = ["--basis", "30", "--kernel", "laplacian", "--alpha", "1e-14", "--scheduler", "threads", "--quiet"]
    assert main(["fit", str(store), str(tmp_path / "other"), *options]) == 0
    assert main(["fit", str(store), str(tmp_path / "other"), *options, "--overwrite", "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["gcv"] is None
    assert result["effective_df"] == pytest.approx(30, abs=0.5)


def test_existing_paths_and_wrong_kinds(tmp_path: Path) -> None:
    model = MODELS["one target"]()
    model.save(tmp_path / "model")
    with pytest.raises(StoreExistsError):
        model.save(tmp_path / "model")
    other = MODELS["two targets"]()
    other.save(tmp_path / "model", overwrite=True)
    assert KernelRidge.load(tmp_path / "model").model_.digest == other.model_.digest
    with pytest.raises(ModelFormatError, match="'ridge' model"):
        KernelRidgeClassifier.load(tmp_path / "model")
    with pytest.raises(StoreNotFoundError):
        KernelRidge.load(tmp_path / "nothing")
    assert RidgeModel.load(tmp_path / "model").config["estimator"] == "ridge"


def test_the_digest_is_of_the_fit_alone() -> None:
    first, second = MODELS["one target"]().model_, MODELS["one target"]().model_
    assert first.digest == second.digest
    assert first.config["run"]["seconds"] != second.config["run"]["seconds"]
    assert KernelRidge(30, random_state=1).fit(X, Y[:, 0]).model_.digest != first.digest
