"""One factor of the `factor` benchmark in a process of its own: seconds, peak memory, residual trace."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import numpy as np

from streamkernel import factorize


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    return _in_memory(**arguments) if "memory" in arguments else _on_disk(**arguments)


def _options(n: int, p: int) -> dict[str, Any]:
    return {"n_components": n, "lengthscale": float(np.sqrt(p)), "scale": "none"}


def _on_disk(store: str, out: str, n: int, dtype: str) -> dict[str, Any]:
    factor = factorize(store, out, dtype=dtype, overwrite=True, **_options(n, 20))
    run = factor.config["run"]
    shutil.rmtree(out)
    return {
        "seconds": run["seconds"],
        "write": run["sweeps"][-1]["seconds"],
        "peak": run["peak_memory_bytes"],
        "planned": run["planned_memory_bytes"],
        "residual": factor.relative_residual_trace,
    }


def _in_memory(memory: int, p: int, n: int, rule: str, seed: int) -> dict[str, Any]:
    X = np.random.default_rng(0).standard_normal((memory, p), dtype=np.float32)
    factor = factorize(X, None, rule=rule, random_state=seed, **_options(n, p))
    return {"seconds": factor.config["run"]["seconds"], "residual": factor.relative_residual_trace}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
