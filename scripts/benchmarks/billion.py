"""A billion rows: memory and seconds of ridge fits from 1e5 to 1e9 rows, the largest killed and resumed.

Friedman's function with noise of deviation 1 on ten features: rows that are made when they are read
(``synthetic://friedman``), and the same rows in a Zarr store on a disk. n = 300 functions, everything else by default,
on the threads of one process, under a limit of 2 GB; the error is that on 100,000 rows behind those of the fit. A run
that is interrupted goes on where it was, with the same --folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _billion_fit import Fit
from _billion_picture import draw
from _report import at_most, main, not_asked, unasked, write_page

from streamkernel import ingest

N, SEED, LIMIT, MEMORY = 300, 0, 2 * 10**9, "2GB"
SIZES = (10**5, 10**6, 10**7, 10**8, 10**9)
HELD_OUT = 100_000
MADE, STORED = "made when read", "Zarr on disk"
STORED_ROW_BYTES = 60  # of ten features in float32 and y in float64, which do not compress


def run(
    quick: bool = False, rows: int = SIZES[-1], stored: int = 10**8, kill_at: float = 0.5, folder: str = "",
    results: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The table and the claims.

    Parameters
    ----------
    rows, stored : most rows of the fits to rows that are made, and to rows of a store.
    kill_at : share of the final sweep after which the largest fit is killed, by the seconds of the one before.
    folder : of models, logs and stores; what is there is not done again.
    """
    sizes = (20_000, 40_000) if quick else tuple(size for size in SIZES if size <= rows)
    if not sizes:
        raise SystemExit(f"--rows {rows}: the smallest table has {SIZES[0]:,}")
    n, held_out = (50, 10_000) if quick else (N, HELD_OUT)
    found: dict[str, dict[int, dict[str, Any]]] = {MADE: {}, STORED: {}}
    with _folder(quick, folder) as work:
        for m in sizes:
            kill = None
            if m == sizes[-1]:
                before = found[MADE].get(sizes[-2]) if len(sizes) > 1 else None
                kill = 1.0 if before is None else kill_at * before["final"] * m / before["rows"]
            made = Fit(work, f"made-{m}-{n}", _url(m, held_out), m, held_out, n, MEMORY, kill)
            found[MADE][m] = made.result()
        for m in sizes:
            if m <= stored:
                found[STORED][m] = _from_store(work, m, held_out, n)
        log = _log(made)
    result = {
        "title": f"Ridge fits of n = {n} functions, p = 10, {MEMORY} allowed",
        "columns": ["rows", "of", "peak MiB", "promised MiB", "seconds", "lost by the kill", "rows a second of the "
                    "final sweep", "error (noise 1)"],
        "rows": [_row(m, of, each) for of, fits in found.items() for m, each in fits.items()],
        "claims": _claims(found, asked=not quick),
        "log": log,
    }  # fmt: skip
    if results is not None:
        _write(Path(results), found, result, n)
    return result


@contextmanager
def _folder(quick: bool, given: str) -> Iterator[Path]:
    """Where the fits are. A quick run asks whether all of it runs: it begins anew, and leaves nothing."""
    if quick and not given:
        with tempfile.TemporaryDirectory(prefix="streamkernel-billion-") as scratch:
            yield Path(scratch)
        return
    work = Path(given or Path(tempfile.gettempdir()) / "streamkernel-billion")
    work.mkdir(parents=True, exist_ok=True)
    yield work


def _url(m: int, held_out: int) -> str:
    return f"synthetic://friedman?rows={m + held_out}&seed={SEED}"


def _from_store(work: Path, m: int, held_out: int, n: int) -> dict[str, Any]:
    """The fit to the same rows in a store, which is removed after it."""
    store = work / f"stored-{m}.zarr"
    fit = Fit(work, f"stored-{m}-{n}", str(store), m, held_out, n, MEMORY)
    if not (work / f"{fit.name}.json").exists() and not store.exists():
        needed = STORED_ROW_BYTES * (m + held_out)
        if shutil.disk_usage(work).free < 2 * needed:
            raise SystemExit(f"{m} rows on disk take {needed / 1e9:.0f} GB below {work}; give another --folder")
        ingest(_url(m, held_out), store)
    result = fit.result()
    shutil.rmtree(store, ignore_errors=True)
    return result


