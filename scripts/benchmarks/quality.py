"""Quality: residual trace and held-out error of every rule against n, on six real and two synthetic sets.

Standardised rows and targets (see `_sets`), Gaussian kernel at the median distance between rows, alpha by the model's
own choice; median over the seeds. Claims about prediction are asked at shorter lengthscales too: half the median on
kin40k and covtype-subset, a third on protein-casp. scikit-learn's Nystroem + Ridge is given the alpha that is best on
the test rows. SGMA reads the table once for every function: it runs at n = 100 only.

    scripts/bench quality --results docs/results      # also quality.md, quality.csv, quality.png
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _quality_picture import draw
from _report import as_asked, at_least, at_most, main, not_asked, write_page
from _sets import REAL, SHORTER, SYNTHETIC, Split, splits
from rich.console import Console
from sklearn.kernel_approximation import Nystroem

from streamkernel import KernelRidge

SIZES = (100, 300, 1000)
SEEDS = 5
RULES: dict[str, dict[str, Any]] = {
    "uniform": {"rule": "uniform"},
    "rpcholesky": {"rule": "rpcholesky"},
    "few-sweep, trace": {"objective": "trace"},
    "few-sweep, prediction": {"objective": "prediction"},
    "sgma": {"rule": "sgma"},
}
SLOW, SLOW_SIZE = "sgma", 100
TRACE, PREDICTION = "few-sweep, trace", "few-sweep, prediction"
PEER, PEER_SETS = "scikit-learn", ("abalone", "protein-casp", "kin40k", "california-housing", "covtype-subset")
COLUMNS = ["set", "lengthscale", "n", "rule", "residual trace", "of RPCholesky's", "error", "sweeps", "seconds"]
ALPHAS = tuple(np.geomspace(1e-6, 1e3, 28))


@dataclass(frozen=True)
class Cell:
    """Medians over the seeds of one rule at one n on one set; `shorter` marks the shorter lengthscale."""

    data: str
    shorter: bool
    lengthscale: float
    rule: str
    n: int
    rows: int
    residual: float | None
    error: float
    sweeps: int | None
    seconds: float


def run(
    quick: bool = False, results: Path | None = None, sets: str | None = None, seeds: int | None = None
) -> dict[str, Any]:
    """The table and the claims; with `results`, a folder, also its pictures and tables."""
    names = tuple(sets.split(",")) if sets else REAL + SYNTHETIC
    sizes = (50, 100) if quick else SIZES
    count = seeds or (2 if quick else SEEDS)
    cells: list[Cell] = []
    missing: list[str] = []
    console = Console(stderr=True, highlight=False)
    for found in splits(names, quick):
        if isinstance(found, str):
            missing.append(found)
            continue
        cells += _cells(found, sizes, count, console)
    claims = _claims(cells, missing)
    result = {
        "title": f"Every rule at its n (medians of {count} seeds)",
        "columns": COLUMNS,
        "rows": _rows(cells),
        "claims": as_asked(claims, quick, sets=(sets, None), seeds=(seeds, SEEDS)),
        "notes": [f"skipped: {reason}" for reason in missing],
    }
    if results is not None:
        _write(results, result, cells, count)
    return result


# ------------------------------------------------------------------------------------------------------ measurements
def _cells(split: Split, sizes: tuple[int, ...], seeds: int, console: Console) -> list[Cell]:
    cells = []
    for shorter in (False, True) if split.name in SHORTER else (False,):
        lengthscale = split.median * (SHORTER[split.name] if shorter else 1.0)
        for n in _sizes(split, sizes, shorter):
            for rule in _rules(split, n, sizes, shorter):
                # One seed for SGMA: it takes minutes, and is a point of reference only.
                measured = [_measure(split, lengthscale, rule, n, seed) for seed in range(1 if rule == SLOW else seeds)]
                residuals, errors, sweeps, seconds = zip(*measured, strict=True)
                known = residuals[0] is not None
                cells.append(Cell(
                    split.name, shorter, lengthscale, rule, n, len(split.X),
                    statistics.median(residuals) if known else None, statistics.median(errors),
                    max(sweeps) if known else None, statistics.median(seconds),
                ))  # fmt: skip
            console.print(f"{split.name}, lengthscale {lengthscale:.3g}, n = {n}", style="dim")
    return cells


def _sizes(split: Split, sizes: tuple[int, ...], shorter: bool) -> tuple[int, ...]:
    # At the shorter lengthscale uniform is asked at twice 300 as well, where 300 is.
    return tuple(n for n in sorted({*sizes, *((600,) if shorter and 300 in sizes else ())}) if n <= len(split.X) // 2)


def _rules(split: Split, n: int, sizes: tuple[int, ...], shorter: bool) -> list[str]:
    if n not in sizes:
        return ["uniform"]
    if shorter:
        return ["uniform", PREDICTION]
    rules = [rule for rule in RULES if rule != SLOW or n == SLOW_SIZE]
    return [*rules, PEER] if split.name in PEER_SETS else rules


def _measure(
    split: Split, lengthscale: float, rule: str, n: int, seed: int
) -> tuple[float | None, float, int | None, float]:
    """Relative residual trace, test error, sweeps, seconds."""
    began = time.perf_counter()
    if rule == PEER:
        return None, _peer(split, lengthscale, n, seed), None, time.perf_counter() - began
    with warnings.catch_warnings():
        # A basis that is smaller than n, because the rest depends on it, is a result here.
        warnings.simplefilter("ignore")
        model = KernelRidge(n, lengthscale=lengthscale, scale="none", random_state=seed, **RULES[rule])
        model.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    error = _rmse(model.predict(split.X_test), split.y_test)
    return model.relative_residual_trace_, error, model.model_.config["sweep_count"], seconds


def _peer(split: Split, lengthscale: float, n: int, seed: int) -> float:
    """scikit-learn's Nystroem + Ridge at the alpha with the least error on the test rows.

    Ridge's normal equations are solved for all alphas by one eigendecomposition; its own `fit` would form them anew
    for each.
    """
    nystroem = Nystroem(gamma=0.5 / lengthscale**2, n_components=n, random_state=seed)
    G, G_test = nystroem.fit_transform(split.X), nystroem.transform(split.X_test)
    mean, centre = G.mean(axis=0), split.y.mean()
    values, vectors = np.linalg.eigh((G - mean).T @ (G - mean))
    rotated = vectors.T @ ((G - mean).T @ (split.y - centre))
    directions = (G_test - mean) @ vectors
    return min(_rmse(directions @ (rotated / (values + alpha)) + centre, split.y_test) for alpha in ALPHAS)


def _rmse(predicted: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted) - truth) ** 2)))


# ------------------------------------------------------------------------------------------------------------- claims
def _claims(cells: list[Cell], missing: list[str]) -> list[dict[str, Any]]:
    found = {(cell.data, cell.shorter, cell.rule, cell.n): cell for cell in cells}
    claims: list[dict[str, Any]] = []
    ratios, sweeps, beside, plain, best = {}, {}, {}, {}, {}
    for (data, shorter, rule, n), cell in found.items():
        at = f"{data}, {'shorter' if shorter else 'median'}, n = {n}"
        other = found.get((data, shorter, "uniform", n))
        if rule == TRACE:
            against = found[data, shorter, "rpcholesky", n]
            ratios[at] = (cell.residual or 0.0) / max(against.residual or 0.0, np.finfo(float).tiny)
            sweeps[at] = float(cell.sweeps or 0)
        if rule == PREDICTION and other is not None:
            plain[at] = cell.error / other.error
            twice = found.get((data, shorter, "uniform", 600))
            if shorter and n == 300 and twice is not None:
                beside[data] = cell.error / twice.error
        if rule == PEER:
            best[at] = found[data, shorter, PREDICTION, n].error / cell.error
    worst = _worst(claims, at_most)
    worst("few-sweep, trace: residual trace over RPCholesky's", ratios, 0.97)
    if ratios:
        middle = statistics.median(ratios.values())
        claims.append(at_most("few-sweep, trace: the same, median over sets and ranks", middle, 0.82))
    worst("few-sweep, trace: sweeps", sweeps, 6)
    for data, ratio in beside.items():
        claims.append(at_most(f"few-sweep, prediction, {data}: error at n = 300 over uniform's at 600", ratio, 1.01))
    worst("few-sweep, prediction: error over uniform's at the same n", plain, 1.01)
    worst("few-sweep, prediction: error over scikit-learn's at its best alpha", best, 1.01)
    for n in SIZES:
        peer = found.get(("kin40k", False, PEER, n))
        if peer is not None:
            gain = 1.0 - found["kin40k", False, PREDICTION, n].error / peer.error
            claims.append(at_least(f"kin40k, n = {n}: error below scikit-learn's at its best alpha by", gain, 0.05))
    claims += [not_asked("claims about this set", reason) for reason in missing]
    return claims


def _worst(claims: list[dict[str, Any]], bound: Any) -> Any:
    """Adds one claim for the worst of many cases, which it names."""

    def add(name: str, values: dict[str, float], ceiling: float) -> None:
        if values:
            at = max(values, key=values.__getitem__)
            missed = sum(value > ceiling for value in values.values())
            among = f"{missed} of {len(values)} beyond" if missed else f"worst of {len(values)}"
            claims.append(bound(f"{name} ({among}: {at})", values[at], ceiling))

    return add


# ------------------------------------------------------------------------------------------------------------ results
def _rows(cells: list[Cell]) -> list[list[Any]]:
    reference = {(c.data, c.shorter, c.n): c.residual for c in cells if c.rule == "rpcholesky"}
    rows = []
    for cell in cells:
        base = reference.get((cell.data, cell.shorter, cell.n))
        share = cell.residual / base if cell.residual is not None and base else None
        rows.append([
            cell.data, float(f"{cell.lengthscale:.3g}"), cell.n, cell.rule,
            None if cell.residual is None else f"{cell.residual:.2e}", None if share is None else round(share, 3),
            round(cell.error, 4), cell.sweeps, round(cell.seconds, 2),
        ])  # fmt: skip
    return rows


def _write(folder: Path, result: dict[str, Any], cells: list[Cell], seeds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "quality.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(result["columns"])
        writer.writerows(result["rows"])
    words = [
        f"Made by `scripts/bench quality --results docs/results` (medians of {seeds} seeds). Test error is the root",
        "mean square on standardised targets; the residual trace is a share of the trace.",
        "",
        "![Residual trace and test error against n](quality.png)",
    ]
    write_page(folder / "quality.md", "Quality of the rules", words, result)
    shown = [cell for cell in cells if not cell.shorter]
    draw(folder / "quality.png", shown, (*RULES, PEER))


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write quality.md, .csv and .png there")
    parser.add_argument("--sets", metavar="A,B", help="only these sets")
    parser.add_argument("--seeds", type=int, help=f"how many (default {SEEDS})")


if __name__ == "__main__":
    main(run, __doc__, _arguments)
