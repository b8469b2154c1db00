"""Accuracy: held-out error of kernel ridge by default, and without its searches, against scikit-learn's, on all sets.

Every set of ../shared/data, several splits into at most 32,000 training and 10,000 test rows, all estimators with their
defaults but for what the name says. Errors are root mean squared errors in deviations of the test targets, or shares of
wrong labels; a set's error is the median of its splits, a ratio that of two medians. Peers that take minutes run on the
first split only, and are compared with others on this split. The error that our default tells, of its held-out folds,
is compared with the error on the test rows: on the set as it is, and on 2,500 rows that each stand twenty times.

    scripts/bench accuracy --results docs/results       # accuracy.md and accuracy.png
    scripts/bench accuracy --sets kin40k,spambase --splits 1 --peers HistGradientBoosting
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _accuracy_picture import draw
from _report import as_asked, at_most, main, not_asked, write_page
from _xrfm import INSTALLED, XRFM
from rich.console import Console
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from streamkernel import KernelRidge, KernelRidgeClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import data_sets

SETS = (
    "BNG-pwLinear",
    "abalone",
    "boston",
    "california-housing",
    "friedman-fried",
    "kin-32fh",
    "kin-32nm",
    "kin-8nm",
    "kin40k",
    "protein-casp",
    "pumadyn-32nm",
    "a9a",
    "covtype-subset",
    "pendigits",
    "ringnorm",
    "spambase",
    "twonorm",
    "usps",
)
CLASSES = ("a9a", "covtype-subset", "pendigits", "ringnorm", "spambase", "twonorm", "usps")
MOST_TRAIN, MOST_TEST = 32_000, 10_000
MOST_DENSE = 10_000  # training rows of the peers that hold the kernel matrix: of 32,000 xRFM takes five minutes
TREES, PLAIN, DEFAULT = "HistGradientBoosting", "ours, no search", "ours"
OURS: dict[str, dict[str, Any]] = {
    PLAIN: {"kernel": "gaussian", "metric": "none", "alpha": "gcv"},
    DEFAULT: {},
}
DISTINCT, TIMES = 2_500, 20  # rows, and how often each stands in a table of copies
SEARCH = {
    "learning_rate": [0.03, 0.1, 0.3],
    "max_iter": [100, 300, 1000],
    "max_leaf_nodes": [15, 31, 63],
    "l2_regularization": [0.0, 1.0],
}


def _xrfm(classes: bool, seed: int, rows: int) -> Any:
    return XRFM(classes, seed) if INSTALLED and rows <= MOST_DENSE else None


def _ours(options: dict[str, Any]) -> Callable[[bool, int, int], Any]:
    def make(classes: bool, seed: int, rows: int) -> Any:
        return (KernelRidgeClassifier if classes else KernelRidge)(random_state=seed, **options)

    return make


def _trees(classes: bool, seed: int, rows: int) -> Any:
    return (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(random_state=seed)


def _searched(classes: bool, seed: int, rows: int) -> Any:
    trees = _trees(classes, seed, rows).set_params(early_stopping=True)
    return RandomizedSearchCV(trees, SEARCH, n_iter=10, cv=3, random_state=seed)


def _forest(classes: bool, seed: int, rows: int) -> Any:
    return (RandomForestClassifier if classes else RandomForestRegressor)(random_state=seed, n_jobs=2)


def _machine(classes: bool, seed: int, rows: int) -> Any:
    return make_pipeline(StandardScaler(), (SVC if classes else SVR)(C=10.0)) if rows <= MOST_DENSE else None


PEERS: dict[str, Callable[[bool, int, int], Any]] = {
    TREES: _trees,
    f"{TREES}, searched": _searched,
    "RandomForest": _forest,
    "SVC or SVR, C = 10": _machine,
    "xRFM": _xrfm,
}
SLOW = tuple(PEERS)[1:]  # on the first split only

COPIES = f"ours, {TIMES} copies of {DISTINCT:,} rows"
SPLITS = 5
Figures = dict[str, dict[str, list[dict[str, float]]]]


def run(
    quick: bool = False,
    splits: int = SPLITS,
    sets: str | None = None,
    peers: str | None = None,
    ours: str | None = None,
    results: Path | None = None,
) -> dict[str, Any]:
    names = tuple(sets.split(",")) if sets else (("abalone", "ringnorm") if quick else SETS)
    splits, most = (1, 2_000) if quick else (splits, MOST_TRAIN)
    wanted = peers.split(";") if peers is not None else list(PEERS)
    made = {name: _ours(options) for name, options in OURS.items() if ours is None or name in ours.split(";")}
    made |= {name: PEERS[name] for name in wanted if name}
    figures: Figures = {}
    console = Console(stderr=True, highlight=False)
    for name in names:
        stored = data_sets.load(name)
        if stored is None:
            console.print(f"{name}: ../shared/data/{name}.npz is not there")
            continue
        figures[name] = {who: [] for who in made}
        for seed in range(splits):
            at_work = {who: make for who, make in made.items() if seed == 0 or who not in SLOW}
            for who, found in _split(stored, name in CLASSES, at_work, seed, most):
                figures[name][who].append(found)
        if not quick and DEFAULT in made:
            figures[name][COPIES] = [_copies(stored, name in CLASSES, seed) for seed in range(splits)]
        figures[name] = {who: found for who, found in figures[name].items() if found}
        medians = {who: round(_median(found, "error"), 4) for who, found in figures[name].items()}
        console.print(f"{name}: {medians}")
    columns = ["set", *(f"{who}: {what}" for who in made for what in ("error", "seconds"))]
    rows = [[name, *_row(figures[name], list(made))] for name in figures]
    claims = _claims(figures)
    if "xRFM" in made and not INSTALLED:
        claims.append(not_asked("xRFM", "it is not installed (pip install xrfm)"))
    result = {
        "title": f"Held-out error on {len(figures)} sets, medians of {splits} splits",
        "columns": columns,
        "rows": rows,
        "claims": as_asked(claims, quick, sets=(sets, None), splits=(splits, SPLITS)),
        "figures": figures,
    }
    if results is not None:
        _write(results, result, figures, splits)
    return result


def _write(folder: Path, result: dict[str, Any], figures: Figures, splits: int) -> None:
    words = [
        f"Made by `scripts/bench accuracy --results docs/results`: medians of {splits} splits into at most",
        f"{MOST_TRAIN:,} training and {MOST_TEST:,} test rows. Errors are root mean squared errors in deviations of",
        'the test targets, or shares of wrong labels. "No search": the Gaussian kernel, no metric, alpha by GCV.',
        *_peers_in_words(figures),
        "",
        "![Errors over those of boosted trees](accuracy.png)",
    ]
    write_page(folder / "accuracy.md", "Accuracy on real sets", words, result)
    shown = {who: _ratios(figures, who, TREES) for who in (DEFAULT, PLAIN, *list(PEERS)[1:])}
    draw(folder / "accuracy.png", {who: found for who, found in shown.items() if found}, TREES)


def _peers_in_words(figures: Figures) -> list[str]:
    """How our default compares with the peers of the first split, on this split."""
    found = []
    for who in SLOW:
        ratios = [_ratios(figures, DEFAULT, who, classes=classes) for classes in (False, True)]
        if all(ratios):
            medians = " and ".join(
                f"{statistics.median(each.values()):.3f} ({len(each)} sets, {min(each.values()):.2f} to "
                f"{max(each.values()):.2f})"
                for each in ratios
            )
            found.append(f"- {who}: {medians}")
    if not found:
        return []
    told = f"Peers below ran on the first split only, those that hold a kernel matrix on at most {MOST_DENSE:,} rows."
    return [
        told,
        "Our error over theirs on this split, median of regression sets and of classification sets:",
        "",
        *found,
    ]


def _split(
    stored: data_sets.Real, classes: bool, made: dict[str, Callable[[bool, int, int], Any]], seed: int, most: int
) -> Iterator[tuple[str, dict[str, float]]]:
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
    order = np.random.default_rng(seed).permutation(len(X))
    test = min(MOST_TEST, len(X) // 5)
    held_out, chosen = order[:test], order[test : test + most]
    for who, make in made.items():
        estimator = make(classes, seed, len(chosen))
        if estimator is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            estimator.fit(X[chosen], y[chosen])
            seconds = time.perf_counter() - began
        yield who, {"seconds": seconds, **_errors(estimator, X[held_out], y[held_out], classes)}


def _errors(estimator: Any, X: Any, y: Any, classes: bool) -> dict[str, float]:
    """The error on test rows; and how far above it the error on held-out folds is, in standard errors of both."""
    predicted = estimator.predict(X)
    scale = 1.0 if classes else float(y.std())
    values = (predicted != y).astype(float) if classes else ((predicted - y) / scale) ** 2
    mean, se = float(values.mean()), float(values.std() / np.sqrt(len(values)))
    if not classes:
        mean, se = np.sqrt(mean), se / (2.0 * np.sqrt(mean))
    found = {"error": float(mean)}
    record = getattr(getattr(getattr(estimator, "model_", None), "record", None), "validation", None)
    if record is not None:
        own, own_se = (
            (record.wrong, record.wrong_se) if classes else (record.rmse[0] / scale, record.rmse_se[0] / scale)
        )
        # Of few test rows, none of them wrong, the share is not known to be 0.
        found["deviations"] = float((own - mean) / np.hypot(own_se, max(se, 1.0 / len(y) if classes else 0.0)))
    return found


def _copies(stored: data_sets.Real, classes: bool, seed: int) -> dict[str, float]:
    """The default fitted to some rows, and to twenty copies of each of them."""
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
    order = np.random.default_rng(seed).permutation(len(X))
    test = min(MOST_TEST, len(X) // 5)
    held_out, rows = order[:test], order[test : test + DISTINCT]
    copies = np.random.default_rng(seed).permutation(np.repeat(rows, TIMES))
    found = []
    # The same number of functions, which the default takes from the number of rows.
    functions = {"n_components": min(500, len(rows) // 2)}
    for chosen in (rows, copies):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = _ours(functions)(classes, seed, len(chosen)).fit(X[chosen], y[chosen])
            found.append(_errors(estimator, X[held_out], y[held_out], classes))
    return {**found[1], "seconds": 0.0, "of distinct rows": found[0]["error"]}


def _median(found: list[dict[str, float]], what: str) -> float:
    return statistics.median(each[what] for each in found)


def _ratio(found: list[dict[str, float]], other: list[dict[str, float]], what: str) -> float:
    """The ratio of the medians of the splits that both ran on."""
    both = min(len(found), len(other))
    return _median(found[:both], what) / max(_median(other[:both], what), 1e-9)


def _row(found: dict[str, list[dict[str, float]]], who: list[str]) -> list[float | None]:
    return [
        round(_median(found[name], what), 4 if what == "error" else 2) if name in found else None
        for name in who
        for what in ("error", "seconds")
    ]


def _ratios(figures: Figures, who: str, other: str, *, classes: bool | None = None) -> dict[str, float]:
    return {
        name: _ratio(found[who], found[other], "error")
        for name, found in figures.items()
        if who in found and other in found and (classes is None or (name in CLASSES) == classes)
    }


def _claims(figures: Figures) -> list[dict[str, Any]]:
    claims = []
    for who in OURS:
        if who == PLAIN:
            continue
        over = _ratios(figures, who, PLAIN)
        if over:
            claims.append(at_most(f"{who}: error over no search, median", statistics.median(over.values()), 0.9))
            worst = max(over, key=lambda name: over[name])
            claims.append(at_most(f"{who}: error over no search, largest ({worst})", over[worst], 1.01))
        for classes, kind in ((False, "regression"), (True, "classification")):
            trees = _ratios(figures, who, TREES, classes=classes)
            if trees:
                ratio = statistics.median(trees.values())
                claims.append(at_most(f"{who}: error over {TREES}, median of {kind} sets", ratio, 1.0))
        spent = {
            name: _median(found[who], "seconds") / _median(found[PLAIN], "seconds")
            for name, found in figures.items()
            if who in found and PLAIN in found
        }
        if spent:
            claims.append(at_most(f"{who}: seconds over {PLAIN}, median", statistics.median(spent.values()), 1.5))
    for who in (DEFAULT, COPIES):
        off = {
            name: abs(_median(found[who], "deviations"))
            for name, found in figures.items()
            if who in found and all("deviations" in each for each in found[who])
        }
        if off:
            worst = max(off, key=lambda name: off[name])
            claims.append(
                at_most(f"{who}: held-out error off that of the test rows, in deviations ({worst})", off[worst], 2.0)
            )
    # Means of all splits: of some twenty wrong labels two more are chance, and 10 %.
    copies = {
        name: math.fsum(each["error"] for each in found[COPIES])
        / math.fsum(each["of distinct rows"] for each in found[COPIES])
        for name, found in figures.items()
        if COPIES in found
    }
    if copies:
        worst = max(copies, key=lambda name: copies[name])
        claims.append(at_most(f"{COPIES}: error over that of distinct rows ({worst})", copies[worst], 1.05))
    return claims


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write accuracy.md and accuracy.png there")
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    parser.add_argument("--peers", help=f"of {'; '.join(PEERS)}; separated by semicolons, all by default")
    parser.add_argument("--ours", help=f"of {'; '.join(OURS)}; separated by semicolons, all by default")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
