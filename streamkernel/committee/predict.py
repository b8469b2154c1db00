"""Committees of exact Gaussian processes: the model is the table itself, and each batch of queries sweeps it.

Each member of up to `block_size` rows is an exact Gaussian process. The members' predictions are combined for each
query separately (`reductions.combiners`). A member costs ``b^3 / 3 + b^2 q`` operations in every call. For repeated
predictions, fit the committee that has a state instead: the BCM at query points (`GaussianEquations` with
`BlockNoise`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.committee.partition import CELLS, cell_problem, cells_of, check_targets, sample_means
from streamkernel.engine import Session, Step, step_of
from streamkernel.errors import NonFiniteDataError, ShapeError
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_rows
from streamkernel.reductions import Gather, Sample, uniform_rows
from streamkernel.reductions.members.combiners import combiner_of
from streamkernel.reductions.members.predictions import MemberPredictions
from streamkernel.reductions.sums import BlockNoise
from streamkernel.selection.problem import Problem, gather_step
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float, Unchecked

_SHARED = (14, 0)  # stream of the counter-based generator
_QUERIES = 16384  # of one sweep: their sums are small, and the members' factorisations then cost little beside them
_BASE_VALUES = 1 << 22  # most kernel values of queries with the shared rows, which every process holds


@dataclass(frozen=True)
class CommitteePrediction:
    """A committee's predictions at the queries.

    Attributes
    ----------
    mean : (q, d) mean of y, and of f.
    latent_variance : (q, d) variance of f.
    noise : (d,) noise variance.
    members : number of members.
    """

    mean: Float
    latent_variance: Float
    noise: Float
    members: int

    @property
    def variance(self) -> Float:
        """Variance of y, (q, d)."""
        return self.latent_variance + self.noise


def committee_predict(
    table: Table,
    kernel: Kernel,
    signal: float,
    noise: float,
    queries: Unchecked,
    *,
    combiner: str = "grbcm",
    block_size: int = 1000,
    partition: str | Float = "cells",
    communication: int | None = None,
    centre: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    session: Session | None = None,
    seed: int = 0,
) -> CommitteePrediction:
    """Predict at queries (q, p), which are held in memory.

    One sweep serves 16,384 queries; with "grbcm" it serves 4,194,304 / `communication`, from 1,024 to 16,384.

    Parameters
    ----------
    table : rows (scaled) and targets; row weights w make the noise of a row ``noise / w``.
    kernel : unit kernel k.
    signal, noise : signal variance s and noise variance of the targets divided by `scale`.
    queries : rows in the units of the table's rows.
    combiner : "poe", "gpoe", "bcm", "rbcm" or "grbcm"; the last, by cells, had the best densities and intervals on
        kin40k and protein-casp, at three times the work of the others.
    block_size : largest number of rows of a member.
    partition : members by "rows" (in the order of the table: shuffle it), by "cells", or by centres (c, p) of cells.
    communication : number of rows that all members of "grbcm" share, drawn without replacement; default `block_size`.
        One sweep fetches them. With all rows of the table, the prediction is that of the exact Gaussian process.
    centre, scale : prior mean and scale of the targets, (d,) or one number for all.
    session : session that runs the sweeps.
    seed : seed of the draws.

    Raises
    ------
    ParameterError, DataError
        There is no such combiner or partition, or there are no targets; raised before any work.
    NumericalError
        A member's covariance is singular: the noise is smaller than the rounding of the signal.
    """
    chosen, session = combiner_of(combiner), session or Session()
    points = _checked_queries(queries, table)
    centres, scales = (np.broadcast_to(np.asarray(v, np.float64), (table.n_targets,)) for v in (centre, scale))
    block_size = checked_integer("block_size", block_size)
    # This checks the variances before the sweeps that find cells.
    plain = BlockNoise(signal, noise, block_size)
    cells = cells_of(partition, table, kernel, session=session, seed=seed)
    members = BlockNoise(plain.signal, plain.noise, block_size, cells)
    shared = None
    if chosen.shares_rows:
        size = checked_integer("communication", block_size if communication is None else communication)
        shared = _shared_rows(table, min(size, table.n_rows), session, seed)
    size = queries_of_a_sweep(0 if shared is None else len(shared))
    parts = [points[first : first + size] for first in range(0, len(points), size)]
    works = (MemberPredictions(kernel, part, centres, members, chosen, table.start, shared) for part in parts)
    found = [session.sweep(work, table, "committee members") for work in works]
    mean, variance = np.concatenate([part.mean for part in found]), np.concatenate([part.variance for part in found])
    return CommitteePrediction(mean, variance[:, None] * scales**2, plain.noise * scales**2, found[0].members)


def queries_of_a_sweep(shared: int) -> int:
    """Most queries of one sweep, if members share `shared` rows."""
    return max(1024, min(_QUERIES, _BASE_VALUES // max(shared, 1)))


def _shared_rows(table: Table, size: int, session: Session, seed: int) -> Sample:
    rows = np.sort(uniform_rows(table, size, seed, _SHARED))
    gather = Gather(rows, table.width, table.n_targets, table.dtype)
    sample: Sample = session.sweep(gather, table, "gather the rows that members share")
    return sample


def _checked_queries(queries: Unchecked, table: Table) -> Float:
    check_targets(table)
    points = np.asarray(checked_rows(queries, "queries", table.width), np.float64)
    if len(points) == 0:
        raise ShapeError("queries are no rows; give at least one")
    if not np.isfinite(points).all():
        raise NonFiniteDataError("queries hold NaN or infinity; leave those rows out")
    return points


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
    chosen, p, d = combiner_of(combiner), table.width, table.n_targets
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
