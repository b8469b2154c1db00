"""Where each rule stops on a path."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.bounds import (
    BoundStop,
    GapStop,
    PursuitStop,
    Stop,
    TraceStop,
    compression_bound,
    matching_pursuit_bound,
    stop_at,
)
from streamkernel.errors import ParameterError

# Falls fast to a floor: noise that more functions do not remove.
PATH = 950.0 * (0.7 ** np.arange(1, 101) + 0.01)


def test_trace() -> None:
    traces = naive.greedy(naive.card().K, [range(40)] * 6, naive.function_space).traces
    assert stop_at(traces, TraceStop(40.0, tol=0.5)).size == 3
    assert stop_at(traces, TraceStop(40.0, tol=0.5)).value == pytest.approx(18.3675 / 40, rel=1e-5)
    assert stop_at(traces, TraceStop(40.0)) == Stop(6, 6, False, traces[5] / 40.0)
    assert stop_at([2.0, 0.0], TraceStop(40.0, tol=0.0)) == Stop(2, 2, True, 0.0)


def test_trace_on_rounds() -> None:
    assert stop_at([40.0, 12.0, 3.0, 0.1], TraceStop(40.0, tol=0.1), sizes=[0, 16, 32, 64]) == Stop(32, 32, True, 0.075)


def test_bound_waits_and_then_takes_the_least() -> None:
    values = compression_bound(PATH, 1000).values
    best = int(np.argmin(values))
    assert 0 < best < 80
    assert stop_at(PATH, BoundStop(1000)) == Stop(best + 1, best + 11, True, values[best])
    assert stop_at(PATH, BoundStop(1000, patience=None)) == Stop(best + 1, 100, True, values[best])
    assert not stop_at(PATH[: best + 5], BoundStop(1000)).reached
    assert stop_at(PATH[: best + 5], BoundStop(1000)).size == best + 1
    # At the end of the path the bound may still be on its way down.
    assert not stop_at(PATH[: best + 1], BoundStop(1000, patience=None)).reached
    # A thousand times the rows can afford more functions.
    assert stop_at(1000 * PATH, BoundStop(10**6)).size > best + 1


def test_patience_outlasts_a_plateau() -> None:
    path = np.r_[np.full(5, 600.0), np.full(5, 60.0)]
    assert stop_at(path, BoundStop(1000, patience=3)).size == 1
    assert stop_at(path, BoundStop(1000, patience=5)).size == 6


@given(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=60), st.integers(1, 70))
def test_bound_with_enough_patience_is_the_argmin(shares: list[float], patience: int) -> None:
    path = 900.0 * np.cumprod(shares)
    found, whole = stop_at(path, BoundStop(1000, patience=patience)), compression_bound(path, 1000)
    if patience >= len(path):
        assert found.size == whole.best_size
    assert found.looked - found.size <= patience
    # What had been seen by then holds nothing better.
    assert found.value == whole.values[: found.looked].min()


def test_gap() -> None:
    assert stop_at([4.0, 0.5, 0.009, 0.0], GapStop()) == Stop(3, 3, True, 0.009)
    assert stop_at([4.0, 0.5], GapStop(tol=0.1)) == Stop(2, 2, False, 0.5)


def test_pursuit_is_a_relative_rule() -> None:
    """Vacuous all along, and yet it has a minimum: where more functions mend too few rows."""
    errors = (400 * 0.8 ** np.arange(1, 61)).astype(int) + 20
    found = matching_pursuit_bound(450, np.arange(1, 61), errors)
    assert found.says_nothing
    best = found.best_size
    assert 3 < best < 40
    assert stop_at(errors, PursuitStop(450)) == Stop(best, best + 10, True, found.minimum)
    assert stop_at(errors, PursuitStop(450, patience=None)) == Stop(best, 60, True, found.minimum)
    assert not stop_at(errors[: best + 2], PursuitStop(450)).reached
    # Two views pay more for each function; sizes need not be 1, 2, ...
    assert stop_at(errors, PursuitStop(450, views=2)).size <= best
    coarse = stop_at(errors[4::5], PursuitStop(450, patience=2), sizes=np.arange(5, 61, 5))
    assert abs(coarse.size - best) <= 5
    assert coarse.value >= found.minimum


@pytest.mark.parametrize(
    ("path", "rule", "options"),
    [
        ([], TraceStop(1.0), {}),
        ([1.0], TraceStop(0.0), {}),
        ([1.0], TraceStop(1.0, tol=-1.0), {}),
        ([float("nan")], GapStop(), {}),
        ([1.0], GapStop(), {"sizes": [1, 2]}),
        ([1.0], BoundStop(1000, patience=0), {}),
        ([1.0, 2.0], BoundStop(1000), {}),
        ([1.5], PursuitStop(1000), {}),
        ([1000], PursuitStop(1000), {}),
        ([1], PursuitStop(1000, patience=0), {}),
    ],
)
def test_bad_paths(path: Any, rule: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        stop_at(path, rule, **options)
