"""Kernel blocks: ns per entry against np.dot + np.exp on one core, and where inner products overtake differences.

NumPy's way is |x|^2 + |z|^2 - 2 X Z^T and np.exp, in the rows' dtype, in place in one preallocated block: the fastest
way to write it. Both write the same block, turn about, so that a busy neighbour slows both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
from _report import at_least, main, unasked
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from streamkernel.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from streamkernel.kernels.loops import prepared

N_ROWS, N_POINTS = 2048, 1000
FEATURES = (1, 2, 4, 8, 20, 54, 56, 100, 300, 784)
# Issue 2: at least this many times faster than NumPy in float32.
FLOORS = {8: 2.0, 20: 2.0, 54: 1.5}


@contextmanager
def one_core() -> Iterator[None]:
    """This process on one processor, BLAS with one thread."""
    affinity = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(affinity)})
        with threadpool_limits(1):
            yield
    finally:
        os.sched_setaffinity(0, affinity)


def numpy_block(X: NDArray[Any], Z: NDArray[Any], gamma: float, out: NDArray[Any]) -> None:
    """``exp(-gamma |x - z|^2)`` with np.dot and np.exp."""
    np.dot(X, Z.T, out=out)
    out *= -2
    out += np.einsum("ij,ij->i", X, X)[:, None]
    out += np.einsum("ij,ij->i", Z, Z)
    out *= X.dtype.type(-gamma)
    np.exp(out, out=out)


def nanoseconds(functions: list[Callable[[], Any]], repetitions: int) -> list[float]:
    """Median ns per entry of each function, run in turns."""
    seconds: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repetitions):
        for k, function in enumerate(functions):
            start = time.thread_time()  # all of it is in this thread; waiting for a processor is not counted
            function()
            seconds[k].append(time.thread_time() - start)
    return [1e9 * median(s) / (N_ROWS * N_POINTS) for s in seconds]


def data(p: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, points and a block to write into."""
    rng = np.random.default_rng(p)
    X, Z = rng.standard_normal((N_ROWS, p)).astype(dtype), rng.standard_normal((N_POINTS, p)).astype(dtype)
    return X, Z, np.zeros((N_ROWS, N_POINTS), dtype)


def kinds(p: int) -> dict[str, Kernel]:
    """Every kernel, at a lengthscale near the median distance's."""
    length = float(np.sqrt(p))
    return {
        "gaussian, lengthscale per feature": Gaussian(tuple(length * (1 + j / p) for j in range(p))),
        "matern 1/2": Matern(length, 0.5),
        "matern 3/2": Matern(length, 1.5),
        "matern 5/2": Matern(length, 2.5),
        "rational quadratic": RationalQuadratic(length, 0.7),
        "laplacian": Laplacian(float(p)),
        "polynomial, degree 3": Polynomial(),
        "linear": Linear(),
        "gaussian + matern 3/2": Gaussian(length) + Matern(length, 1.5),
    }


@contextmanager
def inner_products_from(p: int) -> Iterator[None]:
    """Kernels prepared in here use inner products from p features on."""
    before = dict(prepared.CROSSOVER)
    prepared.CROSSOVER.update(dict.fromkeys(before, (p, p)))
    try:
        yield
    finally:
        prepared.CROSSOVER.update(before)


def crossover(dtype: Any, unequal: bool, repetitions: int) -> tuple[int, list[dict[str, Any]]]:
    """The first p from which inner products stay faster than differences; the times behind it."""
    rows, first = [], 0
    for p in (2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32):
        X, Z, out = data(p, dtype)
        # Long lengthscales: no row falls back to differences.
        length = 4 * float(np.sqrt(p))
        kernel = Gaussian(tuple(length * (1 + j / p) for j in range(p)) if unequal else length)
        with inner_products_from(1 << 30):
            differences = kernel.prepare(Z)
        with inner_products_from(1):
            products = kernel.prepare(Z)
        times = nanoseconds(
            [lambda d=differences, X=X, out=out: d.block(X, out), lambda q=products, X=X, out=out: q.block(X, out)],
            repetitions,
        )
        rows.append({"p": p, "differences": round(times[0], 3), "products": round(times[1], 3)})
        if times[1] >= times[0]:
            first = 0
        elif first == 0:
            first = p
    return first, rows


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims; `quick` is for a test of this file."""
    repetitions = 5 if quick else 15
    rows: list[list[Any]] = []
    claims = []
    details: dict[str, Any] = {}
    with one_core():
        for dtype in ("float32", "float64"):
            for p in (8, 20, 54) if quick else FEATURES:
                X, Z, out = data(p, dtype)
                kernels = {"gaussian": Gaussian(float(np.sqrt(p))), **(kinds(p) if p in (8, 20, 54) else {})}
                blocks = [kernel.prepare(Z) for kernel in kernels.values()]
                functions: list[Callable[[], Any]] = [
                    lambda X=X, Z=Z, p=p, out=out: numpy_block(X, Z, 0.5 / p, out),
                    lambda X=X, Z=Z, out=out: np.dot(X, Z.T, out=out),
                    *(lambda block=block, X=X, out=out: block.block(X, out) for block in blocks),
                ]
                numpy_time, dot_time, *ours = nanoseconds(functions, repetitions)
                for name, time_ in zip(kernels, ours, strict=True):
                    rows.append(
                        [
                            dtype,
                            p,
                            name,
                            round(time_, 3),
                            round(numpy_time, 3),
                            round(dot_time, 3),
                            round(numpy_time / time_, 2),
                        ]
                    )
                if dtype == "float32" and p in FLOORS:
                    name = f"gaussian block, float32, p = {p}: times faster than np.dot + np.exp"
                    claims.append(at_least(name, numpy_time / ours[0], FLOORS[p]))
            for unequal in (False, True):
                name = f"{dtype}, {'a lengthscale per feature' if unequal else 'one lengthscale'}"
                first, times = crossover(dtype, unequal, repetitions)
                used = prepared.CROSSOVER[np.dtype(dtype)][int(unequal)]
                details[name] = {"measured": first, "used": used, "times": times}
    return {
        "title": f"Kernel blocks of {N_ROWS} x {N_POINTS}, one core, ns per entry (medians of {repetitions})",
        "columns": ["dtype", "p", "kernel", "streamkernel", "np.dot + np.exp", "np.dot alone", "times faster"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
        "crossover": details,
    }


if __name__ == "__main__":
    main(run, __doc__)
