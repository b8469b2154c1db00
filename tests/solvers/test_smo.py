"""Support vector machines in memory against libsvm, and against what defines them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR, OneClassSVM
from strategies import few_examples, seeds

from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeMismatchError, StreamKernelWarning
from streamkernel.kernels import Gaussian, Linear, Polynomial, Sigmoid
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, OneClass, Pinball
from streamkernel.solvers import SMOSolution, solve_smo
from streamkernel.solvers.margins import _kernel_rows, smo

KERNEL = Gaussian(1.0)
GAMMA = 0.5  # of the same kernel in libsvm
RNG = np.random.default_rng(5)
X = RNG.standard_normal((150, 3))
NUMBERS = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * RNG.standard_normal(150)
SIGNS = (NUMBERS > 0.2).astype(float)


def check(solution: SMOSolution, rows: Any, boxes: smo.Boxes, kernel: Any = KERNEL, tolerance: float = 1e-8) -> None:
    """What makes it the solution: feasible, with the objectives that it names and a gap that its tolerance explains."""
    u, c = solution.duals, solution.coefficients
    assert (u >= boxes.low).all()
    assert (u <= boxes.high).all()
    width = float((boxes.high - boxes.low).sum())
    if boxes.total is None:
        assert solution.offset == 0.0
    else:
        assert u.sum() == pytest.approx(boxes.total, abs=1e-11 * max(width, 1.0))
    f = kernel(rows) @ c
    size = max(1.0, abs(solution.primal))
    total = boxes.total or 0.0
    primal = 0.5 * c @ f + boxes.loss(f + solution.offset) + total * solution.offset
    # A box of 1e8 multiplies the rounding of f.
    assert solution.primal == pytest.approx(primal, rel=1e-9, abs=1e-9 + 1e-14 * width)
    assert solution.dual == pytest.approx((boxes.targets * u).sum() - 0.5 * c @ f, rel=1e-9, abs=1e-9)
    assert solution.converged
    assert solution.violation <= tolerance
    assert -1e-11 * max(size, width) <= solution.gap <= tolerance * width + 1e-9 * size


def test_the_example() -> None:
    """ALGORITHMS 5.3: dual 6.48198, 17 support vectors, b = -.414746."""
    i = np.arange(40)
    rows = np.stack([2 * np.sin(1.7 * i + 0.3), 2 * np.cos(2.3 * i + 0.1)], 1)
    t = np.sin(rows[:, 0]) + 0.5 * rows[:, 1] + 0.1 * np.cos(5 * i) > 0.1
    solution = solve_smo(KERNEL, rows, t, Hinge(1.0), tolerance=1e-9)
    assert solution.dual == pytest.approx(6.48198, abs=5e-6)
    assert solution.offset == pytest.approx(-0.414746, abs=5e-7)
    assert len(solution.vectors) == 17
    check(solution, rows, smo.Boxes.of(Hinge(1.0), t.astype(float), np.ones(40)))


def libsvm(kind: str, C: float, weights: Any = None, rows: Any = X, gamma: float = GAMMA) -> tuple[Any, float]:
    """Coefficients of all rows, and the constant."""
    options: dict[str, Any] = {"gamma": gamma, "tol": 1e-10}
    if kind == "one class":
        machine = OneClassSVM(nu=0.3, **options).fit(rows, sample_weight=weights)
    elif kind == "hinge":
        machine = SVC(C=C, **options).fit(rows, SIGNS[: len(rows)], sample_weight=weights)
    else:
        machine = SVR(C=C, epsilon=0.1, **options).fit(rows, NUMBERS[: len(rows)], sample_weight=weights)
    found = np.zeros(len(rows))
    found[machine.support_] = machine.dual_coef_[0]
    return found, float(machine.intercept_[0])


def problem(kind: str, C: float, weights: Any = None) -> tuple[Any, Any]:
    w = np.ones(150) if weights is None else weights
    if kind == "one class":
        return np.zeros(150), OneClass(1.0 / (0.3 * float(w.sum())))
    return (SIGNS, Hinge(C)) if kind == "hinge" else (NUMBERS, EpsilonInsensitive(C, 0.1))


def dual_of(boxes: smo.Boxes, coefficients: Any, f: Any) -> float:
    """The dual objective of coefficients: those above 0 belong to the first kink, the others to the last."""
    of_targets = np.maximum(coefficients, 0) @ boxes.targets[0] + np.minimum(coefficients, 0) @ boxes.targets[-1]
    return float(of_targets - 0.5 * coefficients @ f)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "C"),
    [("hinge", 0.1), ("hinge", 1.0), ("hinge", 100.0), ("tube", 0.1), ("tube", 10.0), ("one class", 1.0)],
)
def test_libsvm(kind: str, C: float, weighted: bool) -> None:
    weights = RNG.uniform(0.5, 2.0, 150) if weighted else None
    y, loss = problem(kind, C, weights)
    solution = solve_smo(KERNEL, X, y, loss, weights=weights, tolerance=1e-11)
    boxes = smo.Boxes.of(loss, y, np.ones(150) if weights is None else weights)
    check(solution, X, boxes)
    if kind == "one class" and weighted:
        return  # libsvm has nu m in the place of nu sum w
    coefficients, offset = libsvm(kind, C, weights)
    if kind == "one class":
        # libsvm multiplies the objective by nu m.
        coefficients, offset = coefficients / 45.0, offset / 45.0
    f, total = KERNEL(X) @ coefficients, loss.constant_slope
    # libsvm has its kernel values in single precision: the better objectives are ours.
    dual = dual_of(boxes, coefficients, f)
    assert dual - 1e-9 * abs(dual) <= solution.dual == pytest.approx(dual, rel=1e-6)
    assert solution.primal <= (0.5 * coefficients @ f + boxes.loss(f + offset) + total * offset) * (1 + 1e-9)
    np.testing.assert_allclose(KERNEL(X) @ solution.coefficients, f, atol=3e-6 * max(C, 1.0))
    assert solution.offset == pytest.approx(offset, abs=3e-7 * max(C, 1.0))


def test_class_weights_are_row_weights() -> None:
    solution = solve_smo(KERNEL, X, SIGNS, Hinge(2.0), weights=np.where(SIGNS > 0, 3.0, 0.5), tolerance=1e-10)
    machine = SVC(C=2.0, gamma=GAMMA, tol=1e-10, class_weight={0: 0.5, 1: 3.0}).fit(X, SIGNS)
    np.testing.assert_array_equal(solution.vectors, np.sort(machine.support_))
    np.testing.assert_allclose(solution.coefficients[machine.support_], machine.dual_coef_[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["hinge", "tube", "one class"])
def test_integer_weights_are_repeated_rows(kind: str) -> None:
    w = np.arange(150) % 4
    some = np.repeat(np.arange(150), w)
    y, loss = problem(kind, 2.0, w.astype(float))
    weighted = solve_smo(KERNEL, X, y, loss, weights=w, tolerance=1e-11)
    repeated = solve_smo(KERNEL, X[some], y[some], loss, tolerance=1e-11)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-9)
    assert weighted.offset == pytest.approx(repeated.offset, abs=1e-8)
    np.testing.assert_allclose(weighted.coefficients, np.bincount(some, repeated.coefficients, 150), atol=1e-7)


@few_examples(0.5)
@given(seed=seeds, C=st.sampled_from([1e-6, 1.0, 1e6]), kind=st.sampled_from(["hinge", "tube", "pinball"]))
def test_any_order_of_the_rows(seed: int, C: float, kind: str) -> None:
    """With rows that repeat others: the functions are equal, the shares of equal rows need not be."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((30, 2))
    rows[rng.integers(0, 30, 8)] = rows[0]
    y = rng.standard_normal(30) if kind != "hinge" else (rng.standard_normal(30) > 0.3) * 1.0
    loss = {"hinge": Hinge(C), "tube": EpsilonInsensitive(C, 0.2), "pinball": Pinball(C, 0.3)}[kind]
    order = rng.permutation(30)
    # Rounding of f limits the tolerance where C is large.
    tolerance = 1e-9 * max(1.0, C / 100)
    first, other = (solve_smo(KERNEL, rows[o], y[o], loss, tolerance=tolerance) for o in (np.arange(30), order))
    check(first, rows, smo.Boxes.of(loss, y, np.ones(30)), tolerance=tolerance)
    assert first.primal == pytest.approx(other.primal, rel=1e-6, abs=1e-9)
    values = KERNEL(rows, rows[order]) @ other.coefficients
    np.testing.assert_allclose(KERNEL(rows) @ first.coefficients, values, atol=1e-3)


