"""Look-ahead CSI: the printed numbers, the published programs, and the same thing made afresh at every pick."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from problems import Float, problem_of, select, table_of_chunks
from strategies import seeds

from streamkernel.engine import Machine, MemoryLimits, TableShape, check_memory, make_plan
from streamkernel.errors import ParameterError, ResourceLimitError
from streamkernel.kernels import Gaussian, Linear
from streamkernel.selection.csi_lookahead import CSIPath, LookAheadCSI, csi_path
from streamkernel.selection.look_ahead import LookAhead
from streamkernel.table import open_table

CARD = naive.card()
Y40 = CARD.y - CARD.y.mean()  # the card centres y, and not the columns
SGMA = [17, 4, 27, 33, 29, 20]
ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle"

# Card 3.1 and 3.4: columns ahead, picks, predicted and true gains as printed.
PRINTED: list[tuple[int, list[int], list[float] | None, list[float] | None]] = [
    (0, [0, 34, 10, 3, 9, 8], None, None),
    (
        4,
        [30, 21, 18, 0, 14, 31],
        [0.407085, 0.328355, 0.0237701, 0.0224867, 0.0158682, 0.0156506],
        [0.522146, 0.31307, 0.0674491, 0.0224867, 0.0170229, 0.016679],
    ),
    (10, [27, 29, 6, 11, 4, 9], None, None),
    (40, [27, 29, 6, 22, 4, 9], [0.523886, 0.353456, 0.0395004, 0.0189851, 0.0172702, 0.00835963], None),
]


def path_of(K: Float, Y: ArrayLike, n: int, *, kappa: float, delta: int, centred: bool = False, **more: Any) -> CSIPath:
    """The rule's own algebra on a dense kernel matrix."""
    constant = np.full(len(K), len(K) ** -0.5) if centred else None
    targets = np.atleast_2d(np.asarray(Y, np.float64).T)
    if constant is not None:
        targets = targets - np.outer(targets @ constant, constant)
    found = csi_path(
        lambda j: K[:, j].copy(),
        np.diagonal(K).copy(),
        np.ascontiguousarray(targets),
        n=n,
        delta=min(delta, len(K)),
        kappa=kappa,
        constant=constant,
        **more,
    )
    assert len(found.picks) == len(found.gains) == len(found.predicted) == len(found.traces) - 1
    return found


# ---------------------------------------------------------------------------------------------- the printed numbers
@pytest.mark.parametrize(("delta", "picks", "predicted", "true"), PRINTED)
def test_printed_numbers(delta: int, picks: list[int], predicted: list[float] | None, true: list[float] | None) -> None:
    afresh, promised = naive.csi_look_ahead(CARD.K, 6, Y40, kappa=0.9, delta=delta)
    found = path_of(CARD.K, Y40, 6, kappa=0.9, delta=delta)
    assert afresh.picks == found.picks.tolist() == picks
    if predicted is not None:
        np.testing.assert_allclose(promised, predicted, rtol=6e-6)
        np.testing.assert_allclose(found.predicted.sum(axis=1), predicted, rtol=6e-6)
        np.testing.assert_allclose(afresh.scores, true or predicted, rtol=6e-6)
        np.testing.assert_allclose(found.gains.sum(axis=1), true or predicted, rtol=6e-6)
    assert found.columns == min(6 + delta, 40)


def test_predicted_gain_of_the_targets_is_no_bound() -> None:
    first = path_of(CARD.K, Y40, 1, kappa=0.9, delta=10)
    np.testing.assert_allclose(first.predicted.sum(), 0.535724, rtol=6e-6)
    np.testing.assert_allclose(first.gains.sum(), 0.523886, rtol=6e-6)
    assert first.predicted[0, 1] > first.gains[0, 1]


