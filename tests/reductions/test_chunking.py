"""The contract of every reduction: any way to cut the rows is one block; arguments are left alone."""

from __future__ import annotations

import copy
import inspect
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, Float, blocks
from reduction_rows.common import X64, Make
from reduction_rows.pools import POOLS
from reduction_rows.scores import SCORES
from reduction_rows.steps import STEPS
from reduction_rows.sums import SUMS
from strategies import cuts, few_examples, rows, seeds

from streamkernel.reductions import Reduction, State, contract

REDUCTIONS: dict[str, Make] = {**SUMS, **POOLS, **STEPS, **SCORES}
TOLERANCE = {"pool, single precision": 1e-4}
# By contract the left state holds the rows before the right one's: here that is made use of.
ORDERED = {"gather", "clusters", "count repeats", "both"}
# Their targets must not be negative; must be one column of 0 and 1; their rows have no weights.
COUNTS = {"count scores"}
LABELS = {"dictionary, logistic", "newton step", "gradient step", "generalised members", "svm members"}
UNWEIGHTED = {"member weights"}


@st.composite
def cases(draw: st.DrawFn) -> tuple[X64, Float, Float | None, list[int], tuple[int, ...]]:
    """Rows in float64 with 1 to 3 targets, perhaps weights, some rows as points, and a way to cut them."""
    X = draw(rows(min_rows=4, max_rows=40, dtype=FLOAT64))
    rng = np.random.default_rng(draw(seeds))
    Y = rng.standard_normal((len(X), draw(st.integers(1, 3))))
    weights = rng.uniform(0.1, 3.0, len(X)) if draw(st.booleans()) else None
    # Distinct points: rows may be duplicates, and a basis of duplicates is no basis.
    _, first = np.unique(X, axis=0, return_index=True)
    chosen = rng.permutation(first)[:4].tolist()
    return X, Y, weights, chosen, draw(cuts(len(X)))


def suited(name: str, case: Any) -> Any:
    """The case with targets and weights of the kind that `name` takes."""
    X, Y, *rest = case
    if name in LABELS:
        Y = (Y[:, :1] > 0) * 1.0
    if name in UNWEIGHTED and rest:
        rest[0] = None
    return X, np.abs(Y) if name in COUNTS else Y, *rest


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"": value}
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple):
        return {str(position): each for position, each in enumerate(value)}
    return {name: getattr(value, name) for name in getattr(type(value), "__dataclass_fields__", {})}


def assert_equal(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    """Results equal up to `tolerance` of their size; a triangular factor by what it is the root of."""
    a, b = _plain(left), _plain(right)
    assert a.keys() == b.keys()
    if "U" in a:
        for root in (a, b):
            root |= {name: root[name].T @ root[name] for name in ("U", "check")}
    if "R_R" in a:
        for root in (a, b):
            G, R, Y = root.pop("G_R"), root.pop("R_R"), root.pop("R_Y")
            root |= {"C": G.T @ G + R.T @ R, "D": R.T @ Y, "B": R.T @ R}
    if "roots" in a:
        for root in (a, b):
            first, second = root.pop("roots")
            root |= {"C": first.T @ first, "D": second.T @ second, "B": first.T @ second}
            root |= dict(zip("ST", root.pop("residuals"), strict=True))
    for name in a:
        if not isinstance(a[name], np.ndarray) and _plain(a[name]):
            assert_equal(a[name], b[name], tolerance)
        elif a[name] is not None:
            one, other = np.asarray(a[name]), np.asarray(b[name])
            size = max(1.0, float(np.abs(one).max(initial=0.0)))
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * size, err_msg=name)


def _digest(state: State) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in state.items()}


@pytest.mark.parametrize("name", REDUCTIONS)
@few_examples(0.25)
@given(case=cases(), data=st.data())
def test_any_chunking_is_one_chunk(name: str, case: Any, data: st.DataObject) -> None:
    """In any order and block by block; no argument changes, and equal blocks give equal bits."""
    X, Y, weights, chosen, chunks = suited(name, case)
    reduction, tolerance = REDUCTIONS[name](X, Y, chosen), TOLERANCE.get(name, 1e-10)
    expected = reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)], weights))))
    parts = list(blocks(X, Y, chunks, weights))
    before_parts = copy.deepcopy(parts)
    states = [reduction.map_block(block) for block in parts]
    before = [_digest(state) for state in states]

    folded = reduction.map_block(parts[0])
    for block in parts[1:]:
        folded = reduction.fold(folded, block)
    combined = {
        "from the left": reduce(reduction.combine, states),
        "from the right": reduce(lambda right, left: reduction.combine(left, right), states[::-1]),
        "folded": folded,
    }
    if name not in ORDERED:
        combined["shuffled"] = reduce(reduction.combine, data.draw(st.permutations(states)))
    for state in combined.values():
        # A state of one chunk is the argument itself; finalize may use it up.
        assert_equal(reduction.finalize(copy.deepcopy(state)), expected, tolerance)

    assert [_digest(state) for state in states] == before
    assert before == [_digest(reduction.map_block(block)) for block in parts]
    for block, original in zip(parts, before_parts, strict=True):
        np.testing.assert_array_equal(block.X, original.X)
        np.testing.assert_array_equal(block.Y, original.Y)


