"""What holds for every rule of the table: one answer however the rows are stored, and a good end on poor rows."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from problems import cut_session, select
from rule_table import ALGORITHMS, CASES, FIRST_ALGORITHMS, TABLE, WITHOUT_ROWS, title
from sklearn.metrics.pairwise import rbf_kernel

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NonFiniteDataError, ParameterError
from streamkernel.kernels import Gaussian, Kernel, Linear
from streamkernel.selection import RULES, Problem, Selection, as_rule
from streamkernel.table import open_table

every_rule = pytest.mark.parametrize(("name", "options"), CASES)
first_algorithms = pytest.mark.parametrize(("name", "options"), FIRST_ALGORITHMS)
# What the score has no say in.
every_algorithm = pytest.mark.parametrize(("name", "options"), ALGORITHMS, ids=[title(*row) for row in ALGORITHMS])


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
    kernel: Kernel | None = None,
    **more: Any,
) -> Selection:
    """What the rule picks from these rows, stored and swept in chunks of `chunk` rows."""
    session = Session(ThreadExecutor(threads))
    distinct = len(set(map(tuple, np.asarray(X)))) == len(X)
    if chunk is not None:
        X = da.from_array(X, chunks=(chunk, X.shape[1]))
        session = cut_session((chunk,), chunk, threads)
    table = open_table(X, Y)
    spread = np.zeros(0) if Y is None else Y.std(axis=0)
    centre, scale = np.zeros(0) if Y is None else Y.mean(axis=0), np.where(spread > 0, spread, 1.0)
    problem = Problem(table, kernel or Gaussian(1.0), n, centre=centre, scale=scale, **more)
    rule = as_rule(name, **options)
    found, _ = select(rule, problem, session)
    if name != "rpcholesky" and found.ended == "size" and distinct:
        # Rejected proposals add looks, and so do candidates that depend on each other.
        assert len(session.records) <= sum(step.times for step in rule.steps(problem) if step.where == "sweep")
    return found


def picks_rows(options: dict[str, Any]) -> bool:
    """Centres of clusters are no rows."""
    return bool(options.get("nearest", True))


def residual_trace(X: Any, points: Any) -> float:
    K, C = (rbf_kernel(points.astype(np.float64), Z.astype(np.float64), gamma=0.5) for Z in (points, X))
    return float(len(X) - np.trace(np.linalg.pinv(K, rcond=1e-12) @ (C @ C.T)))


def test_the_table_has_every_rule() -> None:
    assert {name for name, _ in TABLE} | set(WITHOUT_ROWS) == set(RULES)


@every_rule
def test_chunks_and_threads_do_not_change_the_picks(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(23)
    once = choose(name, options, X, Y, 8)
    assert len(np.unique(once.basis.points, axis=0)) == len(once.basis) == 8
    assert once.ended == "size"
    # Blocks of two rows, and one of a single row.
    again = choose(name, options, X, Y, 8, chunk=2, threads=2)
    np.testing.assert_array_equal(again.basis.rows, once.basis.rows)
    np.testing.assert_allclose(again.basis.points, once.basis.points, rtol=0.0 if picks_rows(options) else 1e-12)
    # Of the default rule with targets in single precision.
    np.testing.assert_allclose(again.gains, once.gains, rtol=1e-5 if name == "few-sweep" else 1e-8)


@every_algorithm
def test_another_seed_is_another_draw(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(600)
    first, second = (choose(name, options, X, Y, 12, seed=seed) for seed in (1, 2))
    drawn = name not in ("matching-pursuit-kpca", "incomplete-cholesky", "csi-lookahead")
    # So few rows are all in the null baseline's one pool, and in the first one of csi.
    drawn = drawn and (options.get("score") != "kronecker" or "pool" in options) and (name != "csi" or options != {})
    assert np.array_equal(first.basis.points, second.basis.points) != drawn


@first_algorithms
def test_picks_are_rows_and_leave_less_and_less(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(200, 3)
    found = choose(name, options, X, Y, 20)
    if picks_rows(options):
        np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])
    left = [residual_trace(X, found.basis.points[:t]) for t in range(1, 21)]
    assert np.all(np.diff(left) < 0)


@first_algorithms
def test_duplicate_rows_end_with_the_rank(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(6, 1)
    X, Y = np.tile(X, (4, 1)), np.tile(Y, (4, 1))
    for chunk in (None, 5):
        found = choose(name, options, X, Y, 20, chunk=chunk)
        distinct = len(np.unique(found.basis.points.round(12), axis=0))
        # Draws that ask for no residual may miss a row.
        assert (
            distinct == len(found.basis) <= 6 if name in ("uniform", "leverage") else distinct == len(found.basis) == 6
        )
        assert found.ended == "rank"
        assert np.isfinite(found.gains).all()


@every_algorithm
def test_a_kernel_of_low_rank_ends_with_it(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(80, 7)
    found = choose(name, options, X, Y, 10, kernel=Linear())
    assert (len(found.basis), found.ended) == (3, "rank")
    assert found.basis.residual(X).max() < 1e-9


@every_algorithm
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=["gaussian", "linear"])
def test_rows_all_alike(name: str, options: dict[str, Any], kernel: Kernel) -> None:
    found = choose(name, options, np.ones((30, 2)), np.ones((30, 1)), 5, kernel=kernel)
    assert (len(found.basis), found.ended) == (1, "rank")


@every_algorithm
def test_fewer_rows_than_candidates(name: str, options: dict[str, Any]) -> None:
    """Every row can become a function, and the residual is then nothing."""
    X, Y = rows(9, 2)
    for chunk in (None, 4):
        found = choose(name, options, X, Y, 9, chunk=chunk)
        assert len(found.basis) == 9
        np.testing.assert_allclose(np.sort(found.basis.points, axis=0), np.sort(X, axis=0), atol=1e-14)
    assert len(choose(name, options, X[:1], Y[:1], 1).basis) == 1


@every_algorithm
def test_single_precision_rows_are_exact_rows(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(150, 4)
    X = X.astype(np.float32)
    found, double = (choose(name, options, some, Y, 10) for some in (X, X.astype(np.float64)))
    assert found.basis.points.dtype == np.float32
    assert len(found.basis) == 10
    np.testing.assert_array_equal(found.basis.rows, double.basis.rows)
    np.testing.assert_allclose(found.gains, double.gains, rtol=1e-12)


@every_algorithm
def test_a_constant_column_carries_nothing(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(150, 4)
    found, wide = (choose(name, options, some, Y, 10) for some in (X, np.column_stack([X, np.full(150, 7.0)])))
    np.testing.assert_array_equal(wide.basis.rows, found.basis.rows)
    np.testing.assert_allclose(wide.gains, found.gains, rtol=1e-9)


@every_algorithm
@pytest.mark.parametrize("Y", [None, np.full((120, 2), 3.0)], ids=["none", "constant"])
def test_targets_that_tell_nothing(name: str, options: dict[str, Any], Y: Any) -> None:
    X, _ = rows(120, 5)
    found = choose(name, {**options, "has_targets": Y is not None}, X, Y, 8)
    assert len(found.basis) == 8
    assert np.isfinite(found.gains).all()


@pytest.mark.parametrize("name", ["few-sweep", "uniform"], ids=["of a sweep", "of rows that are gathered"])
def test_what_is_not_finite_is_refused(name: str) -> None:
    X, Y = rows(60, 5)
    X[33, 1] = np.nan
    with pytest.raises(NonFiniteDataError, match="row 33"):
        choose(name, {}, X, Y, 8)


@every_algorithm
def test_a_tolerance_ends_early(name: str, options: dict[str, Any]) -> None:
    X, Y = rows(200, 6)
    found = choose(name, options, X, Y, 60, tol=0.3)
    left = residual_trace(X, found.basis.points)
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
