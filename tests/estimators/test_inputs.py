"""Rows of any kind give one model; rows outside memory are predicted when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from problems import zarr_of_chunks

from streamkernel import KernelMatchingPursuit, KernelPCA, KernelRidge, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import ShapeError, StoreNotFoundError, UncheckedChunksWarning

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 4)).astype(np.float32)
y = np.sin(X[:, 0].astype(np.float64)) + X[:, 1] + 0.1 * RNG.standard_normal(3000)
LABELS = np.array(["low", "mid", "top"])[np.digitize(y, [-0.7, 0.7])]
CHUNK = 700
PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "alpha": "gcv"}
ROUNDING = 1e-10
"""Predictions of one row in batches of other sizes: eps times the sum of the coefficients' sizes, some 1e4 here."""


def zarr_path(folder: Path) -> str:
    return zarr_of_chunks(folder / "rows.zarr", X, y, CHUNK)


def ingested(folder: Path) -> str:
    np.savez(folder / "rows.npz", X=X, y=y)
    ingest(str(folder / "rows.npz"), str(folder / "store"), dtype="keep", chunk_rows=CHUNK)
    return str(folder / "store")


INPUTS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "numpy": lambda folder: (X, y),
    "fortran order": lambda folder: (np.asfortranarray(X), y),
    "pandas": lambda folder: (pd.DataFrame(X), pd.Series(y)),
    "dask": lambda folder: (da.from_array(X, chunks=(CHUNK, -1)), da.from_array(y, chunks=CHUNK)),
    "dask, columns cut too": lambda folder: (da.from_array(X, chunks=(CHUNK, 3)), da.from_array(y, chunks=900)),
    "zarr arrays": lambda folder: tuple(zarr.open_group(zarr_path(folder), mode="r")[name] for name in ("X", "y")),
    "zarr group": lambda folder: (zarr.open_group(zarr_path(folder), mode="r"), None),
    "path": lambda folder: (zarr_path(folder), None),
    "pathlib": lambda folder: (Path(zarr_path(folder)), None),
    "ingested": lambda folder: (ingested(folder), None),
    "table": lambda folder: (open_table(X, y), None),
    "xarray": lambda folder: (xr.Dataset({"X": (("row", "feature"), X), "y": (("row",), y)}), None),
    "xarray of dask": lambda folder: (
        xr.Dataset({"X": (("row", "feature"), da.from_array(X, chunks=(CHUNK, -1))), "y": (("row",), y)}),
        None,
    ),
}


def estimator() -> KernelRidge:
    """Without searches, which would choose between near ties by the rounding of their sums."""
    return KernelRidge(40, kernel="gaussian", metric="none", alpha="gcv", random_state=1)


@cache
def of_numpy() -> KernelRidge:
    """What fits to all other kinds of rows are held against."""
    return estimator().fit(X, y)


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_of_any_kind_give_equal_models(kind: str, tmp_path: Path) -> None:
    """Equal picks; numbers up to the order of summation, which is the layout's."""
    reference, model = of_numpy(), estimator().fit(*INPUTS[kind](tmp_path))
    np.testing.assert_array_equal(model.component_indices_, reference.component_indices_)
    np.testing.assert_allclose(model.residual_trace_, reference.residual_trace_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["dask", "zarr arrays", "zarr group", "path", "ingested", "table", "xarray"])
def test_lazy_predictions_equal_eager_ones(kind: str, tmp_path: Path) -> None:
    model = of_numpy()
    rows = INPUTS[kind](tmp_path)[0]
    lazy = model.predict(rows)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == ((3000,), np.float64)
    np.testing.assert_allclose(lazy.compute(scheduler="threads"), model.predict(X), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        lazy[100:110].compute(scheduler="synchronous"), model.predict(X[100:110]), rtol=0, atol=ROUNDING
    )


