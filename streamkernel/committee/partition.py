"""Partition of the rows into members: consecutive rows, or rows of one cell of the space.

Members of neighbouring rows depend less on the rows of other members, and know more of their region (Tresp 2000,
section 7). Cells are k-means cells in the kernel's units. Each row goes to its cell within a run of 16 members' rows,
so no regrouped copy of the table is needed (`BlockNoise`).
"""

from __future__ import annotations

import numpy as np

from streamkernel.engine import Session
from streamkernel.errors import DataError, ParameterError
from streamkernel.kernels import Kernel, Laplacian, StationaryKernel
from streamkernel.kernels.parameters import checked_integer
from streamkernel.reductions.sums.row_noise import SUPER_BLOCK
from streamkernel.selection import Problem, RowCache
from streamkernel.selection.kmeans import KMeans
from streamkernel.table import Table
from streamkernel.type_aliases import Float
from streamkernel.wording import option

PARTITIONS = ("rows", "cells")
CELLS = SUPER_BLOCK  # number of members whose rows are sorted at once: a cell then has about as many rows as a member


def check_targets(table: Table) -> None:
    """Raise `DataError` for a table without targets."""
    if table.n_targets == 0:
        raise DataError(
            f"a committee needs targets and the rows have none; ingest them with {option('target')}, or give y"
        )


def cell_centres(
    table: Table, kernel: Kernel, n_cells: int = CELLS, *, session: Session, seed: int = 0, sweeps: int = 0
) -> Float:
    """Centres of k-means cells, (c, p) in the units of the rows, for `BlockNoise(cells=...)`.

    They come from a uniform sample, which takes one sweep, and from `sweeps` more Lloyd steps over all rows. There are
    fewer than `n_cells` if the sample has fewer distinct rows.
    """
    problem = cell_problem(table, kernel, checked_integer("n_cells", n_cells), seed)
    found = sample_means(sweeps).select(problem, session, RowCache(table, session))
    return np.asarray(found.basis.points, np.float64)


def cell_problem(table: Table, kernel: Kernel, n_cells: int, seed: int) -> Problem:
    """The problem for `sample_means`, with distances in the kernel's units."""
    p = table.width
    lengths = 1.0 / kernel.weights(p) if isinstance(kernel, StationaryKernel) else np.ones(p)
    # Centres must be distinct, not independent as functions: few centres of a smooth kernel are independent.
    return Problem(table, Laplacian(tuple(lengths.tolist())), min(n_cells, table.n_rows), seed=seed)


def sample_means(sweeps: int) -> KMeans:
    """k-means over a sample, then `sweeps` steps over all rows."""
    return KMeans(sweeps=sweeps, nearest=False)


def cells_of(partition: str | Float, table: Table, kernel: Kernel, *, session: Session, seed: int = 0) -> Float | None:
    """The argument of `BlockNoise(cells=...)` for a partition by "rows", by "cells", or by given centres (c, p).

    Raises
    ------
    ParameterError
        There is no such partition.
    """
    if not isinstance(partition, str):
        return np.asarray(partition, np.float64)
    if partition not in PARTITIONS:
        raise ParameterError(
            f"partition = {partition!r} is not known; choose one of {', '.join(PARTITIONS)}, or centres"
        )
    return None if partition == "rows" else cell_centres(table, kernel, session=session, seed=seed)
