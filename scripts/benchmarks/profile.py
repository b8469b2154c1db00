"""Profile: where the seconds of a fit on the command line go, from the start of the process to the saved model.

The table is that of `fit`: 200,000 rows x 20 in float32, n = 1,000, threads of one process. `plain` has its kernel and
lengthscale given, and alpha by GCV; `default` searches for all. Each fit is a process of its own, medians of five. A
call within another part counts for the inner one.

    scripts/bench profile --json docs/results/profile.json
    scripts/bench profile --basis 4000 --ways default --repetitions 1
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _report import as_asked, at_most, in_fresh_process, main
from _tables import write_store
from data_sets import smooth_target_table

M, N, P, THREADS, REPETITIONS = 200_000, 1000, 20, 2, 5
WAYS = {
    "plain": ["--kernel", "gaussian", "--lengthscale", f"{np.sqrt(P)}", "--scale", "none", "--alpha", "gcv"],
    "default": [],
}


def run(
    quick: bool = False, basis: int = N, ways: Sequence[str] = tuple(WAYS), repetitions: int = REPETITIONS
) -> dict[str, Any]:
    """The table of seconds, a row for each part."""
    m, n, repetitions = (20_000, 100, 1) if quick else (M, basis, repetitions)
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="streamkernel-profile-") as folder:
        store = Path(folder) / "rows.zarr"
        write_store(store, lambda start, count: smooth_target_table(count, P, start=start), m, P, "float32")
        for repetition in range(repetitions):
            for way in found:
                given = {
                    "store": str(store),
                    "model": str(Path(folder) / f"{way}-{repetition}"),
                    "options": ["--basis", str(n), "--scheduler", "threads", *WAYS[way]],
                    "began": time.time(),
                }
                found[way].append(in_fresh_process("_profile_once", given, THREADS))
    names = list(dict.fromkeys(name for runs in found.values() for each in runs for name in each["parts"]))

    def median(way: str, name: str) -> float:
        return round(statistics.median(each["parts"].get(name, 0.0) for each in found[way]), 3)

    def total(way: str, name: str) -> float:
        return statistics.median(each[name] for each in found[way])

    rows: list[list[Any]] = [[name, *(median(way, name) for way in found)] for name in names]
    rows.append(["all, seconds", *(round(total(way, "total"), 2) for way in found)])
    rows.append(["peak MiB", *(round(total(way, "peak") / 2**20) for way in found)])
    first = next(iter(found))
    started = median(first, "Python starts") + median(first, "libraries loaded")
    claims = [
        at_most("seconds to the first read: Python and libraries", started, 1.0),
        at_most(f"peak MiB, {first}", total(first, "peak") / 2**20, 400.0),
    ]
    return {
        "title": f"Seconds of a fit of {m:,} x {P}, n = {n:,} (medians of {repetitions} processes, {THREADS} threads)",
        "columns": ["part", *found],
        "rows": rows,
        "claims": as_asked(claims, quick, basis=(basis, N), repetitions=(repetitions, REPETITIONS)),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--basis", type=int, default=N, help="number of basis functions n")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=tuple(WAYS), help="which fits")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="processes of each")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
