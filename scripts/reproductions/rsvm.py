"""Tresp 2001, sections 3.5.3 and 3.3.1: reduced support vector machines on Adult, and ASVM on seven million rows.

RSVM (Lee & Mangasarian 2001) takes n random rows as basis and minimises ``1/2 (w'w + b^2) + C sum g(1 - t f)^2`` with a
smoothed g. Here the same on the 32,561 rows of Adult with n = 326, with the penalty w'w of the paper and with that of
the reproducing kernel Hilbert space, beside the machine on all rows. ASVM: linear features of clusters of normal rows.

    scripts/reproduce rsvm                        # docs/results/rsvm
    scripts/reproduce rsvm --draws 3 --no-full    # fewer draws of the basis; without scikit-learn's SVC on all rows
    scripts/reproduce rsvm --large 7000000        # only ASVM on so many rows, written to large.json beside the page
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from _rsvm_page import Fit, Full, Large, Rsvm, page
from _shared import data_sets, parser_of, write_page
from numpy.typing import NDArray

from streamkernel import ingest, open_table
from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.kernels import Gaussian
from streamkernel.reductions.margins import SmoothedHinge, Target
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, median_lengthscale, solve_active_set, solve_smooth_margins

Float = NDArray[np.float64]

SHARPNESS = 5.0  # gamma of the smoothed hinge
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # times the median distance
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
SHARE = 100  # rows for each basis function, as in the paper
HELD_OUT = 5  # a fifth of the rows chooses width and C
FULL_SAMPLE = 6000  # rows that choose them for the machine on all rows
TOLERANCE = 1e-6
COLUMNS, CLUSTERS, CHUNK = 32, 100, 100_000  # of the large table


class KernelValues(Features):
    """The kernel values themselves as features: their penalty is w'w."""

    def of(self, X: Any, out: Any = None) -> Any:
        if out is None:
            return self.raw(X)
        out[...] = self.raw(X)
        return out

    def whiten(self, F: Any) -> None:
        pass

    def coefficients(self, A: Any) -> Any:
        return A


PENALTIES: dict[str, Callable[[Basis], Features]] = {
    "w'w": lambda basis: KernelValues(basis, len(basis)),
    "w'Kw": Features.of_basis,
}


