"""Whitening: the error of ridge fits by the number t of functions of which blocks are whitened before the sum.

Eight fits: a smooth function of six columns with noise and without, of three sizes; one half of kin40k; friedman-fried.
Each is repeated with t = 0, 16, 32, 64, 128, all functions, and the number that `NormalEquations.of` takes, on the same
basis, with alpha by GCV. `rounding` is the number that it holds against its bound (docs/methods.md, Whitening), and
`error of H` the spectral norm of the difference from the sums whose blocks are whitened of all functions; both are
shares of m. With its choice the error of predictions must be that with these sums.

    scripts/bench whitening --json docs/results/whitening.json
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from _report import at_most, main, not_asked

from streamkernel import KernelRidge
from streamkernel.reductions import State
from streamkernel.reductions.sums import NormalEquations, RidgeSums

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import data_sets

CHOSEN = -1
LEADING = (0, 16, 32, 64, 128, CHOSEN, None)
TEST = 10_000
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


class Fitted(NamedTuple):
    """Whitened functions, seconds, error in deviations of the test targets, rounding as a share of m, and sums."""

    leading: int | None
    seconds: float
    error: float
    rounding: float
    H: Any


def fitted(arrays: Any, n: int, leading: int | None) -> Fitted:
    X, y, X_test, f_test = arrays
    found: list[tuple[int | None, float]] = []
    sums: list[RidgeSums] = []
    of, finalize = NormalEquations.of, NormalEquations.finalize

    def seen(self: NormalEquations, state: State) -> RidgeSums:
        sums.append(finalize(self, state))
        return sums[-1]

    def forced(cls: Any, basis: Any, centre: Any, rows: int, alpha: float | None = None) -> NormalEquations:
        chosen = of(basis, centre, rows, alpha)
        if rows < len(X):
            return chosen  # the search for a metric, on a sample
        taken = chosen.leading if leading == CHOSEN else leading
        taken = None if taken is not None and taken >= len(basis) else taken
        lift = 0.0 if taken is None else basis.lift(taken, np.inf)
        found.append((taken, np.finfo(np.float64).eps * np.sqrt(len(basis)) * lift))
        return NormalEquations(basis, centre, taken)

    began = time.perf_counter()
    with (
        warnings.catch_warnings(),
        patch.object(NormalEquations, "of", classmethod(forced)),
        patch.object(NormalEquations, "finalize", seen),
    ):
        warnings.simplefilter("ignore")
        model = KernelRidge(n, alpha="gcv", random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    error = np.sqrt(np.mean((np.asarray(model.predict(X_test)).ravel() - f_test) ** 2)) / f_test.std()
    taken, rounding = found[-1]
    return Fitted(taken, seconds, float(error), rounding, sums[-1].H)


def run(quick: bool = False) -> dict[str, Any]:
    """The table, and the claim for the chosen numbers."""
    table: list[list[Any]] = []
    claims = []
    worst = 1.0
    for case in cases(quick):
        if isinstance(case, str):
            claims.append(not_asked(case, f"../shared/data/{case}.npz is not there"))
            continue
        name, n, arrays = case
        found = {leading: fitted(arrays, n, leading) for leading in LEADING}
        sound = found[None]
        for leading, fit in found.items():
            ratio = fit.error / sound.error
            t = "all" if fit.leading is None else str(fit.leading)
            if leading == CHOSEN:
                worst, t = max(worst, ratio), f"{t}, chosen"
            off = float(np.linalg.norm(fit.H - sound.H, 2)) / len(arrays[0])
            row = [name, len(arrays[0]), n, t, f"{fit.rounding:.1e}", f"{off:.1e}"]
            table.append([*row, float(f"{fit.error:.6g}"), round(ratio, 5), round(fit.seconds, 2)])
    return {
        "title": "Fits by the number t of functions of which blocks are whitened before the sum",
        "columns": ["case", "rows", "n", "t", "rounding", "error of H", "error", "over that of all", "s"],
        "rows": table,
        "claims": [
            *claims,
            at_most("error with the chosen t, over that with all blocks whitened, largest", worst, 1.001),
        ],
    }


if __name__ == "__main__":
    main(run, __doc__)
