"""Times of plans: what they are made of, for every kind, and the refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from streamkernel import KernelRidge, Nystroem
from streamkernel import plan as plan_of_fit
from streamkernel.engine import Machine, Plan, Step
from streamkernel.errors import ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.fits import plan_ridge
from streamkernel.fits.steps.plan_steps import _as_a_rule
from streamkernel.kernels import Gaussian, Matern
from streamkernel.kinds import KINDS, settings_of
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table, open_table
from streamkernel.table.statistics import ColumnStatistics, TableStatistics
from streamkernel.timing import (
    BUILT_IN,
    Slots,
    plan_seconds,
    read_rates,
    scaling,
    worker_counts,
    write_rates,
)
from streamkernel.timing.rates import PLACE, VERSION, default_place
from streamkernel.timing.schedule import SweepCost, sweep_seconds

RIDGE = RidgeSettings(n_components=1000, kernel="gaussian", metric="none", alpha="gcv")


def shaped(rows: int, features: int = 20, dtype: Any = np.float32) -> Table:
    """A table without its rows."""
    return open_table(da.zeros((rows, features), chunks=(65_536, -1), dtype=dtype), da.zeros(rows, chunks=65_536))


def ridge(rows: int, machine: Machine | None = None, **changes: Any) -> Plan:
    return plan_ridge(shaped(rows), replace(RIDGE, **changes), machine or Machine(1, 1))


def test_more_workers_take_less_time_and_more_of_it_together() -> None:
    rows = scaling(lambda machine: ridge(10_000_000, machine), [1, 2, 4, 16, 64], BUILT_IN)
    seconds, efficiency = ([getattr(each, name) for each in rows] for name in ("seconds", "efficiency"))
    assert seconds == sorted(seconds, reverse=True)
    assert efficiency == sorted(efficiency, reverse=True)
    assert efficiency[0] == 1.0
    assert all(0.0 < each <= 1.0 for each in efficiency)
    for each in rows:
        assert each.efficiency == pytest.approx(seconds[0] / (each.workers * each.seconds))
        assert each.worker_bytes == ridge(10_000_000, Machine(each.workers, 1)).worker_bytes
    # A sealed state is sent once for each leaf, or nearly: to the driver by few workers, between the workers by many.
    # Of these sixty get the rows that score candidates, where four would.
    final = next(step for step in ridge(10_000_000).steps if step.name == "final sweep")
    sent = final.leaves * 4 * 1002 * 1003
    assert all(sent < each.network_bytes < 1.15 * sent for each in rows[:-1])
    assert sent < rows[-1].network_bytes < 1.45 * sent


def test_seconds_grow_with_what_they_are_made_of() -> None:
    def of(rates: Any = BUILT_IN, rows: int = 1_000_000, **changes: Any) -> float:
        return plan_seconds(ridge(rows, **changes), rates, Slots(1)).seconds

    least = of()
    assert of(rows=2_000_000) > 1.8 * least
    assert of(n_components=2000) > 2 * least
    assert of(BUILT_IN.changed(algebra_flops=1e8)) > least
    assert of(BUILT_IN.changed(sums=tuple(each.changed(flops=1e9) for each in BUILT_IN.sums))) > 2 * least
    slower = tuple(each.changed(seconds=1e-7) for each in BUILT_IN.kernels)
    assert of(BUILT_IN.changed(kernels=slower)) > 2 * least
    # Rows are read behind the work, unless reading is the longer.
    assert of(BUILT_IN.changed(read_bytes=1e8)) == pytest.approx(least, rel=0.02)
    assert of(BUILT_IN.changed(read_bytes=1e5)) > 10 * least


def test_the_final_sweep_is_the_syrk_and_its_kernel_block() -> None:
    none = {"sweep_seconds": 0.0, "task_seconds": 0.0, "check_seconds": 0.0}
    rates = BUILT_IN.changed(**none, network_bytes=1e30, memory_bytes=1e30)
    plan = ridge(1_000_000)
    at = [step.name for step in plan.steps].index("final sweep")
    entry, flops = rates.entry_seconds("gaussian", "float32", 20), rates.sum_flops("float32", 1000)
    whole = 1000 * entry + 1002**2 / flops + plan.table.row_bytes / rates.decode_bytes
    row = whole + 31 * (2 * 1000 - 31) / flops  # blocks are whitened of one function in 32, as for a usual basis
    assert plan_seconds(plan, rates, Slots(1)).steps[at] == pytest.approx(1e6 * row, rel=1e-6)


def test_the_part_that_is_a_guess_is_told() -> None:
    [plain] = scaling(lambda machine: ridge(1_000_000, machine), [1], BUILT_IN)
    [searched] = scaling(lambda machine: ridge(1_000_000, machine, metric="learned"), [1], BUILT_IN)
    assert plain.rough_seconds < 0.2 * plain.seconds
    assert searched.rough_seconds > plain.rough_seconds
    assert plain.sweep_seconds < plain.seconds


def test_a_thousand_workers_share_a_fit_with_its_searches() -> None:
    """A billion rows, m = 1e9, n = 1,000, with built-in rates: statistics of columns are known, as after `ingest`."""
    table, some = shaped(10**9), np.random.default_rng(0).standard_normal((100, 20))
    known = TableStatistics(*(replace(ColumnStatistics.of(some[:, :width]), count=10**9) for width in (20, 1)))
    table, settings = replace(table, statistics=known), RidgeSettings(n_components=1000)
    many = scaling(lambda machine: plan_ridge(table, settings, machine), [1000], BUILT_IN)[0]
    assert many.efficiency > 0.8
    steps = plan_ridge(table, settings, Machine(1000, 1)).steps
    at = max(index for index, step in enumerate(steps) if step.where == "shared")
    few, more = (
        plan_seconds(plan_ridge(table, settings, Machine(count, 1)), BUILT_IN, Slots(count)) for count in (4, 1000)
    )
    # Four workers have a leaf each, and sixty a pair of blocks of columns in each of four leaves. The picks are the
    # driver's.
    picks = steps[at].algebra / BUILT_IN.algebra_flops
    assert more.steps[at] - picks < 0.5 * (few.steps[at] - picks)


def test_a_part_of_the_sums_is_a_part_of_the_state() -> None:
    whole = SweepCost(60, 1.0, state_bytes=15e6, parts=15)
    assert [whole.node_bytes(leaves) for leaves in (1, 4, 8, 60)] == pytest.approx([1e6, 1e6, 2e6, 15e6])
    grown = SweepCost(60, 1.0, state_bytes=15e6, grows=True)
    assert [grown.node_bytes(leaves) for leaves in (1, 4, 60)] == pytest.approx([0.25e6, 1e6, 15e6])
    found, single = (sweep_seconds(each, Slots(60), BUILT_IN) for each in (whole, replace(whole, parts=1)))
    assert found.seconds < single.seconds
    assert found.network_bytes < 0.2 * single.network_bytes


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_time(name: str) -> None:
    kind = KINDS[name]
    table = open_table(
        da.zeros((50_000, 6), chunks=(10_000, -1), dtype=np.float32),
        da.from_array(np.arange(50_000) % 2) if kind.classify or name == "poisson" else da.zeros(50_000),
        classify=kind.classify,
    )
    settings = settings_of(kind, {"n_components": 50}).for_table(table)
    rows = scaling(lambda machine: kind.plan(table, settings, machine, 50), [1, 8, 1000], BUILT_IN)
    assert all(np.isfinite(each.seconds) and each.seconds > 0.0 for each in rows)
    assert rows[0].efficiency == 1.0
    assert rows[2].seconds <= 1.2 * rows[0].seconds


def test_kernels_without_a_rate_are_as_slow_as_the_slowest() -> None:
    assert BUILT_IN.entry_seconds("my own", "float32", 10) == BUILT_IN.entry_seconds("gaussian", "float32", 10)
    pair = tuple(BUILT_IN.kernels[0].changed(family=name, seconds=second) for name, second in (("a", 1.0), ("b", 2.0)))
    rates = BUILT_IN.changed(kernels=pair)
    assert rates.entry_seconds("a", "float32", 0) == 1.0
    assert rates.entry_seconds("c", "float64", 0) == 2.0


def test_a_sum_of_kernels_takes_the_time_of_both() -> None:
    both = ridge(1_000_000, kernel=Gaussian(1.0) + Matern(1.0))
    assert both.families == ("gaussian", "matern")
    assert plan_seconds(both, BUILT_IN, Slots(1)).seconds > plan_seconds(ridge(1_000_000), BUILT_IN, Slots(1)).seconds


def test_rates_of_sums_are_between_those_that_were_measured() -> None:
    rates = [BUILT_IN.sum_flops("float64", columns) for columns in (1, 100, 200, 500, 1000, 9999)]
    assert rates == sorted(rates)
    assert (rates[0], rates[1], rates[-1]) == (1e10, 1e10, 2e10)


def test_sums_of_float32_products_have_rates_of_their_own() -> None:
    """The scores of candidates have such sums; rates of earlier releases do not know them."""
    plan = ridge(10_000_000)
    fast = tuple(each.changed(flops=1e30) for each in BUILT_IN.sums)
    found, known, unknown = (
        plan_seconds(plan, BUILT_IN.changed(single_sums=sums), Slots(1)).steps for sums in (fast, BUILT_IN.sums, ())
    )
    assert known == unknown
    scores = {index for index, step in enumerate(plan.steps) if step.name.startswith("score")}
    assert scores
    assert {index for index, pair in enumerate(zip(found, known, strict=True)) if pair[0] < pair[1]} == scores
    assert BUILT_IN.sum_flops("float64", 1000, single=True) > BUILT_IN.sum_flops("float64", 1000)


def scores(rows: int, **changes: Any) -> tuple[list[Step], float]:
    """The steps that score candidates, and their seconds."""
    plan = ridge(rows, **changes)
    seconds = plan_seconds(plan, BUILT_IN, Slots(1)).steps
    at = [index for index, step in enumerate(plan.steps) if step.name.startswith("score")]
    return [plan.steps[index] for index in at], sum(seconds[index] for index in at)


def test_a_metric_that_is_searched_for_is_found_as_a_rule() -> None:
    """In a metric fewer candidates do. Their time is that, and their memory that of a search which finds none."""
    (without, most), (searched, found), (given, exact) = (
        scores(200_000, metric=metric) for metric in ("none", "learned", np.eye(20))
    )
    assert found == exact < 0.5 * most
    assert [step.held_bytes for step in searched] == [step.held_bytes for step in without]
    assert max(step.held_bytes for step in given) < 0.7 * max(step.held_bytes for step in without)
    assert [step.usual for step in searched] == given
    # Of many rows as many are scored as without a metric.
    assert scores(10_000_000, metric="learned")[1] == scores(10_000_000)[1]


def test_rounds_that_have_no_partner_in_a_metric_stay_as_they_are() -> None:
    steps, _ = scores(200_000)
    assert _as_a_rule(steps, steps[1:]) == steps
    assert [step.usual for step in _as_a_rule(steps, [*steps[1:], steps[0]])] == [*steps[1:], steps[0]]
    assert _as_a_rule(steps, steps) == steps


# ------------------------------------------------------------------------------------------------------- numbers, files
@pytest.mark.parametrize(("given", "found"), [(4, [4]), ("1,4, 16", [1, 4, 16]), ([2, 1], [2, 1]), ((8,), [8])])
def test_numbers_of_workers(given: Any, found: list[int]) -> None:
    assert worker_counts(given) == found


@pytest.mark.parametrize("given", [0, -1, 1.5, "", "1,,2", "1,a", "1;2", True, [], [1, 1], "4,4", 10**7, [None], "٣"])
def test_other_numbers_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match="workers"):
        worker_counts(given)


def test_a_file_keeps_the_rates(tmp_path: Path) -> None:
    place = tmp_path / "rates.json"
    rates = BUILT_IN.changed(measured="today", task_seconds=0.123)
    assert write_rates(rates, place) == place
    assert read_rates(place) == rates
    write_rates(BUILT_IN, place)
    assert read_rates(place) == BUILT_IN
    assert [path.name for path in tmp_path.iterdir()] == ["rates.json"]


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_place() == tmp_path / "cache" / "streamkernel" / "rates.json"
    assert read_rates() is BUILT_IN
    write_rates(BUILT_IN.changed(measured="today"))
    assert read_rates().measured == "today"
    monkeypatch.setenv(PLACE, str(tmp_path / "other.json"))
    assert default_place() == tmp_path / "other.json"
    assert read_rates() is BUILT_IN


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**BUILT_IN.to_config(), "version": VERSION + 1}, f"has version {VERSION + 1} of the rates"),
        ({"rows": 3}, "has no version"),
        ([1], "has no version"),
        ("{", "it is not JSON"),
        ({**BUILT_IN.to_config(), "task_seconds": -1.0}, "task_seconds"),
        ({**BUILT_IN.to_config(), "read_bytes": 0.0}, "read_bytes"),
        ({**BUILT_IN.to_config(), "kernels": []}, "no rates of kernels"),
        ({name: value for name, value in BUILT_IN.to_config().items() if name != "busy"}, "busy"),
    ],
    ids=str,
)
def test_a_file_that_holds_no_rates(tmp_path: Path, content: Any, words: str) -> None:
    place = tmp_path / "rates.json"
    place.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ParameterError, match=words) as caught:
        read_rates(place)
    assert "rates.json" in str(caught.value)
    assert "calibrate" in str(caught.value)


def test_files_that_are_not_there_and_that_are_not_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="calibrate"):
        read_rates(tmp_path / "none.json")
    with pytest.raises(StoreNotFoundError, match="no folder"):
        write_rates(BUILT_IN, tmp_path / "none" / "rates.json")
    other = tmp_path / "settings.json"
    other.write_text('{"version": 1}')
    with pytest.raises(StoreExistsError, match="is no file of rates"):
        write_rates(BUILT_IN, other)
    assert other.read_text() == '{"version": 1}'
    older = tmp_path / "older.json"
    older.write_text(json.dumps({**BUILT_IN.to_config(), "version": 0}))
    write_rates(BUILT_IN, older)  # rates of any version
    assert read_rates(older) == BUILT_IN


# ------------------------------------------------------------------------------------------------------------- Python
def test_a_plan_from_python() -> None:
    X, y = np.zeros((4000, 3)), np.zeros(4000)
    found = plan_of_fit(KernelRidge(50, metric="none", kernel="gaussian"), X, y, workers=[1, 4], rates=BUILT_IN)
    assert [each.workers for each in found.scaling] == [1, 4]
    assert found.seconds == pytest.approx(sum(found.step_seconds))
    assert len(found.step_seconds) == len(found.plan.steps)
    assert found.plan.machine.workers == 0
    [alone] = plan_of_fit(Nystroem(n_components=20), X, rates=BUILT_IN).scaling
    assert alone.workers == 0
    assert alone.seconds > 0.0


def test_a_plan_from_python_refuses_what_is_none(tmp_path: Path) -> None:
    X, y = np.zeros((100, 3)), np.zeros(100)
    for given in ({"workers": 0}, {"workers": "1,x"}, {"cores": 0, "workers": 2}, {"cores": True}):
        with pytest.raises(ParameterError, match=next(iter(given))):
            plan_of_fit(KernelRidge(5), X, y, rates=BUILT_IN, **given)
    with pytest.raises(ParameterError, match="estimator is a str"):
        plan_of_fit("ridge", X, y)  # type: ignore[arg-type]
    with pytest.raises(StoreNotFoundError):
        plan_of_fit(KernelRidge(5), X, y, rates=tmp_path / "none")
