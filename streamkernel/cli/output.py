"""The output of commands: one JSON object, or a short table for display."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleDimensions
from rich.table import Table as RichTable

from streamkernel.byte_counts import format_bytes
from streamkernel.type_aliases import Fields, FieldsView, Unchecked
from streamkernel.wording import escaped

_NO_LIMIT = 1_000_000


class Output(Console):
    """stdout or stderr for display: lines are cut to the width of a terminal, but not in a file or a pipe.

    Text is printed unchanged: a path in brackets is not read as markup.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    @property  # type: ignore[misc]  # read-only here
    def size(self) -> ConsoleDimensions:
        # Without a terminal Rich would use the width of stdin's terminal, or 80. Forced colours do not force a width.
        return super().size if self.file.isatty() else ConsoleDimensions(_NO_LIMIT, 25)

    def table(self, table: RichTable) -> None:
        """Print a table without the trailing blanks that Rich adds: beside a long cell they would fill whole lines."""
        with self.capture() as captured:
            self.print(table)
        for line in captured.get().splitlines():
            self.file.write(line.rstrip() + "\n")


stderr = Output(stderr=True)


def number(value: Unchecked) -> str:
    """A value for display: of numbers thousands are separated, and there are at most six digits."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        shown = [number(item) for item in value[:8]]
        return ", ".join(shown) + (f", ... ({len(value)})" if len(value) > 8 else "")
    return escaped(str(value))


# Of errors by which a fit chooses: those of several targets, and of classes, are added. Scores of held-out rows are in
# the units of the target.
_UNIT = "squared error per row of scaled targets"


def readable(result: FieldsView) -> Fields:
    """The result for display: bytes as kB, MB, GB, a metric in words, the unit of the GCV score."""
    return {
        name.removesuffix("_bytes"): format_bytes(value) if name.endswith("_bytes") else
        _metric_text(value) if name == "metric" else
        f"{number(value)}, {_UNIT}" if name == "gcv" and value is not None else value
        for name, value in result.items()
        # A verdict: no line where there is none.
        if name != "saturated" or value is not None
    }  # fmt: skip


def _metric_text(metric: FieldsView | None) -> str:
    """What a fit found or was given, from `SavedBasis.metric_fields`."""
    if metric is None:
        return "none"
    columns, error, plain = metric["columns"], metric["held_out_error"], metric["plain_error"]
    if error is None:
        return f"given, {columns} columns"
    if metric["form"] == "none":
        return f"none was better than the plain kernel ({number(plain)} on held-out rows, {_UNIT})"
    return f"{metric['form']}, {columns} columns: {number(error)} on held-out rows, {number(plain)} without it, {_UNIT}"


def _with_errors(result: FieldsView) -> Iterator[tuple[str, str]]:
    """Names and texts of the fields; a number and its standard error are one: 0.1234 +- 0.0041."""
    for name, value in result.items():
        error = result.get(f"{name}_se")
        if isinstance(value, float) and isinstance(error, float):
            yield name, measured(value, error)
        elif not (name.endswith("_se") and isinstance(result.get(name.removesuffix("_se")), float)):
            yield name, number(value)


def measured(value: float, error: float) -> str:
    """A number to the digits that its standard error leaves, two of which are uncertain; alone without one."""
    if not (np.isfinite(value) and np.isfinite(error) and error > 0.0):
        return number(value)
    places = 1 - int(np.floor(np.log10(error)))
    if abs(value) >= 1e7 or places > 12:
        return f"{value:.6g} +- {error:.2g}"
    return f"{value:,.{max(places, 0)}f} +- {error:,.{max(places, 0)}f}"


def _plain(value: Unchecked) -> Unchecked:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None  # JSON has no infinity and no NaN
    return value


@dataclass(frozen=True)
class Display:
    """What a command prints: the values of `--json` and `--quiet`."""

    as_json: bool = False
    quiet: bool = False

    def emit(self, result: FieldsView, title: str, shown: FieldsView | None = None) -> None:
        """Print a result: the whole as JSON, or `shown` (default: the whole) as a table."""
        if self.as_json:
            json.dump(_plain(result), sys.stdout)
            sys.stdout.write("\n")
            return
        console = Output()
        console.print(title, style="bold")
        table = RichTable(show_header=False, box=None, pad_edge=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in _with_errors(shown or result):
            table.add_row(escaped(name.replace("_", " ")), text)
        console.table(table)

    def note(self, text: str) -> None:
        """Print a line that is not part of the result, unless `--quiet`."""
        if not self.quiet:
            stderr.print(text, style="dim")


def duration(seconds: float) -> str:
    """Seconds for display: 0:07, 12:03, 1:02:03, 2 d 3 h."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24:,} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