def test_the_same_bits() -> None:
    first, second = (solve_smo(KERNEL, X, NUMBERS, EpsilonInsensitive(3.0, 0.1)) for _ in range(2))
    assert first.duals.tobytes() == second.duals.tobytes()
    assert (first.primal, first.dual, first.offset) == (second.primal, second.dual, second.offset)
    assert pickle.loads(pickle.dumps(first)).gap == first.gap


@pytest.mark.parametrize("kind", ["hinge", "tube", "one class"])
@pytest.mark.parametrize("intercept", [True, False])
def test_little_memory(kind: str, intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets of twenty rows, and seven rows of the kernel matrix in memory: the same machine."""
    y, loss = problem(kind, 5.0)
    dense = solve_smo(KERNEL, X, y, loss, intercept=intercept, tolerance=1e-9)
    monkeypatch.setattr(smo, "_WORKING_ROWS", 20)
    fetched: list[int] = []
    fetch = _kernel_rows.KernelRows.fetch
    monkeypatch.setattr(
        _kernel_rows.KernelRows, "fetch", lambda self, rows: (fetched.append(len(self.values)), fetch(self, rows))[1]
    )
    sparse = solve_smo(KERNEL, X, y, loss, intercept=intercept, tolerance=1e-9, cache_bytes=8 * 150 * 7)
    if kind != "one class" or intercept:
        assert set(fetched) == {7}
    check(sparse, X, smo.Boxes.of(loss, y, np.ones(150), intercept=intercept))
    np.testing.assert_allclose(sparse.coefficients, dense.coefficients, atol=1e-6)
    assert sparse.offset == pytest.approx(dense.offset, abs=1e-7)


def test_no_constant_is_a_machine_of_mirrored_rows() -> None:
    """libsvm always fits a constant; on rows and their mirror images it is 0 (`linalg.box_maximum`)."""
    solution = solve_smo(KERNEL, X, SIGNS, Hinge(2.0), intercept=False, tolerance=1e-10)
    K, both = KERNEL(X), np.concatenate([SIGNS, 1.0 - SIGNS])
    machine = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(np.block([[K, -K], [-K, K]]), both)
    halves = np.zeros(300)
    halves[machine.support_] = machine.dual_coef_[0]
    np.testing.assert_allclose(solution.coefficients, halves[:150] - halves[150:], atol=1e-5)


def test_a_start_is_used() -> None:
    cold = solve_smo(KERNEL, X, SIGNS, Hinge(2.0), tolerance=1e-8)
    again = solve_smo(KERNEL, X, SIGNS, Hinge(2.0), tolerance=1e-8, start=cold.duals)
    assert again.iterations == 0
    warm = solve_smo(KERNEL, X, SIGNS, Hinge(2.2), tolerance=1e-8, start=1.1 * cold.duals)
    assert warm.primal == pytest.approx(solve_smo(KERNEL, X, SIGNS, Hinge(2.2), tolerance=1e-8).primal, rel=1e-7)
    cut = solve_smo(KERNEL, X, SIGNS, Hinge(0.5), tolerance=1e-8, start=cold.duals)
    check(cut, X, smo.Boxes.of(Hinge(0.5), SIGNS, np.ones(150)))


DEGENERATE: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "one row": lambda: (X[:1], [1.0], Hinge(1.0)),
    "two equal rows of two classes": lambda: (X[[0, 0]], [0.0, 1.0], Hinge(1.0)),
    "all rows equal": lambda: (np.ones((40, 2)), SIGNS[:40], Hinge(1.0)),
    "all rows zero": lambda: (np.zeros((40, 2)), NUMBERS[:40], EpsilonInsensitive(1.0, 0.1)),
    "one class alone": lambda: (X, np.ones(150), Hinge(1.0)),
    "the other class alone": lambda: (X, np.zeros(150), Hinge(1.0)),
    "no margin broken": lambda: (X, (X[:, 0] > 0) * 1.0, Hinge(1e8)),
    "a tiny C": lambda: (X, SIGNS, Hinge(1e-12)),
    "a tube around all": lambda: (X, NUMBERS, EpsilonInsensitive(1.0, 50.0)),
    "no tube": lambda: (X, NUMBERS, EpsilonInsensitive(1.0, 0.0)),
    "a constant target": lambda: (X, np.full(150, 7.0), EpsilonInsensitive(1.0, 0.1)),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("intercept", [True, False])
def test_degenerate_rows(case: str, intercept: bool) -> None:
    rows, y, loss = DEGENERATE[case]()
    tolerance = 1e-6 if loss.C > 1e6 else 1e-9
    solution = solve_smo(KERNEL, rows, y, loss, intercept=intercept, tolerance=tolerance)
    boxes = smo.Boxes.of(loss, np.asarray(y, float), np.ones(len(y)), intercept=intercept)
    check(solution, rows, boxes, tolerance=tolerance)
    if case in ("one class alone", "one row") and intercept:
        assert solution.offset == 1.0
        assert len(solution.vectors) == 0
    if case == "no margin broken":
        f = KERNEL(rows) @ solution.coefficients + solution.offset
        np.testing.assert_array_less(1.0 - 1e-5, (2 * np.asarray(y) - 1) * f)


def test_rows_without_weight_are_no_rows() -> None:
    w = (np.arange(150) % 3 > 0).astype(float)
    with_them = solve_smo(KERNEL, X, SIGNS, Hinge(1.0), weights=w, tolerance=1e-10)
    without = solve_smo(KERNEL, X[w > 0], SIGNS[w > 0], Hinge(1.0), tolerance=1e-10)
    assert (with_them.coefficients[w == 0] == 0.0).all()
    np.testing.assert_allclose(with_them.coefficients[w > 0], without.coefficients, atol=1e-8)
    nothing = solve_smo(KERNEL, X, SIGNS, Hinge(1.0), weights=np.zeros(150))
    assert (nothing.primal, nothing.dual, nothing.offset, nothing.relative_gap) == (0.0, 0.0, 0.0, 0.0)


def test_one_class_leaves_its_share_outside() -> None:
    solution = solve_smo(KERNEL, X, np.zeros(150), OneClass(1.0 / (0.2 * 150)), tolerance=1e-10)
    f = KERNEL(X) @ solution.coefficients + solution.offset
    assert (f < -1e-7).mean() <= 0.2 <= len(solution.vectors) / 150


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2)])
def test_other_kernels(kernel: Any) -> None:
    solution = solve_smo(kernel, X, SIGNS, Hinge(0.1), tolerance=1e-8)
    check(solution, X, smo.Boxes.of(Hinge(0.1), SIGNS, np.ones(150)), kernel)


def test_single_precision_rows() -> None:
    solution = solve_smo(KERNEL, X.astype(np.float32), SIGNS, Hinge(1.0), tolerance=1e-8)
    np.testing.assert_allclose(
        solution.coefficients, solve_smo(KERNEL, X, SIGNS, Hinge(1.0), tolerance=1e-8).coefficients, atol=1e-4
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": SIGNS[:10]}, ShapeMismatchError, "y has shape"),
        ({"weights": -np.ones(150)}, ParameterError, "weights has a number below 0, first in row 0"),
        ({"weights": np.full(150, np.nan)}, NonFiniteDataError, "weights holds NaN"),
        ({"y": np.full(150, np.inf)}, NonFiniteDataError, "y holds NaN or infinity"),
        ({"tolerance": 0.0}, ParameterError, "tolerance = 0.0 is out of range"),
        ({"most_steps": 0}, ParameterError, "most_steps = 0 is out of range"),
        ({"loss": OneClass(1e-9)}, ParameterError, r"have the sum 1: their boxes add up to \[0, 1\.5e-07\]"),
        ({"kernel": Sigmoid()}, ParameterError, "not positive semi-definite"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"kernel": KERNEL, "X": X, "y": SIGNS, "loss": Hinge(1.0), **change}
    with pytest.raises(error, match=words):
        solve_smo(**arguments)


def test_too_few_steps_are_told() -> None:
    with pytest.warns(StreamKernelWarning, match="5 steps ended at a violation of"):
        solution = solve_smo(KERNEL, X, SIGNS, Hinge(1.0), most_steps=5)
    assert not solution.converged
    assert solution.dual < solution.primal


REAL = ["a9a", "covtype-subset", "spambase", "ringnorm", "california-housing"]


@pytest.mark.parametrize("name", REAL)
def test_libsvm_on_real_tables(name: str, shared_data: Any) -> None:
    real = shared_data(name)
    order = np.random.default_rng(0).permutation(len(real["X"]))[:2000]
    rows = real["X"][order].astype(float)
    rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-9)
    p, y = rows.shape[1], real["y"][order].astype(float)
    machine: Any
    if name == "california-housing":
        y = (y - y.mean()) / y.std()
        loss: Any = EpsilonInsensitive(1.0, 0.1)
        machine = SVR(C=1.0, epsilon=0.1, gamma=0.5 / p, tol=1e-9).fit(rows, y)
    else:
        y = (y == (2 if name == "covtype-subset" else y.max())).astype(float)
        loss = Hinge(1.0)
        machine = SVC(C=1.0, gamma=0.5 / p, tol=1e-9).fit(rows, y)
    solution = solve_smo(Gaussian(p**0.5), rows, y, loss, tolerance=1e-9)
    coefficients = np.zeros(2000)
    coefficients[machine.support_] = machine.dual_coef_[0]
    f = Gaussian(p**0.5)(rows) @ np.stack([coefficients, solution.coefficients], 1)
    np.testing.assert_allclose(f[:, 1], f[:, 0], atol=1e-5)
    assert solution.offset == pytest.approx(machine.intercept_[0], abs=1e-5)
    dual = dual_of(smo.Boxes.of(loss, y, np.ones(2000)), coefficients, f[:, 0])
    assert solution.dual == pytest.approx(dual, rel=1e-6)
    assert 0.0 <= solution.relative_gap <= 1e-6


def test_the_cache_is_bounded() -> None:
    rows = _kernel_rows.KernelRows(KERNEL, X, 8 * 150 * 5)
    assert rows.values.shape == (5, 150)
    K = KERNEL(X)
    for wanted in ([0, 1], [2, 3], [1, 4], [0, 2], [149, 7], [1, 0]):
        np.testing.assert_array_equal(rows.get(np.array(wanted)), K[wanted])
        held = np.flatnonzero(rows.slots >= 0)
        np.testing.assert_array_equal(rows.values[rows.slots[held]], K[held])
    # The rows used longest ago, 2 and 149, 7 but not 1, made room.
    assert {0, 1, 149, 7} <= set(np.flatnonzero(rows.slots >= 0).tolist())
