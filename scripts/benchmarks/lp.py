"""Linear programming machines: rounds to a certified gap, functions and accuracy beside support vector machines.

Sets of ../shared/data (of covtype-subset class 2 against the rest), and a smooth function from Zarr. Columns are
standardised; the Gaussian kernel has the median distance as lengthscale, the same for all. The gap is that of the
program in which all rows are candidates for functions.

    scripts/bench lp                              accuracy on real sets, and 100,000 x 20 from Zarr
    scripts/bench lp --parts large                the latter alone
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _report import at_least, at_most, by_parts, in_fresh_process, main, not_asked
from _sets import data_sets
from _tables import write_store
from data_sets import smooth_target_table

# Each with its C: the sum of absolute coefficients counts less the more rows there are.
SETS = {"spambase": 1.0, "a9a": 0.1, "covtype-subset": 0.1}
MOST_ROWS, LARGE = 100_000, 100_000


def run(quick: bool = False, parts: str = "accuracy,large", sets: str | None = None) -> dict[str, Any]:
    """The table and the claims of some parts."""
    rows, claims = by_parts(_PARTS, parts, sets, quick)
    return {
        "title": "Linear programming machines (one run each)",
        "columns": ["part", "set", "rows", "who", "C", "functions", "sweeps", "gap", "accuracy", "seconds", "peak MiB"],
        "rows": rows,
        "claims": claims,
    }


def _row(part: str, name: str, who: str, found: dict[str, Any]) -> list[Any]:
    peak = round(found["peak"] / 2**20)
    told = [found[key] for key in ("C", "functions", "sweeps", "gap", "accuracy", "seconds")]
    return [part, name, found["rows"], who, *told, peak]


def _accuracy(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Two classes on rows outside the fit, beside the machine on a basis of 500 functions."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in sets or tuple(SETS):
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        given = {"what": "accuracy", "name": name, "rows": 2_000 if quick else MOST_ROWS, "C": SETS.get(name, 0.1)}
        found = {who: in_fresh_process("_lp_once", {**given, "who": who}) for who in ("lp", "svc")}
        rows += [_row("accuracy", name, who, each) for who, each in found.items()]
        claims.append(at_most(f"{name}: gap to the program of all columns", found["lp"]["gap"], 1e-3))
        less = found["lp"]["accuracy"] - found["svc"]["accuracy"]
        claims.append(at_least(f"{name}: accuracy less that of 500 functions of KernelSVC", less, -0.01))
    return rows, claims


def _large(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Two classes of 100,000 x 20 rows of a Zarr store."""
    m = 3_000 if quick else LARGE
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "rows.zarr")
        write_store(store, _classes, m + m // 10, 20, "float32")
        for who in ("lp", "svc"):
            found = in_fresh_process(
                "_lp_once", {"what": "large", "store": str(store), "rows": m, "C": 0.1, "who": who}
            )
            rows.append(_row("large", "smooth", who, found))
            if who == "lp":
                claims.append(at_most(f"{m:,} x 20: gap to the program of all columns", found["gap"], 1e-3))
    return rows, claims


def _classes(start: int, count: int) -> Any:
    """Rows of two classes: is a smooth function of twenty features, with noise, above 0?"""
    found = smooth_target_table(count, 20, start=start)
    return found._replace(y=(found.y > 0.0).astype(np.float64))


_PARTS = {"accuracy": _accuracy, "large": _large}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default="accuracy,large", help=f"of {', '.join(_PARTS)}, separated by commas")
    parser.add_argument("--sets", help="names, separated by commas")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(run, __doc__, add_arguments)
