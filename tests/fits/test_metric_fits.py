"""Fits in a metric: given, learned, and not learned where the plain kernel is as good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from memory import measured
from problems import cut_session

from streamkernel import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
    open_table,
)
from streamkernel.cli.wording import in_flags
from streamkernel.errors import DegenerateBandwidthError, ParameterError
from streamkernel.fits import fit_ridge
from streamkernel.service.http_errors import in_json
from streamkernel.settings import RidgeSettings

# In a metric of few directions smooth functions have few degrees of freedom.
pytestmark = pytest.mark.filterwarnings("ignore:only .* basis functions are linearly independent")

M, P = 1200, 6


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of which only two directions matter, one of them a combination of columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, P)) * [1.0, 1.0, 2.0, 1.0, 5.0, 1.0] + 3.0
    Z = (X - 3.0) / [1.0, 1.0, 2.0, 1.0, 5.0, 1.0]
    return X, np.sin(2.0 * Z[:, 0] + Z[:, 1]) + 0.5 * Z[:, 2] ** 2 + 0.05 * rng.normal(size=M)


@pytest.fixture(scope="module")
def learned(rows: tuple[np.ndarray, np.ndarray]) -> KernelRidge:
    """Of all rows in memory; not to be changed."""
    return KernelRidge(40, metric="learned").fit(*rows)


def _error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std())


ESTIMATORS: dict[str, Any] = {
    "ridge": KernelRidge,
    "gp": GaussianProcessRegressor,
    "kmp": KernelMatchingPursuit,
}


@pytest.mark.parametrize("name", ["ridge", pytest.param("gp", marks=pytest.mark.slow), "kmp"])
def test_a_learned_metric_lowers_the_error(name: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    plain, learned = (ESTIMATORS[name](60, metric=metric).fit(X[:900], y[:900]) for metric in ("none", "learned"))
    assert _error(learned, X[900:], y[900:]) < 0.4 * _error(plain, X[900:], y[900:])
    choice = learned.model_.record.metric_choice
    assert choice.rounds[0].form == "none"
    metric = learned.model_.metric
    assert metric is not None
    best = choice.rounds[choice.best]
    assert best.error <= min(each.error for each in choice.rounds) / 0.95
    assert best.columns == metric.shape[1]
    # The two directions that matter have the largest weights.
    weights = np.linalg.norm(metric, axis=1)
    assert set(np.argsort(-weights)[:3]) == {0, 1, 2}


@pytest.mark.parametrize(
    "classifier", [KernelRidgeClassifier, pytest.param(GaussianProcessClassifier, marks=pytest.mark.slow)]
)
def test_classes_are_learned_from(classifier: Any, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    labels = np.where(y > 0.5, "high", "low")
    plain, learned = (classifier(60, metric=metric).fit(X[:900], labels[:900]) for metric in ("none", "learned"))
    assert learned.score(X[900:], labels[900:]) > plain.score(X[900:], labels[900:])


def test_a_given_metric_is_the_same_as_mapped_rows(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    T = np.random.default_rng(1).normal(size=(P, 3))
    mapped = (X - X.mean(axis=0)) / X.std(axis=0) @ T
    one = KernelRidge(50, metric=T, lengthscale=1.0, alpha=1e-3, rule="uniform").fit(X, y)
    other = KernelRidge(50, scale="none", lengthscale=1.0, alpha=1e-3, rule="uniform").fit(mapped, y)
    np.testing.assert_array_equal(one.component_indices_, other.component_indices_)
    np.testing.assert_allclose(one.predict(X), other.predict(mapped), rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_the_promise_is_kept_for_wide_and_narrow_metrics(tmp_path: Path) -> None:
    metrics = (np.random.default_rng(1).normal(size=(8, width)).round(2).tolist() for width in (2, 800))
    found = [
        measured(tmp_path / str(i), "ridge", 40_000, n_components=100, rule="uniform", metric=metric)
        for i, metric in enumerate(metrics)
    ]
    (narrow, narrow_peak), (wide, wide_peak) = found
    assert narrow_peak < narrow
    # What a process holds at its start hides much: what the mapped rows add is planned, too.
    assert 30e6 < wide_peak - narrow_peak < wide - narrow


def test_points_are_the_rows_themselves(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    T = np.eye(P)[:, :3] + 0.1
    model = KernelRidge(30, metric=T).fit(X, y)
    assert model.components_.shape == (30, P)
    np.testing.assert_allclose(model.components_, X[model.component_indices_], rtol=1e-12, atol=1e-12)
    # Centres of k-means are no rows: any point with the same image stands for one.
    centres = KernelRidge(20, metric=T, rule="kmeans").fit(X, y)
    images = (centres.components_ - X.mean(axis=0)) / X.std(axis=0) @ T
    np.testing.assert_allclose(images, centres.model_.arrays["components"], rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore:the basis is stale")  # the new rows of a basis with a tiny residual
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_a_model_with_a_metric_is_saved_and_updated(
    dtype: type, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X: np.ndarray = rows[0].astype(dtype)
    y = rows[1]
    model = KernelRidge(50, metric="learned").fit(X[:900], y[:900])
    model.save(tmp_path / "model")
    again = KernelRidge.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.update(X, y)
    grown = again.model_
    assert grown.record.totals.rows == M
    np.testing.assert_array_equal(grown.arrays["metric"], model.model_.arrays["metric"])
    np.testing.assert_array_equal(again.components_, model.components_)


def test_growth_adds_points_as_stored(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    X = np.concatenate([X[:900], X[900:] + 40.0])  # far from all functions
    model = KernelRidge(40, metric="learned").fit(X[:900], y[:900])
    with pytest.warns(UserWarning, match="functions were added"):
        model.update(X, y, grow=10)
    added = model.component_indices_[40:]
    assert len(added) > 0
    np.testing.assert_allclose(model.components_, X[model.component_indices_], rtol=1e-9)


def test_chunks_of_one_task_change_no_bit(rows: tuple[np.ndarray, np.ndarray], learned: KernelRidge) -> None:
    X, y = rows
    other = KernelRidge(40, metric="learned").fit(da.from_array(X, chunks=(100, P)), y)  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(np.asarray(other.predict(X)), learned.predict(X))


@pytest.mark.slow  # test_scaling_fits.py has it with ranks of the values
def test_threads_change_no_bit(rows: tuple[np.ndarray, np.ndarray]) -> None:
    table, settings = open_table(*rows), RidgeSettings(40, metric="learned")
    # A table of this size is one task: to have several, four spans.
    sessions = cut_session((333,), 333), cut_session((333,), 333, 3, backwards=True)
    one, other = (fit_ridge(table, settings, session) for session in sessions)
    assert one.digest == other.digest


def test_the_kernel_is_chosen_on_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(M, 2))
    smooth, rough = np.cos(3.0 * X[:, 0] + X[:, 1]), np.abs(X).sum(axis=1) + 2.0 * (X[:, 0] > 0.2)
    chosen = [KernelRidge(60, kernel="auto").fit(X, y).model_.record for y in (smooth, rough)]
    assert [record.kernel["kernel"] for record in chosen] == ["gaussian", "laplacian"]
    for record in chosen:
        choice = record.metric_choice
        assert choice is not None
        assert {each.form for each in choice.rounds} == {"none"}
        # Kernels are compared each at the lengthscale that it was left at: the least error of all may be chance.
        best = choice.rounds[choice.best].error
        assert best <= choice.rounds[0].error
        assert best <= 1.5 * min(each.error for each in choice.rounds)
        assert record.lengthscale == choice.rounds[choice.best].lengthscale
    T = np.array([[1.0], [0.0]])
    given = KernelRidge(30, kernel="auto", metric=T).fit(X, smooth).model_
    np.testing.assert_array_equal(given.arrays["metric"], T)
    # The metric was given, and the search chose the kernel only.
    assert given.metric_fields == {"form": "given", "columns": 1, "held_out_error": None, "plain_error": None}


def test_views_have_no_targets_to_choose_a_kernel_by(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ParameterError, match="'auto' is chosen by how well targets are predicted"):
        KernelCCA(kernel="auto").fit(rows[0], rows[0])


def test_noise_has_no_metric(rows: tuple[np.ndarray, np.ndarray]) -> None:
    y = np.random.default_rng(5).normal(size=M)
    model = KernelRidge(40, metric="learned").fit(rows[0], y)
    record = model.model_.record.metric_choice
    assert record is not None
    # The choice is honest: on held-out rows no metric explains noise.
    assert record.rounds[record.best].error > 0.8


def test_constant_targets_have_no_gradient(rows: tuple[np.ndarray, np.ndarray]) -> None:
    model = KernelRidge(20, metric="learned").fit(rows[0], np.full(M, 3.0))
    np.testing.assert_allclose(model.predict(rows[0][:5]), 3.0)


@pytest.mark.parametrize("other", [1.0, 5.0])
def test_rows_of_two_values_have_a_distance_wherever_folds_put_them(other: float) -> None:
    """Equal rows share a fold: the rows that are left to learn from may all be equal."""
    X, y = np.zeros((100, 3)), np.random.default_rng(0).normal(size=100)
    X[::2] = other
    assert np.isfinite(KernelRidge(2, metric="learned").fit(X, y).predict(X)).all()


@pytest.mark.filterwarnings("ignore:3 of 3 columns are constant")
def test_equal_rows_are_told_a_remedy_that_works(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X = np.zeros((50, 3))
    with pytest.raises(DegenerateBandwidthError, match="as a number, metric='none' and a named kernel"):
        KernelRidge(1, metric="learned").fit(X, rows[1][:50])
    KernelRidge(1, metric="none", lengthscale=1.0).fit(X, rows[1][:50])


def test_copies_of_rows_count_once(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    one = KernelRidge(60, metric="learned").fit(X, y)
    with pytest.warns(UserWarning, match="distinct"):
        many = KernelRidge(60, metric="learned").fit(np.repeat(X, 20, axis=0), np.repeat(y, 20))
    held = np.random.default_rng(9).normal(size=(300, P)) * [1.0, 1.0, 2.0, 1.0, 5.0, 1.0] + 3.0
    Z = (held - 3.0) / [1.0, 1.0, 2.0, 1.0, 5.0, 1.0]
    truth = np.sin(2.0 * Z[:, 0] + Z[:, 1]) + 0.5 * Z[:, 2] ** 2
    # Other rows are sampled, so the metrics differ; without one the error is .67 to .69.
    assert max(_error(one, held, truth), _error(many, held, truth)) < 0.3


def test_copies_far_from_the_origin_without_scaling(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    far, T = np.repeat(X[:300] + 1e5, 4, axis=0), np.eye(P)[:, :3]
    with pytest.warns(UserWarning, match="distinct"):
        model = KernelRidge(30, metric=T, scale="none").fit(far, np.repeat(y[:300], 4))
    assert model.model_.record.independent == pytest.approx(0.25, rel=0.05)
    assert np.isfinite(model.predict(far)).all()


def test_a_rank_limits_the_columns(rows: tuple[np.ndarray, np.ndarray]) -> None:
    model = KernelRidge(40, metric="learned", metric_rank=2).fit(*rows)
    assert model.model_.arrays["metric"].shape == (P, 2)
    assert model.model_.arrays["components"].shape == (40, 2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metric": "learnt"}, "'none', 'learned', 'diagonal'"),
        ({"metric": np.ones((4, 2))}, "4 rows and the table 6 features"),
        ({"metric": np.ones(6)}, r"shape \(6,\)"),
        ({"metric": [[1.0, np.nan]] * 6}, "finite"),
        ({"metric": [["a"]] * 6}, "matrix of finite numbers"),
        ({"metric": np.eye(6) * 1j}, "matrix of finite numbers"),
        ({"metric": np.zeros((6, 2))}, "0 in all its 6 x 2 numbers"),
        ({"metric": "learned", "lengthscale": 1.0}, "lengthscale is given"),
        ({"metric": "learned", "gamma": 1.0}, "lengthscale is given"),
        ({"metric": "learned", "kernel": "linear"}, "'linear' is not a function of a distance"),
        ({"kernel": "auto", "lengthscale": 1.0}, "kernel is auto, which finds the lengthscale"),
        ({"metric": "none", "metric_rank": 2}, "only a learned metric has a rank"),
        ({"metric": "learned", "metric_rank": 0}, "metric_rank"),
    ],
)
def test_what_is_refused(options: dict[str, Any], match: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ParameterError, match=match):
        KernelRidge(20, **options).fit(*rows)


def test_rows_without_targets_have_nothing_to_learn_from(
    rows: tuple[np.ndarray, np.ndarray], learned: KernelRidge
) -> None:
    with pytest.raises(ParameterError, match=r"to learn from; give rows with targets \(ingest\(target") as found:
        factorize(rows[0], metric="learned")
    assert "(streamkernel ingest --target), or --metric none and a named kernel" in found.value.worded(in_flags)
    assert 'or "metric": "none" and a named kernel' in found.value.worded(in_json)
    # Transformers ignore y: to give it is no remedy.
    for transformer in (KernelPCA(5, metric="learned"), Nystroem(20, metric="diagonal")):
        with pytest.raises(ParameterError, match=r"which this fit does not use; give metric='none' or a matrix"):
            transformer.fit(*rows)
    with pytest.raises(ParameterError, match="give the name of a kernel here"):
        Nystroem(20, kernel="auto").fit(*rows)
    assert Nystroem(20, metric=learned.model_.metric).fit_transform(rows[0]).shape == (M, 20)
    projected = KernelPCA(3, basis_size=30, metric=np.eye(P)[:, :2]).fit_transform(rows[0])
    assert projected.shape == (M, 3)
