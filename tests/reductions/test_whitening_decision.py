"""Whether blocks are whitened before they are summed: by the rounding that whitening the sum would lift."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel import KernelRidge
from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import RowBlock

EPS = float(np.finfo(np.float64).eps)
MOST_LIFT = 1e-9 / EPS  # of a basis of one function
N, ROWS = 144, 10_000


@pytest.fixture(scope="module")
def basis() -> Basis:
    """Points that have nothing to do with each other, but for two that are near."""
    X = 50.0 * np.arange(N, dtype=np.float64)[:, None]
    X[-1] = X[-2] + 0.01
    return Basis(Gaussian(1.0), X, np.arange(N))


@pytest.mark.parametrize(("times", "whitened"), [(0.5, True), (11.0, True), (13.0, False)])
def test_rounding_of_a_sum_of_squares_grows_with_the_root_of_n(basis: Basis, times: float, whitened: bool) -> None:
    """``eps m sqrt(n) / pivot``, with sqrt(n) = 12 here, against the alpha that was asked for or the share of m."""
    assert basis.least_pivot == pytest.approx(1e-4, rel=0.01)
    unit = EPS / basis.least_pivot
    leading = NormalEquations.of(basis, np.zeros(1), ROWS, times * ROWS * unit).leading
    # The near points are the last ones.
    assert leading == (None if whitened else 0)
    # Of a chosen alpha no more is known than that rounding must not be noticed: many rows bring both more of it, and
    # larger eigenvalues.
    assert NormalEquations.of(basis, np.zeros(1), ROWS).leading == 0
    assert NormalEquations.of(basis, np.zeros(1), 10**9).leading == 0
    assert NormalEquations.of(basis, np.zeros(1), 10**9, alpha=1e-3).leading is None


def test_many_rows_need_no_more_digits() -> None:
    """The error of a prediction from whitened sums is that from whitened blocks, for few rows and for many."""
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((150, 4))
    basis = Basis.empty(Gaussian(6.0), 4, Z.dtype).append(Z, np.arange(150))[0]
    off = []
    for m in (3000, 48_000):
        X = rng.standard_normal((m, 4))
        y = np.sin(X[:, :1]) * X[:, 1:2]
        work = NormalEquations.of(basis, np.zeros(1), m)
        assert work.leading in (8, 12, 16, 24, 32, 48, 64, 96, 128)
        solutions = []
        for each in (work, NormalEquations(basis, np.zeros(1))):
            state = each.map_block(RowBlock(0, X[:2000], y[:2000]))
            for start in range(2000, m, 2000):
                state = each.fold(state, RowBlock(start, X[start : start + 2000], y[start : start + 2000]))
            sums = each.finalize(state)
            solutions.append(np.linalg.solve(sums.H + 1e-6 * np.eye(len(sums.H)), sums.g))
        moved = np.sqrt(np.mean((basis.features(X[:2000]) @ (solutions[0] - solutions[1])) ** 2))
        off.append(moved / y.std())
    assert max(off) < 1e-6


@pytest.mark.parametrize("seed", range(8))
def test_the_quick_way_is_taken_where_it_is_as_good(seed: int) -> None:
    """In any order of the points: dependent functions of which no single pivot is small lift rounding too."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 2))
    basis = Basis.empty(Gaussian(1.65), 2, X.dtype).append(X[:30], np.arange(30))[0]
    work = NormalEquations.of(basis, np.zeros(0), len(X))
    block = RowBlock(0, X, None)
    lost = np.linalg.norm(work.finalize(work.map_block(block)).H - _whitened(basis, block), 2)
    assert lost < 1e-5
    assert basis.lift() >= 0.8 * 0.5 / np.linalg.eigvalsh(basis.gram())[0]


