"""Matrices that are no kernel matrix: refused, or told where only some rows show it; and no other is."""

from __future__ import annotations

import re
import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from estimators.kernel_matrices import GIVEN, K, M, Y, changed
from hypothesis import given
from hypothesis import strategies as st
from slow_cases import slow_but

from streamkernel import GaussianProcessRegressor, KernelPCA, KernelRidge, Nystroem
from streamkernel.errors import (
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeError,
    StreamKernelWarning,
)

INDEFINITE = K - 0.5 * np.eye(M)


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (scipy.sparse.csr_array(K), ParameterError, "the rows are sparse; give the kernel matrix as a dense array"),
        (K[:, :100], ShapeError, f"its matrix has {M} rows and 100 columns; a fit takes the square one"),
        (changed(7, 3, np.nan), NonFiniteDataError, r"contains NaN.*row 7, column 'x3'"),
        (changed(7, 3, 2.0), ParameterError, r"not symmetric: .* in row 3, column 7, and 2 in row 7, column 3"),
        (changed(5, 5, -1.0), NumericRangeError, r"has -1 on its diagonal in row 5.*: k\(x, x\) is at least 0"),
        (1e200 * K, NumericRangeError, "squares overflow float64.*divide all values by the largest"),
        (INDEFINITE, ParameterError, r"not positive semidefinite: .* eigenvalue -0\.5; give .* K \+ c I"),
        (K[::-1], ParameterError, "not symmetric: .*without shuffle"),
    ],
    ids=["sparse", "shape", "nan", "one-sided", "diagonal", "large", "indefinite", "order"],
)
def test_what_is_no_kernel_matrix_is_refused(matrix, error, text):
    for estimator in (KernelRidge(20, kernel="precomputed"), Nystroem(20, kernel="precomputed")):
        with pytest.raises(error, match=text):
            estimator.fit(matrix, Y)


def in_the_middle(added: np.ndarray) -> np.ndarray:
    """K, with something added to rows and columns 20 to 220."""
    other = K.copy()
    other[20:-20, 20:-20] += added
    return other


TURNED = np.kron(np.eye(M // 2 - 20), [[0.0, 5.0], [5.0, 0.0]])  # eigenvalues 5 and -5
ONE_SIDED = np.triu(np.ones((M - 40, M - 40)), 1)


@pytest.fixture
def ends_of_20_rows(monkeypatch):
    monkeypatch.setattr("streamkernel.fits.steps.kernel_matrix._MOST_ROWS", 20)
    monkeypatch.setattr("streamkernel.fits.steps.kernel_matrix._SEEN_ROWS", M)


@pytest.mark.parametrize(
    ("rule", "dtype"),
    slow_but(
        [("rpcholesky", np.float32), ("uniform", np.float64), ("sgma", np.float32)],
        product(["rpcholesky", "uniform", "sgma"], [np.float32, np.float64]),
    ),
)
def test_what_is_wrong_beyond_the_ends_is_seen_with_the_basis(ends_of_20_rows, rule, dtype):
    ours = KernelRidge(30, kernel="precomputed", rule=rule, alpha=0.1)
    with pytest.warns(StreamKernelWarning, match=r"not positive semidefinite: k\(x, x\) of row \d+ is .* K \+ c I"):
        ours.fit(in_the_middle(TURNED).astype(dtype), Y)
    with pytest.raises(ParameterError, match=r"not symmetric: .* in row"):
        ours.fit(in_the_middle(ONE_SIDED).astype(dtype), Y)
    ours.fit(in_the_middle(np.diag(np.full(M - 40, 5.0))).astype(dtype), Y)  # a ridge: nothing to tell


FEW_TURNED = np.pad(np.kron(np.eye(15), [[0.0, 5.0], [5.0, 0.0]]), 85)  # rows 105 to 134: no run of rows that is seen
UNIFORM = {**GIVEN, "rule": "uniform"}


@pytest.mark.parametrize(
    "ours",
    [
        KernelRidge(60, alpha=0.1, **UNIFORM),
        KernelRidge(60, alpha="cv", **UNIFORM),
        KernelRidge(60, alpha=0.1, **GIVEN),
        GaussianProcessRegressor(60, signal_variance=1.0, noise_variance=0.1, tune="none", **UNIFORM),
        Nystroem(60, **UNIFORM),
        KernelPCA(5, basis_size=60, **UNIFORM),
    ],
    ids=lambda ours: f"{type(ours).__name__} {getattr(ours, 'alpha', '')} {ours.rule}",
)
def test_a_negative_eigenvalue_in_rows_that_nothing_sees_is_told_after_the_last_sweep(
    ours, ends_of_20_rows, monkeypatch
):
    """Once, with the row; of a matrix without one nothing is told."""
    monkeypatch.setattr("streamkernel.fits.steps.kernel_matrix._SEEN_ROWS", 8)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours.fit(in_the_middle(FEW_TURNED), Y)
    of_matrix = [str(each.message) for each in told if "positive semidefinite" in str(each.message)]
    assert len(of_matrix) == 1
    row = re.search(r"k\(x, x\) of row (\d+) is 1, and the basis explains", of_matrix[0])
    assert row is not None
    assert 105 <= int(row[1]) < 135
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="only .* are linearly independent; [^;]*$")
        ours.fit(K, Y)


def test_a_search_by_evidence_sees_its_sample(ends_of_20_rows):
    """The search would end in an error about its precision, or at another optimum."""
    with pytest.raises(ParameterError, match="not positive semidefinite: that of 240 of its rows has the eigenvalue -"):
        GaussianProcessRegressor(30, kernel="precomputed").fit(in_the_middle(TURNED), Y)


@given(
    rank=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    decay=st.floats(0.0, 4.0),
    rule=st.sampled_from(["rpcholesky", "uniform"]),
)
def test_no_matrix_of_features_is_called_indefinite(rank, dtype, decay, rule):
    """Of any rank, and of eigenvalues that fall to the rounding of its dtype."""
    F = np.random.default_rng(rank).standard_normal((60, rank)) * np.arange(1.0, rank + 1.0) ** -decay
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="only .* are linearly independent; [^;]*$")
        KernelRidge(30, kernel="precomputed", alpha=1e-3, rule=rule).fit((F @ F.T).astype(dtype), F[:, 0])
