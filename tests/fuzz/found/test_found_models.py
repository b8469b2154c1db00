"""What fuzzing broke of models and factors, once: whole to the last digest, so that only their readers can tell."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from fuzz.command import Refused, commanded
from fuzz.damage import resealed, taken
from fuzz.forgery import reconfigured
from fuzz.limits import Yard, refused

from streamkernel import (
    Factor,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelPCA,
    KernelRidge,
    factorize,
)
from streamkernel.errors import (
    CorruptMetadataError,
    MissingChunkError,
    ModelFormatError,
    SingularKernelError,
    StoreError,
    StreamKernelError,
)
from streamkernel.store import Bundle, read_bundle, write_bundle

X = np.random.default_rng(0).standard_normal((20, 3))


@pytest.mark.parametrize("estimator", [KernelRidge, GaussianProcessRegressor])
def test_models_without_a_field(yard: Yard, estimator: Any) -> None:
    """Whole to the last digest, so that only their readers can tell."""
    path = yard.place("m")
    estimator(5).fit(X, X[:, 0]).save(path)
    kind = json.loads((path / "config.json").read_text())["kind"]
    bundle = read_bundle(path, kind, versions=range(9))
    for field in ("kernel", "scaler", "columns", "estimator", "targets_are_2d", "certificate", "lengthscale"):
        config = {name: value for name, value in bundle.config.items() if name != field}
        reconfigured(path, config)
        refused(yard, lambda: estimator.load(path), ModelFormatError, "fit it again")


@pytest.mark.parametrize("groups", [None, ([0, 1], [2])])
def test_views_of_columns_that_the_input_has_not(yard: Yard, groups: Any) -> None:
    """A ValueError of scikit-learn's, or an IndexError, of rows that are to be transformed."""
    path = yard.place("m")
    KernelCCA(1, basis_size=5, view_columns=groups).fit(X, X[:, :1] if groups is None else None).save(path)
    bundle = read_bundle(path, "kernel-cca")
    first, second = bundle.config["views"]
    changed: list[dict[str, Any]] = [{"columns": ["a"]}, {"views": [{**first, "columns": [0, 1, 7]}, second]}]
    if groups is not None:
        changed += [{"views": [first, {**second, "columns": [3]}]}, {"views": [{**first, "columns": None}, second]}]
    for fields in changed:
        reconfigured(path, {**bundle.config, **fields})
        refused(yard, lambda: KernelCCA.load(path), ModelFormatError, "fit it again")


def test_dependent_basis_points(yard: Yard) -> None:
    """A ValueError of the factor L, where a model is made to predict deviations."""
    path = yard.place("m")
    GaussianProcessRegressor(5, lengthscale=1.5, tune="none").fit(X, X[:, 0]).save(path)
    bundle = read_bundle(path, "gaussian-process")
    arrays = {**bundle.arrays, "components": np.zeros_like(bundle.arrays["components"])}
    write_bundle(path, Bundle(bundle.kind, bundle.version, bundle.config, arrays), overwrite=True)
    model = GaussianProcessRegressor.load(path)
    refused(yard, lambda: model.predict(X, return_std=True), SingularKernelError, "4 of 5 basis points are dependent")


@pytest.mark.parametrize(
    ("field", "value"), [("volatile", None), ("volatile", [[]]), ("columns", "x"), ("columns", {})]
)
def test_factors_with_fields_of_another_kind(yard: Yard, field: str, value: Any) -> None:
    path = yard.place("f")
    factorize(X, path, n_components=5)
    bundle = read_bundle(path / "basis", "factor")
    reconfigured(path / "basis", {**bundle.config, field: value})
    refused(yard, lambda: Factor.load(path), StoreError, str(path))


@pytest.mark.parametrize(
    ("command", "field", "value"),
    [
        ("info", "certificate", []),
        ("info", "settings", {}),
        ("report", "certificate", []),
        ("report", "rounds", [{"start": []}]),
    ],
)
def test_models_with_fields_of_another_kind(yard: Yard, command: str, field: str, value: Any) -> None:
    """What predictions do not need is checked too, and named."""
    path, out = yard.place("m"), yard.place("out.html")
    KernelRidge(5).fit(X, X[:, 0]).save(path)
    bundle = read_bundle(path, "kernel-ridge")
    reconfigured(path, {**bundle.config, field: value})
    refused(yard, lambda: commanded(command, path, *[out][command == "info" :]), Refused, f"field {field}")
    assert not out.exists()


