"""The optimum that no basis can exceed: exact PCA of the kernel matrix, for tables small enough to hold it."""

from __future__ import annotations

import numpy as np

from streamkernel.byte_counts import format_bytes
from streamkernel.errors import ResourceLimitError
from streamkernel.kernels import Kernel
from streamkernel.linalg import require_finite, single_threaded_blas
from streamkernel.table import Table
from streamkernel.type_aliases import Float

PCA_ROWS = 5000  # K and LAPACK's copy of it take 16 m^2 bytes: 400 MB


def pca_residual_traces(table: Table, kernel: Kernel, count: int | None = None) -> Float:
    """``tr K - w_1 - ... - w_r`` for r = 0 .. count, w the eigenvalues of K, largest first; (count + 1,).

    The residual trace of the best rank-r approximation (Smola & Schoelkopf 2000, section 5.4). K is held in memory.

    Parameters
    ----------
    table : m rows, scaled, at most `PCA_ROWS` of them.
    count : largest rank; None for m.

    Raises
    ------
    ResourceLimitError
        The table has more than `PCA_ROWS` rows.
    """
    m = table.n_rows
    if m > PCA_ROWS:
        raise ResourceLimitError(
            f"the exact PCA of {m} rows needs {format_bytes(16 * m * m)} of memory; it is meant for at most {PCA_ROWS} "
            "rows: take a slice of the table, or FactorEigen, whose memory does not grow with the rows"
        )
    X = np.ascontiguousarray(table.read(table.start, table.stop).X, dtype=np.float64)
    with single_threaded_blas():
        K = kernel(X)
        require_finite(K, "the kernel matrix")
        values = np.maximum(np.linalg.eigvalsh(K)[::-1], 0.0)
    # Summed from the smallest values, so that the last traces are not differences of large numbers.
    traces = np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
    return traces[: m + 1 if count is None else min(count, m) + 1]
