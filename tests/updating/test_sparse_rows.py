"""Updates with sparse rows: the sums of dense copies, and every row once, however its entries are given."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from frozen.kinds import HERE, unpacked
from frozen.rows import OLD, SPARSE
from frozen.rows import Y as FROZEN_Y
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sparse_rows import sparse_problem

from streamkernel import GaussianProcessRegressor, KernelRidge, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import InputChangedError
from streamkernel.pairs import NO_COLUMN, are_pairs, plain_entries, widened

pytestmark = pytest.mark.filterwarnings("ignore:the basis is stale")

M, FITTED, COLUMNS = 600, 300, 40
X, Y = sparse_problem(M, COLUMNS, 4.0)  # the last row is a full one, far fuller than those of the fit
RIDGE = KernelRidge(20, kernel="gaussian", metric="none", alpha=0.1)
KINDS = [
    RIDGE,
    KernelRidgeClassifier(20, kernel="gaussian", metric="none", alpha="gcv"),
    GaussianProcessRegressor(20, kernel="gaussian", tune="none", signal_variance=1.0, noise_variance=0.1),
]


@pytest.fixture(scope="module")
def fitted() -> Any:
    """The ridge model of the first rows, which no test changes."""
    return RIDGE.fit(X[:FITTED], Y[:FITTED])


def folded(fitted: Any, rows: Any, y: Any = Y, **options: Any) -> tuple[int, int]:
    """Rows that were folded in, and known ones, for an update of a copy of the fit."""
    copy = clone(fitted)._adopt(fitted.model_)
    copy.update(rows, y, **options)
    return copy.last_update_.rows_folded, copy.last_update_.rows_seen_before


@pytest.mark.parametrize("estimator", KINDS, ids=lambda each: type(each).__name__)
def test_an_update_is_that_of_the_dense_rows(estimator: Any, tmp_path: Path) -> None:
    y = np.where(Y > 0.0, "high", "low") if "Classifier" in type(estimator).__name__ else Y
    sparse, dense = (clone(estimator).fit(rows[:FITTED], y[:FITTED]) for rows in (X, X.toarray()))
    for options in ({}, {"grow": 10, "stale": 0.0}):
        if options:
            sparse, dense = (clone(estimator).fit(rows[:FITTED], y[:FITTED]) for rows in (X, X.toarray()))
        sparse.update(X, y, **options)
        dense.update(X.toarray(), y, **options)
        assert sparse.last_update_.rows_folded == dense.last_update_.rows_folded == M - FITTED
        assert sparse.last_update_.grown == dense.last_update_.grown == options.get("grow", 0)
        assert sparse.component_indices_.tolist() == dense.component_indices_.tolist()
        values = "decision_function" if hasattr(estimator, "decision_function") else "predict"
        assert_allclose(getattr(sparse, values)(X), getattr(dense, values)(X.toarray()), rtol=1e-8, atol=1e-8)
    sparse.save(tmp_path / "model")
    loaded = type(sparse).load(tmp_path / "model").update(X, y)
    assert loaded.last_update_.rows_folded == 0


def test_a_basis_of_a_full_row_grows_on_rows_of_few_entries() -> None:
    rows, y = X[::-1], Y[::-1]
    sparse, dense = (RIDGE.fit(each[:FITTED], y[:FITTED]).model_ for each in (rows, rows.toarray()))
    found = []
    for model, each in ((sparse, rows), (dense, rows.toarray())):
        copy = clone(RIDGE)._adopt(model)
        found.append(copy.update(each, y, grow=5, stale=0.0))
    assert found[0].component_indices_.tolist() == found[1].component_indices_.tolist()
    assert_allclose(found[0].predict(rows), found[1].predict(rows.toarray()), rtol=1e-8, atol=1e-8)


def test_batches_count_each_time() -> None:
    sparse, dense = clone(RIDGE), clone(RIDGE)
    for first, last in ((0, 300), (300, 450), (0, 100)):
        sparse.partial_fit(X[first:last], Y[first:last])
        dense.partial_fit(X[first:last].toarray(), Y[first:last])
    assert sparse.model_.record.totals.rows == dense.model_.record.totals.rows == 550
    assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 2**32 - 1), zeros=st.integers(0, 200), form=st.sampled_from(["coo", "csc", "dense"]))
@settings(max_examples=15)
def test_rows_are_known_however_their_entries_are_given(fitted: Any, seed: int, zeros: int, form: str) -> None:
    """Zeros that are stored, the order of entries, the format, and room for fuller rows say nothing of a row."""
    rng = np.random.default_rng(seed)
    plain = X[:FITTED].tocoo()
    i = np.concatenate([plain.coords[0], rng.integers(0, FITTED, zeros)])
    j = np.concatenate([plain.coords[1], rng.integers(0, COLUMNS, zeros)])
    order = rng.permutation(len(i))
    rows = scipy.sparse.coo_array((np.append(plain.data, np.zeros(zeros))[order], (i[order], j[order])), plain.shape)
    given_rows = rows.toarray() if form == "dense" else rows.asformat(form)
    assert folded(fitted, given_rows, Y[:FITTED]) == (0, FITTED)


def test_a_store_a_changed_row_and_other_rows(fitted: Any, tmp_path: Path) -> None:
    ingest(open_table(X, Y, sparse=True), tmp_path / "rows", dtype="float64", chunk_rows=64)
    assert folded(fitted, str(tmp_path / "rows"), None) == (M - FITTED, FITTED)
    grown = fitted.__class__()._adopt(fitted.model_).update(str(tmp_path / "rows"))
    assert grown.update(X, Y).last_update_.rows_folded == 0
    big, y = sparse_problem(2500, COLUMNS, 4.0)
    model = clone(RIDGE).fit(big, y)
    changed = big.copy()
    changed.data[0] += 1.0
    with pytest.raises(InputChangedError, match="not what they were"):
        model.update(changed, y)
    assert folded(fitted, X[FITTED:], Y[FITTED:]) == (M - FITTED, 0)


def test_a_model_of_an_earlier_version_knows_its_rows(tmp_path: Path) -> None:
    """Its digests of rows cannot be compared: the rows of its basis are."""
    [archive] = HERE.glob("*/ridge-sparse.tar.xz")
    folder, _ = unpacked(archive, tmp_path)
    old = KernelRidge.load(folder / "model")
    marks = [mark for entry in old.model_.record.seen for mark in entry.marks]
    assert not any(digest.startswith("entries:") for _, _, digest in marks)
    rows = SPARSE[OLD]
    full = scipy.sparse.csr_array(np.arange(1.0, 1.0 + rows.shape[1])[None, :])  # rows have room for more entries then
    longer, y = scipy.sparse.vstack([rows, full], format="csr"), np.vstack([FROZEN_Y[OLD], FROZEN_Y[OLD][:1]])
    assert folded(old, longer, y) == (1, rows.shape[0])
    old.update(longer, y)
    assert folded(old, longer, y) == (0, rows.shape[0] + 1)


def test_rows_of_more_room_are_the_same_rows() -> None:
    pairs = np.array([[1.0, NO_COLUMN, 2.5, 0.0], [0.0, 3.0, 0.0, -1.0]])
    wide = widened(pairs, 10)
    assert wide.shape == (2, 10)
    assert are_pairs(wide, 4)
    assert widened(pairs, 4) is pairs
    np.testing.assert_array_equal(plain_entries(wide), plain_entries(pairs))
    np.testing.assert_array_equal(plain_entries(pairs), [1.0, 1.0, 1.0, 3.0, 2.5, -1.0])
    # An entry that moves to the next row is another content.
    moved = np.array([[NO_COLUMN, NO_COLUMN, 0.0, 0.0], [1.0, 3.0, 2.5, -1.0]])
    assert not np.array_equal(plain_entries(moved), plain_entries(pairs))


def test_no_dense_copy_is_made() -> None:
    """512 dense rows would be 400 MB."""
    wide = scipy.sparse.csr_array((X.data, X.indices * 2500, X.indptr), (M, 100_000))
    model = clone(RIDGE).fit(wide[:FITTED], Y[:FITTED])
    tracemalloc.start()
    try:
        model.update(wide, Y, grow=5, stale=0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.last_update_.rows_folded == M - FITTED
    assert peak < 100e6
