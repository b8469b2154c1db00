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
from scikit_learn_checks import with_checks
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from thread_clients import thread_client

from streamkernel import KernelPCA, open_table
from streamkernel.bounds import compression_bound
from streamkernel.engine import Session
from streamkernel.errors import NumericalError, ParameterError, ShapeError, StreamKernelWarning
from streamkernel.factors import FactorEigen, FeatureRows
from streamkernel.reductions import Collect

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 4)) * [2.0, 1.0, 0.5, 0.2]
CHUNK = 700


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(others=[KernelPCA()])
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


# ------------------------------------------------------------------------------------------------------------- sparse
CARD = naive.card()
LITERAL: dict[str, Any] = {"rule": "matching-pursuit-kpca", "lengthscale": 1.0, "scale": "none"}


def test_the_papers_rule_and_its_bound_on_the_card() -> None:
    """The Rayleigh quotient with deflation over all rows, and Theorem 2 with exact binomials (card 2.3, 11.1)."""
    model = KernelPCA(2, sparse=6, **LITERAL).fit(CARD.X)
    assert model.component_indices_.tolist() == [17, 4, 27, 33, 29, 20] == naive.matching_pursuit_kpca(CARD.K, 6).picks
    assert model.bound_ is not None
    printed = [1.18178, 1.07723, 0.959704, 0.90453, 0.852609, 0.82052]
    np.testing.assert_allclose(model.bound_.values, printed, rtol=6e-6)
    assert (model.bound_.rows, model.bound_.delta, model.bound_.largest, model.bound_.best_size) == (40, 0.05, 1.0, 6)


def test_pools_out_of_core_are_nearly_as_good(tmp_path: Path) -> None:
    """Rows in chunks, twenty candidates a pick, one sweep for ten picks: near the residual of the literal rule."""
    rows = X[:600]
    stored = zarr_of_chunks(tmp_path / "rows.zarr", rows, rows[:, 0], 128)
    model = KernelPCA(4, sparse=30, lengthscale=1.5, scale="none").fit(stored)
    literal = naive.matching_pursuit_kpca(naive.gaussian(rows, rows, 1.5), 30).traces
    path = model.model_.residual_path
    assert len(path) == 31
    assert literal[-1] <= path[-1] < 1.25 * literal[-1]
    assert [record["candidates"] for record in model.model_.config["rounds"]] == [200, 200, 200]
    assert (model.model_.config["rule"], model.n_sweeps_) == ("sgma", 5)  # the rows of the pools, 3 sweeps, the sums
    bound = compression_bound(path[1:], 600)
    np.testing.assert_array_equal(model.bound_.values, bound.values)
    # Any chunking, the same picks.
    assert KernelPCA(4, sparse=30, lengthscale=1.5, scale="none").fit(rows).component_indices_.tolist() == (
        model.component_indices_.tolist()
    )


