"""Sums of an interior point iteration against plain NumPy that keeps the variables of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import basis_of, blocks

from streamkernel.kernels import Gaussian
from streamkernel.reductions import Reduction
from streamkernel.reductions.margins import (
    EpsilonInsensitive,
    Hinge,
    InteriorPath,
    InteriorPointStep,
    InteriorPointSums,
    OneClass,
    PiecewiseLinear,
    Pinball,
    Target,
)
from streamkernel.reductions.sums import Features

LOSSES: dict[str, PiecewiseLinear] = {
    "hinge": Hinge(2.0),
    "pinball": Pinball(3.0, 0.2),
    "epsilon": EpsilonInsensitive(1.5, 0.3),
    "one class": OneClass(0.7),
}
RNG = np.random.default_rng(5)
X = RNG.standard_normal((120, 3))
SIGNS = (X[:, 0] + 0.5 * RNG.standard_normal(120) > 0).astype(float)
NUMBERS = X[:, 0] + 0.3 * RNG.standard_normal(120)
BASIS = basis_of(X, range(0, 120, 15), Gaussian(2.0))
FEATURES = Features.of_basis(BASIS)
G = np.hstack([FEATURES.of(X), np.ones((120, 1))])


def targets(name: str) -> Any:
    return SIGNS if name == "hinge" else NUMBERS


def swept(
    reduction: Reduction[Any], Y: Any, weights: Any = None, lengths: Any = (40, 40, 25, 15), rows: Any = X
) -> Any:
    state = None
    for block in blocks(rows, Y, list(lengths), weights):
        mapped = reduction.map_block(block)
        state = mapped if state is None else reduction.combine(state, mapped)
    return reduction.finalize(state).problems


def path(steps: int, loss: PiecewiseLinear) -> InteriorPath:
    rng = np.random.default_rng(steps)
    found = InteriorPath.begin(0.1 * rng.standard_normal(G.shape[1]), loss.C)
    for number in range(steps):
        found = found.further(
            0.2 * rng.standard_normal(G.shape[1]), loss.C * 0.3**number, [1.0, 0.5, 0.125][number % 3]
        )
    return found


def boxes(name: str, loss: Any) -> list[tuple[Any, Any, Any]]:
    """Kink, lower and upper ends of the boxes."""
    y, zero, C = targets(name), np.zeros(len(X)), loss.C
    if name == "hinge":
        t = 2 * y - 1
        return [(t, np.minimum(0, C * t), np.maximum(0, C * t))]
    if name == "one class":
        return [(zero, zero, zero + C)]
    if name == "pinball":
        return [(y, zero - C * (1 - loss.quantile), zero + C * loss.quantile)]
    return [(y - loss.epsilon, zero, zero + C), (y + loss.epsilon, zero - C, zero)]


def loss_by_hand(name: str, loss: Any, f: Any) -> Any:
    y = targets(name)
    if name == "hinge":
        return loss.C * np.maximum(0, 1 - (2 * y - 1) * f)
    if name == "one class":
        return loss.C * np.maximum(0, -f)
    if name == "pinball":
        return loss.C * np.where(y > f, loss.quantile * (y - f), (1 - loss.quantile) * (f - y))
    return loss.C * np.maximum(0, np.abs(y - f) - loss.epsilon)


def by_hand(name: str, loss: Any, way: InteriorPath, w: Any) -> dict[str, Any]:
    """Each row's variables, one row and one iteration at a time."""
    n = G.shape[1]
    gram, vectors = np.zeros((n, n)), np.zeros((3, n))
    box_ends, end_linears = np.zeros((2, n)), np.zeros(2)
    linear = complementarity = weight = 0.0
    for kinks, lows, highs in boxes(name, loss):
        for i, (y, low, high) in enumerate(zip(kinks, lows, highs, strict=True)):
            b = way.start.copy()
            r = y - G[i] @ b
            # The central path: a z = mu, (C - a)(z + r) = mu.
            C = high - low
            z = max(np.roots([C, C * r - 2 * way.barrier, -way.barrier * r]).real)
            s = z + r
            a = way.barrier / z
            for d, mu, most in zip(way.directions, way.barriers, way.lengths, strict=True):
                theta = z / a + s / (C - a)
                da = (mu / a - mu / (C - a) - (z - s) - G[i] @ d) / theta
                dz = (mu - a * z - z * da) / a
                ds = (mu - (C - a) * s + s * da) / (C - a)
                ends = [0.99 * -v / dv for v, dv in ((a, da), (C - a, -da)) if dv < 0]
                slack_ends = [0.99 * -v / dv for v, dv in ((z, dz), (s, ds)) if dv < 0]
                a += min([most, *ends]) * da
                z += min([most, *slack_ends]) * dz
                s += min([most, *slack_ends]) * ds
                b += most * d
                missing = G[i] @ b - y - (z - s)
                z, s = z + max(missing, 0), s + max(-missing, 0)
            theta = z / a + s / (C - a)
            gram += w[i] * np.outer(G[i], G[i]) / theta
            vectors[0] += w[i] * (low + a) * G[i]
            vectors[1] -= w[i] * (z - s) / theta * G[i]
            vectors[2] += w[i] * (1 / a - 1 / (C - a)) / theta * G[i]
            linear += w[i] * y * (low + a)
            box_ends += w[i] * np.outer([low, high], G[i])
            end_linears += w[i] * y * np.array([low, high])
            complementarity += w[i] * (a * z + (C - a) * s)
            weight += w[i]
    loss_sum = w @ loss_by_hand(name, loss, G @ way.coefficients)
    return {
        "gram": gram,
        "dual": vectors[0],
        "rest": vectors[1],
        "barrier": vectors[2],
        "low": box_ends[0],
        "high": box_ends[1],
        "loss": loss_sum,
        "linear": linear,
        "complementarity": complementarity,
        "weight": weight,
        "low_linear": end_linears[0],
        "high_linear": end_linears[1],
    }


