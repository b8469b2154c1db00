"""Local models against one model: a metric and a basis for each cell, cells by splits along the leading direction.

As in the trees of xRFM (Beaglehole et al. 2025): a regression in a learned metric T gives a direction, the leading
eigenvector of T T^T; the rows are split at the median of their projections, and each half again, to 2^depth cells. Each
cell then has a default fit of its own, of n / 2^depth functions (the work of one fit, or less) or of n functions. A row
is predicted by the model of its cell.

    scripts/bench local_models --results docs/results       # local_models.md
    scripts/bench local_models --sets kin40k,covtype-subset
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _report import as_asked, at_most, main, not_asked, write_page
from accuracy import CLASSES, MOST_TEST, MOST_TRAIN, SETS
from rich.console import Console

from streamkernel import KernelRidge, KernelRidgeClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import data_sets

LEAST_ROWS = 8_000  # sets with fewer training rows are left out: their cells would be too small to learn from
N, DEPTHS = 1_000, (1, 2)


def run(quick: bool = False, sets: str | None = None, seed: int = 0, results: Path | None = None) -> dict[str, Any]:
    names = sets.split(",") if sets else (["ringnorm"] if quick else list(SETS))
    most, size = (2_000, 100) if quick else (MOST_TRAIN, N)
    rows, missing, ratios = [], list[dict[str, Any]](), dict[str, list[float]]()
    console = Console(stderr=True, highlight=False)
    for name in names:
        stored = data_sets.load(name)
        if stored is None:
            missing.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        if len(stored.X) * 0.8 < LEAST_ROWS and not quick and not sets:
            continue
        X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
        order = np.random.default_rng(seed).permutation(len(X))
        test = min(MOST_TEST, len(X) // 5)
        held_out, chosen = order[:test], order[test : test + most]
        data = X[chosen], y[chosen], X[held_out], y[held_out]
        found = {"one model": _local(name, data, 0, size)}
        for depth in DEPTHS:
            for what, n in (("n shared", size >> depth), ("n each", size)):
                found[f"{2**depth} cells, {what}"] = _local(name, data, depth, n)
        console.print(name, {who: f"{error:.4g} in {seconds:.3g} s" for who, (error, seconds) in found.items()})
        rows.append([name, *(round(error, 4) for error, _ in found.values())])
        for who, (error, _) in found.items():
            ratios.setdefault(who, []).append(error / max(found["one model"][0], 1e-9))
    columns = ["set", *ratios]
    claims = missing + [
        at_most(f"one model: error over {who}, median", statistics.median(1.0 / each for each in found), 1.0)
        for who, found in ratios.items()
        if who != "one model"
    ]
    title = f"One model of {size:,} functions, and models of cells, on {len(rows)} sets"
    result = {
        "title": title,
        "columns": columns,
        "rows": rows,
        "claims": as_asked(claims, quick, sets=(sets, None), seed=(seed, 0)),
    }
    if results is not None:
        write_page(results / "local_models.md", "Local models", _words(ratios), result)
    return result


def _words(ratios: dict[str, list[float]]) -> list[str]:
    medians = {
        who: f"{statistics.median(found):.3f} (best {min(found):.3f}, worst {max(found):.3f})"
        for who, found in ratios.items()
        if who != "one model"
    }
    return [
        "Made by `scripts/bench local_models --results docs/results`: the rows are split at the median of the leading",
        "direction of a learned metric, each half again; each cell has a default fit of its own, metric included. One",
        f'split into at most {MOST_TRAIN:,} training and {MOST_TEST:,} test rows. "n shared": {N:,} functions for all',
        f'cells together; "n each": {N:,} for each cell: the sums take as many operations as those of one model of',
        f"{N:,} functions. Errors are root mean squared errors in deviations of the test targets, or shares of wrong",
        "labels.",
        "",
        "Error over that of one model, median of the sets:",
        *(f"- {who}: {text}" for who, text in medians.items()),
    ]


def _local(name: str, data: tuple[Any, Any, Any, Any], depth: int, n: int) -> tuple[float, float]:
    """The error on the test rows of the models of all cells, and the seconds of their fits."""
    X, y, new, truth = data
    began = time.perf_counter()
    predicted = np.empty(len(new), dtype=np.asarray(y).dtype if name in CLASSES else float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _predict(name, X, y, new, np.arange(len(new)), depth, n, predicted)
    seconds = time.perf_counter() - began
    if name in CLASSES:
        return float((predicted != truth).mean()), seconds
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / truth.std()), seconds


def _predict(name: str, X: Any, y: Any, new: Any, at: Any, depth: int, n: int, out: Any) -> None:
    """Predict the rows `at` of `new` by the models of the cells of these rows."""
    if len(set(y.tolist()) if name in CLASSES else "two") < 2:
        out[at] = y[0]
        return
    make = KernelRidgeClassifier if name in CLASSES else KernelRidge
    if depth == 0:
        out[at] = np.asarray(make(min(n, len(X) // 2)).fit(X, y).predict(new[at]))
        return
    # The metric of a cheap fit: the search for it sees 8,000 rows at most, whatever n.
    T = make(50, metric="learned").fit(X, y).model_.metric
    mean, scale = X.mean(axis=0), np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    # Without a metric that helps, the leading direction of the rows themselves.
    lead = np.linalg.svd(T if T is not None else ((X[:2000] - mean) / scale).T, full_matrices=False)[0][:, 0]
    side = (X - mean) / scale @ lead
    middle = float(np.median(side))
    there = (new[at] - mean) / scale @ lead > middle
    for half in (False, True):
        mine = (side > middle) == half
        if mine.sum() >= 2 and (there == half).any():
            _predict(name, X[mine], y[mine], new, at[there == half], depth - 1, n, out)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help="names, separated by commas; all with enough rows by default")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write local_models.md there")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
