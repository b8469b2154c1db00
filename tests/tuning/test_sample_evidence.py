"""Bound and evidence of a sparse Gaussian process against dense definitions; their gradients against differences."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import examples
from numpy.typing import NDArray
from problems import CutExecutor
from slow_cases import slow_but
from strategies import cuts, rows, seeds

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericalError, ParameterError, ShapeError
from streamkernel.kernels import Gaussian, Kernel, Matern, log_lengthscales, with_log_lengthscales
from streamkernel.reductions import Reduction
from streamkernel.reductions.sums import EvidenceGradient
from streamkernel.solvers import ExactGP
from streamkernel.table import RowBlock, open_table
from streamkernel.tuning import SparseEvidence, sparse_evidence, sweep_rows

Float = NDArray[np.float64]
C = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]  # card 2.2
FORMS = ["vfe", "fitc"]


def dense(form: str, kernel: Kernel, X: Float, Y: Float, Z: Float, signal: float, noise: float) -> float:
    blocks = kernel(X, Z), kernel(Z), kernel.diagonal(X)
    return (naive.vfe_bound if form == "vfe" else naive.fitc_evidence)(*blocks, Y, signal, noise)


def dense_slopes(form: str, kernel: Kernel, X: Float, Y: Float, Z: Float, signal: float, noise: float) -> Float:
    def f(v: Float) -> float:
        moved = with_log_lengthscales(kernel, v[:-2])
        return dense(form, moved, X, Y, Z, float(np.exp(v[-2])), float(np.exp(v[-1])))

    return naive.slopes(f, np.concatenate([log_lengthscales(kernel), np.log([signal, noise])]), 1e-3)


def problem(p: int, m: int = 60, n: int = 9, d: int = 2) -> tuple[Float, Float, Float]:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((m, p))
    return X, np.sin(X @ rng.standard_normal((p, d))) + 0.3 * rng.standard_normal((m, d)), X[:n]


def test_printed_numbers() -> None:
    blocks = C.K[:, SGMA], C.K[np.ix_(SGMA, SGMA)], np.ones(40)
    for form, oracle, printed in (("vfe", naive.vfe_bound, -54.2692), ("fitc", naive.fitc_evidence, -25.3356)):
        assert oracle(*blocks, C.y, 1.0, 0.1) == pytest.approx(printed, abs=1e-4)
        found = sparse_evidence(C.X, C.y, Gaussian(1.0), C.X[SGMA], 1.0, 0.1, form=form)
        assert found.value == pytest.approx(printed, abs=1e-4)
    assert naive.dtc_evidence(*blocks[:2], C.y, 1.0, 0.1) == pytest.approx(-11.1354, abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_value_and_gradient_are_those_of_the_definition(form: str, p: int) -> None:
    X, Y, Z = problem(p)
    for kernel in filter(lambda kernel: kernel.positive_definite, examples(p)):
        found = sparse_evidence(X, Y, kernel, Z, 1.7, 0.3, form=form)
        assert found.value == pytest.approx(dense(form, kernel, X, Y, Z, 1.7, 0.3), rel=1e-8)
        expected = dense_slopes(form, kernel, X, Y, Z, 1.7, 0.3)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found.gradient, expected, rtol=1e-6, atol=1e-6 * scale, err_msg=str(kernel))
        assert found.count == 120


@pytest.mark.parametrize("form", FORMS)
def test_the_card_has_the_gradient_of_the_oracle(form: str) -> None:
    for kernel in (Gaussian(1.0), Gaussian((0.8, 1.3)), Matern((1.0, 2.0), 2.5)):
        found = sparse_evidence(C.X, C.y, kernel, C.X[SGMA], 0.9, 0.1, form=form).gradient
        expected = dense_slopes(form, kernel, C.X, C.y, C.X[SGMA], 0.9, 0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@given(rows(min_rows=3, max_rows=40, dtype=np.float64), seeds, st.data())
def test_the_bound_is_a_bound(X: Float, seed: int, data: st.DataObject) -> None:
    """VFE <= exact evidence, whatever the points: rows, repeated rows, other points."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((len(X), data.draw(st.integers(1, 2))))
    Z = X[rng.integers(0, len(X), data.draw(st.integers(1, len(X))))] + data.draw(st.sampled_from([0.0, 0.3]))
    kernel = data.draw(st.sampled_from([Gaussian(1.0), Gaussian(5.0), Matern(1.0, 1.5), Gaussian(1.0) + Matern(2.0)]))
    signal, noise = data.draw(st.floats(0.1, 10.0)), data.draw(st.floats(1e-3, 1.0))
    exact = naive.exact_evidence(kernel(X), Y, signal, noise)
    assert sparse_evidence(X, Y, kernel, Z, signal, noise).value <= exact + 1e-6 * abs(exact)