def test_components_depend_on_the_set_of_rows_alone() -> None:
    """A compression scheme: any order of the picks spans the same subspace, and has the same principal components."""
    rows = X[:300]
    model = KernelPCA(4, sparse=25, lengthscale=1.5, scale="none").fit(rows)
    expected, table = model.transform(rows), open_table(rows)
    for order in (np.arange(25)[::-1], np.random.default_rng(1).permutation(25)):
        other = FeatureRows(table, model.basis_.take(order))
        session = Session()
        eigen = FactorEigen.of(other.features, other.gram(session), count=4, centred=True)
        found = session.sweep(Collect(eigen.scores(), "scores", 300), table, "scores")
        np.testing.assert_allclose(eigen.values, model.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_basis_ends_at_the_minimum_of_the_bound() -> None:
    rows = X[:800]
    options: dict[str, Any] = {"basis_size": 60, "lengthscale": 2.0, "scale": "none"}
    whole = KernelPCA(3, sparse=60, lengthscale=2.0, scale="none").fit(rows)
    cut = KernelPCA(3, sparse="bound", **options).fit(rows)
    assert whole.bound_ is not None
    size = whole.bound_.best_size
    assert 3 < size < 60
    assert len(cut.components_) == size == cut.bound_.best_size
    np.testing.assert_array_equal(cut.component_indices_, whole.component_indices_[:size])
    np.testing.assert_array_equal(cut.model_.residual_path, whole.model_.residual_path[: size + 1])
    assert cut.n_sweeps_ == whole.n_sweeps_
    config = cut.model_.config
    assert (config["ended"], config["basis_size"], config["requested_basis"]) == ("bound", size, 60)
    assert config["stop"] == {"rule": "bound", "looked": 60, "reached": True, "value": whole.bound_.minimum}
    # The components are those of the functions kept, not of all that were picked.
    K = naive.gaussian(rows, rows, 2.0)
    values = np.linalg.eigvalsh(naive.centred(naive.nystroem(K, cut.component_indices_)))[::-1]
    np.testing.assert_allclose(cut.eigenvalues_, values[:3], rtol=1e-9)
    assert len(KernelPCA(size + 5, sparse="bound", **options).fit(rows).components_) == size + 5


def test_what_the_bound_says_of_other_bases(tmp_path: Path) -> None:
    """Theorem 2 asks how the rows are used, not how they were chosen; it needs rows, and a k(x, x) that is bounded."""
    model = KernelPCA(2, basis_size=20, rule="rpcholesky").fit(X)
    np.testing.assert_array_equal(model.bound_.values, compression_bound(model.model_.residual_path[1:], 3000).values)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(KernelPCA.load(tmp_path / "model").bound_.values, model.bound_.values)
    assert KernelPCA(2, basis_size=4, kernel="linear").fit(X).bound_ is None
    centres = KernelPCA(2, basis_size=10, rule="kmeans", rule_options={"nearest": False}).fit(X)
    assert centres.bound_ is None


def test_weights_that_are_no_numbers_of_rows_have_no_bound(tmp_path: Path) -> None:
    """Weights of sum 1 are one row by the theorem, which has no bound for 20 functions of it."""
    rows, options = X[:300], {"lengthscale": 2.0, "scale": "none"}
    shares = KernelPCA(2, sparse=20, **options).fit(rows, sample_weight=np.full(300, 1 / 300))
    assert shares.bound_ is None
    shares.save(tmp_path / "model")
    assert "bound" not in KernelPCA.load(tmp_path / "model").model_.solution_fields()
    with pytest.raises(
        ParameterError, match=r"takes weights as numbers of equal rows.* divide the weights by the least"
    ):
        KernelPCA(2, sparse="bound", **options).fit(rows, sample_weight=np.full(300, 1 / 300))


def test_a_new_row_is_within_the_bound() -> None:
    model = KernelPCA(2, sparse=40, lengthscale=2.0, scale="none").fit(X)
    held = model.basis_.residual(np.random.default_rng(9).standard_normal((2000, 4)) * [2.0, 1.0, 0.5, 0.2]).mean()
    assert held < model.bound_.minimum < 0.5


def test_options_of_the_pools() -> None:
    options: dict[str, Any] = {"lengthscale": 2.0, "rule_options": {"pool": "split", "picks": 4}}
    split = KernelPCA(2, sparse=8, **options).fit(X[:700])
    assert [record["candidates"] for record in split.model_.config["rounds"]] == [4 * 57, 4 * 57]
    assert KernelPCA(2, sparse=3, lengthscale=2.0).fit(X).model_.config["rounds"][0]["candidates"] == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparse": 0}, "sparse must be a whole number > 0, not 0"),
        ({"sparse": True}, "not True"),
        ({"sparse": "gap"}, "not 'gap'"),
        ({"sparse": 20, "basis_size": 30}, "sparse=20 is the size of the basis, .* 30; give one"),
        ({"sparse": 20, "n_components": 30}, "30 components of a basis of 20 functions; give"),
        ({"sparse": "bound", "kernel": "linear"}, "bounded"),
    ],
    ids=str,
)
def test_bad_sparse_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelPCA(**options).fit(X[:300])
