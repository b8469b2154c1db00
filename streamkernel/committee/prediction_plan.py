"""The cost of predictions with a committee of exact members, known before any work."""

from __future__ import annotations

import numpy as np

from streamkernel.committee.partition import CELLS, cell_problem, sample_means
from streamkernel.committee.predict import queries_of_a_sweep
from streamkernel.engine import Step, step_of
from streamkernel.kernels import Kernel
from streamkernel.reductions import Sample
from streamkernel.reductions.members.combiners import combiner_of
from streamkernel.reductions.members.predictions import MemberPredictions
from streamkernel.reductions.sums import BlockNoise
from streamkernel.selection.problem import Problem, gather_step
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float


def prediction_steps(
    table: Table,
    kernel: Kernel,
    queries: int,
    *,
    combiner: str = "grbcm",
    block_size: int = 1000,
    partition: str | Float = "cells",
    communication: int | None = None,
) -> list[Step]:
    """The sweeps of `committee_predict` with these parameters, for `queries` queries."""
    chosen, p, d = combiner_of(combiner), table.n_features, table.n_targets
    steps: list[Step] = []
    cells = None if isinstance(partition, str) else partition
    if isinstance(partition, str) and partition == "cells":
        steps += sample_means(0).steps(cell_problem(table, kernel, CELLS, 0))
        cells = np.broadcast_to(np.zeros(()), (CELLS, p))
    shared, size = None, 0
    if chosen.shares_rows:
        size = min(block_size if communication is None else communication, table.n_rows)
        steps.append(gather_step(Problem(table, kernel, 1), size))
        shared = Sample(*(_unfilled(shape) for shape in ((size,), (size, p), (size, d), (size,))))
    q = min(queries, queries_of_a_sweep(size))
    work = MemberPredictions(
        kernel, _unfilled((q, p)), _unfilled((d,)), BlockNoise(1.0, 1.0, block_size, cells), chosen, 0, shared
    )
    held = 8 * queries * (p + 2 + 2 * d)
    sweeps = -(-queries // q)
    return [
        *steps,
        step_of("committee members", work, table, kernel_columns=q, times=sweeps, held_bytes=held),
    ]


def _unfilled(shape: tuple[int, ...]) -> AnyArray:
    """An array of this shape that takes no memory."""
    return np.broadcast_to(np.zeros(()), shape)