@pytest.mark.parametrize("form", FORMS)
def test_with_all_rows_as_points_it_is_exact(form: str) -> None:
    X, Y, _ = problem(3, m=40)
    kernel = Matern((0.7, 1.0, 2.0), 1.5)
    found, exact = sparse_evidence(X, Y, kernel, X, 1.7, 0.3, form=form), ExactGP(X, Y, kernel, signal=1.7, noise=0.3)
    assert found.value == pytest.approx(exact.log_evidence, rel=1e-10)
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_dependent_points_are_left_out(form: str) -> None:
    X, Y, Z = problem(2)
    twice = np.concatenate([Z, Z[2:5], Z[:1]])
    found, plain = (sparse_evidence(X, Y, Gaussian(0.8), points, 1.7, 0.3, form=form) for points in (twice, Z))
    assert len(found.basis) == len(Z)
    assert found.value == plain.value
    np.testing.assert_array_equal(found.gradient, plain.gradient)


@pytest.mark.parametrize("form", FORMS)
def test_far_from_the_origin(form: str) -> None:
    X, Y, Z = problem(4)
    kernel = Gaussian((1.0, 2.0, 0.7, 3.0))
    here, there = (sparse_evidence(X + o, Y, kernel, Z + o, 1.7, 0.3, form=form) for o in (0.0, 1e4))
    assert there.value == pytest.approx(here.value, rel=1e-8)
    np.testing.assert_allclose(there.gradient, here.gradient, rtol=1e-6)


def objective_of(sweep: Any, X: Float, Y: Float, form: str, n: int = 7) -> SparseEvidence:
    centre, scale = Y.mean(axis=0), Y.std(axis=0) + 0.5
    return SparseEvidence(sweep, X[:n].copy(), np.arange(n), centre=centre, scale=scale, form=form)


