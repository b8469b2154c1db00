"""Progress on the terminal: sweep, blocks done, rows per second, time left. In a log file: one line per sweep."""

from __future__ import annotations

from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from streamkernel.cli.output import stderr
from streamkernel.type_aliases import FieldsView


class _Bar:
    """A progress bar of one task at a time, visible while there is something to show."""

    def __init__(self, quiet: bool) -> None:
        self.live = stderr.is_terminal and not quiet
        self.quiet = quiet
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=stderr,
            transient=True,
            disable=not self.live,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        if not self.quiet:
            stderr.print(text, style="dim")

    def _begin(self, description: str, total: float | None, unit: str) -> None:
        self._task = self._bar.add_task(description, total=total, unit=unit, rate="")

    def _update(self, **changes: Any) -> None:
        if self._task is not None:
            self._bar.update(self._task, **changes)

    def _remove(self) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


class SweepBar(_Bar):
    """A progress bar for a session."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._name = ""
        self._rows = self._done = self._sweeps = 0

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._sweeps += 1
        self._name, self._rows, self._done = name, rows, 0
        self._begin(f"{self._sweeps}. {name}", tasks, "blocks")

    def advance(self, rows: int) -> None:
        self._done += rows
        assert self._task is not None
        task = self._bar.tasks[self._bar.task_ids.index(self._task)]
        self._update(advance=1, rate=f"{self._done / task.elapsed:,.0f} rows/s" if task.elapsed else "")

    def end(self, seconds: float) -> None:
        if self._task is not None:
            self._remove()
            rate = self._rows / seconds if seconds else 0.0
            self.note(f"{self._sweeps}. {self._name}: {self._rows:,} rows in {seconds:.2f} s, {rate:,.0f} rows/s")


class IngestBar(_Bar):
    """A progress bar for an ingest: `start`, `advance`, `finish` for each stage."""

    _scale = 1

    def start(self, total: int | None, unit: str) -> None:
        self._scale, unit = (10**6, "MB") if unit == "bytes" else (1, unit)
        self._begin("reading", None if total is None else total / self._scale, unit)

    def advance(self, amount: int) -> None:
        self._update(advance=amount / self._scale)

    def finish(self) -> None:
        self._remove()


class JobBar(_Bar):
    """A progress bar for a job, from its records."""

    _line = ""

    def update(self, status: str, progress: FieldsView) -> None:
        """Show the present state; without a terminal, print a line for each change."""
        number, planned = progress.get("sweeps_done", 0), progress.get("sweeps_planned")
        sweeps = f"{number} of {planned or '?'} sweeps"
        line = f"{status}, {sweeps}" if progress else status
        if line != self._line and not self.live:
            self.note(line)
        self._line = line
        if self._task is None:
            self._begin(status, None, "rows")
        shown = f"{status}, {min(number + 1, planned or number + 1)}. {progress['sweep']}" if progress else status
        rows = {"total": progress["rows_total"] or None, "completed": progress["rows_done"]} if progress else {}
        self._update(description=shown, rate=sweeps, **rows)
