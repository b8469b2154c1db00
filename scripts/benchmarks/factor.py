"""Factor: the rate at which G is written, its memory as m grows, and few-sweep picks against accelerated RPCholesky.

Useful operations of the sweep that writes G: m n^2 (the triangular solve of the whitening) and 2 m n p (the inner
products of the kernel blocks; their exponentials are not counted), over its seconds from first read to the last chunk
on disk, digests and all. The machine's rate: NumPy's K @ A (a DGEMM) on blocks of
4,096 rows in as many Python threads, one BLAS thread each. Both turn about; medians. Rows x ~ N(0, I_20), Gaussian
kernel of lengthscale sqrt(20), n = 500; each factor in a process of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from _rates import gemm_rate
from _report import at_least, at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import smooth_target_table

P, N, BLOCK_ROWS, BLOCKS = 20, 500, 4096, 16
THREADS = 2


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims at n = 500."""
    n = 100 if quick else N
    sizes = (20_000, 40_000) if quick else (250_000, 1_000_000)
    repetitions = 1 if quick else 3
    rows, claims = [], []
    with tempfile.TemporaryDirectory(prefix="streamkernel-factor-") as folder:
        peaks = {}
        for m in sizes:
            store = Path(folder) / f"{m}.zarr"
            write_store(store, lambda start, count: smooth_target_table(count, P, start=start), m, P, "float32")
            for dtype in ("float32", "float64"):
                written, share = _written(store, Path(folder), m, n, dtype, repetitions)
                peaks[m, dtype] = statistics.median(run["peak"] for run in written)
                median = statistics.median(run["write"] for run in written)
                whole = statistics.median(run["seconds"] for run in written)
                rows.append([f"G in {dtype}", m, round(whole, 2), round(median, 2), round(share, 3),
                             round(peaks[m, dtype] / 2**20), f"{written[0]['residual']:.4g}"])  # fmt: skip
                if m == sizes[-1]:
                    claims.append(at_least(f"m = {m:,}, n = {n}, {dtype}: share of the DGEMM rate", share, 0.6))
                    promise = max(run["peak"] / run["planned"] for run in written)
                    claims.append(at_most(f"m = {m:,}, n = {n}, {dtype}: peak memory over the promise", promise, 1.0))
        for dtype in ("float32", "float64"):
            growth = peaks[sizes[1], dtype] / peaks[sizes[0], dtype]
            claims.append(at_most(f"{dtype}: peak memory, {sizes[1]:,} rows over {sizes[0]:,}", growth, 1.1))
    peers = _rules(20_000 if quick else 100_000, n, repetitions)
    for rule, runs in peers.items():
        seconds = statistics.median(run["seconds"] for run in runs)
        residual = statistics.median(run["residual"] for run in runs)
        rows.append([rule, 20_000 if quick else 100_000, round(seconds, 2), None, None, None, f"{residual:.4g}"])
    ours, theirs = (
        {name: statistics.median(run[name] for run in peers[rule]) for name in ("seconds", "residual")}
        for rule in ("few-sweep", "rpcholesky")
    )
    claims.append(at_most("few-sweep: seconds over RPCholesky's", ours["seconds"] / theirs["seconds"], 1.0))
    claims.append(at_most("few-sweep: residual trace over RPCholesky's", ours["residual"] / theirs["residual"], 0.93))
    return {
        "title": f"Factors of n = {n} columns, p = {P}, {THREADS} threads (medians of {repetitions} processes)",
        "columns": ["what", "rows", "seconds", "writing G", "of DGEMM", "peak MiB", "relative residual trace"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


def _written(
    store: Path, folder: Path, m: int, n: int, dtype: str, repetitions: int
) -> tuple[list[dict[str, Any]], float]:
    """Every factor's measurements, and the median share of the machine's rate."""
    written, shares = [], []
    for _ in range(repetitions):
        before = gemm_rate(BLOCK_ROWS, n, THREADS, BLOCKS)
        asked = {"store": str(store), "out": str(folder / "factor"), "n": n, "dtype": dtype}
        written.append(in_fresh_process("_factor_once", asked, THREADS))
        rate = (before + gemm_rate(BLOCK_ROWS, n, THREADS, BLOCKS)) / 2
        shares.append(m * (n**2 + 2 * n * P) / written[-1]["write"] / rate)
    return written, statistics.median(shares)


def _rules(m: int, n: int, repetitions: int) -> dict[str, list[dict[str, Any]]]:
    """Basis and residual path of rows in memory, without writing G; the rules turn about."""
    found: dict[str, list[dict[str, Any]]] = {"few-sweep": [], "rpcholesky": []}
    for seed in range(repetitions):
        for rule, runs in found.items():
            asked = {"memory": m, "p": P, "n": n, "rule": rule, "seed": seed}
            runs.append(in_fresh_process("_factor_once", asked, THREADS))
    return found


if __name__ == "__main__":
    main(run, __doc__)
