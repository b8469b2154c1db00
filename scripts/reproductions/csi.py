"""Bach & Jordan 2005, "Predictive low-rank decomposition": the least rank that predicts like the full kernel matrix.

Their table again, for incomplete Cholesky, CSI by look-ahead, CSI from pools, and few-sweep. On each set: Gaussian
kernel, columns of mean 0 and deviation 1, least squares support vector machine with a free intercept; width and ridge
by cross-validation of the full kernel. Each rule picks from the rows of each fold's fit only; its minimal rank is the
least n at which the mean score over the folds is within one standard deviation of the full kernel's.

    scripts/reproduce csi                     # docs/results/csi: the table, pictures, and what they show
    scripts/reproduce csi --sets boston       # some sets
    scripts/reproduce csi --keep csi-sets     # go on where a run was interrupted: a file a set, whatever is there stays
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _csi_page import Outcome, page
from _least_squares import Float, Score, fold_scores, folds_of, leading_scores, minimal_rank, misclassified, squared
from _shared import arrays_of, factor_of, parser_of, write_page

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # times the median distance
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
LEVELS = (40, 80, 160, 320, 640, 1280)
LARGE = 2500  # rows from which 5 folds do
RULES: dict[str, dict[str, Any]] = {
    "Cholesky": {"rule": "incomplete-cholesky"},
    # No end of its own: the path has to be long enough to tell.
    "look-ahead CSI": {"rule": "csi-lookahead", "rule_options": {"gain_tolerance": 0.0}},
    "pool CSI": {"rule": "csi"},
    "few-sweep": {"rule": "few-sweep", "objective": "prediction"},
}


@dataclass(frozen=True)
class Setting:
    """One row of the paper's table: name, rows, and the ranks printed for Cholesky and CSI."""

    name: str
    rows: int
    cholesky: int
    csi: int
    classes: int = 0

    @property
    def stored(self) -> str:
        return self.name.removesuffix("-c")


SETTINGS = (
    Setting("ringnorm", 1000, 14, 3, 2),
    Setting("kin-32fh-c", 2000, 25, 6, 2),
    Setting("pumadyn-32nm", 4000, 93, 23),
    Setting("kin-32fh", 4000, 34, 10),
    Setting("spambase", 4000, 90, 31, 2),
    Setting("twonorm", 4000, 8, 3, 2),
    Setting("abalone", 4000, 27, 13),
    Setting("kin-32nm-c", 4000, 122, 68, 2),
    Setting("pendigits", 4485, 111, 63, 4),
    Setting("kin-32nm", 2000, 307, 211),
    Setting("boston", 506, 48, 61),
)


@dataclass(frozen=True)
class Problem:
    """Rows in random order, and how predictions are scored."""

    X: Float
    Y: Float
    folds: list[slice]
    score: Score
    seed: int


def problem_of(setting: Setting, seed: int = 0) -> Problem | None:
    arrays = arrays_of(setting.stored)
    if arrays is None:
        return None
    X, y = arrays
    if setting.name == "pendigits":
        # The paper's 4485 rows of 4 classes are the digits 0 to 3, and no other run of four digits.
        X, y = X[y < setting.classes], y[y < setting.classes]
    order = np.random.default_rng(seed).permutation(len(X))[: setting.rows]
    X, y = X[order], y[order]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    folds = folds_of(len(X), 10 if len(X) < LARGE else 5)
    if setting.classes > 2:
        return Problem(X, (y[:, None] == np.unique(y)).astype(np.float64), folds, misclassified, seed)
    if setting.classes == 2:
        # Stored as numbers, not as classes: the two halves of the "-c" sets lie on either side of the median.
        threshold = np.median(y) if len(np.unique(y)) > 2 else y.min()
        return Problem(X, np.where(y > threshold, 1.0, -1.0)[:, None], folds, misclassified, seed)
    return Problem(X, ((y - y.mean()) / y.std())[:, None], folds, squared, seed)


@dataclass(frozen=True)
class Chosen:
    width: float
    lengthscale: float
    ridge: float
    scores: Float


