"""Committee: the rate of its sweep against the machine's GEMM, its memory as m grows; tuning ARD lengthscales at scale.

Friedman's function on 10 features, on disk as float32; 500 query points, members of 1,000 rows, hyper-parameters given.
Operations of a member of b rows: b^3 / 3 (Cholesky), b^2 n (triangular solve), b^2 n (G G^T), b n^2 (G^T G) and b n^2
(whitening), 2 b^2 p and 2 b n p (inner products of kernel values, whose exponentials are not counted). The machine's
rate: NumPy's DGEMM of (1000, 1000) on as many Python threads, one BLAS thread each, just before and after.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from _rates import gemm_rate
from _report import at_least, at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import friedman

P, N, BLOCK_SIZE, THREADS, REPEATS = 10, 500, 1000, 2, 40


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims."""
    n, block_size = (100, 200) if quick else (N, BLOCK_SIZE)
    sizes = (20_000, 40_000) if quick else (250_000, 1_000_000)
    repetitions = 1 if quick else 3
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    found: dict[int, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="streamkernel-committee-") as folder:
        for m in sizes:
            store = Path(folder) / f"{m}.zarr"
            write_store(store, lambda start, count: friedman(count, P, start=start), m, P, "float32")
            shares = []
            found[m] = []
            for _ in range(repetitions):
                before = gemm_rate(block_size, block_size, THREADS, REPEATS)
                asked = {"what": "committee", "store": str(store), "n": n, "block_size": block_size}
                found[m].append(in_fresh_process("_committee_once", asked, THREADS))
                rate = (before + gemm_rate(block_size, block_size, THREADS, REPEATS)) / 2
                shares.append(m * _operations(n, block_size) / found[m][-1]["sweep"] / rate)
            share = statistics.median(shares)
            rows.append(["committee", m, *_medians(found[m], "sweep", 2), round(share, 3),
                         round(statistics.median(each["peak"] for each in found[m]) / 2**20),
                         *_medians(found[m], "rmse", 4), *_medians(found[m], "predict", 2)])  # fmt: skip
        claims.append(at_least(f"m = {sizes[-1]:,}, n = {n}, members of {block_size}: share of DGEMM", share, 0.5))
        small, large = (
            {name: statistics.median(each[name] for each in found[m]) for name in ("peak", "predict")} for m in sizes
        )
        claims.append(at_most(f"peak memory, {sizes[1]:,} rows over {sizes[0]:,}", large["peak"] / small["peak"], 1.05))
        promise = max(each["peak"] / each["planned"] for runs in found.values() for each in runs)
        claims.append(at_most("peak memory over the promise", promise, 1.0))
        ratio = large["predict"] / small["predict"]
        claims.append(at_most(f"a prediction's time, after {sizes[1]:,} rows over {sizes[0]:,}", ratio, 1.25))
        asked = {"what": "tune", "store": str(store), "n": n}
        tuned = [in_fresh_process("_committee_once", asked, THREADS) for _ in range(repetitions)]
    seconds = statistics.median(each["seconds"] for each in tuned)
    peak = round(statistics.median(each["peak"] for each in tuned) / 2**20)
    rows.append(["gp --ard, tuned", sizes[-1], round(seconds, 1), None, peak, *_medians(tuned, "rmse", 4), None])
    claims.append(at_most(f"fit with ARD tuning on {sizes[-1]:,} rows, seconds", seconds, 300.0))
    claims.append(
        at_most("tuning: peak memory over the promise", max(each["peak"] / each["planned"] for each in tuned), 1.0)
    )
    coverage = statistics.median(each["coverage"] for each in tuned)
    claims += [at_least("tuned: coverage of 95 %", coverage, 0.93), at_most("tuned: coverage of 95 %", coverage, 0.97)]
    return {
        "title": f"Committees of {n} query points, p = {P}, {THREADS} threads (medians of {repetitions} processes)",
        "columns": ["what", "rows", "seconds", "of DGEMM", "peak MiB", "rmse to f", "predict 20,000"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


def _operations(n: int, b: int) -> float:
    """Of a row."""
    return b * b / 3 + 2 * b * n + 2 * n * n + 2 * b * P + 2 * n * P


def _medians(runs: list[dict[str, Any]], name: str, digits: int) -> list[float]:
    return [round(statistics.median(each[name] for each in runs), digits)]


if __name__ == "__main__":
    main(run, __doc__)
