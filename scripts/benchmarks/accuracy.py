"""Accuracy: held-out error of kernel ridge with and without a learned metric against scikit-learn's trees, on all sets.

Every set of ../shared/data, several splits into at most 32,000 training and 10,000 test rows, all estimators with their
defaults but for what the name says. Errors are root mean squared errors in deviations of the test targets, or shares of
wrong labels; a set's error is the median of its splits, a ratio that of two medians.

    scripts/bench accuracy --json docs/results/accuracy.json       # also accuracy.md beside it
    scripts/bench accuracy --sets kin40k,spambase --splits 1 --peers HistGradientBoosting
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _report import at_most, main, unasked
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
MOST_TRAIN, MOST_TEST, MOST_SVM = 32_000, 10_000, 10_000
TREES, PLAIN = "HistGradientBoosting", "ours, metric none"
OURS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "ours, metric learned": {"metric": "learned"},
    "ours, metric learned, alpha cv": {"metric": "learned", "alpha": "cv"},
}
SEARCH = {
    "learning_rate": [0.03, 0.1, 0.3],
    "max_iter": [100, 300, 1000],
    "max_leaf_nodes": [15, 31, 63],
    "l2_regularization": [0.0, 1.0],
}


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
    return make_pipeline(StandardScaler(), (SVC if classes else SVR)(C=10.0)) if rows <= MOST_SVM else None


PEERS: dict[str, Callable[[bool, int, int], Any]] = {
    TREES: _trees,
    f"{TREES}, searched": _searched,
    "RandomForest": _forest,
    "SVC or SVR, C = 10": _machine,
}

Figures = dict[str, dict[str, list[dict[str, float]]]]


def run(
    quick: bool = False, splits: int = 5, sets: str | None = None, peers: str | None = None, ours: str | None = None
) -> dict[str, Any]:
    names = tuple(sets.split(",")) if sets else (("abalone", "ringnorm") if quick else SETS)
    splits = 1 if quick else splits
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
            for who, found in _split(stored, name in CLASSES, made, seed):
                figures[name][who].append(found)
        figures[name] = {who: found for who, found in figures[name].items() if found}
        medians = {who: round(_median(found, "error"), 4) for who, found in figures[name].items()}
        console.print(f"{name}: {medians}")
    columns = ["set", *(f"{who}: {what}" for who in made for what in ("error", "seconds"))]
    rows = [[name, *_row(figures[name], list(made))] for name in figures]
    claims = _claims(figures)
    return {
        "title": f"Held-out error on {len(figures)} sets, medians of {splits} splits",
        "columns": columns,
        "rows": rows,
        "claims": claims if not sets and not quick else unasked(claims, "not all sets were run"),
        "figures": figures,
    }


def _split(
    stored: data_sets.Real, classes: bool, made: dict[str, Callable[[bool, int, int], Any]], seed: int
) -> Iterator[tuple[str, dict[str, float]]]:
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
    order = np.random.default_rng(seed).permutation(len(X))
    test = min(MOST_TEST, len(X) // 5)
    held_out, chosen = order[:test], order[test : test + MOST_TRAIN]
    for who, make in made.items():
        estimator = make(classes, seed, len(chosen))
        if estimator is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            estimator.fit(X[chosen], y[chosen])
            seconds = time.perf_counter() - began
            predicted = estimator.predict(X[held_out])
        if classes:
            error = float((predicted != y[held_out]).mean())
        else:
            error = float(np.sqrt(np.mean((predicted - y[held_out]) ** 2)) / y[held_out].std())
        yield who, {"error": error, "seconds": seconds}


def _median(found: list[dict[str, float]], what: str) -> float:
    return statistics.median(each[what] for each in found)


def _row(found: dict[str, list[dict[str, float]]], who: list[str]) -> list[float | None]:
    return [
        round(_median(found[name], what), 4 if what == "error" else 2) if name in found else None
        for name in who
        for what in ("error", "seconds")
    ]


def _ratios(figures: Figures, who: str, other: str, *, classes: bool | None = None) -> dict[str, float]:
    return {
        name: _median(found[who], "error") / max(_median(found[other], "error"), 1e-9)
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
            claims.append(at_most(f"{who}: error over metric none, median", statistics.median(over.values()), 0.9))
            worst = max(over, key=lambda name: over[name])
            claims.append(at_most(f"{who}: error over metric none, largest ({worst})", over[worst], 1.01))
        for classes, kind in ((False, "regression"), (True, "classification")):
            trees = _ratios(figures, who, TREES, classes=classes)
            if trees:
                ratio = statistics.median(trees.values())
                claims.append(at_most(f"{who}: error over {TREES}, median of {kind} sets", ratio, 1.0))
    return claims


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    parser.add_argument("--peers", help=f"of {'; '.join(PEERS)}; separated by semicolons, all by default")
    parser.add_argument("--ours", help=f"of {'; '.join(OURS)}; separated by semicolons, all by default")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
