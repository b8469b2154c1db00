"""Kernels that see columns by name: the same models as with positions, for every kind of rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
    KernelCCA,
    KernelMatchingPursuit,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    Nystroem,
    factorize,
    ingest,
    open_table,
    plan,
)
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Kernel, Linear, OfColumns, as_kernel, located, sees_names
from streamkernel.table.columns import columns_named

pytestmark = pytest.mark.usefixtures("few_points")

pd = pytest.importorskip("pandas")

M = 240
RNG = np.random.default_rng(0)
NAMES = ["age", "hours, a week [h]", 'the "rate"', "it's"]
X = RNG.standard_normal((M, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3] + 0.05 * RNG.standard_normal(M)
FRAME = pd.DataFrame(X, columns=NAMES)
NAMED = r"""gaussian(columns=[age, "hours, a week [h]"]) + 2*laplacian(columns=['the "rate"', 'it\'s'])"""
PLACED = "gaussian(columns=[0, 1]) + 2*laplacian(columns=[2, 3])"

FITTED: dict[str, Any] = {
    "ridge": lambda kernel, rows: KernelRidge(20, alpha=0.1, kernel=kernel).fit(rows, Y),
    "gp": lambda kernel, rows: GaussianProcessRegressor(8, ard=True, kernel=kernel).fit(rows, Y),
    "committee": lambda kernel, rows: BayesianCommitteeMachine(
        60, block_size=80, noise_variance=0.1, signal_variance=2.0, lengthscale=40.0, tune="none", kernel=kernel
    ).fit(rows, Y),
    "svc": lambda kernel, rows: KernelSVC(20, kernel=kernel).fit(rows, Y > 0),
    "boosting": lambda kernel, rows: KernelBoostingClassifier(3, kernel=kernel).fit(rows, X[:, 0] + X[:, 2] > 0),
    "kmp": lambda kernel, rows: KernelMatchingPursuit(8, kernel=kernel).fit(rows, Y),
    "one-class": lambda kernel, rows: KernelOneClass(20, kernel=kernel).fit(rows),
    "kpca": lambda kernel, rows: KernelPCA(3, basis_size=15, kernel=kernel).fit(rows),
    "nystroem": lambda kernel, rows: Nystroem(15, kernel=kernel).fit(rows),
}


def values(estimator: Any, rows: Any) -> np.ndarray:
    return np.asarray((estimator.predict if hasattr(estimator, "predict") else estimator.transform)(rows))


@pytest.mark.parametrize("kind", FITTED)
def test_the_model_is_that_of_the_positions(kind: str, tmp_path: Path) -> None:
    named, placed = (FITTED[kind](kernel, FRAME) for kernel in (NAMED, PLACED))
    np.testing.assert_array_equal(values(named, FRAME), values(placed, FRAME))
    for name, array in placed.model_.arrays.items():
        np.testing.assert_array_equal(named.model_.arrays[name], array, err_msg=name)
    reordered = FRAME[NAMES[::-1]]
    np.testing.assert_array_equal(values(named, reordered), values(named, FRAME))
    named.save(tmp_path / "m")
    again = type(named).load(tmp_path / "m")
    np.testing.assert_array_equal(values(again, reordered), values(named, FRAME))


def test_a_table_in_another_order_gives_the_same_functions() -> None:
    one = KernelRidge(20, alpha=0.1, rule="uniform", kernel=NAMED).fit(FRAME, Y)
    two = KernelRidge(20, alpha=0.1, rule="uniform", kernel=NAMED).fit(FRAME[NAMES[::-1]], Y)
    np.testing.assert_allclose(one.predict(FRAME), two.predict(FRAME), rtol=1e-9, atol=1e-11)
    assert [two.model_.basis.kernel.left.columns, two.model_.basis.kernel.right.part.columns] == [(3, 2), (1, 0)]


@pytest.mark.parametrize("kernel", ["gaussian(columns=[x0, x2])", OfColumns(Gaussian(), ["x0", 2])])
def test_arrays_have_the_names_of_their_positions(kernel: Any) -> None:
    given = as_kernel("gaussian(columns=[0, 2])") if isinstance(kernel, Kernel) else "gaussian(columns=[0, 2])"
    named, placed = (KernelRidge(15, kernel=each, alpha=0.1).fit(X, Y) for each in (kernel, given))
    assert named.model_.record.kernel == placed.model_.record.kernel
    np.testing.assert_array_equal(named.predict(X), placed.predict(X))


def test_stores_and_their_plans_and_factors(tmp_path: Path) -> None:
    FRAME.assign(y=Y).to_csv(tmp_path / "rows.csv", index=False)
    ingest(tmp_path / "rows.csv", tmp_path / "rows.zarr", target="y", dtype="float64")
    rows = open_table(tmp_path / "rows.zarr")
    named, placed = (KernelRidge(20, kernel=kernel, alpha=0.1) for kernel in (NAMED, PLACED))
    assert plan(named, rows).plan == plan(placed, rows).plan
    np.testing.assert_array_equal(named.fit(rows).predict(rows), placed.fit(rows).predict(rows))
    factors = [
        factorize(rows, tmp_path / f"{k}.factor", n_components=10, kernel=each)
        for k, each in enumerate((NAMED, PLACED))
    ]
    np.testing.assert_array_equal(factors[0].arrays["components"], factors[1].arrays["components"])


def test_each_view_has_its_own_names() -> None:
    views = (["age", "it's"], ["hours, a week [h]", 'the "rate"'])
    kernels = ["gaussian(columns=age) + linear", "gaussian(columns='the \"rate\"')"]
    named = KernelCCA(1, basis_size=10, view_columns=views, kernel=tuple(kernels)).fit(FRAME)
    assert [named.kernels_[0].left.columns, named.kernels_[1].columns] == [(0,), (1,)]
    with pytest.raises(ParameterError, match=r"sees a column 'age', which is not there; give some of 'hours, a week"):
        KernelCCA(1, basis_size=10, view_columns=views, kernel=kernels[0]).fit(FRAME)


def test_a_column_of_the_source_stands_for_all_its_features(tmp_path: Path) -> None:
    jobs = np.array(["baker", "smith", "cook"])[RNG.integers(0, 3, M)]
    source = pd.DataFrame({"age": X[:, 0], "job": jobs, "hours": X[:, 1], "y": Y + (jobs == "cook")})
    ingest(source, tmp_path / "s", target="y", schema="auto", dtype="float64")
    rows = open_table(tmp_path / "s")
    assert rows.columns == ("age", "job=baker", "job=cook", "job=smith", "hours")
    texts = [f"gaussian(columns=[age, hours]) * gaussian(columns={each})" for each in ("job", "'job=*'", "'job*'")]
    models = [KernelRidge(20, kernel=text, alpha=0.1).fit(rows) for text in texts]
    placed = KernelRidge(20, kernel="gaussian(columns=[0, 4]) * gaussian(columns=[1, 2, 3])", alpha=0.1).fit(rows)
    for model in models:
        assert model.model_.record.kernel == placed.model_.record.kernel
    one = KernelRidge(20, kernel="gaussian(columns=['job=cook', age, hours])", alpha=0.1).fit(rows)
    assert one.model_.basis.kernel.columns == (2, 0, 4)


def test_what_a_name_stands_for() -> None:
    names = ["a", "a is missing", "b=1", "b=2", "c*", "cd"]
    schema = {"columns": [
        {"name": "a", "missing": "indicator", "fill": 0.0, "gaps": True},
        {"name": "b", "kind": "category", "categories": ["1", "2"]},
    ]}  # fmt: skip
    assert columns_named("a", names, schema) == (0,)  # the column of this name comes first
    assert columns_named("a*", names, schema) == (0, 1)
    assert columns_named("b", names, schema) == (2, 3)
    assert columns_named("b", names[3:], schema) == (0,)
    assert columns_named("b", names) == ()
    assert columns_named("c*", names) == (4,)
    assert columns_named("*", names) == (0, 1, 2, 3, 4, 5)
    assert columns_named("d*", names) == ()
    assert columns_named("", names) == ()


def test_a_part_of_a_part_has_the_names_of_its_columns() -> None:
    inner = OfColumns(Gaussian(), ["c"]) + OfColumns(Linear(), [0])
    assert located(OfColumns(inner, ["b", "c"]), "abc", columns_named) == OfColumns(
        OfColumns(Gaussian(), (1,)) + OfColumns(Linear(), (0,)), (1, 2)
    )
    placed = OfColumns(Gaussian(), [0, 1]) + Linear()
    assert located(placed, ["a", "b"], columns_named) is placed
    assert not sees_names(placed)


WRONG = {
    "gaussian(columns=[agge])": r"gaussian sees a column 'agge', which is not there; give some of 'age', 'hours,",
    "linear + 2*gaussian(columns='no*')": r"sees a column 'no\*', which is not there",
    "gaussian(columns=[age, 0])": r"sees column 0 \('age'\) twice, the second time by 0; give each once",
    "gaussian(columns=['a*', age])": r"sees column 0 \('age'\) twice, the second time by 'age'",
    "gaussian(columns=[age, age])": r"columns = \['age', 'age'\] have one twice",
    "gaussian(columns=[age, 4])": r"sees column 4, and the rows have 4 features; give columns from 0 to 3",
    'gaussian(columns=[age, "it\'s"], lengthscale=[1, 2, 3])': "3 entries for 2 features",
}


@pytest.mark.parametrize("kernel", WRONG)
def test_wrong_names_are_refused_before_any_work(kernel: str) -> None:
    with pytest.raises(ParameterError, match=WRONG[kernel]):
        KernelRidge(20, kernel=kernel).fit(FRAME, Y)
    with pytest.raises(ParameterError, match=WRONG[kernel]):
        plan(KernelRidge(20, kernel=kernel), open_table(FRAME, Y))


def test_names_need_rows_that_have_some() -> None:
    kernel = OfColumns(Gaussian(), ["age"])
    for use in (lambda: kernel(X), lambda: kernel.diagonal(X), lambda: kernel.check_features(4)):
        with pytest.raises(ParameterError, match=r"sees a column by its name, 'age', and these rows have no names"):
            use()
    with pytest.raises(ParameterError, match=r"there is a metric, whose columns have no names; give their positions"):
        KernelRidge(20, kernel=NAMED, metric=np.eye(4)).fit(FRAME, Y)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert as_kernel(kernel.to_config()) == kernel
