"""The search for a metric on a sample, against plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericalError
from streamkernel.kernels import Gaussian, Laplacian, Matern
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import median_lengthscale
from streamkernel.table import open_table
from streamkernel.table.parts.folds import Folds
from streamkernel.table.row_keys import row_keys
from streamkernel.tuning import FORMS, MetricChoice, MetricSearch, metric
from streamkernel.tuning._regression import Regression
from streamkernel.tuning._sample_fits import FOLDS, SampleRegressions


def _sample(m: int = 300, p: int = 4, seed: int = 0, weights: np.ndarray | None = None) -> Sample:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, p))
    Y = np.sin(2.0 * X[:, :1] + X[:, 1:2]) + 0.1 * rng.normal(size=(m, 1))
    return Sample(np.arange(m), X, Y, np.ones(m) if weights is None else weights, row_keys(X))


def _search(sample: Sample, forms: str | None = "learned", **options: Any) -> MetricChoice:
    d = sample.Y.shape[1]
    settings: dict[str, Any] = {"centre": np.zeros(d), "scale": np.ones(d), "kernels": [Gaussian(1.0)], **options}
    kernels = settings.pop("kernels")
    return MetricSearch(sample, kernels, Session(), **settings).choose(FORMS[forms] if forms else ())


def _matern(U: np.ndarray, Z: np.ndarray, lengthscale: float) -> np.ndarray:
    r = np.sqrt(3.0 * ((U[:, None, :] - Z[None]) ** 2).sum(axis=2)) / lengthscale
    return np.asarray((1.0 + r) * np.exp(-r))


def test_the_median_distance_takes_no_more_rows_than_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, mapped = _sample(3000), SampleRegressions._mapped
    regressions = SampleRegressions(
        sample, Session(), centre=np.zeros(1), scale=np.ones(1), intercept=True, classes=False
    )
    counts = []

    def counted(self: SampleRegressions, metric: Any, rows: Any) -> Any:
        found = mapped(self, metric, rows)
        counts.append(len(found))
        return found

    monkeypatch.setattr(SampleRegressions, "_mapped", counted)
    T = np.random.default_rng(1).normal(size=(4, 3))
    median = regressions.median(T, Gaussian(1.0))
    assert counts == [1000]
    train = sample.X[~FOLDS.held_out(row_keys(sample.X))]
    assert median == pytest.approx(median_lengthscale(train @ T, Gaussian(1.0)), rel=1e-12)


def test_the_error_is_that_of_a_ridge_regression_on_rows_that_it_has_not_seen() -> None:
    sample = _sample()
    choice = _search(sample, kernels=[Matern(1.5)])
    held = FOLDS.held_out(row_keys(sample.X))
    assert 0.1 < held.mean() < 0.4
    best = choice.record.rounds[choice.record.best]
    U = sample.X @ choice.metric if choice.metric is not None else sample.X
    train, other = U[~held], U[held]
    Z = train[: len(train) // 2]
    G = _matern(train, Z, best.lengthscale)
    W = _matern(Z, Z, best.lengthscale)
    y = sample.Y[~held, 0]
    # The constant is not penalised: centre rows and targets.
    a = np.linalg.lstsq(
        (G - G.mean(axis=0)).T @ (G - G.mean(axis=0)) + best.alpha * W,
        (G - G.mean(axis=0)).T @ (y - y.mean()),
        rcond=1e-14,
    )[0]
    predicted = _matern(other, Z, best.lengthscale) @ a + y.mean() - G.mean(axis=0) @ a
    cut = np.clip(predicted, y.min(), y.max())
    assert best.error == pytest.approx(np.mean((cut - sample.Y[held, 0]) ** 2), rel=1e-5)
    # No other alpha of a grid is much better.
    errors = []
    for alpha in np.geomspace(best.alpha / 100, best.alpha * 100, 41):
        K = G - G.mean(axis=0)
        a = np.linalg.lstsq(K.T @ K + alpha * W, K.T @ (y - y.mean()), rcond=1e-14)[0]
        predicted = _matern(other, Z, best.lengthscale) @ a + y.mean() - G.mean(axis=0) @ a
        errors.append(np.mean((predicted - sample.Y[held, 0]) ** 2))
    assert best.error <= 1.05 * min(errors)


def test_the_metric_finds_the_direction() -> None:
    choice = _search(_sample())
    assert choice.metric is not None
    weights = choice.metric @ choice.metric.T
    direction = np.linalg.eigh(weights)[1][:, -1]
    assert abs(direction @ [2.0, 1.0, 0.0, 0.0]) / np.sqrt(5.0) > 0.98
    assert choice.record.rounds[choice.record.best].error < 0.5 * choice.record.rounds[0].error


def test_lengthscales_of_the_plain_kernel_are_tried_unless_the_first_metric_halves_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plain(choice: MetricChoice) -> list[float]:
        return [each.lengthscale for each in choice.record.rounds if each.form == "none"]

    clear = _search(_sample())
    assert min(each.error for each in clear.record.rounds if each.round == 1) <= 0.5 * clear.record.plain_error
    assert len(plain(clear)) == 1
    monkeypatch.setattr(metric, "_CLEAR", 0.0)
    searched = _search(_sample())
    assert len(plain(searched)) >= 3
    assert searched.record.plain_error <= clear.record.plain_error
    np.testing.assert_array_equal(searched.metric, clear.metric)


def test_forms_are_those_that_were_asked_for() -> None:
    diagonal = _search(_sample(), "diagonal")
    assert diagonal.metric is not None
    assert (np.count_nonzero(diagonal.metric, axis=0) == 1).all()
    none = _search(_sample(), None, kernels=[Gaussian(1.0), Matern(2.5), Laplacian(1.0)])
    assert none.metric is None
    assert {each.form for each in none.record.rounds} == {"none"}
    assert len({each.lengthscale for each in none.record.rounds}) >= 4
    ranked = _search(_sample(), rank=1)
    assert ranked.metric is not None
    assert ranked.metric.shape == (4, 1)


def test_the_same_sample_gives_the_same_bits() -> None:
    one, two = _search(_sample()), _search(_sample())
    assert one.metric is not None
    np.testing.assert_array_equal(one.metric, two.metric)
    assert one.record == two.record


def test_rows_of_weight_2_are_rows_that_stand_twice() -> None:
    """The numbers of points differ with the number of rows; the errors agree but for that."""
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    weighted = _search(_sample(weights=weights), None)
    plain, times = _sample(), weights.astype(int)
    # The points are the first rows in both: repeats come last.
    again = np.concatenate([np.arange(300), np.flatnonzero(times == 2)])
    repeated = Sample(
        np.arange(len(again)), plain.X[again], plain.Y[again], np.ones(len(again)), row_keys(plain.X[again])
    )
    found = _search(repeated, None)
    assert weighted.record.plain_error == pytest.approx(found.record.plain_error, rel=0.2)


def test_fits_side_by_side_give_the_same_bits() -> None:
    """Records, too, stand in one order, whichever task ends first. Products of 40 columns are worth BLAS threads."""
    sample, kernels = _sample(700, 40), [Gaussian(1.0), Laplacian(1.0)]
    found = []
    for executor in (ThreadExecutor(1, lambda tasks: tasks[::-1]), ThreadExecutor(3)):
        search = MetricSearch(sample, kernels, Session(executor), centre=np.zeros(1), scale=np.ones(1))
        found.append(search.choose(FORMS["learned"]))
    expected = _search(sample, kernels=kernels)
    for choice in found:
        assert choice.record == expected.record
        np.testing.assert_array_equal(choice.metric, expected.metric)


def test_the_plan_has_room_for_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regressions of the usual size, gradients, and factors of a regression, as `metric_steps` counts them."""
    counts = {"fit": 0, "gradient_products": 0, "_solve": 0}

    def counted(of: type, name: str) -> None:
        known = getattr(of, name)

        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return known(self, *arguments, **options)

        monkeypatch.setattr(of, name, call)

    for of, name in ((SampleRegressions, "fit"), (SampleRegressions, "gradient_products"), (Regression, "_solve")):
        counted(of, name)
    sample = _sample(600)
    choice = MetricSearch(
        sample, [Gaussian(1.0), Matern(1.5)], Session(ThreadExecutor(1)), centre=np.zeros(1), scale=np.ones(1)
    ).choose(FORMS["learned"])
    assert len(choice.record.rounds) <= metric._MOST_FITS
    assert 2 <= counts["gradient_products"] <= metric._MOST_GRADIENTS
    assert 0.5 < counts["_solve"] / counts["fit"] / metric._FACTORS < 2.0


