"""The share done and the seconds left, against a clock that tests turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.engine import Machine, Plan, Step, TableShape, make_plan
from streamkernel.errors import ParameterError
from streamkernel.fits import plan_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table
from streamkernel.timing import BUILT_IN, Slots, TimeLeft, plan_seconds, read_rates, usable_rates
from streamkernel.timing.rates import PLACE
from streamkernel.timing.time_left import moved

SHAPE = TableShape(1000, 4, 4, 1, 8, 100, in_memory=True)


class Clock:
    """A clock that is turned."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def sweep(name: str, times: int = 1, algebra: float = 0.0, flops: float = 1e6) -> Step:
    return Step(name, "sweep", 1000, times, flops, 10, 100, 0, 0, algebra=algebra)


def sample(name: str, times: int = 1, flops: float = 1e6) -> Step:
    return Step(name, "sample", 500, times, flops, 10, 100, 0, 0)


def solve(seconds: float) -> Step:
    return Step("solve", "driver", 0, 1, 0.0, 0, 0, 0, 0, algebra=seconds * BUILT_IN.algebra_flops)


def plan_of(*steps: Step) -> Plan:
    return make_plan(list(steps), SHAPE, Machine(0, 1), disk_bytes=0)


def seconds_of(plan: Plan) -> tuple[float, ...]:
    return plan_seconds(plan, BUILT_IN, Slots(0, 1, 1)).steps


def started(*plans: Plan) -> tuple[TimeLeft, Clock]:
    clock = Clock()
    left = TimeLeft(plans, BUILT_IN, clock)
    if plans:
        left.next_fit()
    return left, clock


def run_sweep(left: TimeLeft, clock: Clock, name: str, seconds: float, blocks: int = 4) -> None:
    left.begin(name, 1000)
    for _ in range(blocks):
        clock.pass_(seconds / blocks)
        left.advance(1000 // blocks)
    left.end()


def test_before_anything_the_whole_plan_is_left() -> None:
    plan = plan_of(sweep("a"), sample("b"), sweep("c", times=3, algebra=1e8), solve(2.0))
    left, _ = started(plan)
    assert left.share == 0.0
    assert left.seconds_left == pytest.approx(sum(seconds_of(plan)))


@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
def test_a_machine_that_is_faster_or_slower_than_its_rates(factor: float) -> None:
    plan = plan_of(sweep("a", times=20))
    each = seconds_of(plan)[0] / 20
    left, clock = started(plan)
    for done in range(1, 20):
        run_sweep(left, clock, "a", factor * each)
        # The rates that were planned weigh as a tenth of the plan, and less with every sweep.
        of_all = (done * factor + 2) / (done + 2)
        of_sweeps = (done * factor + 2 * of_all) / (done + 2)
        assert left.seconds_left == pytest.approx((20 - done) * each * of_sweeps)
        assert left.share == pytest.approx(done / 20)
    run_sweep(left, clock, "a", factor * each)
    assert left.share == 0.99, "as long as the fit runs"
    assert left.seconds_left == pytest.approx(0.0)


def test_it_moves_within_a_sweep_block_by_block() -> None:
    left, clock = started(plan_of(sweep("a")))
    left.begin("a", 1000)
    shares = []
    for _ in range(4):
        clock.pass_(5.0)
        left.advance(250)
        shares.append(left.share)
    assert shares == pytest.approx([0.25, 0.5, 0.75, 0.99])


def test_steps_of_an_earlier_run_are_no_speed() -> None:
    plan = plan_of(sweep("a", times=8), sweep("b", times=2))
    a, b = seconds_of(plan)
    left, clock = started(plan)
    for _ in range(8):
        left.end()  # taken from checkpoints, at once
    assert left.share == pytest.approx(a / (a + b))
    assert left.seconds_left == pytest.approx(b)
    run_sweep(left, clock, "b", 50.0 * b)
    assert left.seconds_left > 10.0 * b / 2
    assert left.share < 0.99


def test_work_between_two_sweeps_moves_by_its_passes_and_by_the_time() -> None:
    plan = plan_of(sweep("a", flops=1e3), sample("search", times=10, flops=1e8), sweep("b", flops=1e3))
    search = seconds_of(plan)[1]
    left, clock = started(plan)
    run_sweep(left, clock, "a", 0.01)
    shares, seconds = [left.share], []
    for _ in range(5):
        clock.pass_(search / 20)
        shares.append(left.share)  # by the time
        clock.pass_(search / 20)
        left.passed(500 * 1e8, 1.0)
        shares.append(left.share)
        seconds.append(left.seconds_left)
    assert shares == sorted(set(shares)), "each look sees more"
    assert shares[-1] == pytest.approx(0.5, abs=0.05)
    assert seconds == sorted(seconds, reverse=True)
    # It ends at half of the passes that were planned: the others are no work that is left.
    run_sweep(left, clock, "b", 0.01)
    assert left.seconds_left == pytest.approx(0.0, abs=1e-9)


def test_algebra_that_lasts_longer_than_planned_never_stands_at_the_end() -> None:
    left, clock = started(plan_of(sweep("a"), solve(10.0), sweep("b")))
    run_sweep(left, clock, "a", seconds_of(plan_of(sweep("a")))[0])
    shares = []
    for _ in range(200):
        clock.pass_(1.0)
        shares.append(left.share)
        assert left.seconds_left > 0.0
    assert shares == sorted(set(shares))
    assert shares[-1] < 0.99


def test_an_iteration_that_converges_early_leaves_its_other_sweeps_out() -> None:
    plan = plan_of(sweep("right side"), sweep("product", times=50), sweep("vote"))
    left, clock = started(plan)
    run_sweep(left, clock, "right side", 1.0)
    run_sweep(left, clock, "product", 1.0)
    before = left.share
    assert before < 0.1
    run_sweep(left, clock, "vote", 1.0)
    assert left.share == 0.99
    assert left.seconds_left == pytest.approx(0.0)


def test_sweeps_of_other_names_take_the_planned_ones_in_their_order() -> None:
    left, clock = started(plan_of(sweep("members", times=4), sweep("vote")))
    shares = []
    for name in ("first member", "member 2", "member 3", "member 4", "vote"):
        run_sweep(left, clock, name, 1.0)
        shares.append(left.share)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.99])


