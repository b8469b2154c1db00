"""An estimate of what is left may end a round before its picks; the exact certificate of the next round judges it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import problem_of, select

from streamkernel.selection import as_rule
from streamkernel.selection.greedy import Greedy

TOL = 1e-3


def test_a_refuted_estimate_asks_for_twice_what_is_left_and_then_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    original = Greedy._round

    def optimist(self: Greedy, *arguments: Any) -> Any:
        """As if each pick took off three times what it does."""
        *others, still = arguments
        asked.append(still)
        return original(self, *others, still / 3.0)

    monkeypatch.setattr(Greedy, "_round", optimist)
    X = np.random.default_rng(0).standard_normal((600, 2))
    problem = problem_of(X, n=200, tol=TOL)
    found, _ = select(as_rule("few-sweep", objective="trace"), problem)
    assert found.ended == "tolerance"
    left = [record.residual_trace for record in found.rounds]
    over = [one - TOL * left[0] for one in left]
    finite = [i for i, still in enumerate(asked) if np.isfinite(still)]
    short = [i for i in finite if found.rounds[i].stop not in (13, 25, 50, 100, 200)]
    assert len(short) == 2
    first, second = short
    np.testing.assert_allclose(asked[: first + 1], over[: first + 1])
    np.testing.assert_allclose(asked[first + 1 : second + 1], [2.0 * one for one in over[first + 1 : second + 1]])
    # Two estimates are enough: each costs a look.
    assert np.isinf(asked[second + 1 :]).all()
    assert len(asked) > second + 1
