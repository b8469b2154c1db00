"""Plan of a solve with the full kernel matrix: its costs, before any work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Machine, Plan, Step, TableShape, make_plan, step_of
from streamkernel.kernels import Kernel
from streamkernel.reductions import Collect
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.sums import FeatureGram, Features, FeatureTimes, FeatureTransposed, KernelProducts
from streamkernel.table import Table

_VECTORS = 7  # of m numbers, per target: right side, iterate, residual, direction, its product, and temporaries


def plan_full(
    table: Table, kernel: Kernel, machine: Machine, *, iterations: int = 50, targets: int = 1, rank: int = 0
) -> Plan:
    """Plan of `FullSystem.solve`: sweeps, bytes, operations and memory.

    Parameters
    ----------
    iterations : expected number of iterations; the actual number depends on the bounds.
    targets : number of columns of the right side.
    rank : rank of the preconditioner; 0 for none.
    """
    m, p = table.n_rows, table.n_features
    held = 8 * m * targets * _VECTORS
    work = KernelProducts(kernel, table, unfilled(m, targets))
    # One more product for the true residual at the end.
    times = iterations + 1
    steps = [step_of("K V by tiles", work, table, kernel_columns=(m + 1) // 2, points=0, times=times, held_bytes=held)]
    b = steps[0].block_rows
    if rank:
        steps += _preconditioner_steps(table, kernel, times + 1, targets, rank, held)
    plan = make_plan(steps, TableShape.of(table), machine, disk_bytes=0)
    # Each block of a product with K reads the rows after it once more.
    again = times * m * max(0, m - b) // (2 * b) * (p * table.dtype.itemsize)
    return replace(plan, bytes_read=plan.bytes_read + again)


def _preconditioner_steps(table: Table, kernel: Kernel, times: int, targets: int, rank: int, held: int) -> list[Step]:
    m, p = table.n_rows, table.n_features
    features = Features.of_basis(Basis.unfilled(kernel, rank, p, table.dtype))
    values = FeatureTimes(features, unfilled(rank, targets), np.zeros(targets))
    parts: list[tuple[str, AnyReduction, int]] = [
        ("Gram matrix of the factor", FeatureGram(features), 1),
        ("G^T V", FeatureTransposed(features, unfilled(m, targets), table.start), times),
        ("G A", Collect(values, values.name, m), times),
    ]
    held += 24 * rank**2
    return [
        step_of(name, work, table, kernel_columns=rank, times=often, held_bytes=held) for name, work, often in parts
    ]
