"""The curves of factors, in shares of the trace: arrays in the units of the axes, without colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.atomic import array_digest
from streamkernel.blobs import parent_of
from streamkernel.bounds import compression_bound
from streamkernel.errors import ParameterError
from streamkernel.factors import PCA_ROWS, Factor, SavedBasis, pca_residual_traces
from streamkernel.pairs import widened
from streamkernel.report.facts.fit import ROUNDING, Absent
from streamkernel.report.text import count, plain
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

DELTA = 0.05  # probability that a compression bound fails
MOST_ENDS = 40  # most ends of rounds to mark; more marks would look like a second line
_SAME_ROW = 1e-5  # relative to the largest coordinate: a row read as float32 and as float64 is the same row


@dataclass(frozen=True)
class FactorCurve:
    """Residual trace over the trace, after each pick.

    Attributes
    ----------
    label : name of the line.
    relative : (n + 1,), beginning with the empty basis; values below `floor` are drawn at `floor`.
    ends : basis sizes at which a round ended, without the last one.
    floor : share of the trace that may be rounding errors of the stored columns.
    """

    label: str
    relative: Float
    ends: tuple[int, ...]
    floor: float

    @property
    def rank(self) -> int:
        return len(self.relative) - 1

    @property
    def left(self) -> float:
        """Share of the trace left at the full rank."""
        return float(self.relative[-1])

    @property
    def vanished(self) -> bool:
        """Whether only rounding errors are left."""
        return self.left <= self.floor


@dataclass(frozen=True)
class PcaCurve:
    """Residual of the best approximation of each rank, as a share of the trace; (r + 1,), not less than `floor`."""

    relative: Float
    floor: float

    def at(self, rank: int) -> float:
        return float(self.relative[min(rank, len(self.relative) - 1)])


@dataclass(frozen=True)
class BoundCurve:
    """The compression bound along a path, in shares of R = sup k(x, x).

    Attributes
    ----------
    size, bound, residual : basis sizes that leave rows outside the basis; `residual` is the mean over those rows.
    best_size, best : size with the least bound, and this bound.
    """

    label: str
    size: Int
    bound: Float
    residual: Float
    best_size: int
    best: float

    @property
    def vacuous(self) -> bool:
        """Whether the bound is at least R everywhere, so that it gives no information."""
        return not self.best < 1.0


def factor_labels(factors: Sequence[Factor]) -> list[str]:
    """A name for each line: the rule; with the folder's name if rules are equal, and with the whole path if needed."""
    rules = [plain(factor.record.rule, 40) for factor in factors]
    paths = [factor.path for factor in factors]
    names = ["in memory" if path is None else plain(parent_of(path)[1], 30) for path in paths]
    whole = ["in memory" if path is None else plain(path, 80) for path in paths]
    labels = rules
    for more in (names, whole, [f"number {index + 1}" for index in range(len(factors))]):
        times = Counter(labels)
        labels = [
            f"{rule} ({word})" if times[label] > 1 else label
            for label, rule, word in zip(labels, rules, more, strict=True)
        ]
    return labels


def factor_curve(factor: Factor, label: str) -> FactorCurve | Absent:
    """Residual trace against rank."""
    path = np.asarray(factor.residual_path, dtype=np.float64)
    if not path[0] > 0.0 or not np.isfinite(path).all():
        return Absent("the trace of the kernel matrix is 0, so that a factor has nothing to explain")
    if len(path) < 2:
        return Absent("the factor has no columns")
    stored = factor.record.columns
    floor = ROUNDING
    if stored is not None and stored.dtype == "float32":
        # Each entry has a relative error of at most 2^-24; its square, and the sum of the squares, of at most 2^-23.
        floor = 2.0**-23
    ends = {each.stop for each in factor.record.rounds if each.stop > each.start}
    return FactorCurve(
        label, np.maximum(path / path[0], floor), tuple(sorted(end for end in ends if 0 < end < len(path) - 1)), floor
    )


