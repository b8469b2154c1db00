"""KernelCCA: the card's picks, the oracle's correlations, one answer for any chunking, and what its bound says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pytest
from numpy.typing import NDArray
from problems import pool_columns, zarr_of_chunks
from scikit_learn_checks import with_checks
from thread_clients import thread_client

from streamkernel import KernelCCA
from streamkernel.basis import Basis
from streamkernel.bounds import matching_pursuit_bound
from streamkernel.engine import Session
from streamkernel.errors import NumericalError, ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.reductions import View
from streamkernel.reductions.pools import CrossPool
from streamkernel.selection import Problem, RowCache
from streamkernel.selection._cross_picks import cross_picks
from streamkernel.selection._draws import UniformDraw
from streamkernel.table import RowBlock, open_table

Float = NDArray[np.float64]
CARD = naive.card()
SECOND = np.stack(
    [np.sin(CARD.X[:, 0]) + 0.1 * np.cos(3 * np.arange(40)), CARD.X[:, 1] ** 2 - 0.5 * CARD.X[:, 0]], axis=1
)
KX, KY = CARD.K, naive.gaussian(SECOND, SECOND, 1.0)
PLAIN: dict[str, Any] = {"lengthscale": 1.0, "scale": "none"}


def views(m: int, seed: int = 0) -> tuple[Float, Float]:
    """Two functions in common, behind noise: sin(x0) and x1, of which the second view sees a cube."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 3 / 3, rng.standard_normal(m)])
    return X, Y + 0.1 * rng.standard_normal((m, 3))


X, Y = views(1500)


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(KernelCCA())
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# --------------------------------------------------------------------------------------------------------- the picks
def test_picks_and_quotients_of_the_card() -> None:
    """All rows as candidates, no ridge: the numbers that ALGORITHMS 11.3 prints."""
    model = KernelCCA(2, basis_size=4, regularization=0.0, pool="all", **PLAIN).fit(CARD.X, SECOND)
    assert model.component_indices_.tolist() == [28, 9, 23, 22]
    np.testing.assert_allclose(model.quotients_, [0.956784, 0.72885, 0.680209, 0.623393], rtol=6e-6)
    assert naive.cross_quotient(KX, KY, [range(40)] * 4)[0] == [28, 9, 23, 22]


