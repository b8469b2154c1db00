"""Support vector machines as estimators: against scikit-learn on the same features, held-out rows, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from streamkernel import KernelRidgeClassifier, KernelSVC, KernelSVR, open_table
from streamkernel.errors import DataError, ParameterError, StreamKernelWarning
from streamkernel.settings.ridge import BUCKETS
from streamkernel.table import Folds

RNG = np.random.default_rng(3)
X = RNG.standard_normal((500, 3))
F = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = 20.0 + 5.0 * (F + 0.2 * RNG.standard_normal(500))
TWO = np.where(F + 0.3 * RNG.standard_normal(500) > 0.2, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(F, [-0.5, 0.7])]
SIZE: dict[str, Any] = {"n_components": 40, "kernel": "gaussian", "lengthscale": 1.5, "metric": "none"}


def features(model: Any, rows: Any = X) -> Any:
    """Whitened features of rows, by the model's own basis."""
    found = model.model_
    return found.basis.features(found.prepare(open_table(rows)).read(0, len(rows)).X)


def signs(labels: Any, label: str) -> Any:
    return np.where(labels == label, 1.0, -1.0)


def hinge(f: Any, t: Any) -> Any:
    return np.maximum(1.0 - t * f, 0.0)


def objective(G: Any, f: Any, constant: float, losses: Any, C: float) -> float:
    """``1/2 (|b|^2 + c^2) + C sum losses`` for the values ``f = G b + c`` at all rows."""
    b = np.linalg.lstsq(G, f - constant, rcond=None)[0]
    return float(0.5 * (b @ b + constant**2) + C * losses.sum())


@pytest.mark.parametrize("C", [0.3, 3.0])
@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
def test_objectives_are_those_of_linear_svc_on_the_features(loss: str, power: int, C: float) -> None:
    model = KernelSVC(**SIZE, C=C, loss=loss, gap_tol=1e-8).fit(X, TWO)
    G, t = features(model), signs(TWO, "yes")
    f, constant = model.decision_function(X), 2.0 * model.model_.intercept[1]
    theirs = LinearSVC(C=C, loss=loss, tol=1e-10, max_iter=1_000_000, random_state=0).fit(G, t)
    w, c = theirs.coef_[0], float(theirs.intercept_[0])
    least = 0.5 * (w @ w + c * c) + C * (hinge(G @ w + c, t) ** power).sum()
    ours = objective(G, f, constant, hinge(f, t) ** power, C)
    np.testing.assert_allclose(ours, least, rtol=1e-5)
    solution = model.model_.record.solution
    np.testing.assert_allclose(ours, solution.problems[0].primal, rtol=1e-7)
    assert solution.problems[0].dual <= ours * (1 + 1e-9)
    assert model.duality_gap_ <= 1e-8
    assert model.C_ == C


@pytest.mark.parametrize(
    ("loss", "theirs"), [(name, name) for name in ("epsilon_insensitive", "squared_epsilon_insensitive")]
)
def test_objectives_are_those_of_linear_svr_on_standardised_targets(loss: str, theirs: str) -> None:
    model = KernelSVR(**SIZE, C=2.0, loss=loss, epsilon=0.3, gap_tol=1e-8).fit(X, Y)
    G, y = features(model), (Y - Y.mean()) / Y.std()
    power = 1 if loss == "epsilon_insensitive" else 2
    f = (model.predict(X) - Y.mean()) / Y.std()
    constant = (model.intercept_ - Y.mean()) / Y.std()
    ours = objective(G, f, constant, np.maximum(np.abs(y - f) - 0.3, 0.0) ** power, 2.0)
    found = LinearSVR(C=2.0, loss=theirs, epsilon=0.3, tol=1e-10, max_iter=1_000_000, random_state=0).fit(G, y)
    w, c = found.coef_, float(found.intercept_[0])
    least = 0.5 * (w @ w + c * c) + 2.0 * (np.maximum(np.abs(y - G @ w - c) - 0.3, 0.0) ** power).sum()
    np.testing.assert_allclose(ours, least, rtol=1e-5)


