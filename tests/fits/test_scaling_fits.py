"""Fits with robust and rank scaling: the same as fits on mapped rows, saved, updated, and safe from far rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from problems import cut_session, predicted
from slow_cases import slow_but

from streamkernel import (
    BayesianCommitteeMachine,
    Factor,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
    open_table,
)
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ModelFormatError
from streamkernel.fits import fit_ridge
from streamkernel.selection import RowCache
from streamkernel.settings import RidgeSettings

KINDS = pytest.mark.parametrize("kind", ["robust", "rank"])
M, P = 900, 4
GIVEN: dict[str, Any] = {"lengthscale": 1.5, "rule": "uniform"}
FIXED: dict[str, Any] = {**GIVEN, "tune": "none", "signal_variance": 1.0}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows with a long tail, an offset, and counts."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(M, P))
    X = np.column_stack([Z[:, 0], np.exp(2.5 * Z[:, 1]), Z[:, 2] + 1e4, np.floor(np.maximum(0.0, 4.0 * Z[:, 3]))])
    return X, np.sin(2.0 * Z[:, 0]) + np.tanh(Z[:, 1]) + 0.05 * rng.normal(size=M)


@KINDS
def test_a_fit_is_that_on_mapped_rows(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    one = KernelRidge(60, scale=kind, alpha=1e-3, **GIVEN).fit(X, y)
    assert one.model_.scaler is not None
    mapped = one.model_.scaler.apply(X, np.float64)
    np.testing.assert_allclose(mapped.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(mapped.std(axis=0), 1.0, rtol=1e-10)
    other = KernelRidge(60, scale="none", alpha=1e-3, **GIVEN).fit(mapped, y)
    points = one.model_.scaler.apply(X[one.component_indices_], np.float64)
    np.testing.assert_array_equal(points, one.model_.arrays["components"])
    np.testing.assert_array_equal(one.component_indices_, other.component_indices_)
    np.testing.assert_allclose(one.predict(X), other.predict(mapped), rtol=1e-9, atol=1e-9)


@KINDS
def test_ranks_undo_a_tail(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    errors = [
        float(np.mean((KernelRidge(100, scale=scale).fit(X[:600], y[:600]).predict(X[600:]) - y[600:]) ** 2))
        for scale in ("standard", kind)
    ]
    assert errors[1] < 0.7 * errors[0]


@KINDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_is_saved_and_updated(
    kind: str, dtype: type, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X: np.ndarray = rows[0].astype(dtype)
    y = rows[1]
    model = KernelRidge(50, scale=kind).fit(X[:600], y[:600])
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    model.save(tmp_path / "model")
    again = KernelRidge.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.model_.digest == model.model_.digest
    again.update(X, y)
    assert again.model_.record.totals.rows == M
    assert again.model_.scaler == model.model_.scaler
    np.testing.assert_array_equal(again.components_, model.components_)


@KINDS
def test_growth_adds_points_as_stored(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    X = X[:, [0, 2]]
    # New rows are within the ends of each column, and in the two quarters that have no rows yet.
    known = (X[:, 0] > 0.0) == (X[:, 1] > 1e4)
    X, y = np.concatenate([X[known], X[~known]]), np.concatenate([y[known], y[~known]])
    model = KernelRidge(40, scale=kind, lengthscale=1.0).fit(X[: known.sum()], y[: known.sum()])
    with pytest.warns(UserWarning, match="functions were added"):
        model.update(X, y, grow=10)
    assert len(model.component_indices_) > 40
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])


@pytest.mark.parametrize(
    ("kind", "metric"),
    slow_but([("rank", "none"), ("robust", "learned")], product(["robust", "rank"], ["none", "learned"])),
)
def test_threads_change_no_bit(kind: str, metric: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    table, settings = open_table(rows[0][:450], rows[1][:450]), RidgeSettings(40, scale=kind, metric=metric)
    # A table of this size is one task: to have several, three spans.
    sessions = cut_session((167,), 167), cut_session((167,), 167, 3, backwards=True)
    one, other = (fit_ridge(table, settings, session) for session in sessions)
    assert one.digest == other.digest


@KINDS
def test_chunks_do_not_matter(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    """With a basis that no score chooses: rows at the end of a tail are as good as each other but for rounding."""
    X, y = rows[0][:450], rows[1][:450]
    settings = RidgeSettings(40, scale=kind, alpha=1e-3, **GIVEN)
    one = fit_ridge(open_table(X, y), settings, Session(ThreadExecutor(1)))
    for chunks in (50, 167):
        table = open_table(da.from_array(X, chunks=(chunks, P)), y)  # type: ignore[no-untyped-call]
        two = fit_ridge(table, settings, cut_session((chunks,), chunks))
        np.testing.assert_allclose(predicted(two, table), predicted(one, table), rtol=1e-6, atol=1e-6)
        columns = [model.record.scaler.to_config() for model in (one, two)]
        np.testing.assert_allclose(columns[0]["mean"], columns[1]["mean"], rtol=1e-12)


@KINDS
def test_columns_in_another_order_are_found_by_their_names(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    import pandas as pd

    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KernelRidge(40, scale=kind).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame[list("dbca")]), model.predict(frame))


@pytest.mark.parametrize(
    ("kind", "dtype", "metric"),
    slow_but(
        [("rank", np.float32, "none"), ("rank", np.float64, "diagonal"), ("robust", np.float32, "diagonal")],
        product(["robust", "rank"], [np.float32, np.float64], ["none", "diagonal"]),
    ),
)
def test_cached_rows_have_the_bits_of_blocks(
    kind: str, dtype: type, metric: str, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X: np.ndarray = rows[0].astype(dtype)
    model = KernelRidge(30, scale=kind, metric=metric).fit(X, rows[1])
    table = open_table(X).with_scaler(model.model_.scaler)
    numbers = np.array([150, 3, 77])
    found = RowCache.of(table, Session()).get(numbers).X
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, table.read(0, M).X[numbers])


@KINDS
def test_a_far_row_is_as_one_at_the_ends(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = KernelRidge(60, scale=kind).fit(X, y)
    usual = X[:1].repeat(4, axis=0)
    far, ends = usual.copy(), usual.copy()
    far[:, 1] = [1e8, 1e150, -1e8, -1e150]
    ends[:, 1] = np.repeat([X[:, 1].max(), X[:, 1].min()], 2)
    if kind == "rank":
        np.testing.assert_array_equal(model.predict(far), model.predict(ends))
    assert np.abs(model.predict(far) - y.mean()).max() < 3.0 * y.std()


@KINDS
def test_what_is_not_finite_is_refused(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = KernelRidge(20, scale=kind).fit(X, y)
    for value, word in ((np.inf, "infinity"), (np.nan, "NaN")):
        poor = X[:3].copy()
        poor[1, 2] = value
        with pytest.raises(ValueError, match=f"{word}.*row 1"):
            model.predict(poor)
        with pytest.raises(ValueError, match=word):
            KernelRidge(20, scale=kind).fit(np.concatenate([X, poor]), np.concatenate([y, y[:3]]))


@KINDS
def test_copies_of_rows_far_from_0_are_counted(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    # A column at 1e6 has the same first digits in all rows: it must not make them alike.
    X = X[:200] + np.array([1e6, 0.0, 0.0, 0.0])
    one = KernelRidge(40, scale=kind).fit(X, y[:200])
    plain = {"kernel": "gaussian", "metric": "none", "alpha": "gcv"}  # as of few rows
    with pytest.warns(UserWarning, match="distinct"):
        many = KernelRidge(40, scale=kind, **plain).fit(np.repeat(X, 20, axis=0), np.repeat(y[:200], 20))
    assert np.sqrt(np.mean((one.predict(X) - many.predict(X)) ** 2)) < 0.15 * y.std()


@KINDS
@pytest.mark.parametrize(
    "estimator",
    [
        KernelRidgeClassifier(20),
        GaussianProcessRegressor(20, noise_variance=0.1, **FIXED),
        GaussianProcessClassifier(20, **FIXED),
        GaussianProcessPoissonRegressor(20, **FIXED),
        BayesianCommitteeMachine(150, noise_variance=0.1, block_size=100, **FIXED),
        KernelMatchingPursuit(10),
        Nystroem(20),
        KernelPCA(3, basis_size=20),
        KernelCCA(2, basis_size=20),
        KernelCCA(2, basis_size=20, lengthscale=1.0, bound_gamma=0.5),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_kind_takes_it(kind: str, estimator: Any, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    name = type(estimator).__name__
    targets: Any = np.where(y > 0, "high", "low") if "Classifier" in name else np.abs(y).round()
    estimator.set_params(scale=kind)
    if name == "KernelCCA":
        targets = X[:, [1, 3]] + y[:, None]
        far = estimator.fit(X, targets).transform(np.array([[0.0, 1e100, 1e4, 0.0]]))
    else:
        estimator.fit(X, targets)
        far = getattr(estimator, "predict", getattr(estimator, "transform", None))(np.array([[0.0, 1e100, 1e4, 0.0]]))
    assert np.asarray(far).shape[0] == 1
    scaler = estimator.model_.scaler
    assert not scaler.invertible
    estimator.save(tmp_path / "model")
    again = type(estimator).load(tmp_path / "model")
    assert again.model_.scaler == scaler
    assert again.model_.digest == estimator.model_.digest


@KINDS
def test_views_have_scalings_of_their_own(kind: str, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    views = X, np.column_stack([np.exp(3.0 * y), X[:, 1], -X[:, 0]])
    model = KernelCCA(2, basis_size=25, scale=kind).fit(*views)
    for view, values in enumerate(views):
        scaler = model.model_.scaler_of(view)
        assert scaler is not None
        mapped = scaler.apply(values, np.float64)
        np.testing.assert_allclose(mapped.std(axis=0), 1.0, rtol=1e-6)
        basis = model.model_.bases[view]
        np.testing.assert_array_equal(mapped[basis.rows], basis.points)
        images = scaler.apply(model.model_.points_of(view), np.float64)
        np.testing.assert_allclose(images, basis.points, rtol=1e-6, atol=1e-6)
    model.save(tmp_path / "model")
    again = KernelCCA.load(tmp_path / "model")
    assert again.model_.scaler_of(1) == model.model_.scaler_of(1)


@KINDS
def test_factors_take_it(kind: str, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X = rows[0]
    factorize(X, tmp_path / "factor", n_components=30, scale=kind)
    factor = Factor.load(tmp_path / "factor")
    table = open_table(X).with_scaler(factor.scaler)
    np.testing.assert_array_equal(factor.points, X[factor.component_indices])
    K = factor.basis.kernel.prepare(table.read(0, M).X).block(table.read(0, M).X)
    G = np.asarray(factor.G)
    np.testing.assert_allclose(np.trace(K - G @ G.T), factor.residual_path[-1], rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "damage", "words"),
    [
        ("rank", lambda scaler: {**scaler, "kind": "ranks"}, "of the kind 'ranks'"),
        ("standard", lambda scaler: {**scaler, "kind": "rank"}, "lacks the array scaler_knots"),
        ("robust", lambda scaler: {**scaler, "lower": scaler["lower"][1:]}, "lower end"),
    ],
)
def test_a_damaged_scaler_is_refused(
    kind: str, damage: Callable[[Any], Any], words: str, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    model = KernelRidge(10, scale=kind).fit(*rows).model_
    config = json.loads(json.dumps(model.config))
    poor = type(model).from_config({**config, "scaler": damage(config["scaler"])}, model.arrays)
    with pytest.raises(ModelFormatError, match=words):
        poor.write(tmp_path / "model")


def test_arrays_of_a_rank_scaler_fit_together(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    model = KernelRidge(10, scale="rank").fit(*rows).model_
    for name in ("scaler_values", "scaler_counts"):
        poor = model.with_parts(model.record, {**model.arrays, name: model.arrays[name][1:]})
        with pytest.raises(ModelFormatError, match="shapes of its arrays disagree"):
            poor.write(tmp_path / "model")


@pytest.mark.parametrize("kind", ["rank", pytest.param("robust", marks=pytest.mark.slow)])
def test_no_prediction_of_california_housing_is_far(
    kind: str, shared_data: Callable[[str], Mapping[str, NDArray[Any]]]
) -> None:
    data = shared_data("california-housing")
    order = np.random.default_rng(0).permutation(len(data["X"]))
    X, y = data["X"].astype(np.float64)[order], data["y"].astype(np.float64)[order]
    y = (y - y.mean()) / y.std()
    model = KernelRidge(300, scale=kind).fit(X[:3000], y[:3000])
    predicted = model.predict(X[3000:])
    assert np.abs(predicted).max() < 5.0
    assert np.sqrt(np.mean((predicted - y[3000:]) ** 2)) < 0.56
    assert np.abs(model.predict(np.concatenate([X[:50] * 1e6, -X[:50] * 1e6]))).max() < 10.0
