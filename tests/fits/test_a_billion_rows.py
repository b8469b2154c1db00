"""What a fit holds before and between its sweeps does not grow with the rows: here are a million and a billion."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from streamkernel import open_table
from streamkernel.engine import ThreadExecutor, machine_of
from streamkernel.engine.session import layout_of
from streamkernel.kinds import KINDS, settings_of
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Moments, draw_rows
from streamkernel.selection import Problem
from streamkernel.selection.rules import RULES, as_rule
from streamkernel.table import Table

MILLION, BILLION = 10**6, 10**9
# Every row is of a member, or all rows are in memory: their plans say so, and are refused where it is too much.
GROWING = {"committee"}
IN_MEMORY = {"csi-lookahead", "matching-pursuit-kpca", "columns"}


def table_of(rows: int, classify: bool = False) -> Table:
    return open_table(f"synthetic://{'checkers' if classify else 'friedman'}?rows={rows}&features=5", classify=classify)


def held(work: Callable[[], object]) -> int:
    """Most bytes of arrays and objects that some work holds at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", sorted(set(KINDS) - GROWING))
def test_a_plan_is_the_same_and_takes_nothing(name: str) -> None:
    kind, machine = KINDS[name], machine_of(ThreadExecutor(2))
    given = {"n_components": 300}

    def planned(rows: int) -> tuple[int, int]:
        table = table_of(rows, kind.classify)
        settings = settings_of(kind, given).for_table(table)
        plan = kind.plan(table, settings, machine, settings.components(table))
        return plan.worker_bytes, plan.driver_bytes

    planned(MILLION)  # imports
    assert held(lambda: planned(BILLION)) < 16 << 20
    # A billion rows have more spans: more states wait to be combined.
    for few, many in zip(planned(MILLION), planned(BILLION), strict=True):
        assert many <= 1.1 * few + (64 << 20), name


def test_draws_cuts_and_marks_take_nothing() -> None:
    table = table_of(BILLION)
    assert held(lambda: draw_rows(table, 50_000, 0, (6,))) < 32 << 20
    assert held(lambda: layout_of(Moments(5, 1), table)) < 8 << 20
    assert held(lambda: seen_by_fit(table)) < 64 << 20
    assert held(lambda: table.slice(BILLION - 10, BILLION).read(BILLION - 10, BILLION)) < 8 << 20


@pytest.mark.parametrize("rule", sorted(set(RULES) - IN_MEMORY))
def test_what_a_rule_draws_beforehand_is_of_few_rows(rule: str) -> None:
    table = table_of(BILLION)
    problem = Problem(table, settings_of(KINDS["ridge"], {"kernel": "gaussian", "metric": "none"}).kernel_template, 50)
    assert held(lambda: as_rule(rule).prefetch(problem)) < 32 << 20
    assert held(lambda: as_rule(rule).steps(problem)) < 32 << 20