def _subclasses(kind: type) -> set[type]:
    return {found for child in kind.__subclasses__() for found in (child, *_subclasses(child))}


def test_every_reduction_has_a_row() -> None:
    X = np.random.default_rng(0).standard_normal((9, 2))
    made = {type(make(X, X, [0, 1, 2, 3])) for make in REDUCTIONS.values()}
    ours = {kind for kind in _subclasses(Reduction) if kind.__module__.startswith("streamkernel.reductions.")}
    assert {kind for kind in ours if not inspect.isabstract(kind)} == made


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_plan_knows_the_size_of_a_state(name: str) -> None:
    rng = np.random.default_rng(0)
    X, Y = suited(name, (rng.standard_normal((400, 4)), rng.standard_normal((400, 2))))
    reduction = REDUCTIONS[name](X, Y, list(range(40)))
    state = reduction.map_block(next(blocks(X, Y, [400])))
    held = sum(values.nbytes for values in state.values())
    assert held <= reduction.state_bytes() == reduction.share_bytes(1.0)
    assert 0 <= reduction.share_bytes(0.0) <= reduction.share_bytes(0.5) <= reduction.state_bytes()
    assert reduction.scratch_bytes(400) >= 0
    assert reduction.flops_per_row() > 0


@pytest.mark.parametrize("name", REDUCTIONS)
def test_sealed_states_have_the_same_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed state has the upper triangles alone: nothing reads what is below, and the plan knows its bytes."""
    monkeypatch.setattr(contract, "_LEAST_SEALED", 1)
    rng = np.random.default_rng(1)
    X, Y = suited(name, (rng.standard_normal((60, 4)), rng.standard_normal((60, 2))))
    reduction = REDUCTIONS[name](X, Y, list(range(9)))
    states = [reduction.map_block(block) for block in blocks(X, Y, [25, 35])]
    expected = reduction.finalize(copy.deepcopy(reduction.combine(*states)))
    for state in states:
        sealed = sum(values.nbytes for values in reduction.sealed(dict(state)).values())
        assert sum(values.nbytes for values in state.values()) - sealed == reduction.lower_bytes
        assert reduction.symmetric <= state.keys()
        for array in reduction.symmetric:
            state[array][..., *np.tril_indices(state[array].shape[-1], -1)] = np.nan
    left, right = (reduction.sealed(state) for state in states)
    found = reduction.finalize(reduction.opened(reduction.combine(left, right)))
    assert_equal(found, expected, 0.0)
    assert reduction.sealed_bytes() == reduction.state_bytes() - reduction.lower_bytes


# Triangular factors, whose sum is one of both; products of a dictionary, which have three forms (`inner_products`);
# a gradient by the basis points, which one kind of evidence alone has.
NOT_SYMMETRIC = {
    "pool root": {"root"},
    "pool root, centred": {"root"},
    "cross pool": {"root"},
    "dictionary": {"fit", "check"},
    "dictionary, whitened": {"fit", "check"},
    "dictionary, logistic": {"fit", "check"},
    "evidence gradient, fitc": {"E"},
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_symmetric_sums_are_named(name: str) -> None:
    """A state that grows with the square of the functions waits and travels sealed."""
    rng = np.random.default_rng(2)
    X, Y = suited(name, (rng.uniform(-9.0, 9.0, (400, 4)), rng.uniform(-9.0, 9.0, (400, 2))))
    reduction = REDUCTIONS[name](X, Y, list(range(40)))
    state = reduction.map_block(next(blocks(X, Y, [400])))
    square = {key for key, values in state.items() if values.ndim > 1 and 20 < values.shape[-1] == values.shape[-2]}
    assert square - reduction.symmetric == NOT_SYMMETRIC.get(name, set())
