"""What every benchmark shares: claims, the table, JSON, facts of the machine, the exit status.

A benchmark's ``run(quick=False)`` returns ``{"title", "columns", "rows", "claims"}``; a claim is
``{"name", "value", "floor", "ok"}``, made by `at_least` or `at_most` (``"bound"`` says which). A claim that was not
asked in this run (a set is missing, ``--quick``) has ``"ok": None``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_info

__all__ = ["Part", "at_least", "at_most", "by_parts", "in_fresh_process", "main", "not_asked", "unasked", "write_page"]

PACKAGES = ("streamkernel", "numpy", "scipy", "numba", "zarr", "dask", "scikit-learn")


def at_least(name: str, value: float, floor: float) -> dict[str, Any]:
    return _claim(name, value, floor, "at least", value >= floor)


def at_most(name: str, value: float, ceiling: float) -> dict[str, Any]:
    return _claim(name, value, ceiling, "at most", value <= ceiling)


Part = Callable[[bool, tuple[str, ...] | None], tuple[list[list[Any]], list[dict[str, Any]]]]
"""A part of a benchmark: ``part(quick, sets)`` returns rows and claims."""


def by_parts(
    table: dict[str, Part], names: str, sets: str | None, quick: bool
) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Rows and claims of the parts with these names, separated by commas."""
    chosen = tuple(sets.split(",")) if sets else None
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    unknown = [name for name in names.split(",") if name not in table]
    if unknown:  # known before hours of measurements
        raise SystemExit(f"no part {', '.join(unknown)}; there are {', '.join(table)}")
    for name in names.split(","):
        found, asked = table[name](quick, chosen)
        rows += found
        claims += unasked(asked, "--quick") if quick else asked
    return rows, claims


def not_asked(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "value": None, "floor": None, "bound": reason, "ok": None}


def unasked(claims: list[dict[str, Any]], reason: str) -> list[dict[str, Any]]:
    """The same claims with what was measured, but neither held nor missed: their sizes were not run.

    A claim that was not asked has a reason of its own already.
    """
    return [
        claim if claim["ok"] is None else {**claim, "bound": f"{reason}; {claim['bound']} {claim['floor']}", "ok": None}
        for claim in claims
    ]


def as_asked(claims: list[dict[str, Any]], quick: bool, **options: tuple[Any, Any]) -> list[dict[str, Any]]:
    """The claims of the documented run; of any other one as `unasked`.

    Parameters
    ----------
    options : value and documented value of each option that changes what a claim measures; a value of None is that.
    """
    other = [f"--{name} {value}" for name, (value, documented) in options.items() if value not in (None, documented)]
    reason = "--quick" if quick else ", ".join(other)
    return unasked(claims, reason) if reason else claims


def _claim(name: str, value: float, floor: float, bound: str, ok: bool) -> dict[str, Any]:
    value = float(value)
    # A duality gap of 2e-5 is not 0.
    shown = round(value, 4) if abs(value) >= 0.01 else float(f"{value:.3g}")
    return {"name": name, "value": shown, "floor": floor, "bound": bound, "ok": bool(ok)}


def in_fresh_process(code: str, arguments: dict[str, Any], threads: int | None = None) -> dict[str, Any]:
    """What ``measure(arguments)`` of the private module `code` beside this file returns, in a process of its own.

    Parameters
    ----------
    threads : BLAS threads of the process; None leaves the library's default.
    """
    environment = dict(os.environ)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS") if threads else ():
        environment[name] = str(threads)
    command = [sys.executable, str(Path(__file__).with_name(f"{code}.py")), json.dumps(arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{code} {arguments} ended with status {done.returncode}:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def machine_facts() -> dict[str, Any]:
    """Whatever the figures depend on and the code does not."""
    import_module("numpy")  # which loads its BLAS: `large_basis` itself has no arrays
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        # More than the benchmark's own threads: a neighbour was running.
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "blas": sorted({_library(found) for found in threadpool_info() if found["user_api"] == "blas"}),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
    }


def _library(found: dict[str, Any]) -> str:
    return f"{found['internal_api']} {found['version']} {found.get('architecture') or ''}".strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main(
    run: Callable[..., dict[str, Any]],
    description: str | None,
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    """The command line of one benchmark; ends the process with status 1 if a claim misses its floor."""
    parser = argparse.ArgumentParser(prog=sys.argv[0], description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions: does it run")
    parser.add_argument("--json", nargs="?", const="-", metavar="PATH", help="JSON to PATH, or to stdout")
    if add_arguments is not None:
        add_arguments(parser)
    options = vars(parser.parse_args())
    path = options.pop("json")
    if path and path != "-" and not Path(path).absolute().parent.is_dir():
        parser.error(f"--json {path}: its folder is not there")  # known before hours of measurements
    # As Ctrl-C: processes at work are ended, and temporary folders removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    facts = machine_facts()
    result = {**run(**options), "quick": options["quick"], "machine": facts}
    # With JSON on stdout the table goes where progress goes.
    console = Console(stderr=path == "-", highlight=False)
    show(result, console if console.is_terminal else Console(stderr=path == "-", highlight=False, width=10_000))
    text = json.dumps(result, indent=1)
    if path == "-":
        print(text)
    elif path:
        Path(path).write_text(text + "\n", encoding="utf-8")
    missed = [claim for claim in result["claims"] if claim["ok"] is False]
    for claim in missed:
        print(f"missed: {_sentence(claim)}", file=sys.stderr)
    sys.exit(1 if missed else 0)


def show(result: dict[str, Any], console: Console) -> None:
    """The table, the claims under it, and the machine in one line."""
    table = Table(title=result["title"], title_justify="left")
    for column in result["columns"]:
        table.add_column(column, overflow="fold")
    for row in result["rows"]:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)
    for claim in result["claims"]:
        mark = {True: "[green]holds[/]", False: "[red]missed[/]", None: "[yellow]not asked[/]"}[claim["ok"]]
        console.print(f"{mark}  {_sentence(claim)}")
    for note in result.get("notes", []):
        console.print(f"note: {note}")
    facts = result["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    console.print(f"{facts['processor']}, {facts['cores']} cores, {', '.join(facts['blas'])}; {packages}")


def write_page(path: Path, heading: str, words: Sequence[str], result: dict[str, Any]) -> None:
    """A page of Markdown: the heading, some lines, the claims and the table."""
    lines = [f"# {heading}", "", *words, "", "| claim | measured | bound | |", "|---|---|---|---|"]
    for claim in result["claims"]:
        mark = {True: "holds", False: "missed", None: "not asked"}[claim["ok"]]
        value, floor = ("" if claim[name] is None else claim[name] for name in ("value", "floor"))
        bound = f"{claim['bound']} {floor}".strip()
        lines.append(f"| {claim['name']} | {value} | {bound} | {mark} |")
    lines += ["", f"| {' | '.join(result['columns'])} |", "|" + "---|" * len(result["columns"])]
    lines += [f"| {' | '.join('' if value is None else str(value) for value in row)} |" for row in result["rows"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sentence(claim: dict[str, Any]) -> str:
    if claim["ok"] is None:
        return f"{claim['name']}: {_cell(claim['value']) or '-'} ({claim.get('bound')})"
    return f"{claim['name']}: {_cell(claim['value'])} ({claim.get('bound', 'at least')} {_cell(claim['floor'])})"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
