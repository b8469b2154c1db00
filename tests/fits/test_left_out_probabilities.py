"""Probabilities of ridge classifiers: curves of rows of the folds, each predicted by the fit that left its fold out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import naive
import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.models import RidgeModel
from streamkernel.reductions.scores import value_histogram
from streamkernel.solvers.margins.margin_calibration import platt_curves
from streamkernel.table import Folds
from streamkernel.table.row_keys import row_keys

Array = np.ndarray[Any, np.dtype[Any]]
CURVES = ("calibration_slope", "calibration_offset")
FUNCTIONS = {2: 1, 3: 3}  # whose values have a curve
OPTIONS: dict[str, Any] = {"alpha": "cv", "lengthscale": 1.0, "kernel": "gaussian", "random_state": 5}


def rows(m: int, classes: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.6 * rng.standard_normal(m)
    return X, np.digitize(f, [0.3] if classes == 2 else [-0.6, 0.7])


def left_out(model: Any, X: Array, Y: Array, folds: Folds) -> tuple[Array, Array]:
    """Which rows are in folds, and their values (r, C) by the refit to all rows outside their own fold."""
    record = model.model_.record
    scaled = (X - record.scaler.mean) / record.scaler.scale
    K, W = (naive.gaussian(A, model.model_.basis.points, 1.0) for A in (scaled, model.model_.basis.points))
    of, values = folds.of(row_keys(X)), np.full(Y.shape, np.nan)
    for fold in range(folds.count):
        out = of == fold
        found = naive.reduced_ridge(K[~out], W, Y[~out], model.alpha_, intercept=True)
        values[out] = K[out] @ found.alpha + found.intercept
    return np.flatnonzero(of < folds.count), values


def exact_platt(f: Array, of_class: Array) -> Array:
    """Slope and offset of least log loss, without bins."""
    inside, outside = of_class.sum(), (~of_class).sum()
    t = np.where(of_class, (inside + 1.0) / (inside + 2.0), 1.0 / (outside + 2.0))

    def loss(at: Array) -> float:
        z = at[0] * f + at[1]
        return float(np.logaddexp(0.0, z).sum() - t @ z)

    return np.asarray(scipy.optimize.minimize(loss, np.zeros(2), method="BFGS").x)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_curves_are_those_of_rows_that_were_left_out(classes: int) -> None:
    X, y = rows(900, classes)
    Y = np.eye(classes)[y]
    # Few functions: the oracle's normal equations are those of kernel values, not of whitened features.
    model = KernelRidgeClassifier(20, **OPTIONS).fit(X, y)
    held, values = left_out(model, X, Y, Folds(4, 8, 5))
    assert model.model_.record.validation.rows == len(held)
    f = values[held] - values[held, ::-1] if classes == 2 else values[held]
    of_class = Y[held] > 0.5
    same = platt_curves(value_histogram(f, of_class, np.ones(len(held))).sum(axis=0, keepdims=True))
    np.testing.assert_allclose(
        model.model_.arrays["calibration_slope"], np.repeat(same.slope, FUNCTIONS[classes]), rtol=1e-6
    )
    np.testing.assert_allclose(model.model_.arrays["calibration_offset"][0], same.offset[0], rtol=1e-6, atol=1e-9)
    # The same without bins.
    apart, _ = rows(300, classes, 1)
    decided = model.decision_function(apart)
    decided = np.column_stack([-decided, decided]) if classes == 2 else decided
    q = expit(np.polyval(exact_platt(f.ravel(), of_class.ravel()), decided))
    found = model.predict_proba(apart)
    np.testing.assert_allclose(found, q / q.sum(axis=1, keepdims=True), atol=5e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(apart))


def test_overfitted_functions_are_not_sure_of_themselves() -> None:
    """Every row a function and noise in the labels: the fit's own rows would say that it is hardly ever wrong."""
    rng = np.random.default_rng(3)
    X, apart = rng.standard_normal((700, 6)), rng.standard_normal((4000, 6))
    y, truth = (rng.random(len(A)) < expit(2.0 * A[:, 0]) for A in (X, apart))
    model = KernelRidgeClassifier(700, **OPTIONS).fit(X, y)
    p = model.predict_proba(apart)[:, 1]

    def log_loss(q: Array) -> float:
        return float(-np.log(np.where(truth, q, 1.0 - q)).mean())

    own = expit(np.polyval(exact_platt(model.decision_function(X), y), model.decision_function(apart)))
    assert log_loss(p) < log_loss(own)
    assert log_loss(p) < log_loss(np.full(4000, y.mean()))
    for low, high in ((0.0, 0.35), (0.35, 0.65), (0.65, 1.0)):
        there = (p >= low) & (p < high)
        assert truth[there].mean() == pytest.approx(p[there].mean(), abs=0.08)


