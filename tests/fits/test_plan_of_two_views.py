"""The plan of canonical correlations: the pools of its rounds, and points of two views of any widths."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

from streamkernel import KernelCCA
from streamkernel.engine import Machine, Plan
from streamkernel.engine.plan import BASE_BYTES, SLACK
from streamkernel.fits.cca.kernel_cca_plan import CCASettings, plan_cca
from streamkernel.fits.cca.kernel_cca_views import column_groups, paired_table
from streamkernel.kernels import Gaussian


def planned(X: Any, y: Any, **parameters: Any) -> Plan:
    paired = paired_table(X, y, parameters.get("view_columns"))
    settings = CCASettings.from_parameters(KernelCCA(**parameters).get_params(), len(X))
    return plan_cca(paired, settings, Machine(0, 1))


@pytest.mark.parametrize(
    "options",
    [
        {"basis_size": 60},
        {"basis_size": 60, "pool": "split", "picks": 7},
        {"basis_size": 20, "pool": "all"},
        {"basis_size": 3, "picks": 1, "candidates": 4},
    ],
    ids=str,
)
def test_pools_are_planned_as_they_are_drawn(options: dict[str, Any]) -> None:
    """Where a basis is of almost all rows, the first pools are larger than the last one."""
    x, y = (np.random.default_rng(seed).standard_normal((60, 3)) for seed in (0, 1))
    parameters = {**options, "n_components": 2, "lengthscale": 0.3}
    rounds = KernelCCA(**parameters).fit(x, y).model_.config["rounds"]
    steps = [step for step in planned(x, y, **parameters).steps if "candidates" in step.name]
    of_plan = [int(step.name.split()[1]) for step in steps for _ in range(step.times)]
    assert of_plan == [each["candidates"] for each in rounds]


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize(
    ("widths", "options"),
    [
        ((10, 4000), {}),
        pytest.param((4000, 10), {}, marks=pytest.mark.slow),
        ((2000, 2000), {"view_columns": (range(2000), range(2000, 4000))}),
        pytest.param((10, 4000), {"basis_size": 10, "n_components": 2}, marks=pytest.mark.slow),
        ((10, 4000), {"pool": "all", "basis_size": 20}),
        ((10, 4000), {"kernel": (Gaussian(100.0), Gaussian(100.0) + Gaussian(200.0))}),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_two_views_hold_is_promised_and_little_more(widths: tuple[int, int], options: dict[str, Any]) -> None:
    both = np.random.default_rng(0).standard_normal((60, sum(widths)), dtype=np.float32)
    rows = (both, None) if "view_columns" in options else (both[:, : widths[0]], both[:, widths[0] :])
    small = {name: value for name, value in options.items() if name != "view_columns"}
    KernelCCA(**{**small, "basis_size": 5, "n_components": 2}).fit(both[:40, :9], both[:40, 9:18])  # what is compiled
    plan = planned(*rows, **options)
    gc.collect()
    tracemalloc.start()
    KernelCCA(**options).fit(*rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= (plan.driver_bytes - BASE_BYTES) / SLACK < 1.35 * peak


def test_groups_of_very_many_columns_are_found_at_once() -> None:
    """Each name was looked for in all: 100,000 columns took many minutes."""
    names = [f"x{number}" for number in range(60_000)]
    first, second = column_groups((names[:30_000], range(30_000, 60_000)), names)
    assert first == tuple(range(30_000))
    assert second == tuple(range(30_000, 60_000))
