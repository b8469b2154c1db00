"""Columns go by their names: put in the order of the fit where they are the same ones, refused where they are not."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slow_cases import slow_but

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
    ingest,
    open_table,
)
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import DataError, InputChangedError, ShapeError
from streamkernel.factors import nearest_neighbours
from streamkernel.models import RidgeModel

pd = pytest.importorskip("pandas")

NAMES = ["age", "income in €", 'the "rate"', "Age"]
OTHER = [NAMES[position] for position in (2, 0, 3, 1)]
M = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((M, 4)) * [1, 10, 0.1, 3] + [0, 50, 0, 1]
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.05 * RNG.standard_normal(M)
FRAME = pd.DataFrame(X, columns=NAMES)
GIVEN: dict[str, Any] = {"lengthscale": 2.0, "tune": "none", "signal_variance": 2.0}

FITTED: dict[str, Callable[[Any], Any]] = {
    "ridge": lambda rows: KernelRidge(20).fit(rows, Y),
    "classifier": lambda rows: KernelRidgeClassifier(20).fit(rows, Y > 5),
    "gp": lambda rows: GaussianProcessRegressor(20, noise_variance=0.1, **GIVEN).fit(rows, Y),
    "gp-classifier": lambda rows: GaussianProcessClassifier(20, **GIVEN).fit(rows, Y > 5),
    "committee": lambda rows: BayesianCommitteeMachine(80, block_size=100, noise_variance=0.1, **GIVEN).fit(rows, Y),
    "kmp": lambda rows: KernelMatchingPursuit(10).fit(rows, Y),
    "nystroem": lambda rows: Nystroem(15).fit(rows),
    "kpca": lambda rows: KernelPCA(3, basis_size=15).fit(rows),
    "kcca": lambda rows: KernelCCA(2, basis_size=15).fit(rows, np.column_stack([Y, X[:, 0]])),
}  # fmt: skip


def values(estimator: Any, rows: Any) -> np.ndarray:
    return np.asarray((estimator.predict if hasattr(estimator, "predict") else estimator.transform)(rows))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("stores")
    kinds = {"right": FRAME, "other": FRAME[OTHER], "less": FRAME[NAMES[:3]], "more": FRAME.assign(more=1.0)}
    kinds["case"] = FRAME.rename(columns={"age": "AGE"})
    for name, frame in kinds.items():
        ingest(open_table(frame, Y), folder / name, dtype="float64", chunk_rows=64)
    ingest(open_table(X, Y), folder / "unnamed", dtype="float64", chunk_rows=64)
    return {path.name: str(path) for path in folder.iterdir()}


@pytest.mark.filterwarnings("ignore:.*query points:UserWarning")
@pytest.mark.parametrize("kind", slow_but(FITTED.keys() - {"classifier", "gp-classifier", "nystroem"}, FITTED))
def test_the_same_columns_in_another_order(kind: str, stores: dict[str, str], tmp_path: Path) -> None:
    """Of frames and tables, by what was fitted and by what was loaded: the bits of the right order."""
    estimator = FITTED[kind](FRAME)
    estimator.save(tmp_path / "model")
    loaded = type(estimator).load(tmp_path / "model")
    expected, lazily = values(estimator, FRAME), values(estimator, stores["right"])
    for one in (estimator, loaded):
        assert one.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(values(one, FRAME[OTHER]), expected)
        np.testing.assert_array_equal(values(one, stores["other"]), lazily)
        for bad, words in (
            ("case", "missing 'age'; extra 'AGE'"),
            ("less", "3 features, the .* was fitted on 4: missing 'Age'; "),
            ("more", "5 features, the .* was fitted on 4: extra 'more'; "),
        ):
            with pytest.raises(ShapeError, match=words):
                values(one, stores[bad])
        with pytest.raises(ShapeError, match="missing 'age'; extra 'AGE'"):
            values(one, FRAME.rename(columns={"age": "AGE"}))
        with pytest.raises(ShapeError, match="two columns 'age'"):
            values(one, FRAME.rename(columns={"Age": "age"}))


def test_scikit_learns_warnings_are_true(stores: dict[str, str], tmp_path: Path) -> None:
    """Whether the fit had names, not what they are, and whoever fitted or loaded it."""
    x = [f"x{j}" for j in range(4)]
    named = {
        "frame": KernelRidge(20).fit(pd.DataFrame(X, columns=x), Y),
        "store": KernelRidge(20).fit(stores["right"]),
        "again": KernelRidge(20).fit(X, Y).fit(FRAME, Y),
    }
    unnamed = {
        "array": KernelRidge(20).fit(X, Y),
        "store": KernelRidge(20).fit(stores["unnamed"]),
        "again": KernelRidge(20).fit(FRAME, Y).fit(stores["unnamed"]),
        "numbers": KernelRidge(20).fit(pd.DataFrame(X), Y),
    }
    for fits, has in ((named, True), (unnamed, False)):
        for name, estimator in fits.items():
            estimator.save(tmp_path / f"{name}{has}")
            for one in (estimator, KernelRidge.load(tmp_path / f"{name}{has}")):
                assert hasattr(one, "feature_names_in_") == has
                if has:
                    for rows in (X, stores["unnamed"]):
                        with pytest.warns(UserWarning, match="X does not have valid feature names, but KernelRidge"):
                            values(one, rows)
                else:
                    values(one, X), values(one, stores["unnamed"])
                    for rows in (FRAME, stores["right"]):
                        with pytest.warns(UserWarning, match="X has feature names, but KernelRidge was fitted without"):
                            values(one, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values(named["frame"], pd.DataFrame(X, columns=x)[x[::-1]])
        values(named["store"], stores["other"])


def test_statistics_and_scaler_keep_to_their_columns(stores: dict[str, str]) -> None:
    table = open_table(stores["right"])
    turned = open_table(stores["other"]).reordered([OTHER.index(name) for name in NAMES])
    assert turned.columns == table.columns
    np.testing.assert_array_equal(turned.read(10, 200).X, table.read(10, 200).X)
    np.testing.assert_array_equal(turned.statistics.X.mean, table.statistics.X.mean)
    assert turned.digest(0, 64) == table.digest(0, 64), "what rows are known by is in this order"
    assert turned.spans(50) == table.spans(50)


def test_updates_know_rows_in_any_order(stores: dict[str, str]) -> None:
    half = KernelRidge(20).fit(open_table(stores["right"]).slice(0, 192))
    expected = KernelRidge(20).fit(open_table(stores["right"]).slice(0, 192)).update(stores["right"])
    half.update(stores["other"])
    assert half.last_update_.rows_folded == M - 192
    np.testing.assert_array_equal(half.dual_coef_, expected.dual_coef_)
    half.update(FRAME[OTHER], Y)
    assert half.last_update_.rows_folded == 0
    with pytest.raises(ShapeError, match="missing 'age'; extra 'AGE'"):
        half.update(stores["case"])
    changed = FRAME[OTHER].assign(age=1.0)
    changed.loc[:100, "age"] = FRAME["age"]
    with pytest.raises(InputChangedError):
        half.update(changed, Y)


def test_validation_and_queries(stores: dict[str, str]) -> None:
    def pursuit(other: Any) -> Any:
        return KernelMatchingPursuit(30, validation=other).fit(FRAME[:200], Y[:200])

    expected = pursuit((FRAME[200:], Y[200:]))
    for other in ((FRAME[OTHER][200:], Y[200:]), open_table(stores["other"]).slice(200, M)):
        np.testing.assert_array_equal(pursuit(other).dual_coef_, expected.dual_coef_)
    with pytest.raises(ShapeError, match=r"the validation table has other columns than .*missing 'age'; extra 'AGE'"):
        pursuit(stores["case"])

    def committee(queries: Any) -> Any:
        machine = BayesianCommitteeMachine(80, block_size=100, noise_variance=0.1, queries=queries, **GIVEN)
        return machine.fit(FRAME, Y)

    machine = committee(FRAME[:5])
    assert machine.model_.digest == committee(FRAME[OTHER][:5]).model_.digest == committee(X[:5]).model_.digest
    with pytest.raises(ShapeError, match=r"the table of queries has other columns than .*missing 'age'; extra 'AGE'"):
        committee(FRAME[:5].rename(columns={"age": "AGE"}))


def test_factors_and_neighbours(stores: dict[str, str], tmp_path: Path) -> None:
    factor = factorize(stores["right"], tmp_path / "factor", n_components=15)
    session = Session(ThreadExecutor(1))
    rows, turned = factor.rows_of(open_table(stores["right"])), factor.rows_of(open_table(stores["other"]))
    np.testing.assert_array_equal(turned.to_dask().compute(), rows.to_dask().compute())
    found = nearest_neighbours(rows, FRAME[:5], 3, session)
    np.testing.assert_array_equal(nearest_neighbours(turned, FRAME[OTHER][:5], 3, session).rows, found.rows)
    with pytest.raises(ShapeError, match="missing 'age'; extra 'AGE'"):
        factor.rows_of(open_table(stores["case"]))
    with pytest.raises(ShapeError, match="missing 'age'; extra 'AGE'"):
        nearest_neighbours(rows, FRAME[:5].rename(columns={"age": "AGE"}), 3, session)


def test_both_views_of_canonical_correlations(stores: dict[str, str], tmp_path: Path) -> None:
    second = pd.DataFrame({"u": Y, "v": X[:, 0] ** 2, "w": X[:, 2]})
    for first, other in ((FRAME, FRAME[OTHER]), (stores["right"], stores["other"])):
        KernelCCA(2, basis_size=15).fit(first, second).save(tmp_path / "cca", overwrite=True)
        cca = KernelCCA.load(tmp_path / "cca")
        expected = cca.canonical_variates(first, second)
        for one, two in zip(cca.canonical_variates(other, second[["w", "u", "v"]]), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
        with pytest.raises(ShapeError, match=r"second view has other columns than .*missing 'u'; extra 'U'"):
            cca.canonical_variates(first, second.rename(columns={"u": "U"}))
    groups = KernelCCA(1, basis_size=15, view_columns=(["age", "Age"], NAMES[1:3])).fit(FRAME)
    for one, two in zip(groups.canonical_variates(FRAME[OTHER]), groups.canonical_variates(FRAME), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_table_that_is_sent_to_workers_carries_its_order(stores: dict[str, str]) -> None:
    model: RidgeModel = KernelRidge(20).fit(FRAME, Y).model_

    def scores(store: str) -> Any:
        table = pickle.loads(pickle.dumps(model.prepare(model.prepare_targets(open_table(stores[store])))))
        return Session(ThreadExecutor(2)).sweep(model.scores(), table, "evaluate")

    assert scores("other") == scores("right")


@pytest.mark.parametrize("source", ["frame", "csv", "parquet", "xarray"])
def test_names_that_are_there_twice_are_refused(source: str, tmp_path: Path) -> None:
    if source == "frame":
        given: Any = pd.DataFrame(X, columns=["a", "b", "a", "c"])
        with pytest.raises(DataError, match="'a'"):
            KernelRidge(10).fit(given, Y)
        with pytest.raises(DataError, match="'a'"):
            open_table(given)
        return
    if source == "xarray":
        xr = pytest.importorskip("xarray")
        given = xr.DataArray(X, dims=("row", "column"), coords={"column": ["a", "b", "a", "c"]})
        with pytest.raises(DataError, match="'a'"):
            open_table(given)
        return
    path = tmp_path / f"rows.{source}"
    if source == "csv":
        path.write_text("a,b,a,c\n1,2,3,4\n")
    else:
        pq.write_table(pa.table([pa.array([1.0])] * 4, names=["a", "b", "a", "c"]), path)
    with pytest.raises(DataError, match="'a'"):
        ingest(path, tmp_path / "store")