def test_errors_that_are_not_finite_are_named() -> None:
    sample = _sample(200)
    basis, _ = Basis.empty(Gaussian(1.0), 4, np.dtype(np.float64)).append(sample.X[:20], np.arange(20))
    table = open_table(sample.X, sample.Y)
    sums = Session().local(NormalEquations(basis, np.zeros(1)), table)
    regression = Regression(basis, sums, lambda: basis.block(sample.X), lambda values: float("inf"), intercept=True)
    with pytest.raises(NumericalError, match="finite error on held-out rows"):
        regression.best()
    broken = replace(sums, g=np.full_like(sums.g, np.nan))
    with pytest.raises(NumericalError, match="the sum g"):
        Regression(basis, broken, lambda: basis.block(sample.X), lambda values: 0.0, intercept=True)


def test_first_rows_that_are_all_equal_have_a_median_distance_with_the_others() -> None:
    """Lengthscales in another metric are moved by the distances of some rows, which may all be equal."""
    sample = _sample(900)
    value = next(value for value in range(20) if not FOLDS.held_out(row_keys(np.full((1, 4), float(value))))[0])
    X = np.concatenate([np.full((400, 4), float(value)), sample.X[400:]])
    search = MetricSearch(
        replace(sample, X=X, keys=row_keys(X)), [Gaussian(1.0)], Session(), centre=np.zeros(1), scale=np.ones(1)
    )
    choice = search.choose(FORMS["learned"])
    assert np.isfinite(choice.record.chosen.error)


