"""Quantiles as an estimator: against SMO on the same features, shares below, shifts, levels that do not cross."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score

from streamkernel import KernelQuantileRegressor, open_table
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kernels import Linear
from streamkernel.models.margins import QuantileModel
from streamkernel.reductions.margins import Pinball
from streamkernel.solvers import solve_smo

RNG = np.random.default_rng(6)
X = RNG.uniform(-3.0, 3.0, (400, 2))
Y = 40.0 + 5.0 * np.sin(X[:, 0]) + (0.5 + np.abs(X[:, 1])) * RNG.standard_normal(400)
SIZE: dict[str, Any] = {"n_components": 15, "lengthscale": 1.0, "kernel": "gaussian", "metric": "none"}
# Rows enough to hold some out, of which new ones are as many.
MANY = RNG.uniform(-3.0, 3.0, (6000, 4))
NOISY = np.sin(MANY[:, 0]) + (0.1 + 0.1 * np.abs(MANY[:, 1])) * RNG.standard_normal(6000)


def features(model: Any, rows: Any = X) -> Any:
    """Whitened features of rows, by the model's own basis."""
    found = model.model_
    return found.basis.features(found.prepare(open_table(rows)).read(0, len(rows)).X)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_smo_on_the_features(weighted: bool) -> None:
    """The constant is free in both; SMO solves each level on its own, in the dual variables of all rows."""
    w = 1.0 + np.arange(400) % 3 if weighted else np.ones(400)
    levels = (0.1, 0.55, 0.9)
    model = KernelQuantileRegressor(**SIZE, quantile=levels, C=2.0, gap_tol=1e-9).fit(X, Y, w if weighted else None)
    G, (scale,), centre = features(model), model.model_.record.target_scale, model.model_.record.centre
    raw = model.model_.predictions().values(model.model_.prepare(open_table(X)).read(0, 400).X)
    for k, level in enumerate(levels):
        theirs = solve_smo(Linear(), G, (Y - centre) / scale, Pinball(2.0, level), weights=w, tolerance=1e-7)
        found = centre + scale * (G @ (G.T @ theirs.coefficients) + theirs.offset)
        np.testing.assert_allclose(raw[:, k], found, atol=1e-4 * scale)
        solution = model.model_.record.solution.problems[k]
        assert solution.dual <= theirs.primal * (1 + 1e-9)
        assert solution.primal == pytest.approx(theirs.primal, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), np.sort(raw, axis=1))


@pytest.mark.parametrize("level", [0.05, 0.5, 0.93])
def test_a_share_of_the_rows_of_the_fit_is_below(level: float) -> None:
    """With a free constant, but for the rows on the function (Takeuchi et al. 2006, lemma 3)."""
    model = KernelQuantileRegressor(**SIZE, quantile=level, C=5.0, gap_tol=1e-8).fit(X, Y)
    r = (Y - model.predict(X)) / Y.std()
    assert (r < -1e-4).mean() <= level <= (r < 1e-4).mean()


def test_levels_are_sorted_and_do_not_cross() -> None:
    model = KernelQuantileRegressor(**SIZE, quantile=[0.55, 0.45, 0.5], C=1e3).fit(X, Y)
    assert model.quantiles_.tolist() == [0.45, 0.5, 0.55]
    rows = RNG.uniform(-6.0, 6.0, (500, 2))
    raw = model.model_.predictions().values(model.model_.prepare(open_table(rows)).read(0, 500).X)
    assert (np.diff(raw, axis=1) < 0.0).any(), "the functions cross, else the test proves nothing"
    assert (np.diff(model.predict(rows), axis=1) >= 0.0).all()


def test_one_level_is_a_vector_and_a_list_of_one_a_column() -> None:
    one = KernelQuantileRegressor(**SIZE, C=1.0).fit(X, Y)
    listed = KernelQuantileRegressor(**SIZE, C=1.0, quantile=[0.5]).fit(X, Y)
    assert one.predict(X).shape == (400,)
    assert one.dual_coef_.shape == (15,)
    np.testing.assert_array_equal(listed.predict(X), one.predict(X)[:, None])


