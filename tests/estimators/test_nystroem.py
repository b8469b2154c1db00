"""Nystroem: scikit-learn's manners, any kind of rows, features whose products are the approximation."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pandas as pd
import pytest
from problems import zarr_of_chunks
from scikit_learn_checks import with_checks
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem as Reference
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from slow_cases import slow_but
from thread_clients import thread_client

from streamkernel import KernelRidge, Nystroem, open_table
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import (
    DegenerateBandwidthError,
    NonFiniteDataError,
    ParameterError,
    ResourceLimitError,
    ShapeError,
    StreamKernelWarning,
)
from streamkernel.factors import FeatureRows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 4)).astype(np.float32)
CHUNK = 700


# The checks fit sets of a few rows, constant columns and copies of rows: what we warn of there is wanted elsewhere.
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(Nystroem())
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_products_of_features_are_the_approximation() -> None:
    rows = X[:400].astype(np.float64)
    model = Nystroem(60, lengthscale=1.5, scale="none").fit(rows)
    G = model.transform(rows)
    K = naive.gaussian(rows, rows, 1.5)
    np.testing.assert_allclose(G @ G.T, naive.nystroem(K, model.component_indices_), atol=1e-8)
    assert model.residual_trace_ == pytest.approx(naive.residual_trace(K, model.component_indices_), rel=1e-6)
    assert model.relative_residual_trace_ == pytest.approx(model.residual_trace_ / 400)
    np.testing.assert_allclose(model.residual_trace_, 400 - (G**2).sum(), rtol=1e-6)


def test_attributes_are_scikit_learns() -> None:
    """With the same points, features differ from scikit-learn's by a rotation."""
    rows = X[:300].astype(np.float64)
    ours = Nystroem(40, kernel="rbf", gamma=0.3, scale="none", rule="uniform", random_state=3).fit(rows)
    np.testing.assert_array_equal(ours.components_, rows[ours.component_indices_])
    K_bn = naive.gaussian(rows, ours.components_, np.sqrt(1 / 0.6))
    np.testing.assert_allclose(ours.transform(rows), K_bn @ ours.normalization_.T, atol=1e-7)
    theirs = Reference(kernel="rbf", gamma=0.3, n_components=40).fit(ours.components_)
    features = theirs.transform(rows)
    np.testing.assert_allclose(features @ features.T, ours.transform(rows) @ ours.transform(rows).T, atol=1e-7)
    assert ours.get_feature_names_out().tolist() == [f"nystroem{j}" for j in range(40)]
    assert ours.n_features_in_ == 4


def test_scaled_rows_and_components_in_their_units() -> None:
    rows = X.astype(np.float64) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 5.0, 0.0, -1e4]
    model = Nystroem(30).fit(rows)
    np.testing.assert_allclose(model.components_, rows[model.component_indices_], rtol=1e-9)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    K_bn = naive.gaussian(scaled[:50], scaled[model.component_indices_], model.lengthscale_)
    np.testing.assert_allclose(model.transform(rows[:50]), K_bn @ model.normalization_.T, atol=1e-6)
    assert model.lengthscale_ == pytest.approx(
        KernelRidge(5, kernel="gaussian", metric="none").fit(rows, rows[:, 0]).lengthscale_
    )


def test_ridge_on_the_features_is_kernel_ridge() -> None:
    y = np.sin(X[:, 0].astype(np.float64)) + X[:, 1]
    model = KernelRidge(50, kernel="gaussian", metric="none", rule="uniform", alpha=0.1, random_state=2).fit(X, y)
    ours = make_pipeline(Nystroem(50, rule="uniform", random_state=2), Ridge(0.1)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), model.predict(X), atol=1e-6)


# ------------------------------------------------------------------------------------------------------ kinds of rows
@pytest.mark.parametrize("kind", slow_but(["dask", "zarr", "pandas"], ["dask", "zarr", "table", "pandas", "float64"]))
def test_inputs_of_any_kind_give_equal_bases(kind: str, tmp_path: Path) -> None:
    rows: Any = {
        "dask": lambda: da.from_array(X, chunks=(CHUNK, -1)),
        "zarr": lambda: zarr_of_chunks(tmp_path / "rows.zarr", X, X[:, 0].astype(np.float64), CHUNK),
        "table": lambda: open_table(X, X[:, 0]),
        "pandas": lambda: pd.DataFrame(X, columns=list("abcd")),
        "float64": lambda: X.astype(np.float64),
    }[kind]()
    reference, model = Nystroem(40).fit(X), Nystroem(40).fit(rows)
    np.testing.assert_array_equal(model.component_indices_, reference.component_indices_)
    assert model.n_features_in_ == 4
    expected = reference.transform(X)
    assert isinstance(expected, np.ndarray)
    assert (expected.shape, expected.dtype) == ((3000, 40), np.float64)
    found = model.transform(rows)
    assert isinstance(found, da.Array) == (kind not in ("pandas", "float64"))
    assert found.shape == (3000, 40)
    values = found.compute(scheduler="synchronous") if isinstance(found, da.Array) else found
    np.testing.assert_allclose(values, expected, atol=1e-5)


def test_nothing_is_read_until_it_is_asked_for() -> None:
    model = Nystroem(20).fit(X)
    seen: list[int] = []

    def load(block: Any, block_info: Any = None) -> Any:
        seen.append(block_info[0]["chunk-location"][0])
        return block

    rows = da.from_array(np.tile(X, (10, 1)), chunks=(10_000, -1)).map_blocks(load, dtype=X.dtype, meta=X[:0])
    seen.clear()
    lazy = model.transform(rows)
    assert seen == []
    np.testing.assert_allclose(
        lazy.blocks[0].compute(scheduler="synchronous")[:3000], model.transform(X), rtol=1e-12, atol=1e-12
    )
    assert set(seen) < {0, 1, 2}


