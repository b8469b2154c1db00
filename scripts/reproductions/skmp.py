"""Popovici, Bengio & Thiran 2005, "Kernel matching pursuit for large datasets": their Forest experiment again.

Cover type, class 2 against the rest: disjoint training sets of 5,000 to 50,000 rows, 30,000 to test. Basic kernel
matching pursuit, full (KMP) and stochastic (SKMP, a fresh active set of 59 or 228 rows for each of 2,400 terms),
against a support vector machine: errors, and how many functions each needs for them.

    scripts/reproduce skmp                 # docs/results/skmp: the page, the figure, every outcome
    scripts/reproduce skmp --repeats 3     # fewer repeats; outcomes that are there already stay, whatever is asked
    scripts/reproduce skmp --page          # the page of the outcomes that are there
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from _shared import data_sets, parser_of, write_page
from _skmp_outcomes import ACTIVE, KMP, PAPER_C, Kept, Key, Outcome, again, skmp, svm, validated
from _skmp_page import SIZES, TESTS, page
from _skmp_pursuit import Dictionary, Float, Path, error_rates, fitted_again, full, functions, stochastic
from sklearn.svm import SVC

GAMMA, GAMMA_SVM = 0.5, 0.03185
TERMS = 2400
EVERY = 50
COSTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
FOLDS = 5
FIRST = 3  # repeats before anything that takes long
LARGE = 20_000
CACHE = 8000  # MB, of rows of the kernel matrix


class Forest:
    """Rows in a seeded order: the test rows, then the training sets, smallest first."""

    def __init__(self, seed: int) -> None:
        stored = data_sets.load("covtype-subset")
        if stored is None:
            raise SystemExit("../shared/data/covtype-subset.npz is not there")
        order = np.random.default_rng(seed).permutation(len(stored.X))[: TESTS + sum(SIZES)]
        X = stored.X[order].astype(np.float64)
        # One kernel for all sizes: mean and deviation of all rows that any of them is fitted to.
        fitted = X[TESTS:]
        deviation = fitted.std(axis=0)
        X = (X - fitted.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
        y = np.where(stored.y[order] == 2, 1.0, -1.0)
        self.test = X[:TESTS], y[:TESTS]
        ends = TESTS + np.cumsum(SIZES)
        self.train = {m: (X[end - m : end], y[end - m : end]) for m, end in zip(SIZES, ends, strict=True)}
        self._dictionary: tuple[int, Dictionary] | None = None

    def dictionary(self, rows: int) -> Dictionary:
        if self._dictionary is None or self._dictionary[0] != rows:
            self._dictionary = None  # the old matrix goes before the new one is made
            precision = np.float64 if rows <= LARGE else np.float32  # 1.8 GB of 15,000 rows, 10 GB of 50,000
            self._dictionary = rows, Dictionary(self.train[rows][0], GAMMA, precision)
        return self._dictionary[1]


def pursuit_of(forest: Forest, key: Key) -> Outcome:
    """KMP or SKMP."""
    y, dictionary = forest.train[key.rows][1], forest.dictionary(key.rows)
    if key.method == KMP:
        path: Path = full(dictionary, y, TERMS)
    else:
        size = next(s for s in ACTIVE if key.method in (skmp(s), again(s)))
        path = stochastic(dictionary, y, size, TERMS, np.random.default_rng((key.seed, key.rows, size, key.repeat)))
    marks = range(EVERY, TERMS + 1, EVERY)
    if key.method in map(again, ACTIVE):
        errors, rss = fitted_again(dictionary, path, y, *forest.test, marks)
    else:
        errors, rss = error_rates(dictionary, path, *forest.test, marks), path.rss[list(marks)]
    residuals = [float(square) / len(y) for square in rss]
    return Outcome(key, list(marks), functions(path, marks), [float(e) for e in errors], residuals)


def machine_of(forest: Forest, key: Key, cost: float) -> Outcome:
    """A support vector machine, its error on the test rows."""
    return _machine(key, cost, forest.train[key.rows], forest.test)


def _machine(key: Key, cost: float, train: tuple[Float, Float], test: tuple[Float, Float]) -> Outcome:
    fitted = SVC(C=cost, gamma=GAMMA_SVM, cache_size=CACHE).fit(*train)
    vectors = int(fitted.n_support_.sum())
    return Outcome(key, [vectors], [vectors], [1.0 - float(fitted.score(*test))], [float("nan")])


def validation_of(forest: Forest, key: Key, cost: float) -> Outcome:
    """Mean error of the folds, and their mean count of support vectors."""
    X, y = forest.train[key.rows]
    fold = np.arange(len(y)) % FOLDS
    found = [_machine(key, cost, (X[fold != k], y[fold != k]), (X[fold == k], y[fold == k])) for k in range(FOLDS)]
    vectors = round(float(np.mean([each.terms[0] for each in found])))
    error = float(np.mean([each.errors[0] for each in found]))
    return Outcome(key, [vectors], [vectors], [error], [float("nan")])


def pursuits(sizes: list[int], repeats: range, seed: int) -> Iterator[Key]:
    for rows in sizes:
        for repeat in repeats:
            for size in ACTIVE:
                yield Key(rows, skmp(size), repeat, seed)


def run(forest: Forest, kept: Kept, sizes: list[int], repeats: int, seed: int) -> None:
    """What takes least first: whatever is there when it is interrupted makes a page."""
    small, large = [m for m in sizes if m <= LARGE], [m for m in sizes if m > LARGE]

    def pursue(keys: Iterator[Key]) -> None:
        for key in keys:
            kept.get(key, partial(pursuit_of, forest, key))

    def machines(sizes: list[int]) -> None:
        for cost in dict.fromkeys((best, PAPER_C)):
            for m in sizes:
                key = Key(m, svm(cost), 0, seed)
                kept.get(key, partial(machine_of, forest, key, cost))

    first = range(min(FIRST, repeats))
    pursue(pursuits(small, first, seed))
    tried = {}
    for cost in COSTS:
        key = Key(min(forest.train), validated(cost), 0, seed)
        tried[cost] = kept.get(key, partial(validation_of, forest, key, cost)).errors[0]
    best = min(COSTS, key=lambda cost: tried[cost])
    machines(small)
    pursue(Key(m, KMP, 0, seed) for m in small)
    pursue(Key(m, again(ACTIVE[0]), repeat, seed) for m in small for repeat in first)
    pursue(pursuits(large, first, seed))
    machines(large)
    pursue(pursuits(sizes, range(len(first), repeats), seed))
    pursue(Key(m, KMP, 0, seed) for m in large)


def main() -> None:
    parser = parser_of(__doc__, "skmp")
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=list(SIZES), metavar="ROWS")
    parser.add_argument("--repeats", type=int, default=10, help="of each stochastic pursuit, on the same rows")
    parser.add_argument("--seed", type=int, default=0, help="of the rows and of the active sets")
    parser.add_argument("--page", action="store_true", help="only write the page of what is there")
    asked = parser.parse_args()
    asked.results.mkdir(parents=True, exist_ok=True)
    kept = Kept(asked.results / "skmp.csv")
    if not asked.page:
        run(Forest(asked.seed), kept, asked.sizes, asked.repeats, asked.seed)
    found = [outcome for key, outcome in kept.outcomes.items() if key.seed == asked.seed]
    write_page(asked.results, page(asked.results, found))


if __name__ == "__main__":
    main()