def test_weights_count_as_rows_do() -> None:
    X, y = rows(600, 2)
    w = np.random.default_rng(1).integers(0, 3, 600).astype(float)
    given = {**OPTIONS, "scale": "none"}
    model = KernelRidgeClassifier(20, **given).fit(X, y, sample_weight=w)
    Y, Z = np.eye(2)[y], model.model_.basis.points
    K, W = naive.gaussian(X, Z, 1.0), naive.gaussian(Z, Z, 1.0)
    of, f = Folds(4, 8, 5).of(row_keys(X)), np.zeros(600)
    for fold in range(4):
        others, out = np.repeat(np.flatnonzero(of != fold), w[of != fold].astype(int)), of == fold
        found = naive.reduced_ridge(K[others], W, Y[others], model.alpha_, intercept=True)
        f[out] = (K[out] @ found.alpha + found.intercept) @ [-1.0, 1.0]
    held = of < 4
    both = np.column_stack([-f, f])[held]
    same = platt_curves(value_histogram(both, Y[held] > 0.5, w[held]).sum(axis=0, keepdims=True))
    np.testing.assert_allclose(model.model_.arrays["calibration_slope"], same.slope, rtol=1e-5)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_kept_by_a_file_and_lazy_for_lazy_rows(solver: str, tmp_path: Path) -> None:
    X, y = rows(900, 3)
    names = np.array(["low", "middle", "high"])[y]
    model = KernelRidgeClassifier(50, solver=solver, **OPTIONS).fit(X, names)
    model.save(tmp_path / "m")
    loaded = KernelRidgeClassifier.load(tmp_path / "m")
    expected = model.predict_proba(X[:50])
    np.testing.assert_array_equal(loaded.predict_proba(X[:50]), expected)
    lazy = loaded.predict_proba(da.from_array(X[:50], chunks=(20, 2)))
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12)
    accuracy = (model.classes_[expected.argmax(axis=1)] == names[:50]).mean()
    assert accuracy > 0.6
    half = {name: values for name, values in model.model_.arrays.items() if name != CURVES[1]}
    with pytest.raises(ModelFormatError, match="'calibration_offset', and lacks the other"):
        RidgeModel(model.model_.record, half).save(tmp_path / "half")


def test_without_left_out_rows_there_are_none() -> None:
    X, y = rows(300, 2)
    assert hasattr(KernelRidgeClassifier(alpha="cv"), "predict_proba")
    assert not hasattr(KernelRidgeClassifier(), "predict_proba")
    for model in (
        KernelRidgeClassifier(20, **{**OPTIONS, "alpha": 0.1}).fit(X, y),
        KernelRidgeClassifier(20, **{**OPTIONS, "alpha": "gcv"}).fit(X, y),
        KernelRidgeClassifier(10, **OPTIONS).fit(X[:50], y[:50]),
    ):
        assert not hasattr(model, "predict_proba")
        with pytest.raises(ParameterError, match="calibrated on held-out rows; fit it again with alpha='cv'"):
            model.model_.probabilities()
    assert CURVES[0] not in KernelRidge(20, **OPTIONS).fit(X, y).model_.arrays


def test_an_update_keeps_them_with_alpha() -> None:
    X, y = rows(900, 2)
    model = KernelRidgeClassifier(30, **OPTIONS).fit(X[:700], y[:700])
    before = model.model_.arrays[CURVES[0]]
    model.update(X[700:], y[700:])
    np.testing.assert_array_equal(model.model_.arrays[CURVES[0]], before)
    assert model.predict_proba(X[:3]).shape == (3, 2)
    model.update(X[:5] + 0.5, y[:5], alpha=model.alpha_ * 100.0)
    assert not hasattr(model, "predict_proba")