def test_no_columns_ahead_are_incomplete_cholesky() -> None:
    expected, _ = naive.incomplete_cholesky(CARD.K, 12)
    for kappa in (0.0, 0.5, 0.99):
        found = path_of(CARD.K, CARD.y, 12, kappa=kappa, delta=0, centred=True)
        assert found.picks.tolist() == expected.picks
        np.testing.assert_allclose(found.traces[1:], expected.traces, rtol=1e-12)
        np.testing.assert_allclose(found.predicted[:, 0], (1 - kappa) / 40 * np.array(expected.scores), rtol=1e-10)
    np.testing.assert_allclose(found.traces[1:7], [34.8364, 29.0728, 24.0337, 19.8675, 16.512, 12.3778], rtol=6e-6)


def test_all_columns_ahead_without_targets_are_the_picks_of_sgma() -> None:
    expected, _ = naive.sgma(CARD.K, [range(40)] * 10)
    for Y in (CARD.y, np.zeros((40, 0))):
        found = path_of(CARD.K, Y, 10, kappa=0.0, delta=40)
        assert found.picks.tolist()[:6] == SGMA
        assert found.picks.tolist() == expected.picks
        np.testing.assert_allclose(40 * found.gains[:, 0], expected.scores, rtol=1e-10)
        np.testing.assert_allclose(found.traces[1:], expected.traces, rtol=1e-10)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kappa", [0.5, 0.9, 1.0])
def test_all_columns_ahead_are_exact_gains(kappa: float, centred: bool) -> None:
    """With kappa = 1 this is kernel matching pursuit, pre-fitting."""
    Y = np.stack([CARD.y, CARD.t, np.sin(np.arange(40))], axis=1)
    found = path_of(CARD.K, Y, 8, kappa=kappa, delta=40, centred=centred)
    expected = naive.csi_exact(CARD.K, [range(40)] * 8, Y, kappa=kappa, centred=centred)
    assert found.picks.tolist() == expected.picks
    np.testing.assert_allclose(found.gains.sum(axis=1), expected.scores, rtol=1e-9)
    np.testing.assert_allclose(found.predicted, found.gains, rtol=1e-9, atol=1e-14)


# ------------------------------------------------------------------------------------------ the published programs
def oracle(name: str) -> tuple[Float, Float]:
    """Kernel matrix and targets of the reference outputs."""
    if not (ORACLE / f"{name}.csv").is_file():
        pytest.skip(f"reference outputs of kernlab are not in {ORACLE}")
    rows = np.loadtxt(ORACLE / f"{name}.csv", delimiter=",", skiprows=1)
    gamma = float((ORACLE / f"{name}.gamma").read_text())
    return naive.gaussian(rows[:, :-1], rows[:, :-1], 1 / np.sqrt(2 * gamma)), rows[:, -1]


def reference(name: str, output: str) -> Float:
    return np.loadtxt(ORACLE / f"{name}_kernlab_{output}.csv", delimiter=",")


RUNS = [(name, c, k, d) for name in ("reg60", "clf200") for c in (False, True) for k in (0.5, 0.99) for d in (5, 40)]
every_run = pytest.mark.parametrize(("name", "centred", "kappa", "delta"), RUNS)


def published_run(name: str, centred: bool, kappa: float, delta: int) -> tuple[list[int], Float, Float]:
    """Fifteen picks of kernlab's csi, what it predicted of them, and what they gained."""
    run = f"csi_rank15_cen{int(centred)}_kappa{kappa}_delta{delta}"
    place = reference(name, f"{run}_pivots1based")
    gains = (reference(name, f"{run}_{part}gain")[:15] for part in ("pred", "true"))
    return np.argsort(place)[:15].tolist(), *gains


@every_run
def test_the_oracle_is_the_published_program(name: str, centred: bool, kappa: float, delta: int) -> None:
    """With the scans of csi.m in place of argmax: pick for pick, and what was promised of each."""
    K, y = oracle(name)
    picks, promised, gained = published_run(name, centred, kappa, delta)
    path, predicted = naive.csi_look_ahead(K, 15, y, kappa=kappa, delta=delta, centred=centred, published=True)
    assert path.picks == picks
    np.testing.assert_allclose(predicted, promised, atol=1e-11)
    np.testing.assert_allclose(path.scores, gained, atol=1e-11)


