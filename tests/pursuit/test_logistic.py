"""The logistic loss: the optimum of the functions picked, steps that do not raise it, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pursuit.pursuits import run
from scipy.optimize import minimize
from scipy.special import logsumexp

from streamkernel import KernelMatchingPursuit, KernelMatchingPursuitClassifier
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Sigmoid
from streamkernel.pursuit import MatchingPursuit, Pools

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 2))
F = 2 * np.sin(2 * X[:, 0]) + X[:, 1]
T = np.where(RNG.uniform(size=500) < 1 / (1 + np.exp(-F)), 1, -1)


def loss_of(f: Any, t: Any) -> float:
    return float(np.logaddexp(0, -t * f).sum())


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Sigmoid(gamma=0.5, coef0=-0.2)], ids=["gaussian", "sigmoid"])
@pytest.mark.parametrize("constant", [True, False])
def test_coefficients_are_where_the_loss_is_least(kernel: Any, constant: bool) -> None:
    rule = MatchingPursuit(pools=Pools("shared", picks=3), constant=constant, loss="logistic")
    found, _ = run(rule, X, T, 8, kernel, classify=True)
    K = kernel(X, X[found.basis.rows])
    columns = np.column_stack([np.ones(500), K]) if constant else K

    def objective(a: Any) -> tuple[float, Any]:
        f = columns @ a
        return loss_of(f, T), -columns.T @ (T / (1 + np.exp(T * f)))

    best = minimize(objective, np.zeros(columns.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-6})
    ours = K @ found.stages.coefficients[:, 0] + found.stages.intercept[0]
    assert loss_of(ours, T) <= best.fun * (1 + 1e-6)
    losses = found.path.losses[:, 0]
    assert losses[0] == pytest.approx(500 * np.log(2))
    assert (np.diff(losses) <= 0).all()
    assert found.path.sizes.tolist() == [0, 3, 6, 8]
    assert found.path.losses[-1, 0] >= loss_of(ours, T)
    np.testing.assert_allclose(found.stages.values(K)[:, -1, 0], ours, rtol=1e-6, atol=1e-8)


def test_the_best_size_on_held_out_rows() -> None:
    rule = MatchingPursuit(pools=Pools("shared", picks=4), validation=0.3, patience=12, loss="logistic")
    found, _ = run(rule, X, T, 60, classify=True)
    watched = found.path.losses[1:, 1]
    assert found.ended == "validation"
    assert len(found.basis) == found.path.sizes[1 + watched.argmin()] < found.path.terms
    assert found.path.losses[0, 1] == pytest.approx(found.path.validation_rows * np.log(2))
    assert 0 < found.path.wrong[-1, 0] / found.path.fitted_rows < 0.3


def test_probabilities_that_are_meant() -> None:
    model = KernelMatchingPursuitClassifier(12, loss="logistic", validation=None).fit(X, np.where(T > 0, "yes", "no"))
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    # With a constant the probabilities add up to the number of rows of the class.
    assert P[:, 1].sum() == pytest.approx((T > 0).sum(), rel=1e-3)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    np.testing.assert_array_equal(model.predict(X), np.where(P[:, 1] > 0.5, "yes", "no"))
    assert np.abs(P[:, 1] - 1 / (1 + np.exp(-F))).mean() < 0.08
    assert 0 < model.relative_residual_trace_ < 1
    assert not hasattr(KernelMatchingPursuitClassifier(5).fit(X, T), "predict_proba")


def test_classes_that_are_apart() -> None:
    apart = np.where(X[:, 0] > 0, 1, -1)
    rows = X + 3 * apart[:, None]
    model = KernelMatchingPursuitClassifier(3, loss="logistic", lengthscale=5.0).fit(rows, apart)
    assert model.score(rows, apart) == 1.0
    assert loss_of(model.decision_function(rows), apart) < 1.0
    assert np.isfinite(model.dual_coef_).all()


def test_more_classes_than_two() -> None:
    """Near the least loss of the functions picked, down to it step by step; probabilities are those that are meant."""
    logits = np.column_stack([F, -F, np.zeros(500)])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([RNG.choice(3, p=chance) for chance in chances])
    rule = MatchingPursuit(pools=Pools("shared", picks=3), loss="logistic")
    found, _ = run(rule, X, labels, 8, Gaussian(1.0), classify=True)
    columns = np.column_stack([np.ones(500), Gaussian(1.0)(X, X[found.basis.rows])])
    Y = np.eye(3)[labels]

    def objective(a: Any) -> tuple[float, Any]:
        f = columns @ a.reshape(-1, 3)
        p = np.exp(f - logsumexp(f, axis=1)[:, None])
        return -(Y * np.log(p)).sum(), (columns.T @ (p - Y)).ravel()

    best = minimize(objective, np.zeros(27), jac=True, method="BFGS", options={"gtol": 1e-4})
    ours = np.vstack([found.stages.intercept, found.stages.coefficients])
    np.testing.assert_allclose(ours.sum(axis=1), 0.0, atol=1e-6 * np.abs(ours).max())
    assert objective(ours.ravel())[0] <= best.fun * 1.01
    losses = found.path.losses[:, 0]
    assert losses[0] == pytest.approx(500 * np.log(3))
    assert (np.diff(losses) < 0).all()
    assert losses[-1] > objective(ours.ravel())[0]


def test_probabilities_of_more_classes_and_rows_that_are_watched() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(F + RNG.logistic(size=500), [-1.0, 1.0])]
    fit, rest = slice(0, 350), slice(350, None)
    options: dict[str, Any] = {"loss": "logistic", "picks": 3}
    other = KernelMatchingPursuitClassifier(12, validation=(X[rest], labels[rest]), **options)
    model = other.fit(X[fit], labels[fit])
    P = model.predict_proba(X[rest])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[rest]))
    path = model.path_
    wrong = [(stage != labels[rest]).sum() for stage in model.staged_predict(X[rest])]
    np.testing.assert_array_equal(path.errors[1:, 1], wrong)
    assert len(model.active_set_) == path.sizes[1 + path.losses[1:, 1].argmin()]
    np.testing.assert_allclose(path.losses[0], [350 * np.log(3), 150 * np.log(3)])
    truth = np.eye(3)[np.searchsorted(model.classes_, labels[rest])]
    assert -(truth * np.log(P)).sum() == pytest.approx(path.losses[1:, 1].min(), rel=0.1)


def test_refused() -> None:
    with pytest.raises(ParameterError, match="targets are numbers"):
        KernelMatchingPursuit(3, loss="logistic").fit(X, F)
    with pytest.raises(ParameterError, match="another variant than basic"):
        KernelMatchingPursuitClassifier(3, loss="logistic", variant="basic").fit(X, T)
    with pytest.raises(ParameterError, match="loss must be one of"):
        KernelMatchingPursuitClassifier(3, loss="hinge").fit(X, T)
