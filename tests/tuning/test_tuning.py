"""Hyper-parameters by evidence: what is recovered, what stays, what is refused, and the same over a whole table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import data_sets
import numpy as np
import pytest
from drawn_rows import ONE, Float, drawn, sample_of

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import DataError, NumericalError, ParameterError, ShapeError
from streamkernel.kernels import Gaussian, Linear, Matern, log_lengthscales
from streamkernel.tuning import Tuning, polish, sweep_rows, tune


def values_of(tuning: Tuning) -> Float:
    return np.array([point.value for point in tuning.points])


@pytest.mark.parametrize("objective", ["fitc", "vfe"])
@pytest.mark.parametrize("kernel", [Gaussian((0.7, 1.8)), Matern((0.9, 2.2), 2.5)], ids=lambda k: k.name)
def test_what_the_targets_were_drawn_with_is_found_again(kernel: Any, objective: str) -> None:
    X, Y = drawn(kernel, 500, 2, 2.0, 0.1, d=3)
    start = kernel.with_lengthscale(2.0)
    found = tune(sample_of(X, Y), start, scale=np.ones(3), ard=True, n_basis=150, objective=objective)
    np.testing.assert_allclose(log_lengthscales(found.kernel), log_lengthscales(kernel), atol=0.25)
    assert found.noise == pytest.approx(0.1, rel=0.25)
    assert found.signal == pytest.approx(2.0, rel=0.6)
    assert type(found.kernel) is type(kernel)


def test_one_lengthscale_for_all_features() -> None:
    X, Y = drawn(Gaussian(1.2), 500, 2, 1.0, 0.05)
    found = tune(sample_of(X, Y), Gaussian(3.0), scale=ONE, n_basis=150)
    assert isinstance(found.kernel, Gaussian)
    assert found.kernel.lengthscale == pytest.approx(1.2, rel=0.2)


@pytest.mark.parametrize("objective", ["fitc", pytest.param("vfe", marks=pytest.mark.slow)])
def test_features_that_say_nothing_get_long_lengthscales(objective: str) -> None:
    data = data_sets.friedman(500, 7, 0.5)
    found = tune(sample_of(data.X, data.y), Gaussian(1.0), scale=np.array([data.y.std()]), ard=True, n_basis=90,
                 objective=objective)  # fmt: skip
    lengths = np.exp(log_lengthscales(found.kernel))
    assert lengths[5:].min() > 2.0 * lengths[:5].max()
    assert lengths.max() < 200.0
    assert found.noise == pytest.approx(0.25 / data.y.var(), rel=0.4)


def test_every_point_is_kept_and_the_best_is_taken() -> None:
    X, Y = drawn(Gaussian(1.2), 300, 2, 1.0, 0.1)
    found = tune(sample_of(X, Y), Gaussian(0.3), scale=ONE, ard=True, n_basis=60, rounds=3, evaluations=7)
    values = values_of(found)
    assert found.value == values.max() > values[0]
    best = found.points[int(values.argmax())]
    assert (best.signal, best.noise) == (found.signal, found.noise)
    np.testing.assert_allclose(best.lengthscales, np.exp(log_lengthscales(found.kernel)), rtol=1e-12)
    rounds = np.array([point.round for point in found.points])
    assert np.bincount(rounds).max() <= 7
    assert {point.stage for point in found.points} == {"sample"}
    assert max(point.basis for point in found.points) <= 60
    assert (found.objective, found.rows, found.moved) == ("fitc", 300, ("lengthscale", "signal", "noise"))


@pytest.mark.parametrize(
    "fixed", [("noise",), ("signal",), ("lengthscale",), ("signal", "noise"), ("lengthscale", "noise")]
)
def test_what_is_fixed_stays(fixed: tuple[str, ...]) -> None:
    X, Y = drawn(Gaussian(1.2), 200, 2, 1.0, 0.1)
    found = tune(
        sample_of(X, Y),
        Gaussian(0.9),
        scale=ONE,
        n_basis=40,
        rounds=2,
        evaluations=6,
        signal=1.3,
        noise=0.2,
        fixed=fixed,
    )
    for point in found.points:
        assert ("signal" not in fixed) or point.signal == pytest.approx(1.3)
        assert ("noise" not in fixed) or point.noise == pytest.approx(0.2)
        assert ("lengthscale" not in fixed) or point.lengthscales == pytest.approx((0.9,))
    moved = {"lengthscale": found.kernel != Gaussian(0.9), "signal": found.signal != 1.3, "noise": found.noise != 0.2}
    assert all(moved[name] for name in found.moved)
    assert set(found.moved) == {"lengthscale", "signal", "noise"} - set(fixed)


def test_with_all_fixed_one_point_is_evaluated() -> None:
    X, Y = drawn(Gaussian(1.2), 200, 2, 1.0, 0.1)
    found = tune(sample_of(X, Y), Gaussian(0.9), scale=ONE, n_basis=40, fixed=("lengthscale", "signal", "noise"))
    assert len(found.points) == 1
    assert found.moved == ()
    assert np.exp(log_lengthscales(found.kernel)) == pytest.approx([0.9])


def test_a_kernel_without_lengthscale() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * 20.0
    Y = X @ [1.0, -2.0, 0.5] + rng.standard_normal(200)
    found = tune(sample_of(X, Y), Linear(), scale=np.array([Y.std()]), centre=np.zeros(1), n_basis=20)
    assert found.noise == pytest.approx(1.0 / Y.var(), rel=0.3)
    assert found.kernel == Linear()


def test_a_sum_keeps_its_parts_apart() -> None:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-10, 10, 500))[:, None]
    Y = np.sin(0.3 * X) + 0.4 * np.sin(6.0 * X) + 0.05 * rng.standard_normal((500, 1))
    found = tune(sample_of(X, Y), Gaussian(5.0) + Gaussian(0.5), scale=ONE, n_basis=120)
    slow, fast = np.exp(log_lengthscales(found.kernel))
    assert slow > 4 * fast
    assert found.noise == pytest.approx(0.0025, rel=0.5)


def test_units_of_the_features_do_not_matter() -> None:
    """From one length for all, lengthscales of their own follow the spread: powers of two change no rounding."""
    X, Y = drawn(Gaussian((0.7, 1.4, 2.8)), 250, 3, 1.0, 0.1)
    X /= X.std(axis=0)
    units = np.array([1.0, 1024.0, 0.125])
    options: dict[str, Any] = {"scale": ONE, "ard": True, "n_basis": 50, "rounds": 2}
    plain = tune(sample_of(X, Y), Gaussian(2.0), **options)
    other = tune(sample_of(X * units, Y), Gaussian(2.0 * np.sqrt(np.mean(units**2))), **options)
    np.testing.assert_allclose(
        log_lengthscales(other.kernel) - np.log(units), log_lengthscales(plain.kernel), atol=1e-3
    )
    assert other.value == pytest.approx(plain.value, rel=1e-6)


def test_units_of_the_targets_do_not_matter() -> None:
    X, Y = drawn(Gaussian(1.0), 200, 2, 1.0, 0.1)
    options: dict[str, Any] = {"n_basis": 40, "rounds": 2}
    plain = tune(sample_of(X, Y), Gaussian(2.0), scale=ONE, **options)
    other = tune(sample_of(X, 1000.0 + 64.0 * Y), Gaussian(2.0), scale=64.0 * ONE, **options)
    assert other.value == pytest.approx(plain.value, rel=1e-8)
    assert other.noise == pytest.approx(plain.noise, rel=1e-4)


def test_rows_that_repeat_and_a_column_that_is_constant() -> None:
    X, Y = drawn(Gaussian(1.0), 200, 2, 1.0, 0.1)
    X, Y = np.concatenate([X, X[:100]]), np.concatenate([Y, Y[:100]])
    X = np.column_stack([X, np.full(300, 7.0)])
    found = tune(sample_of(X, Y), Gaussian(1.0), scale=ONE, ard=True, n_basis=250)
    lengths = np.exp(log_lengthscales(found.kernel))
    assert lengths[:2] == pytest.approx([1.0, 1.0], rel=0.4)
    assert np.isfinite(lengths).all()
    assert 0.01 < found.noise < 0.2


def test_targets_without_noise_leave_some() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (150, 1))
    found = tune(sample_of(X, np.sin(X)), Gaussian(1.0), scale=ONE, n_basis=30)
    assert 1e-6 <= found.noise < 1e-3
    assert np.isfinite(values_of(found)).all()


def test_rows_that_are_all_equal_have_only_noise() -> None:
    Y = np.random.default_rng(0).standard_normal(50)
    found = tune(sample_of(np.ones((50, 2)), Y), Gaussian(1.0), scale=ONE, ard=True, n_basis=10)
    assert found.noise == pytest.approx(Y.var(), rel=0.1)
    assert found.points[0].basis == 1


def test_a_constant_target_has_no_say() -> None:
    X, Y = drawn(Gaussian(1.0), 150, 2, 1.0, 0.1)
    both = np.column_stack([np.full(150, 3.0), Y])
    options: dict[str, Any] = {"n_basis": 30, "rounds": 1}
    # Given, as a mean over rows of two columns has other bits than one over rows of one.
    centre = both.mean(axis=0)
    found = tune(sample_of(X, both), Gaussian(1.0), scale=np.ones(2), centre=centre, **options)
    alone = tune(sample_of(X, Y), Gaussian(1.0), scale=ONE, centre=centre[1:], **options)
    assert found.targets == (1,)
    assert found == replace(alone, targets=(1,))
    basis, _ = Basis.empty(found.kernel, 2, X.dtype).append(X[:20], np.arange(20))
    one, other = (
        polish(tuning, sweep_rows(X, targets), basis, centre=targets.mean(axis=0), scale=scale, evaluations=2).tuning
        for tuning, targets, scale in ((found, both, np.ones(2)), (alone, Y, ONE))
    )
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.noise == pytest.approx(other.noise, rel=1e-6)
    with pytest.raises(DataError, match=r"targets of all 150 sampled rows are constant, .* give these as numbers"):
        tune(sample_of(X, both[:, :1]), Gaussian(1.0), scale=ONE)


def test_weights_of_rows() -> None:
    X, Y = drawn(Gaussian(1.0), 200, 2, 1.0, 0.1)
    weights = np.full(200, 4.0)
    options: dict[str, Any] = {"scale": ONE, "n_basis": 40, "rounds": 2, "evaluations": 30}
    plain, heavy = (tune(sample_of(X, Y, w), Gaussian(1.0), **options) for w in (None, weights))
    # As of four times as many rows: the noise is that of a row, and is known better.
    assert heavy.noise == pytest.approx(plain.noise, rel=0.2)


def test_equal_bits_on_one_thread_and_on_two() -> None:
    data = data_sets.friedman(5000, 6)
    runs = [Session(ThreadExecutor(threads)).local for threads in (1, 2)]
    options: dict[str, Any] = {
        "scale": np.array([data.y.std()]),
        "ard": True,
        "n_basis": 100,
        "rounds": 2,
        "evaluations": 4,
    }
    one, two = (tune(sample_of(data.X, data.y), Gaussian(1.0), run=run, **options) for run in runs)
    assert one == two
    assert one.points == two.points


def test_float32_rows() -> None:
    X, Y = drawn(Gaussian(1.0), 200, 2, 1.0, 0.1)
    single = X.astype(np.float32)
    options: dict[str, Any] = {"scale": ONE, "n_basis": 40, "rounds": 1}
    found, wide = (tune(sample_of(A, Y), Gaussian(1.0), **options) for A in (single, single.astype(np.float64)))
    assert found.value == pytest.approx(wide.value, rel=1e-6)


# ------------------------------------------------------------------------------------------------------------ refusals
def test_what_cannot_be() -> None:
    X, Y = drawn(Gaussian(1.0), 50, 2, 1.0, 0.1)
    sample = sample_of(X, Y)
    with pytest.raises(ParameterError, match="objective 'elbo' is not known; give one of vfe, fitc"):
        tune(sample, Gaussian(1.0), scale=ONE, objective="elbo")
    for fixed in ("noise", ("alpha",)):
        with pytest.raises(ParameterError, match="names what cannot move; give some of lengthscale, signal, noise"):
            tune(sample, Gaussian(1.0), scale=ONE, fixed=fixed)
    for name in ("n_basis", "rounds", "evaluations"):
        with pytest.raises(ParameterError, match=f"{name} = 0"):
            tune(sample, Gaussian(1.0), scale=ONE, **{name: 0})
    for name in ("signal", "noise"):
        with pytest.raises(ParameterError, match=f"{name} = -1"):
            tune(sample, Gaussian(1.0), scale=ONE, **{name: -1.0})
    with pytest.raises(ParameterError, match="3 entries for 2 features"):
        tune(sample, Gaussian((1.0, 2.0, 3.0)), scale=ONE)
    with pytest.raises(ShapeError, match="1 targets"):
        tune(sample, Gaussian(1.0), scale=np.ones(2))
    with pytest.raises(ShapeError, match="0 targets"):
        tune(replace(sample, Y=np.zeros((50, 0))), Gaussian(1.0), scale=np.zeros(0))
    with pytest.raises(NumericalError, match="targets of the sample"):
        tune(sample_of(X, np.where(Y > 1, np.nan, Y)), Gaussian(1.0), scale=ONE)
