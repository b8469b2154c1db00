"""Numba's cache: damaged, it is cleared once; the loops are vector code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import float32, njit, types

from streamkernel.kernels import _loops, _tile

# The smaller one of the two functions, so that compiling it three times takes seconds.
PROGRAM = """
import warnings
import numpy as np
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import _loops
from streamkernel.kernels._compiled import compiled
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    total = 0.0
    for dtype in (np.float32, np.float64):
        rows, out = np.random.default_rng(0).standard_normal((12, 20)).astype(dtype), np.zeros(12, dtype)
        compiled.norms(rows, out)
        total += float(out.sum())
ours = sum(issubclass(w.category, StreamKernelWarning) for w in caught)
hits = sum(_loops.norms.stats.cache_hits.values())
print(ours, len(caught), hits, total)
"""


def run(cache: Path) -> list[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(_loops.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("suffix", "share"),
    [(".nbc", 0.5), (".nbc", 0.0), (".nbi", 0.0), (".nbi", 0.5)],
)
@pytest.mark.slow
def test_a_damaged_cache_is_cleared_once(suffix: str, share: float, tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first[:3] == ["0", "0", "0"]
    damaged = [path for path in tmp_path.rglob("*") if path.suffix == suffix]
    assert damaged
    for path in damaged:
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
    recovered = run(tmp_path)
    assert recovered[:3] == ["1", "1", "0"]
    assert recovered[3] == first[3]
    assert run(tmp_path) == ["0", "0", "2", first[3]]  # and the new cache is good


def test_no_folder_for_a_cache_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(blocked / "cache")[:2] == ["0", "0"]


def test_without_any_cache_the_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locator(**options: object) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(_loops, "njit", no_locator)
    norms, _ = _loops.entry_points(0)
    rows, out = np.ones((6, 5)), np.zeros(6)
    norms(rows, out)
    assert np.all(out == 5)


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("write_exponential", ["vpslld", "vfmadd"]),
        ("write_matern12", ["vpslld", "vsqrtps"]),
        ("write_matern32", ["vpslld", "vsqrtps"]),
        ("write_matern52", ["vpslld", "vsqrtps"]),
        ("write_rational", ["vpslld", "vdivps"]),
    ],
)
def test_the_hot_loops_are_vector_code(name: str, instructions: list[str]) -> None:
    register = {64: "zmm", 32: "ymm"}.get(_tile.VECTOR_BYTES)
    if register is None:
        pytest.skip("no wide vectors on this processor")
    compiled = njit(**_loops.INNER)(getattr(_loops, name).py_func)
    number, vector = types.int64, float32[::1]
    constants = types.UniTuple(float32, 7)
    where = (float32[:, ::1], number, number)
    compiled.compile(types.void(vector, number, number, types.bool_[::1], number, *where, constants))
    lines = next(iter(compiled.inspect_asm().values())).splitlines()
    for instruction in instructions:
        assert any(instruction in line and register in line for line in lines), instruction
    assert not any("gatherqps" in line or "expf" in line or "logf" in line for line in lines)


def test_the_cache_knows_the_source() -> None:
    version = _loops.source_version()
    assert version == _loops.source_version() >= 0
    for function in (_loops.norms, _loops.fill):
        assert version in [cell.cell_contents for cell in function.py_func.__closure__]


def test_panels_are_whole_vectors() -> None:
    for dtype in (np.float32, np.float64):
        assert _tile.columns(np.dtype(dtype)) * np.dtype(dtype).itemsize == _tile.VECTORS * _tile.VECTOR_BYTES
