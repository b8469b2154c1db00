"""Tresp 2001, section 3.1: what a Bayesian committee machine loses against the exact Gaussian process, on real data.

On 3,000 rows of seven sets, with lengthscales and variances found once by evidence: test error (RMSE) and negative log
predictive density (NLPD) of the committee against the exact process's, for query sets of 1/8 to 4 times the effective
degrees of freedom p_eff, members of 100 to 1,000 rows, as they come or by k-means cells; query points are landmarks of
few-sweep, or the rows to predict. Then two tables of more than 100,000 rows in one sweep, beside DTC on the same basis.

    scripts/reproduce bcm                       # docs/results/bcm: tables, pictures, and what they show
    scripts/reproduce bcm --sets abalone        # some sets
    scripts/reproduce bcm --seed 1              # other rows
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from _bcm_page import page
from _bcm_runs import ASKED, CELLS, DTC, LANDMARKS, ROWS, Compared, Large, Run
from _committees import Prediction, Problem, Scores, asked_together, exact, loss, members, rmse_loss, sparse, tuned
from _shared import arrays_of, factor_of, parser_of, write_page

from streamkernel.basis import Basis
from streamkernel.committee import degrees_of_sample
from streamkernel.reductions.sums import ConstantNoise

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # of p_eff
MEMBERS = (100, 250, 1000)
CELL_MEMBERS, CELLS_TO = (100, 250), 1.0  # of 1,000 rows there are three, in cells or not
ASKED_FROM = 0.25  # of p_eff: fewer are a sweep for every few rows
MOST = 2200  # query points
LARGE_BASIS, LARGE_MEMBERS, LARGE_TESTS = 500, (100, 1000), 20_000
LARGE_TUNED, LARGE_DEGREES = 5000, 2500  # rows of the sample


@dataclass(frozen=True)
class Setting:
    """A set; `train` rows are fitted, all but the tests where it is large."""

    name: str
    train: int | None = 3000
    test: int = 2000


SETTINGS = (
    Setting("abalone", test=1177),
    Setting("california-housing"),
    Setting("kin-8nm"),
    Setting("kin-32nm"),
    Setting("pumadyn-32nm"),
    Setting("protein-casp"),
    Setting("kin40k"),
    Setting("BNG-pwLinear", None, LARGE_TESTS),
    Setting("covtype-subset", None, LARGE_TESTS),
)


def problem_of(setting: Setting, seed: int, most: int | None) -> Problem | None:
    arrays = arrays_of(setting.name)
    if arrays is None:
        return None
    X, y = arrays
    if setting.name == "covtype-subset":
        # Its own target is a class; the elevation is a number, and the rest tells much of it.
        X, y = X[:, 1:], X[:, 0]
    order = np.random.default_rng(seed).permutation(len(X))
    tests = min(setting.test, most or setting.test)
    test, rest = order[:tests], order[tests:]
    train = rest[: min(setting.train or len(rest), most or len(rest))]
    return tuned(X[train], y[train], X[test], y[test], rows=setting.train or LARGE_TUNED, seed=seed)


def landmarks(problem: Problem, n: int, seed: int) -> Basis:
    """As `BayesianCommitteeMachine` picks them by default."""
    found = factor_of(
        problem.X, problem.y, n=n, lengthscale=1.0, rule="few-sweep", objective="prediction", random_state=seed
    )
    basis: Basis = found.basis
    return basis


def compared(setting: Setting, problem: Problem, seed: int) -> Compared:
    """Every committee against the exact process."""
    began = time.perf_counter()
    prediction, degrees = exact(problem)
    reference = Scores.of(prediction, problem.y_test)
    most = min(MOST, len(problem.X) - 1)
    sizes = {share: max(1, round(share * degrees)) for share in SHARES}
    sizes = {share: n for share, n in sizes.items() if n <= most}
    chosen = landmarks(problem, max(sizes.values()), seed)
    blocks = [size for size in MEMBERS if size < len(problem.X)]
    kinds = [(0, DTC), *((size, ROWS) for size in blocks), *((size, CELLS) for size in CELL_MEMBERS if size in blocks)]
    noises = {kind: members(problem, *kind, seed) if kind[0] else ConstantNoise() for kind in kinds}
    runs = []

    def add(query: str, kind: tuple[int, str], share: float, n: int, prediction: Prediction) -> None:
        scores = Scores.of(prediction, problem.y_test)
        losses = (rmse_loss(scores, reference), loss(scores.densities, reference.densities))
        told = (scores.rmse, scores.nlpd, scores.coverage)
        runs.append(Run(setting.name, query, *kind, share, n, *told, *losses))

    for share, n in sizes.items():
        basis = chosen.take(np.arange(min(n, len(chosen))))
        for kind, noise in noises.items():
            if kind[1] != CELLS or share <= CELLS_TO:
                add(LANDMARKS, kind, share, len(basis), sparse(problem, basis, noise))
            if kind[1] == ROWS and share >= ASKED_FROM and n <= len(problem.X_test):
                add(ASKED, kind, share, n, asked_together(problem, n, noise))
    variances = (problem.signal, problem.noise)
    told = (reference.rmse, reference.nlpd, reference.coverage, *reference.errors)
    found = Compared(setting.name, *problem.X.shape, len(problem.X_test), *variances, degrees, *told, runs)
    print(f"{setting.name}: p_eff {degrees:.0f}, {time.perf_counter() - began:.0f} s", flush=True)
    return found


def large(setting: Setting, problem: Problem, seed: int) -> list[Large]:
    """DTC and committees on one basis, one sweep each; the exact process of as many rows as it was tuned on."""
    rows, n = len(problem.X), min(LARGE_BASIS, len(problem.X) // 2)
    began = time.perf_counter()
    basis = landmarks(problem, n, seed)
    picking = time.perf_counter() - began
    few = min(LARGE_TUNED, rows)
    sample = problem.X[: min(LARGE_DEGREES, rows)]
    degrees = degrees_of_sample(sample, rows, basis.kernel, problem.signal, problem.noise)
    made: dict[str, tuple[Any, int]] = {"DTC": (sparse(problem, basis, ConstantNoise()), rows)}
    for size in LARGE_MEMBERS:
        made[f"BCM, members of {size:,}"] = (sparse(problem, basis, members(problem, size, ROWS)), rows)
    alone = Problem(problem.X[:few], problem.y[:few], problem.X_test, problem.y_test, problem.signal, problem.noise)
    made[f"exact GP of {few:,} rows"] = (exact(alone)[0], few)
    reference = Scores.of(made["DTC"][0], problem.y_test)
    found = []
    for name, (prediction, used) in made.items():
        scores = Scores.of(prediction, problem.y_test)
        gained = (rmse_loss(scores, reference), loss(scores.densities, reference.densities))
        told = (scores.rmse, scores.nlpd, scores.coverage)
        found.append(Large(setting.name, name, used, len(basis), degrees, prediction.seconds, picking, *told, *gained))
        print(f"{setting.name}: {name}, {prediction.seconds:.0f} s, RMSE {scores.rmse:.4f}", flush=True)
    return found


def main() -> None:
    parser = parser_of(__doc__, "bcm")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="SET", help=", ".join(names))
    parser.add_argument("--seed", type=int, default=0, help="of the rows, the landmarks and the cells")
    parser.add_argument("--rows", type=int, help="to fit, and to test, at most: to see that it runs")
    arguments = parser.parse_args()
    small: list[Compared] = []
    big: list[Large] = []
    missing = []
    for setting in SETTINGS:
        if setting.name not in arguments.sets:
            continue
        problem = problem_of(setting, arguments.seed, arguments.rows)
        if problem is None:
            missing.append(setting.name)
        elif setting.train is None:
            big += large(setting, problem, arguments.seed)
        else:
            small.append(compared(setting, problem, arguments.seed))
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_page(arguments.results, page(arguments.results, small, big, missing))


if __name__ == "__main__":
    main()
