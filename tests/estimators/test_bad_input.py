"""RELIABILITY's bad-input table, as far as it concerns tables, kernels and ridge: typed errors, one line, in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from streamkernel import KernelRidge, KernelRidgeClassifier, ingest
from streamkernel.errors import (
    DataError,
    DegenerateBandwidthError,
    DTypeError,
    EmptyDataError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ResourceLimitError,
    ShapeError,
    ShapeMismatchError,
    SingularKernelError,
    StreamKernelError,
    StreamKernelWarning,
)
from streamkernel.table import open_table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
y = np.sin(X[:, 0]) + X[:, 1]
NAN, INF = float("nan"), float("inf")


class Untouchable:
    """Rows that fail the test when anything is asked of them."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the rows before the parameters were checked")


BAD: dict[str, list[Any]] = {
    "n_components": [0, -1, 2.5, "10", True, NAN, np.float64(3)],
    "alpha": [-1.0, -1e-300, NAN, INF, -INF, "small", True, [1.0]],
    "lengthscale": [0.0, -1.0, NAN, INF, True, "long", [1.0, -1.0, 1.0], [1.0, NAN, 1.0], []],
    "gamma": [0.0, -1.0, NAN, INF, "auto", True],
    "tol": [-0.1, 1.1, NAN, "tight", True],
    "kernel": ["gauss", 3, ""],
    "rule": ["magic", 5],
    "objective": ["speed", -0.5, 2.0, NAN, True],
    "scale": ["minmax", None, 1],
    "random_state": [-1, 1.5, "seed", True],
    "memory_limit": ["lots", -5, "0GB", "4 parsecs"],
    "rule_options": [{"pool": "deep"}],
    "kernel_params": [{"shape": 3.0, "colour": "red"}],
}


# Both have the same settings.
@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        *((KernelRidge, name, value) for name, values in BAD.items() for value in values),
        *((KernelRidgeClassifier, name, values[0]) for name, values in BAD.items()),
    ],
)
def test_bad_parameters_before_any_io(estimator: Any, name: str, value: Any) -> None:
    options = {"rule": "sgma", name: value} if name == "rule_options" else {name: value}
    with pytest.raises(ParameterError) as caught:
        estimator(**options).fit(Untouchable(), Untouchable())
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) > 15


def test_constructors_check_nothing_and_keep_what_they_are_given() -> None:
    assert KernelRidge(-3, alpha="x").get_params()["n_components"] == -3


def test_lengthscales_for_another_number_of_features() -> None:
    for rows in (X, da.from_array(X, chunks=(50, 3))):
        with pytest.raises(StreamKernelError, match=r"2.*3|3.*2"):
            KernelRidge(10, lengthscale=[1.0, 2.0]).fit(rows, y)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["X", "y"])
