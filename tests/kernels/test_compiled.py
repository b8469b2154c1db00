"""Numba's cache: damaged, it is cleared once; the loops are vector code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import float32, njit

from streamkernel.kernels import _loops, _tile

PROGRAM = """
import sys, warnings
import numpy as np
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import Gaussian, _loops
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    X = np.random.default_rng(0).standard_normal((50, 20)).astype(np.float32)
    K = Gaussian(3.0)(X)
ours = sum(issubclass(w.category, StreamKernelWarning) for w in caught)
hits = sum(sum(f.stats.cache_hits.values()) for f in (_loops.fill, _loops.norms))
print(ours, len(caught), hits, float(K.astype(np.float64).sum()))
"""


def run(cache: Path) -> list[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(_loops.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_is_cleared_once(suffix: str, tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first[:3] == ["0", "0", "0"]
    damaged = [path for path in tmp_path.rglob("*") if path.suffix == suffix]
    assert damaged
    for k, path in enumerate(damaged):
        content = path.read_bytes()
        path.write_bytes(content[: (len(content) // 2) * (k % 2)])  # empty ones and half ones
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


def test_the_hot_loops_are_vector_code() -> None:
    compiled = njit(**_loops.INNER)(_loops.write.py_func)
    kind = float32
    from numba import types

    compiled.compile(
        types.void(
            types.int64,
            types.UniTuple(kind, 7),
            types.int64,
            kind[::1],
            kind[::1],
            types.int64,
            types.bool_[::1],
            kind[:, ::1],
            types.int64,
            types.int64,
            types.int64,
        )
    )
    (assembly,) = compiled.inspect_asm().values()
    register = {64: "zmm", 32: "ymm"}.get(_tile.VECTOR_BYTES)
    if register is None:
        pytest.skip("no wide vectors on this processor")
    lines = assembly.splitlines()
    for instruction in ("vpslld", "vsqrtps", "vdivps", "vfmadd"):
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
