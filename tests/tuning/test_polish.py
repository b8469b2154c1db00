"""Hyper-parameters over a whole table, from where the sample has led."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_rows import ONE, Float, drawn, sample_of
from problems import CutExecutor

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.kernels import Gaussian, log_lengthscales
from streamkernel.reductions.sums import ConstantNoise, DiagonalNoise, GaussianEquations
from streamkernel.table import open_table
from streamkernel.tuning import SparseEvidence, Tuning, polish, sweep_rows, tune


# ---------------------------------------------------------------------------------------------------------------- full
def table_and_tuning(objective: str, fixed: tuple[str, ...] = ()) -> tuple[Any, Float, Tuning, Basis]:
    X, Y = drawn(Gaussian((0.7, 1.4, 2.8)), 900, 3, 1.0, 0.1)
    tuning = tune(
        sample_of(X[:200], Y[:200]),
        Gaussian(2.0),
        scale=ONE,
        ard=True,
        n_basis=60,
        rounds=2,
        objective=objective,
        fixed=fixed,
    )
    basis, _ = Basis.empty(tuning.kernel, 3, X.dtype).append(X[:90], np.arange(90))
    return X, Y, tuning, basis


@pytest.mark.parametrize("objective", ["fitc", "vfe"])
def test_polish_goes_on_over_the_table(objective: str) -> None:
    X, Y, tuning, basis = table_and_tuning(objective)
    centre = Y.mean(axis=0)
    found = polish(tuning, sweep_rows(X, Y), basis, centre=centre, scale=ONE, evaluations=6)
    new = found.tuning.points[len(tuning.points) :]
    assert found.tuning.points[: len(tuning.points)] == tuning.points
    assert {point.stage for point in new} == {"full"}
    assert 1 < len(new) <= 6
    assert new[0].lengthscales == pytest.approx(np.exp(log_lengthscales(tuning.kernel)))
    assert found.tuning.value == max(point.value for point in new) > new[0].value
    assert found.tuning.points[-1].stage == "full"
    # The sums are those of the final sweep, to the bit.
    assert found.basis.kernel == found.tuning.kernel
    noise = DiagonalNoise(found.tuning.signal, found.tuning.noise) if objective == "fitc" else ConstantNoise()
    sums = sweep_rows(X, Y)(GaussianEquations(found.basis, centre, noise))
    assert sums.H.tobytes() == found.sums.H.tobytes()
    exact = SparseEvidence(sweep_rows(X, Y), basis.points, basis.rows, centre=centre, scale=ONE, form=objective)
    assert exact.at(found.tuning.kernel, found.tuning.signal, found.tuning.noise).value == 900 * found.tuning.value


@pytest.mark.parametrize("objective", ["fitc", "vfe"])
def test_polish_does_not_depend_on_the_chunks(objective: str) -> None:
    X, Y, tuning, basis = table_and_tuning(objective, ("signal",))
    table, found = open_table(X, Y), []
    for executor in (CutExecutor((900,), 900), CutExecutor((171, 40), 37, 2)):
        session = Session(executor)
        polished = polish(
            tuning,
            lambda r, s=session: s.sweep(r, table, "evidence"),
            basis,
            centre=np.zeros(1),
            scale=ONE,
            evaluations=3,
        )
        found.append(polished.tuning)
        assert len(session.records) == 2 * 3
    one, other = found
    np.testing.assert_allclose(log_lengthscales(one.kernel), log_lengthscales(other.kernel), rtol=1e-6)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.signal == pytest.approx(tuning.signal)
    assert one.moved == ("lengthscale", "noise")


def test_one_evaluation_is_a_look() -> None:
    X, Y, tuning, basis = table_and_tuning("fitc")
    found = polish(tuning, sweep_rows(X, Y), basis, centre=np.zeros(1), scale=ONE, evaluations=1).tuning
    assert len(found.points) == len(tuning.points) + 1
    assert found.noise == pytest.approx(tuning.noise)
    np.testing.assert_allclose(log_lengthscales(found.kernel), log_lengthscales(tuning.kernel), rtol=1e-12)
