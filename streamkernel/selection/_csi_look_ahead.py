"""Cholesky with side information, by look-ahead (Bach & Jordan 2005).

The picks minimise the criterion J of the factor G of picked columns, with Q an orthonormal basis of its columns::

    J(G) = lambda tr(K - G G^T) + mu |Y - Q Q^T Y|_F^2,    lambda = (1 - kappa) / tr K,    mu = kappa / |Y|_F^2

The gain of a row needs its residual column. All rows are candidates at every pick, and their columns are estimated
from delta columns of incomplete Cholesky ahead of the picks (`LookAhead`): n picks cost n + delta columns of K, and
O(m (n + delta)^2) operations. The gain of each pick, after it is made, is exact. The rows, Q, and twice delta columns
are in memory. The rule "csi" reads the rows from disk instead, and computes exact gains of the few rows that it draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step
from streamkernel.errors import ParameterError
from streamkernel.kernels import filling_bytes, packed_bytes
from streamkernel.linalg import single_threaded_blas
from streamkernel.records import RoundRecord
from streamkernel.reductions import Sample
from streamkernel.selection._csi_decompositions import BLOCK, LookAhead
from streamkernel.selection._csi_scans import LargestScan, PublishedScan
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Float, Int

_REFRESH = 20  # picks between two recomputations of the quantities that rank-one updates change
_VECTORS = 29  # vectors of m rows in memory: diagonals, scores, and the temporaries of arithmetic on them
_CONSTANT = 1e-24  # of |Y|^2: a smaller sum of squares about the mean is rounding, and the targets are constant


@dataclass(frozen=True)
class CSIPath:
    """Picks in order. Gains are decreases of J, which starts at 1, in two parts (trace, targets).

    Attributes
    ----------
    picks : (t,) positions.
    predicted, gains : (t, 2) gains predicted by look-ahead before each pick, and exact gains.
    traces : (t + 1,) residual traces before each pick and after the last one.
    columns : number of columns of K that were evaluated.
    ended : "size", "tolerance" or "rank".
    """

    picks: Int
    predicted: Float
    gains: Float
    traces: Float
    columns: int
    ended: str


def csi_path(
    column: Callable[[int], Float],
    diagonal: Float,
    Y: Float,
    *,
    n: int,
    delta: int,
    kappa: float,
    constant: Float | None = None,
    gain_tolerance: float = 0.0,
    trace_tolerance: float = 0.0,
    published: bool = False,
    note: Callable[[int], None] = lambda picks: None,
) -> CSIPath:
    """Pick at most n rows.

    Parameters
    ----------
    column, diagonal : function j -> K[:, j], (m,); diagonal of K, (m,).
    Y : (d, m) targets, centred by the caller if needed; d = 0 without targets, and then the gain is that of the trace.
    constant : (m,) unit vector that is projected out of the columns, or None.
    gain_tolerance : stop after a pick whose predicted gain and exact gain are both smaller.
    trace_tolerance : stop when the residual trace is at most this share of the trace.
    published : True for the scans of the published programs, see `PublishedScan`.
    note : called with the number of picks, every 20 picks.
    """
    trace, square = float(diagonal.sum()), float(np.einsum("ij,ij->", Y, Y))
    share = kappa if square > 0.0 else 0.0
    weights = np.array([(1.0 - share) / (trace or 1.0), share / (square or 1.0)])
    m = len(diagonal)
    scan = PublishedScan(m) if published else LargestScan()
    state = LookAhead(column, diagonal, Y, n=min(n, m), delta=delta, constant=constant, scan=scan)
    picks: list[int] = []
    predicted, gains, traces, ended = [], [], [trace], "size"
    while len(picks) < n:
        alive = state.alive
        if not alive.any():
            ended = "rank"
            break
        parts = weights[0] * state.trace_gains(), weights[1] * state.target_gains()
        j = scan.best_pick(parts[0] + parts[1], alive)
        if state.worn(j):
            state.refresh()
            continue
        gain = state.pick(j)
        if gain is None:
            continue
        picks.append(j)
        predicted.append([part[j] for part in parts])
        gains.append(weights * gain)
        traces.append(float(state.D.sum()))
        small = max(sum(predicted[-1]), gains[-1].sum()) < gain_tolerance
        if small or (trace_tolerance > 0.0 and traces[-1] <= trace_tolerance * trace):
            ended = "tolerance"
            break
        if len(picks) % _REFRESH == 0:
            state.refresh()
            note(len(picks))
    return CSIPath(
        np.asarray(picks, np.int64),
        np.reshape(predicted, (-1, 2)),
        np.reshape(gains, (-1, 2)),
        np.asarray(traces),
        state.columns,
        ended,
    )


@dataclass(frozen=True)
class LookAheadCSI(Rule):
    """CSI with look-ahead over all rows, in memory.

    Targets (of a regression, or class indicators) are centred and scaled by the centre and scale of the problem. Row
    weights w count as in a fit: K is ``W^1/2 K W^1/2`` and Y is ``W^1/2 Y``; rows of weight 0 are never picked.

    Parameters
    ----------
    delta : number of columns of look-ahead. 0 is incomplete Cholesky; with delta >= rank of K, predicted gains are
        exact.
    kappa : weight of the gain of the targets.
    centred : True for a model with an intercept: the constant is projected out of the targets and the columns of Q.
    gain_tolerance : stop after a pick whose predicted and exact decrease of J, which starts at 1, are both smaller.
        Give 0 with few columns of look-ahead, whose predictions are too small. It is ignored if the problem has a
        tolerance for the trace.
    published : True for the picks of csi.m (F. Bach, 2005) and kernlab: their scans (`PublishedScan`), and targets
        that are neither scaled nor, with ``centred=False``, shifted.

    Raises
    ------
    ParameterError
        A parameter is out of range.
    """

    delta: int = 40
    kappa: float = 0.99
    centred: bool = True
    gain_tolerance: float = 1e-4
    published: bool = False
    name: str = "csi-lookahead"

    def __post_init__(self) -> None:
        checks: tuple[tuple[str, Any, Any, float, str], ...] = (
            ("delta", self.delta, Integral, np.inf, "a whole number >= 0"),
            ("kappa", self.kappa, Real, 1.0, "a number in [0, 1]"),
            ("gain_tolerance", self.gain_tolerance, Real, 1.0, "a number in [0, 1]"),
        )
        for name, value, kind, most, wanted in checks:
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= most:
                raise ParameterError(f"{name} = {value!r} is out of range; give {wanted}")

    def scoring_rows(self, problem: Problem) -> int:
        return problem.table.counted

    def prefetch(self, problem: Problem) -> Int:
        return problem.rows

    def steps(self, problem: Problem) -> list[Step]:
        table = problem.table
        m, p, d = table.n_rows, table.width, len(problem.centre)
        n, delta = min(problem.n, m), min(self.delta, m)
        gather = gather_step(problem, m)
        # The gathered rows and a copy in float64, if they are not float64; Q; A and B; Y and c; vectors.
        held = gather.held_bytes + 8 * m * (p * (table.dtype.itemsize < 8) + n + 1 + 2 * (delta + 1) + 4 * d + _VECTORS)
        # NumPy decomposes a copy of a copy of a block (one copy before NumPy 2.5).
        held += 2 * 8 * (delta + 1) * (min(m, BLOCK) + delta + 1)
        # A column is of one point, packed; in the end the picks are.
        held += max(packed_bytes(1, p, problem.kernel.formulas) + filling_bytes(p), packed_bytes(n, p))
        # Q is read four times a column and A and B some ten times each, two operations an entry.
        flops = (n + delta) * (3 * p + 8 * (n // 2) + 40 * (delta + 1) + 2 * d)
        out = "the rule csi, which reads the rows from disk"
        look = Step("look ahead", "driver", m, 1, float(flops), n + delta, 0, 0, 0, held + 24 * n**2, out)
        return [gather, look]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        sample = problem.trained_on(cache.get(self.prefetch(problem)))
        with single_threaded_blas():
            path = self._path(problem, sample, lambda t: session.progress.note(f"{t} of {problem.n} basis functions"))
        basis, kept = problem.empty_basis().append(sample.X[path.picks], sample.rows[path.picks])
        m = len(sample)
        rounds = tuple(RoundRecord(t, t + 1, float(path.traces[i]), m, m) for t, i in enumerate(kept))
        ended = path.ended if len(kept) == len(path.picks) else "rank"
        return Selection(
            basis,
            path.gains[kept].sum(axis=1),
            rounds,
            ended,
            gain_parts=path.gains[kept],
            predicted_gains=path.predicted[kept],
            traces=path.traces[[*kept, -1]],
        )

    def _path(self, problem: Problem, sample: Sample, note: Callable[[int], None]) -> CSIPath:
        X = np.ascontiguousarray(sample.X, dtype=np.float64)
        root = np.sqrt(sample.weights)
        constant = root / np.linalg.norm(root) if self.centred and root.any() else None

        def column(j: int) -> Float:
            values = Basis(problem.kernel, X[j : j + 1], sample.rows[j : j + 1]).block(X)[:, 0]
            return np.asarray(values * (root * root[j]))

        return csi_path(
            column,
            problem.kernel.diagonal(X) * sample.weights,
            self._targets(problem, sample, root, constant),
            n=problem.n,
            delta=min(self.delta, len(sample)),
            kappa=self.kappa,
            constant=constant,
            gain_tolerance=0.0 if problem.tol > 0.0 else self.gain_tolerance,
            trace_tolerance=problem.tol,
            published=self.published,
            note=note,
        )

    def _targets(self, problem: Problem, sample: Sample, root: Float, constant: Float | None) -> Float:
        """Centred and scaled targets (d, m), times the roots of the row weights; d = 0 if all targets are constant."""
        d = len(problem.centre)
        scale = np.ones(d) if self.published else problem.scale[:d]
        shift = np.zeros(d) if self.published and constant is None else problem.centre / scale
        raw = (sample.Y[:, :d] / scale).T * root
        Y = raw - np.outer(shift, root)
        if constant is not None:
            Y -= np.outer(Y @ constant, constant)
        vanished = np.einsum("ij,ij->", Y, Y) <= _CONSTANT * np.einsum("ij,ij->", raw, raw)
        return np.zeros((0, len(sample))) if vanished else np.ascontiguousarray(Y)
