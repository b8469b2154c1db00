"""Progress bars: what they show at any width, in a log file, and of which work. The clock is one that tests turn."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from streamkernel import KernelRidge
from streamkernel.cli import progress as module
from streamkernel.cli.output import duration
from streamkernel.cli.progress import LOG_SECONDS, IngestBar, JobBar, Line, SweepBar
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table

NAME = "look at the residual of 100,000 functions"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def drawn(line: Line, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(line)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1, 2, 10, 20, 36, 43, 44, 45, 60, 72, 73, 80, 120, 400])
@pytest.mark.parametrize(
    "line",
    [
        Line("1. " + NAME, 0.42, "123,456,789 rows/s", 90_061.0),
        Line("reading", None, "12,345,678 MB"),
        Line("queued", None),
        Line("", 0.0, "", 0.0),
        Line("日本語 [bold] :smile:", 0.99, "1 rows/s", 1e9),
    ],
)
def test_one_line_at_every_width(line: Line, width: int) -> None:
    [shown] = drawn(line, width)
    assert len(shown) <= min(width, 100)


def test_what_a_narrow_terminal_leaves_out() -> None:
    line = Line("3. final sweep", 0.42, "1,234,567 rows/s", 83.0)
    [wide], [middle], [narrow] = (drawn(line, width) for width in (80, 60, 36))
    for shown in (wide, middle, narrow):
        assert " 42%" in shown
        assert "1:23 left" in shown
        assert "3. fin" in shown
    assert "1,234,567 rows/s" in wide
    assert "rows/s" not in middle + narrow
    assert "━" in wide
    assert "━" in middle
    assert "━" not in narrow


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1.0, "0:00"),
        (0.4, "0:00"),
        (59.6, "1:00"),
        (3599.6, "1:00:00"),
        (3723.0, "1:02:03"),
        (172_799.0, "47:59:59"),
        (183_600.0, "2 d 3 h"),
        (1e10, "115,740 d 17 h"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


# --- sweeps ----------------------------------------------------------------------------------------------------------


class Watched(SweepBar):
    """A bar whose clock goes on by 0.05 s an event, and that keeps its lines."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(quiet=False, clock=clock)
        self.lines: list[Line | None] = []
        self.notes: list[str] = []
        self.lock = threading.Lock()

    def _look(self) -> None:
        with self.lock:
            assert isinstance(self.clock, Clock)
            self.clock.now += 0.05
            self.lines.append(self.line())

    def planned(self, plan: object) -> None:
        super().planned(plan)  # type: ignore[arg-type]
        self._look()

    def passed(self, flops: float, share: float) -> None:
        super().passed(flops, share)
        self._look()

    def begin(self, name: str, rows: int, tasks: int) -> None:
        super().begin(name, rows, tasks)
        self._look()

    def advance(self, rows: int) -> None:
        super().advance(rows)
        self._look()

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_fit_moves_in_its_sweeps_and_between_them(clock: Clock) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    settings = RidgeSettings(n_components=40, kernel="gaussian", metric="learned")
    table = open_table(X, np.sin(X[:, 0]))
    bar = Watched(clock)
    fit_ridge(table, settings, Session(ThreadExecutor(), progress=bar))
    lines = [line for line in bar.lines if line is not None]
    shares = [line.share for line in lines if line.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] < 1.0
    before = [line for line in lines if line.work == "before the first sweep"]
    between = [line for line in lines if line.work.startswith("after ")]
    assert before, "the plan was there before any work"
    assert len({line.share for line in between}) > 10, "the search for a metric moves the bar"
    assert all(line.left is not None for line in lines)
    assert any("rows/s" in line.rate for line in lines)
    plan = plan_ridge(table, settings, Machine(0, 1))
    assert len([note for note in bar.notes if " rows in " in note]) == plan.sweeps


def test_a_receiver_of_four_events_still_does() -> None:
    """One that was written before there were plans."""

    class Own:
        def __init__(self) -> None:
            self.names: list[str] = []

        def begin(self, name: str, rows: int, tasks: int) -> None:
            self.names.append(name)

        def advance(self, rows: int) -> None: ...

        def end(self, seconds: float) -> None: ...

        def note(self, text: str) -> None: ...

    own = Own()
    X = np.random.default_rng(1).standard_normal((300, 3))
    KernelRidge(10, metric="none", progress=own).fit(X, X[:, 0])
    assert own.names[-1] == "final sweep"