def choose(problem: Problem) -> Chosen:
    """Width and ridge of the least mean score; of equal ones the smoothest, wide before stiff."""
    norms = np.einsum("ij,ij->i", problem.X, problem.X)
    squares = np.maximum(norms[:, None] + norms - 2.0 * problem.X @ problem.X.T, 0.0)
    median = float(np.sqrt(np.median(squares[np.triu_indices(len(squares), 1)])))
    best: Chosen | None = None
    for width in reversed(WIDTHS):
        K = np.exp(squares / (-2.0 * (width * median) ** 2))
        for ridge in reversed(RIDGES):
            scores = fold_scores(K, problem.Y, ridge, problem.folds, problem.score)
            if scores is not None and (best is None or scores.mean() < best.scores.mean()):
                best = Chosen(width, width * median, ridge, scores)
    assert best is not None
    return best


def path_scores(problem: Problem, chosen: Chosen, fold: int, n: int, settings: dict[str, Any]) -> Float:
    """Held-out score of one fold at ranks 1 ... n of a path asked for n functions; the last one stands for the rest."""
    held = problem.folds[fold]
    fit = np.r_[0 : held.start, held.stop : len(problem.X)]
    X, Y, test = problem.X[fit], problem.Y[fit], problem.X[held]
    draw = len(problem.folds) * problem.seed + fold
    basis = factor_of(X, Y, n=n, lengthscale=chosen.lengthscale, random_state=draw, **settings).basis
    scores = leading_scores(basis.features(X), Y, basis.features(test), problem.Y[held], chosen.ridge, problem.score)
    return np.concatenate([scores, np.full(n - len(scores), scores[-1])])


def curve_of(problem: Problem, chosen: Chosen, limit: float, settings: dict[str, Any]) -> Float:
    """Mean score over the folds at ranks 1, 2, ... up to the level at which the limit is first met.

    Ranks between two levels are those of the path that was asked for the upper one: few-sweep's rounds, and so its
    picks, depend on how many are wanted, and this is about what it gives to one who wants so many.
    """
    most = min(len(problem.X) - (f.stop - f.start) for f in problem.folds)
    curve = np.zeros(0)
    for level in LEVELS:
        n = min(level, most)
        means = np.mean([path_scores(problem, chosen, k, n, settings) for k in range(len(problem.folds))], axis=0)
        curve = np.concatenate([curve, means[len(curve) :]])
        if n == most or minimal_rank(curve, limit) is not None:
            break
    return curve


def outcome_of(setting: Setting, problem: Problem) -> Outcome:
    began = time.perf_counter()
    chosen = choose(problem)
    mean, deviation = float(chosen.scores.mean()), float(chosen.scores.std(ddof=1))
    print(
        f"{setting.name}: {chosen.width:g} times the median distance, ridge {chosen.ridge:g}, "
        f"{mean:.4f} +- {deviation:.4f}, {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    curves, ranks = {}, {}
    for rule, settings in RULES.items():
        start = time.perf_counter()
        curve = curve_of(problem, chosen, mean + deviation, settings)
        curves[rule], ranks[rule] = [float(value) for value in curve], minimal_rank(curve, mean + deviation)
        print(f"  {rule}: {ranks[rule]}, {time.perf_counter() - start:.0f} s", flush=True)
    return Outcome(
        setting.name,
        *problem.X.shape,
        setting.classes,
        len(problem.folds),
        chosen.width,
        chosen.lengthscale,
        chosen.ridge,
        mean,
        deviation,
        (setting.cholesky, setting.csi),
        curves,
        ranks,
    )


def kept_or_made(setting: Setting, seed: int, keep: Path | None) -> Outcome | None:
    file = None if keep is None else keep / f"{setting.name}.json"
    if file is not None and file.exists():
        return Outcome(**json.loads(file.read_text(encoding="utf-8")))
    problem = problem_of(setting, seed)
    if problem is None:
        return None
    outcome = outcome_of(setting, problem)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    return outcome


def main() -> None:
    parser = parser_of(__doc__, "csi")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="SET", help=", ".join(names))
    parser.add_argument("--seed", type=int, default=0, help="of the rows, the folds and the draws of the rules")
    parser.add_argument("--keep", type=Path, help="folder for the outcome of each set")
    arguments = parser.parse_args()
    wanted = [setting for setting in SETTINGS if setting.name in arguments.sets]
    made = {setting.name: kept_or_made(setting, arguments.seed, arguments.keep) for setting in wanted}
    outcomes = [outcome for outcome in made.values() if outcome is not None]
    missing = [name for name, outcome in made.items() if outcome is None]
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_page(arguments.results, page(arguments.results, outcomes, missing, list(RULES)))


if __name__ == "__main__":
    main()
