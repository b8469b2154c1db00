"""Compressed tables: how much worse are fits to 2 % of the rows, with weights, than fits to all rows.

Sets of ../shared/data, a quarter of the rows held out (8,000 at most), 20,000 rows compressed at most (of numbers
10,000). Each method makes a table of 2 % of the rows, which estimators with fixed parameters fit: ours and
scikit-learn's. A loss is the test error less that of the fit to all rows, the median over seeds; a ratio is the loss
over that of a random sample.

    scripts/bench compress                        classes: a9a, covtype-subset, spambase
    scripts/bench compress --parts numbers        california-housing, kin40k, protein-casp
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from _compress_once import METHODS
from _report import at_most, by_parts, in_fresh_process, main, not_asked
from _sets import data_sets

CLASSES = ("a9a", "covtype-subset", "spambase")
NUMBERS = ("california-housing", "kin40k", "protein-casp")
ROWS, SEEDS = {"classes": 20_000, "numbers": 10_000}, 5
OF_CLASSES = tuple(name for name in METHODS if "y)" not in name)
OF_NUMBERS = ("subsample", "precluster", "precluster (x, .3 y)", "thinning", "squash", "squash, kernel profiles")


def run(quick: bool = False, parts: str = "classes", sets: str | None = None) -> dict[str, Any]:
    """The table and the claims of some parts."""
    rows, claims = by_parts(_PARTS, parts, sets, quick)
    return {
        "title": "Compressed tables of 2 % of the rows",
        "columns": ["set", "rows", "size", "estimator", "method", "error", "all rows", "loss", "ratio"],
        "rows": rows,
        "claims": claims,
    }


def _part(
    part: str, names: tuple[str, ...], methods: tuple[str, ...], quick: bool
) -> tuple[list[list[Any]], list[dict[str, Any]], dict[tuple[str, str], list[float]]]:
    """Rows, claims of sets that are missing, and the ratios of each method and estimator over the sets."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    ratios: dict[tuple[str, str], list[float]] = {}
    for name in names:
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        given = {"name": name, "rows": 2_500 if quick else ROWS[part], "seeds": 2 if quick else SEEDS}
        found = in_fresh_process("_compress_once", {**given, "methods": list(methods)})
        for who, whole in found["all"].items():
            base = found["methods"]["subsample"]["errors"][who] - whole
            for method, each in found["methods"].items():
                loss = each["errors"][who] - whole
                ratio = loss / base if base > 0.0 else float("nan")
                ratios.setdefault((method, who), []).append(ratio)
                errors = round(each["errors"][who], 4), round(whole, 4), round(loss, 4)
                rows.append([name, found["rows"], each["size"], who, method, *errors, round(ratio, 2)])
    return rows, claims, ratios


def _medians(ratios: dict[tuple[str, str], list[float]]) -> list[list[Any]]:
    """Rows of the median over the sets."""
    return [
        ["median", "", "", who, method, "", "", "", round(float(np.median(values)), 2)]
        for (method, who), values in ratios.items()
    ]


def _classes(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    rows, claims, ratios = _part("classes", sets or CLASSES, OF_CLASSES, quick)
    for (method, who), values in ratios.items():
        # The claim is about these sets.
        if method == "squash" and not sets:
            what = f"squash, {who}: loss over that of a random sample, median of {len(values)} sets"
            claims.append(at_most(what, float(np.median(values)), 1 / 3))
    return rows + _medians(ratios), claims


def _numbers(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    rows, claims, ratios = _part("numbers", sets or NUMBERS, OF_NUMBERS, quick)
    return rows + _medians(ratios), claims


_PARTS = {"classes": _classes, "numbers": _numbers}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default="classes", help=f"of {', '.join(_PARTS)}, separated by commas")
    parser.add_argument("--sets", help="names, separated by commas")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(run, __doc__, add_arguments)
