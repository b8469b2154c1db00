"""KernelPCA: exact where all rows are the basis, scikit-learn's manners, any kind of rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pytest
from problems import zarr_of_chunks
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from thread_clients import thread_client

from streamkernel import KernelPCA
from streamkernel.errors import NumericalError, ParameterError, ShapeError, StreamKernelWarning

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 4)) * [2.0, 1.0, 0.5, 0.2]
CHUNK = 700


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@parametrize_with_checks([KernelPCA()])
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
def test_all_rows_as_basis_are_scikit_learns(kernel: dict[str, Any]) -> None:
    """Values, components and, by the same convention, signs."""
    rows = X[:120]
    if kernel["kernel"] == "poly":
        kernel = {**kernel, "gamma": 1.0}
    size = 120 if kernel["kernel"] == "rbf" else 15  # monomials of degree <= 2 in four variables
    ours = KernelPCA(6, basis_size=size, scale="none", rule="rpcholesky", **kernel).fit(rows)
    theirs = Reference(6, **kernel).fit(rows)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-7)
    found, expected = ours.transform(rows), theirs.transform(rows)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-5)
    if size == 120:
        np.testing.assert_array_equal(signs, 1.0)
    new = RNG.standard_normal((30, 4))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new) * signs, atol=1e-5)


def test_a_linear_kernel_is_pca() -> None:
    ours = KernelPCA(kernel="linear", basis_size=4, scale="none").fit(X)
    theirs = PCA().fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.singular_values_**2, rtol=1e-9)
    np.testing.assert_allclose(abs(ours.transform(X)), abs(theirs.transform(X)), atol=1e-8)
    assert ours.residual_trace_ == pytest.approx(0.0, abs=1e-7 * (X**2).sum())


def test_components_are_those_of_the_centred_approximation() -> None:
    rows = X[:400]
    model = KernelPCA(5, basis_size=40, lengthscale=1.5, scale="none").fit(rows)
    K = naive.gaussian(rows, rows, 1.5)
    dense = naive.centred(naive.nystroem(K, model.component_indices_))
    values = np.linalg.eigvalsh(dense)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:5], rtol=1e-9)
    scores = model.transform(rows)
    np.testing.assert_allclose(scores.T @ scores, np.diag(values[:5]), atol=1e-6)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-9)
    left = np.trace(naive.centred(K)) - values[:5].sum()
    assert left <= model.residual_trace_ <= left + naive.residual_trace(K, model.component_indices_)
    at_basis = scores[model.component_indices_]
    assert (at_basis[abs(at_basis).argmax(axis=0), np.arange(5)] > 0).all()


def test_larger_bases_come_closer() -> None:
    exact = naive.centred(naive.gaussian(X[:500], X[:500], 1.5))
    best = np.linalg.eigvalsh(exact)[::-1][:10].sum()
    found = [KernelPCA(10, basis_size=n, lengthscale=1.5, scale="none").fit(X[:500]) for n in (15, 40, 150)]
    explained = [model.eigenvalues_.sum() / best for model in found]
    assert explained[0] < explained[1] < explained[2] <= 1 + 1e-9
    assert explained[2] > 0.999
    assert found[0].residual_trace_ > found[1].residual_trace_ > found[2].residual_trace_


# ------------------------------------------------------------------------------------------------------ kinds of rows
@pytest.mark.parametrize("kind", ["dask", "zarr"])
def test_rows_outside_memory(kind: str, tmp_path: Path) -> None:
    rows: Any = da.from_array(X, chunks=(CHUNK, -1))
    if kind == "zarr":
        rows = zarr_of_chunks(tmp_path / "rows.zarr", X, X[:, 0], CHUNK)
    reference, model = KernelPCA(4, basis_size=60).fit(X), KernelPCA(4, basis_size=60).fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
    lazy = model.transform(rows)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == ((3000, 4), np.float64)
    np.testing.assert_allclose(lazy.compute(scheduler="synchronous"), reference.transform(X), atol=1e-7)
    with pytest.raises(ShapeError, match="fitted on 4"):
        model.transform(da.from_array(X[:, :3], chunks=(CHUNK, -1)))


def test_equal_bits_on_a_cluster() -> None:
    rows = da.from_array(X, chunks=(CHUNK, -1))
    with thread_client() as client:
        there = KernelPCA(3, basis_size=30, client=client).fit(rows)
    here = KernelPCA(3, basis_size=30).fit(rows)
    np.testing.assert_array_equal(there.eigenvalues_, here.eigenvalues_)
    np.testing.assert_array_equal(there.transform(X), here.transform(X))


# ------------------------------------------------------------------------------------------------------------ manners
def test_clones_pickles_and_pipelines() -> None:
    model = KernelPCA(3, basis_size=25, kernel="laplacian", random_state=5)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    np.testing.assert_array_equal(model.fit_transform(X), pickle.loads(pickle.dumps(twin.fit(X))).transform(X))
    assert model.get_feature_names_out().tolist() == ["kernelpca0", "kernelpca1", "kernelpca2"]


def test_digits_are_told_apart_by_few_components() -> None:
    real = data_sets.load("pendigits")
    if real is None:
        pytest.skip("pendigits is not in ../shared/data")
    rows, labels = real.X.astype(np.float64), real.y
    pipeline = make_pipeline(KernelPCA(12, basis_size=150), KNeighborsClassifier(5))
    assert pipeline.fit(rows[:4000], labels[:4000]).score(rows[4000:6000], labels[4000:6000]) > 0.95


def test_all_components_of_a_default_basis() -> None:
    model = KernelPCA(lengthscale=1.0).fit(X[:100])
    assert len(model.components_) == 47  # ceil(sqrt(100) log 100)
    assert len(model.eigenvalues_) == 47
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert (model.eigenvalues_ > 0).all()
    assert len(KernelPCA(60, lengthscale=0.5).fit(X[:100]).components_) == 60


def test_fewer_components_than_asked_for_are_warned_of() -> None:
    with pytest.warns(StreamKernelWarning) as caught:
        model = KernelPCA(20, basis_size=20).fit(np.repeat(X[:10], 30, axis=0))
    assert any("only 9 of 20 components" in str(warning.message) for warning in caught)
    assert model.transform(X).shape == (3000, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"basis_size": -1}, "basis_size"),
        ({"basis_size": 301}, "basis_size is 301, more than the 300 rows"),
        ({"n_components": 30, "basis_size": 20}, "30 components of a basis of 20"),
        ({"lengthscale": "auto"}, "auto"),
    ],
    ids=str,
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelPCA(**options).fit(X[:300])


def test_equal_rows_have_no_components() -> None:
    with pytest.raises(NumericalError, match="rows are equal"), pytest.warns(StreamKernelWarning):
        KernelPCA(2, lengthscale=1.0).fit(np.ones((50, 3)))