def test_a_longer_lengthscale_does_not_cost_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small its error: a fit of as many functions would have fewer than it was asked for."""
    monkeypatch.setattr(metric, "better", lambda fit, other, chance: True)
    search = MetricSearch(_sample(900), [Gaussian(1.0)], Session(), centre=np.zeros(1), scale=np.ones(1))
    start = search._regressions.fit(None, Gaussian(0.5))
    longer, shorter = (search._downhill(step, start, []) for step in (2.0, 0.5))
    assert len(longer.regression.basis) == len(start.regression.basis)
    assert start.lengthscale < longer.lengthscale < 0.5 * 2.0**metric._MOST_STEPS
    assert shorter.lengthscale == 0.5 * 0.5**metric._MOST_STEPS


def test_kernels_that_fall_behind_are_given_up() -> None:
    """A smooth function in four dimensions: the Laplacian kernel's error is several times that of the Gaussian."""
    sample = _sample(1500)
    smooth = Sample(sample.rows, sample.X, np.sin(sample.X.sum(axis=1, keepdims=True)), sample.weights, sample.keys)
    alone = _search(smooth, kernels=[Gaussian(1.0)])
    both = _search(smooth, kernels=[Gaussian(1.0), Laplacian(1.0)])
    assert both.record == alone.record


@pytest.mark.parametrize("m", [2, 3, 5, 8, 30])
def test_few_rows_are_enough(m: int) -> None:
    choice = _search(_sample(m))
    assert np.isfinite(choice.record.rounds[choice.record.best].error)
    assert choice.lengthscale.value > 0.0


def test_a_far_row_does_not_decide() -> None:
    sample = _sample()
    held = int(np.flatnonzero(FOLDS.held_out(row_keys(sample.X)))[0])
    far = sample.X.copy()
    far[held] = 1e3
    keys = row_keys(sample.X)
    moved = Sample(sample.rows, far, sample.Y, sample.weights, keys)
    one, two = (each.record.rounds[each.record.best].error for each in (_search(sample), _search(moved)))
    assert two < one + 4.0 / 60  # the far row costs at most the range of the targets


def test_classes_are_judged_by_wrong_predictions_too() -> None:
    plain = _sample(900)
    labels = (plain.Y[:, 0] > 0.0).astype(int)
    sample = Sample(plain.rows, plain.X, np.eye(2)[labels], plain.weights, plain.keys)
    choice = _search(sample, classes=True)
    assert choice.metric is not None
    assert choice.record.rounds[choice.record.best].error < 0.25


@pytest.mark.parametrize("seed", range(4))
def test_held_out_rows_of_the_search_do_not_depend_on_the_folds_of_the_fit(seed: int) -> None:
    keys = row_keys(np.random.default_rng(9).normal(size=(4000, 2)))
    left = keys[~Folds(4, 8, seed).held_out(keys)]
    assert 0.2 < FOLDS.held_out(left).mean() < 0.3


def test_no_metric_is_taken_on_noise() -> None:
    taken = 0
    for seed in range(6):
        sample = _sample(60, seed=seed)
        noise = np.random.default_rng(100 + seed).normal(size=(60, 1))
        taken += _search(Sample(sample.rows, sample.X, noise, sample.weights, sample.keys)).metric is not None
    assert taken <= 2


@pytest.mark.parametrize(
    "weights",
    [
        np.r_[1.0, np.zeros(299)],
        np.zeros(300),
        pytest.param(np.r_[np.full(299, 1e-12), 1.0], marks=pytest.mark.slow),
        np.r_[1e12, np.ones(299)],
    ],
    ids=["one row", "none", "the last row", "the first row"],
)
def test_weights_on_hardly_any_row_are_no_obstacle(weights: np.ndarray) -> None:
    """On whichever side of the held-out rows the weight lies."""
    for order in (np.arange(300), np.arange(300)[::-1], np.roll(np.arange(300), 7)):
        choice = _search(_sample(weights=weights[order]))
        assert np.isfinite([each.error for each in choice.record.rounds]).all()


def test_the_size_of_the_weights_does_not_matter() -> None:
    one, other = (_search(_sample(weights=np.full(300, weight))) for weight in (1.0, 2.0**-30))
    assert other.record.best == one.record.best
    assert other.lengthscale.value == pytest.approx(one.lengthscale.value, rel=1e-6)
