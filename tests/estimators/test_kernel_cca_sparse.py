"""KernelCCA of sparse rows, in one view or both: what it is of their dense copies, in the memory that is planned."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import in_pairs, sparse_rows

from streamkernel import KernelCCA, ingest, open_table
from streamkernel.engine import ThreadExecutor, machine_of
from streamkernel.engine.plan import BASE_BYTES
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.fits.cca.kernel_cca_plan import plan_kernel_cca
from streamkernel.pairs import are_pairs, as_csr, of_some_columns
from streamkernel.settings.transformers import KernelCCASettings
from streamkernel.store import read_bundle

RNG = np.random.default_rng(0)
M, P, Q = 260, 40, 30
COMMON = RNG.standard_normal(M)
LEFT, RIGHT = sparse_rows(M, P, 5.0).toarray(), sparse_rows(M, Q, 4.0, seed=3).toarray()
LEFT[:, 0], RIGHT[:, 1] = COMMON, COMMON + 0.1 * RNG.standard_normal(M)
ORDER = RNG.permutation(P + Q)
TOGETHER = np.hstack([LEFT, RIGHT])[:, ORDER]
GROUPS = tuple(np.argsort(ORDER)[:P].tolist()), tuple(np.argsort(ORDER)[P:].tolist())
SPARSE = scipy.sparse.csr_array(TOGETHER)
WEIGHTS = RNG.choice([0.0, 1.0, 2.5], M)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"scale": "none", "kernel": "linear"},
    {"kernel": ("gaussian", "laplacian"), "pool": "split"},
    {"bound_gamma": 1.0, "scale": "none"},
]


def same(sparse: KernelCCA, dense: KernelCCA) -> None:
    assert sparse.component_indices_.tolist() == dense.component_indices_.tolist()
    np.testing.assert_allclose(sparse.correlations_, dense.correlations_, rtol=1e-9)
    np.testing.assert_allclose(sparse.residual_traces_, dense.residual_traces_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_sparse_view_beside_a_dense_one(options: dict[str, Any]) -> None:
    rows = scipy.sparse.csr_array(LEFT)
    sparse, dense = (KernelCCA(2, basis_size=25, **options).fit(X, RIGHT) for X in (rows, LEFT))
    same(sparse, dense)
    for one, other in zip(sparse.transform(rows, RIGHT), dense.transform(LEFT, RIGHT), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)
    np.testing.assert_allclose(sparse.components_.toarray(), dense.components_, atol=1e-12)
    np.testing.assert_allclose(sparse.components_y_, dense.components_y_, atol=1e-12)


@pytest.mark.parametrize("weights", [pytest.param(None, marks=pytest.mark.slow), WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_two_sparse_views_are_columns_of_one_input(options: dict[str, Any], weights: Any) -> None:
    """In any order; and each model takes the rows of the other."""
    sparse, dense = (
        KernelCCA(2, basis_size=25, view_columns=GROUPS, **options).fit(X, sample_weight=weights)
        for X in (SPARSE, TOGETHER)
    )
    same(sparse, dense)
    wanted = dense.canonical_variates(TOGETHER)
    for model, X in ((sparse, SPARSE), (sparse, TOGETHER), (dense, SPARSE)):
        for found, of_dense in zip(model.canonical_variates(X), wanted, strict=True):
            np.testing.assert_allclose(found, of_dense, atol=1e-7)
    np.testing.assert_allclose(sparse.components_y_.toarray(), dense.components_y_, atol=1e-12)


def test_stored_rows_and_saved_models(tmp_path: Path) -> None:
    """A fuller row in the other table, and room for more entries, change nothing."""
    ingest(open_table(SPARSE, sparse=True), tmp_path / "rows", dtype="float64", chunk_rows=64)
    model = KernelCCA(2, basis_size=25, view_columns=GROUPS).fit(SPARSE)
    same(KernelCCA(2, basis_size=25, view_columns=GROUPS).fit(tmp_path / "rows"), model)
    model.save(tmp_path / "model")
    loaded, full = KernelCCA.load(tmp_path / "model"), scipy.sparse.csr_array(np.vstack([TOGETHER[:5], np.ones(P + Q)]))
    wanted = model.canonical_variates(SPARSE)[1]
    np.testing.assert_allclose(loaded.canonical_variates(tmp_path / "rows")[1], wanted, atol=1e-9)
    np.testing.assert_allclose(loaded.canonical_variates(full)[1][:5], wanted[:5], atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "first view", "both views"])
def test_earlier_releases_read_dense_rows_and_refuse_sparse_ones(kind: str, tmp_path: Path) -> None:
    """They took sparse rows of the first view for dense ones, and gave other variates."""
    if kind == "both views":
        model = KernelCCA(1, basis_size=10, view_columns=GROUPS).fit(SPARSE)
    else:
        model = KernelCCA(1, basis_size=10).fit(LEFT if kind == "dense" else scipy.sparse.csr_array(LEFT), RIGHT)
    model.save(tmp_path / "model")
    header = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert header["version"] == model.model_.version == (1 if kind == "dense" else 2)
    assert KernelCCA.load(tmp_path / "model").model_.digest == model.model_.digest
    if kind != "dense":
        with pytest.raises(ModelFormatError, match="kernel-cca of version 2; this release reads 1: use a newer one"):
            read_bundle(tmp_path / "model", "kernel-cca", versions=(1,))


@pytest.mark.parametrize("damage", ["column", "kernel", "scaler"])
def test_a_forged_second_view_is_refused(damage: str) -> None:
    model = KernelCCA(1, basis_size=10, view_columns=GROUPS).fit(SPARSE).model_
    config, arrays = json.loads(json.dumps(model.config)), dict(model.arrays)
    if damage == "column":
        arrays["components_y"] = np.where(arrays["components_y"] == 3.0, 1e9, arrays["components_y"])
    elif damage == "kernel":
        config["views"][1]["kernel"]["n_columns"] = 10**6
    else:
        config["views"][1]["scaler"] |= {"kind": "standard", "mean": [0.0] * Q}
    with pytest.raises(ModelFormatError):
        type(model).from_config(config, arrays).checked("model")


@pytest.mark.parametrize(
    ("options", "X", "y", "words"),
    [
        ({}, LEFT, scipy.sparse.csr_array(RIGHT), r"the second view is sparse.*hstack.*view_columns"),
        ({}, LEFT, open_table(scipy.sparse.csr_array(RIGHT), sparse=True), "the second view is sparse"),
        ({"scale": "rank"}, scipy.sparse.csr_array(LEFT), RIGHT, "rows are sparse.*'rank' would fill their zeros"),
        ({"kernel": "hamming", "scale": "none"}, scipy.sparse.csr_array(LEFT), RIGHT, "'hamming' is not computed"),
        ({"lengthscale": [1.0] * P}, scipy.sparse.csr_array(LEFT), RIGHT, "one for each column, and the rows are"),
    ],
)
def test_what_needs_dense_rows_says_so(options: dict[str, Any], X: Any, y: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=f"(?s){words}") as error:
        KernelCCA(1, basis_size=10, **options).fit(X, y)
    assert "\n" not in str(error.value)


@given(st.lists(st.integers(0, 11), min_size=1, max_size=12, unique=True), st.integers(0, 3), st.integers(0, 5))
def test_columns_are_taken_out_of_pairs_as_out_of_a_matrix(columns: list[int], more: int, seed: int) -> None:
    rows = sparse_rows(9, 12, 3.0, seed)
    found = of_some_columns(in_pairs(rows, more), tuple(columns))
    assert are_pairs(found, len(columns))
    np.testing.assert_array_equal(as_csr(found, len(columns)).toarray(), rows.toarray()[:, columns])


def test_the_plan_holds_for_many_columns() -> None:
    """Of 10,000 columns with ten entries a row; dense rows would be 80 MB."""
    d = 10_000
    rows = scipy.sparse.random_array((1000, d), density=10 / d, format="csr", random_state=0)
    table = open_table(rows, sparse=True)
    groups = tuple(range(d // 2)), tuple(range(d // 2, d))
    settings = KernelCCASettings(n_components=10, component_count=1, view_columns=groups)
    executor = ThreadExecutor(1)
    plan = plan_kernel_cca(table, settings, machine_of(executor, 0))
    model = KernelCCA(1, basis_size=10, view_columns=groups)
    model.fit(rows[:100])  # what is compiled and imported once
    tracemalloc.start()
    model.fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < plan.memory_bytes - BASE_BYTES
    assert plan.memory_bytes - BASE_BYTES < min(3 * peak, 60e6)