def test_all_rows_as_functions_are_the_machine_of_libsvm_but_for_its_constant() -> None:
    rows, labels = X[:120], TWO[:120]
    model = KernelSVC(120, kernel="gaussian", lengthscale=1.5, metric="none", C=2.0, loss="hinge", scale="none")
    f = model.fit(rows, labels).decision_function(X)
    # A constant whose square is penalised is one more kernel, of ones.
    K = np.exp(-0.5 * ((X[:, None] - rows) ** 2).sum(axis=2) / 1.5**2) + 1.0
    theirs = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K[:120], labels)
    own = K[:, theirs.support_] @ theirs.dual_coef_[0]
    # libsvm has its own constant beside: without rows at 0 it is that which the dual leaves free.
    assert abs(np.mean(np.sign(f) == np.sign(own + theirs.intercept_[0]))) > 0.98


def test_several_classes_are_one_against_the_rest() -> None:
    model = KernelSVC(**SIZE, C=1.0, gap_tol=1e-9).fit(X, THREE)
    values = model.decision_function(X)
    assert values.shape == (500, 3)
    for k, label in enumerate(model.classes_):
        alone = KernelSVC(**SIZE, C=1.0, gap_tol=1e-9, rule=_same_points(model)).fit(X, label == THREE)
        np.testing.assert_allclose(values[:, k], alone.decision_function(X), atol=2e-4)
    assert (model.predict(X) == model.classes_[values.argmax(axis=1)]).all()


def _same_points(model: Any) -> Any:
    from weighted_rows import FixedRows

    return FixedRows(tuple(model.component_indices_.tolist()))


@pytest.mark.parametrize("loss", ["squared_hinge", pytest.param("hinge", marks=pytest.mark.slow)])
def test_the_path_has_the_errors_on_the_fold(loss: str) -> None:
    costs = [0.01, 0.1, 1.0, 10.0]
    model = KernelSVC(**SIZE, C=costs, loss=loss, rule=_fixed(40)).fit(X, TWO)
    path = model.model_.record.path
    assert path is not None
    table = open_table(X, TWO, classify=True).with_keys()
    keys = table.read(0, 500).keys
    assert keys is not None
    out = Folds(1, BUCKETS, 0).held_out(keys)
    assert path.rows == np.count_nonzero(out)
    expected = []
    for C in costs:
        # The rows of the fold have no weight; scale and basis are those of all rows.
        alone = KernelSVC(**{**SIZE, "C": C}, loss=loss, scale="none", gap_tol=1e-9, rule=_fixed(40))
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        alone.fit(Z, TWO, sample_weight=np.where(out, 0.0, 1.0) + 0.0 * (np.arange(500) < 40))
        expected.append(np.mean(alone.predict(Z[out]) != TWO[out]))
    np.testing.assert_allclose(path.errors, expected, atol=2.5 / path.rows)
    assert path.C[int(np.argmin(path.errors))] == model.C_
    np.testing.assert_allclose(
        path.errors_se, [np.sqrt(e * (1 - e) / (path.rows - 1)) for e in path.errors], rtol=1e-6, atol=1e-12
    )


def _fixed(n: int) -> Any:
    from weighted_rows import FixedRows

    return FixedRows(tuple(range(n)))


