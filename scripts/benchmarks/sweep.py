"""Sweep: the flop rate of the final sweep as a share of this machine's own DSYRK rate, in one run.

Useful operations of the sweep: m n^2 (the symmetric half of K^T K), over its seconds from first read to sums, reading,
kernel blocks and all. The machine's rate: NumPy's K.T @ K (a DSYRK) on blocks of 4,096 rows in as many Python threads,
one BLAS thread each. Both turn about; medians. Rows x ~ N(0, I_20) in a Zarr store, Gaussian kernel, uniform basis.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _rates import syrk_rate
from _report import at_least, main, unasked
from _tables import write_store
from data_sets import smooth_target_table

from streamkernel import open_table
from streamkernel.engine import Session, ThreadExecutor, available_cpus
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.selection import Problem, RowCache, as_rule

P, BLOCK_ROWS, FLOOR = 20, 4096, 0.70
BLOCKS = 12  # products of each thread in one measurement


def run(quick: bool = False) -> dict[str, Any]:
    """The table, and the claim at n = 1,000."""
    m = 20_000 if quick else 200_000
    sizes = (500,) if quick else (500, 1000, 2000)
    repetitions = 3 if quick else 5
    threads = available_cpus()
    rows, claims = [], []
    with tempfile.TemporaryDirectory(prefix="streamkernel-sweep-") as folder:
        for dtype in ("float32", "float64"):
            store = Path(folder) / f"{dtype}.zarr"
            write_store(store, lambda start, count: smooth_target_table(count, P, start=start), m, P, dtype)
            for n in sizes:
                reduction, seconds, dsyrk = _measure(store, n, threads, repetitions)
                ours = m * n**2 / seconds
                way = {None: "whitened blocks", 0: "K^T K"}.get(reduction.leading, f"{reduction.leading} whitened")
                rows.append([dtype, n, way, round(seconds, 3), round(ours / 1e9, 1), round(dsyrk / 1e9, 1),
                             round(ours / dsyrk, 3)])  # fmt: skip
                if n == 1000:
                    claims.append(at_least(f"{dtype}, n = 1,000: share of the DSYRK rate", ours / dsyrk, FLOOR))
                elif quick:
                    claims += unasked([at_least(f"{dtype}, n = {n}: share of DSYRK", ours / dsyrk, FLOOR)], "--quick")
    return {
        "title": f"Final sweep over m = {m:,} rows, p = {P}, {threads} threads (medians of {repetitions})",
        "columns": ["dtype", "n", "sums", "seconds", "GFLOP/s", "DSYRK GFLOP/s", "share"],
        "rows": rows,
        "claims": claims,
    }


def _measure(store: Path, n: int, threads: int, repetitions: int) -> tuple[NormalEquations, float, float]:
    """The reduction, median seconds of its sweep, median DSYRK rate (operations a second)."""
    table = open_table(store)
    session = Session(ThreadExecutor(threads))
    problem = Problem(table, Gaussian(float(np.sqrt(P))), n)
    basis = as_rule("uniform").select(problem, session, RowCache(table, session)).basis
    reduction = NormalEquations.of(basis, np.zeros(1), table.n_rows)
    seconds, rates = [], []
    session.sweep(reduction, table, "warm-up")
    for _ in range(repetitions):
        rates.append(syrk_rate(BLOCK_ROWS, n, threads, BLOCKS))
        session.sweep(reduction, table, "final sweep")
        seconds.append(session.records[-1].seconds)
    rates.append(syrk_rate(BLOCK_ROWS, n, threads, BLOCKS))
    return reduction, statistics.median(seconds), statistics.median(rates)


if __name__ == "__main__":
    main(run, __doc__)
