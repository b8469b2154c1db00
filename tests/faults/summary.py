"""One table at the end of a run: which figures of the fault table were reached. STREAMKERNEL_FAULTS names a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from promises import PROMISES, table

__all__ = ["PROPERTY", "print_table"]

PROPERTY = "fault"
_HEAD = ("fault", "promise", "figure asked", "figure reached")


def _found(reports: dict[str, list[Any]]) -> tuple[dict[str, list[str]], set[str]]:
    reached: dict[str, list[str]] = {}
    failed: set[str] = set()
    # Under xdist the properties of a test travel with its reports.
    for outcome in ("passed", "failed", "error"):
        for report in reports.get(outcome, []):
            told = [value for name, value in getattr(report, "user_properties", ()) if name == PROPERTY]
            for row, figure in told:
                if outcome != "passed":
                    failed.add(row)
                elif figure and report.when == "call":
                    reached.setdefault(row, []).append(figure)
    return reached, failed


def _markdown(rows: list[tuple[str, str, str, str]]) -> str:
    lines = [
        "# Faults survived",
        "",
        "Made by `scripts/faults`, which runs every test of `tests/faults`: real schedulers and workers on 2 cores, a "
        "table of",
        "20 chunks. Times include the restart of workers. A figure that is not reached fails its test.",
        "",
        f"| {' | '.join(_HEAD)} |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def print_table(terminal: Any) -> None:
    """To the terminal; and to the file, where all rows were run."""
    reached, failed = _found(terminal.stats)
    rows = table(reached, failed)
    if not rows:
        return
    widths = [max(len(row[column]) for row in [_HEAD, *rows]) for column in range(3)]
    terminal.section("faults")
    for row in [_HEAD, *rows]:
        terminal.write_line("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]))
    terminal.write_line(f"{len(rows) - len(failed)} of {len(PROMISES)} promises shown")
    file = os.environ.get("STREAMKERNEL_FAULTS")
    if file:
        Path(file).write_text(_markdown(rows), encoding="utf-8")