def test_a_sweep_that_was_resumed_is_no_line(clock: Clock) -> None:
    bar = Watched(clock)
    bar.end(0.0)
    assert bar.notes == []
    bar.begin("look", 100, 1)
    bar.advance(100)
    bar.end(2.0)
    assert bar.notes == ["1. look: 100 rows in 2.00 s, 50 rows/s"]
    assert bar.line() is None, "between two sweeps nothing is known without a plan"


# --- without a terminal ----------------------------------------------------------------------------------------------


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(module.stderr, "print", lambda text, **style: lines.append(str(text)))
    return lines


def test_a_log_file_gets_a_line_from_time_to_time(clock: Clock, said: list[str]) -> None:
    bar = SweepBar(quiet=False, clock=clock)
    bar.tick()
    clock.now += 10 * LOG_SECONDS
    bar.tick()
    assert said == [], "there is nothing to tell"
    bar.begin("final sweep", 1000, 10)
    for _ in range(4):
        clock.now += LOG_SECONDS / 2
        bar.advance(100)
        bar.tick()
    assert said == [
        "10% done, 1. final sweep, 7 rows/s, about 2:15 left",
        "30% done, 1. final sweep, 7 rows/s, about 1:45 left",
    ]
    clock.now += LOG_SECONDS - 1
    bar.note("lengthscale 2")
    clock.now += LOG_SECONDS - 1
    bar.tick()
    assert said[-1] == "lengthscale 2", "whatever is said counts"


def test_quiet_says_nothing_at_all(clock: Clock, said: list[str]) -> None:
    with SweepBar(quiet=True, clock=clock) as bar:
        bar.begin("final sweep", 1000, 10)
        clock.now += 10 * LOG_SECONDS
        bar.advance(500)
        bar.tick()
        bar.end(1.0)
    assert said == []


def test_its_thread_ends_with_it() -> None:
    before = threading.active_count()
    with SweepBar(quiet=False):
        pass
    assert threading.active_count() == before


# --- other bars ------------------------------------------------------------------------------------------------------


def test_a_source_of_known_and_of_unknown_length(clock: Clock) -> None:
    bar = IngestBar(quiet=True, clock=clock)
    assert bar.line() is None
    bar.start(4_000_000, "bytes")
    assert bar.line() == Line("reading", 0.0, "0 MB", None)
    clock.now += 3.0
    bar.advance(1_000_000)
    assert bar.line() == Line("reading", 0.25, "1 MB", 9.0)
    bar.advance(9_000_000)  # a compressed file may hold more than its size
    assert bar.line() == Line("reading", 1.0, "10 MB", 0.0)
    bar.finish()
    assert bar.line() is None
    for total in (None, 0):
        bar.start(total, "rows")
        bar.advance(1234)
        assert bar.line() == Line("reading", None, "1,234 rows", None)


def test_a_job_of_this_release_and_of_an_earlier_one(clock: Clock, said: list[str]) -> None:
    bar = JobBar(quiet=False, clock=clock)
    assert bar.line() is None
    bar.update("queued", {})
    assert bar.line() == Line("queued", None)
    earlier = {"sweeps_done": 1, "sweeps_planned": 4, "sweep": "look", "rows_done": 25, "rows_total": 100}
    bar.update("running", earlier)
    assert bar.line() == Line("running, 2. look", 0.25, "1 of 4 sweeps")
    bar.update("running", {**earlier, "share": 0.4, "seconds_left": 12.0})
    assert bar.line() == Line("running, 2. look", 0.4, "1 of 4 sweeps", 12.0)
    bar.update("running", {**earlier, "rows_total": 0, "share": None})
    assert bar.line() == Line("running, 2. look", None, "1 of 4 sweeps")
    assert said == ["queued", "running, 1 of 4 sweeps"]


def test_plan_tells_seconds_and_what_they_rest_on(cli: Callable, store: Path, tmp_path: Path) -> None:
    def lines(*options: object) -> dict[str, str]:
        shown = cli("plan", store, "--basis", 50, *options).out.splitlines()
        return dict(line.rsplit("  ", 1) for line in shown if "  " in line)

    searched = {name.strip(): value for name, value in lines().items()}
    assert 0.0 < float(searched["of searches, at most"]) < float(searched["seconds"])
    plain = lines("--metric", "none", "--kernel", "gaussian", "--lengthscale", 1, "--rule", "uniform")
    assert not any(name.startswith("of searches") for name in plain)
