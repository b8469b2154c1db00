"""What this machine's own BLAS does in a second, by which sweeps are judged: one BLAS thread in each Python thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

__all__ = ["gemm_rate", "syrk_rate"]

Float = NDArray[np.float64]


def gemm_rate(b: int, n: int, threads: int, products: int) -> float:
    """Operations of ``K @ A`` a second, all threads together: 2 b n^2 a product of K (b, n) and A (n, n)."""
    A = np.random.default_rng(9).standard_normal((n, n))
    return 2 * b * n**2 * _products_a_second(lambda K: K @ A, b, n, threads, products)


def syrk_rate(b: int, n: int, threads: int, products: int) -> float:
    """Operations of ``K.T @ K`` a second, all threads together: b n^2 a product of K (b, n)."""
    return b * n**2 * _products_a_second(lambda K: K.T @ K, b, n, threads, products)


def _products_a_second(product: Callable[[Float], Any], b: int, n: int, threads: int, products: int) -> float:
    """Each thread has a block K of its own, and `products` to make once all have made one."""
    blocks = [np.random.default_rng(thread).standard_normal((b, n)) for thread in range(threads)]

    def work(K: Float) -> None:
        for _ in range(products):
            product(K)

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(product, blocks))
        began = time.perf_counter()
        list(pool.map(work, blocks))
        return threads * products / (time.perf_counter() - began)