@pytest.mark.parametrize(
    ("shape", "chunk", "kind"),
    [
        ([3], [0], CorruptMetadataError),  # ZeroDivisionError
        ([0, 10**12], [1, 1], StreamKernelError),  # MemoryError: a tuple of all numbers of chunks was made
        ([3 * 10**9], [1], MissingChunkError),
    ],
)
def test_chunks_of_bundles(yard: Yard, shape: list[int], chunk: list[int], kind: type[StreamKernelError]) -> None:
    path = yard.place("b")
    write_bundle(path, Bundle("model", 1, {}, {"v": np.arange(3, dtype=np.int8)}))
    files = taken(path)
    metadata = json.loads(files["v/zarr.json"])
    metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"] = shape, chunk
    files = resealed({**files, "v/zarr.json": json.dumps(metadata).encode()})
    for name in ("v/zarr.json", "COMPLETE"):
        (path / name).write_bytes(files[name])
    refused(yard, lambda: read_bundle(path, "model"), kind, "v")


@pytest.mark.parametrize("estimator", [KernelMatchingPursuit, KernelMatchingPursuitClassifier])
def test_pursuits_whose_fields_disagree_with_their_arrays(yard: Yard, estimator: Any) -> None:
    """Steps that are not there; a classifier that has probabilities or not, by a field that it lacks."""
    path = yard.place("m")
    estimator(5).fit(X, X[:, 0] if estimator is KernelMatchingPursuit else X[:, 0] > 0).save(path)
    bundle = read_bundle(path, "matching-pursuit")
    solution, settings = bundle.config["solution"], bundle.config["settings"]
    changed: list[dict[str, Any]] = [
        *({"solution": {**solution, **fields}} for fields in ({"terms": 3}, {"terms": 99}, {"terms": None})),
        {"solution": {**solution, "constant": not solution["constant"]}},
        {"settings": {name: value for name, value in settings.items() if name != "loss"}},
        {"settings": {**settings, "loss": {}}},
    ]
    if estimator is KernelMatchingPursuit:
        changed.append({"settings": {**settings, "loss": "logistic"}})
    for fields in changed:
        reconfigured(path, {**bundle.config, **fields})
        refused(yard, lambda: estimator.load(path), ModelFormatError, "fit it again")


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_counts_of_a_bound_that_are_none(yard: Yard, dtype: Any) -> None:
    """The message had all of them, on several lines."""
    path = yard.place("m")
    KernelCCA(1, basis_size=6, bound_gamma=0.5).fit(X, X[:, :1]).save(path)
    bundle = read_bundle(path, "kernel-cca")
    errors = np.full(bundle.arrays["bound_errors"].shape, -(2**62)).astype(dtype)
    arrays = {**bundle.arrays, "bound_errors": errors}
    write_bundle(path, Bundle(bundle.kind, bundle.version, bundle.config, arrays), overwrite=True)
    refused(yard, lambda: KernelCCA.load(path), ModelFormatError, "errors")


@pytest.mark.parametrize("rows", [None, {}, {"count": "x"}, {"count": 3}])
def test_components_of_which_the_rows_are_not_known(yard: Yard, rows: Any) -> None:
    """A KeyError, of the bound."""
    path = yard.place("m")
    KernelPCA(2, sparse=6).fit(X).save(path)
    bundle = read_bundle(path, "kernel-pca")
    reconfigured(path, {**bundle.config, "rows": rows})
    refused(yard, lambda: KernelPCA.load(path), ModelFormatError, "fit it again")


def test_posteriors_without_their_covariance(yard: Yard) -> None:
    """A KeyError, of the form that the covariance might have had instead."""
    path = yard.place("m")
    GaussianProcessClassifier(5, lengthscale=1.0, tune="none").fit(X, X[:, 0] > 0).save(path)
    bundle = read_bundle(path, "generalised-gaussian-process")
    arrays = {key: values for key, values in bundle.arrays.items() if key != "covariance"}
    write_bundle(path, Bundle(bundle.kind, bundle.version, bundle.config, arrays), overwrite=True)
    refused(yard, lambda: GaussianProcessClassifier.load(path), ModelFormatError, "lacks 'covariance_vectors'; fit it")


@pytest.mark.parametrize(
    ("field", "value"), [("signal_variance", -1.0), ("signal_variance", "1"), ("covariance_share", [1.0])]
)
def test_posteriors_whose_variances_are_none(yard: Yard, field: str, value: Any) -> None:
    path = yard.place("m")
    GaussianProcessPoissonRegressor(5, lengthscale=1.0, tune="none").fit(X, np.round(X[:, 0] ** 2)).save(path)
    bundle = read_bundle(path, "generalised-gaussian-process")
    reconfigured(path, {**bundle.config, field: value})
    refused(yard, lambda: GaussianProcessPoissonRegressor.load(path), ModelFormatError, "fit it again")