@pytest.mark.parametrize("form", slow_but(["fitc"], FORMS))
@given(data=st.data())
def test_any_chunking_gives_the_gradient_of_the_sample(form: str, data: st.DataObject) -> None:
    """Over a table, cut anyhow, with weights or without, it is what one block of the same rows has."""
    X, Y, _ = problem(3, m=50)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 50) if data.draw(st.booleans()) else None
    executor = CutExecutor(data.draw(cuts(50)), data.draw(st.integers(1, 50)), 2)
    session, table = Session(executor), open_table(X, Y, weights=weights)
    cut = objective_of(lambda reduction: session.sweep(reduction, table, "evidence"), X, Y, form)
    whole = objective_of(sweep_rows(X, Y, weights), X, Y, form)
    for kernel in (Gaussian((0.9, 1.1, 2.0)), Gaussian(1.0) * Matern(2.0, 0.5)):
        a, b = cut.at(kernel, 1.7, 0.3), whole.at(kernel, 1.7, 0.3)
        assert a.value == pytest.approx(b.value, rel=1e-10)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_equal_bits_on_one_thread_and_on_two(form: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 4))
    Y = np.sin(X[:, :2])
    table = open_table(X, Y)
    found = []
    for threads in (1, 2):
        session = Session(ThreadExecutor(threads))
        objective = objective_of(lambda reduction, s=session: s.local(reduction, table), X, Y, form, n=120)
        found.append(objective.at(Gaussian((1.0, 2.0, 3.0, 4.0)), 1.0, 0.1))
    assert found[0].value == found[1].value
    assert found[0].gradient.tobytes() == found[1].gradient.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_scale_and_centre_of_the_targets(form: str) -> None:
    X, Y, _ = problem(3)
    centre, scale = Y.mean(axis=0), Y.std(axis=0) + 0.5
    found = objective_of(sweep_rows(X, Y), X, Y, form).at(Gaussian(1.0), 1.7, 0.3)
    plain = sparse_evidence(X, (Y - centre) / scale, Gaussian(1.0), X[:7], 1.7, 0.3, form=form)
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, plain.gradient, rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_weight_w_is_w_rows(form: str) -> None:
    """The evidence and its gradient; a weight of 0 leaves a row out."""
    X, Y, _ = problem(3)
    weights = np.random.default_rng(2).integers(0, 4, 60)
    again = np.repeat(np.arange(60), weights)
    found = objective_of(sweep_rows(X, Y, weights.astype(float)), X, Y, form).at(Gaussian(1.0), 1.7, 0.3)
    centre, scale = Y.mean(axis=0), Y.std(axis=0) + 0.5
    copies = sparse_evidence(X[again], (Y[again] - centre) / scale, Gaussian(1.0), X[:7], 1.7, 0.3, form=form)
    assert found.value == pytest.approx(copies.value, rel=1e-10)
    assert found.count == copies.count
    np.testing.assert_allclose(found.gradient, copies.gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fitc", [False, True])
def test_the_reduction_travels(fitc: bool) -> None:
    """Sent to another process it is small, and has the same bits there."""
    X, Y, Z = problem(3)
    basis, _ = Basis.empty(Gaussian(1.0) * Matern(2.0), 3, X.dtype).append(Z, np.arange(len(Z)))
    inverse, u = np.diag(np.linspace(0.2, 0.9, 9)), np.linspace(-1, 1, 18).reshape(9, 2)
    here = EvidenceGradient(basis, np.zeros(2), np.ones(2), 1.7, 0.3, inverse, u, fitc)
    fresh, state = len(pickle.dumps(here)), here.map_block(RowBlock(0, X, Y))
    sent = pickle.dumps(here)
    assert len(sent) == fresh
    there = pickle.loads(sent).map_block(RowBlock(0, X, Y))
    assert {name: values.tobytes() for name, values in there.items()} == {n: v.tobytes() for n, v in state.items()}


def test_what_cannot_be() -> None:
    X, Y, Z = problem(2)
    with pytest.raises(ParameterError, match="'elbo' is not known; give one of vfe, fitc"):
        sparse_evidence(X, Y, Gaussian(1.0), Z, form="elbo")
    with pytest.raises(ParameterError, match="noise = 0"):
        sparse_evidence(X, Y, Gaussian(1.0), Z, 1.0, 0.0)
    with pytest.raises(ShapeError, match="points has 3 columns"):
        sparse_evidence(X, Y, Gaussian(1.0), np.zeros((4, 3)))
    with pytest.raises(NumericalError, match="NaN or infinite"):
        sparse_evidence(X, np.where(Y > 1, np.nan, Y), Gaussian(1.0), Z)


def test_slopes_that_are_not_finite_are_refused() -> None:
    X, Y, _ = problem(2)
    sweep = sweep_rows(X, Y)

    def broken(reduction: Reduction[Any]) -> Any:
        found = sweep(reduction)
        return replace(found, lengthscales=np.array([np.nan])) if hasattr(found, "lengthscales") else found

    with pytest.raises(NumericalError, match=r"not finite at signal variance 1\.7"):
        objective_of(broken, X, Y, "vfe").at(Gaussian(1.0), 1.7, 0.3)


def test_blocks_know_where_they_begin() -> None:
    X = np.zeros((5000, 1))
    starts: list[int] = []

    class Starts:
        def map_block(self, block: RowBlock) -> Any:
            starts.append(block.start)
            return {}

        def fold(self, state: Any, block: RowBlock) -> Any:
            return self.map_block(block)

        def finalize(self, state: Any) -> Any:
            return state

    sweep_rows(X, X)(Starts())  # type: ignore[arg-type]
    assert starts == [0, 2048, 4096]
