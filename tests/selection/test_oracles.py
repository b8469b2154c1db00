"""Every rule on the card's 40 rows: the picks of its one-at-a-time oracle, gains to 1e-10, however rows are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import Recorded, basis_of, cut_session, select
from rule_table import WITHOUT_ROWS
from slow_cases import slow_but
from strategies import cuts, few_examples

from streamkernel.kernels import Gaussian
from streamkernel.linalg import RidgePath
from streamkernel.reductions import row_uniforms, stream_generator
from streamkernel.selection import RULES, SCORES, Greedy, Problem, Rule, Selection, as_rule
from streamkernel.selection._draws import Drawn, ResidualDraw, UniformDraw
from streamkernel.selection._leverage import Leverage, matching_ridge
from streamkernel.selection._picks import FIRST_RHO
from streamkernel.selection.rpcholesky import proposals_with_replacement
from streamkernel.table import open_table

CARD = naive.card()
X, K = CARD.X, CARD.K
Y = np.column_stack([CARD.y, CARD.t, np.sin(np.arange(40))])
CENTRE, SCALE = Y.mean(axis=0), Y.std(axis=0)
Z = (Y - CENTRE) / SCALE
N, SEED = 7, 5


@dataclass(frozen=True)
class Run:
    """What a rule picked, what its draws had given it, and the ridges that it chose for its projection."""

    found: Selection
    drawn: list[Drawn]
    ridges: list[float]


Expected = tuple[list[int], list[float]]  # picks, and gains of a rule that has any
Oracle = Callable[[Run], Expected]


@contextmanager
def recorded_ridges() -> Iterator[list[float]]:
    ridges, choose = list[float](), RidgePath.choose

    def record(path: RidgePath, scale: Any = None) -> float:
        ridges.append(choose(path, scale))
        return ridges[-1]

    with patch.object(RidgePath, "choose", record):
        yield ridges


def run(rule: Rule, chunks: tuple[int, ...] = (40,), block_rows: int = 40, threads: int = 1) -> Run:
    drawn: list[Drawn] = []
    if isinstance(rule, Greedy):
        draw = Recorded(rule.draw)
        rule, drawn = replace(rule, draw=draw), draw.drawn
    problem = Problem(open_table(X, Y), Gaussian(1.0), N, seed=SEED, centre=CENTRE, scale=SCALE)
    with recorded_ridges() as ridges:
        found, _ = select(rule, problem, cut_session(chunks, block_rows, threads))
    return Run(found, drawn, ridges)


# ---------------------------------------------------------------------------- greedy rules, given what they were given
def replayed(run: Run, score: Callable[..., Any], options: Callable[[int, Drawn], dict[str, Any]]) -> Expected:
    """One pick at a time, round by round, from the pools that were drawn."""
    picks, gains = list[int](), list[float]()
    for round_, (drawn, record) in enumerate(zip(run.drawn, run.found.rounds, strict=True)):
        pool, count = drawn.pool.rows.tolist(), record.stop - record.start
        assert len(set(pool)) == len(pool) >= count
        steps: list[Any] = [pool] * count
        if drawn.groups is not None:
            steps = [[i for i, g in zip(pool, drawn.groups, strict=True) if g == t] for t in range(count)]
        path = naive.greedy(K, steps, score, picks, **options(round_, drawn))
        picks, gains = picks + path.picks, gains + path.scores
    return picks, gains


def scoring(drawn: Drawn) -> dict[str, Any]:
    """Rows that scored, and their weights; a sample in memory has numbers of its own."""
    if drawn.scoring is None:
        return {}
    block = drawn.scoring.read(0, drawn.scoring.n_rows)
    rows = [int(np.flatnonzero((x == X).all(axis=1))[0]) for x in block.X]
    return {"rows": rows, "weights": block.weights}


def by(score: Callable[..., Any], options: Callable[[Drawn], dict[str, Any]] = scoring) -> Oracle:
    return lambda run: replayed(run, score, lambda _, drawn: options(drawn))


def mixture(kappa: float) -> Oracle:
    def oracle(run: Run) -> Expected:
        assert len(run.ridges) == len(run.drawn) - 1
        ridges = [FIRST_RHO, *run.ridges]
        return replayed(
            run, naive.prediction, lambda round_, drawn: dict(Y=Z, kappa=kappa, rho=ridges[round_], **scoring(drawn))
        )

    return oracle


def csi(kappa: float, centred: bool) -> Oracle:
    def drop(K: Any, basis: Any, pool: Any) -> Any:
        J = [
            naive.csi_objective(K, [*basis, *more], Z, kappa=kappa, centred=centred)
            for more in [[], *([i] for i in pool)]
        ]
        return J[0] - np.array(J[1:])

    return by(drop)


SGMA: dict[str, Oracle] = {
    "function-space": by(naive.function_space),
    "column-norm": by(naive.column_norm),
    "pivot": by(naive.diagonal, lambda drawn: {}),
    "sparse-features": by(naive.sparse_feature, lambda drawn: {}),
    "frobenius": by(naive.column_space, lambda drawn: {"columns": drawn.pool.rows}),
    "kronecker": by(naive.first_norm, lambda drawn: {}),
}


def double(rule: Rule, draw: Any = None) -> Rule:
    """Scored in double precision, so that gains have ten digits; with another draw."""
    assert isinstance(rule, Greedy)
    return replace(rule, precision=np.dtype(np.float64), draw=draw or rule.draw)


# ------------------------------------------------------------------------------------------------------ the other rules
def of_path(path: naive.Path) -> Oracle:
    return lambda run: (path.picks, path.scores)


def look_ahead(kappa: float, delta: int, centred: bool) -> Oracle:
    return of_path(naive.csi_look_ahead(K, N, Z, kappa=kappa, delta=delta, centred=centred)[0])


def rpcholesky(block: int, exact: bool) -> Oracle:
    def oracle(run: Run) -> Expected:
        picks: list[int] = []
        for round_, record in enumerate(run.found.rounds):
            d = naive.residual_diagonal(K, picks)
            keys = naive.a_res_keys(row_uniforms(SEED, (3, round_), 0, 40)[:, 0], d)
            proposed = np.argsort(-keys)[:block]
            if exact:
                generator = stream_generator(SEED, (5, round_))
                proposed = proposed[proposals_with_replacement(d[proposed], d.sum(), block, generator)]
                accepted = naive.rpcholesky_block(K, picks, proposed, generator.random(block))
            else:
                accepted = proposed.tolist()
            picks = (picks + accepted)[:N]
            assert record.stop == len(picks)
        return picks, []

    return oracle


def leverage(rule: Leverage) -> Oracle:
    def oracle(run: Run) -> Expected:
        problem = Problem(open_table(X), Gaussian(1.0), N, seed=SEED)
        base = rule.prefetch(problem)
        local, swept = rule._levels(problem)
        S, p = base[:N].tolist(), np.ones(N)
        for level, size in enumerate([*local, *swept], 1):
            asked, u = base[:size], row_uniforms(SEED, (11, level), 0, size)[:, 0]
            if level > len(local):
                asked = np.flatnonzero(row_uniforms(SEED, (11,), 0, 40)[:, 0] < size / 40) if size < 40 else range(40)
                u = row_uniforms(SEED, (11, level), 0, 40)[asked, 0]
            probes = X[base[N:]] if len(base) > N else X[base]
            ridge = rule.ridge or matching_ridge(basis_of(X, S), p, probes, size, N)
            S, p = naive.leverage_draw(K, ridge, S, p, asked, u, N)
        return S, []

    return oracle


def uniform(run: Run) -> Expected:
    return sorted(stream_generator(SEED, (4,)).choice(40, N, replace=False).tolist()), []


def centres() -> tuple[Any, Any]:
    seeds = naive.kmeans_plus_plus(X, stream_generator(SEED, (12, 1)).random(N))
    return naive.kmeans(X, X[seeds], 10 + 3)


def nearest_rows(run: Run) -> Expected:
    C, labels = centres()
    squares = ((X - C[labels]) ** 2).sum(axis=1)
    return [int(min(np.flatnonzero(labels == j), key=lambda i: squares[i])) for j in range(N)], []


FEW = {"candidates": 3}
UNIFORM, RESIDUAL = UniformDraw(3, 2, 10), ResidualDraw(3, 2, 2, 10)  # with sampled scoring rows, weighted
TABLE: dict[str, tuple[Rule, Oracle]] = {
    **{f"sgma {score}": (as_rule("sgma", score=score), SGMA[score]) for score in SCORES},
    **{
        f"sgma {score} {pool}": (as_rule("sgma", score=score, pool=pool, candidates=5, picks=3), SGMA[score])
        for score in SCORES
        for pool in ("split", "shared")
    },
    "csi": (as_rule("csi", candidates=5, picks=3), csi(0.99, True)),
    "csi, a large first pool": (as_rule("csi", kappa=0.9), csi(0.9, True)),
    "csi, not centred": (as_rule("csi", kappa=0.5, centre=False, candidates=5, picks=3), csi(0.5, False)),
    "csi, one pick a sweep": (as_rule("csi", kappa=1.0, candidates=59, picks=1), csi(1.0, True)),
    "csi-lookahead": (as_rule("csi-lookahead", delta=4, kappa=0.9), look_ahead(0.9, 4, True)),
    "csi-lookahead, exact": (as_rule("csi-lookahead", delta=40, centre=False), look_ahead(0.99, 40, False)),
    "csi-lookahead, no columns ahead": (as_rule("csi-lookahead", delta=0), look_ahead(0.99, 0, True)),
    "gp-posterior": (as_rule("gp-posterior", candidates=9), mixture(1.0)),
    "gp-posterior, some picks a sweep": (as_rule("gp-posterior", candidates=5, picks=3), mixture(1.0)),
    "matching-pursuit-kpca": (as_rule("matching-pursuit-kpca"), of_path(naive.matching_pursuit_kpca(K, N))),
    "incomplete-cholesky": (as_rule("incomplete-cholesky"), of_path(naive.incomplete_cholesky(K, N)[0])),
    "incomplete-cholesky, a look a pick": (
        as_rule("incomplete-cholesky", block=1),
        of_path(naive.incomplete_cholesky(K, N)[0]),
    ),
    "incomplete-cholesky, few sweeps": (
        as_rule("incomplete-cholesky", block=4, exact=False),
        of_path(naive.incomplete_cholesky_by_looks(K, N, 4, 0.5)[0]),
    ),
    "rpcholesky": (as_rule("rpcholesky"), rpcholesky(10, True)),
    "rpcholesky, plain": (as_rule("rpcholesky", block=1), rpcholesky(1, True)),
    "rpcholesky-block": (as_rule("rpcholesky-block", block=3), rpcholesky(3, False)),
    "leverage": (as_rule("leverage", ridge=0.3), leverage(Leverage(ridge=0.3))),
    "leverage, by sweeps": (Leverage(ridge=0.3, in_memory=2), leverage(Leverage(ridge=0.3, in_memory=2))),
    "leverage, matching ridge": (as_rule("leverage"), leverage(Leverage())),
    "kmeans": (as_rule("kmeans"), nearest_rows),
    "uniform": (as_rule("uniform"), uniform),
    "few-sweep trace": (as_rule("few-sweep", objective="trace", **FEW), by(naive.function_space)),
    "few-sweep trace, sampled": (double(as_rule("few-sweep", objective="trace"), RESIDUAL), by(naive.function_space)),
    "few-sweep prediction": (double(as_rule("few-sweep", **FEW)), mixture(1.0)),
    "few-sweep prediction, sampled": (double(as_rule("few-sweep"), UNIFORM), mixture(1.0)),
    "few-sweep mixture": (double(as_rule("few-sweep", objective=0.5, **FEW)), mixture(0.5)),
}


def test_the_table_has_every_rule() -> None:
    assert {name.split(",")[0].split()[0] for name in TABLE} | set(WITHOUT_ROWS) == set(RULES)
    assert set(SGMA) == set(SCORES)


# Each score with one of the three ways to draw its pool: no score knows how its rows were drawn.
OTHER_POOLS = {
    f"sgma {score}{pool}"
    for number, score in enumerate(SCORES)
    for at, pool in enumerate(("", " split", " shared"))
    if at != number % 3
}


@pytest.mark.parametrize("name", slow_but(TABLE.keys() - OTHER_POOLS, TABLE))
@few_examples(0.1)
@example(chunks=(1,) * 40, block_rows=1, threads=2)
@given(chunks=cuts(40), block_rows=st.sampled_from([1, 3, 40]), threads=st.sampled_from([1, 2]))
def test_picks_and_gains_are_the_oracles(name: str, chunks: tuple[int, ...], block_rows: int, threads: int) -> None:
    rule, oracle = TABLE[name]
    made = run(rule, chunks, block_rows, threads)
    picks, gains = oracle(made)
    assert made.found.basis.rows.tolist() == picks
    assert len(picks) == N
    np.testing.assert_array_equal(made.found.basis.points, X[picks])
    np.testing.assert_allclose(made.found.gains, gains, rtol=1e-10, atol=1e-10)
    for record in made.found.rounds:
        if record.residual_trace is not None:
            left = naive.residual_trace(K, picks[: record.start])
            np.testing.assert_allclose(record.residual_trace, left, atol=1e-10 * 40)


@settings(max_examples=4)
@example(chunks=(1,) * 40, block_rows=1)
@given(chunks=cuts(40), block_rows=st.sampled_from([1, 3, 40]))
def test_centres_are_the_oracles(chunks: tuple[int, ...], block_rows: int) -> None:
    found = run(as_rule("kmeans", nearest=False), chunks, block_rows).found
    np.testing.assert_allclose(found.basis.points, centres()[0], atol=1e-10)


@pytest.mark.parametrize("objective", ["prediction", 0.5])
def test_single_precision_scores_pick_the_same(objective: Any) -> None:
    rule = as_rule("few-sweep", objective=objective, **FEW)
    single, whole = run(rule).found, run(double(rule)).found
    assert single.basis.rows.tolist() == whole.basis.rows.tolist()
    np.testing.assert_allclose(single.gains, whole.gains, rtol=1e-4)
