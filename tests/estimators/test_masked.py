"""What is masked is missing: nowhere is the number under a mask taken for data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    Nystroem,
)
from streamkernel.errors import NonFiniteDataError
from streamkernel.kernels import Gaussian
from streamkernel.table import open_table

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] + 0.1 * rng.standard_normal(60)
MASK = np.zeros((60, 3), bool)
MASK[7, 1] = True
HIDDEN = np.ma.MaskedArray(np.where(MASK, -999.0, X), MASK)
WEIGHTS = np.ma.MaskedArray(np.ones(60), MASK[:, 1])

CALLS: dict[str, Callable[[], Any]] = {
    "X of ridge": lambda: KernelRidge(5).fit(HIDDEN, y),
    "X of rows": lambda: KernelRidge(5).fit(list(HIDDEN), y),
    "y of ridge": lambda: KernelRidge(5).fit(X, HIDDEN[:, 1]),
    "targets": lambda: KernelRidge(5).fit(X, HIDDEN),
    "a number in a list": lambda: KernelRidge(5).fit(X, [np.ma.masked, *y[1:]]),
    "predict": lambda: KernelRidge(5).fit(X, y).predict(HIDDEN),
    "update": lambda: KernelRidge(5).fit(X, y).update(HIDDEN, y),
    "gp": lambda: GaussianProcessRegressor(5, tune="none").fit(HIDDEN, y),
    "queries": lambda: BayesianCommitteeMachine(5, tune="none", queries=HIDDEN).fit(X, y),
    "pursuit": lambda: KernelMatchingPursuit(5, validation=(HIDDEN, y)).fit(X, y),
    "pca": lambda: KernelPCA(2).fit(HIDDEN),
    "nystroem": lambda: Nystroem(5).fit(X).transform(HIDDEN),
    "cca": lambda: KernelCCA(1).fit(X, HIDDEN),
    "weights": lambda: open_table(X, y, weights=WEIGHTS),
    "kernel": lambda: Gaussian(1.0)(HIDDEN),
    "dask": lambda: KernelRidge(5).fit(da.from_array(HIDDEN, chunks=(20, 3), asarray=False), da.from_array(y)),
    "xarray": lambda: KernelRidge(5).fit(xr.DataArray(HIDDEN, dims=("row", "column")), y),
    "pandas": lambda: KernelRidge(5).fit(pd.DataFrame(X).astype("Float64").mask(MASK), y),
    "pandas y": lambda: KernelRidge(5).fit(X, pd.Series(y).astype("Float64").mask(MASK[:, 1])),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_masked_values_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(NonFiniteDataError, match=r"masked|NaN"):
        call()


def test_the_first_place_is_named() -> None:
    with pytest.raises(NonFiniteDataError, match=r"X is masked in 1 values.* row 7, column 1"):
        KernelRidge(5).fit(HIDDEN, y)


def test_a_mask_that_masks_nothing_is_none() -> None:
    open_ = np.ma.MaskedArray(X, np.zeros_like(MASK))
    same = KernelRidge(5).fit(open_, np.ma.MaskedArray(y))
    np.testing.assert_array_equal(same.predict(open_), KernelRidge(5).fit(X, y).predict(X))
