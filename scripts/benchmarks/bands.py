"""Bands between quantiles and regions of one class: do they hold their share of new rows, and memory as tables grow.

Sets of ../shared/data, a quarter of the rows held out, 10,000 at most. Beside ours are the gradient boosting of
scikit-learn with the quantile loss, a model for each level, and its OneClassSVM (libsvm, all rows as functions).

    scripts/bench bands                           shares on real sets
    scripts/bench bands --parts large             2,900,000 x 20 and 278,000 x 20 from Zarr
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

from _report import at_most, by_parts, in_fresh_process, main, not_asked
from _sets import data_sets
from _tables import write_store
from data_sets import smooth_target_table

BANDS = ("california-housing", "protein-casp", "kin40k", "abalone")
OUTLIERS, NUS = ("covtype-subset", "a9a", "pendigits"), (0.01, 0.1, 0.5)
MOST_ROWS, MOST_SVM = 30_000, 20_000
# Rows of the tables of scikit-learn's issues 22922 (quantiles) and 6617 (one class).
LARGE, LARGE_ONE_CLASS = 2_900_000, 278_000


def run(quick: bool = False, parts: str = "bands,outliers", sets: str | None = None) -> dict[str, Any]:
    """The table and the claims of some parts."""
    rows, claims = by_parts(_PARTS, parts, sets, quick)
    return {
        "title": "Bands and regions (one run each)",
        "columns": ["part", "set", "rows", "n", "who", "asked", "fit", "new rows", "loss", "seconds", "peak MiB"],
        "rows": rows,
        "claims": claims,
    }


def _bands(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Bands from 5 to 95 %: the share of new rows inside, and the mean pinball loss of 0.05, 0.5 and 0.95."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in sets or BANDS:
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        given = {"name": name, "n": 50 if quick else 500, "rows": 2_500 if quick else MOST_ROWS}
        for who in ("ours", "ours, no shifts", "boosted trees"):
            found = in_fresh_process("_bands_once", {"what": "bands", "who": who, **given})
            n = "" if who == "boosted trees" else given["n"]
            shares = found["fitted"], found["inside"], found["loss"]
            peak = round(found["peak"] / 2**20)
            rows.append(["bands", name, found["rows"], n, who, 0.9, *shares, found["seconds"], peak])
            if who == "ours":
                claims.append(at_most(f"{name}: share inside the band, off by", abs(found["inside"] - 0.9), 0.01))
    return rows, claims


def _outliers(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Shares of the rows of the fit, and of new rows, that are outside the region."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in sets or OUTLIERS:
        if data_sets.load(name) is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        for nu in NUS[1:2] if quick else NUS:
            given = {"name": name, "n": 50 if quick else 300, "rows": 2_500 if quick else MOST_SVM, "nu": nu}
            for who in ("ours", "OneClassSVM"):
                found = in_fresh_process("_bands_once", {"what": "outliers", "who": who, **given})
                n, peak = given["n"] if who == "ours" else "", round(found["peak"] / 2**20)
                shares = found["fitted"], found["outside"], ""
                rows.append(["outliers", name, found["rows"], n, who, nu, *shares, found["seconds"], peak])
                if who == "ours":
                    off = max(abs(found["fitted"] - nu), abs(found["outside"] - nu))
                    claims.append(at_most(f"{name}, nu = {nu}: share outside, off by", off, 0.01))
    return rows, claims


def _large(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Three quantiles of 2.9 million rows, and one class of 278,000: shares, seconds and peak memory."""
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    n = 50 if quick else 300
    for what, m in (("large bands", LARGE), ("large outliers", LARGE_ONE_CLASS)):
        m = 40_000 if quick else m
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "rows.zarr")
            write_store(store, lambda start, count: smooth_target_table(count, 20, start=start), m, 20, "float32")
            found = in_fresh_process("_bands_once", {"what": what, "store": str(store), "n": n})
        peak, asked = found["peak"] / 2**20, found["asked"]
        shares = found["fitted"], "", found["loss"]
        rows.append([what, "smooth", m, n, "ours", asked, *shares, found["seconds"], round(peak)])
        claims.append(at_most(f"{what}, {m:,} x 20, n = {n}: peak MiB", peak, 2048))
        claims.append(at_most(f"{what}, {m:,} x 20, n = {n}: share off by", abs(found["fitted"] - asked), 0.01))
        claims.append(at_most(f"{what}, {m:,} x 20, n = {n}: relative duality gap", found["gap"], 1e-3))
    return rows, claims


_PARTS = {"bands": _bands, "outliers": _outliers, "large": _large}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default="bands,outliers", help=f"of {', '.join(_PARTS)}, separated by commas")
    parser.add_argument("--sets", help="names, separated by commas")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(run, __doc__, add_arguments)
