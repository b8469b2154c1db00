"""Progress on the terminal: sweep, blocks done, rows per second, time left. In a log file: one line per sweep."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from streamkernel.cli.output import stderr
from streamkernel.type_aliases import FieldsView


class _Bar:
    """A progress bar, visible while there is something to show."""

    def __init__(self, quiet: bool) -> None:
        self.live = stderr.is_terminal and not quiet
        self.quiet = quiet
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

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class SweepBar(_Bar):
    """A progress bar for a session."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._task: TaskID | None = None
        self._name = ""
        self._rows = self._done = self._sweeps = 0

    def __enter__(self) -> SweepBar:
        super().__enter__()
        return self

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._sweeps += 1
        self._name, self._rows, self._done = name, rows, 0
        self._task = self._bar.add_task(f"{self._sweeps}. {name}", total=tasks, unit="blocks", rate="")

    def advance(self, rows: int) -> None:
        self._done += rows
        assert self._task is not None
        task = self._bar.tasks[self._bar.task_ids.index(self._task)]
        rate = f"{self._done / task.elapsed:,.0f} rows/s" if task.elapsed else ""
        self._bar.update(self._task, advance=1, rate=rate)

    def end(self, seconds: float) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
            rate = self._rows / seconds if seconds else 0.0
            self.note(f"{self._sweeps}. {self._name}: {self._rows:,} rows in {seconds:.2f} s, {rate:,.0f} rows/s")

    def note(self, text: str) -> None:
        if not self.quiet:
            stderr.print(text, style="dim")


class IngestBar(_Bar):
    """A progress bar for an ingest: `start`, `advance`, `finish` for each stage."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._task: TaskID | None = None
        self._scale = 1

    def __enter__(self) -> IngestBar:
        super().__enter__()
        return self

    def start(self, total: int | None, unit: str) -> None:
        self._scale = 10**6 if unit == "bytes" else 1
        shown = None if total is None else total / self._scale
        unit = "MB" if unit == "bytes" else unit
        self._task = self._bar.add_task("reading", total=shown, unit=unit, rate="")

    def advance(self, amount: int) -> None:
        if self._task is not None:
            self._bar.update(self._task, advance=amount / self._scale)

    def finish(self) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


class JobBar(_Bar):
    """A progress bar for a job, from its records."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._task: TaskID | None = None
        self._said = ""

    def __enter__(self) -> JobBar:
        super().__enter__()
        return self

    def update(self, status: str, progress: FieldsView) -> None:
        """Show the present state; without a terminal, print a line for each change."""
        number, planned = progress.get("sweeps_done", 0), progress.get("sweeps_planned")
        said = f"{status}, {number} of {planned or '?'} sweeps" if progress else status
        if said != self._said and not self.live and not self.quiet:
            stderr.print(said, style="dim")
        self._said = said
        if self._task is None:
            self._task = self._bar.add_task(status, total=None, unit="rows", rate="")
        shown = f"{status}, {min(number + 1, planned or number + 1)}. {progress['sweep']}" if progress else status
        rows = {"total": progress["rows_total"] or None, "completed": progress["rows_done"]} if progress else {}
        self._bar.update(self._task, description=shown, rate=f"{number} of {planned or '?'} sweeps", **rows)