def test_values_that_are_not_finite(where: str, bad: float) -> None:
    rows, targets = X.copy(), y.copy()
    (rows if where == "X" else targets)[(57, 1) if where == "X" else 57] = bad
    with pytest.raises(NonFiniteDataError, match=r"(?s)57") as caught:
        KernelRidge(10).fit(da.from_array(rows, chunks=(40, 3)), da.from_array(targets, chunks=40))
    assert where in str(caught.value)
    with pytest.raises(NonFiniteDataError):
        KernelRidge(10).fit(open_table(rows, targets))
    with pytest.raises(NonFiniteDataError, match=r"row 57, column '(x1|y)', in the [Xy] array; .*remove those rows"):
        KernelRidge(10).fit(rows, targets)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_rows_in_memory_name_their_columns(bad: float) -> None:
    """Ours, a ValueError as scikit-learn's is, but it says where; also when predicting, and for class labels."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    broken = frame.copy()
    broken.iloc[31, 2] = bad
    fitted = KernelRidge(10).fit(frame, y)
    for work in (lambda: KernelRidge(10).fit(broken, y), lambda: fitted.predict(broken)):
        with pytest.raises(NonFiniteDataError, match=r"X contains .*first in row 31, column 'c', in the X array"):
            work()
    several = np.column_stack([y, y])
    several[7, 1] = bad
    with pytest.raises(NonFiniteDataError, match=r"y contains .*first in row 7, column 'y1'"):
        KernelRidge(10).fit(X, several)
    with pytest.raises(NonFiniteDataError, match=r"y contains .*first in row 3, column 'y'"):
        KernelRidgeClassifier(10).fit(X, np.where(np.arange(200) == 3, bad, y > 0))
    assert issubclass(NonFiniteDataError, ValueError)


def test_finite_values_whose_sum_overflows_are_not_called_infinite() -> None:
    with pytest.raises(NumericRangeError, match="squared norm overflows"):
        KernelRidge(10).fit(X, y).predict(np.full((200, 3), 1e308))


def test_squared_norms_that_overflow() -> None:
    for values in (X * 1e160, (X * 1e25).astype(np.float32)):
        with pytest.raises(NumericRangeError, match=r"in column 'x\d'.*divide such columns"):
            KernelRidge(10, scale="none").fit(values, y)


def test_shapes() -> None:
    with pytest.raises(ShapeMismatchError, match=r"200.*199"):
        KernelRidge(10).fit(da.from_array(X), da.from_array(y[:199]))
    with pytest.raises(ValueError, match=r"200.*199"):
        KernelRidge(10).fit(X, y[:199])
    with pytest.raises(ShapeError):
        KernelRidge(10).fit(da.zeros((5, 4, 3)), da.zeros(5))
    for shape in ((0, 3), (5, 0)):
        with pytest.raises(EmptyDataError):
            KernelRidge(10).fit(da.zeros(shape), da.zeros(shape[0]))


def test_dtypes() -> None:
    with pytest.raises(DTypeError, match="complex"):
        KernelRidge(10).fit(da.from_array(X + 1j), da.from_array(y))


@pytest.mark.filterwarnings("error")
def test_complex_numbers_are_refused_in_one_line() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] + 1j})
    for rows, targets, name in ((X + 1j, y, "X"), (frame, y, "X"), (X, y + 1j, "y"), (frame[["a"]], y * 1j, "y")):
        for machine in (KernelRidge(10), KernelRidgeClassifier(10)):
            with pytest.raises(DataError, match=f"^Complex data not supported: {name} holds complex numbers; give"):
                machine.fit(rows, targets)
    with pytest.raises(DataError, match="X holds complex"):
        KernelRidge(10).fit(frame.abs(), y).predict(frame)


def test_targets_are_needed() -> None:
    with pytest.raises(ParameterError, match="no targets"):
        KernelRidge(10).fit(da.from_array(X))


def test_a_constant_column_is_warned_of_and_works() -> None:
    wide = np.column_stack([X, np.full(200, 7.1)])
    with pytest.warns(StreamKernelWarning, match="1 of 4 columns are constant.*x3"):
        model = KernelRidge(30).fit(wide, y)
    np.testing.assert_allclose(model.predict(wide), KernelRidge(30).fit(X, y).predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*columns are constant")
def test_equal_rows_have_no_median_lengthscale() -> None:
    rows = np.ones((50, 3))
    with pytest.raises(DegenerateBandwidthError, match="give a lengthscale"):
        KernelRidge(5).fit(rows, y[:50])
    with pytest.warns(StreamKernelWarning, match="only 1 of 5"):
        model = KernelRidge(5, lengthscale=1.0).fit(rows, y[:50])
    np.testing.assert_allclose(model.predict(rows), y[:50].mean(), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:about 20 of 100 rows are distinct")
def test_duplicate_rows_are_reported() -> None:
    rows, targets = np.repeat(X[:20], 5, axis=0), np.repeat(y[:20], 5)
    with pytest.warns(StreamKernelWarning, match="only 20 of 60 basis functions are linearly independent"):
        model = KernelRidge(60).fit(rows, targets)
    assert len(model.components_) == 20
    assert model.score(rows, targets) > 0.9
    with pytest.raises(SingularKernelError, match=r"duplicate rows.*give alpha > 0"):
        KernelRidge(60, alpha=0.0).fit(rows, targets)


def test_alpha_zero_where_the_kernel_is_regular() -> None:
    model = KernelRidge(20, alpha=0.0, kernel="laplacian").fit(X, y)
    assert model.alpha_ == 0.0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("constant", [0.0, 3.0, -1e8])
def test_constant_targets_work(constant: float) -> None:
    model = KernelRidge(20).fit(X, np.full(200, constant))
    np.testing.assert_allclose(model.predict(X), constant, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_very_few_rows(m: int) -> None:
    model = KernelRidge(1, lengthscale=1.0, scale="none").fit(X[:m], y[:m])
    assert np.isfinite(model.predict(X)).all()


def test_a_limit_below_the_plan_refuses_before_reading() -> None:
    def explode(block: Any) -> Any:
        raise AssertionError("rows were read")

    rows = da.from_array(X, chunks=(50, 3)).map_blocks(explode, meta=np.empty((0, 0)))
    with pytest.raises(ResourceLimitError, match=r"projected memory .* exceeds allowed memory \(10 MB\)"):
        KernelRidge(10, memory_limit="10MB").fit(rows, da.from_array(y, chunks=50))


def test_missing_stores_are_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KernelRidge(10).fit(str(tmp_path / "nothing.zarr"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_columns_whose_squares_vanish_or_overflow_are_standardised(tmp_path: Path, size: float) -> None:
    """Of a table in float64, whose statistics are stored."""
    rows = X.copy()
    rows[:, 1] *= size
    for place, values in (("plain", X), ("odd", rows)):
        np.savez(tmp_path / f"{place}.npz", X=values, y=y)
        ingest(tmp_path / f"{place}.npz", tmp_path / place, dtype="float64")
    fixed = {"kernel": "gaussian", "metric": "none", "alpha": 0.1, "lengthscale": 2.0}
    plain, odd = (
        KernelRidge(10, **fixed).fit(table).score(table)
        for table in (open_table(tmp_path / place) for place in ("plain", "odd"))
    )
    assert odd == pytest.approx(plain, rel=1e-9)
