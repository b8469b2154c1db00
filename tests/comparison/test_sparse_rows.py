"""Cross-validation of sparse rows: folds and errors are those of the dense copies, and none is made."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import sparse_problem

from streamkernel import (
    BayesianCommitteeMachine,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    cross_validate,
    ingest,
    open_table,
)
from streamkernel.errors import ParameterError
from streamkernel.table import Table
from streamkernel.table.parts.search import content_parts
from streamkernel.table.parts.weights import part_numbers

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "alpha": 0.1}
X, Y = sparse_problem(400, 40, 4.0)
WEIGHTS = np.random.default_rng(0).choice([0.0, 1.0, 2.5], 400)


def parts_of(table: Table, count: int = 4) -> Any:
    return part_numbers(content_parts(table, count), 0, table.n_rows)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        pytest.param(KernelRidge(20, **PLAIN), {}, marks=pytest.mark.slow),
        (KernelRidge(20, **PLAIN), {"sample_weight": WEIGHTS}),
        (KernelRidge(20, **PLAIN), {"groups": np.arange(400) % 7}),
        (KernelRidge(20, **PLAIN), {"time": np.sin(np.arange(400.0))}),
        pytest.param(KernelRidgeClassifier(20, **PLAIN), {}, marks=pytest.mark.slow),
        (KernelSVC(20, kernel="gaussian", metric="none"), {"error": "error"}),
    ],
    ids=["plain", "weighted", "groups", "time", "classes", "margins"],
)
def test_errors_are_those_of_the_dense_rows(estimator: Any, options: Any) -> None:
    y = np.where(Y > 0, "high", "low") if hasattr(estimator, "decision_function") else Y
    sparse, dense = (cross_validate(rows, estimator, 3, y=y, **options) for rows in (X, X.toarray()))
    assert sparse.left_out_rows == dense.left_out_rows
    assert sparse.fitted_rows == dense.fitted_rows
    np.testing.assert_allclose(sparse.estimators[0].errors, dense.estimators[0].errors, rtol=1e-7)


def test_folds_from_one_sweep_are_those_of_the_dense_rows() -> None:
    rows, y = sparse_problem(9000, 20, 3.0)
    ridge = KernelRidge(15, rule="uniform", lengthscale=3.0, **{**PLAIN, "alpha": "cv"})
    sparse, dense = (cross_validate(X, ridge, 2, y=y, share=True) for X in (rows, rows.toarray()))
    assert sparse.estimators[0].shared
    assert dense.estimators[0].shared
    assert sparse.left_out_rows == dense.left_out_rows
    np.testing.assert_allclose(sparse.estimators[0].errors, dense.estimators[0].errors, rtol=1e-7)


@given(seed=st.integers(0, 2**32 - 1), zeros=st.integers(0, 30))
def test_the_fold_of_a_row_follows_from_its_values(seed: int, zeros: int) -> None:
    """Not from zeros that are stored, from the order of its entries, from their parts, or from other rows."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((12, 9)) < 0.3, np.round(rng.standard_normal((12, 9)), 1), 0.0)
    rows[3] = rows[8]
    plain = scipy.sparse.coo_array(rows)
    expected = parts_of(open_table(rows))
    assert expected[3] == expected[8]
    # An entry in two parts, whose sum is exact, and some zeros, in any order.
    i, j = np.concatenate([[*plain.coords], [*plain.coords], rng.integers(0, 9, (2, zeros))], axis=1)
    data = np.concatenate([plain.data * 0.5, plain.data * 0.5, np.zeros(zeros)])
    order = rng.permutation(len(data))
    messy = scipy.sparse.coo_array((data[order], (i[order], j[order])), (12, 9))
    np.testing.assert_array_equal(parts_of(open_table(messy, sparse=True)), expected)
    np.testing.assert_array_equal(parts_of(open_table(messy.tocsr()[:5], sparse=True)), expected[:5])


def test_a_store_has_the_folds_of_its_rows(tmp_path: Path) -> None:
    """Also where the file had zeros, and in chunks."""
    lines = "\n".join(
        f"{y} " + " ".join(f"{j + 1}:{row[j]!r}" for j in range(40) if row[j] or j % 3 == 0)
        for row, y in zip(X.toarray().tolist(), Y.tolist(), strict=True)
    )
    (tmp_path / "rows.svm").write_text(lines + "\n")
    ingest(tmp_path / "rows.svm", tmp_path / "rows", sparse=True, chunk_rows=64, dtype="float64", columns=40)
    stored = open_table(tmp_path / "rows", sparse=True)
    np.testing.assert_array_equal(parts_of(stored), parts_of(open_table(X.toarray())))
    found = cross_validate(stored, KernelRidge(20, **PLAIN), 3)
    expected = cross_validate(X, KernelRidge(20, **PLAIN), 3, y=Y)
    np.testing.assert_allclose(found.estimators[0].errors, expected.estimators[0].errors, rtol=1e-7)


CELLS = BayesianCommitteeMachine(5, partition="cells")


def test_an_estimator_of_dense_rows_is_named_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.table._sparse_rows.SparseRows.load", None)
    for estimators, words in (
        ({"good": KernelRidge(5, **PLAIN), "bad": CELLS}, "^bad: the rows are sparse .400 x 40.*cells"),
        ({"bad": KernelRidge(5, scale="rank")}, "^bad: .*sparse.*rank"),
    ):
        with pytest.raises(ParameterError, match=words):
            cross_validate(X, estimators, 3, y=Y)
    with pytest.raises(ParameterError, match=r"sparse.*groups.*array"):
        cross_validate(X, KernelRidge(5), 3, y=Y, groups="x3")


def test_no_dense_copy_is_made() -> None:
    """A block of 512 dense rows would be 400 MB."""
    rows, y = sparse_problem(600, 40, 4.0)
    wide = scipy.sparse.csr_array((rows.data, rows.indices * 2500, rows.indptr), (600, 100_000))
    ridge = KernelRidge(20, lengthscale=3.0, **PLAIN)
    tracemalloc.start()
    try:
        found = cross_validate(wide, ridge, 2, y=y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.estimators[0].errors) == 2
    assert peak < 100e6
