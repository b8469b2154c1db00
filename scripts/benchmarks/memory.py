"""Memory: the measured peak of all processes against the promise, as the table grows.

Friedman's function on 10 features, written to disk by blocks and ingested as float32; n = 500 functions, everything
else by default, on threads of one process and on a local Dask cluster. Each fit is a process of its own.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from _report import at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import friedman

P, N = 10, 500
SIZES = (250_000, 500_000, 1_000_000, 2_000_000)
WHERE = ("threads", "local cluster")


def run(quick: bool = False) -> dict[str, Any]:
    """The table; peak <= promise everywhere, and growth over the range of m below 10 %."""
    sizes = (20_000, 40_000) if quick else SIZES
    n = 100 if quick else N
    repetitions = 1 if quick else 3
    rows, peaks, claims = [], {}, []
    for m in sizes:
        folder = Path(tempfile.mkdtemp(prefix="streamkernel-memory-"))
        try:
            store = folder / "table.zarr"
            write_store(store, lambda start, count: friedman(count, P, start=start), m, P, "float32")
            for where in WHERE:
                arguments = {"where": where, "store": str(store), "n": n}
                runs = [in_fresh_process("_memory_once", arguments) for _ in range(repetitions)]
                # The promise must hold every time: the largest of the peaks, not their median.
                peak, planned = max(found["peak"] for found in runs), runs[0]["planned"]
                seconds = statistics.median(found["seconds"] for found in runs)
                peaks[where, m] = statistics.median(found["peak"] for found in runs)
                rows.append([m, where, round(planned / 2**20), round(peaks[where, m] / 2**20), round(peak / 2**20),
                             round(peak / planned, 3), round(seconds, 1)])  # fmt: skip
                claims.append(at_most(f"{m:,} rows, {where}: largest peak, share of the promise", peak / planned, 1.0))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    first, last = sizes[0], sizes[-1]
    for where in WHERE:
        ratio = peaks[where, last] / peaks[where, first]
        growth = at_most(f"{where}: median peak at {last:,} rows over that at {first:,}", ratio, 1.10)
        claims += unasked([growth], "--quick") if quick else [growth]
    return {
        "title": f"Peak memory of fits of n = {n} functions, p = {P} ({repetitions} processes each)",
        "columns": ["rows", "where", "promised MiB", "median peak MiB", "largest", "of the promise", "seconds"],
        "rows": rows,
        "claims": claims,
    }


if __name__ == "__main__":
    main(run, __doc__)