@pytest.mark.parametrize(
    ("labels", "calibration"),
    [
        (TWO, "isotonic"),
        (THREE, "platt"),
        pytest.param(TWO, "platt", marks=pytest.mark.slow),
        pytest.param(THREE, "isotonic", marks=pytest.mark.slow),
    ],
)
def test_probabilities(calibration: str, labels: Any) -> None:
    model = KernelSVC(**SIZE, C=1.0, calibration=calibration).fit(X, labels)
    p = model.predict_proba(X)
    assert p.shape == (500, len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert (p >= 0.0).all()
    # Better than the shares of the classes, on rows that are not of the fit.
    Z = np.random.default_rng(9).standard_normal((400, 3))
    truth = np.sin(2.0 * Z[:, 0]) + Z[:, 1] * Z[:, 2]
    true = (
        np.where(truth > 0.2, "yes", "no")
        if labels is TWO
        else np.array(["a", "b", "c"])[np.digitize(truth, [-0.5, 0.7])]
    )
    q = model.predict_proba(Z)[np.arange(400), np.searchsorted(model.classes_, true)]
    shares = np.array([np.mean(labels == each) for each in model.classes_])
    assert -np.log(np.maximum(q, 1e-6)).mean() < 0.7 * -np.log(shares[np.searchsorted(model.classes_, true)]).mean()


def test_there_are_no_probabilities_unless_rows_are_held_out() -> None:
    model = KernelSVC(**SIZE, C=1.0).fit(X, TWO)
    assert not hasattr(model, "predict_proba")
    assert model.model_.record.path is None
    assert hasattr(KernelSVC(C="cv"), "predict_proba")
    assert not hasattr(KernelSVC(C="cv", calibration="none").fit(X, TWO), "predict_proba")


def test_a_search_goes_on_where_the_best_is_at_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelSVR._settings_class, "GRID", (1e-3, 2e-3))
    model = KernelSVR(**SIZE, C="cv").fit(X, np.sin(2.0 * X[:, 0]))
    path = model.model_.record.path
    assert path is not None
    assert path.C[-1] > 0.1
    assert path.C[int(np.argmin(path.errors))] == model.C_


@pytest.mark.parametrize(
    "C",
    [0.0, -1.0, np.inf, np.nan, "gcv", [], [1.0, -1.0], True, [True, 2.0], [[1.0]], {}, np.True_, [np.True_], ["1"]],
)
def test_bad_costs_are_refused(C: Any) -> None:
    with pytest.raises(ParameterError, match="C"):
        KernelSVC(C=C).fit(X, TWO)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (KernelSVR(loss="hinge"), "loss"),
        (KernelSVC(loss="huber"), "loss"),
        (KernelSVR(loss="huber", epsilon=0.0), "epsilon is 0"),
        (KernelSVR(epsilon=-0.1), "epsilon"),
        (KernelSVC(gap_tol=0.0), "gap_tol"),
        (KernelSVC(max_sweeps=0), "max_sweeps"),
        (KernelSVC(calibration="sigmoid"), "calibration"),
        (KernelSVC(sharpness=0.0, loss="smoothed_hinge"), "sharpness"),
    ],
)
def test_bad_parameters_are_refused(estimator: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        estimator.fit(X, TWO if isinstance(estimator, KernelSVC) else Y)


def test_several_costs_need_rows_to_choose_by() -> None:
    with pytest.raises(ParameterError, match=r"C has 2 values, and of 40 rows too few"):
        KernelSVC(10, C=[1.0, 2.0]).fit(X[:40], TWO[:40])
    assert KernelSVC(10, C="cv").fit(X[:40], TWO[:40]).C_ == 1.0
    # Equal ones are one.
    assert KernelSVC(10, C=[2.0, 2]).fit(X[:40], TWO[:40]).C_ == 2.0


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_fold_without_a_class_is_told(loss: str) -> None:
    # Of two distinct rows one is held out, with all of its copies.
    rows, labels = np.repeat([[0.0], [1.0]], 100, axis=0), np.repeat(["no", "yes"], 100)
    with pytest.warns(StreamKernelWarning) as told:
        model = KernelSVC(2, lengthscale=1.0, C=[0.1, 1.0], loss=loss).fit(rows, labels)
    said = [str(each.message) for each in told]
    assert any(each.startswith("all rows of 'no' are held out: C and probabilities follow from") for each in said)
    flat = "probabilities of 'yes' do not depend on the decision values, which labels follow: of 'yes' there is no held"
    assert any(each.startswith(flat) for each in said)
    assert np.ptp(model.predict_proba(rows), axis=0).max() == 0.0
    assert (model.predict(rows) == labels).all()


def test_a_class_of_one_row_is_told() -> None:
    labels = np.where(np.arange(500) == 4, "rare", THREE)
    with pytest.warns(StreamKernelWarning, match="probabilities of 'rare' do not depend on the decision values"):
        model = KernelSVC(**SIZE, C=[0.1, 1.0]).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared_epsilon_insensitive"},
        {"loss": "epsilon_insensitive"},
        {"loss": "epsilon_insensitive", "machine": "full", "n_components": 20},
    ],
)
def test_rows_that_are_all_held_out_are_told(options: Any) -> None:
    # Equal rows are in one bucket: with this seed in that of the fold.
    given = {"n_components": 1, "lengthscale": 1.0, "scale": "none", "C": [1.0, 10.0], "random_state": 7, **options}
    with pytest.raises(DataError, match="all rows of weight > 0 are in the validation fold"):
        KernelSVR(**given).fit(np.ones((200, 1)), np.ones(200))