class Watcher(Silent):
    def __init__(self) -> None:
        self.sweeps: list[str] = []
        self.notes: list[str] = []

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.sweeps.append(name)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_sweeps_are_as_planned_and_targets_are_not_read() -> None:
    def explode(block: Any) -> Any:
        raise AssertionError("targets were read")

    y = da.zeros(3000, chunks=CHUNK).map_blocks(explode, meta=np.empty(0))
    watcher = Watcher()
    model = Nystroem(40, progress=watcher).fit(open_table(da.from_array(X, chunks=(CHUNK, -1)), y))
    assert watcher.sweeps[0] == "gather sampled rows"
    assert watcher.sweeps[-1] == "final sweep"
    assert model.n_sweeps_ == len(watcher.sweeps)
    assert watcher.notes[0].startswith(f"{model.n_sweeps_} sweeps over 3,000 rows")


def test_equal_bits_on_a_cluster() -> None:
    rows = da.from_array(X, chunks=(CHUNK, -1))
    with thread_client() as client:
        there = Nystroem(30, client=client).fit(rows)
    here = Nystroem(30).fit(rows)
    for name in ("components_", "component_indices_", "normalization_", "residual_trace_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


# ------------------------------------------------------------------------------------------------------------ manners
def test_clones_pickles_and_searches() -> None:
    model = Nystroem(25, kernel="laplacian", lengthscale=[1.0, 2.0, 3.0, 1.0], random_state=5)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    first = model.fit(X).transform(X)
    np.testing.assert_array_equal(first, pickle.loads(pickle.dumps(twin.fit(X))).transform(X))
    search = GridSearchCV(make_pipeline(Nystroem(30), Ridge()), {"nystroem__lengthscale": [0.01, 2.0]}, cv=3)
    search.fit(X[:600], np.sin(X[:600, 0]))
    assert search.best_params_ == {"nystroem__lengthscale": 2.0}


def test_the_tolerance_stops() -> None:
    model = Nystroem(300, tol=0.3).fit(X)
    assert len(model.components_) < 300
    assert model.relative_residual_trace_ <= 0.3


def test_the_basis_serves_factors() -> None:
    model = Nystroem(20).fit(X)
    rows = FeatureRows(open_table(X).with_scaler(model.scaler_), model.basis_)
    H = rows.gram(Session(ThreadExecutor(1))).H
    G = model.transform(X)
    np.testing.assert_allclose(H, G.T @ G, rtol=1e-9, atol=1e-9)


def test_fewer_functions_than_uniform_for_the_same_trace() -> None:
    real = data_sets.load("abalone")
    if real is None:
        pytest.skip("abalone is not in ../shared/data")
    rows = real.X.astype(np.float64)
    greedy, uniform = Nystroem(100).fit(rows), Nystroem(100, rule="uniform").fit(rows)
    assert greedy.relative_residual_trace_ < 0.6 * uniform.relative_residual_trace_


# ---------------------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0},
        {"n_components": 2.5},
        {"lengthscale": "auto"},
        {"lengthscale": -1.0},
        {"kernel": "nothing"},
        {"rule": "nothing"},
        {"rule_options": {"nothing": 1}},
        {"tol": 2.0},
        {"scale": "nothing"},
        {"random_state": -1},
        {"memory_limit": "nothing"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_rows_are_read(options: dict[str, Any]) -> None:
    def explode(block: Any) -> Any:
        raise AssertionError("rows were read")

    rows = da.from_array(X, chunks=(CHUNK, -1)).map_blocks(explode, dtype=X.dtype, meta=X[:0])
    with pytest.raises(ParameterError) as caught:
        Nystroem(**options).fit(rows)
    assert "\n" not in str(caught.value)


def test_degenerate_rows() -> None:
    with pytest.warns(StreamKernelWarning, match="1 of 5 columns are constant.*x4"):
        wide = Nystroem(30).fit(np.column_stack([X, np.ones(3000)]))
    np.testing.assert_array_equal(wide.component_indices_, Nystroem(30).fit(X).component_indices_)
    with pytest.warns(StreamKernelWarning, match="only 20 of 60"):
        model = Nystroem(60).fit(np.repeat(X[:20], 5, axis=0))
    assert model.transform(X).shape == (3000, 20)
    assert model.normalization_.shape == (20, 20)
    with pytest.raises(DegenerateBandwidthError), pytest.warns(StreamKernelWarning):
        Nystroem(5).fit(np.ones((50, 3)))
    one = Nystroem(1, lengthscale=1.0, scale="none").fit(X[:1])
    np.testing.assert_allclose(one.transform(X[:1]), [[1.0]])


def test_bad_rows() -> None:
    rows = X.copy()
    rows[57, 1] = np.nan
    with pytest.raises(NonFiniteDataError, match="57"):
        Nystroem(10).fit(da.from_array(rows, chunks=(CHUNK, -1)))
    model = Nystroem(10).fit(X)
    with pytest.raises(ShapeError, match=r"3 features.*fitted on 4"):
        model.transform(da.from_array(X[:, :3], chunks=(CHUNK, -1)))
    with pytest.raises(ResourceLimitError, match=r"exceeds allowed memory \(10 MB\)"):
        Nystroem(10, memory_limit="10MB").fit(X)
