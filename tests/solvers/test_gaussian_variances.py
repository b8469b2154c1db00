"""Signal and noise variance from the sums alone: where the bound or the evidence is largest."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64
from scipy.optimize import approx_fprime, minimize
from sparse_processes import KINDS, case, members_of, noise_of, sums_of
from strategies import few_examples, seeds

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import ConstantNoise, DiagonalNoise
from streamkernel.solvers import GaussianSystem
from streamkernel.solvers.gaussian_processes._evidence_curve import EvidenceCurve


# ------------------------------------------------------------------------------------------- choosing the variances
@pytest.mark.parametrize("objective", ["bound", "evidence"])
@few_examples(0.25)
@given(seed=seeds)
def test_the_variances_are_where_the_dense_objective_is_largest(objective: str, seed: int) -> None:
    c = case(seed % 300, m=30, d=1)
    system = GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, ConstantNoise()), ConstantNoise())
    found = system.choose(objective=objective)

    def value(logs: Any) -> float:
        signal, noise = np.exp(logs)
        dense = c.oracle(None, signal=float(signal), noise=float(noise))
        return float(-(dense.bound if objective == "bound" else dense.log_evidence)[0])

    logs = np.log([found.signal[0], found.noise[0]])
    at = value(logs)
    for start in (logs, np.log([1.0, 0.1])):
        best = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
        assert at <= best.fun + 1e-6


@pytest.mark.parametrize("fixed", ["signal", "noise"])
@given(seed=seeds, power=st.floats(-3, 2))
def test_a_variance_that_is_given_is_not_moved(fixed: str, seed: int, power: float) -> None:
    c = case(seed % 300, d=1)
    system = GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, ConstantNoise()), ConstantNoise())
    given_ = float(10**power)
    found = system.choose(**{fixed: given_})
    np.testing.assert_allclose(getattr(found, fixed), given_, rtol=1e-12)
    other = "noise" if fixed == "signal" else "signal"

    def bound(factor: float) -> float:
        pair = {fixed: given_, other: factor * getattr(found, other)[0]}
        solution = system.solve(**pair)
        assert solution.bound is not None
        return float(solution.bound[0])

    assert bound(1.0) >= max(bound(factor) for factor in (1e-4, 0.1, 0.5, 0.97, 1.03, 2.0, 10.0)) - 1e-5


@given(seed=seeds, power=st.floats(-4, 3), given_=st.sampled_from([{}, {"signal": 0.7}, {"noise": 0.2}]))
def test_the_slope_is_the_derivative(seed: int, power: float, given_: dict[str, float]) -> None:
    rng = np.random.default_rng(seed)
    G, y = rng.standard_normal((30, 6)) * np.geomspace(1, 0.01, 6), rng.standard_normal(30)
    values, vectors = np.linalg.eigh(G.T @ G)
    curve = EvidenceCurve(values, (vectors.T @ G.T @ y) ** 2, float(y @ y), 30, 4.0, 1e-20, **given_)

    def score(log_alpha: Any) -> float:
        return float(curve.score(np.exp(log_alpha))[0])

    at = np.array([power * np.log(10.0)])
    expected = approx_fprime(at, score, 1e-6)[0]
    assert curve.slope(10**power) == pytest.approx(expected, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize(
    ("counts", "values", "explained", "rows"),
    [((35, 4), (4e-4, 36.0), (34.4, 2.4), 73), ((53, 1), (0.05, 67.0), (27.4, 2.2), 125)],
    ids=["few strong directions", "many weak ones"],
)
def test_two_maxima_and_the_higher_one_is_found(counts: Any, values: Any, explained: Any, rows: int) -> None:
    """Many weak directions fit the targets, or they are noise beside a few strong ones."""
    h = np.repeat(values, counts)
    squares = h * np.repeat(np.divide(explained, counts), counts)
    curve = EvidenceCurve(h, squares, 40.0, rows, 0.0, 1e-20)
    fine = np.geomspace(1e-9, 1e8, 50_001)
    scores = curve.score(fine)
    minima = np.flatnonzero((scores[1:-1] < scores[:-2]) & (scores[1:-1] < scores[2:]))
    assert len(minima) >= 2
    assert np.log(curve.best(1e-10)) == pytest.approx(np.log(fine[np.argmin(scores)]), abs=1e-3)


def test_shared_variances_maximise_the_sum() -> None:
    c = case(11, d=3)
    system = GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, ConstantNoise()), ConstantNoise())
    found = system.choose(shared=True)
    assert np.ptp(found.signal) == np.ptp(found.noise) == 0.0

    def value(logs: Any) -> float:
        bound = system.solve(*np.exp(logs)).bound
        assert bound is not None
        return float(-bound.sum())

    best = minimize(value, np.log([1.0, 0.1]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    np.testing.assert_allclose(np.log([found.signal[0], found.noise[0]]), best.x, atol=1e-4)


def test_shared_variances_are_in_units_of_the_scale() -> None:
    """Targets in other units, and their scale with them: the same variances in those units."""
    c = case(12, d=3)
    units = np.array([1.0, 1e3, 1e-4])
    pairs = []
    for factor in (np.ones(3), units):
        sums = sums_of(c.X, c.Y * factor, c.basis, ConstantNoise())
        system = GaussianSystem(c.basis, sums, ConstantNoise(), scale=factor)
        pairs.append((system.choose(shared=True), system.choose(shared=True, noise=0.3)))
    for plain, scaled in zip(*pairs, strict=True):
        np.testing.assert_allclose(scaled.signal, plain.signal * units**2, rtol=1e-6)
        np.testing.assert_allclose(scaled.noise, plain.noise * units**2, rtol=1e-6)
    np.testing.assert_allclose(pairs[1][1].noise, 0.3 * units**2, rtol=1e-12)


@pytest.mark.parametrize("kind", ["fitc", "pitc"])
def test_of_the_others_the_level_is_chosen(kind: str) -> None:
    """The ratio is in the sums; the level of each target is Q / m, which no multiple of it beats."""
    c = case(13, d=2)
    Y = c.Y * [1.0, 30.0]
    noise = noise_of(kind, c.signal, c.noise)
    system = GaussianSystem(c.basis, sums_of(c.X, Y, c.basis, noise), noise)
    found = system.choose()
    np.testing.assert_allclose(found.signal / found.noise, c.signal / c.noise)
    members = members_of(kind, len(c.X))
    best = system.solve(found.signal, found.noise).log_evidence
    for t in range(2):
        for factor in (1.0, 0.9, 1.1):
            signal, variance = factor * found.signal[t], factor * found.noise[t]
            dense = c.oracle(members, Y[:, t], signal=signal, noise=variance).log_evidence[0]
            if factor == 1.0:
                assert best[t] == pytest.approx(dense, rel=1e-9)
            assert dense <= best[t] + 1e-9
    held = system.choose(signal=2.0)
    np.testing.assert_allclose(held.noise, 2.0 * c.noise / c.signal)
    np.testing.assert_allclose(system.choose(noise=2.0).signal, 2.0 * c.signal / c.noise)


@pytest.mark.parametrize("shared", [False, True])
def test_a_target_that_is_constant_has_next_to_no_noise(shared: bool) -> None:
    c = case(14, d=2)
    centre = np.array([0.0, 7.0])
    Y = np.column_stack([c.Y[:, 0], np.full(len(c.Y), 7.0)])
    system = GaussianSystem(
        c.basis, sums_of(c.X, Y, c.basis, ConstantNoise(), centre=centre), ConstantNoise(), scale=np.ones(2)
    )
    found = system.choose(shared=shared)
    alone = GaussianSystem(c.basis, sums_of(c.X, Y[:, :1], c.basis, ConstantNoise()), ConstantNoise()).choose()
    np.testing.assert_allclose([found.signal[0], found.noise[0]], [alone.signal[0], alone.noise[0]], rtol=1e-6)
    if not shared:
        assert 0.0 < found.noise[1] < 1e-28
    solution = system.solve(found.signal, found.noise)
    mean, variance = solution.predictions(c.basis).moments(c.queries)
    np.testing.assert_allclose(mean[:, 1], 7.0)
    assert np.isfinite(variance).all()
    assert np.isfinite(solution.log_evidence).all()


def test_targets_without_noise_are_fitted_to_rounding() -> None:
    c = case(15, d=1)
    y = naive.gaussian(c.X, c.basis.points, c.lengthscale) @ np.linspace(-1, 1, 8)[:, None]
    system = GaussianSystem(c.basis, sums_of(c.X, y, c.basis, ConstantNoise()), ConstantNoise())
    found = system.choose(objective="evidence")
    assert 0.0 < found.noise[0] < 1e-9 * y.var()
    mean, _ = system.solve(found.signal, found.noise).predictions(c.basis).moments(c.X)
    np.testing.assert_allclose(mean, y, atol=1e-5)


def test_targets_of_noise_alone_have_next_to_no_signal() -> None:
    c = case(16, m=45, d=1)
    y = np.random.default_rng(3).standard_normal((45, 1))
    system = GaussianSystem(c.basis, sums_of(c.X, y, c.basis, ConstantNoise()), ConstantNoise())
    found = system.choose()
    assert found.signal[0] < 1e-2
    np.testing.assert_allclose(found.noise, (y**2).mean(), rtol=0.05)


def test_an_empty_basis_predicts_the_prior() -> None:
    c = case(17)
    basis = Basis.empty(Gaussian(1.0), 2, FLOAT64)
    for kind in KINDS:
        noise = noise_of(kind, 1.5, 0.5)
        system = GaussianSystem(basis, sums_of(c.X, c.Y, basis, noise, centre=np.array([1.0, 2.0])), noise)
        solution = system.solve(1.5, 0.5)
        mean, variance = solution.predictions(basis).moments(c.queries)
        np.testing.assert_allclose(mean, np.broadcast_to([1.0, 2.0], mean.shape))
        np.testing.assert_allclose(variance, 2.0)
        found = system.choose()
        assert (found.noise > 0.0).all()
        assert np.isfinite(found.signal).all()


# ------------------------------------------------------------------------------------------------------ what is refused
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, -1.0]])
def test_variances_are_positive(bad: Any) -> None:
    c = case()
    system = GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, ConstantNoise()), ConstantNoise())
    with pytest.raises(ParameterError, match="signal"):
        system.solve(bad, 1.0)
    with pytest.raises(ParameterError, match="noise"):
        system.solve(1.0, bad)
    if not isinstance(bad, list):
        with pytest.raises(ParameterError, match="noise"):
            system.choose(noise=bad)


def test_sums_of_another_ratio_are_refused() -> None:
    c = case()
    noise = DiagonalNoise(1.0, 0.1)
    system = GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, noise), noise)
    with pytest.raises(ParameterError, match=r"signal / noise = 10, not .* sweep again"):
        system.solve(1.0, 0.2)
    with pytest.raises(ParameterError, match="sweep again"):
        system.choose(signal=1.0, noise=0.2)
    np.testing.assert_array_equal(system.choose(signal=2.0, noise=0.2).signal, 2.0)
    with pytest.raises(ParameterError, match="dtc only"):
        system.choose(objective="bound")
    with pytest.raises(ParameterError, match="'bound' or 'evidence'"):
        system.choose(objective="gcv")


def test_sums_that_are_not_finite_are_named() -> None:
    c = case()
    c.Y[3, 1] = np.nan
    with pytest.raises(NumericalError, match="the sum g"):
        GaussianSystem(c.basis, sums_of(c.X, c.Y, c.basis, ConstantNoise()), ConstantNoise())
