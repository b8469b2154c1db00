"""The environment in which all libraries take another processor for this one: scripts/test --processor NAME.

Other instructions give sums other last digits, and what a test asserts must not depend on them. Prints a line
VARIABLE=VALUE each, after a look at whether OpenBLAS and NumPy obey them here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import llvmlite.binding


@dataclass(frozen=True)
class Processor:
    """What each library calls a processor and its instructions.

    needs : features that this machine must have, by LLVM's names.
    numba : True to compile for these features and for no other.
    openblas : kernels of OpenBLAS.
    numpy : groups of instructions that NumPy may use, in the words of all its versions.
    libm : instructions that the functions of the C library must not use, by glibc's names.
    """

    needs: tuple[str, ...]
    numba: bool
    openblas: str
    numpy: tuple[str, ...]
    libm: tuple[str, ...]


_OLD = ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "POPCNT", "SSE42", "X86_V2")
PROCESSORS = {
    # AVX2 and no AVX-512, as most machines.
    "haswell": Processor(
        ("avx", "avx2", "fma"), True, "Haswell", (*_OLD, "AVX", "F16C", "FMA3", "AVX2", "X86_V3"), ("AVX512F",)
    ),
    # No fused products and sums either: the digits differ most. Those of our loops do not, which ask for fused products
    # by name; without the instruction each is a call, and a fit takes a hundred times as long.
    "nehalem": Processor(("sse4.2",), False, "Nehalem", _OLD, ("AVX512F", "AVX2", "FMA", "FMA4")),
}
_DISABLED = "NPY_DISABLE_CPU_FEATURES"

_LOOK = """
import json, numpy, scipy.linalg
from threadpoolctl import threadpool_info
kernels = {each["architecture"] for each in threadpool_info() if each["internal_api"] == "openblas"}
print(json.dumps([sorted(kernels), numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", [])]))
"""


def used(variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The kernels of OpenBLAS and the instructions of NumPy that a process with these variables uses."""
    ours = {name: value for name, value in os.environ.items() if name != _DISABLED} | dict(variables)
    # NumPy warns of features that it does not know, or that the machine has not: no test would pass.
    command = [sys.executable, "-W", "error", "-c", _LOOK]
    kernels, found = json.loads(subprocess.run(command, env=ours, stdout=subprocess.PIPE, check=True).stdout)
    return kernels, found


def environment(name: str) -> dict[str, str]:
    """The variables for the processor of this name."""
    chosen = PROCESSORS[name]
    variables = {
        "OPENBLAS_CORETYPE": chosen.openblas,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-{each}" for each in chosen.libm),
    }
    if chosen.numba:
        variables["NUMBA_CPU_NAME"], variables["NUMBA_CPU_FEATURES"] = (
            name,
            ",".join(f"+{each}" for each in chosen.needs),
        )
    surplus = [each for each in used({})[1] if each not in chosen.numpy]
    return variables | ({_DISABLED: ",".join(surplus)} if surplus else {})


def refusal(name: str, variables: Mapping[str, str]) -> str:
    """Why this machine cannot imitate the processor; empty if it can."""
    chosen, features = PROCESSORS[name], llvmlite.binding.get_host_cpu_features()
    missing = [each for each in chosen.needs if not features.get(each)]
    if missing:
        return f"this machine has no {', '.join(missing)}"
    kernels, found = used(variables)
    if kernels != [chosen.openblas]:
        return f"the BLAS of NumPy or SciPy is not OpenBLAS with the kernels of {chosen.openblas}"
    surplus = [each for each in found if each not in chosen.numpy]
    return f"NumPy uses {', '.join(surplus)} all the same" if surplus else ""


def main(name: str) -> int:
    if name not in PROCESSORS:
        print(f"no processor {name!r}; choose one of {', '.join(PROCESSORS)}", file=sys.stderr)
        return 2
    variables = environment(name)
    reason = refusal(name, variables)
    if reason:
        print(f"this machine cannot imitate {name}: {reason}", file=sys.stderr)
        return 1
    for variable, value in variables.items():
        print(f"{variable}={value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
