"""Steps of solvers that sweep, and what is held out of them: a row for each reduction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from problems import Float, basis_of
from reduction_rows.common import X64, Make, features_of, kernel_of

from streamkernel.reductions import Predictions
from streamkernel.reductions.boosting import BoostingStep, Members
from streamkernel.reductions.likelihoods import (
    Bernoulli,
    GradientStep,
    Latent,
    Likelihood,
    NewtonStart,
    NewtonStep,
    Softmax,
)
from streamkernel.reductions.margins import (
    ActiveSetStep,
    EpsilonInsensitive,
    Huber,
    InteriorPath,
    InteriorPointStep,
    LagrangianStep,
    Line,
    OneClass,
    Pinball,
    PricedFunction,
    PriceRows,
    SmoothStep,
    SquaredEpsilonInsensitive,
    Target,
    Violators,
)
from streamkernel.reductions.scores import HeldOutErrors
from streamkernel.reductions.sums import Features
from streamkernel.table import Folds


class _OfAnyTargets(Softmax):
    """Three classes, told by the signs of Y."""

    def targets(self, Y: Float | None, start: int) -> Float:
        assert Y is not None
        return np.eye(3)[(Y > 0).sum(axis=1) % 3]


def _step(X: X64, chosen: list[int], likelihood: Likelihood) -> tuple[Features, Likelihood, Latent, Latent, Any]:
    c = likelihood.width
    ends = [Latent(np.linspace(-end, 1, len(chosen) * c).reshape(-1, c), np.full(c, 0.3 * end)) for end in (1, 2)]
    return features_of(X, chosen), likelihood, ends[0], ends[1], (1.0, 0.25)


def _interior_point(features: Features) -> InteriorPointStep:
    zero, step = np.zeros(features.width + 1), np.full(features.width + 1, 0.1)
    paths = tuple(InteriorPath.begin(zero, mu).further(step, 0.3 * mu) for mu in (2.0, 1.0, 0.3))
    losses = Pinball(2.0, 0.3), EpsilonInsensitive(1.0, 0.2), OneClass(0.3)
    return InteriorPointStep(features, losses, (Target(0), Target(0, 0.5, 2.0), None), paths)


def _boosting(X: X64, Y: Any, chosen: list[int], draw: Any) -> BoostingStep:
    classes, n = max(Y.shape[1], 2), len(chosen)
    rng, K = np.random.default_rng(3), 1 if classes == 2 else classes
    members = Members(
        kernel_of(X), X[chosen], np.tile(np.arange(n), 3), n * np.arange(1, 4), rng.standard_normal((3 * n, K)),
        rng.standard_normal((3, K)), classes, soft=True,
    )  # fmt: skip
    sizes = (2, 3) if draw == "errors" else (4,)
    two = np.array([0.5, 0.2])
    return BoostingStep(members, two, 0.1 * two, two, 2.0**-20, draw, sizes, 1, 2, X.dtype, counted=(1, 2), valued=True)


def _points(X: X64, chosen: list[int]) -> Float:
    return np.random.default_rng(5).uniform(-0.5, 0.5, (3, features_of(X, chosen).width + 1))


def _held_out_errors(X: Any, Y: Any, chosen: Any, folds: Folds | None) -> HeldOutErrors:
    d = Y.shape[1]
    coefficients = np.sin(np.arange(1.0, 2 * d * len(chosen) + 1)).reshape(len(chosen), 2 * d)
    functions = Predictions(basis_of(X, chosen, kernel_of(X)), coefficients, np.full(2 * d, 0.1))
    losses = (Pinball(1.0, 0.3),) * d + (Huber(2.0, 0.3),) * d
    return HeldOutErrors(functions, losses, tuple(Target(k) for k in range(d)), folds, classes=False)


def _smooth_step(features: Features) -> SmoothStep:
    line = Line(np.zeros(features.width + 1), np.full(features.width + 1, 0.1))
    losses = (Huber(2.0, 0.3), SquaredEpsilonInsensitive(1.0, 0.2))
    return SmoothStep(features, losses, (Target(0), Target(0)), (line, line), (1.0, 0.5))


def _prices(X: X64, Y: Float, chosen: list[int]) -> PriceRows:
    """Two functions: some points have both a dual variable and a coefficient."""
    numbers = np.sort(np.asarray(chosen, np.int64))
    functions = tuple(
        PricedFunction(
            X[chosen].astype(np.float64),
            np.linspace(-2, 3, len(chosen))[: max(len(chosen) - 1, 1)],
            np.linspace(-1, 1, len(chosen))[:2],
            0.1,
            loss,
            Target(0, 0.1, 1.5),
            numbers[:2],
            numbers[1:],
        )
        for loss in (EpsilonInsensitive(1.0, 0.2), Pinball(2.0, 0.3))
    )
    return PriceRows(kernel_of(X), functions, 0.2, 0.1, 0.05, 5, 3, 7, (4,))


STEPS: dict[str, Make] = {
    "newton start": lambda X, Y, chosen: NewtonStart(features_of(X, chosen), _OfAnyTargets(3)),
    "newton step": lambda X, Y, chosen: NewtonStep(*_step(X, chosen, Bernoulli())),
    "newton step, softmax": lambda X, Y, chosen: NewtonStep(*_step(X, chosen, _OfAnyTargets(3))),
    "active set": lambda X, Y, chosen: ActiveSetStep(features_of(X, chosen), 0, 3.0, _points(X, chosen)),
    "lagrangian": lambda X, Y, chosen: LagrangianStep(features_of(X, chosen), 0, 3.0, 1.9, _points(X, chosen)),
    "interior point": lambda X, Y, chosen: _interior_point(features_of(X, chosen)),
    "held-out errors": lambda X, Y, chosen: _held_out_errors(X, Y, chosen, Folds(3)),
    "errors of all rows": lambda X, Y, chosen: _held_out_errors(X, Y, chosen, None),
    "smooth step": lambda X, Y, chosen: _smooth_step(features_of(X, chosen)),
    "smooth step with a band": lambda X, Y, chosen: replace(_smooth_step(features_of(X, chosen)), band_rows=3),
    "smooth step, features of few rows": lambda X, Y, chosen: replace(
        _smooth_step(features_of(X, chosen)),
        losses=(SquaredEpsilonInsensitive(2.0, 1.0), SquaredEpsilonInsensitive(1.0, 1.5)),
        certificate=False,
    ),
    "boosting step, errors": lambda X, Y, chosen: _boosting(X, Y, chosen, "errors"),
    "boosting step, disagreement": lambda X, Y, chosen: _boosting(X, Y, chosen, "disagreement"),
    "prices": lambda X, Y, chosen: _prices(X, Y, chosen),
    "violators": lambda X, Y, chosen: Violators(
        kernel_of(X),
        X[chosen],
        np.linspace(-1, 1, len(chosen)),
        0.1,
        EpsilonInsensitive(1.0, 0.2),
        Target(0, 0.1, 1.5),
        np.sort(np.asarray(chosen, np.int64)),
        0.3,
        5,
    ),
    "gradient step": lambda X, Y, chosen: GradientStep.of(*_step(X, chosen, Bernoulli())),
    "gradient step, softmax": lambda X, Y, chosen: GradientStep.of(*_step(X, chosen, _OfAnyTargets(3))),
}
