"""Columns whose values float32 cannot tell apart are warned of; others are not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import append_rows, ingest, open_table
from streamkernel.errors import StreamKernelWarning

RNG = np.random.default_rng(0)
FEW: dict[str, Any] = {
    "seconds of an hour": 1.7e9 + RNG.uniform(0.0, 3600.0, 500),
    "days as numbers": 20_260_000.0 + RNG.integers(101, 1232, 500),
    "neighbours": 1.0 + 1e-9 * RNG.standard_normal(500),
    "large whole numbers": 2**24 + 1 + RNG.integers(0, 5, 500),
    "below zero": -1.7e9 - RNG.uniform(0.0, 60.0, 500),
}
ENOUGH: dict[str, Any] = {
    "usual": RNG.standard_normal(500),
    "a constant": np.full(500, 0.1),
    "seconds of years": 1.7e9 + RNG.uniform(0.0, 1e8, 500),
    "exact": 2.0**30 + 128.0 * RNG.integers(0, 2, 500),
    "none and all": RNG.integers(0, 2, 500),
    "far from each other": np.where(RNG.integers(0, 2, 500), 1e30, 0.1),
    "tiny": 1e-30 * RNG.standard_normal(500),
}


@pytest.mark.parametrize("case", FEW)
def test_too_few_steps(case: str, tmp_path: Path) -> None:
    X = np.column_stack([RNG.standard_normal(500), FEW[case]])
    with pytest.warns(StreamKernelWarning, match=r"float32 is too coarse for column 'x1'.* dtype='float64'"):
        ingest(open_table(X), tmp_path / "t", chunk_rows=64)
    for dtype in ("float64", "keep"):
        ingest(open_table(X), tmp_path / "t", dtype=dtype, overwrite=True)


@pytest.mark.parametrize("case", ENOUGH)
def test_enough_steps(case: str, tmp_path: Path) -> None:
    ingest(open_table(np.column_stack([ENOUGH[case], RNG.standard_normal(500)])), tmp_path / "t", shuffle=True)


def test_several_columns_have_one_warning_whatever_the_batches(tmp_path: Path) -> None:
    rows = np.column_stack([FEW["neighbours"], ENOUGH["usual"], FEW["seconds of an hour"], FEW["below zero"]])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,d", comments="", fmt="%.12g")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ingest(tmp_path / "rows.csv", tmp_path / "t")
    [found] = [str(each.message) for each in caught]
    assert "column 'a'" in found
    assert "and those of 2 more" in found


def test_rows_that_are_appended(tmp_path: Path) -> None:
    X = RNG.standard_normal((500, 2))
    ingest(open_table(X), tmp_path / "t")
    with pytest.warns(StreamKernelWarning, match="too coarse for column 'x0'"):
        append_rows(open_table(np.column_stack([FEW["seconds of an hour"], X[:, 1]])), tmp_path / "t")