@every_run
def test_gains_along_the_published_picks(name: str, centred: bool, kappa: float, delta: int) -> None:
    K, y = oracle(name)
    picks, _, gained = published_run(name, centred, kappa, delta)
    constant = np.full(len(K), len(K) ** -0.5) if centred else None
    Y = y[None] - (y.mean() if centred else 0.0)
    state = LookAhead(lambda j: K[:, j].copy(), np.ones(len(K)), Y, n=15, delta=delta, constant=constant)
    drops = np.array([state.pick(j) for j in picks])
    np.testing.assert_allclose(
        (1 - kappa) / len(K) * drops[:, 0] + kappa / (Y**2).sum() * drops[:, 1], gained, atol=1e-11
    )
    G = reference(name, f"csi_rank15_cen{int(centred)}_kappa{kappa}_delta{delta}_G")
    np.testing.assert_allclose(state.D, 1 - (G**2).sum(axis=1), atol=1e-11)


def test_criterion_beside_the_published_program() -> None:
    """Plain argmax has other columns ahead, hence other picks: J is the better or the worse, by 5 % in the mean."""
    ratios = []
    for name, centred, kappa, delta in RUNS:
        K, y = oracle(name)
        _, _, gained = published_run(name, centred, kappa, delta)
        found = path_of(K, y, 15, kappa=kappa, delta=delta, centred=centred)
        ratios.append(np.log(1 - np.cumsum(found.gains.sum(axis=1))) - np.log(1 - np.cumsum(gained)))
    assert np.abs(np.mean(ratios, axis=1)).max() < 0.35
    assert abs(np.mean(ratios)) < 0.07
    assert abs(np.mean(ratios, axis=0)[-1]) < 0.03


@pytest.mark.parametrize("name", ["reg60", "clf200"])
def test_no_columns_ahead_beside_inchol(name: str) -> None:
    K, y = oracle(name)
    for run, n, tol in (("inchol_max15_tol1e-12", 15, 0.0), ("inchol_max60_tol0.001", 60, 1e-3)):
        picks = reference(name, f"{run}_pivots1based").astype(int) - 1
        found = path_of(K, y, len(picks), kappa=0.5, delta=0)
        assert found.picks.tolist() == picks.tolist()
        left = reference(name, f"{run}_diagresidues")
        np.testing.assert_allclose(found.traces[-1], left.sum(), rtol=1e-9)
        # Its tolerance is one of the residual in all, or of the largest: n was the limit, or it holds.
        assert len(picks) == n or left.max() < tol


