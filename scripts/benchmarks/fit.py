"""Fit: seconds, peak memory and test error against scikit-learn's Nystroem + Ridge at the same n and lengthscale, and
against our default, which searches for a metric.

Rows x ~ N(0, I_20), a smooth target with noise 0.1, Gaussian kernel of gamma = 1/40, n = 1,000. Ours reads a Zarr store
as `ingest` leaves it and chooses its basis and alpha; scikit-learn has its rows in NumPy arrays and alpha = 1e-6 m
(and, for the error alone, the best alpha of a grid). Every measurement is a process of its own, both sides turn about,
medians of three. Peak memory is the whole process, libraries included; the error is against the noise-free target.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from _report import at_least, at_most, in_fresh_process, main, unasked
from _tables import write_store
from data_sets import smooth_target_table

P, N = 20, 1000
DTYPES = ("float32", "float64")
OURS, SEARCHED, SKLEARN = "streamkernel", "streamkernel, default", "scikit-learn"
THREADS = 2


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims, which are about the largest m that both sides are given."""
    n = 200 if quick else N
    repetitions = 1 if quick else 3
    shared = (20_000,) if quick else (50_000, 200_000)
    alone = () if quick else (1_000_000,)
    rows, found = [], {}
    with tempfile.TemporaryDirectory(prefix="streamkernel-fit-") as folder:
        for m in (*shared, *alone):
            found[m] = _at(Path(folder), m, n, repetitions, both=m in shared)
            rows += [[m, *row] for row in _rows(found[m])]
    claims = _claims(found[shared[-1]], shared[-1], n)
    return {
        "title": f"Fit of n = {n} functions, p = {P} (medians of {repetitions} processes, {THREADS} threads)",
        "columns": ["rows", "who", "dtype", "seconds", "peak MiB", "error", "best alpha's", "selection s", "final s"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
        "notes": [
            "selection: opening the table and everything else before the final sweep",
            "best alpha's: error at scikit-learn's best alpha",
        ],
        "measurements": {f"{m} {' '.join(key)}": runs for m in found for key, runs in found[m].items()},
    }


def _at(folder: Path, m: int, n: int, repetitions: int, both: bool) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """All measurements at m rows, by (who, dtype); turn about, so that a busy neighbour hits both sides."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    stores = {dtype: folder / f"{m}-{dtype}.zarr" for dtype in DTYPES}
    for dtype, store in stores.items():
        write_store(store, lambda start, count: smooth_target_table(count, P, start=start), m, P, dtype)
    for _ in range(repetitions):
        for dtype in DTYPES:
            for who in (OURS, SEARCHED, SKLEARN) if both else (OURS, SEARCHED):
                arguments = {"who": who, "m": m, "n": n, "dtype": dtype, "store": str(stores[dtype])}
                found.setdefault((who, dtype), []).append(in_fresh_process("_fit_once", arguments, THREADS))
    if both:
        arguments = {"who": SKLEARN, "m": m, "n": n, "dtype": "float64", "best": True}
        found[SKLEARN, "best"] = [in_fresh_process("_fit_once", arguments, THREADS)]
    return found


def _median(runs: list[dict[str, Any]], name: str) -> float:
    return statistics.median(float(run[name]) for run in runs)


def _rows(found: dict[tuple[str, str], list[dict[str, Any]]]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for (who, dtype), runs in found.items():
        if dtype == "best":
            continue
        row = [who, dtype, round(_median(runs, "seconds"), 2), round(_median(runs, "peak") / 2**20)]
        row.append(round(_median(runs, "error"), 4))
        if who != SKLEARN:
            row += [None, round(_median(runs, "before_final"), 2), round(_median(runs, "final"), 2)]
        else:
            row += [round(found[who, "best"][0]["error"], 4), None, None]
        rows.append(row)
    return rows


def _claims(found: dict[tuple[str, str], list[dict[str, Any]]], m: int, n: int) -> list[dict[str, Any]]:
    """Ours is the float32 table: what ingest makes unless it is told otherwise."""
    at = f"m = {m:,}, n = {n:,}"
    ours, searched = found[OURS, "float32"], found[SEARCHED, "float32"]
    single, double = found[SKLEARN, "float32"], found[SKLEARN, "float64"]
    seconds, error, final = (_median(ours, name) for name in ("seconds", "error", "final"))
    selection = _median(ours, "before_final") / final
    memory = _median(ours, "peak") / _median(double, "peak")
    best = error / found[SKLEARN, "best"][0]["error"]
    return [
        at_least(f"{at}: times faster than scikit-learn in float64", _median(double, "seconds") / seconds, 3.0),
        at_least(f"{at}: times faster than scikit-learn in float32", _median(single, "seconds") / seconds, 1.8),
        at_most(f"{at}: peak memory, share of scikit-learn's in float64", memory, 0.25),
        at_most(f"{at}: error, share of scikit-learn's", error / _median(double, "error"), 0.72),
        at_most(f"{at}: error, share of scikit-learn's at its best alpha", best, 0.72),
        at_most(f"{at}: choosing the basis, share of the final sweep's seconds", selection, 1.0),
        at_most(
            f"{at}: error of the default, share of that without searches", _median(searched, "error") / error, 0.25
        ),
        at_most(f"{at}: seconds of the default over those without", _median(searched, "seconds") / seconds, 1.3),
    ]


if __name__ == "__main__":
    main(run, __doc__)
