"""The figures in the README are those that the benchmarks wrote to docs/results."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def measured(benchmark: str, **wanted: Any) -> dict[str, Any]:
    """The row of a benchmark's results that has these values, by the names of its columns."""
    found = json.loads((ROOT / "docs" / "results" / f"{benchmark}.json").read_text())
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    (row,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return row


def fit() -> list[str]:
    size = {"rows": 200_000, "dtype": "float32"}
    ours, theirs = (measured("fit", who=who, **size) for who in ("streamkernel, default", "scikit-learn"))
    return [
        f"{ours['seconds']:.1f} s, {ours['peak MiB']} MiB, error {ours['error']}",
        f"{theirs['seconds']:.1f} s, {theirs['peak MiB']:,} MiB, {theirs['error']}",
    ]


def gp() -> list[str]:
    ours, *theirs = (
        measured("gp", set="kin40k", who=who) for who in ("streamkernel", "SGPR, uniform", "SGPR, k-means")
    )
    rmse, coverage = min(each["rmse"] for each in theirs), max(each["coverage95"] for each in theirs)
    return [
        f"RMSE {ours['rmse']:.3f}, {100 * ours['coverage95']:.1f} % in its 95 % intervals",
        f"{rmse:.3f}, {100 * coverage + 1e-9:.1f} %",
    ]


def factor() -> list[str]:
    ours, theirs = (measured("factor", what=what) for what in ("few-sweep", "rpcholesky"))
    trace = float(ours["relative residual trace"]) / float(theirs["relative residual trace"])
    return [f"{ours['seconds'] / theirs['seconds']:.2f} of the time, {trace:.2f} of the residual trace"]


@pytest.mark.parametrize("benchmark", [fit, gp, factor], ids=lambda each: each.__name__)
def test_the_row_of_the_readme_has_the_figures_of_the_results(benchmark):
    row = next(line for line in (ROOT / "README.md").read_text().splitlines() if f"bench {benchmark.__name__}`" in line)
    for figures in benchmark():
        assert figures in row