@pytest.mark.parametrize("C", [1.0, [1.0, 10.0], "cv"])
def test_a_tube_around_all_targets(C: Any) -> None:
    for targets, epsilon in ((np.full(500, 7.5), 0.1), (Y, 100.0)):
        model = KernelSVR(**SIZE, loss="epsilon_insensitive", C=C, epsilon=epsilon).fit(X, targets)
        assert model.model_.record.solution.converged
        assert model.duality_gap_ == 0.0
        assert type(model.duality_gap_) is float
        np.testing.assert_allclose(model.predict(X), targets.mean(), rtol=1e-12)


def test_a_gap_that_is_not_reached_is_told() -> None:
    with pytest.warns(StreamKernelWarning, match=r"within .* of the least objective after 2 sweeps"):
        KernelSVC(**SIZE, C=10.0, loss="hinge", max_sweeps=2).fit(X, TWO)


def test_targets_in_other_units_give_the_same_function() -> None:
    model, scaled = KernelSVR(**SIZE, C=2.0), KernelSVR(**SIZE, C=2.0)
    first, second = model.fit(X, Y).predict(X), scaled.fit(X, 1e6 * Y - 3e7).predict(X)
    np.testing.assert_allclose(second, 1e6 * first - 3e7, rtol=1e-6, atol=1.0)


def test_as_good_as_libsvm() -> None:
    Z = np.random.default_rng(5).standard_normal((1000, 3))
    truth = np.sin(2.0 * Z[:, 0]) + Z[:, 1] * Z[:, 2]
    ours = KernelSVR(150, C=10.0, kernel="gaussian", lengthscale=1.5, loss="epsilon_insensitive").fit(X, Y)
    theirs = SVR(C=10.0, gamma=1.0 / (2 * 1.5**2)).fit((X - X.mean(0)) / X.std(0), (Y - Y.mean()) / Y.std())
    error = np.sqrt(np.mean((ours.predict(Z) - (20 + 5 * truth)) ** 2))
    other = np.sqrt(
        np.mean((20 + Y.std() * theirs.predict((Z - X.mean(0)) / X.std(0)) + Y.mean() - 20 - 20 - 5 * truth) ** 2)
    )
    assert error < 1.1 * other


def test_ridge_classification_of_two_classes_is_the_kernel_fisher_discriminant() -> None:
    model = KernelRidgeClassifier(40, kernel="gaussian", lengthscale=1.5, metric="none", alpha=0.7).fit(X, TWO)
    G = features(model)
    inside, outside = G[TWO == "yes"], G[TWO == "no"]
    within = sum((part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) for part in (inside, outside))
    direction = np.linalg.solve(within + 0.7 * np.eye(40), inside.mean(axis=0) - outside.mean(axis=0))
    f = model.decision_function(X)
    ours = np.linalg.lstsq(G - G.mean(axis=0), f - f.mean(), rcond=None)[0]
    cosine = ours @ direction / np.sqrt((ours @ ours) * (direction @ direction))
    np.testing.assert_allclose(cosine, 1.0, atol=1e-9)


def test_costs_that_want_short_steps_are_solved() -> None:
    """Functions without noise want a large C, and the first Newton steps are then far too long."""
    rows = np.random.default_rng(0).standard_normal((200, 2))
    model = KernelSVR(20, C="cv", kernel="gaussian", metric="none", lengthscale=1.5)
    model.fit(rows, np.sin(rows[:, 0]) + rows[:, 1])
    assert model.duality_gap_ <= 1e-4
    assert model.score(rows, np.sin(rows[:, 0]) + rows[:, 1]) > 0.9
