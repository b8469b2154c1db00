"""Rows that a matching pursuit holds out by itself: a share of the distinct ones, whatever its size is."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from slow_cases import slow_but

from streamkernel import KernelMatchingPursuit, open_table
from streamkernel.errors import ParameterError, StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.pursuit import VARIANTS
from streamkernel.pursuit._stage_errors import StageErrors
from streamkernel.pursuit.stages import Stages, ridge_stages
from streamkernel.selection import Problem

RNG = np.random.default_rng(2)
X = RNG.standard_normal((420, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(420)


def test_the_default_size_is_watched() -> None:
    """A thousand terms fit noise: who says nothing gets the size that held-out rows like."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (600, 3))
    y = np.sin(X[:, 0]) + rng.standard_normal(600)
    apart = rng.uniform(-2.0, 2.0, (1000, 3))

    def error(model: KernelMatchingPursuit) -> float:
        return float(np.sqrt(np.mean((model.fit(X, y).predict(apart) - np.sin(apart[:, 0])) ** 2)))

    watched = KernelMatchingPursuit()
    assert error(watched) < 0.35
    with pytest.warns(StreamKernelWarning, match="linearly independent"):
        assert error(KernelMatchingPursuit(validation=None)) > 1.5 * error(watched)
    assert watched.path_.validation_rows == pytest.approx(60, abs=20)
    for none in (None, 0, 0.0):
        assert KernelMatchingPursuit(validation=none).fit(X[:100], y[:100]).path_.validation_rows == 0
    assert KernelMatchingPursuit().fit(X[:15], y[:15]).path_.validation_rows == 0
    assert 5 < KernelMatchingPursuit().fit(X[:80], y[:80]).path_.validation_rows < 40


@pytest.mark.parametrize("n", [None, 40])
def test_every_size_is_watched_unless_nothing_is_to_be(n: int | None) -> None:
    model = KernelMatchingPursuit(n).fit(X, y)
    assert 20 < model.path_.validation_rows < 100
    assert model.path_.validation_rows + model.path_.fitted_rows == 420
    assert len(model.active_set_) == max(1, int(np.argmin(model.path_.validation[:, 0])))
    assert model.model_.config["settings"]["validation"] == pytest.approx(50 / 420)
    assert KernelMatchingPursuit(10, validation=None).fit(X, y).model_.config["settings"]["validation"] is None


def chunked(values: Any, rows: int) -> Any:
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


@pytest.mark.parametrize("variant", slow_but(VARIANTS[-1:], VARIANTS))
def test_copies_of_a_row_are_on_one_side(variant: str) -> None:
    """The hash is of the features as they are stored: neither blocks nor the scaler's rounding nor targets enter."""
    rng = np.random.default_rng(3)
    distinct = np.round(3.0 * rng.standard_normal((120, 2)) + [0.1, 7e5], 2)
    of = rng.permutation(np.repeat(np.arange(120), 5))
    rows, targets = distinct[of], np.sin(distinct[of, 0]) + rng.standard_normal(600)
    options: dict[str, Any] = {"variant": variant, "picks": 6, "lengthscale": 1.0}
    model = KernelMatchingPursuit(30, **options).fit(rows, targets)
    table = open_table(rows).with_keys()
    problem = Problem(table, Gaussian(1.0), 30)
    held = StageErrors("auto", None, False, None).held_out(problem).of(table.read(0, 600))
    assert model.path_.validation_rows == held.sum() > 0
    apart, fitted = set(of[held]), set(of[~held])
    assert not apart & fitted
    assert not apart & set(of[model.path_.rows])
    again = KernelMatchingPursuit(30, **options).fit(chunked(rows, 41), chunked(targets, 41))
    np.testing.assert_array_equal(again.path_.rows, model.path_.rows)
    assert again.path_.validation_rows == model.path_.validation_rows


def test_few_different_rows_are_all_fitted() -> None:
    """Of what is held out no copy is left: of five groups each is needed, and of two sides none may be empty."""
    group = np.arange(300) % 5
    rows, targets = group[:, None].astype(float), group**2.0 + 0.1 * RNG.standard_normal(300)
    model = KernelMatchingPursuit(4, lengthscale=0.1).fit(rows, targets)
    assert model.path_.validation_rows == 0
    np.testing.assert_allclose(model.predict([[2.0], [4.0]]), [4.0, 16.0], atol=0.1)
    with pytest.raises(ParameterError, match="patience watches held-out rows, and of 300 rows"):
        KernelMatchingPursuit(4, lengthscale=0.1, patience=2).fit(rows, targets)


def test_a_ridge_of_every_size() -> None:
    """``argmin |Y - D b|^2 + alpha b_f^T K b_f`` of the first t functions, for every t, from one factorisation."""
    rng = np.random.default_rng(5)
    Z, rows, others = rng.standard_normal((12, 2)), rng.standard_normal((30, 2)), rng.standard_normal((400, 2))
    kernel = Gaussian(0.5)
    K = kernel(Z)
    D, C = (np.column_stack([np.ones(len(some)), kernel(some, Z)]) for some in (rows, others))
    Y, targets = (some[:, :1] + rng.standard_normal((len(some), 1)) for some in (rows, others))
    stages, alpha = ridge_stages(D, Y, np.linalg.cholesky(K), True, (C, targets), np.ones(1))
    assert alpha > 0.0
    errors = stages.errors(C, targets)[:, 0]
    for t in range(13):
        penalty = np.zeros((t + 1, t + 1))
        penalty[1:, 1:] = alpha * K[:t, :t]
        b = np.linalg.solve(D[:, : t + 1].T @ D[:, : t + 1] + penalty, D[:, : t + 1].T @ Y)
        assert errors[t] == pytest.approx(float(((targets - C[:, : t + 1] @ b) ** 2).sum()), rel=1e-8)
    plain = Stages.least_squares(D, Y, True).errors(C, targets)[:, 0]
    assert errors[1:].min() <= plain[1:].min()


@pytest.mark.slow
def test_many_terms_are_borne_by_default() -> None:
    """Where every size of the plain rule is poor, a ridge that held-out rows choose is not."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 6))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.standard_t(3, 400)
    apart = rng.standard_normal((2000, 6))
    truth = apart[:, 0] + 0.5 * apart[:, 1] ** 2

    def error(model: KernelMatchingPursuit) -> float:
        return float(np.sqrt(np.mean((model.fit(X, y).predict(apart) - truth) ** 2)))

    default, plain = KernelMatchingPursuit(250), KernelMatchingPursuit(250, validation=50 / 400)
    assert error(default) < 0.97 * error(plain)
    assert default.model_.config["solution"]["ridge"] > 0.0
    # The rule of the papers where a share is given: the size of least held-out error, by least squares.
    assert plain.model_.config["solution"]["ridge"] == 0.0
    assert len(plain.active_set_) == np.argmin(plain.path_.validation[:, 0])
    assert (np.diff(plain.path_.rss[:, 0]) <= 0.0).all()
    assert (default.path_.gains >= 0.0).all()
    np.testing.assert_allclose(list(default.staged_predict(apart[:5]))[-1], default.predict(apart[:5]), atol=1e-9)
