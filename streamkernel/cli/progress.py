"""Progress on the terminal: share done, time left, sweep, rows per second. In a log file: lines every half minute."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from streamkernel.cli.output import duration, stderr
from streamkernel.timing import TimeLeft, usable_rates
from streamkernel.type_aliases import FieldsView

if TYPE_CHECKING:
    from streamkernel.engine import Plan

LOG_SECONDS = 30.0  # between two lines where there is no terminal
_WIDEST = 100  # columns of the line
_WITH_RATE, _WITH_BAR = 72, 44  # columns of terminals that show a rate, or a bar

Clock = Callable[[], float]


@dataclass(frozen=True)
class Line:
    """What a progress bar shows: the work, its share that is done, a rate or a count, seconds left; None: unknown."""

    work: str
    share: float | None
    rate: str = ""
    left: float | None = None

    def text(self) -> str:
        """One line of a log file."""
        parts = [] if self.share is None else [f"{self.share:.0%} done"]
        parts += [self.work, self.rate] if self.rate else [self.work]
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return ", ".join(parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The last column stays free: some terminals break a line that is full.
        width = max(min(options.max_width - 1, _WIDEST), 1)
        row = RichTable.grid(padding=(0, 1, 0, 0))
        row.width = width
        row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        cells: list[Text | ProgressBar] = [Text(self.work)]
        if width >= _WITH_BAR:
            bar = 20 if width >= _WITH_RATE else 10
            row.add_column(width=bar)
            cells.append(ProgressBar(1.0, self.share or 0.0, width=bar, pulse=self.share is None))
        shown = [f"{self.share:.0%}".rjust(4)] if self.share is not None else []
        shown += [self.rate] if self.rate and (width >= _WITH_RATE or self.share is None) else []
        shown += [f"{duration(self.left)} left"] if self.left is not None else []
        for each in shown:
            row.add_column(no_wrap=True, justify="right")
            cells.append(Text(each))
        row.add_row(*cells)
        yield row


class _Bar(ABC):
    """A progress bar, visible while there is something to show; where there is no terminal, a line from time to time.

    Parameters
    ----------
    quiet : show nothing.
    clock : function that returns the time in seconds.
    """

    def __init__(self, quiet: bool, clock: Clock = time.monotonic) -> None:
        self.live, self.quiet, self.clock = stderr.is_terminal and not quiet, quiet, clock
        self._over = threading.Event()
        self._logged_at = clock()
        self._live: Live | None = None
        self._thread = threading.Thread(target=self._log, name="streamkernel-progress", daemon=True)

    def __enter__(self) -> Self:
        if self.live:
            self._live = Live(get_renderable=self._drawn, console=stderr, transient=True, refresh_per_second=8)
            self._live.start()
        elif not self.quiet:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        elif not self.quiet:
            self._thread.join()

    @abstractmethod
    def line(self) -> Line | None:
        """What there is to show now; None for nothing."""

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        if not self.quiet:
            self._logged_at = self.clock()
            stderr.print(text, style="dim")

    def tick(self) -> None:
        """Where there is no terminal: print the line, if nothing else was printed for some time."""
        if self.clock() - self._logged_at >= LOG_SECONDS and (line := self.line()) is not None:
            self.note(line.text())

    def _log(self) -> None:
        while not self._over.wait(1.0):
            with suppress(OSError):  # a log that takes no more lines does not end the work
                self.tick()

    def _drawn(self) -> Line | Text:
        return self.line() or Text("")


class SweepBar(_Bar):
    """A progress bar for a session: of the whole fit where its plan is known, else of each sweep.

    Parameters
    ----------
    plans : plans of all fits that follow each other; without them, each plan that a fit announces has a bar.
    """

    def __init__(self, quiet: bool, clock: Clock = time.monotonic, *, plans: Sequence[Plan] = ()) -> None:
        super().__init__(quiet, clock)
        self._name = ""
        self._rows = self._done = self._sweeps = 0
        self._began = 0.0
        self._running = self._ends = False
        self._several = len(plans) > 0
        self._time = TimeLeft(plans, usable_rates(), clock)

    def planned(self, plan: Plan) -> None:
        if not self._several:
            self._time = TimeLeft([plan], usable_rates(), self.clock)
        self._time.next_fit()
        self._ends = True

    def passed(self, flops: float, share: float) -> None:
        self._time.passed(flops, share)

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._sweeps += 1
        self._name, self._rows, self._done, self._began = name, rows, 0, self.clock()
        self._running = True
        self._time.begin(name, rows)

    def advance(self, rows: int) -> None:
        self._done += rows
        self._time.advance(rows)

    def end(self, seconds: float) -> None:
        self._time.end()
        if self._running:
            self._running = False
            rate = self._rows / seconds if seconds else 0.0
            self.note(f"{self._sweeps}. {self._name}: {self._rows:,} rows in {seconds:.2f} s, {rate:,.0f} rows/s")

    def line(self) -> Line | None:
        if not self._running and not self._ends:
            return None
        left = self._time.seconds_left
        if not self._running:
            after = f"after {self._sweeps}. {self._name}" if self._sweeps else "before the first sweep"
            return Line(after, self._time.share, left=left)
        taken = self.clock() - self._began
        rate = f"{self._done / taken:,.0f} rows/s" if taken > 0.0 and self._done else ""
        return Line(f"{self._sweeps}. {self._name}", self._time.share, rate, left)


class IngestBar(_Bar):
    """A progress bar for an ingest: `start`, `advance`, `finish` for each stage."""

    _total: int | None = None
    _done, _began, _unit, _running = 0, 0.0, "", False

    def start(self, total: int | None, unit: str) -> None:
        self._total, self._unit, self._done, self._began, self._running = total, unit, 0, self.clock(), True

    def advance(self, amount: int) -> None:
        self._done += amount

    def finish(self) -> None:
        self._running = False

    def line(self) -> Line | None:
        if not self._running:
            return None
        taken = self.clock() - self._began
        done = f"{self._done / 1e6:,.0f} MB" if self._unit == "bytes" else f"{self._done:,} {self._unit}"
        if not self._total:
            return Line("reading", None, done)
        share = min(self._done / self._total, 1.0)
        left = taken * (1.0 - share) / share if share else None
        return Line("reading", share, done, left)


class JobBar(_Bar):
    """A progress bar for a job, from its records."""

    _logged = ""
    _line: Line | None = None

    def update(self, status: str, progress: FieldsView) -> None:
        """Show the present state; without a terminal, print a line for each change."""
        number, planned = progress.get("sweeps_done", 0), progress.get("sweeps_planned")
        sweeps = f"{number} of {planned or '?'} sweeps"
        line = f"{status}, {sweeps}" if progress else status
        if line != self._logged and not self.live:
            self.note(line)
        self._logged = line
        shown = f"{status}, {min(number + 1, planned or number + 1)}. {progress['sweep']}" if progress else status
        # Earlier releases recorded no share.
        share, left = progress.get("share"), progress.get("seconds_left")
        if share is None and progress and progress["rows_total"]:
            share = min(progress["rows_done"] / progress["rows_total"], 1.0)
        self._line = Line(shown, share, sweeps if progress else "", left)

    def line(self) -> Line | None:
        return self._line
