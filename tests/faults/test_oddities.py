"""What the workers of this folder preload takes what the engine gives it: no other quick test runs with it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.engine.cluster import _worker_tasks
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import open_table


@pytest.mark.parametrize("oddly", [{}, {"twice": True}, {"row": 3, "sleep": 0.001}], ids=str)
def test_sums_of_odd_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, oddly: dict[str, Any]) -> None:
    X = np.random.default_rng(5).normal(size=(60, 3))
    work = NormalEquations.of(Basis(Gaussian(2.0), X[:9], np.arange(9)), np.zeros(1), len(X))
    payload = _worker_tasks.Payload(open_table(X, X[:, 0]), work, 10)
    spans = [(0, 20), (20, 40), (40, 60)]
    expected = _worker_tasks.map_leaves(payload, spans)

    (tmp_path / "odd.json").write_text(json.dumps(oddly))
    monkeypatch.setenv("STREAMKERNEL_ODD", str(tmp_path / "odd.json"))
    usual = _worker_tasks.map_spans
    monkeypatch.setattr(_worker_tasks, "map_spans", usual)  # given back at the end
    runpy.run_path(str(Path(__file__).with_name("oddities.py")))["dask_setup"](None)
    assert _worker_tasks.map_spans is not usual
    found = _worker_tasks.map_leaves(payload, spans)
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