@pytest.mark.parametrize("lengthscale", [4.0, 8.0, 16.0])
def test_smooth_functions_need_some_of_them_whitened(lengthscale: float) -> None:
    """What a few functions leave of the others is small, and so is the rounding of its sums."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    basis = Basis.empty(Gaussian(lengthscale), 5, X.dtype).append(X[:300], np.arange(300))[0]
    work = NormalEquations.of(basis, np.zeros(1), len(X))
    assert work.leading in (8, 12, 16, 24, 32, 48, 64, 96, 128)
    assert basis.lift(work.leading) < 0.1 * basis.lift()

    def enough(leading: int) -> bool:
        rounding = EPS * np.sqrt(len(basis)) * basis.lift(leading)
        return bool(rounding <= max(1e-9 * basis.unexplained(leading), 1e-7 * np.sqrt(basis.least_pivot)))

    assert enough(work.leading)
    assert not enough(work.leading * 2 // 3)  # the number that was tried before, or fewer
    block = RowBlock(0, X, np.sin(X[:, :1]))
    found = work.finalize(work.map_block(block))
    exact = NormalEquations(basis, np.zeros(1))
    expected = exact.finalize(exact.map_block(block))
    at_the_end = NormalEquations(basis, np.zeros(1), leading=0)
    lost = np.linalg.norm(at_the_end.finalize(at_the_end.map_block(block)).H - expected.H, 2)
    off = np.linalg.norm(found.H - expected.H, 2)
    assert off < 3e-6
    assert off < 0.1 * lost
    np.testing.assert_allclose(found.g, expected.g, atol=1e-5)


@pytest.mark.parametrize("lengthscale", [2.0, 4.0, 8.0])
def test_the_lift_is_that_of_the_rounding(lengthscale: float) -> None:
    """Not less than what is measured, for any number of leading functions, and no thousand times more.

    Whitened blocks have the rounding of the features themselves, which no lift is about.
    """
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 5))
    basis = Basis.empty(Gaussian(lengthscale), 5, X.dtype).append(X[:200], np.arange(200))[0]
    block, features = RowBlock(0, X, None), EPS / np.sqrt(basis.least_pivot)
    expected = _whitened(basis, block)
    seen = 0
    for leading in (0, 8, 12, 16, 24, 32, 48, 64, 96):
        work = NormalEquations(basis, np.zeros(0), leading)
        lost = np.linalg.norm(work.finalize(work.map_block(block)).H - expected, 2) / len(X)
        lifted = EPS * np.sqrt(len(basis)) * basis.lift(leading)
        assert basis.lift(leading) >= 1.0
        assert lost < 2.0 * lifted + features
        if lost > 2.0 * features:
            assert lifted < 100.0 * lost
            seen += leading > 0
    assert seen >= 1


@pytest.mark.parametrize(("lengthscale", "smooth"), [(1.0, False), (2.0, False), (8.0, True), (16.0, True)])
def test_no_alpha_needs_more_digits_than_whitened_blocks_have(lengthscale: float, smooth: bool) -> None:
    """Neither where rounding is not lifted any more, nor where that of the features of a smooth kernel is larger."""
    X = np.random.default_rng(0).standard_normal((300, 5))
    basis = Basis.empty(Gaussian(lengthscale), 5, X.dtype).append(X, np.arange(300))[0]
    counts = (0, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    not_lifted = next(count for count in counts if basis.lift(count) <= 1.0)
    leading = NormalEquations.of(basis, np.zeros(1), 4000, alpha=0.0).leading
    assert leading is not None
    assert leading < not_lifted if smooth else leading == not_lifted


def test_few_rows_need_fewer_digits() -> None:
    """Alphas that are chosen from few rows are large: three points of which two are near, with 300 rows and 3,000."""
    basis = Basis(Gaussian(1.0), np.array([[0.0], [50.0], [50.0005]]), np.arange(3))
    lifted = EPS * np.sqrt(3.0) * basis.lift()
    assert 1e-9 < lifted < 1e-8
    assert NormalEquations.of(basis, np.zeros(1), 300).leading == 0
    assert NormalEquations.of(basis, np.zeros(1), 3000).leading != 0


def test_what_no_function_explains_is_all() -> None:
    X = np.random.default_rng(3).standard_normal((40, 2))
    basis = Basis.empty(2.0 * Gaussian(1.0), 2, X.dtype).append(X, np.arange(40))[0]
    K = basis.gram()
    for leading in (8, 16, 39):
        left = K - K[:, :leading] @ np.linalg.solve(K[:leading, :leading], K[:leading])
        share = np.diagonal(left)[leading:].mean() / 2.0
        assert basis.unexplained(leading) == pytest.approx(share, rel=1e-4)
    assert basis.unexplained(0) == 1.0
    assert basis.unexplained(40) == 0.0


@pytest.mark.parametrize("leading", [1, 32, 130, 299, 300, 400])
def test_leading_functions_are_whitened_and_taken_out_of_the_others(leading: int) -> None:
    """Of any number of functions, above and below the leaves in which a triangle is solved."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((700, 8))
    basis = Basis.empty(Gaussian(1.5), 8, X.dtype).append(X[:300], np.arange(300))[0]
    t, L, K = min(leading, 300), basis.L, basis.block(X)
    G1 = np.linalg.solve(L[:t, :t], K[:, :t].T).T
    found = basis.features(X, leading=leading)
    np.testing.assert_allclose(found[:, :t], G1, atol=1e-10)
    np.testing.assert_allclose(found[:, t:], K[:, t:] - G1 @ L[t:, :t].T, atol=1e-10)


def test_alpha_is_not_that_of_rounding() -> None:
    """Of these rows the rule picks functions whose least pivot is 1e-8, and the least eigenvalue 1e-12."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    apart = rng.standard_normal((1000, 2))
    model = KernelRidge(40).fit(X, y)
    assert np.sqrt(np.mean((model.predict(apart) - np.sin(apart[:, 0])) ** 2)) < 0.05


def _whitened(basis: Basis, block: RowBlock) -> np.ndarray:  # type: ignore[type-arg]
    work = NormalEquations(basis, np.zeros(0))
    return work.finalize(work.map_block(block)).H
