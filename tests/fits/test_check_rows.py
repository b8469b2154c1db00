"""The rows that the report's picture is made of: all that are wanted, and no reason for a fit to fail."""

from __future__ import annotations

from typing import Any

import data_sets
import numpy as np
import pytest
from weighted_rows import weighted_rows

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import StreamKernelWarning
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table

DATA = data_sets.friedman(6000, 5)
# Every target names its row.
ROW = np.arange(6000.0)


def fitted(start: int, stop: int, rows: int = 6000, X: Any = DATA.X, y: Any = ROW) -> RidgeModel:
    whole = open_table(X[:rows], y[:rows])
    settings = RidgeSettings(n_components=10, kernel="gaussian", metric="none", alpha="gcv")
    return fit_ridge(whole.slice(start, stop), settings, Session(ThreadExecutor(1)), whole=whole)


@pytest.mark.parametrize(
    ("start", "stop", "rows", "first", "last", "wanted"),
    [
        (0, 3001, 4000, 3001, 4000, 999),  # all of a number that eight runs do not share evenly
        (0, 3000, 6000, 3000, 6000, 2000),
        (0, 3987, 5990, 3987, 5990, 2000),  # a few more than are wanted
        (0, 97, 100, 97, 100, 3),
        (40, 3000, 3001, 0, 40, 40),  # the longer run of the two
        (0, 2001, 2001, 0, 2001, 2000),
    ],
)
def test_as_many_rows_as_are_wanted_spread_evenly(
    start: int, stop: int, rows: int, first: int, last: int, wanted: int
) -> None:
    model = fitted(start, stop, rows)
    kind = "training" if stop - start == rows else "held-out"
    assert model.config["check"] == {"kind": kind, "rows": wanted}
    shown = model.arrays["check_true"][:, 0].astype(int)
    assert len(shown) == wanted
    assert (np.diff(shown) > 0).all()
    assert (shown[0], shown[-1]) == (first, last - 1)
    # At most eight runs, and none of the gaps between them is larger than its share.
    gaps = np.diff(shown)[np.diff(shown) > 1] - 1
    assert len(gaps) <= 7
    assert (gaps <= (last - first - wanted) // 7 + 1).all()


def test_predictions_are_the_models() -> None:
    model = fitted(0, 4000)
    shown = model.arrays["check_true"][:, 0].astype(int)
    table = model.prepare(open_table(DATA.X))
    expected = model.predictions().values(table.read(0, 6000).X)[shown]
    # BLAS may round a product of other rows differently.
    np.testing.assert_allclose(model.arrays["check_predicted"], expected, rtol=1e-13)


@pytest.mark.parametrize(("where", "bad"), [("X", np.nan), ("X", np.inf), ("X", 1e200), ("y", np.nan), ("y", -np.inf)])
def test_bad_rows_held_out_do_not_fail_the_fit(where: str, bad: float) -> None:
    """Nobody asked for their predictions yet; who does is told."""
    X, y = DATA.X.copy(), ROW.copy()
    good = fitted(0, 5000)
    if where == "X":
        X[5500, 1] = bad
    else:
        y[5500] = bad
    with pytest.warns(StreamKernelWarning, match=r"the check is on rows of the fit.*row 5500"):
        model = fitted(0, 5000, X=X, y=y)
    assert model.config["check"] == {"kind": "training", "rows": 2000}
    assert (model.arrays["check_true"] < 5000).all()
    np.testing.assert_array_equal(model.arrays["dual_coef"], good.arrays["dual_coef"])


def test_rows_of_weight_0_are_not_in_the_picture() -> None:
    rows = weighted_rows()
    table = rows.weighted
    model = fit_ridge(table, RidgeSettings(n_components=8, lengthscale=1.5, alpha=0.1), Session(ThreadExecutor(1)))
    assert model.record.check is not None
    assert model.record.check.rows == len(rows.numbers)
    np.testing.assert_array_equal(model.arrays["check_true"][:, 0], rows.y[rows.numbers])
