"""Rules that are given folds do not look at targets of validation folds: an error on these is then honest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from problems import problem_of, select
from rule_table import TABLE, title

from streamkernel.selection import as_rule
from streamkernel.selection._draws import UniformDraw
from streamkernel.selection.greedy import Greedy
from streamkernel.selection.problem import Problem
from streamkernel.selection.rounds import Geometric
from streamkernel.selection.scores import Mixture
from streamkernel.table import Folds
from streamkernel.table.row_keys import row_keys

RULES = [row for row in TABLE if row[0] in ("few-sweep", "csi", "csi-lookahead", "gp-posterior", "uniform", "kmeans")]
X = np.random.default_rng(0).standard_normal((300, 2))
FOLDS = Folds(3)
HELD = FOLDS.held_out(row_keys(X))


def problem(Y: Any, **options: Any) -> Problem:
    plain = problem_of(X, Y, n=20, **options)
    return replace(plain, table=plain.table.with_keys(), folds=FOLDS)


@pytest.mark.parametrize(("name", "options"), RULES, ids=[title(*row) for row in RULES])
def test_targets_of_validation_folds_change_no_pick(name: str, options: dict[str, Any]) -> None:
    Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2], 1)
    other = np.where(HELD[:, None], 100 * np.cos(5 * X), Y)
    rule = as_rule(name, **options)
    found = [select(rule, problem(targets))[0] for targets in (Y, other)]
    assert len(found[0].basis)
    np.testing.assert_array_equal(found[0].basis.rows, found[1].basis.rows)
    np.testing.assert_array_equal(found[0].gains, found[1].gains)
    if found[0].gaps is not None and found[1].gaps is not None:
        np.testing.assert_array_equal(found[0].gaps.relative, found[1].gaps.relative)


@pytest.mark.parametrize(("name", "options"), [("few-sweep", {}), ("csi", {}), ("gp-posterior", {})])
def test_targets_of_other_rows_do(name: str, options: dict[str, Any]) -> None:
    Y = np.sin(2 * X[:, 0])
    other = np.where(~HELD, 100 * np.cos(5 * X[:, 1]), Y)
    found = [select(as_rule(name, **options), problem(targets))[0].basis.rows for targets in (Y, other)]
    assert not np.array_equal(found[0], found[1])


def test_as_many_rows_score_as_without_folds_where_there_are_enough() -> None:
    """More are drawn, and those of validation folds left out; what is left stands for all rows."""
    rule = Greedy("few", UniformDraw(4, 2, 60), Mixture(1.0, rho=None), Geometric())
    with_folds = problem(X[:, 0])
    found, _ = select(rule, with_folds)
    plain, _ = select(rule, replace(with_folds, folds=None))
    assert [each.scoring_rows for each in found.rounds] == [each.scoring_rows for each in plain.rounds]
    # The plan counts what is drawn.
    draw = UniformDraw(4, 2, 60)
    assert draw.scoring_rows(with_folds, 20) == 60
    assert 60 / 0.625 < (draw._drawn_scoring(with_folds, 20) or 0) <= len(X)


def test_where_all_rows_are_held_out_they_score_after_all() -> None:
    """Copies of one row share its fold; a rule must still find its function."""
    same = np.repeat(X[np.flatnonzero(HELD)[:1]], 50, axis=0)
    plain = problem_of(same, np.ones(50), n=3)
    for name in ("few-sweep", "csi-lookahead"):
        found, _ = select(as_rule(name), replace(plain, table=plain.table.with_keys(), folds=FOLDS))
        assert len(found.basis) == 1
