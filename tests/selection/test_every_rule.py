"""What holds for every rule of the table: one answer however the rows are stored, and a good end on poor rows."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from problems import select
from sklearn.metrics.pairwise import rbf_kernel

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.selection import RULES, SCORES, Problem, Selection, as_rule
from streamkernel.table import open_table

# name, options: each row of the table of rules, and each score of sgma.
TABLE: list[tuple[str, dict[str, Any]]] = [
    ("few-sweep", {"objective": "trace"}),
    ("few-sweep", {"objective": "prediction"}),
    ("few-sweep", {"objective": 0.5}),
    *(("sgma", {"score": score}) for score in SCORES),
    ("sgma", {"pool": "split", "picks": 4, "candidates": 8}),
    ("sgma", {"pool": "shared", "picks": 4, "candidates": 8}),
    ("csi", {}),
    ("csi", {"kappa": 0.5, "centre": False, "candidates": 5, "picks": 3}),
    *((name, {}) for name in RULES if name not in ("few-sweep", "sgma", "csi")),
]
every_rule = pytest.mark.parametrize(
    ("name", "options"), TABLE, ids=[" ".join([name, *map(str, options.values())]) for name, options in TABLE]
)


def rows(m: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2])


def choose(
    name: str,
    options: dict[str, Any],
    X: Any,
    Y: Any,
    n: int,
    *,
    chunk: int | None = None,
    threads: int = 1,
    **more: Any,
) -> Selection:
    """What the rule picks from these rows, held in chunks of `chunk` rows."""
    if chunk is not None:
        X = da.from_array(X, chunks=(chunk, X.shape[1]))
    table = open_table(X, Y)
    spread = np.zeros(0) if Y is None else Y.std(axis=0)
    centre, scale = np.zeros(0) if Y is None else Y.mean(axis=0), np.where(spread > 0, spread, 1.0)
    problem = Problem(table, Gaussian(1.0), n, centre=centre, scale=scale, **more)
    rule, session = as_rule(name, **options), Session(ThreadExecutor(threads))
    found, _ = select(rule, problem, session)
    if name != "rpcholesky" and found.ended == "size" and len(set(map(tuple, np.asarray(X)))) == len(X):
        # Rejected proposals add looks, and so do candidates that depend on each other.
        assert len(session.records) <= sum(step.times for step in rule.steps(problem) if step.where == "sweep")
    return found


def residual_trace(X: Any, picked: Any) -> float:
    K = rbf_kernel(X.astype(np.float64), gamma=0.5)
    C = K[:, picked]
    return float(np.trace(K) - np.trace(np.linalg.pinv(K[np.ix_(picked, picked)], rcond=1e-12) @ (C.T @ C)))


@every_rule
def test_chunks_and_threads_do_not_change_the_picks(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(90)
    once = choose(name, options, X, Y, 8)
    assert len(set(once.basis.rows.tolist())) == len(once.basis) == 8
    assert once.ended == "size"
    for chunk, threads in ((1, 1), (37, 2), (90, 2)):
        again = choose(name, options, X, Y, 8, chunk=chunk, threads=threads)
        np.testing.assert_array_equal(again.basis.rows, once.basis.rows)
        np.testing.assert_array_equal(again.basis.points, once.basis.points)
        np.testing.assert_allclose(again.gains, once.gains, rtol=1e-6)


@every_rule
def test_another_seed_is_another_draw(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(300)
    first, second = (choose(name, options, X, Y, 12, seed=seed) for seed in (1, 2))
    # The null baseline's one pool holds all of so few rows.
    drawn = name not in ("matching-pursuit-kpca", "incomplete-cholesky", "csi-lookahead") and "kronecker" not in str(
        options
    )
    assert np.array_equal(first.basis.rows, second.basis.rows) != drawn


@every_rule
def test_picks_are_rows_and_leave_less_and_less(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(200, 3)
    found = choose(name, options, X, Y, 20)
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])
    left = [residual_trace(X, found.basis.rows[:t]) for t in range(1, 21)]
    assert np.all(np.diff(left) < 0)


@every_rule
def test_duplicate_rows_end_with_the_rank(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(6, 1)
    X, Y = np.tile(X, (10, 1)), np.tile(Y, (10, 1))
    found = choose(name, options, X, Y, 20)
    distinct = len(np.unique(X[found.basis.rows], axis=0))
    assert distinct == len(found.basis) <= 6
    assert found.ended == "rank"


@every_rule
def test_rows_all_alike(name: str, options: dict[str, Any]) -> None:
    found = choose(name, options, np.ones((30, 2)), np.ones((30, 1)), 5)
    assert len(found.basis) == 1
    assert found.ended == "rank"


@every_rule
def test_fewer_rows_than_candidates(name: str, options: dict[str, Any]) -> None:
    """Every row can become a function, and the residual is then nothing."""
    X, Y = rows(9, 2)
    found = choose(name, options, X, Y, 9, chunk=4)
    assert sorted(found.basis.rows.tolist()) == list(range(9))


@every_rule
def test_single_precision_rows_and_a_constant_column(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(150, 4)
    X = np.column_stack([X, np.full(150, 7.0)]).astype(np.float32)
    found = choose(name, options, X, Y, 10)
    assert found.basis.points.dtype == np.float32
    assert len(found.basis) == 10
    assert np.isfinite(found.gains).all()


@every_rule
def test_without_targets(name: str, options: dict[str, Any]) -> None:
    X, _ = rows(120, 5)
    options = {**options, "has_targets": False}
    assert len(choose(name, options, X, None, 8).basis) == 8


@every_rule
def test_a_tolerance_ends_early(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(200, 6)
    found = choose(name, options, X, Y, 60, tol=0.3)
    left = residual_trace(X, found.basis.rows)
    assert left <= 0.3 * 200
    assert len(found.basis) < 60 or found.ended == "size"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nonsense", {}, "known rules are few-sweep, sgma, csi"),
        ("uniform", {"pool": "split"}, "the rule 'uniform' has no option 'pool'; it has none"),
        ("rpcholesky", {"picks": 3}, "has no option 'picks'; its options are block"),
        ("sgma", {"score": "best"}, "score must be one of function-space, column-norm"),
        ("sgma", {"pool": "wide"}, "pool must be 'single', 'split' or 'shared'"),
        ("sgma", {"quantile": 1.0}, "quantile = 1.0 is no probability below 1"),
        ("sgma", {"candidates": 0}, "candidates must be a whole number > 0, not 0"),
        ("csi", {"kappa": 2.0}, "in [0, 1], not 2.0"),
        ("csi", {"picks": 1.5}, "picks must be a whole number > 0, not 1.5"),
    ],
)
def test_wrong_names_and_options(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        as_rule(name, **options)
    assert said in str(caught.value)