def pca_optimum(factors: Sequence[Factor], table: Table) -> PcaCurve | Absent:
    """Residual of the best approximation of each rank to the first factor's kernel matrix, up to the largest rank.

    Parameters
    ----------
    table : rows from which the first factor was made, unscaled. With more than `PCA_ROWS` rows, or a trace of 0, the
        result is an `Absent` with the reason.

    Raises
    ------
    ShapeError, ParameterError
        The table has other columns or rows than the factor.
    """
    factor = factors[0]
    rows = factor.rows_of(table).table
    start, stop = factor.record.rows.start, factor.record.rows.stop
    if (rows.start, rows.stop) != (start, stop):
        raise ParameterError(
            f"the table has rows {rows.start}:{rows.stop}, the factor was made from rows {start}:{stop}; "
            "give the same rows"
        )
    if rows.n_rows > PCA_ROWS:
        return Absent(f"there are {count(rows.n_rows)} rows, and K is held in memory for at most {count(PCA_ROWS)}")
    chosen = factor.component_indices
    points = factor.basis.points[chosen >= 0]  # centres of clusters are not rows
    found = rows.read(start, stop).X[chosen[chosen >= 0] - start]
    if rows.sparse:
        # The table may have grown by fuller rows since.
        width = max(found.shape[1], points.shape[1])
        found, points = widened(found, width), widened(points, width)
    apart = np.flatnonzero(
        np.abs(found - points).max(axis=1, initial=0.0) > _SAME_ROW * np.abs(points).max(initial=0.0)
    )
    if len(apart):
        raise ParameterError(
            f"row {chosen[chosen >= 0][apart[0]]} of the table is not the one that the factor has for it; give the "
            "table that the factor was made from"
        )
    traces = pca_residual_traces(rows, factor.basis.kernel, max(other.shape[1] for other in factors))
    if not traces[0] > 0.0:
        return Absent("the trace of the kernel matrix is 0")
    floor = rows.n_rows * ROUNDING  # rounding of eigenvalues, as shares of the largest
    return PcaCurve(np.maximum(traces / traces[0], floor), floor)


def bound_curve(factor: SavedBasis, label: str) -> BoundCurve | Absent:
    """The compression bound of a factor or a transformer against rank."""
    kernel = factor.basis.kernel
    if not kernel.stationary:
        return Absent("k(x, x) has no largest value over all rows that could be met, as the kernel is not bounded")
    if (factor.component_indices < 0).any():
        return Absent("the basis points are no rows of the table, and the bound is one for sets of rows")
    if len(factor.basis) == 0:
        return Absent("the basis has no functions")
    largest = float(kernel.diagonal(factor.basis.points[:1])[0])
    path, rows = factor.residual_path, factor.record.rows
    # Transformers count a row as often as its weight says: so many are the trace of K. A trace of 0 tells none.
    counted = round(float(path[0] / largest)) if path[0] > 0.0 else rows.stop - rows.start
    try:
        found = compression_bound(path, counted, DELTA, largest, sizes=np.arange(len(path)))
    except ParameterError as error:
        # Apart from rounding and small weights, the path has the form that the bound needs; if not, draw the rest
        # of the page anyway.
        return Absent(plain(error, 200))
    drawn = np.isfinite(found.values)
    return BoundCurve(
        label,
        found.sizes[drawn],
        found.values[drawn] / largest,
        found.residual[drawn] / largest,
        found.best_size,
        found.minimum / largest,
    )


def times_the_optimum(curve: FactorCurve | Absent, pca: PcaCurve, rank: int) -> float | None:
    """Residual of a factor at a rank over the least possible one; None if one of the two is a rounding error."""
    if isinstance(curve, Absent) or curve.relative[rank] <= curve.floor or pca.at(rank) <= pca.floor:
        return None
    return float(curve.relative[rank]) / pca.at(rank)


def differences(factors: Sequence[Factor]) -> list[str]:
    """Reasons why the factors do not approximate the same matrix."""
    first = factors[0].record
    names = {"kernel": "kernel or lengthscale", "scaler": "scaling", "rows": "rows", "table_fingerprint": "table"}
    found = [
        words
        for name, words in names.items()
        if any(getattr(factor.record, name) != getattr(first, name) for factor in factors)
    ]
    if len({None if factor.metric is None else array_digest(factor.metric) for factor in factors}) > 1:
        found.append("metric")
    # Other rows have another fingerprint, too.
    return [words for words in found if words != "table" or "rows" not in found]