def test_more_sweeps_than_planned() -> None:
    left, clock = started(plan_of(sweep("newton")))
    run_sweep(left, clock, "newton", 1.0)
    assert left.share == 0.99
    left.begin("newton", 1000)
    assert left.seconds_left is None, "nothing of it is known yet"
    clock.pass_(2.0)
    left.advance(250)
    assert left.seconds_left == pytest.approx(6.0)
    assert left.share == 0.99
    left.end()
    left.end()  # one of a checkpoint, which no plan counts either
    assert left.seconds_left == pytest.approx(0.0)


def test_fits_after_each_other_are_one_whole() -> None:
    """As `compare` has them: sweeps for scores lie between the fits, and no plan counts them."""
    plan = plan_of(sweep("a"), solve(0.001))
    each = seconds_of(plan)[0]
    left, clock = started(*[plan] * 4)
    shares = []
    for number in range(4):
        if number:
            left.next_fit()
        run_sweep(left, clock, "a", each)
        run_sweep(left, clock, "scores", each / 10)
        shares.append(left.share)
        assert left.seconds_left == pytest.approx((3 - number) * each, rel=0.2, abs=0.01)
    assert shares[:3] == pytest.approx([0.25, 0.5, 0.75], abs=0.05)
    assert shares[3] == 0.99
    left.next_fit()  # one more than there are plans
    assert left.share == 0.99


def test_without_a_plan_each_sweep_is_a_whole() -> None:
    left, clock = started()
    assert (left.share, left.seconds_left) == (0.0, None)
    for _ in range(2):
        left.begin("evaluate", 1000)
        assert left.share == 0.0
        clock.pass_(3.0)
        left.advance(250)
        assert left.share == pytest.approx(0.25)
        assert left.seconds_left == pytest.approx(9.0)
        left.end()
        assert left.seconds_left is None


