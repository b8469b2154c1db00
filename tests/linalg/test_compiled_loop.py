"""Loops that Numba compiles: a cache that cannot be written or read costs time, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, types

from streamkernel.linalg import _compiled_loop
from streamkernel.linalg._compiled_loop import CompiledLoop

TWICE = types.float64(types.float64)


def twice(x: float) -> float:
    return 2.0 * x


def test_no_folder_for_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_cache(*given: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("no locator available")
        return njit(*given, **options)

    monkeypatch.setattr(_compiled_loop, "njit", no_cache)
    assert CompiledLoop(twice, TWICE).compiled()(3.0) == 6.0


def test_damaged_compiled_code() -> None:
    """A truncated file of Numba's cache: the loop is compiled for this process."""

    class Damaged:
        py_func = staticmethod(twice)

        def compile(self, _: Any) -> None:
            raise EOFError("Ran out of input")

    loop = CompiledLoop(twice, TWICE)
    loop._loop = Damaged()
    assert loop.compiled()(np.float64(3.0)) == 6.0


def test_an_error_of_the_code_is_not_taken_for_a_damaged_cache() -> None:
    def broken(x: float) -> float:
        return x + "text"  # type: ignore[operator]

    with pytest.raises(_compiled_loop.NumbaError):
        CompiledLoop(broken, TWICE).compiled()