def step(name: str, steps: int) -> InteriorPointStep:
    return InteriorPointStep(FEATURES, (LOSSES[name],), (Target(0),), (path(steps, LOSSES[name]),))


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_sums(name: str, weighted: bool, steps: int) -> None:
    w = RNG.uniform(0.1, 3.0, len(X)) if weighted else np.ones(len(X))
    [sums] = swept(step(name, steps), targets(name)[:, None], w if weighted else None)
    for field, expected in by_hand(name, LOSSES[name], path(steps, LOSSES[name]), w).items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(sums, field), expected, rtol=1e-8, atol=1e-9 * scale, err_msg=field)


@pytest.mark.parametrize("name", LOSSES)
def test_integer_weights_are_repeated_rows(name: str) -> None:
    w = np.arange(len(X)) % 3
    some = np.repeat(np.arange(len(X)), w)
    [weighted] = swept(step(name, 4), targets(name)[:, None], w.astype(float))
    repeated = swept(step(name, 4), targets(name)[some][:, None], None, (len(some),), X[some])[0]
    for field in InteriorPointSums.__dataclass_fields__:
        expected = getattr(repeated, field)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(weighted, field), expected, rtol=1e-10, atol=1e-12 * scale, err_msg=field)


@pytest.mark.parametrize("lengths", [(120,), (1,) * 120, (50, 70)])
def test_any_cut_of_the_rows(lengths: tuple[int, ...]) -> None:
    reduction = step("epsilon", 5)
    [once] = swept(reduction, NUMBERS[:, None])
    [again] = swept(reduction, NUMBERS[:, None], None, lengths)
    for field in InteriorPointSums.__dataclass_fields__:
        expected = getattr(once, field)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(again, field), expected, rtol=1e-9, atol=1e-11 * scale, err_msg=field)


def test_problems_side_by_side_are_those_alone() -> None:
    Y = np.column_stack([SIGNS, NUMBERS])
    names = ["hinge", "pinball", "epsilon"]
    columns = (Target(0), Target(1), Target(1))
    losses, paths = tuple(LOSSES[name] for name in names), tuple(path(k, LOSSES[name]) for k, name in enumerate(names))
    together = swept(InteriorPointStep(FEATURES, losses, columns, paths), Y)
    for k in range(3):
        [alone] = swept(InteriorPointStep(FEATURES, losses[k : k + 1], columns[k : k + 1], paths[k : k + 1]), Y)
        for field in InteriorPointSums.__dataclass_fields__:
            np.testing.assert_allclose(getattr(together[k], field), getattr(alone, field), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_variables_stay_in_their_boxes(name: str) -> None:
    """However wild the steps: the dual bound holds only then."""
    way = InteriorPath.begin(np.zeros(G.shape[1]), 1.0)
    rng = np.random.default_rng(1)
    loss = LOSSES[name]
    for number in range(12):
        way = way.further(10.0 ** rng.uniform(-3, 3) * rng.standard_normal(G.shape[1]), 10.0**-number)
    [sums] = swept(InteriorPointStep(FEATURES, (loss,), (Target(0),), (way,)), targets(name)[:, None])
    dual = sums.linear - 0.5 * sums.dual @ sums.dual
    primal = min(0.5 * b @ b + loss_by_hand(name, loss, G @ b).sum() for b in (way.coefficients, np.zeros(G.shape[1])))
    assert np.isfinite(dual)
    assert dual <= primal
    assert sums.complementarity > 0.0
    total = sum(np.maximum(np.abs(low), np.abs(high)).sum() for _, low, high in boxes(name, loss))
    assert np.abs(sums.dual[-1]) <= total  # the sum of u
