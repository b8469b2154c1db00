"""A table without statistics is fitted in as many sweeps as one that has them, with the same bits."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from slow_cases import slow_but

from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.fits.steps import _first_sweep
from streamkernel.fits.steps._first_sweep import statistics_and_rows
from streamkernel.reductions import Moments
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table, open_table
from streamkernel.table.scaler import Scaler
from streamkernel.type_aliases import AnyDType

Array = np.ndarray[Any, np.dtype[Any]]

M = 600
rng = np.random.default_rng(0)
X = rng.standard_normal((M, 4)) * [1.0, 5.0, 0.1, 2.0] + [0.0, 1e3, 0.0, -1e5]
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(M)
repeated = np.repeat(np.arange(M // 5), 5)
jumps = np.where(np.arange(M)[:, None] < 100, 0.0, 1e9)

pytestmark = pytest.mark.filterwarnings(
    "ignore:only .* basis functions", "ignore:about .* rows are distinct", "ignore:.*constant"
)

TABLES: dict[str, tuple[dict[str, Any], bool]] = {
    "far from 0": ({"X": X, "y": y}, True),
    "in order of a column": ({"X": X[np.argsort(X[:, 1])], "y": y[np.argsort(X[:, 1])]}, True),
    "float32": ({"X": X.astype(np.float32), "y": y}, True),
    "whole numbers": ({"X": np.round(1000 * X).astype(np.int32), "y": y}, True),
    "classes": ({"X": X, "y": y > 0.0, "classify": True}, True),
    "sparse": ({"X": sp.random(M, 30, 0.2, format="csr", random_state=1), "y": y, "sparse": True}, True),
    "weights that sum to few": ({"X": X, "y": y, "weights": rng.uniform(0.0, 1.0, M)}, True),
    "targets far from 0": ({"X": X, "y": np.stack([y, y + 1e9], axis=1)}, True),
    "first rows of another kind": ({"X": X + jumps, "y": y + jumps[:, 0]}, False),
    "few values": ({"X": rng.integers(0, 4, (M, 2)).astype(float), "y": y}, False),
    "repeated": ({"X": X[repeated], "y": y[repeated]}, False),
    "nearly repeated": (
        {"X": X[repeated] * (1.0 + 1e-9 * rng.standard_normal((M, 4))), "y": y[repeated]},
        False,
    ),
    "weights as of repeated rows": ({"X": X, "y": y, "weights": rng.integers(0, 5, M).astype(float)}, False),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "standard": {"lengthscale": 1.5},
    "none": {"lengthscale": 3.0, "scale": "none"},
    "ranks": {"lengthscale": "median", "scale": "rank"},
    "folds": {"lengthscale": "auto", "alpha": "cv"},
    "csi": {"lengthscale": 1.5, "rule": "csi"},
}


def _with_statistics(table: Table) -> Table:
    plain = table.without_targets() if table.classes is not None else table
    found = Session(ThreadExecutor(1)).sweep(Moments.of(plain, plain.n_targets), plain, "statistics")
    return replace(table, statistics=found)


def _names(session: Session) -> list[str]:
    return [record.name for record in session.records]


# The settings in turn over the tables, and all of them on the first one.
QUICK = {*zip(TABLES, cycle(SETTINGS), strict=False), *product([next(iter(TABLES))], SETTINGS)}


@pytest.mark.parametrize(("of", "setting"), slow_but(QUICK, product(TABLES, SETTINGS)))
def test_fits_have_the_bits_of_a_table_with_statistics(of: str, setting: str) -> None:
    (rows, apart), options = TABLES[of], SETTINGS[setting]
    table = open_table(**rows)
    if table.sparse and options.get("scale", "standard") != "standard":
        pytest.skip("sparse rows are scaled by their deviations alone")
    settings = RidgeSettings(n_components=8, **{"metric": "none", "kernel": "gaussian", "alpha": "gcv", **options})
    estimator = "ridge" if table.classes is None else "ridge-classifier"
    found, known = Session(ThreadExecutor(2)), Session(ThreadExecutor(2))
    model = fit_ridge(table, settings, found, estimator=estimator)
    expected = fit_ridge(_with_statistics(table), settings, known, estimator=estimator)
    assert model.arrays.keys() == expected.arrays.keys() >= {"dual_coef"}
    for name, values in expected.arrays.items():
        np.testing.assert_array_equal(model.arrays[name], values, err_msg=name)
    further = [name for name in _names(found) if name == "count of repeated rows"]
    assert [name for name in _names(found) if name not in further] == _names(known)
    assert bool(further) != apart
    if apart:
        assert len(found.records) == plan_ridge(table, settings, Machine(0, 2)).sweeps


def test_rows_that_are_apart_only_less_the_means_of_the_first_ones_are_counted_again() -> None:
    """Numbers of two sizes: less the means of all rows the small ones are equal, and were said to be copies."""
    z = rng.standard_normal((3000, 3))
    large = np.arange(3000) >= 2700
    table = open_table(np.where(large[:, None], 1.0 + z, 1e-8 * np.exp(3.0 * z)), large, classify=True)
    settings = RidgeSettings(n_components=20, metric="none", kernel="gaussian", lengthscale=1.5, alpha="gcv")
    found, known = Session(ThreadExecutor(2)), Session(ThreadExecutor(2))
    with pytest.warns(UserWarning, match="rows are distinct"):
        model = fit_ridge(table, settings, found, estimator="ridge-classifier")
    with pytest.warns(UserWarning, match="rows are distinct"):
        expected = fit_ridge(_with_statistics(table), settings, known, estimator="ridge-classifier")
    assert (_names(found)[1], len(found.records)) == ("count of repeated rows", len(known.records) + 1)
    np.testing.assert_array_equal(model.arrays["dual_coef"], expected.arrays["dual_coef"])


@pytest.mark.parametrize("options", [{"scale": "rank"}, {"metric": "diagonal"}], ids=["ranks", "metric"])
def test_the_plan_counts_rows_in_double_once(options: dict[str, Any]) -> None:
    """Rows for ranks and metrics are fetched as stored, whether the store has statistics or not."""
    table = replace(open_table(X, y), dtype=np.dtype(np.float32))
    settings = RidgeSettings(n_components=20, lengthscale="auto", kernel="gaussian", **{"metric": "none", **options})
    plans = [plan_ridge(each, settings, Machine(0, 2)) for each in (table, _with_statistics(table))]
    found, known = (next(step for step in plan.steps if step.name == "gather sampled rows") for plan in plans)
    moments = Moments.of(table, 1)
    assert found.state_bytes == known.state_bytes + moments.state_bytes()
    assert found.scratch_bytes == known.scratch_bytes + moments.scratch_bytes(M)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_plan_has_room_for_the_statistics_of_each_task(workers: int) -> None:
    """Gathered rows are parts of one sum, but each task has the statistics of all columns, however many these are."""
    rows = sp.csr_matrix((np.ones(5000), np.arange(5000), np.arange(5001)), shape=(5000, 500_000))
    table = open_table(rows, np.arange(5000.0), sparse=True)
    settings = RidgeSettings(n_components=20, metric="none", kernel="gaussian", lengthscale=1.0)
    found, known = (plan_ridge(each, settings, Machine(workers, 2)) for each in (table, _with_statistics(table)))
    more = found.driver_bytes - known.driver_bytes + found.worker_bytes - known.worker_bytes
    assert more > 7 * Moments.of(table, 1).state_bytes()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("block", [np.float32, np.float64])
def test_rows_as_stored_become_those_of_blocks_once_the_scaler_is_known(dtype: str, block: AnyDType) -> None:
    values = rng.integers(0, 255, (5000, 3)).astype(dtype)
    table = replace(open_table(values, np.arange(5000.0)), dtype=np.dtype(block))
    scaled = table.with_scaler(Scaler(np.full(3, 90.3), np.full(3, 41.7)))
    session, rows = Session(ThreadExecutor(2)), np.arange(4999, -1, -3)
    _, first = statistics_and_rows(table, rows, session, centred=True)
    cache = first.of_blocks(scaled)
    held = cache.held(rows)
    assert (held.X.dtype, len(session.records)) == (block, 1)
    np.testing.assert_array_equal(held.X, scaled.read(0, 5000).X[rows])
    np.testing.assert_array_equal(held.Y[:, 0], rows)
    cache.fetch(np.arange(10))
    np.testing.assert_array_equal(cache.get(np.arange(10)).X, scaled.read(0, 10).X)


def test_rows_are_not_told_apart_at_means_that_are_far_from_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_first_sweep, "_ROWS", 2)
    far = np.where(np.arange(M) < 2, 0.0, 1e9)
    for targets, counted in ((y, True), (y + far, False)):
        session = Session(ThreadExecutor(1))
        _, cache = statistics_and_rows(open_table(X, targets), np.arange(0, M, 7), session, centred=True)
        assert (cache.repeats is not None) == counted
