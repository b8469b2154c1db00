"""Transformers on disk: read back whole, with the same bits, by plain zarr too; anything else is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from pickles import is_pickle
from sklearn.exceptions import NotFittedError

from streamkernel import KernelPCA, KernelRidge, KernelRidgeClassifier, Nystroem, factorize, open_table
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    IncompleteStoreError,
    ModelFormatError,
    ShapeError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
)
from streamkernel.store import Bundle, write_bundle

X = np.random.default_rng(0).standard_normal((500, 3)) * [3.0, 1.0, 0.1] + [0.0, 10.0, 0.0]
MADE: dict[str, Callable[[], Any]] = {
    "nystroem": lambda: Nystroem(30).fit(X),
    "nystroem float32": lambda: Nystroem(30, kernel="laplacian", rule="uniform").fit(X.astype(np.float32)),
    "nystroem unscaled": lambda: Nystroem(20, kernel="matern32", lengthscale=[1.0, 2.0, 0.3], scale="none").fit(X),
    "nystroem centres": lambda: Nystroem(20, rule="kmeans", rule_options={"nearest": False}).fit(X),
    "pca": lambda: KernelPCA(4, basis_size=30).fit(X),
    "pca float32": lambda: KernelPCA(basis_size=15).fit(X.astype(np.float32)),
    "pca polynomial": lambda: KernelPCA(3, basis_size=10, kernel="poly", degree=2, scale="none").fit(X),
}
every = pytest.mark.parametrize("name", MADE)


@every
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    made = MADE[name]()
    made.save(tmp_path / "made")
    again = type(made).load(tmp_path / "made")
    rows = X.astype(np.float32) if "float32" in name else X
    np.testing.assert_array_equal(again.transform(rows), made.transform(rows))
    lazy = again.transform(open_table(rows))
    np.testing.assert_array_equal(lazy.compute(), made.transform(open_table(rows)).compute())
    assert again.model_.digest == made.model_.digest
    fitted = {attribute for attribute in vars(made) if attribute.endswith("_") and attribute != "feature_names_in_"}
    assert fitted == {attribute for attribute in vars(again) if attribute.endswith("_")}
    for attribute in fitted - {"model_", "basis_", "eigen_"}:
        one, other = getattr(made, attribute), getattr(again, attribute)
        assert type(one) is type(other), attribute
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other, attribute
    assert again.get_feature_names_out().tolist() == made.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="features"):
        again.transform(rows[:, :2])
    with pytest.raises(ShapeError, match=r"2 features, the transformer was fitted on 3 \(x0, x1, x2\)"):
        again.transform(open_table(rows[:, :2]))


def test_eigenvectors_of_a_loaded_kernel_pca(tmp_path: Path) -> None:
    made = KernelPCA(4, basis_size=30).fit(X)
    made.save(tmp_path / "made")
    again = KernelPCA.load(tmp_path / "made").eigen_
    assert (again.unexplained, again.residual_trace) == (made.eigen_.unexplained, made.eigen_.residual_trace)
    for name in ("values", "directions", "mean"):
        np.testing.assert_array_equal(getattr(again, name), getattr(made.eigen_, name))


@pytest.mark.parametrize("kind", [Nystroem, KernelPCA])
def test_equal_fits_have_equal_digests(kind: Any) -> None:
    one, other = kind(20).fit(X).model_, kind(20).fit(X).model_
    assert one.digest == other.digest
    assert one.config["run"]["seconds"] != other.config["run"]["seconds"]
    assert kind(20, random_state=1).fit(X).model_.digest != one.digest
    assert one.config["run"]["planned_memory_bytes"] > 0
    assert one.config["run"]["peak_memory_bytes"] > 0


@pytest.mark.parametrize("name", ["nystroem", "pca"])
def test_plain_zarr_transforms_and_nothing_is_pickled(name: str, tmp_path: Path) -> None:
    made = MADE[name]()
    made.save(tmp_path / "made")
    group: Any = zarr.open_group(str(tmp_path / "made"), mode="r")
    config = json.loads((tmp_path / "made" / "config.json").read_text())["config"]
    rows = (X - np.array(config["scaler"]["mean"])) / np.array(config["scaler"]["scale"])
    Z = group["components"][:]
    K = np.exp(-((rows[:, None] - Z) ** 2).sum(axis=2) / (2 * config["lengthscale"] ** 2))
    values = K @ group["normalization"][:].T if name == "nystroem" else K @ group["dual_coef"][:] + group["intercept"]
    np.testing.assert_allclose(values, made.transform(X), atol=1e-8)
    left = np.array([500.0 - (made.model_.basis.features(rows)[:, :t] ** 2).sum() for t in range(31)])
    np.testing.assert_allclose(group["residual_path"][:], left, atol=1e-7)
    np.testing.assert_array_equal(X[group["component_indices"][:]].round(9), made.components_.round(9))
    for path in (tmp_path / "made").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not is_pickle(content)
            assert b"streamkernel.estimators" not in content
            assert str(tmp_path).encode() not in content


def test_only_what_was_fitted_is_saved(tmp_path: Path) -> None:
    for estimator in (Nystroem(), KernelPCA(), KernelRidge()):
        with pytest.raises(NotFittedError):
            estimator.save(tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_paths_and_kinds(tmp_path: Path) -> None:
    estimators: dict[str, Any] = {
        "nystroem": Nystroem(10).fit(X),
        "kernel-pca": KernelPCA(2, basis_size=10).fit(X),
        "kernel-ridge": KernelRidge(10).fit(X, X[:, 0]),
    }
    for name, estimator in estimators.items():
        estimator.save(tmp_path / name)
        with pytest.raises(StoreExistsError, match="ask for overwrite"):
            estimator.save(tmp_path / name)
        estimator.save(tmp_path / name, overwrite=True)
    for name, kind in (("nystroem", Nystroem), ("kernel-pca", KernelPCA), ("kernel-ridge", KernelRidge)):
        for other in estimators:
            if other != name:
                with pytest.raises(ModelFormatError, match=f"holds a {other}, not a {name}; choose another path"):
                    kind.load(tmp_path / other)
    with pytest.raises(ModelFormatError, match="holds a nystroem"):
        KernelRidgeClassifier.load(tmp_path / "nystroem")
    factorize(X, tmp_path / "factor", n_components=5)
    with pytest.raises(ModelFormatError, match="not a saved model"):
        Nystroem.load(tmp_path / "factor")
    with pytest.raises(StoreNotFoundError):
        KernelPCA.load(tmp_path / "nothing")
    with pytest.raises(StoreExistsError):
        estimators["nystroem"].save(tmp_path / "factor")


@pytest.mark.parametrize("name", ["nystroem", "pca"])
def test_unfinished_and_damaged(name: str, tmp_path: Path) -> None:
    made = MADE[name]()
    made.save(tmp_path / "whole")

    def broken(change: Callable[[Path], object]) -> Any:
        copy = Path(shutil.copytree(tmp_path / "whole", tmp_path / "copy"))
        change(copy)
        with pytest.raises(StoreError) as caught:
            type(made).load(copy)
        shutil.rmtree(copy)
        assert "\n" not in str(caught.value)
        return caught.type

    def flip(copy: Path) -> None:
        chunk = next(path for path in (copy / "components" / "c").rglob("*") if path.is_file())
        content = bytearray(chunk.read_bytes())
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)

    def edit(copy: Path) -> None:
        text = (copy / "config.json").read_text()
        (copy / "config.json").write_text(text.replace('"lengthscale"', '"longscale"'))

    *_, own = type(made.model_).SHAPES
    assert broken(lambda copy: (copy / "COMPLETE").unlink()) is IncompleteStoreError
    assert broken(flip) is CorruptChunkError
    assert broken(edit) is CorruptMetadataError
    assert broken(lambda copy: shutil.rmtree(copy / own)) is ModelFormatError
    assert broken(lambda copy: (copy / "zarr.json").unlink()) is CorruptMetadataError


@pytest.mark.parametrize("name", ["nystroem", "pca"])
def test_parts_that_do_not_fit_together(name: str, tmp_path: Path) -> None:
    """Whole as a bundle, and yet no transformer: written by something else than `save`."""
    model = MADE[name]().model_
    config, arrays = model.config, model.arrays
    another = {key: values for key, values in arrays.items() if key != "component_indices"}
    wrong = {
        "disagree": [
            (config, {**arrays, "component_indices": np.arange(7)}),
            (config, {**arrays, "residual_path": arrays["residual_path"][1:]}),
            (config, {**arrays, "gain_parts": np.zeros((3, 2))}),
            ({**config, "columns": ["a", "b"]}, arrays),
            ({**config, "scaler": {"mean": [0.0], "scale": [1.0]}}, arrays),
        ],
        "is not a": [
            ({key: value for key, value in config.items() if key != "kernel"}, arrays),
            ({**config, "kernel": {"kernel": "magic"}}, arrays),
        ],
        "lacks the array component_indices": [(config, another)],
    }
    for said, cases in wrong.items():
        for changed, values in cases:
            write_bundle(tmp_path / "wrong", Bundle(model.KIND, 1, changed, values), overwrite=True)
            with pytest.raises(ModelFormatError, match=said):
                type(model).load(tmp_path / "wrong")
    write_bundle(tmp_path / "wrong", Bundle(model.KIND, 99, config, arrays), overwrite=True)
    with pytest.raises(ModelFormatError, match=r"of version 99; this release reads 1"):
        type(model).load(tmp_path / "wrong")
