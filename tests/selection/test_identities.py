"""Identities between the rules, on random rows: ALGORITHMS 15, numbers 1 to 7."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, Float, basis_of, blocks, cut_session, pool_columns, problem_of, select
from strategies import cuts, few_examples, rows, seeds

from streamkernel.kernels import Gaussian, Linear
from streamkernel.selection import Greedy, as_rule
from streamkernel.selection._draws import AllRows
from streamkernel.selection._picks import Picks
from streamkernel.selection.greedy import Form, GramForm, RootForm
from streamkernel.selection.rounds import Fixed
from streamkernel.selection.scores import (
    ColumnNorm,
    Frobenius,
    FunctionSpace,
    Kronecker,
    Mixture,
    Pivot,
    Score,
    SparseFeatures,
)

GRAM, ROOT = GramForm(), RootForm()


@dataclass(frozen=True)
class Case:
    """Rows, targets, perhaps weights; a basis; a pool outside of it; and a way to cut the rows."""

    X: Float
    Y: Float
    weights: Float | None
    kernel: Gaussian
    basis: list[int]
    pool: list[int]
    cuts: tuple[int, ...]

    @property
    def K(self) -> Float:
        return naive.gaussian(self.X, self.X, self.kernel.lengthscale)

    def picks(self, form: Form, score: Score, count: int, *, weighted: bool = False, groups: Any = None) -> Picks:
        """From sums over the rows, block by block."""
        Y, weights = self.Y if score.needs_projection else None, self.weights if weighted else None
        columns = pool_columns(self.X, Y, self.basis, self.pool, self.kernel)
        work = form.reduction(columns)
        sums = work.finalize(reduce(work.combine, map(work.map_block, blocks(self.X, Y, self.cuts, weights))))
        return form.picks(
            sums,
            score,
            count,
            scale=np.ones(columns.centre.shape),
            diagonal=np.ones(len(self.pool)),
            pivot_tolerance=1e-12,
            groups=groups,
            coefficients=columns.coefficients_of_pool() if score.needs_coefficients else None,
        )

    def rows_of(self, picks: Picks) -> list[int]:
        return [self.pool[i] for i in picks.order]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    X = draw(rows(min_rows=10, max_rows=40, dtype=FLOAT64, duplicates=False))
    kernel = Gaussian(0.4 * float(np.abs(X).max()))
    K, order = naive.gaussian(X, X, kernel.lengthscale), np.random.default_rng(draw(seeds)).permutation(len(X))
    basis: list[int] = []
    for i in order[: draw(st.integers(0, 5))].tolist():
        if naive.residual(K, basis)[i, i] > 0.1:
            basis.append(i)
    rng = np.random.default_rng(draw(seeds))
    Y = np.sin(X @ rng.standard_normal((X.shape[1], 2)) / np.abs(X).max()) + 0.1 * rng.standard_normal((len(X), 2))
    weights = rng.uniform(0.2, 3.0, len(X)) if draw(st.booleans()) else None
    pool = [int(i) for i in order[::-1][: draw(st.integers(4, len(X) - 5))]]
    return Case(X, Y, weights, kernel, basis, [i for i in pool if i not in basis], draw(cuts(len(X))))


def sure(K: Float, path: naive.Path, basis: list[int], steps: list[Any], score: Callable[..., Any]) -> int:
    """How many picks come before the first that a rounding could turn: a small pivot, or a runner-up as good."""
    for t, pick in enumerate(path.picks):
        chosen = [*basis, *path.picks[:t]]
        others = [i for i in steps[t] if i not in chosen and i != pick and naive.residual(K, chosen)[i, i] > 1e-12]
        runner_up = max(score(K, chosen, others), default=-np.inf) if others else -np.inf
        if naive.residual(K, chosen)[pick, pick] < 1e-3 or runner_up > path.scores[t] * (1 - 1e-6):
            return t
    return len(path.picks)


# -------------------------------------------------------------------------------------- pool = one pick at a time, 15.3
SCORED: dict[str, tuple[Score, list[Form], bool]] = {
    "function space": (FunctionSpace(), [GRAM, ROOT], True),
    "column norm": (ColumnNorm(), [GRAM, ROOT], True),
    "pivot": (Pivot(), [GRAM, ROOT], True),
    "sparse features": (SparseFeatures(), [GRAM, ROOT], False),
    "frobenius": (Frobenius(), [ROOT], False),
    "csi": (Mixture(0.6), [GRAM, ROOT], True),
    "pre-fitting": (Mixture(1.0), [GRAM, ROOT], True),
    "greedy ridge": (Mixture(1.0, 0.3), [GRAM], True),
    "mixture": (Mixture(0.4, 0.3), [GRAM], True),
}


def oracle(case: Case, name: str) -> Callable[..., Any]:
    weights = {"weights": case.weights} if SCORED[name][2] else {}
    score = SCORED[name][0]
    if isinstance(score, Mixture):
        options = {"Y": case.Y, "rho": score.rho, "kappa": score.kappa, **weights}
        return lambda K, basis, pool: naive.prediction(K, basis, pool, **options)
    return {
        "function space": lambda K, basis, pool: naive.function_space(K, basis, pool, **weights),
        "column norm": lambda K, basis, pool: naive.column_norm(K, basis, pool, **weights),
        "pivot": naive.diagonal,
        "sparse features": naive.sparse_feature,
        "frobenius": lambda K, basis, pool: naive.column_space(K, basis, pool, columns=case.pool),
    }[name]


@pytest.mark.parametrize("name", SCORED)
@few_examples(0.3)
@given(case=cases())
def test_a_pool_is_one_pick_at_a_time(name: str, case: Case) -> None:
    score, forms, weighted = SCORED[name]
    K, count = case.K, min(6, len(case.pool))
    worth = oracle(case, name)
    expected = naive.greedy(K, [case.pool] * count, worth, case.basis)
    n = sure(K, expected, case.basis, [case.pool] * count, worth)
    for form in forms:
        found = case.picks(form, score, count, weighted=weighted)
        # Where digits have worn off, fresh sums are asked for instead.
        t = min(n, len(found.order)) if found.ended == "digits" else n
        assert case.rows_of(found)[:t] == expected.picks[:t]
        np.testing.assert_allclose(found.gains[:t], expected.scores[:t], rtol=1e-6, atol=1e-9)


@given(case=cases())
def test_the_null_baseline_takes_the_longest_columns(case: Case) -> None:
    norms = naive.first_norm(case.K, [], case.pool)
    case = Case(case.X, case.Y, None, case.kernel, [], case.pool, case.cuts)
    for form in (GRAM, ROOT):
        found = case.picks(form, Kronecker(), 4)
        np.testing.assert_allclose(found.gains, np.sort(norms)[::-1][: len(found.gains)], rtol=1e-9)


# ----------------------------------------------------------------------------------- split = Algorithm 2; forms; 15.4-5
@few_examples(0.3)
@given(case=cases(), each=st.integers(1, 4))
def test_a_split_pool_is_algorithm_2_with_that_stream(case: Case, each: int) -> None:
    count = len(case.pool) // each
    case = Case(case.X, case.Y, None, case.kernel, [], case.pool[: each * count], case.cuts)
    steps = naive.split_pool(case.pool, count)
    literal, _ = naive.sgma(case.K, steps)
    n = sure(case.K, literal, [], steps, naive.function_space)
    _, T = naive.sgma(case.K, steps[:n])
    np.testing.assert_allclose(T[literal.picks[:n]], np.eye(n), atol=1e-8)
    for form in (GRAM, ROOT):
        found = case.picks(form, FunctionSpace(), count, groups=np.arange(each * count) // each)
        assert case.rows_of(found)[:n] == literal.picks[:n]
        np.testing.assert_allclose(found.gains[:n], literal.scores[:n], rtol=1e-7)


@pytest.mark.parametrize("name", [name for name, (_, forms, _) in SCORED.items() if len(forms) == 2])
@few_examples(0.3)
@given(case=cases())
def test_forms_agree_while_the_gram_form_has_digits(name: str, case: Case) -> None:
    score, _, weighted = SCORED[name]
    gram, root = (case.picks(form, score, len(case.pool), weighted=weighted) for form in (GRAM, ROOT))
    near = [
        t for t in range(len(gram.order))
        if not np.isclose(gram.gains[t], root.gains[t], rtol=1e-4) or gram.order[t] != root.order[t]
    ]  # fmt: skip
    n = near[0] if near else len(gram.order)
    assert n == len(gram.order) or gram.gains[n] == pytest.approx(root.gains[n], rel=1e-6)  # a tie
    np.testing.assert_allclose(root.gains[:n], gram.gains[:n], rtol=1e-5)


# ------------------------------------------------------------------------------------------- whole rules, 15.6 and 15.7
@few_examples(0.3)
@given(case=cases())
def test_matching_pursuit_kpca_is_sgma_with_all_rows_as_candidates(case: Case) -> None:
    everything = [range(len(case.X))] * 6
    expected, _ = naive.sgma(case.K, everything)
    deflated = naive.matching_pursuit_kpca(case.K, 6)
    problem = problem_of(case.X, n=6, kernel=case.kernel)
    found, _ = select(as_rule("matching-pursuit-kpca"), problem, cut_session(case.cuts))
    n = sure(case.K, expected, [], everything, naive.function_space)
    assert found.basis.rows.tolist()[:n] == expected.picks[:n] == deflated.picks[:n]
    np.testing.assert_allclose(found.gains[:n], expected.scores[:n], rtol=1e-8)
    np.testing.assert_allclose(deflated.scores[:n], expected.scores[:n], rtol=1e-8)


@few_examples(0.3)
@given(case=cases())
def test_frobenius_on_K_is_function_space_on_its_square(case: Case) -> None:
    K, every = case.K, [range(len(case.X))] * 5

    def greedy(X: Float, score: Score, kernel: Any) -> Any:
        rule = Greedy("all rows", AllRows(), score, Fixed(2), ROOT)
        return select(rule, problem_of(X, n=5, kernel=kernel), cut_session(case.cuts))[0]

    columns, squared = greedy(case.X, Frobenius(), case.kernel), greedy(K, FunctionSpace(), Linear())
    expected = naive.frobenius(K, 5)
    score = naive.function_space
    n = sure(K.T @ K, naive.greedy(K.T @ K, every, score), [], every, score)
    assert columns.basis.rows.tolist()[:n] == squared.basis.rows.tolist()[:n] == expected.picks[:n]
    np.testing.assert_allclose(columns.gains[:n], squared.gains[:n], rtol=1e-7)
    np.testing.assert_allclose(columns.gains[:n], expected.scores[:n], rtol=1e-7)


# ------------------------------------------------------------------------------------------------ the residual, 15.2
@given(case=cases())
def test_the_residual_is_positive_and_nothing_on_the_basis(case: Case) -> None:
    K, m, basis = case.K, len(case.X), case.basis
    columns = pool_columns(case.X, None, basis, range(m), case.kernel)
    R, T = columns.pool_residual(), columns.coefficients_of_pool()
    np.testing.assert_allclose(R, naive.residual(K, basis), atol=1e-12)
    np.testing.assert_array_equal(R, R.T)
    assert np.linalg.eigvalsh(R).min() >= -1e-10 * m
    np.testing.assert_allclose(R[basis], 0.0, atol=1e-13)
    np.testing.assert_allclose(T[basis], np.eye(len(basis)), atol=1e-12)
    np.testing.assert_allclose(K[:, basis] @ T.T, naive.nystroem(K, basis), atol=1e-11)
    backwards = pool_columns(case.X, None, basis[::-1], range(m), case.kernel)
    np.testing.assert_allclose(backwards.pool_residual(), R, atol=1e-12)


@pytest.mark.parametrize("name", ["sgma", "incomplete-cholesky", "rpcholesky", "few-sweep", "csi"])
@few_examples(0.3)
@given(case=cases())
def test_the_trace_falls_by_what_was_gained_and_stays_above_the_optimum(name: str, case: Case) -> None:
    problem = problem_of(case.X, case.Y, n=8, kernel=case.kernel)
    rule = as_rule(name, **({"objective": "trace"} if name == "few-sweep" else {}))
    found, _ = select(rule, problem, cut_session(case.cuts, 2))
    picks, m = found.basis.rows.tolist(), len(case.X)
    # Up to the first pivot that is nearly nothing, by which rounding is divided.
    pivots = [naive.residual_diagonal(case.K, picks[:t])[pick] for t, pick in enumerate(picks)]
    n = next((t for t, pivot in enumerate(pivots) if pivot < 1e-4), len(picks))
    G = basis_of(case.X, picks[:n], case.kernel).features(case.X)
    traces = m - np.cumsum((G**2).sum(axis=0))
    expected = [naive.residual_trace(case.K, picks[: t + 1]) for t in range(n)]
    np.testing.assert_allclose(traces, expected, atol=1e-8)
    drops = -np.diff([m, *traces])
    assert np.all(drops > 0)
    assert np.all(traces >= np.array(naive.pca_traces(case.K, n)) - 1e-9)
    if name in ("sgma", "few-sweep"):
        np.testing.assert_allclose(drops, found.gains[:n], rtol=1e-6, atol=1e-8)
    if name == "incomplete-cholesky":
        assert np.all(drops >= found.gains[:n] - 1e-9)  # the pivot is a lower bound of the gain