# ------------------------------------------------------------------------------------------- made afresh at every pick
@st.composite
def kernels(draw: st.DrawFn) -> tuple[Float, Float]:
    """A Gaussian kernel matrix and targets (m, d): sometimes with rows twice, and a constant column."""
    m, p, d = draw(st.integers(2, 60)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(seeds))
    X = rng.standard_normal((m, p))
    if draw(st.booleans()):
        X[rng.integers(0, m, m // 3)] = X[0]
    if draw(st.booleans()):
        X[:, -1] = 1.0
    K = draw(st.sampled_from([1e-3, 1.0, 1e4])) * naive.gaussian(X, X, draw(st.sampled_from([0.3, 1.0, 2.0])))
    return K, np.sin(X @ rng.standard_normal((p, d))) + 0.1 * rng.standard_normal((m, d))


def sure(K: Float, picks: list[int]) -> int:
    """How many picks come before the first small pivot: dividing by it lifts rounding into the digits compared."""
    for t, j in enumerate(picks):
        if naive.residual_diagonal(K, picks[:t])[j] < 1e-3 * K[j, j]:
            return t
    return len(picks)


@given(kernels(), st.integers(0, 20), st.sampled_from([0.0, 0.5, 0.99]), st.booleans())
def test_efficient_is_semi_naive(data: tuple[Float, Float], delta: int, kappa: float, centred: bool) -> None:
    K, Y = data
    afresh, predicted = naive.csi_look_ahead(K, 15, Y, kappa=kappa, delta=delta, centred=centred)
    found = path_of(K, Y, 15, kappa=kappa, delta=delta, centred=centred)
    n = sure(K, afresh.picks)
    assert found.picks[:n].tolist() == afresh.picks[:n]
    np.testing.assert_allclose(found.predicted.sum(axis=1)[:n], predicted[:n], atol=1e-10)
    np.testing.assert_allclose(found.gains.sum(axis=1)[:n], afresh.scores[:n], atol=1e-10)
    np.testing.assert_allclose(found.traces[1 : n + 1], afresh.traces[:n], atol=1e-10 * np.trace(K))


@given(kernels(), st.integers(0, 20), st.sampled_from([0.5, 0.99, 1.0]), st.booleans())
def test_gains_are_what_the_criterion_drops_by(
    data: tuple[Float, Float], delta: int, kappa: float, centred: bool
) -> None:
    K, Y = data
    found = path_of(K, Y, 10, kappa=kappa, delta=delta, centred=centred)
    picks = found.picks.tolist()
    for t in range(sure(K, picks) + 1):
        left = naive.csi_objective(K, picks[:t], Y, kappa=kappa, centred=centred)
        np.testing.assert_allclose(1 - found.gains[:t].sum(), left, atol=1e-10)
        np.testing.assert_allclose(found.traces[t], naive.residual_trace(K, picks[:t]), atol=1e-10 * np.trace(K))


@given(kernels(), st.integers(0, 20), st.integers(1, 15))
def test_kernel_columns_are_picks_and_look_ahead(data: tuple[Float, Float], delta: int, n: int) -> None:
    """Each once; fewer only where the rank is exhausted."""
    K, Y = data
    asked: list[int] = []

    def column(j: int) -> Float:
        asked.append(j)
        return K[:, j].copy()

    found = csi_path(column, np.diagonal(K).copy(), np.ascontiguousarray(Y.T), n=n, delta=delta, kappa=0.9)
    assert len(asked) == len(set(asked)) == found.columns <= n + delta
    if n + delta < np.linalg.matrix_rank(K, tol=1e-8 * K[0, 0]):
        assert found.columns == n + delta


def test_near_duplicates_keep_their_digits() -> None:
    """Squares fall by many digits between two evaluations afresh: those that win are evaluated at once."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((20, 2)), 3, axis=0) + 1e-4 * rng.standard_normal((60, 2))
    y = np.sin(X[:, 0]) + rng.standard_normal(60)
    K = naive.gaussian(X, X, 0.3)
    afresh, predicted = naive.csi_look_ahead(K, 40, y, kappa=0.99, delta=4, centred=True)
    found = path_of(K, y, 40, kappa=0.99, delta=4, centred=True)
    assert found.picks.tolist() == afresh.picks
    np.testing.assert_allclose(found.predicted.sum(axis=1), predicted, atol=1e-8)
    np.testing.assert_allclose(found.gains.sum(axis=1), afresh.scores, atol=1e-8)


def test_the_twin_of_a_row_looked_at_has_a_column_of_its_own() -> None:
    """All but 1e-13 of its diagonal has been seen, but of its column only all but 1e-7."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((30, 2)), 2, axis=0)
    X[1::2] += 3e-7 * rng.standard_normal((30, 2))
    K = naive.gaussian(X, X, 1.0)
    found = path_of(K, np.sin(3 * X[:, 0]), 12, kappa=0.9, delta=8, centred=True)
    assert (found.picks % 2).any()
    expected = [naive.residual_trace(K, found.picks[:t]) for t in range(13)]
    np.testing.assert_allclose(found.traces, expected, rtol=1e-9)


def test_a_smooth_kernel_to_nine_digits_of_the_trace() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    y = np.sin(X @ [1.0, 2.0, 0.5]) + 0.1 * rng.standard_normal(150)
    K = naive.gaussian(X, X, 10.0)
    afresh, _ = naive.csi_look_ahead(K, 30, y, kappa=0.99, delta=20, centred=True)
    found = path_of(K, y, 30, kappa=0.99, delta=20, centred=True)
    assert found.picks.tolist() == afresh.picks
    assert afresh.traces[-1] < 1e-7 * 150
    np.testing.assert_allclose(found.traces[1:], afresh.traces, rtol=1e-5)
    np.testing.assert_allclose(found.gains.sum(axis=1), afresh.scores, atol=1e-7)
    state = LookAhead(lambda j: K[:, j].copy(), np.ones(150), y[None], n=30, delta=20)
    for j in afresh.picks:
        state.pick(j)
    np.testing.assert_allclose(state._Q[:30] @ state._Q[:30].T, np.eye(30), atol=1e-13)
    G = state._Q[:30].T @ state._R[:30]
    np.testing.assert_allclose(K - G @ G.T, naive.residual(K, afresh.picks), atol=1e-11)


def test_a_constant_that_the_columns_hold() -> None:
    """K = X X^T + 1: with the constant projected out, the last column has no direction of its own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    K, y = X @ X.T + 1.0, X[:, 0] - 2 * X[:, 3] + 0.1 * rng.standard_normal(50)
    found = path_of(K, y, 10, kappa=0.9, delta=3, centred=True)
    assert found.ended == "rank"
    assert len(found.picks) == 5
    assert found.traces[-1] < 1e-10 * np.trace(K)
    left = naive.csi_objective(K, found.picks, y, kappa=0.9, centred=True)
    np.testing.assert_allclose(1 - found.gains.sum(), left, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- the rule
def rows(m: int = 120, seed: int = 0) -> tuple[Float, Float]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1) + 0.1 * rng.standard_normal((m, 2))


def test_the_rule_on_the_card() -> None:
    rule = LookAheadCSI(delta=4, kappa=0.9, centred=False)
    found, session = select(rule, problem_of(CARD.X, Y40, n=6))
    assert found.basis.rows.tolist() == [30, 21, 18, 0, 14, 31]
    np.testing.assert_allclose(found.gains, [0.522146, 0.31307, 0.0674491, 0.0224867, 0.0170229, 0.016679], rtol=6e-6)
    assert found.ended == "size"
    assert len(session.records) == 1  # one sweep gathers the rows
    for record in found.rounds:
        assert record.stop == record.start + 1
        expected = naive.residual_trace(CARD.K, found.basis.rows[: record.start].tolist())
        np.testing.assert_allclose(record.residual_trace, expected, rtol=1e-10)


@pytest.mark.parametrize("chunk", [1, 7, 120])
def test_any_chunking_is_the_same_bits(tmp_path: Path, chunk: int) -> None:
    X, Y = rows()
    rule = LookAheadCSI(delta=6)
    whole, _ = select(rule, problem_of(X, Y, n=20))
    parts, _ = select(rule, problem_of(table_of_chunks(tmp_path / "rows", X, Y, chunk), n=20))
    np.testing.assert_array_equal(whole.basis.rows, parts.basis.rows)
    np.testing.assert_array_equal(whole.basis.points, parts.basis.points)
    np.testing.assert_array_equal(whole.gains, parts.gains)


def test_targets_are_centred_and_scaled_by_the_problem() -> None:
    X, Y = rows()
    problem = problem_of(X, Y, n=10)
    moved = type(problem)(
        open_table(X, Y * [1.0, 50.0] + [3.0, -7.0]),
        problem.kernel,
        10,
        centre=np.array([3.0, -7.0]),
        scale=np.array([1.0, 50.0]),
    )
    for centred in (False, True):
        rule = LookAheadCSI(delta=6, centred=centred)
        plain, shifted = select(rule, problem)[0], select(rule, moved)[0]
        assert plain.basis.rows.tolist() == shifted.basis.rows.tolist()
        np.testing.assert_allclose(plain.gains, shifted.gains, rtol=1e-9)


def test_class_indicators() -> None:
    X, Y = rows()
    labels = np.where(Y[:, 0] > 0.5, "high", np.where(Y[:, 0] < -0.5, "low", "middle"))
    indicators = (labels[:, None] == np.unique(labels)).astype(float)
    problem = problem_of(X, n=12)
    table = open_table(X, labels, classify=True)
    classes = type(problem)(table, problem.kernel, 12, centre=indicators[:50].mean(axis=0), scale=np.ones(3))
    found, _ = select(LookAheadCSI(delta=8), classes)
    K = naive.gaussian(X, X, 1.0)
    expected, _ = naive.csi_look_ahead(K, 12, indicators, kappa=0.99, delta=8, centred=True)
    assert found.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(found.gains, expected.scores, rtol=1e-9)


@pytest.mark.parametrize("Y", [None, np.full((120, 2), 1e6 / 3)], ids=["none", "constant"])
def test_without_targets_to_tell_the_gain_is_of_the_trace(Y: Float | None) -> None:
    X, _ = rows()
    found, _ = select(LookAheadCSI(delta=120), problem_of(X, Y, n=10))
    expected, _ = naive.sgma(naive.gaussian(X, X, 1.0), [range(120)] * 10)
    assert found.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(120 * found.gains, expected.scores, rtol=1e-9)


def test_weights_are_repeated_rows() -> None:
    """With exact gains: a row of weight 3 is three rows of weight 1, and a row of weight 0 is none."""
    X, Y = rows(40)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    problem = problem_of(X, Y, n=8)
    weighted = type(problem)(open_table(X, Y, weights=weights), problem.kernel, 8, centre=np.zeros(2), scale=np.ones(2))
    repeated = np.repeat(np.arange(40), weights)
    for centred in (False, True):
        rule = LookAheadCSI(delta=120, centred=centred)
        found, expected = select(rule, weighted)[0], select(rule, problem_of(X[repeated], Y[repeated], n=8))[0]
        assert found.basis.rows.tolist() == repeated[expected.basis.rows].tolist()
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9)
        assert (weights[found.basis.rows] > 0).all()


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X, Y = rows()
    whole = problem_of(X, Y, n=6)
    part = type(whole)(whole.table.slice(40, 90), whole.kernel, 6, centre=np.zeros(2), scale=np.ones(2))
    found, _ = select(LookAheadCSI(delta=5), part)
    alone, _ = select(LookAheadCSI(delta=5), problem_of(X[40:90], Y[40:90], n=6))
    np.testing.assert_array_equal(found.basis.rows, alone.basis.rows + 40)
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])


def test_single_precision_rows_are_exact_rows() -> None:
    X, Y = rows()
    single = X.astype(np.float32)
    found, _ = select(LookAheadCSI(delta=8), problem_of(single, Y, n=15))
    double, _ = select(LookAheadCSI(delta=8), problem_of(single.astype(np.float64), Y, n=15))
    assert found.basis.points.dtype == np.float32
    np.testing.assert_array_equal(found.basis.rows, double.basis.rows)
    np.testing.assert_array_equal(found.gains, double.gains)


@pytest.mark.parametrize("delta", [0, 3, 500])
def test_exhausted_rank_ends_it(delta: int) -> None:
    """Duplicate rows, a constant column, and more columns ahead than rows; ties go to the lowest row."""
    X, Y = rows(9)
    X = np.tile(np.column_stack([X, np.ones(9)]), (6, 1))
    found, _ = select(LookAheadCSI(delta=delta, gain_tolerance=0.0), problem_of(X, np.tile(Y, (6, 1)), n=40))
    assert found.ended == "rank"
    assert sorted(found.basis.rows.tolist()) == list(range(9))


def test_more_functions_than_rows_and_rows_that_are_nothing() -> None:
    X, Y = rows(12)
    found, _ = select(LookAheadCSI(gain_tolerance=0.0), problem_of(X, Y, n=30))
    assert sorted(found.basis.rows.tolist()) == list(range(12))
    assert found.ended == "rank"
    nothing, _ = select(LookAheadCSI(), problem_of(np.zeros((7, 2)), Y[:7], n=3, kernel=Linear()))
    assert len(nothing.basis) == 0
    assert nothing.ended == "rank"


def test_a_gain_too_small_ends_it_unless_the_trace_is_to_be_held() -> None:
    X, Y = rows(200)
    y = Y[:, 0]
    whole, _ = select(LookAheadCSI(gain_tolerance=0.0), problem_of(X, y, n=60))
    found, _ = select(LookAheadCSI(gain_tolerance=3e-3), problem_of(X, y, n=60))
    n = len(found.basis)
    assert found.ended == "tolerance"
    assert 1 < n < 60
    np.testing.assert_array_equal(found.basis.rows, whole.basis.rows[:n])
    assert found.gains[-1] < 3e-3
    held, _ = select(LookAheadCSI(gain_tolerance=3e-3), problem_of(X, y, n=150, tol=0.05))
    K = naive.gaussian(X, X, 1.0)
    assert held.ended == "tolerance"
    assert naive.residual_trace(K, held.basis.rows.tolist()) <= 0.05 * 200
    assert naive.residual_trace(K, held.basis.rows[:-1].tolist()) > 0.05 * 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delta": -1}, "delta = -1 is out of range; give a whole number >= 0"),
        ({"delta": 2.5}, "delta = 2.5"),
        ({"kappa": 1.5}, "kappa = 1.5 is out of range; give a number in [0, 1]"),
        ({"kappa": "high"}, "kappa = 'high'"),
        ({"gain_tolerance": -1e-3}, "gain_tolerance = -0.001"),
        ({"gain_tolerance": float("nan")}, "gain_tolerance = nan"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LookAheadCSI(**options)
    assert said in str(caught.value)


# ----------------------------------------------------------------------------------------------------------- the plan
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_plan_holds_what_is_held(dtype: Any) -> None:
    X, Y = rows(20_000)
    problem = problem_of(np.ascontiguousarray(np.tile(X, (1, 4)), dtype=dtype), Y, n=30, kernel=Gaussian(3.0))
    rule = LookAheadCSI(delta=20)
    gather, look = rule.steps(problem)
    assert gather.rows == look.rows == 20_000
    assert look.kernel_columns == 50
    tracemalloc.start()
    select(rule, problem)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 * look.held_bytes < peak < look.held_bytes


def test_a_table_too_large_is_refused_before_anything_is_read() -> None:
    rule = LookAheadCSI()
    X = np.broadcast_to(np.zeros(1), (10_000_000, 20))
    problem = problem_of(np.zeros((1, 20)), n=500)

    class Large:
        n_rows, n_features, n_targets, dtype = *X.shape, 1, X.dtype
        chunk_rows, in_memory = 10_000, False

    def plan(n: int) -> Any:
        large = type(problem)(Large(), problem.kernel, n, centre=np.zeros(1), scale=np.ones(1))  # type: ignore[arg-type]
        return make_plan(rule.steps(large), TableShape.of(Large()), Machine(0, 2), disk_bytes=0)  # type: ignore[arg-type]

    assert plan(500).driver_bytes > 8 * 10_000_000 * (500 + 2 * 40)
    with pytest.raises(ResourceLimitError, match=r"exceeds allowed memory.*or use the rule csi, which"):
        check_memory(plan(500), MemoryLimits(total=4 << 30), plan, 500)
