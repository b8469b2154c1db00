"""Tables with more features than rows: the plan counts the rows that there are, and still covers what is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from streamkernel.engine import Machine
from streamkernel.engine.session import layout_of
from streamkernel.estimators.kinds import PREDICTORS
from streamkernel.kernels import Gaussian, packed_bytes
from streamkernel.kernels.prepared import PreparedFormula
from streamkernel.reductions import Moments
from streamkernel.table import open_table

PROGRAM = """
import json, re, sys, warnings
import numpy as np
import streamkernel
warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((200, 20_000)).astype(np.float32)
model = getattr(streamkernel, sys.argv[1])(memory_limit="4GB").fit(X, X[:, 0].astype(float)).model_
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
run = model.config["run"]
print(json.dumps([run["planned_memory_bytes"], max(peak, run["peak_memory_bytes"])]))
"""


@pytest.mark.parametrize("name", PREDICTORS)
def test_no_block_has_more_rows_than_there_are(name: str) -> None:
    recipe, m = PREDICTORS[name], 60
    y: Any = np.arange(m) % 2 if recipe.classify else np.arange(m) * 1.0
    table = open_table(np.broadcast_to(np.float32(1), (m, 100_000)), y, classify=recipe.classify)
    plan = recipe.plan(table, recipe.settings(), Machine(0, 2))
    assert plan.memory_bytes < 4e9
    assert max(step.block_rows for step in plan.steps) <= m


def test_blocks_of_wide_rows_are_small_in_the_run_too() -> None:
    narrow, wide = (open_table(np.broadcast_to(np.float32(1), (10_000, p))) for p in (1000, 200_000))
    assert layout_of(Moments(1000, 0), narrow).block_rows >= 2048
    rows = layout_of(Moments(200_000, 0), wide).block_rows
    assert rows * 200_000 * 12 <= 256 << 20


@pytest.mark.parametrize("n", [1, 60])
def test_what_is_counted_is_what_is_packed(n: int) -> None:
    points = np.random.default_rng(0).standard_normal((n, 50))
    whole = PreparedFormula(Gaussian(2.0), points)
    packed = whole.pack(points.dtype)
    held = points.nbytes + packed.panels.nbytes + packed.centred[2].nbytes
    assert packed_bytes(n, 50) == held
    assert packed_bytes(n, 50, (Gaussian(2.0) + Gaussian(1.0)).formulas) == 2 * held - points.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["KernelRidge", "Nystroem"])
def test_the_promise_covers_what_is_measured(estimator: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, estimator], capture_output=True, text=True, check=True)
    planned, measured = json.loads(done.stdout)
    assert measured <= planned < 2e9
