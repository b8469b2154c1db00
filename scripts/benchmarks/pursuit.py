"""Pursuit: 1,000 terms of a table that is not held in memory, against one term at a time on the rows that are.

Friedman's function on 10 features, on disk as float32, noise of deviation 1 (what is left is mostly noise) and 0.1
(what is left is what the functions lack). In memory: pre-fitting on the first 50,000 rows, whose kernel matrix is held
in single precision (10 GB); every row competes for every term. Errors are to the noiseless function on 20,000 new rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _report import at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import Rows, friedman

P, TERMS, HELD, THREADS, LENGTHSCALE = 10, 1000, 50_000, 2, 1.27
SIZES, NOISES = (250_000, 1_000_000), (1.0, 0.1)
MOST_SWEEPS = 60


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims."""
    terms, sizes, held = (60, (10_000, 40_000), 2000) if quick else (TERMS, SIZES, HELD)
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []

    def measured(name: str, m: int, noise: float, **asked: Any) -> dict[str, Any]:
        found = in_fresh_process("_pursuit_once", {"terms": terms, "noise": noise, **asked}, THREADS)
        errors = found["rmse"]
        half, whole = (round(errors[size], 4) if size in errors else None for size in (str(terms // 2), str(terms)))
        planned = None if found["planned"] is None else round(found["planned"] / 2**20)
        rows.append([name, m, noise, found["sweeps"], round(found["seconds"], 1), round(found["peak"] / 2**20), planned,
                     half, whole])  # fmt: skip
        return found

    with tempfile.TemporaryDirectory(prefix="streamkernel-pursuit-") as folder:
        for noise in NOISES:
            found = {}
            for m in sizes if noise == NOISES[0] else sizes[-1:]:
                store = Path(folder) / f"{m}-{noise}.zarr"
                write_store(store, _rows(noise), m, P, "float32")
                asked = {"store": str(store), "lengthscale": LENGTHSCALE}
                found[m] = measured("streamed", m, noise, what="streamed", options={}, **asked)
            sample = measured("one at a time", held, noise, what="in memory", rows=held, **asked)
            large = found[sizes[-1]]
            claims.append(at_most(f"noise {noise}: sweeps for {terms} terms", large["sweeps"], MOST_SWEEPS))
            claims.append(at_most(f"noise {noise}: terms that are missing", terms - large["terms"], 0))
            ratio = large["rmse"][str(terms)] / sample["rmse"][str(terms)]
            claims.append(at_most(f"noise {noise}: error over that of one at a time on {held:,} rows", ratio, 1.0))
            if len(found) == 2:
                growth = large["peak"] / found[sizes[0]]["peak"]
                claims.append(at_most(f"peak memory, {sizes[1]:,} rows over {sizes[0]:,}", growth, 1.05))
            promise = max(each["peak"] / each["planned"] for each in found.values())
            claims.append(at_most(f"noise {noise}: peak memory over the promise", promise, 1.0))
    return {
        "title": f"Matching pursuit of {terms} terms, p = {P}, {THREADS} threads (one process each)",
        "columns": ["what", "rows", "noise", "sweeps", "seconds", "peak MiB", "planned MiB", "rmse at half", "rmse"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


def _rows(noise: float) -> Callable[[int, int], Rows]:
    return lambda start, count: friedman(count, P, noise, start=start)


if __name__ == "__main__":
    main(run, __doc__)
