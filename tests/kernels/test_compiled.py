"""Numba's cache: damaged, it is cleared once; the loops are vector code."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streamkernel.kernels.loops import _loops, _tile
from streamkernel.kernels.names import TRANSFORMS

# The smaller one of the two functions, so that compiling it three times takes seconds.
PROGRAM = """
import warnings
import numpy as np
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels.loops.compiled import NORMS, norms
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    total = 0.0
    for dtype in (np.float32, np.float64):
        rows, out = np.random.default_rng(0).standard_normal((12, 20)).astype(dtype), np.zeros(12, dtype)
        norms(rows, out)
        total += float(out.sum())
ours = sum(issubclass(w.category, StreamKernelWarning) for w in caught)
hits = sum(sum(NORMS.of(dtype).stats.cache_hits.values()) for dtype in NORMS.signatures)
print(ours, len(caught), hits, total)
"""


def run(cache: Path, program: str = PROGRAM) -> list[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(_loops.__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
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


WRITER = """
import warnings
import numpy as np
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels.loops.compiled import writer_of
from streamkernel.kernels.loops.formula import EXP
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    write = writer_of(EXP).of(np.dtype(np.float32))
    assert write.address
print(sum(issubclass(w.category, StreamKernelWarning) for w in caught), write.cache_hits)
"""


@pytest.mark.slow
def test_a_damaged_writer_is_compiled_again(tmp_path: Path) -> None:
    assert run(tmp_path, WRITER) == ["0", "0"]
    for suffix in (".nbc", ".nbi"):
        (damaged,) = (path for path in tmp_path.rglob("*") if path.suffix == suffix)
        damaged.write_bytes(damaged.read_bytes()[:40])
        assert run(tmp_path, WRITER) == ["1", "0"]
    assert run(tmp_path, WRITER) == ["0", "1"]


def test_no_folder_for_a_cache_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(blocked / "cache")[:2] == ["0", "0"]


# What LLVM is told of a processor, and the registers that its vectors should be in. Nothing is run: any x86 machine
# compiles for all of them.
PROCESSORS = {
    "haswell": ("+avx,+avx2,+fma", "ymm"),
    "sapphirerapids": ("+avx,+avx2,+fma,+avx512f,+avx512vl", "zmm"),
    "znver4": ("+avx,+avx2,+fma,+avx512f,+avx512vl", "zmm"),
}

# Each loop, and what there is nowhere else in it.
HOT_LOOPS = {
    "write_decreasing": ["vpslld", "vfmadd"],
    "write_order_one_half": ["vpslld", "vsqrtps"],
    "write_slope_of_one_half": ["vpslld", "vsqrtps", "vdivps"],
    "write_order_three_halves": ["vpslld", "vsqrtps"],
    "write_order_five_halves": ["vpslld", "vsqrtps"],
    "write_power_of_distance": ["vpslld", "vdivps"],
    "raise_to_degree": ["vfmadd", "vmulps"],
    "write_order_zero": ["vdivps", "vsqrtps"],
    "write_order_one": ["vdivps", "vsqrtps"],
    "write_order_two": ["vdivps", "vsqrtps"],
    "signed_values": ["vcmp", "vsub"],
    "cosines": ["vdivps", "vsqrtps"],
    "half_angles": ["vdivps"],
    "cosines_and_sines": ["vfmadd", "vcmp"],
}

# Transforms of squared distances, and the loop of each. To compile one takes most of a second: the first ones have what
# there is in any of them, an exponential, a root, a quotient, a power and polynomials.
FIRST = {
    "decreasing": "write_decreasing",
    "slope_of_one_half": "write_slope_of_one_half",
    "as_it_is": "raise_to_degree",
    "order_two": "write_order_two",
}
OTHERS = {
    name: f"write_{name}"
    for name in (
        "order_one_half",
        "order_three_halves",
        "order_five_halves",
        "power_of_distance",
        "order_zero",
        "order_one",
    )
}

# cfunc's own function has no `inspect_asm`.
ASSEMBLY = """
import sys
from numba import float32, float64, int64, njit
from streamkernel.kernels.loops.functions import OPTIONS
from streamkernel.kernels.loops._loops import cosines, cosines_and_sines, half_angles, signed_values
from streamkernel.kernels.loops._writer import writer, writer_signature
from streamkernel.kernels.names import TRANSFORMS
for transform in TRANSFORMS:
    if transform.value.__name__ not in sys.argv[1:]:
        continue
    write = njit(**OPTIONS)(writer(0, transform.value, transform.power))
    write.compile(writer_signature(float32))
    print(next(iter(write.inspect_asm().values())))
tile, whole = float32[::1], int64
block = float32[:, ::1]
for function, signature in (
    (cosines, (tile, whole, whole, tile, tile)),
    (half_angles, (tile, tile, whole)),
    (signed_values, (block, tile, tile, block)),
    (cosines_and_sines, (float64[::1], float64, float64, float64[::1], float64[::1])),
):
    function.compile(signature)
    print(next(iter(function.inspect_asm().values())))
"""


def functions_of(assembly: str) -> dict[str, list[str]]:
    """The lines of each function of an assembly text."""
    functions: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in assembly.splitlines():
        label = re.match(r"([A-Za-z_]\S*):$", line)
        if label:
            lines = functions.setdefault(label[1], [])
        lines.append(line)
    return functions


@pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM is asked for the instructions of x86 processors")
@pytest.mark.parametrize(
    ("processor", "transforms"),
    # The quick one is of those for which LLVM prefers halves of its registers.
    [
        pytest.param("sapphirerapids", FIRST, id="sapphirerapids-first"),
        *(pytest.param(each, FIRST | OTHERS, id=f"{each}-all", marks=pytest.mark.slow) for each in PROCESSORS),
    ],
)
def test_the_hot_loops_are_vector_code_of_full_width(processor: str, transforms: dict[str, str]) -> None:
    features, register = PROCESSORS[processor]
    environment = {**os.environ, "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}
    command = [sys.executable, "-c", ASSEMBLY, *transforms]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    functions = functions_of(done.stdout)
    every = {name.value.__name__ for name in TRANSFORMS}
    assert every == FIRST.keys() | OTHERS.keys()
    left_out = set() if transforms == FIRST | OTHERS else set(OTHERS.values())
    for name, instructions in HOT_LOOPS.items():
        if name in left_out:
            continue
        lines = next(lines for label, lines in functions.items() if re.search(rf"\d{name}B", label))
        for instruction in instructions:
            assert any(instruction in line and register in line for line in lines), (name, instruction)
        assert not any("gatherqps" in line or "expf" in line or "logf" in line for line in lines), name


def test_panels_are_whole_vectors() -> None:
    for dtype in (np.float32, np.float64):
        assert _tile.columns(np.dtype(dtype)) * np.dtype(dtype).itemsize == _tile.VECTORS * _tile.VECTOR_BYTES