def test_nothing_is_read_until_it_is_asked_for(tmp_path: Path) -> None:
    """Each chunk is computed when its predictions are, and no other."""
    model = estimator().fit(X, y)
    seen: list[int] = []

    def load(block: Any, block_info: Any = None) -> Any:
        seen.append(block_info[0]["chunk-location"][0])
        return block

    big = np.tile(X, (10, 1))
    rows = da.from_array(big, chunks=(10_000, -1)).map_blocks(load, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    seen.clear()
    lazy = model.predict(rows)
    assert seen == []
    assert lazy.numblocks[0] >= 2
    found = lazy.blocks[0].compute(scheduler="synchronous")
    assert len(found) < len(big)
    assert set(seen) < {0, 1, 2}
    np.testing.assert_allclose(found[:3000], model.predict(X), rtol=0, atol=ROUNDING)


def test_lazy_predictions_of_many_targets_and_labels(tmp_path: Path) -> None:
    rows = da.from_array(X, chunks=(CHUNK, -1))
    two = KernelRidge(30, **PLAIN).fit(X, np.column_stack([y, -y]))
    assert two.predict(rows).shape == (3000, 2)
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_allclose(two.predict(rows).compute(), two.predict(X), rtol=0, atol=ROUNDING)
        classifier = KernelRidgeClassifier(30, **PLAIN).fit(rows, da.from_array(LABELS, chunks=CHUNK))
        lazy = classifier.predict(rows)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy.compute(), classifier.predict(X))
        assert (classifier.predict(X) == LABELS).mean() > 0.85
        np.testing.assert_allclose(
            classifier.decision_function(rows).compute(), classifier.decision_function(X), rtol=1e-9, atol=ROUNDING
        )


def test_float32_rows_with_a_large_offset_agree_with_float64() -> None:
    far = (X.astype(np.float64) + 1e4).astype(np.float32)
    exact = far.astype(np.float64)
    single, double = estimator().fit(far, y), estimator().fit(exact, y)
    np.testing.assert_array_equal(single.component_indices_, double.component_indices_)
    np.testing.assert_allclose(single.predict(far), double.predict(exact), rtol=1e-4, atol=1e-4)
    assert single.score(far, y) > 0.98
    unscaled = [estimator().set_params(scale="none").fit(rows, y).predict(rows) for rows in (far, exact)]
    np.testing.assert_allclose(unscaled[0], unscaled[1], atol=2e-3)


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, bool, np.float16, ">f4", ">i8"])
def test_other_numbers_are_cast(dtype: Any) -> None:
    values = np.clip(np.round(40 * (X[:500] + 3)), 0, 250)
    rows = (values > 120) if dtype is bool else values
    model, expected = KernelRidge(10, lengthscale=2.0), KernelRidge(10, lengthscale=2.0)
    found = model.fit(rows.astype(dtype), y[:500]).predict(rows.astype(dtype))
    exact = expected.fit(rows.astype(np.float64), y[:500]).predict(rows.astype(np.float64))
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3)


def test_rows_of_another_width_are_refused(tmp_path: Path) -> None:
    model = estimator().fit(X, y)
    with pytest.raises(ShapeError, match="3 features, the model was fitted on 4"):
        model.predict(da.from_array(X[:, :3], chunks=(CHUNK, -1)))
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])
    with pytest.raises(StoreNotFoundError):
        model.predict(str(tmp_path / "nothing.zarr"))
    assert list(tmp_path.iterdir()) == []


def test_chunks_without_a_checksum_are_warned_of(tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "plain.zarr"), mode="w")
    group.create_array("X", data=X, chunks=(CHUNK, 4))
    with pytest.warns(UncheckedChunksWarning):
        estimator().fit(group["X"], y)


@pytest.mark.parametrize("estimator", [KernelRidge(10), KernelMatchingPursuit(10), KernelPCA(2, basis_size=10)])
def test_names_of_a_data_frame_are_kept(estimator: Any) -> None:
    """They were x0, x1, ...: scikit-learn's checks make an array of it."""
    frame = pd.DataFrame(X[:300], columns=[f"feature {j}" for j in range(X.shape[1])])
    assert estimator.fit(frame, y[:300]).model_.column_names == list(frame.columns)
    assert estimator.fit(X[:300], y[:300]).model_.column_names == [f"x{j}" for j in range(X.shape[1])]
