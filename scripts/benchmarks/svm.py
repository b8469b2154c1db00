"""Support vector machines: sweeps to a certified gap, accuracy beside libsvm and ThunderSVM, memory of large tables.

Sets of ../shared/data; of covtype-subset class 2 against the rest, where two classes are asked for. Standardised
columns, a Gaussian kernel with the median distance as lengthscale; SVC (libsvm, all rows as functions, through
scikit-learn), ThunderSVM on processors (in an environment of its own) and our full machine have the same kernel and C.

    scripts/bench svm                             sweeps and accuracy
    scripts/bench svm --parts large               3,000,000 x 20 from Zarr
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _peers import in_peer_process, peer_python
from _report import at_least, at_most, by_parts, in_fresh_process, main, not_asked
from _sets import data_sets
from _svm_once import split
from _tables import write_store
from data_sets import smooth_target_table

SWEPT, COSTS, SIZES = ("spambase", "a9a", "covtype-subset"), (1.0, 10.0, 100.0), (300, 1000)
COMPARED = ("a9a", "covtype-subset", "spambase", "pendigits", "usps")
COMPARED_QUICK = ("spambase", "pendigits")  # two classes, and ten
MOST_SVC, MOST_SWEPT, C = 20_000, 40_000, 3.0
LARGE = 3_000_000


def run(quick: bool = False, parts: str = "sweeps,accuracy", sets: str | None = None) -> dict[str, Any]:
    """The table and the claims of some parts."""
    rows, claims = by_parts(_PARTS, parts, sets, quick)
    return {
        "title": "Support vector machines (one run each)",
        "columns": ["part", "set", "rows", "n", "who", "C", "gap 1e-3 / 1e-6", "accuracy", "seconds", "peak MiB"],
        "rows": rows,
        "claims": claims,
    }


def _sweeps(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Sweeps to a relative gap of 1e-3 and 1e-6, by Newton's method and by the interior point method, from 0."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    bounds = {"squared_hinge": (None, 10), "hinge": (20, 40)}
    most: dict[tuple[str, int], float] = {}
    for name in sets or SWEPT:
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        for n in (100,) if quick else SIZES:
            for loss in bounds:
                for cost in COSTS[:1] if quick else COSTS:
                    given = {"name": name, "n": n, "loss": loss, "C": cost, "rows": 3_000 if quick else MOST_SWEPT}
                    found = in_fresh_process("_svm_once", {"what": "sweeps", **given})
                    reached = found["sweeps"]
                    for position, count in enumerate(reached):
                        key = loss, position
                        most[key] = max(most.get(key, 0.0), np.inf if count is None else count)
                    shown = " / ".join("-" if count is None else str(count) for count in reached)
                    who = f"{loss}, certified"
                    peak = round(found["peak"] / 2**20)
                    rows.append(["sweeps", name, found["rows"], n, who, cost, shown, "", found["seconds"], peak])
    for (loss, position), worst in most.items():
        bound = bounds[loss][position]
        if bound is not None:
            claims.append(at_most(f"{loss}: sweeps to a gap of {(1e-3, 1e-6)[position]:g}, at most", worst, bound))
    return rows, claims


def _accuracy(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Accuracy on rows outside the fit, of all classes, against SVC with the same kernel and C."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in sets or (COMPARED_QUICK if quick else COMPARED):
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        base = {"name": name, "n": 100 if quick else 1000, "C": C, "rows": 2_000 if quick else MOST_SVC}
        found = {
            who: in_fresh_process("_svm_once", {"what": "accuracy", "who": who, **base})
            for who in ("hinge", "squared_hinge", "one-vs-one", "searched", "full", "SVC")
        }
        thunder = _thunder(name, base, install=not quick)
        if thunder is None:
            claims.append(not_asked(f"{name}: ThunderSVM", "it is not installed"))
        else:
            found["ThunderSVM"] = thunder
        for who, each in found.items():
            n = "" if who in ("SVC", "ThunderSVM", "full") else base["n"]
            cost, peak = each["C"], round(each["peak"] / 2**20)
            rows.append(["accuracy", name, each["rows"], n, who, cost, "", each["accuracy"], each["seconds"], peak])
        peer = found["SVC"]["accuracy"]
        best = max(found["hinge"]["accuracy"], found["squared_hinge"]["accuracy"])
        claims.append(at_least(f"{name}: accuracy of the better loss less SVC's", best - peer, -0.005))
        for who in ("hinge", "full"):
            less = found[who]["accuracy"] - peer
            claims.append(at_least(f"{name}: accuracy of {who} less SVC's", less, -0.005))
        claims.append(
            at_least(f"{name}: accuracy with searches less SVC's", found["searched"]["accuracy"] - peer, -0.005)
        )
        if name == "covtype-subset" and not quick:
            # All rows, where SVC would take hours.
            for who in ("hinge", "squared_hinge", "searched"):
                given = {**base, "who": who, "rows": 1_000_000}
                each = in_fresh_process("_svm_once", {"what": "accuracy", **given})
                peak = round(each["peak"] / 2**20)
                rows.append(
                    ["accuracy", name, each["rows"], 1000, who, each["C"], "", each["accuracy"], each["seconds"], peak]
                )
    return rows, claims


def _thunder(name: str, base: dict[str, Any], *, install: bool) -> dict[str, Any] | None:
    """ThunderSVM's machine of the same rows, kernel and C, on processors; None where it is not installed."""
    python = peer_python("thundersvm", install=install)
    if python is None:
        return None
    X, y, Z, t, lengthscale = split(name, base["rows"], two=False)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.npz")
        np.savez(rows, X=X, y=y, Z=Z, t=t)
        given = {"rows": str(rows), "C": base["C"], "gamma": 1.0 / (2.0 * lengthscale**2)}
        return {**in_peer_process(python, "_thundersvm_once", json.dumps(given)), "C": base["C"]}


def _large(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """A classifier on 3,000,000 x 20 rows of a Zarr store, n = 500: seconds, peak memory and gap."""
    m, n = (50_000, 50) if quick else (LARGE, 500)
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "rows.zarr")
        write_store(store, _classes, m, 20, "float32")
        for loss in ("squared_hinge", "hinge"):
            found = in_fresh_process("_svm_once", {"what": "large", "store": str(store), "n": n, "loss": loss})
            peak = found["peak"] / 2**20
            shown = f"{found['gap']:.1e} after {found['sweeps']}"
            rows.append(["large", "smooth", m, n, loss, found["C"], shown, "", found["seconds"], round(peak)])
            claims.append(at_most(f"{loss}, {m:,} x 20, n = {n}: peak MiB", peak, 2048))
            claims.append(at_most(f"{loss}, {m:,} x 20, n = {n}: relative duality gap", found["gap"], 1e-3))
    return rows, claims


def _classes(start: int, count: int) -> Any:
    """Rows of two classes: is a smooth function of twenty features, with noise, above 0?"""
    found = smooth_target_table(count, 20, start=start)
    return found._replace(y=(found.y > 0.0).astype(np.float64))


_PARTS = {"sweeps": _sweeps, "accuracy": _accuracy, "large": _large}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default="sweeps,accuracy", help=f"of {', '.join(_PARTS)}, separated by commas")
    parser.add_argument("--sets", help="names, separated by commas")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(run, __doc__, add_arguments)
