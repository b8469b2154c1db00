"""Whitening: the error of ridge fits by the number t of functions of which blocks are whitened before the sum.

Eight fits: a smooth function of six columns with noise and without, of three sizes; one half of kin40k; friedman-fried.
Each is repeated with t = 0, 32, 64, 128 and all functions, on the same basis, with alpha by GCV. `rounding` is the
number that `NormalEquations.of` holds against its bound (docs/methods.md, Whitening). Where it is within the bound, the
error must be that of the fit whose blocks are whitened of all functions.

    scripts/bench whitening --json docs/results/whitening.json
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _report import at_most, main, not_asked

from streamkernel import KernelRidge
from streamkernel.reductions.sums import NormalEquations

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import data_sets

LEADING = (0, 32, 64, 128, None)
TEST, BOUND, FEW_ROWS = 10_000, 1e-9, 3000
SIZES = (20_000, 300_000, 1_500_000)


def cases(quick: bool) -> Iterator[tuple[str, int, Any] | str]:
    """Name, n, and the arrays X, y, X_test, f_test of each fit; or what is missing."""
    for noise in (0.1, 0.0):
        for m in SIZES[:1] if quick else SIZES:
            rows = data_sets.smooth_target_table(m, 6, noise=noise)
            test = data_sets.smooth_target_table(TEST, 6, start=m)
            yield f"smooth, noise {noise}", 100 if quick else 300, (rows.X, rows.y, test.X, test.f)
    for name, n, share in () if quick else (("kin40k", 1000, 2), ("friedman-fried", 500, 1)):
        real = data_sets.load(name)
        if real is None:
            yield name
            continue
        order = np.random.default_rng(0).permutation(len(real.X))[: len(real.X) // share]
        X, y = np.asarray(real.X, np.float64)[order], np.asarray(real.y, np.float64)[order]
        test = len(X) // 4
        yield name, n, (X[test:], y[test:], X[:test], y[:test])


def fitted(arrays: Any, n: int, leading: int | None) -> tuple[float, float, float]:
    """Seconds, error in deviations of the test targets, and the rounding as a share of m."""
    X, y, X_test, f_test = arrays
    lifted = []
    of = NormalEquations.of

    def forced(cls: Any, basis: Any, centre: Any, rows: int, alpha: float | None = None) -> NormalEquations:
        if rows < len(X):
            return of(basis, centre, rows, alpha)  # the search for a metric, on a sample
        lift = 0.0 if leading is None else basis.lift(leading, np.inf)
        lifted.append(np.finfo(np.float64).eps * np.sqrt(len(basis)) * lift * min(rows / FEW_ROWS, 1.0))
        return NormalEquations(basis, centre, leading if leading is None or leading < len(basis) else None)

    began = time.perf_counter()
    with warnings.catch_warnings(), patch.object(NormalEquations, "of", classmethod(forced)):
        warnings.simplefilter("ignore")
        model = KernelRidge(n, alpha="gcv", random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    error = np.sqrt(np.mean((np.asarray(model.predict(X_test)).ravel() - f_test) ** 2)) / f_test.std()
    return seconds, float(error), max(lifted)


def run(quick: bool = False) -> dict[str, Any]:
    """The table, and the claim for the fits within the bound."""
    table: list[list[Any]] = []
    claims = []
    worst = 1.0
    for case in cases(quick):
        if isinstance(case, str):
            claims.append(not_asked(case, f"../shared/data/{case}.npz is not there"))
            continue
        name, n, arrays = case
        found = [(leading, *fitted(arrays, n, leading)) for leading in LEADING]
        sound = found[-1][2]
        for leading, seconds, error, rounding in found:
            ratio = error / sound
            if rounding <= BOUND:
                worst = max(worst, ratio)
            t = "all" if leading is None else leading
            table.append(
                [
                    name,
                    len(arrays[0]),
                    n,
                    t,
                    f"{rounding:.1e}",
                    float(f"{error:.6g}"),
                    round(ratio, 5),
                    round(seconds, 2),
                ]
            )
    return {
        "title": "Fits by the number t of functions of which blocks are whitened before the sum",
        "columns": ["case", "rows", "n", "t", "rounding", "error", "over that of all", "s"],
        "rows": table,
        "claims": [
            *claims,
            at_most("error within the bound, over that with all blocks whitened, largest", worst, 1.001),
        ],
    }


if __name__ == "__main__":
    main(run, __doc__)
