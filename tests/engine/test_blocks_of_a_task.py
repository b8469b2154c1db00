"""The blocks of a task are computed in one memory, and no state depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import basis_of

from streamkernel.basis import Basis
from streamkernel.engine._state_memory import StateMemory
from streamkernel.engine._tasks import map_span
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Both
from streamkernel.reductions.pools import PoolColumns, PoolGram
from streamkernel.reductions.pools.largest_residuals import LargestResiduals
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import open_table


def sums_of(name: str, X: Any) -> Any:
    kernel = Gaussian(2.0)
    basis, pool = (Basis(kernel, X[rows], np.arange(len(X))[rows]) for rows in (slice(12), slice(12, 30)))
    if name == "normal equations":
        return NormalEquations.of(basis, np.zeros(1), len(X))
    return PoolGram(PoolColumns(basis, pool, np.zeros(1), np.dtype(np.float64)))


@pytest.mark.parametrize("name", ["normal equations", "pool"])
def test_blocks_share_their_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    work, places = sums_of(name, X), []
    module = "streamkernel.reductions." + ("sums.normal_equations" if name == "normal equations" else "pools.pool")
    add = __import__(module, fromlist=["syrk"]).syrk

    def noted(K: Any, **options: Any) -> None:
        places.append(K.ctypes.data)
        add(K, **options)

    monkeypatch.setattr(f"{module}.syrk", noted)
    state = map_span(open_table(X, X[:, 0]), work, (0, 200), 64)
    assert len(places) > 2
    assert len(set(places)) == 1
    apart = [map_span(open_table(X, X[:, 0]), work, span, 64) for span in ((0, 100), (100, 200))]
    whole = work.combine(*apart)
    for key, values in state.items():
        np.testing.assert_allclose(values, whole[key], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["normal equations", "pool"])
def test_states_of_a_task_are_added_in_place_with_the_same_bits(name: str) -> None:
    X = np.random.default_rng(1).standard_normal((200, 3))
    work, table = sums_of(name, X), open_table(X, X[:, 0])
    left, right = (map_span(table, work, span, 64) for span in ((0, 100), (100, 200)))
    wanted = work.combine(left, right)
    before = {key: values.ctypes.data for key, values in left.items()}
    found = work.absorb(left, right)
    for key, values in found.items():
        np.testing.assert_array_equal(values, wanted[key])
        assert values.ctypes.data == before[key]


@pytest.mark.parametrize("second", ["pool", "largest residuals"])
def test_of_a_pair_the_part_that_adds_arrays_is_added_in_place(second: str) -> None:
    """A part that holds arrays of the right state keeps their memory from being used again."""
    X = np.random.default_rng(1).standard_normal((200, 3))
    basis = basis_of(X, range(4))
    other = sums_of(second, X) if second == "pool" else LargestResiduals(basis, 3)
    work, table = Both(sums_of("normal equations", X), other), open_table(X, X[:, 0])
    left, right = (map_span(table, work, span, 64) for span in ((0, 100), (100, 200)))
    wanted = work.combine(left, right)
    before = {key: values.ctypes.data for key, values in left.items()}
    memory = StateMemory(work)
    found = memory.absorb(left, right)
    assert (found is left) == (second == "pool")
    for key, values in found.items():
        np.testing.assert_array_equal(values, wanted[key])
        if key.startswith("first_") or second == "pool":
            assert values.ctypes.data == before[key]
    empty = memory.empty()
    if second == "pool":
        assert empty is not None
        assert {values.ctypes.data for values in empty.values()} == {values.ctypes.data for values in right.values()}
        assert not any(values.any() for values in empty.values())
    else:
        assert empty is None or not {id(values) for values in empty.values()} & {id(v) for v in right.values()}
