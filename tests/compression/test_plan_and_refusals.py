"""The plan of a compression, and what is refused before rows are read."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from compressed_rows import WAYS, problem
from slow_cases import slow_but

from streamkernel import compress, open_table
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import (
    DTypeError,
    NonFiniteDataError,
    ParameterError,
    ResourceLimitError,
)
from streamkernel.fits.compression.compress import make_compressed
from streamkernel.fits.compression.compression_plan import plan_of_compression
from streamkernel.settings.compression import CompressionSettings


@pytest.mark.parametrize("way", slow_but(WAYS.keys() - {"joint", "squash, linear", "squash, kernel"}, WAYS))
def test_the_plan_knows_every_sweep_and_does_not_grow_with_the_rows(way: str) -> None:
    X, y, _ = problem()
    settings = CompressionSettings(**{"size": 24, **WAYS[way]})
    table = open_table(da.from_array(X, chunks=(97, -1)), y, classify=True)
    n, session = settings.components(table), Session(ThreadExecutor(1))
    plan = plan_of_compression(table, settings, Machine(0, 1), n)
    make_compressed(table, settings, session)
    assert {each.name for each in session.records} <= {step.name for step in plan.steps}
    assert len(session.records) <= plan.sweeps
    few, many = (
        plan_of_compression(
            open_table(da.zeros((m, 20), chunks=(65_536, -1), dtype=np.float32), da.zeros(m, chunks=65_536)),
            CompressionSettings(**{"size": 1000, "n_components": 300 if settings.uses_kernel else None, **WAYS[way]}),
            Machine(0, 2),
            300,
        )
        for m in (250_000, 4_000_000)
    )
    assert many.memory_bytes < 1.1 * few.memory_bytes


def test_a_plan_beyond_the_limit_is_refused_before_rows_are_read() -> None:
    def unread(*_: Any) -> Any:
        raise AssertionError("rows were read")

    X = da.zeros((10_000, 4), chunks=(1000, -1)).map_blocks(unread, dtype=np.float64, meta=np.zeros((0, 0)))
    with pytest.raises(ResourceLimitError, match=r"projected memory .* exceeds allowed memory \(1 MB\)"):
        compress(X, np.zeros(10_000), size=100, memory_limit="1MB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be a whole number > 0, not 0"),
        ({"size": 601}, "size is 601, more than the 600 rows; give at most 600"),
        ({"size": 2}, "size is 2, and the rows have 3 classes; give at least a row for each"),
        ({"method": "distil"}, "method must be one of subsample, precluster, squash, thinning, not 'distil'"),
        ({"functions": "none"}, "functions must be one of fitted, kernel, linear, not 'none'"),
        ({"loss": "squared"}, "loss must be one of logistic, hinge, not 'squared'"),
        ({"sweeps": -1}, "sweeps must be a whole number >= 0, not -1"),
        ({"oversampling": 1}, "oversampling must be a whole number >= 2, not 1"),
        ({"target_weight": -1.0}, "target_weight must be finite and >= 0, not -1.0"),
        (
            {"method": "precluster", "n_components": 9},
            "n_components is 9, and method='precluster' uses no functions of a kernel; leave it out",
        ),
        ({"random_state": -1}, "random_state must be an integer >= 0, not -1"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    X, y, _ = problem()
    with pytest.raises(ParameterError) as caught:
        compress(X, y, **{"size": 20, **options})
    assert str(caught.value) == message


def test_bad_rows_are_refused() -> None:
    X, y, w = problem()
    with pytest.raises(ParameterError, match="squash' compares what rows say about their targets, and the rows have"):
        compress(X, size=20)
    with pytest.raises(ParameterError, match=rf"more than the {(w > 0).sum()} rows of weight > 0"):
        compress(X, y, size=600, sample_weight=w)
    X = X.copy()
    X[7, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match="row 7"):
        compress(X, y, size=20, method="subsample")


def test_the_default_size_is_a_fiftieth_of_the_rows() -> None:
    X, y, w = problem()
    assert len(compress(X, y, method="subsample")) == 12
    assert len(compress(X, y, method="subsample", sample_weight=w)) == -(-(w > 0).sum() // 50)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
@pytest.mark.parametrize(
    ("column", "values"),
    [("day", np.arange(60).astype("datetime64[D]")), ("kind", ["a", "b"] * 30)],
    ids=["dates", "text"],
)
def test_a_column_of_the_targets_that_is_no_number_is_named(make: Any, column: str, values: Any) -> None:
    y = make({"size": np.arange(60.0), column: values})
    with pytest.raises(DTypeError, match=f"column '{column}' holds .*; leave it out, or give numbers"):
        compress(np.arange(60.0)[:, None], y)
    if column == "day":
        with pytest.raises(DTypeError, match=f"column '{column}' holds .*; leave it out, or give numbers"):
            open_table(np.arange(60.0)[:, None], y, classify=True)
