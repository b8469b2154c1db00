"""A tolerance costs sweeps for its certificates: the plan, made before any of it, has them all."""

from __future__ import annotations

from typing import Any

import data_sets
import pytest
from problems import problem_of, select

from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.selection import as_rule
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table


def sweeps(tol: float, n: int, **options: Any) -> tuple[int, int, str]:
    """Sweeps of the fit and of its plan, and why the choice ended."""
    data = data_sets.friedman(3000, 5)
    table = open_table(data.X, data.y)
    settings = RidgeSettings(n_components=n, tol=tol, kernel="gaussian", metric="none", alpha="gcv", **options)
    session = Session(ThreadExecutor(1))
    model = fit_ridge(table, settings, session)
    return len(session.records), plan_ridge(table, settings, Machine(0, 1)).sweeps, model.config["ended"]


@pytest.mark.parametrize(
    ("options", "tol", "n", "ended"),
    [
        ({"rule": "few-sweep"}, 0.02, 16, "size"),
        ({"rule": "few-sweep"}, 0.3, 100, "tolerance"),
        ({"rule": "few-sweep", "objective": "trace"}, 0.1, 16, "tolerance"),
        ({"rule": "few-sweep", "objective": "trace"}, 0.02, 16, "size"),
        ({"rule": "sgma"}, 0.02, 16, "size"),
        ({"rule": "sgma"}, 0.3, 16, "tolerance"),
        ({"rule": "uniform"}, 0.1, 50, "size"),
        ({"rule": "rpcholesky-block"}, 0.1, 50, "tolerance"),
    ],
    ids=str,
)
def test_the_fit_sweeps_no_more_than_its_plan(options: dict[str, Any], tol: float, n: int, ended: str) -> None:
    fitted, planned, why = sweeps(tol, n, **options)
    assert why == ended
    assert fitted <= planned


def test_nothing_chosen_needs_no_sweep_where_the_diagonal_is_constant() -> None:
    data = data_sets.friedman(1000, 5)
    selection, session = select(as_rule("few-sweep"), problem_of(data.X, data.y, n=30, tol=0.2))
    assert selection.rounds[0].residual_trace == 1000.0
    assert "residual trace of 0 functions" not in [record.name for record in session.records]
