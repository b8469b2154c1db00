"""Every rule ends after a bounded number of rounds, whatever the data and whatever the basis takes of its picks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from problems import select
from rule_table import ALGORITHMS, title

from streamkernel import KernelCCA, KernelMatchingPursuit, KernelRidge
from streamkernel.basis import Basis
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.selection import Problem, as_rule
from streamkernel.selection.rounds import Fixed, Geometric, Rounds
from streamkernel.table import open_table

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((200, 3)), RNG.standard_normal((200, 1))
N = 40
SLOW = pytest.mark.slow


class Stingy:
    """In the place of `Basis.append`: of what it is given it takes the first few, and after some nothing any more."""

    def __init__(self, each: int, until: int) -> None:
        self.append, self.each, self.until, self.calls = Basis.append, each, until, 0

    def __get__(self, basis: Basis | None, _: Any) -> Any:
        def append(points: Any, rows: Any) -> Any:
            assert basis is not None
            self.calls += 1
            assert self.calls <= 2 * N + 20, "it does not end"
            room = min(self.each, max(self.until - len(basis), 0))
            return self.append(basis, points[:room], rows[:room])

        return append


@pytest.fixture(params=[(10**6, 7), (1, N), (1, 7)], ids=["full at once", "one at a time", "one at a time, then full"])
def stingy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stingy:
    made = Stingy(*request.param)
    monkeypatch.setattr(Basis, "append", made)
    return made


@pytest.mark.parametrize(("name", "options"), ALGORITHMS, ids=[title(*row) for row in ALGORITHMS])
def test_every_rule_ends(name: str, options: dict[str, Any], stingy: Stingy) -> None:
    session = Session(ThreadExecutor(1))
    problem = Problem(open_table(X, Y), Gaussian(1.0), N, centre=Y.mean(axis=0), scale=Y.std(axis=0))
    found, _ = select(as_rule(name, **options), problem, session)
    assert len(found.basis) <= min(stingy.until, N)
    assert found.ended == ("size" if len(found.basis) == N else "rank")
    assert len(found.gains) in (0, len(found.basis))
    assert len(session.records) <= 2 * N + 20


def test_pursuits_and_pairs_of_views_end(stingy: Stingy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        pursuit = KernelMatchingPursuit(N, lengthscale=1.0).fit(X, Y)
        assert len(pursuit.components_) <= stingy.until
        stingy.calls = 0
        cca = KernelCCA(2, basis_size=N, lengthscale=1.0).fit(X, np.concatenate([X[:, :1] + Y, Y], axis=1))
        assert len(cca.components_) <= stingy.until


def test_what_a_plan_of_few_sweeps_asks_for_is_a_bound_too() -> None:
    """Rounds that bring one function each are not gone on with up to n."""
    assert Rounds.of(Geometric(), 1000).planned == 5
    assert Rounds.of(Fixed(3), 10).planned == 4
    supply = Rounds.of(Geometric(), 1000)
    assert [supply.exhausted(1, 100) for _ in range(16)] == [False] * 15 + [True]
    assert not any(Rounds.of(Geometric(), 1000).exhausted(1, 1) for _ in range(50))


def test_three_empty_rounds_in_a_row_are_the_rank() -> None:
    supply = Rounds(20)
    assert [supply.exhausted(brought, 1) for brought in (0, 0, 1, 0, 0, 0)] == [False] * 5 + [True]


class Noted(Silent):
    """Sizes of the basis, round by round; a fit that goes round for ever is cut."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def note(self, text: str) -> None:
        if text.endswith("basis functions"):
            self.sizes.append(int(text.split()[0]))
        assert len(self.sizes) < 60, "it does not end"


@pytest.mark.parametrize(
    ("objective", "m"),
    [("prediction", 3000), pytest.param("trace", 3000, marks=SLOW), pytest.param("prediction", 9600, marks=SLOW)],
)
def test_a_fit_of_few_distinct_values_ends(objective: str, m: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(-0.5, 0.5, m), rng.integers(0, 3, m), rng.integers(0, 4, m)])
    y, noted = rng.uniform(-0.5, 0.5, m), Noted()
    model = KernelRidge(150, lengthscale=1.0, random_state=1, objective=objective, progress=noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)  # that some are dependent
        model.fit(rows, y)
    assert noted.sizes == sorted(noted.sizes)
    assert len(model.model_.gains) == len(model.components_) == noted.sizes[-1] > 40
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(KernelRidge.load(tmp_path / "model").predict(rows), model.predict(rows))
