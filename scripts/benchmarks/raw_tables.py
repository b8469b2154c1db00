"""Raw tables: from a CSV file with categories, dates and gaps to an error, ours against a pipeline of scikit-learn.

Ours is two commands: `streamkernel fit rows.csv MODEL --target NAME --schema auto`, and `streamkernel report`. The
other is what its users write by hand before the same estimator: ColumnTransformer with SimpleImputer (the mean, and an
indicator) for numbers, OneHotEncoder for categories, TargetEncoder for those of more than 32, and for dates the days,
the month, the weekday and the hour. The tables are made by `tests/messy_tables.py`; five seeds each. Errors are of
5,000 other rows: the share of wrong classes, or the RMSE in deviations of the target.

    scripts/bench raw_tables --json docs/results/raw_tables.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import at_most, main, unasked
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, TargetEncoder

from streamkernel import KernelRidge, KernelRidgeClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import messy_tables

BASIS, TEST = 500, 5000
TABLES = {
    "incomes": (messy_tables.incomes, "income", 20_000),
    "bikes": (messy_tables.bikes, "count", 12_000),
    "houses": (messy_tables.houses, "LogPrice", 20_000),
}
# What a person says of the columns to scikit-learn.
DATES = {"datetime": None, "Date": "%d/%m/%Y"}
LEFT_OUT = {"Address"}


def ours(folder: Path, train: pd.DataFrame, test: pd.DataFrame, target: str) -> float:
    """The error of a model that two commands make, on other rows."""
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    estimator = "ridge" if train[target].dtype.kind in "if" else "ridge-classifier"
    model, page = folder / "model", folder / "model.html"
    _run("fit", folder / "train.csv", model, "--target", target, "--schema", "auto", "--estimator", estimator)
    _run("report", model, page)
    scores = json.loads(_run("evaluate", model, folder / "test.csv"))
    return 1.0 - scores["accuracy"] if "accuracy" in scores else scores["rmse"] / test[target].std()


def _run(command: str, *arguments: object) -> str:
    own = {"fit": ["--basis", BASIS, "--overwrite"], "report": ["--overwrite"], "evaluate": []}[command]
    place = [] if command == "report" else ["--scheduler", "threads"]
    line = [sys.executable, "-m", "streamkernel", command, *arguments, *own, *place, "--json", "--quiet"]
    return subprocess.run([str(word) for word in line], check=True, capture_output=True, text=True).stdout


def theirs(train: pd.DataFrame, test: pd.DataFrame, target: str) -> float:
    """The error of a pipeline of scikit-learn with the same estimator, on other rows."""
    X, y = train.drop(columns=target), train[target]
    numbers = [name for name in X if X[name].dtype.kind in "if"]
    texts = [name for name in X if name not in numbers and name not in DATES and name not in LEFT_OUT]
    many = [name for name in texts if X[name].nunique() > 32]
    encoder = ColumnTransformer(
        [
            ("numbers", SimpleImputer(add_indicator=True), numbers),
            ("few", OneHotEncoder(handle_unknown="ignore", sparse_output=False), [n for n in texts if n not in many]),
            ("many", TargetEncoder(random_state=0), many),
            ("dates", FunctionTransformer(_days), [name for name in DATES if name in X]),
        ]
    )
    regression = y.dtype.kind in "if"
    estimator = (KernelRidge if regression else KernelRidgeClassifier)(BASIS, random_state=0)
    predicted = make_pipeline(encoder, estimator).fit(X, y).predict(test.drop(columns=target))
    if regression:
        return float(np.sqrt(np.mean((predicted - test[target]) ** 2)) / test[target].std())
    return float(np.mean(predicted != test[target]))


def _days(frame: pd.DataFrame) -> np.ndarray:
    parts = []
    for name in frame:
        when = pd.to_datetime(frame[name], format=DATES[name])
        days = (when - pd.Timestamp("2015-01-01")) / pd.Timedelta(days=1)
        parts += [days, when.dt.month, when.dt.day_of_week, when.dt.hour]
    return np.column_stack(parts)


def run(quick: bool = False) -> dict[str, Any]:
    """The table, and a claim for each source."""
    table, claims = [], []
    for name, (make, target, m) in TABLES.items():
        ratios = []
        for seed in range(1 if quick else 5):
            size = 2000 if quick else m
            frame = make(size + TEST, seed)
            order = np.random.default_rng(seed).permutation(len(frame))
            train, test = frame.iloc[order[:size]], frame.iloc[order[size:]]
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = ours(Path(folder), train, test, target), theirs(train, test, target)
            ratios.append(found[0] / found[1])
            table.append([name, seed, size, *(float(f"{each:.4g}") for each in found), round(ratios[-1], 4)])
        claims.append(
            at_most(f"{name}: error over that of scikit-learn's transformers, median", float(np.median(ratios)), 1.0)
        )
    return {
        "title": "Raw CSV files of categories, dates and gaps: two commands, and a pipeline of scikit-learn",
        "columns": ["table", "seed", "rows", "error", "scikit-learn", "ratio"],
        "rows": table,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


if __name__ == "__main__":
    main(run, __doc__)