def test_shifts_give_new_rows_their_shares() -> None:
    """Functions of too many degrees of freedom: without the shifts the bands are too narrow for other rows."""
    given: dict[str, Any] = {"quantile": (0.05, 0.95), "C": [1e2, 1e3], "kernel": "gaussian", "metric": "none"}
    table = open_table(MANY, NOISY)
    plain, shifted = (
        KernelQuantileRegressor(80, **given, lengthscale=0.8, calibration=way).fit(table.slice(0, 1500))
        for way in ("none", None)
    )
    assert plain.shifts_ is None
    assert shifted.shifts_[0] < 0.0 < shifted.shifts_[1]
    np.testing.assert_allclose(shifted.intercept_ - shifted.shifts_, plain.intercept_, rtol=1e-12)
    inside = []
    for model in (plain, shifted):
        low, high = model.predict(MANY).T
        held = (low <= NOISY) & (high >= NOISY)
        inside.append(held[1500:].mean())
    # Two standard errors of the share among the 190 rows that were held out.
    assert abs(inside[1] - 0.9) < 0.045
    assert inside[0] < 0.86, inside


def test_the_score_is_the_pinball_loss_explained() -> None:
    model = KernelQuantileRegressor(**SIZE, quantile=(0.2, 0.7), C=3.0).fit(X, Y)
    values = model.predict(X)
    w = 1.0 + np.arange(400) % 4
    each = [d2_pinball_score(Y, values[:, k], alpha=q, sample_weight=w) for k, q in enumerate((0.2, 0.7))]
    assert model.score(X, Y, w) == pytest.approx(np.mean(each), rel=1e-12)
    lazy = dask.array.from_array(X, chunks=(150, 2))
    assert model.score(lazy, dask.array.from_array(Y, chunks=150), w) == pytest.approx(np.mean(each), abs=1e-4)


def test_dask_rows_are_lazy() -> None:
    model = KernelQuantileRegressor(**SIZE, quantile=(0.1, 0.9), C=1.0).fit(X, Y)
    lazy = model.predict(dask.array.from_array(X, chunks=(90, 2)))
    assert isinstance(lazy, dask.array.Array)
    assert lazy.shape == (400, 2)
    np.testing.assert_allclose(lazy.compute(scheduler="threads"), model.predict(X), rtol=1e-12)


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = KernelQuantileRegressor(**SIZE, quantile=(0.1, 0.9), C=[1.0, 3.0]).fit(X, Y)
    model.save(tmp_path / "m")
    again = KernelQuantileRegressor.load(tmp_path / "m")
    assert isinstance(again.model_, QuantileModel)
    assert again.model_.digest == model.model_.digest
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.shifts_, model.shifts_)
    config = again.model_.record.changed(settings=again.model_.record.settings.changed(quantile=(0.1, 0.5, 0.9)))
    with pytest.raises(ModelFormatError, match="2 functions for 3 levels"):
        type(model.model_)(config, model.model_.arrays).save(tmp_path / "wrong")


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.1, float("nan"), True, "0.5", [], [0.5, 0.5], [0.1, 2.0], None])
def test_levels_out_of_range_are_refused(quantile: Any) -> None:
    with pytest.raises(ParameterError, match="quantile must be a number between 0 and 1"):
        KernelQuantileRegressor(quantile=quantile).fit(X, Y)


def test_what_else_is_refused() -> None:
    with pytest.raises(ParameterError, match="101 levels; give at most 100"):
        KernelQuantileRegressor(quantile=np.linspace(0.01, 0.99, 101)).fit(X, Y)
    with pytest.raises(ParameterError, match="one target, and the table has 2"):
        KernelQuantileRegressor().fit(X, np.stack([Y, Y], axis=1))
    with pytest.raises(ParameterError, match="calibration"):
        KernelQuantileRegressor(calibration="platt").fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["california-housing", "kin-8nm", "protein-casp"])
def test_bands_of_real_sets_hold_their_share(name: str, shared_data: Callable[[str], Any]) -> None:
    data = shared_data(name)
    rows, y = data["X"], np.asarray(data["y"], dtype=float).ravel()
    order = RNG.permutation(len(y))
    fitted, other = order[: len(y) // 2], order[len(y) // 2 :]
    model = KernelQuantileRegressor(200, quantile=(0.05, 0.95)).fit(rows[fitted], y[fitted])
    low, high = model.predict(rows[other]).T
    # A point, and three standard errors of the share among the held-out rows and among the others.
    error = 3.0 * np.sqrt(0.09 / len(other) + 0.09 / (len(fitted) / 8.0))
    assert abs(((low <= y[other]) & (y[other] <= high)).mean() - 0.9) < 0.01 + error
