"""Pursuit: 1,000 terms of a table that is not held in memory, against one term at a time on the rows that are.

Friedman's function on 10 features, on disk as float32, noise of deviation 0.1: what is left is what the functions lack.
In memory: pre-fitting on the first 50,000 rows, whose kernel matrix is held in single precision (10 GB); every row
competes for every term. Errors are to the noiseless function on 20,000 new rows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from _report import at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import friedman

P, TERMS, HELD, THREADS, LENGTHSCALE = 10, 1000, 50_000, 2, 1.27
SIZES, NOISE, MOST_SWEEPS = (250_000, 1_000_000), 0.1, 60


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims."""
    terms, sizes, held = (80, (10_000, 40_000), 2000) if quick else (TERMS, SIZES, HELD)
    rows: list[list[Any]] = []

    def measured(name: str, m: int, **asked: Any) -> dict[str, Any]:
        asked |= {"terms": terms, "noise": NOISE, "lengthscale": LENGTHSCALE}
        found = in_fresh_process("_pursuit_once", asked, THREADS)
        errors = (round(found["rmse"][str(terms * eighths // 8)], 4) for eighths in (2, 4, 8))
        planned = None if found["planned"] is None else round(found["planned"] / 2**20)
        rows.append(
            [name, m, found["sweeps"], round(found["seconds"], 1), round(found["peak"] / 2**20), planned, *errors]
        )
        return found

    with tempfile.TemporaryDirectory(prefix="streamkernel-pursuit-") as folder:
        stores = [Path(folder) / f"{m}.zarr" for m in sizes]
        for m, store in zip(sizes, stores, strict=True):
            write_store(store, lambda start, count: friedman(count, P, NOISE, start=start), m, P, "float32")
        small, large = (
            measured("streamed", m, what="streamed", store=str(store), options={})
            for m, store in zip(sizes, stores, strict=True)
        )
        sample = measured("one at a time", held, what="in memory", store=str(stores[-1]), rows=held)
    error = large["rmse"][str(terms)] / sample["rmse"][str(terms)]
    claims = [
        at_most(f"sweeps for {terms} terms", large["sweeps"], MOST_SWEEPS),
        at_most("terms that are missing", terms - large["terms"], 0),
        at_most(f"error, over that of one at a time on {held:,} rows", error, 1.0),
        at_most(f"peak memory, {sizes[1]:,} rows over {sizes[0]:,}", large["peak"] / small["peak"], 1.05),
        at_most("peak memory over the promise", max(each["peak"] / each["planned"] for each in (small, large)), 1.0),
    ]
    return {
        "title": f"Matching pursuit of {terms} terms, p = {P}, {THREADS} threads (one process each)",
        "columns": ["what", "rows", "sweeps", "seconds", "peak MiB", "planned MiB", "rmse at 1/4", "1/2", "all"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


if __name__ == "__main__":
    main(run, __doc__)
