"""Linear programming machines out of core against their whole program, which scipy solves at once."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import naive
import numpy as np
import pytest
from forks import Forks
from problems import cut_session, table_of_chunks
from slow_cases import slow_but

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericalError, ResourceLimitError
from streamkernel.kernels import Gaussian, Linear, Sigmoid
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, Pinball, PricedFunction, PriceRows, Target
from streamkernel.solvers import LinearLimits, LinearMachine, drawn_numbers, solve_linear_machines
from streamkernel.solvers.linear_programs import linear_programs as module
from streamkernel.solvers.linear_programs._highs import BoxProgram
from streamkernel.solvers.linear_programs._sifted_program import SiftedProgram
from streamkernel.table import open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]
KERNEL = Gaussian(1.0)
RNG = np.random.default_rng(5)
X = RNG.standard_normal((160, 2))
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.standard_normal(160)
SIGNS = np.where(NUMBERS + 0.3 * RNG.standard_normal(160) > 0.1, 1.0, -1.0)
K = KERNEL(X, X)


def solved(x: Any, y: Any, loss: Any, session: Session | None = None, kernel: Any = KERNEL, **options: Any) -> Any:
    """One machine; y are numbers, or labels 0 and 1."""
    table = open_table(x, y, weights=options.pop("weights", None))
    return solve_linear_machines(
        table,
        kernel,
        [loss],
        [Target(0)],
        session or Session(ThreadExecutor(1)),
        **({"limits": LinearLimits(200, 1000), "gap_tol": 1e-9} | options),
    )[0]


def values(machine: LinearMachine, x: Any = X, kernel: Any = KERNEL) -> Any:
    return kernel(x, machine.vectors.X) @ machine.coefficients + machine.offset


def of_labels(t: Any) -> Any:
    return (t > 0).astype(float)


def test_the_numbers_of_the_card() -> None:
    t, m = CARD.t.astype(float), len(CARD.t)
    program = SiftedProgram(1.0, intercept=True)
    program.add_rows(t, np.where(t > 0, 0.0, -1.0), np.where(t > 0, 1.0, 0.0), np.zeros((m, 0)))
    columns, objectives, bounds = list(SGMA), [], []
    program.add_columns(CARD.K[:, columns])
    while True:
        program.solve()
        prices = np.abs(CARD.K @ program.duals)
        objectives.append(np.abs(program.coefficients).sum() + np.maximum(0, 1 - t * (t - program._residuals())).sum())
        bounds.append(program.targets @ program.duals / max(1.0, prices.max()))
        best = int(np.argmax(prices))
        if prices[best] <= 1.0 + 1e-9:
            break
        columns.append(best)
        program.add_columns(CARD.K[:, [best]])
    assert bounds[0] == pytest.approx(5.33238, rel=2e-6)
    printed = [8.52318, 7.77289, 7.72325, 7.63986, 7.63969]
    assert all(min(abs(each - value) for value in objectives) < 6e-6 for each in printed)
    assert objectives == sorted(objectives, reverse=True)
    assert max(bounds) <= objectives[-1] * (1 + 1e-12)
    machine = solved(CARD.X, of_labels(t), Hinge(1.0))
    assert machine.primal == pytest.approx(7.63969, rel=1e-6)
    assert machine.dual == pytest.approx(machine.primal, rel=1e-9)


LOSSES: dict[str, Any] = {
    "hinge": Hinge(1.0),
    "hinge of a large C": Hinge(1e4),
    "hinge of a tiny C": Hinge(1e-5),
    "tube": EpsilonInsensitive(2.0, 0.2),
    "tube of a tiny C": EpsilonInsensitive(1e-4, 0.2),
    "quantile": Pinball(1.0, 0.8),
}


def expected(loss: Any, k: Any, y: Any, w: Any, intercept: bool = True) -> Any:
    kinks = loss.kinks(y)
    low = np.concatenate([w * kink.low for kink in kinks])
    high = np.concatenate([w * (kink.low + loss.C) for kink in kinks])
    targets = np.concatenate([kink.targets for kink in kinks])
    return naive.linear_machine(np.concatenate([k] * len(kinks)), targets, low, high, intercept)


@pytest.mark.parametrize(
    ("weighted", "intercept"), slow_but([(True, True), (False, False)], product([False, True], [True, False]))
)
@pytest.mark.parametrize("case", LOSSES)
def test_the_optimum_is_that_of_the_whole_program(
    case: str, weighted: bool, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few rows at first, few variables, few columns at once: everything is generated.
    monkeypatch.setattr(module, "_FIRST_ROWS", 30)
    monkeypatch.setattr("streamkernel.solvers.linear_programs._sifted_program._FREE_ROWS", 12)
    monkeypatch.setattr(module, "_COLUMN_POOL", 20)
    loss, w = LOSSES[case], (np.arange(160) % 3 * 0.7 if weighted else np.ones(160))
    y = of_labels(SIGNS) if isinstance(loss, Hinge) else NUMBERS
    # Rows without weight are no columns either.
    whole = expected(loss, K[:, w > 0], y, w, intercept)
    machine = solved(X, y, loss, weights=w if weighted else None, intercept=intercept)
    assert machine.converged
    assert machine.primal == pytest.approx(whole.objective, rel=1e-8)
    assert machine.dual <= whole.objective * (1 + 1e-9)
    f = values(machine)
    assert np.abs(machine.coefficients).sum() + w @ loss.loss(y, f) == pytest.approx(machine.primal, rel=1e-10)
    assert (w[machine.rows] > 0.0).all()
    assert intercept or machine.offset == 0.0
    gaps = [each.gap for each in machine.iterations]
    assert all(later <= earlier for earlier, later in pairwise(gaps))


def test_every_bound_is_below_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_ROWS", 20)
    whole = naive.hinge_machine(K, SIGNS, 3.0)
    machine = solved(X, of_labels(SIGNS), Hinge(3.0))
    assert len(machine.iterations) > 2
    for each in machine.iterations:
        assert each.dual <= whole.objective * (1 + 1e-9) <= each.primal * (1 + 2e-9)


def test_rows_that_are_repeated_are_weights() -> None:
    w = RNG.integers(0, 4, 160)
    weighted = solved(X, of_labels(SIGNS), Hinge(2.0), weights=w.astype(float))
    repeated = solved(np.repeat(X, w, axis=0), of_labels(np.repeat(SIGNS, w)), Hinge(2.0))
    assert repeated.primal == pytest.approx(weighted.primal, rel=1e-10)
    np.testing.assert_allclose(values(repeated), values(weighted), atol=1e-10)
    # Of equal columns one is enough.
    assert len(np.unique(repeated.vectors.X, axis=0)) == len(repeated.rows)


def test_separable_rows_have_no_loss() -> None:
    t = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    x = X + 0.5 * t[:, None] * [1.0, 0.0]
    machine = solved(x, of_labels(t), Hinge(1e6))
    whole = naive.hinge_machine(KERNEL(x, x), t, 1e6)
    assert machine.primal == pytest.approx(whole.objective, rel=1e-8)
    assert (t * values(machine, x) > 1.0 - 1e-7).all()


def test_rows_of_one_class_need_no_function() -> None:
    machine = solved(X, np.ones(160), Hinge(1.0))
    assert (machine.primal, machine.dual, len(machine.rows)) == (0.0, 0.0, 0)
    assert machine.offset >= 1.0
    assert machine.converged


def test_kernels_need_not_be_positive_definite() -> None:
    for kernel in (Sigmoid(gamma=0.7, coef0=-0.3), Linear()):
        machine = solved(X, of_labels(SIGNS), Hinge(1.0), kernel=kernel)
        whole = naive.hinge_machine(kernel(X, X), SIGNS, 1.0)
        assert machine.primal == pytest.approx(whole.objective, rel=1e-8)


def test_several_functions_share_their_sweeps() -> None:
    y = np.column_stack([of_labels(SIGNS), of_labels(X[:, 1]), of_labels(X[:, 0] - X[:, 1])])
    session = Session(ThreadExecutor(1))
    machines = solve_linear_machines(
        open_table(X, y),
        KERNEL,
        [Hinge(1.0)] * 3,
        [Target(k) for k in range(3)],
        session,
        limits=LinearLimits(200, 1000),
        gap_tol=1e-9,
    )
    for k, machine in enumerate(machines):
        assert machine.primal == pytest.approx(naive.hinge_machine(K, 2 * y[:, k] - 1, 1.0).objective, rel=1e-8)
    assert len(session.records) == 1 + max(len(machine.iterations) for machine in machines)


def test_any_cut_gives_equal_bits(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_ROWS", 30)
    found = []
    for chunk, cuts, backwards in ((160, [160], False), (7, [1, 50, 109], True)):
        table = table_of_chunks(tmp_path / f"{chunk}.zarr", X, of_labels(SIGNS), chunk)
        [machine] = solve_linear_machines(
            table,
            KERNEL,
            [Hinge(2.0)],
            [Target(0)],
            cut_session(cuts, 16, backwards=backwards),
            limits=LinearLimits(200, 1000),
            gap_tol=1e-6,
        )
        found.append(machine)
    one, other = found
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    assert one.offset == other.offset
    assert [each.rows for each in one.iterations] == [each.rows for each in other.iterations]


def test_a_start_is_near() -> None:
    first = solved(X, of_labels(SIGNS), Hinge(1.0))
    again = solved(X, of_labels(SIGNS), Hinge(1.5), starts=[first])
    assert again.primal == pytest.approx(naive.hinge_machine(K, SIGNS, 1.5).objective, rel=1e-8)


def test_few_functions_have_an_honest_gap() -> None:
    machine = solved(X, of_labels(SIGNS), Hinge(5.0), limits=LinearLimits(6, 1000))
    whole = naive.hinge_machine(K, SIGNS, 5.0).objective
    assert len(machine.rows) <= 6
    assert machine.capped
    assert not machine.converged
    assert machine.dual <= whole <= machine.primal


def test_candidates_bound_their_own_program() -> None:
    machine = solved(X, of_labels(SIGNS), Hinge(5.0), limits=LinearLimits(200, 1000, 25))
    assert machine.candidates == 25
    rows = np.sort(machine.state.columns.rows)
    assert len(rows) <= 25
    drawn = module._candidates(open_table(X, SIGNS), LinearLimits(200, 1000, 25), 0)
    assert drawn is not None
    assert set(machine.rows.tolist()) <= set(drawn.tolist())
    whole = drawn_numbers(open_table(X, SIGNS), LinearLimits(200, 1000, 25), 0)
    assert set(drawn.tolist()) <= set(whole.tolist())
    assert machine.primal == pytest.approx(naive.hinge_machine(K[:, drawn], SIGNS, 5.0).objective, rel=1e-8)
    assert machine.converged


def test_few_rows_are_variables_and_the_optimum_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.solvers.linear_programs._sifted_program._FREE_ROWS", 40)
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((1500, 2))
    t = np.where(np.sin(2 * rows[:, 0]) + rows[:, 1] + rng.standard_normal(1500) > 0.0, 1.0, -1.0)
    program, k = SiftedProgram(1.0, intercept=True), KERNEL(rows, rows[:20])
    regions = []
    region = BoxProgram.set_region
    monkeypatch.setattr(BoxProgram, "set_region", lambda self, c, r: (regions.append(r), region(self, c, r))[1])
    program.add_rows(t, np.where(t > 0, 0.0, -1.0), np.where(t > 0, 1.0, 0.0), np.zeros((1500, 0)))
    for first in range(0, 20, 4):
        program.add_columns(k[:, first : first + 4])
        program.solve()
        whole = naive.hinge_machine(k[:, : first + 4], t, 1.0).objective
        value = np.abs(program.coefficients).sum() + np.maximum(0.0, t * program._residuals()).sum()
        assert value == pytest.approx(whole, rel=1e-8)
        assert program.targets @ program.duals == pytest.approx(whole, rel=1e-8)
        assert np.abs(k[:, : first + 4].T @ program.duals).max() <= 1.0 + 1e-7
        assert abs(program.duals.sum()) < 1e-12
    assert program._program.variables < 600
    assert any(each is not None for each in regions)


def test_a_start_takes_no_step_where_it_is_the_optimum() -> None:
    first = solved(X, of_labels(SIGNS), Hinge(1.0))
    program, state = SiftedProgram(1.0, intercept=True), first.state
    t = np.where(state.rows.Y[:, 0] > 0.5, 1.0, -1.0)
    program.add_columns(np.zeros((0, len(state.columns))))
    k = KERNEL(state.rows.X, state.columns.X)
    program.add_rows(t, np.where(t > 0, 0.0, -1.0), np.where(t > 0, 1.0, 0.0), k)
    program.start_from(state.program)
    program.solve()
    assert program._program._highs.getInfo().simplex_iteration_count == 0
    assert program.targets @ program.duals == pytest.approx(first.primal, rel=1e-9)


def test_prices_and_violations_are_those_of_their_formulas() -> None:
    t, rows = SIGNS, np.arange(160)
    duals, a = t[:30] * np.linspace(0.1, 1.0, 30), np.linspace(-1, 1, 10)
    points = X[:35]  # the first 30 have a dual variable, the last 10 a coefficient
    each = PricedFunction(points, duals, a, 0.2, Hinge(1.0), Target(0), rows[:30], rows[25:35])
    session, table = Session(ThreadExecutor(1)), open_table(X, of_labels(t))
    [found] = session.sweep(PriceRows(KERNEL, (each,), 0.0, 0.1, 0.05, 200, 200, 0, (1,)), table, "prices")
    price, f = np.abs(K[:, :30] @ duals), K[:, 25:35] @ a + 0.2
    assert found.largest == pytest.approx(price.max(), rel=1e-12)
    assert found.loss == pytest.approx(np.maximum(0, 1 - t * f).sum(), rel=1e-12)
    np.testing.assert_array_equal(found.candidates.rows, np.setdiff1d(rows[price > 1.05], rows[25:35]))
    outside = np.setdiff1d(rows[1 - t * f > 0.1], rows[:30])
    np.testing.assert_array_equal(found.joining.rows, outside)
    assert (found.violators, found.priced) == (len(outside), len(found.candidates))
    [few] = session.sweep(PriceRows(KERNEL, (each,), 0.2, 0.1, 0.05, 7, 3, 0, (1,)), table, "few")
    assert (len(few.joining), few.violators) == (7, len(outside))
    # The column of the largest price is kept, whatever is drawn.
    best = found.candidates.rows[np.argmax(price[found.candidates.rows])]
    assert best in few.candidates.rows
    assert len(few.candidates) <= 4


def test_rows_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceLimitError, match=r"fill the 20 rows of a linear program.*working_rows"):
        solved(X, of_labels(RNG.standard_normal(160)), Hinge(1.0), limits=LinearLimits(50, 20))


def test_nothing_is_printed(forks: Forks) -> None:
    code = (
        "import numpy as np; from streamkernel.solvers.linear_programs._highs import BoxProgram;"
        "p = BoxProgram(1.0, intercept=True);"
        "p.add_variables(np.ones(2), np.zeros(2), np.ones(2), np.zeros((2, 0))); p.solve()"
    )
    found = forks.run(code)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_other_programs_of_the_process_may_use_any_number_of_threads(forks: Forks, threads: int) -> None:
    """HiGHS has one pool of threads in a process, and refuses a program that asks for another size."""
    code = (
        "import highspy, numpy as np; from streamkernel.solvers.linear_programs._highs import BoxProgram\n"
        f"other = highspy.Highs(); other.silent(); other.setOptionValue('threads', {threads})\n"
        "other.addVar(0.0, 1.0); assert other.run() == highspy.HighsStatus.kOk\n"
        "p = BoxProgram(1.0, intercept=True)\n"
        "p.add_variables(np.ones(2), np.zeros(2), np.ones(2), np.zeros((2, 0))); p.solve()"
    )
    done = forks.run(code)
    assert done.returncode == 0, done.stderr


def test_numbers_that_highs_takes_for_infinite_are_one_error() -> None:
    rows = 1e9 * RNG.standard_normal((50, 2))
    with pytest.raises(NumericalError, match=r"refuses its numbers as too large; scale the columns, or change C, the"):
        solved(rows, of_labels(rows[:, 0] + RNG.standard_normal(50)), Hinge(1.0), kernel=Linear())


@pytest.mark.parametrize("weight", [1e-15, 1e-30])
def test_small_weights_are_as_a_small_cost(weight: float) -> None:
    """A tolerance of HiGHS would be wider than the boxes."""
    weights = np.where(SIGNS > 0.0, weight, 0.3 * weight)
    machine = solved(X, of_labels(SIGNS), Hinge(1.0), weights=weights)
    assert machine.converged
    assert len(machine.rows) == 0
    least = 2.0 * min(weights[SIGNS > 0.0].sum(), weights[SIGNS < 0.0].sum())
    assert machine.primal == pytest.approx(least, rel=1e-9)
    assert machine.dual == pytest.approx(least, rel=1e-9)