def _row(m: int, of: str, found: dict[str, Any]) -> list[Any]:
    rate = f"{m / found['final']:,.0f}"
    sizes = [round(found[name] / 2**20) for name in ("peak", "planned")]
    return [f"{m:,}", of, *sizes, round(found["seconds"], 1), round(found["lost"], 1), rate, round(found["rmse"], 4)]


def _claims(found: dict[str, dict[int, dict[str, Any]]], *, asked: bool) -> list[dict[str, Any]]:
    claims = []
    for of, fits in found.items():
        for m, each in fits.items():
            claims.append(at_most(f"{m:,} rows {of}: peak, GB", each["peak"] / 1e9, LIMIT / 1e9))
    made, stored = found[MADE], found[STORED]
    for of, fits in ((MADE, made), (STORED, stored)):
        large, small = max(fits, default=0), 10**6
        if large > small in fits:
            ratio = fits[large]["peak"] / fits[small]["peak"]
            claims.append(at_most(f"{of}: peak of {large:,} rows over that of {small:,}", ratio, 1.1))
    if not asked:
        claims = unasked(claims, "--quick")
    name = "a billion rows: seconds, without what the kill lost"
    if 10**9 in made:
        return [*claims, at_most(name, made[10**9]["seconds"], 3600.0)]
    return [*claims, not_asked(name, "fewer rows were asked")]


_SAID = {
    "started": lambda event: f"started; sweeps that are there: {', '.join(event['done']) or 'none'}",
    "swept": lambda event: f"{event['step']} saved, after {event['seconds']:.0f} s",
    "killed": lambda event: (
        f"killed with SIGKILL, {event['since']:.0f} s after the last saved sweep; peak {event['peak'] / 2**20:.0f} MiB"
    ),
    "stopped": lambda event: f"stopped with the benchmark, {event['since']:.0f} s after the last saved sweep",
    "ended": lambda event: f"ended; the final sweep took {event['final']:.0f} s; peak {event['peak'] / 2**20:.0f} MiB",
}


def _log(fit: Fit) -> list[str]:
    """The log of a fit in words, with the seconds since its start."""
    events = fit.events
    began = events[0]["time"]
    return [f"{event['time'] - began:8.0f} s  {_SAID[event['event']](event)}" for event in events]


def _write(folder: Path, found: dict[str, dict[int, dict[str, Any]]], result: dict[str, Any], n: int) -> None:
    curves = {of: {m: each["peak"] for m, each in fits.items()} for of, fits in found.items() if fits}
    draw(folder / "billion.png", curves, LIMIT)
    words = [
        f"`scripts/bench billion --results docs/results`, {time.strftime('%Y-%m-%d')}: ridge of {n} functions on",
        "Friedman's function, ten features, under a limit of 2 GB, on threads of one process.",
        "Rows are made when they are read (`synthetic://friedman`), or the same rows lie in a Zarr store.",
        f"The machine's load was {os.getloadavg()[0]:.1f} at the end, on {os.cpu_count()} cores; beside other work the",
        "seconds are no measurement.",
        f"The fit to {max(found[MADE]):,} made rows was killed in the final sweep and resumed.",
        "",
        "![Peak memory against rows](billion.png)",
    ]
    write_page(folder / "billion.md", "A billion rows", words, result)
    page = folder / "billion.md"
    log = ["", "The log of the largest fit:", "", "```", *result["log"], "```"]
    page.write_text(page.read_text(encoding="utf-8") + "\n".join(log) + "\n", encoding="utf-8")


def _number(text: str) -> int:
    return int(float(text))


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=_number, default=SIZES[-1], help="most rows of a fit, such as 1e7")
    parser.add_argument("--stored", type=_number, default=10**8, help="most rows of a store on the disk, 60 bytes each")
    parser.add_argument("--kill-at", type=float, default=0.5, help="share of the final sweep after which it is killed")
    parser.add_argument("--folder", default="", help="models, logs and stores; what is there is not done again")
    parser.add_argument("--results", metavar="FOLDER", help="write billion.md and billion.png there")


if __name__ == "__main__":
    main(run, __doc__, _add)
