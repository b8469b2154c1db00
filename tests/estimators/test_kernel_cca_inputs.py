"""Where KernelCCA's views may come from, how it is saved, and what it says of what it is given."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from pickles import is_pickle
from problems import zarr_of_chunks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from streamkernel import KernelCCA, KernelPCA, Nystroem, ingest, open_table
from streamkernel.errors import (
    CorruptMetadataError,
    DegenerateBandwidthError,
    IncompleteStoreError,
    ModelFormatError,
    NonFiniteDataError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
)
from streamkernel.store import Bundle, write_bundle

RNG = np.random.default_rng(2)
X = RNG.standard_normal((400, 3)) * [1.0, 20.0, 0.1]
Y = np.column_stack([np.tanh(X[:, 0]), X[:, 1] ** 2]) + 0.1 * RNG.standard_normal((400, 2))
OPTIONS: dict[str, Any] = {"n_components": 2, "basis_size": 15, "bound_gamma": 1.0}


@pytest.fixture(scope="module")
def fitted() -> KernelCCA:
    return KernelCCA(**OPTIONS).fit(X, Y)


@pytest.fixture(scope="module")
def saved(fitted: KernelCCA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cca") / "model"
    fitted.save(path)
    return path


def same(one: KernelCCA, other: KernelCCA) -> None:
    assert one.component_indices_.tolist() == other.component_indices_.tolist()
    np.testing.assert_allclose(one.correlations_, other.correlations_, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------------- views
def test_column_groups_of_one_table_are_two_inputs(fitted: KernelCCA, tmp_path: Path) -> None:
    together = np.column_stack([Y[:, 0], X, Y[:, 1]])
    by_position = KernelCCA(**OPTIONS, view_columns=([1, 2, 3], [0, -1])).fit(together)
    same(by_position, fitted)
    assert by_position.n_features_in_ == 5
    named = pd.DataFrame(together, columns=["y0", "a", "b", "c", "y1"])
    by_name = KernelCCA(**OPTIONS, view_columns=(["a", "b", "c"], ["y0", "y1"])).fit(named)
    same(by_name, fitted)
    named.to_csv(tmp_path / "rows.csv", index=False)
    ingest(tmp_path / "rows.csv", tmp_path / "rows.zarr", chunk_rows=150)
    from_store = KernelCCA(**OPTIONS, view_columns=(["a", "b", "c"], ["y0", "y1"])).fit(tmp_path / "rows.zarr")
    same(from_store, fitted)
    # The store brings the statistics of its columns; without them the sweep that gathers rows finds them.
    assert from_store.n_sweeps_ == fitted.n_sweeps_
    assert from_store.model_.config["views"][1]["names"] == ["y0", "y1"]
    for estimator, rows in ((by_position, together), (by_name, named)):
        u, v = estimator.canonical_variates(rows)
        expected = fitted.canonical_variates(X, Y)
        np.testing.assert_allclose(u, expected[0], atol=1e-8)
        np.testing.assert_allclose(v, expected[1], atol=1e-8)
        np.testing.assert_array_equal(estimator.transform(rows), u)
    with pytest.raises(ParameterError, match="leave y out"):
        by_position.canonical_variates(together, Y)
    lazy = by_position.canonical_variates(da.from_array(together, chunks=(150, -1)))
    np.testing.assert_allclose(lazy[1].compute(scheduler="synchronous"), expected[1], atol=1e-8)


def test_targets_of_a_store_are_a_view(fitted: KernelCCA, tmp_path: Path) -> None:
    zarr_of_chunks(tmp_path / "rows.zarr", X, Y, 150)
    found = KernelCCA(**OPTIONS).fit(tmp_path / "rows.zarr")
    same(found, fitted)
    u, v = found.canonical_variates(open_table(tmp_path / "rows.zarr"))
    expected = fitted.canonical_variates(X, Y)
    np.testing.assert_allclose(u.compute(scheduler="synchronous"), expected[0], atol=1e-8)
    np.testing.assert_allclose(v.compute(scheduler="synchronous"), expected[1], atol=1e-8)
    part = KernelCCA(**OPTIONS).fit(open_table(tmp_path / "rows.zarr", rows=(100, 300)))
    assert part.component_indices_.min() >= 100
    assert part.model_.config["rows"] == {"start": 100, "stop": 300, "count": 200}


def test_two_tables_of_any_kind(fitted: KernelCCA, tmp_path: Path) -> None:
    first = zarr_of_chunks(tmp_path / "x.zarr", X, X[:, 0], 130)
    second = zarr_of_chunks(tmp_path / "y.zarr", Y, Y[:, 0], 90)
    for y in (second, open_table(second), da.from_array(Y, chunks=(64, -1)), Y):
        same(KernelCCA(**OPTIONS).fit(first, y), fitted)
    same(KernelCCA(**OPTIONS).fit(X, second), fitted)
    u, v = fitted.transform(first, second)
    expected = fitted.transform(X, Y)
    np.testing.assert_allclose(u.compute(scheduler="synchronous"), expected[0], atol=1e-9)
    np.testing.assert_allclose(v.compute(scheduler="synchronous"), expected[1], atol=1e-9)
    one = KernelCCA(1, basis_size=10).fit(X, Y[:, 0])
    np.testing.assert_array_equal(one.transform(X, Y[:, 0])[1], one.transform(X, Y[:, :1])[1])
    with pytest.raises(ShapeMismatchError, match="100:300"):
        KernelCCA().fit(open_table(first).slice(100, 300), open_table(second))


def test_kernels_and_lengthscales_of_either_view() -> None:
    model = KernelCCA(1, basis_size=2, kernel=("laplacian", "linear"), lengthscale=([1.0, 2.0, 3.0], "median"))
    model.fit(X, Y)
    assert [kernel.to_config()["kernel"] for kernel in model.kernels_] == ["laplacian", "linear"]
    assert model.lengthscales_ == ((1.0, 2.0, 3.0), None)
    assert KernelCCA(1, basis_size=5, lengthscale=(0.5, 2.0)).fit(X, Y).lengthscales_ == (0.5, 2.0)
    medians = KernelCCA(1, basis_size=5).fit(X, Y).lengthscales_
    assert medians[0] != medians[1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (([0, 1], [1, 2]), "x1 twice"),
        (([0, 1], []), "empty"),
        (([0], [3]), "3, which is no column; the table has x0, x1, x2"),
        (([0], ["z"]), "'z', which is no column"),
        (([0], [1], [2]), "two groups"),
        ("x0", "two groups"),
        (([0], [True]), "True, which is no column"),
    ],
    ids=str,
)
def test_groups_that_are_none(groups: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelCCA(1, basis_size=5, view_columns=groups).fit(X)


def test_what_is_no_pair_of_views(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="requires y"):
        KernelCCA().fit(X)
    with pytest.raises(ParameterError, match="no second view"):
        KernelCCA().fit(open_table(X))
    with pytest.raises(ParameterError, match="twice, as y and by view_columns"):
        KernelCCA(view_columns=([0], [1])).fit(open_table(X), Y)
    with pytest.raises(ParameterError, match="class labels"):
        KernelCCA().fit(open_table(X, np.arange(400) % 3, classify=True))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelCCA().fit(X, Y[:-1])
    broken = Y.copy()
    broken[7, 1] = np.nan
    for y in (broken, da.from_array(broken, chunks=(100, -1))):
        with pytest.raises(NonFiniteDataError, match="row 7"):
            KernelCCA(basis_size=5).fit(X, y)


# ------------------------------------------------------------------------------------------------------------ manners
def test_clones_and_pickles(fitted: KernelCCA) -> None:
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert fitted.get_feature_names_out().tolist() == ["kernelcca0", "kernelcca1"]
    np.testing.assert_array_equal(clone(fitted).fit_transform(X, Y), fitted.transform(X))
    for act in (lambda: KernelCCA().transform(X), lambda: KernelCCA().bound_, lambda: KernelCCA().save("nowhere")):
        with pytest.raises(NotFittedError):
            act()


def test_saved_and_loaded(fitted: KernelCCA, saved: Path) -> None:
    again = KernelCCA.load(saved)
    for one, other in zip(again.canonical_variates(X, Y), fitted.canonical_variates(X, Y), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.model_.digest == fitted.model_.digest
    assert KernelCCA(**OPTIONS).fit(X, Y).model_.digest == fitted.model_.digest
    for name in ("correlations_", "singular_values_", "components_", "components_y_", "quotients_", "residual_traces_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
    np.testing.assert_array_equal(again.bound_.values, fitted.bound_.values)
    np.testing.assert_allclose(again.components_, X[again.component_indices_], rtol=1e-12)
    np.testing.assert_allclose(again.components_y_, Y[again.component_indices_], rtol=1e-12)
    with pytest.raises(ShapeError, match="2 features, the transformer was fitted on 3"):
        again.transform(open_table(X[:, :2]))
    with pytest.raises(ShapeError, match="second view has 3 features, the transformer was fitted on 2"):
        again.transform(X, X)


def test_plain_zarr_has_the_variates(fitted: KernelCCA, saved: Path) -> None:
    group: Any = zarr.open_group(str(saved), mode="r")
    config = json.loads((saved / "config.json").read_text())["config"]
    for view, rows, suffix, expected in zip(
        config["views"], (X, Y), ("", "_y"), fitted.canonical_variates(X, Y), strict=True
    ):
        scaled = (rows - np.array(view["scaler"]["mean"])) / np.array(view["scaler"]["scale"])
        Z = group[f"components{suffix}"][:]
        K = np.exp(-((scaled[:, None] - Z) ** 2).sum(axis=2) / (2 * view["lengthscale"] ** 2))
        found = K @ group[f"dual_coef{suffix}"][:] + group[f"intercept{suffix}"][:]
        np.testing.assert_allclose(found, expected, atol=1e-7)
        left = group[f"residual_path{suffix}"][:]
        assert left[0] == 400.0
        assert (np.diff(left) < 0).all()
    assert not any(is_pickle(path.read_bytes()) for path in saved.rglob("*") if path.is_file())


def test_what_is_no_whole_model(fitted: KernelCCA, saved: Path, tmp_path: Path) -> None:
    for kind in (KernelPCA, Nystroem):
        with pytest.raises(ModelFormatError, match="holds a kernel-cca, not a"):
            kind.load(saved)
    copy = Path(shutil.copytree(saved, tmp_path / "copy"))
    (copy / "COMPLETE").unlink()
    with pytest.raises(IncompleteStoreError):
        KernelCCA.load(copy)
    edited = Path(shutil.copytree(saved, tmp_path / "edited"))
    text = (edited / "config.json").read_text()
    (edited / "config.json").write_text(text.replace('"views"', '"sights"'))
    with pytest.raises(CorruptMetadataError):
        KernelCCA.load(edited)
    config, arrays = fitted.model_.config, fitted.model_.arrays
    first, second = config["views"]
    wrong = [
        (config, {**arrays, "components_y": arrays["components_y"][:, :1]}),
        (config, {**arrays, "dual_coef_y": arrays["dual_coef_y"][:, :1]}),
        ({**config, "views": [first, {**second, "scaler": first["scaler"]}]}, arrays),
        ({**config, "views": [first, {**second, "kernel": {"kernel": "magic"}}]}, arrays),
        ({**config, "views": [first]}, arrays),
        ({key: value for key, value in config.items() if key != "bound"}, arrays),
    ]
    for changed, values in wrong:
        write_bundle(tmp_path / "wrong", Bundle("kernel-cca", 1, changed, values), overwrite=True)
        with pytest.raises(ModelFormatError):
            KernelCCA.load(tmp_path / "wrong")


def test_names_of_a_data_frame_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 3)), columns=["a", "b", "c"])
    columns = KernelCCA(1, basis_size=4, view_columns=(["a", "c"], ["b"])).fit(frame)
    assert columns.model_.config["columns"] == ["a", "b", "c"]
    other = KernelCCA(1, basis_size=4).fit(frame, frame[["a"]] + 0.1)
    other.save(tmp_path / "cca")
    assert KernelCCA.load(tmp_path / "cca").model_.config["columns"] == ["a", "b", "c"]


def test_variates_of_other_rows(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    cca = KernelCCA(1, basis_size=4).fit(X, X[:, :1])
    for ask in (cca.transform, cca.canonical_variates):
        with pytest.raises(ShapeMismatchError, match="60 rows and y has 20"):
            ask(X, X[:20, :1])


def test_a_view_without_a_distance_is_named() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    with (
        pytest.warns(match="constant"),
        pytest.raises(DegenerateBandwidthError, match="the second view: all 60 sampled rows are equal"),
    ):
        KernelCCA(1, basis_size=4).fit(X, np.ones((60, 2)))


def test_weights_of_the_second_view_alone_are_not_left_out_without_a_word() -> None:
    w = np.repeat([1.0, 3.0], 200)
    weighted, plain = open_table(Y, weights=w), open_table(Y)
    with pytest.raises(ParameterError, match="the second view has row weights, and the first one has none"):
        KernelCCA(**OPTIONS).fit(X, weighted)
    expected = KernelCCA(**OPTIONS).fit(X, plain, sample_weight=w).correlations_
    for fit in (
        lambda cca: cca.fit(X, weighted, sample_weight=w),
        lambda cca: cca.fit(open_table(X, weights=w), weighted),
        lambda cca: cca.fit(open_table(X, weights=w), plain),
    ):
        np.testing.assert_array_equal(fit(KernelCCA(**OPTIONS)).correlations_, expected)
    unweighted = KernelCCA(**OPTIONS).fit(X, weighted.without_weights()).correlations_
    np.testing.assert_array_equal(unweighted, KernelCCA(**OPTIONS).fit(X, plain).correlations_)