@pytest.mark.parametrize("share", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("seed", [0, 5])
def test_pools_equal_one_pick_at_a_time_on_the_same_pool(share: float, seed: int) -> None:
    """Twelve candidates a sweep, four picks each, shared or split; against dense kernels, deflated literally."""
    rows, other = X[:200], Y[:200]
    K = [naive.gaussian(rows, rows, 1.0), naive.gaussian(other, other, 1.0)]
    for pool in ("shared", "split"):
        model = KernelCCA(
            1, basis_size=12, regularization=share, pool=pool, picks=4, candidates=3, random_state=seed, **PLAIN
        ).fit(rows, other)
        rounds = model.model_.config["rounds"]
        assert [record["candidates"] for record in rounds] == [12, 12, 12]
        steps = pools_of(model, pool, len(rows))
        picks, quotients = naive.cross_quotient(*K, steps, (share * 200, share * 200))
        assert model.component_indices_.tolist() == picks
        np.testing.assert_allclose(model.quotients_, quotients, rtol=1e-7)


def pools_of(model: KernelCCA, pool: str, m: int) -> list[list[int]]:
    """The candidates of each pick, drawn again from the numbers of the rows chosen before."""
    table = open_table(np.zeros((m, 1)))
    problem = Problem(table, model.kernels_[0], 12, 0.0, model.random_state)
    draw = UniformDraw(3, all_rows=True, split=pool == "split")
    steps = []
    for round_ in range(3):
        chosen = model.component_indices_[: 4 * round_]
        basis = Basis(problem.kernel, np.zeros((len(chosen), 1)), chosen)
        drawn = draw.draw(problem, Session(), RowCache(table, Session()), basis, 4, round_)
        for pick in range(4):
            groups = drawn.groups
            steps.append(drawn.pool.rows[slice(None) if groups is None else groups == pick].tolist())
    return steps


def test_the_pool_of_the_card() -> None:
    """M12 as candidates: picks 17, 38, 5, 24 from one pass, by the root of both views' residual columns."""
    columns = pool_columns(CARD.X, None, [], CARD.pool), pool_columns(SECOND, None, [], CARD.pool)
    work = CrossPool(columns, (View(), View(of_targets=True)))
    sums = work.finalize(work.map_block(RowBlock(0, CARD.X, SECOND, None)))
    ones = np.ones(12)
    found = cross_picks(sums, 4, ridges=(0.0, 0.0), diagonals=(ones, ones), pivot_tolerance=1e-12)
    assert [CARD.pool[i] for i in found.order] == [17, 38, 5, 24]
    np.testing.assert_allclose(found.gains, naive.cross_quotient(KX, KY, [CARD.pool] * 4)[1], rtol=1e-10)


def test_tiny_residuals_do_not_win_by_their_noise() -> None:
    """Two smooth views of rank about 5: past it the plain quotient is that of noise, the ridge knows what is small."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (300, 1))
    y = x + 0.05 * rng.standard_normal((300, 1))
    options: dict[str, Any] = {"basis_size": 8, "pool": "all", "lengthscale": 1.0, "scale": "none"}
    plain = KernelCCA(1, regularization=0.0, **options).fit(x, y)
    held = KernelCCA(1, regularization=1e-3, **options).fit(x, y)
    # Quotients of the ridge fall with what is left to explain; the paper's do not.
    assert held.quotients_[5:].max() < 0.05
    assert plain.quotients_[5:].min() > 0.9


# ----------------------------------------------------------------------------------------------------- the variates
@pytest.mark.parametrize("share", [1e-3, 0.05])
def test_correlations_are_the_oracles(share: float) -> None:
    model = KernelCCA(3, basis_size=10, regularization=share, pool="all", **PLAIN).fit(CARD.X, SECOND)
    s, rho, first, second = naive.canonical_correlations(KX, KY, model.component_indices_, (40 * share,) * 2, 3)
    np.testing.assert_allclose(model.singular_values_, s, rtol=1e-7)
    np.testing.assert_allclose(model.correlations_, rho, rtol=1e-7)
    u, v = model.canonical_variates(CARD.X, SECOND)
    signs = np.sign((u * first).mean(axis=0))
    np.testing.assert_allclose(u, first * signs, atol=1e-6)
    np.testing.assert_allclose(v, second * np.sign((v * second).mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose((u * v).mean(axis=0), model.correlations_, atol=1e-9)
    np.testing.assert_allclose(u.std(axis=0), 1.0, atol=1e-9)
    at_basis = u[model.component_indices_]
    assert (at_basis[abs(at_basis).argmax(axis=0), np.arange(3)] > 0).all()


def test_without_a_ridge_linear_kernels_are_plain_cca() -> None:
    model = KernelCCA(3, basis_size=3, kernel="linear", regularization=0.0, scale="none", pool="all")
    centred = X[:300] - X[:300].mean(axis=0), Y[:300] - Y[:300].mean(axis=0)
    with np.errstate(all="raise"):
        model.fit(*centred)
    Q = [np.linalg.qr(view)[0] for view in centred]
    expected = np.linalg.svd(Q[0].T @ Q[1], compute_uv=False)
    np.testing.assert_allclose(model.correlations_, expected, rtol=1e-8)
    np.testing.assert_allclose(model.singular_values_, expected, rtol=1e-8)


def test_what_the_views_have_in_common_is_found_again_in_new_rows() -> None:
    model = KernelCCA(2, basis_size=60).fit(X, Y)
    new = views(800, seed=1)
    u, v = model.canonical_variates(*new)
    held = [np.corrcoef(u[:, j], v[:, j])[0, 1] for j in range(2)]
    assert min(held) > 0.88
    assert model.correlations_.min() > 0.9
    by_chance = KernelCCA(1, basis_size=60, random_state=1).fit(X, np.random.default_rng(8).permutation(Y))
    u, v = by_chance.canonical_variates(*new)
    assert abs(np.corrcoef(u[:, 0], v[:, 0])[0, 1]) < 0.2


# --------------------------------------------------------------------------------------------- chunks, workers, limits
def test_any_chunking_and_any_workers_pick_the_same_rows(tmp_path: Path) -> None:
    def fit(first: Any, second: Any, **options: Any) -> KernelCCA:
        return KernelCCA(2, basis_size=20, bound_gamma=1.0, **options).fit(first, second)

    reference = fit(X, Y)
    stored = zarr_of_chunks(tmp_path / "x.zarr", X, X[:, 0], 333)
    for chunk in (200, 1499):
        found = fit(stored, da.from_array(Y, chunks=(chunk, -1)))
        assert found.component_indices_.tolist() == reference.component_indices_.tolist()
        np.testing.assert_allclose(found.correlations_, reference.correlations_, rtol=1e-9)
        np.testing.assert_array_equal(found.bound_.errors, reference.bound_.errors)
    rows = da.from_array(X, chunks=(400, -1)), da.from_array(Y, chunks=(700, -1))
    with thread_client() as client:
        there = fit(*rows, client=client)
    here = fit(*rows)
    assert there.model_.digest == here.model_.digest
    np.testing.assert_array_equal(there.correlations_, here.correlations_)


def test_the_plan_is_held_against_the_limit() -> None:
    with pytest.raises(ResourceLimitError, match="basis"):
        KernelCCA(2, basis_size=1000, memory_limit="400MB").fit(X, Y)
    run = KernelCCA(2, basis_size=25, bound_gamma=1.0).fit(X, Y).model_.config["run"]
    # Statistics and rows by number, three rounds of ten, ten and five, the sums, the bound.
    names = [sweep["name"] for sweep in run["sweeps"]]
    assert names == [
        "gather sampled rows",
        *(f"score candidates beyond {n} functions" for n in (0, 10, 20)),
        "final sweep",
        "rows on which the views disagree",
    ]
    assert run["planned_memory_bytes"] > 0


# ----------------------------------------------------------------------------------------------------------- the bound
def test_bound_of_theorem_4_counts_rows_outside_the_basis() -> None:
    model = KernelCCA(1, basis_size=6, regularization=0.01, pool="all", bound_gamma=0.5, **PLAIN).fit(CARD.X, SECOND)
    errors = []
    for size in range(1, 7):
        basis = model.component_indices_[:size]
        _, rho, u, v = naive.canonical_correlations(KX, KY, basis, (0.4, 0.4), 1)
        apart = abs(u[:, 0] - np.sign(rho[0]) * v[:, 0]) > 0.5
        errors.append(int(apart.sum() - apart[basis].sum()))
    bound = model.bound_
    assert bound is not None
    assert bound.functions.tolist() == [1, 2, 3, 4, 5, 6]
    assert bound.errors.tolist() == errors
    np.testing.assert_array_equal(bound.values, matching_pursuit_bound(40, range(1, 7), errors, views=2).values)
    # Forty rows are too few for it to say anything, and it says so.
    assert bound.says_nothing
    assert KernelCCA(1, basis_size=6, **PLAIN).fit(CARD.X, SECOND).bound_ is None


def test_the_curve_of_a_large_basis_has_some_sizes() -> None:
    model = KernelCCA(1, basis_size=120, bound_gamma=1.0, delta=0.01).fit(X, Y)
    assert model.bound_.functions[[0, 1, -1]].tolist() == [1, 2, 120]
    assert len(model.bound_.functions) <= 48
    assert model.bound_.delta == 0.01


# ---------------------------------------------------------------------------------------------------------- edge cases
def test_rank_of_one_view_ends_the_picks() -> None:
    """The second view has three values: three functions of it are independent, and so three pairs."""
    labels = np.arange(300) % 3
    with pytest.warns(StreamKernelWarning, match="only 3 of 10 pairs"):
        model = KernelCCA(2, basis_size=10).fit(X[:300], labels)
    assert len(model.component_indices_) == 3
    assert model.model_.config["ended"] == "rank"
    assert sorted(labels[model.component_indices_]) == [0, 1, 2]
    # Two values, most pairs of rows alike: the lengthscale is the distance between the two.
    one = KernelCCA(1, basis_size=2, scale="none").fit(X[:300], (np.arange(300) % 5 == 0) * 1.0)
    assert one.lengthscales_[1] == 1.0


def test_a_constant_view_has_no_correlations() -> None:
    with pytest.raises(NumericalError, match="second view is constant"), pytest.warns(StreamKernelWarning):
        KernelCCA(1, basis_size=1, lengthscale=1.0).fit(X[:50], np.ones((50, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"basis_size": 1.5}, "basis_size"),
        ({"n_components": 5, "basis_size": 3}, "5 components of a basis of 3"),
        ({"pool": "single"}, "pool must be one of"),
        ({"picks": 0}, "picks"),
        ({"regularization": -1.0}, "regularization"),
        ({"bound_gamma": 0.0}, "bound_gamma"),
        ({"delta": 1.0}, "delta"),
        ({"lengthscale": "auto"}, "auto"),
        ({"lengthscale": (1.0, 2.0, 3.0)}, "tuple of 3"),
        ({"lengthscale": ([1.0, 2.0], 1.0)}, "features"),
    ],
    ids=str,
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelCCA(**options).fit(X[:300], Y[:300])


def test_halves_of_real_digits_have_much_in_common() -> None:
    """The first four and the last four points of a pen's stroke: what one says of the other, on new strokes too."""
    real = data_sets.load("pendigits")
    if real is None:
        pytest.skip("pendigits is not in ../shared/data")
    rows = real.X.astype(np.float64)
    groups = [*range(8)], [*range(8, 16)]
    model = KernelCCA(3, basis_size=80, view_columns=groups).fit(rows[:3000])
    u, v = model.canonical_variates(rows[3000:5000])
    held = [np.corrcoef(u[:, j], v[:, j])[0, 1] for j in range(3)]
    assert min(held) > 0.85
    linear = KernelCCA(3, basis_size=8, kernel="linear", view_columns=groups).fit(rows[:3000])
    u, v = linear.canonical_variates(rows[3000:5000])
    assert sum(held) > sum(np.corrcoef(u[:, j], v[:, j])[0, 1] for j in range(3))
