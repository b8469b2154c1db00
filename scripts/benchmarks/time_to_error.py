"""Seconds to a given error: our fits of growing bases, scikit-learn's Nystroem + Ridge in float32, and EigenPro.

The error to reach is that of scikit-learn with its largest n, at the alpha that is best on the test rows. Of ours, the
time to it is that of the smallest basis whose fit has it: with all searches (kernel, lengthscale, a learned metric,
alpha), and without. EigenPro has a centre at every row; its epochs are counted until it has the error, or the limit of
time. All have the same standardised rows in float32, and the same lengthscale where they do not search for one, the
median distance. The set `smooth` is synthetic, with the error against its noise-free target; the others are real. Each
fit is a process of its own, and the median of the repetitions counts. Falkon has no package on the index, and is left
out.

    scripts/bench time_to_error --json docs/results/time_to_error.json
    scripts/bench time_to_error --sets kin40k --sizes 300,1000
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _peers import in_peer_process, peer_python
from _report import as_asked, at_least, in_fresh_process, main, not_asked
from _sets import data_sets

from streamkernel.kernels import Gaussian
from streamkernel.solvers import median_lengthscale

SETS = ("smooth", "kin40k", "protein-casp", "california-housing")
SMOOTH_ROWS, P, MOST_TEST = 200_000, 20, 10_000
THEIRS = (300, 1000, 3000)
OURS = (30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2000, 3000)
EPOCHS, LIMIT, GIGABYTES, REPETITIONS = 60, 300.0, 6, 3


def run(
    quick: bool = False,
    sets: str | None = None,
    sizes: str | None = None,
    repetitions: int = REPETITIONS,
    peers: str = "eigenpro",
) -> dict[str, Any]:
    """The table and a claim for each set."""
    theirs = tuple(int(size) for size in sizes.split(",")) if sizes else (100, 300) if quick else THEIRS
    repetitions = 1 if quick else repetitions
    table: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in sets.split(",") if sets else SETS[:1] if quick else SETS:
        with tempfile.TemporaryDirectory(prefix="streamkernel-time-") as folder:
            rows = Path(folder) / "rows.npz"
            facts = _write(name, rows, 4_000 if quick else SMOOTH_ROWS)
            if facts is None:
                claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
                continue
            found, claim = _of_set(name, rows, facts, theirs, repetitions, peers, install=not quick)
        table += found
        claims.append(claim)
    if peers == "eigenpro" and peer_python("eigenpro", install=False) is None:
        claims.append(not_asked("EigenPro", "it is not installed"))
    return {
        "title": f"Seconds to the error of scikit-learn's float32 pipeline with n = {theirs[-1]}",
        "columns": ["set", "rows", "who", "n", "seconds", "error", "peak MiB", "error reached", "times faster"],
        "rows": table,
        "claims": as_asked(claims, quick, sizes=(sizes, None), repetitions=(repetitions, REPETITIONS)),
        "notes": [
            "times faster: scikit-learn's seconds with its largest n over those of the least fit with its error",
            "n of EigenPro: epochs",
        ],
    }


def _write(name: str, path: Path, rows: int) -> dict[str, float] | None:
    """Standardised rows to train with and to test on (f without noise where it is known), and facts of them."""
    if name == "smooth":
        stored = data_sets.smooth_target_table(rows + rows // 20, P)
        X, y, f = stored.X, stored.y, stored.f
        order = np.arange(len(X))
    else:
        found = data_sets.load(name)
        if found is None:
            return None
        X, y = np.asarray(found.X, np.float64), np.asarray(found.y, np.float64).ravel()
        y = (y - y.mean()) / y.std()
        f = y
        order = np.random.default_rng(0).permutation(len(X))
    test = min(MOST_TEST, len(X) - rows if name == "smooth" else len(X) // 5)
    trained, tested = order[:-test], order[-test:]
    mean, scale = X[trained].mean(axis=0), X[trained].std(axis=0)
    X = (X - mean) / np.where(scale > 0.0, scale, 1.0)
    np.savez(path, X=X[trained].astype(np.float32), y=y[trained], Z=X[tested].astype(np.float32), f=f[tested])
    some = X[trained][np.random.default_rng(1).choice(len(trained), min(1000, len(trained)), replace=False)]
    return {"rows": len(trained), "lengthscale": float(median_lengthscale(some, Gaussian()))}


def _fitted(who: str, n: int, rows: Path, facts: dict[str, float], repetitions: int) -> dict[str, float]:
    given = {"who": who, "rows": str(rows), "n": n, "lengthscale": facts["lengthscale"]}
    runs = [in_fresh_process("_time_to_error_once", given) for _ in range(repetitions)]
    return {name: statistics.median(float(run[name]) for run in runs) for name in runs[0]}


def _of_set(
    name: str,
    rows: Path,
    facts: dict[str, float],
    theirs: Sequence[int],
    repetitions: int,
    peers: str,
    *,
    install: bool,
) -> tuple[list[list[Any]], dict[str, Any]]:
    table: list[list[Any]] = []
    first = {n: _fitted("scikit-learn", n, rows, facts, repetitions) for n in theirs}
    goal, seconds = first[theirs[-1]]["error"], first[theirs[-1]]["seconds"]

    def show(who: str, n: int, found: dict[str, float]) -> None:
        reached = found["error"] <= goal
        times = round(seconds / found["seconds"], 2) if reached else None
        shown = round(found["seconds"], 2), round(found["error"], 5), round(found["peak"] / 2**20)
        table.append([name, int(facts["rows"]), who, n, *shown, reached, times])

    for n, each in first.items():
        show("scikit-learn", n, each)
    best = 0.0
    for who in ("default", "plain"):
        for n in OURS:
            if n > theirs[-1]:
                break
            found = _fitted(who, n, rows, facts, repetitions)
            show(f"streamkernel, {who}", n, found)
            if found["error"] <= goal:
                best = max(best, seconds / found["seconds"])
                break
    for stage, found in _eigenpro(rows, facts, goal, install=install) if peers == "eigenpro" else ():
        show("EigenPro", stage, found)
    return table, at_least(f"{name}: times faster to the error {goal:.4g} of scikit-learn", best, 10.0)


def _eigenpro(rows: Path, facts: dict[str, float], goal: float, *, install: bool) -> list[tuple[int, dict[str, float]]]:
    """Its first epoch with the error, or the best one."""
    python = peer_python("eigenpro", install=install)
    if python is None:
        return []
    given = {"rows": str(rows), "lengthscale": facts["lengthscale"], "epochs": EPOCHS, "limit": LIMIT}
    found = in_peer_process(python, "_eigenpro_once", json.dumps({**given, "gigabytes": GIGABYTES}))
    stages = [(epoch, *stage) for epoch, stage in enumerate(found["stages"]) if epoch]
    reached = [stage for stage in stages if stage[2] <= goal]
    epoch, seconds, error = reached[0] if reached else min(stages, key=lambda stage: stage[2])
    return [(epoch, {"seconds": seconds, "error": error, "peak": found["peak"]})]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help=f"names, separated by commas; {', '.join(SETS)} by default")
    parser.add_argument("--sizes", help="numbers of functions of scikit-learn, separated by commas")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--peers", choices=("eigenpro", "none"), default="eigenpro")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