def test_a_plan_of_nothing() -> None:
    left, clock = started(plan_of())
    clock.pass_(10.0)
    left.passed(1e9, 1.0)
    left.end()
    assert left.share in (0.0, 0.99)
    assert left.seconds_left == pytest.approx(0.0)


EVENTS = st.lists(
    st.one_of(
        st.sampled_from(["end", "next"]),
        st.tuples(st.just("begin"), st.sampled_from("abcx"), st.integers(0, 1000)),
        st.tuples(st.just("advance"), st.integers(0, 1500)),
        st.tuples(st.just("passed"), st.floats(0.0, 1e12), st.floats(0.0, 1.0)),
        st.tuples(st.just("time"), st.floats(0.0, 1e6)),
    ),
    max_size=40,
)


@given(EVENTS, st.integers(0, 3))
def test_whatever_happens_the_share_never_falls_and_stays_below_one(events: list, fits: int) -> None:
    plan = plan_of(sweep("a"), sample("s", times=3), sweep("b", times=2, algebra=1e9), solve(1.0), sweep("c"))
    left, clock = started(*[plan] * fits)
    before = 0.0
    for event in events:
        name, *values = (event,) if isinstance(event, str) else event
        if name == "time":
            clock.pass_(values[0])
        elif name == "next":
            left.next_fit()
        else:
            getattr(left, name)(*values)
        share, seconds = left.share, left.seconds_left
        assert 0.0 <= share <= 0.99
        assert seconds is None or seconds >= -1e-9
        assert share >= before or (fits == 0 and name == "begin")
        before = share


@given(st.floats(0.0, 1e3), st.floats(0.0, 1.0), st.floats(0.0, 1e9), st.floats(1e-6, 1e6))
def test_what_is_not_reported_moves_and_never_ends(planned: float, part: float, since: float, factor: float) -> None:
    reported = planned * part
    found = moved(planned, reported, since, factor)
    assert reported <= found <= planned
    assert moved(planned, reported, 2 * since, factor) >= found
    assert moved(planned, reported, 0.0, factor) == pytest.approx(reported)


def test_a_damaged_file_of_rates_ends_no_fit(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("rates") / "rates.json"
    place.write_text("{")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PLACE, str(place))
        with pytest.raises(ParameterError):
            read_rates()
        assert usable_rates() is BUILT_IN
        patch.setenv(PLACE, str(place.with_name("none")))
        assert usable_rates() is BUILT_IN


def test_the_rates_of_the_machine_weigh_its_steps() -> None:
    """Twice as slow in algebra: the solve is a larger share of the same plan."""
    plan = plan_of(sweep("a"), solve(1.0))
    clock = Clock()
    shares = []
    for rates in (BUILT_IN, BUILT_IN.changed(algebra_flops=BUILT_IN.algebra_flops / 10)):
        left = TimeLeft([replace(plan)], rates, clock)
        left.next_fit()
        run_sweep(left, clock, "a", 1.0)
        shares.append(left.share)
    assert shares[1] < shares[0]


def test_the_steps_of_a_greedy_rule_stand_in_the_order_in_which_they_run() -> None:
    """Each look before the scores of its candidates: else the scores would weigh after all looks."""
    X = np.zeros((20_000, 4))
    table = open_table(X, X[:, 0])
    settings = RidgeSettings(n_components=100, kernel="gaussian", metric="none", objective="trace")
    names = [step.name.split()[0] for step in plan_ridge(table, settings, Machine(0, 1)).steps]
    looks = [name for name in names if name in ("look", "score")]
    assert len(looks) > 3
    assert looks == ["score", "look"] * (len(looks) // 2) + ["score"]


def test_passes_of_usual_steps_fill_their_part_of_the_plan() -> None:
    """A pass tells the operations that it has: those of a step as it is as a rule, not the most that are planned."""
    usual = sample("scores", flops=1e9)
    shares = []
    for planned in (usual, replace(usual, flops_per_row=4e9, rows=1000, usual=usual)):
        left, clock = started(plan_of(sweep("a"), planned, sweep("b")))
        run_sweep(left, clock, "a", 1.0)
        clock.pass_(1.0)
        left.passed(usual.flops, 1.0)
        shares.append(left.share)
    assert shares[0] == shares[1]
