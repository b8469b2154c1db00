"""Alpha by held-out folds: what is chosen, and that the error it reports is the error on rows nobody has seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
import updates
from problems import cut_session

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.records import Validation
from streamkernel.settings import RidgeSettings
from streamkernel.table import Folds, open_table
from streamkernel.table.row_keys import row_keys

Array = np.ndarray[Any, np.dtype[Any]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:only .* basis functions are linearly independent"),
    pytest.mark.filterwarnings("ignore:about .* rows are distinct"),
    pytest.mark.filterwarnings("ignore:.* columns are constant"),
    pytest.mark.filterwarnings("ignore:.*, more than the .* rows of weight > 0"),
]


class Notes(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def smooth(X: Array) -> Array:
    return np.asarray(np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2])


def rows(m: int, seed: int = 0, noise: float = 0.4) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, smooth(X) + noise * rng.standard_normal(m)


def validation_of(model: Any) -> Validation:
    found = model.model_.record.validation
    assert isinstance(found, Validation)
    return found


def root_error(model: Any, X: Array, y: Array) -> tuple[Array, Array]:
    """RMSE of each target on other rows, with its standard error."""
    squares = (model.predict(X).reshape(len(X), -1) - y.reshape(len(X), -1)) ** 2
    rmse = np.sqrt(squares.mean(axis=0))
    return rmse, squares.std(axis=0) / np.sqrt(len(X)) / (2.0 * rmse)


def wrong_share(model: Any, X: Array, y: Array) -> tuple[Array, Array]:
    wrong = (model.predict(X) != y).astype(float)
    return wrong.mean(keepdims=True), wrong.std(keepdims=True) / np.sqrt(len(X))


def assert_honest(model: Any, X: Array, y: Array, deviations: float = 3.0) -> None:
    """The reported error is that on rows of no part in the fit, up to the standard errors of both."""
    record = validation_of(model)
    if isinstance(model, KernelRidgeClassifier):
        assert record.wrong is not None
        found, se = np.array([record.wrong]), np.array([record.wrong_se])
        expected, other = wrong_share(model, X, y)
    else:
        found, se = np.array(record.rmse), np.array(record.rmse_se)
        expected, other = root_error(model, X, y)
    assert (np.abs(found - expected) <= deviations * np.hypot(se, other)).all(), (found, se, expected, other)


@pytest.mark.parametrize("times", [1, 15])
def test_the_error_is_that_of_rows_nobody_has_seen(times: int) -> None:
    X, y = rows(1200)
    apart, truth = rows(4000, 1)
    copies = np.random.default_rng(2).permutation(np.repeat(np.arange(len(X)), times))
    model = KernelRidge(120, alpha="cv").fit(X[copies], y[copies])
    assert_honest(model, apart, truth)
    record = validation_of(model)
    # Of many rows a quarter is held out, of few rows half.
    share = 0.5 if times == 1 else 0.25
    assert record.rows == pytest.approx(len(copies) * share, rel=0.1)
    assert record.distinct == pytest.approx(1200 * share, rel=0.15)
    # The standard error is that of 300 rows, not of 4,500.
    assert record.rmse_se[0] == pytest.approx(record.rmse[0] / np.sqrt(2 * 1200 * share), rel=0.25)


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 20])
def test_of_classes_it_is_the_share_of_wrong_ones(times: int) -> None:
    X, y = rows(1200)
    apart, truth = rows(4000, 1)
    copies = np.repeat(np.arange(len(X)), times)
    model = KernelRidgeClassifier(120, alpha="cv").fit(X[copies], np.digitize(y[copies], [-0.5, 0.7]))
    assert_honest(model, apart, np.digitize(truth, [-0.5, 0.7]))
    assert len(validation_of(model).rmse) == 3


def test_a_share_of_none_has_a_standard_error() -> None:
    """Two classes that lie far apart: no held-out row is wrong, and few are known not to be."""
    X, y = rows(200)
    X[:, 0] += 20.0 * (y > 0)
    record = validation_of(KernelRidgeClassifier(30, alpha="cv").fit(X, y > 0))
    assert record.wrong == 0.0
    assert record.wrong_se == pytest.approx(np.sqrt(2.0) / (record.checked_rows + 4), rel=0.1)


def test_several_targets_have_an_error_each() -> None:
    X, y = rows(1500)
    apart, truth = rows(4000, 1)
    Y, T = (np.column_stack([values, 100 * at[:, 0]]) for values, at in ((y, X), (truth, apart)))
    model = KernelRidge(100, alpha="cv").fit(X, Y)
    assert_honest(model, apart, T)
    record = validation_of(model)
    scale = np.asarray(model.model_.record.target_scale)
    assert record.error == pytest.approx(((np.array(record.rmse) / scale) ** 2).sum())


def refitted(model: Any, X: Array, Y: Array, folds: Folds, alpha: float, size: int) -> tuple[float, Array]:
    """Error and squared errors by fold of the first functions, refitted to all rows but those of each fold."""
    record = model.model_.record
    scaled = (X - record.scaler.mean) / record.scaler.scale
    Z = model.model_.basis.points[:size]
    K, W = (naive.gaussian(A, Z, model.lengthscale_) for A in (scaled, Z))
    of, squares = folds.of(row_keys(X)), []
    for fold in range(folds.count):
        out = of == fold
        found = naive.reduced_ridge(K[~out], W, Y[~out], alpha, intercept=True)
        squares.append(((Y[out] - K[out] @ found.alpha - found.intercept) ** 2).sum(axis=0))
    per_row = np.sum(squares, axis=0) / (of < folds.count).sum()
    return float((per_row / np.asarray(record.target_scale) ** 2).sum()), per_row


def test_every_error_is_that_of_a_fit_without_the_fold() -> None:
    X, y = rows(400)
    Y = np.column_stack([y, X[:, 2] ** 2])
    model = KernelRidge(24, alpha="cv", random_state=5).fit(X, Y)
    record, folds = validation_of(model), Folds(4, 8, 5)
    assert (record.folds, record.parts, record.sizes) == (4, 8, (3, 6, 12, 24))
    assert record.rows == folds.held_out(row_keys(X)).sum()
    for alpha, error in zip(record.alphas, record.errors, strict=True):
        assert error == pytest.approx(refitted(model, X, Y, folds, alpha, 24)[0], rel=1e-6)
    for size, alpha, error in zip(record.sizes, record.size_alphas, record.size_errors, strict=True):
        assert error == pytest.approx(refitted(model, X, Y, folds, alpha, size)[0], rel=1e-6)
    np.testing.assert_allclose(record.rmse, np.sqrt(refitted(model, X, Y, folds, model.alpha_, 24)[1]), rtol=1e-6)
    assert record.error == min(record.errors)
    assert record.gcv_error == record.errors[record.alphas.index(record.gcv_alpha)]


def test_related_rows_are_told_from_independent_ones() -> None:
    """Rows measured 20 times with one error and a little of another: no two are copies, and GCV fits the error."""
    X, y = rows(300, noise=1.0)
    times = np.repeat(np.arange(300), 20)
    targets = y[times] + 0.05 * np.random.default_rng(1).standard_normal(len(times))
    apart = rows(3000, 1)[0]
    notes = Notes()
    by_folds = KernelRidge(150, alpha="cv", lengthscale=0.5, progress=notes).fit(X[times], targets)
    by_gcv = KernelRidge(150, alpha="gcv", lengthscale=0.5).fit(X[times], targets)
    errors = [float(np.std(model.predict(apart) - smooth(apart))) for model in (by_folds, by_gcv)]
    assert errors[0] < 0.8 * errors[1]
    record = validation_of(by_folds)
    assert record.differs
    assert record.gcv_alpha < 0.1 * by_folds.alpha_
    assert any("GCV would take alpha" in line and "are rows repeated" in line for line in notes.lines)
    assert any("on held-out rows" in line for line in notes.lines)


def test_rows_in_any_order_and_cut_have_the_same_choice() -> None:
    """Of equal rows as basis: what a draw of rows by number changes is not of interest here."""
    X, y = rows(500)
    settings = RidgeSettings(n_components=500, alpha="cv", rule="uniform", lengthscale=0.3)
    found = []
    for order, session in (
        (np.arange(500), Session(ThreadExecutor(1))),
        (np.random.default_rng(1).permutation(500), cut_session([70, 33], 20, 2)),
    ):
        found.append(fit_ridge(open_table(X[order], y[order]), settings, session).record)
    one, other = (record.validation for record in found)
    assert one is not None
    assert other is not None
    assert (one.rows, one.folds) == (other.rows, other.folds)
    # Smaller bases, where a search begins, are those of other rows: the steps differ, and the result by a part of one.
    assert found[0].alpha == pytest.approx(found[1].alpha, rel=0.3)
    assert one.error == pytest.approx(other.error, rel=1e-3)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        pytest.param(np.random.default_rng(0).standard_normal((40, 2)), "40 rows are too few", id="few"),
        pytest.param(np.repeat([[1.0, 2.0], [3.0, 5.0]], 100, axis=0), "distinct rows are held out", id="two"),
    ],
)
@pytest.mark.parametrize("solver", ["auto", "cg"])
def test_where_folds_say_nothing_gcv_chooses(X: Array, words: str, solver: str) -> None:
    y = np.random.default_rng(1).standard_normal(len(X))
    notes = Notes()
    model = KernelRidge(2, alpha="cv", progress=notes, solver=solver).fit(X, y)
    assert model.model_.record.validation is None
    # Of conjugate gradients, it is that of rows which are not held out.
    some = 1e-3 if len(X) < 60 or solver == "auto" else 0.5
    assert model.alpha_ == pytest.approx(KernelRidge(2, alpha="gcv").fit(X, y).alpha_, rel=some)
    assert any("alpha" in line and words in line for line in notes.lines)


@pytest.mark.parametrize("options", [{"lengthscale": "auto"}, {"metric": "learned"}, {"kernel": "auto"}], ids=str)
def test_rows_of_few_values_have_a_lengthscale_wherever_folds_put_them(options: dict[str, Any]) -> None:
    """Equal rows share a fold: the rows that are left to train on may all be equal."""
    X = np.repeat(np.arange(3.0)[:, None] * [2.0, 2.0, 2.0], 70, axis=0)
    y = np.random.default_rng(0).standard_normal(len(X))
    # One value is trained on, two are held out.
    assert len(set(Folds(4, 8, 0).held_out(row_keys(X[::70])).tolist())) == 2
    model = KernelRidge(2, alpha="cv", **options).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.model_.record.validation is None


def test_a_class_in_one_fold_only_is_an_error_and_no_obstacle() -> None:
    X, y = rows(300)
    labels = (y > 0).astype(int)
    labels[int(np.flatnonzero(Folds(4).held_out(row_keys(X)))[0])] = 2
    record = validation_of(KernelRidgeClassifier(40, alpha="cv").fit(X, labels))
    assert record.wrong is not None
    assert record.wrong > 0.0


def test_a_model_keeps_its_errors(tmp_path: Path) -> None:
    X, y = rows(300)
    model = KernelRidge(30, alpha="cv").fit(X, y)
    model.save(tmp_path / "model.zarr")
    assert RidgeModel.load(tmp_path / "model.zarr").record.validation == validation_of(model)
    fields = model.model_.solution_fields()
    assert fields["validation_rmse"] == validation_of(model).rmse[0]
    assert fields["validation_rows"] == validation_of(model).rows
    assert "validation_rows" not in KernelRidge(30).fit(X, y).model_.solution_fields()


def test_an_update_keeps_alpha_and_says_so() -> None:
    notes = Notes()
    model = updates.fit(open_table(updates.X[:1500], updates.Y[:1500]), alpha="cv")
    table = open_table(updates.X, updates.Y)
    done = updates.update(model, table, Session(ThreadExecutor(1), progress=notes)).model
    assert done.record.alpha == model.record.alpha
    assert done.record.validation == model.record.validation
    assert any("of the fit is kept" in line for line in notes.lines)
    updates.check_is_refit(done, updates.X, updates.Y, rtol=1e-9, alpha=model.record.alpha)
    assert done.record.validation == model.record.validation
    other = updates.update(model, table, choices={"alpha": "gcv"}).model.record
    assert other.alpha != model.record.alpha
    assert other.validation is None  # the held-out error was that of another alpha
    with pytest.raises(ParameterError, match="does not keep its sums by fold"):
        updates.update(model, table, choices={"alpha": "cv"})


def test_conjugate_gradients_choose_by_one_fold() -> None:
    X, y = rows(1500)
    apart, truth = rows(4000, 1)
    model = KernelRidge(120, alpha="cv", solver="cg", lengthscale=1.0).fit(X, y)
    assert_honest(model, apart, truth)
    record = validation_of(model)
    assert (record.folds, record.parts, record.sizes) == (1, 8, (120,))
    assert (record.gcv_alpha, record.gcv_error, record.differs) == (None, None, False)
    assert record.error == min(record.errors)
    for alpha, error in zip(record.alphas, record.errors, strict=True):
        assert error == pytest.approx(refitted(model, X, y[:, None], Folds(1), alpha, 120)[0], rel=2e-3)
    assert record.rows == Folds(1).held_out(row_keys(X)).sum()
    labels = np.digitize(y, [-0.5, 0.7])
    classifier = KernelRidgeClassifier(120, alpha="cv", solver="cg", lengthscale=1.0).fit(X, labels)
    assert_honest(classifier, apart, np.digitize(truth, [-0.5, 0.7]))


@pytest.mark.parametrize("shown", [2, 20, 300])
def test_rows_without_weight_have_no_say(shown: int) -> None:
    """Of conjugate gradients, whose search begins on sampled rows: as if these rows were not there."""
    X, y = rows(900)
    weights = (np.arange(900) < shown).astype(float)
    settings = RidgeSettings(n_components=10, alpha="cv", solver="cg", rule="uniform", lengthscale=1.0)
    found = fit_ridge(open_table(X, y, weights=weights), settings, Session(ThreadExecutor(1))).record
    assert np.isfinite(found.alpha)
    assert found.alpha > 0.0
    assert (found.validation is None) == (shown < 300)


def test_samples_are_of_rows_with_weight() -> None:
    """Of 20,000 rows all samples are the 40 that have a weight."""
    X, y = rows(20_000)
    weights = (np.arange(20_000) % 500 == 7).astype(float)
    settings = RidgeSettings(n_components=10, alpha="cv", solver="cg", rule="uniform", lengthscale=1.0)
    model = fit_ridge(open_table(X, y, weights=weights), settings, Session(ThreadExecutor(1)))
    assert (model.arrays["component_indices"] % 500 == 7).all()


def test_more_rows_need_fewer_folds_and_large_bases_one() -> None:
    settings = RidgeSettings(alpha="cv", seed=3)
    assert settings.folds(59, 10) is None
    assert RidgeSettings(alpha="gcv").folds(1000, 10) is None
    assert RidgeSettings(alpha=1.0).folds(1000, 10) is None
    assert settings.folds(1000, 100, "cg") == Folds(1, 8, 3)
    found = [settings.folds(m, n) for m, n in ((1000, 100), (100_000, 100), (100_000, 5000), (100_001, 100))]
    assert found == [Folds(4, 8, 3), Folds(2, 8, 3), Folds(1, 8, 3), Folds(1, 8, 3)]


REGRESSIONS = ["abalone", "california-housing", "kin40k", "protein-casp", "pumadyn-32nm", "kin-8nm"]
CLASSES = ["covtype-subset", "spambase", "pendigits"]


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("name", REGRESSIONS + CLASSES)
def test_the_error_of_real_rows_is_that_of_others(shared_data: Callable[[str], Any], name: str, times: int) -> None:
    data = shared_data(name)
    X, y = np.asarray(data["X"], np.float64), np.asarray(data["y"])
    X = X if len(X) == len(y) else X.T
    order = np.random.default_rng(1).permutation(len(X))
    train, test = np.repeat(order[: 1500 if times == 1 else 600], times), order[1500:8000]
    estimator = KernelRidgeClassifier if name in CLASSES else KernelRidge
    assert_honest(estimator(150, alpha="cv").fit(X[train], y[train]), X[test], y[test])