@dataclass(frozen=True)
class Rows:
    """Rows and indicators to fit and to test."""

    X: Float
    y: Float
    X_test: Float
    y_test: Float

    def held_out(self, seed: int) -> Rows:
        """The rows to fit, with a share of them as test rows."""
        order = np.random.default_rng(seed).permutation(len(self.X))
        test, fit = np.split(order, [len(order) // HELD_OUT])
        return Rows(self.X[fit], self.y[fit], self.X[test], self.y[test])


def adult() -> Rows | None:
    """The paper's split of Adult; None where the set is not there."""
    stored = data_sets.load("a9a")
    if stored is None:
        return None
    X, y = stored.X.astype(np.float64), (stored.y > 0).astype(np.float64)
    cut = int(stored.extras["n_train"])
    return Rows(X[:cut], y[:cut], X[cut:], y[cut:])


def basis_of(rows: Rows, n: int, lengthscale: float, seed: int) -> Basis:
    """n random rows, without those that repeat others."""
    drawn = np.sort(np.random.default_rng(seed).permutation(len(rows.X))[:n])
    basis, _ = Basis.empty(Gaussian(lengthscale), rows.X.shape[1], np.dtype(float)).append(rows.X[drawn], drawn)
    return basis


def solved(rows: Rows, features: Features, C: float, session: Session) -> MarginSolution:
    """RSVM by Newton's method."""
    table = open_table(rows.X, rows.y)
    [solution] = solve_smooth_margins(
        lambda step, name: session.sweep(step, table, name),
        features,
        [SmoothedHinge(C, SHARPNESS)],
        [Target(0)],
        tolerance=TOLERANCE,
    )
    return solution


def accuracy(features: Features, b: Float, X: Float, y: Float) -> float:
    return float((((features.of(X) @ b[:-1] + b[-1]) > 0.0) == (y > 0.5)).mean())


def choose(rows: Rows, n: int, median: float, penalty: str, session: Session) -> tuple[float, float]:
    """Width and C of the largest accuracy on held-out rows; of equal ones the smallest C and the widest."""
    part, best = rows.held_out(0), (-1.0, 0.0, 0.0)
    for width in reversed(WIDTHS):
        features = PENALTIES[penalty](basis_of(part, n, width * median, 0))
        for C in COSTS:
            b = solved(part, features, C, session).coefficients
            found = accuracy(features, b, part.X_test, part.y_test)
            if found > best[0]:
                best = found, width, C
    return best[1:]


def fits_of(rows: Rows, penalty: str, draws: int, session: Session) -> Rsvm:
    """Fits with random bases, at the width and C that held-out rows choose."""
    n = round(len(rows.X) / SHARE)
    median = median_lengthscale(rows.X[:2000], Gaussian(1.0))
    width, C = choose(rows, n, median, penalty, session)
    fits = []
    for seed in range(draws):
        began = time.perf_counter()
        features = PENALTIES[penalty](basis_of(rows, n, width * median, seed))
        solution = solved(rows, features, C, session)
        seconds = time.perf_counter() - began
        found = accuracy(features, solution.coefficients, rows.X_test, rows.y_test)
        fits.append(Fit(features.width, len(solution.iterations), seconds, solution.relative_gap, found))
        print(f"{penalty}: width {width:g}, C {C:g}: {fits[-1]}", flush=True)
    return Rsvm(penalty, width, C, fits)


def full_machine(rows: Rows) -> Full:
    """scikit-learn's SVC on all rows, with width and C chosen on a sample of them."""
    from sklearn.svm import SVC

    median = median_lengthscale(rows.X[:2000], Gaussian(1.0))
    order = np.random.default_rng(0).permutation(len(rows.X))[: FULL_SAMPLE * 2]
    fit, held = order[:FULL_SAMPLE], order[FULL_SAMPLE:]
    scores = {
        (width, C): SVC(C=C, gamma=0.5 / (width * median) ** 2)
        .fit(rows.X[fit], rows.y[fit])
        .score(rows.X[held], rows.y[held])
        for width in WIDTHS
        for C in COSTS
    }
    width, C = max(scores, key=lambda key: scores[key])
    began = time.perf_counter()
    machine = SVC(C=C, gamma=0.5 / (width * median) ** 2, cache_size=1000).fit(rows.X, rows.y)
    seconds = time.perf_counter() - began
    print(f"all rows: width {width:g}, C {C:g}, {seconds:.0f} s", flush=True)
    return Full(width, C, seconds, int(machine.n_support_.sum()), float(machine.score(rows.X_test, rows.y_test)))


# ---------------------------------------------------------------------------------------------------------- large
def clusters(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Normal rows around centres on either side of a plane, block by block: X (rows, 32) float32, y (rows, 1)."""
    generator = np.random.default_rng(seed)
    centres, plane = 3.0 * generator.standard_normal((CLUSTERS, COLUMNS)), generator.standard_normal(COLUMNS)
    sides = centres @ plane > 0.0

    def block(first: int, count: int) -> Any:
        own = np.random.default_rng([seed, first])
        which = own.integers(CLUSTERS, size=count)
        X = centres[which] + 3.0 * own.standard_normal((count, COLUMNS))
        return np.column_stack([X, sides[which]]).astype(np.float32)

    parts = [
        da.from_delayed(_delayed(block)(first, min(CHUNK, rows - first)), (min(CHUNK, rows - first), COLUMNS + 1), "f4")
        for first in range(0, rows, CHUNK)
    ]
    table = da.concatenate(parts)
    return table[:, :COLUMNS], table[:, COLUMNS:]


def _delayed(function: Callable[[int, int], Any]) -> Any:
    from dask import delayed

    return delayed(function, pure=True)


def large(rows: int, threads: int, C: float = 1.0) -> Large:
    """ASVM on a stored table."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "rows"
        began = time.perf_counter()
        ingest(open_table(*clusters(rows)), store, dtype="float32", chunk_rows=CHUNK)
        written = time.perf_counter() - began
        table, session = open_table(store), Session(ThreadExecutor(threads))
        began = time.perf_counter()
        solution = solve_active_set(
            lambda step, name: session.sweep(step, table, name), Features(None, COLUMNS), C / rows, tolerance=0.0
        )
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    gaps = [step.gap / step.primal for step in solution.iterations]
    return Large(rows, COLUMNS, threads, len(gaps), seconds, written, peak, solution.relative_gap, gaps)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__, "rsvm")
    parser.add_argument("--draws", type=int, default=10, help="random bases of each penalty")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-full", action="store_true", help="without the machine on all rows")
    parser.add_argument("--large", type=int, metavar="ROWS", help="only ASVM on so many rows; 7000000 in the paper")
    given = parser.parse_args(arguments)
    given.results.mkdir(parents=True, exist_ok=True)
    stored = given.results / "rsvm.json"
    if given.large is not None:
        found = large(given.large, given.threads)
        print(json.dumps(asdict(found), indent=1))
        (given.results / "large.json").write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    else:
        rows = adult()
        if rows is None:
            print("../shared/data/a9a.npz is not there")
            return
        session = Session(ThreadExecutor(given.threads))
        machines = [fits_of(rows, penalty, given.draws, session) for penalty in PENALTIES]
        full = None if given.no_full else full_machine(rows)
        plain = {"machines": [asdict(each) for each in machines], "full": None if full is None else asdict(full)}
        stored.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    if stored.exists():
        write_page(given.results, page(given.results))


if __name__ == "__main__":
    main()
