"""Randomly pivoted Cholesky, in blocks (Chen, Epperly, Tropp & Webber 2023; Epperly, Tropp & Webber 2024).

Each pivot is drawn with probability ~ the residual diagonal. One sweep draws a block of proposals. In their order, a
proposal with residual u_a at the sweep and H_aa now is accepted with probability ``H_aa / u_a``. The accepted proposals
have exactly the distribution of pivots that are drawn one at a time (ALGORITHMS 12.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.kernels import packed_bytes
from streamkernel.records import RoundRecord
from streamkernel.reductions import stream_generator
from streamkernel.reductions.pools import ResidualSampleResult
from streamkernel.selection._draws import ResidualDraw
from streamkernel.selection.problem import Problem, Rule, Selection, unfilled_basis
from streamkernel.selection.rounds import Rounds
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Float, Int

_ROUNDING = 1e-12  # of the trace
_DRAW = ResidualDraw(per_pick=1, extra=0, scoring_per_function=0)  # of the proposals alone


def proposals_with_replacement(residuals: Float, total: float, count: int, generator: np.random.Generator) -> Int:
    """`count` independent draws ~ residual, from a successive sample without replacement.

    The next independent draw repeats a previous row with probability (sum of their residuals) / total; otherwise it is
    the next row of the successive sample. One reservoir therefore gives both kinds of draw.

    Parameters
    ----------
    residuals : (k,) residuals of the sampled rows, in the order of the successive sample.
    total : sum of all residuals.
    count : number of draws, at most k.
    generator : generator of the draws.
    """
    drawn: list[int] = []
    seen = 0
    for _ in range(count):
        mass = residuals[:seen].sum()
        if seen == len(residuals) or generator.random() * total < mass:
            drawn.append(int(generator.choice(seen, p=residuals[:seen] / mass)))
        else:
            drawn.append(seen)
            seen += 1
    return np.asarray(drawn, np.int64)


def accept(H: Float, proposals: Int, uniforms: Float | None, tolerance: float) -> Int:
    """The accepted proposals, in order.

    Parameters
    ----------
    H : (k, k) residual kernel among the sampled rows.
    proposals : positions in H, with repeats.
    uniforms : one uniform variate per proposal; None accepts all independent proposals (block RPCholesky).
    tolerance : a row is dependent if its residual is at most this (absolute).
    """
    H = H.copy()
    start = np.diagonal(H).copy()
    accepted: list[int] = []
    for a, i in enumerate(proposals):
        now = H[i, i]
        if now <= tolerance or (uniforms is not None and uniforms[a] * start[i] >= now):
            continue
        accepted.append(int(i))
        H -= np.outer(H[:, i], H[:, i] / now)
        # Exactly 0, without rounding: a repeated proposal of this row is then refused.
        H[i, :] = H[:, i] = 0.0
    return np.asarray(accepted, np.int64)


@dataclass(frozen=True)
class RPCholesky(Rule):
    """Randomly pivoted Cholesky.

    Parameters
    ----------
    block : number of proposals per sweep; 1 is the plain rule, None takes n / 10, at least 10.
    exact : True to reject proposals, so that the distribution is that of the plain rule; False accepts the whole block.
    """

    name: str = "rpcholesky"
    block: int | None = None
    exact: bool = True

    def prefetch(self, problem: Problem) -> Int:
        return np.zeros(0, np.int64)

    def _wanted(self, problem: Problem) -> int:
        return min(self.block or max(10, problem.n // 10), problem.table.counted)

    def steps(self, problem: Problem) -> list[Step]:
        block = self._wanted(problem)
        p, item = problem.table.width, problem.table.dtype.itemsize
        # Chance rejects some proposals: about half of them towards the end.
        times = (2 if self.exact else 1) * -(-problem.n // block)
        drawn = _DRAW.reduction(problem, unfilled_basis(problem, problem.n), block, 0)
        # Row blocks widen with every look, and the allocator keeps some of those that were outgrown (measured).
        step = step_of(
            "look at the residual",
            drawn,
            problem.table,
            kernel_columns=problem.n // 2,  # on average
            points=problem.n,
            times=times,
            # The block is packed too, and the basis as it grows, once the look is over; their points, those of the
            # look and as they are sampled; and the block once more in float64, while its features are computed.
            packed_bytes=packed_bytes(block, p, problem.kernel.formulas),
            rows_bytes=p * (item * (2 * problem.n + 3 * block) + 8 * block),
        )
        return [replace(step, held_bytes=24 * block**2 + 24 * problem.n**2 + outgrown_bytes(step))]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        basis = problem.empty_basis()
        rounds: list[RoundRecord] = []
        trace = 0.0
        ended, supply = "size", Rounds(0)
        while len(basis) < problem.n:
            drawn = _DRAW.sample(problem, session, basis, self._wanted(problem), len(rounds))
            trace = trace or drawn.residual_trace
            if problem.tol > 0.0 and drawn.residual_trace <= problem.tol * trace:
                ended = "tolerance"
                break
            grown = self._extend(problem, basis, drawn, len(rounds))
            rounds.append(RoundRecord(len(basis), len(grown), drawn.residual_trace, len(drawn.candidates), 0))
            added, basis = len(grown) - len(basis), grown
            # Chance may reject most of a block: a round is short only if it adds no function. The rank is exhausted if
            # the residual trace is rounding.
            nothing_left = len(drawn.candidates) == 0 or drawn.residual_trace <= _ROUNDING * trace
            if supply.exhausted(added) or (added == 0 and nothing_left):
                ended = "rank"
                break
            session.progress.note(f"{len(basis)} of {problem.n} basis functions")
        return Selection(basis, np.zeros(0), tuple(rounds), ended)

    def _extend(self, problem: Problem, basis: Basis, drawn: ResidualSampleResult, round_: int) -> Basis:
        if len(drawn.candidates) == 0:
            return basis
        generator = stream_generator(problem.seed, (5, round_))
        sampled = Basis(problem.kernel, np.ascontiguousarray(drawn.candidates.X), drawn.candidates.rows)
        H = sampled.gram()
        if len(basis):
            G = basis.features(sampled.points)
            H = H - G @ G.T
        proposals = np.arange(len(sampled))
        uniforms = None
        if self.exact:
            proposals = proposals_with_replacement(drawn.residuals, drawn.residual_trace, len(sampled), generator)
            uniforms = generator.random(len(proposals))
        tolerance = PIVOT_TOLERANCE * float(np.max(problem.kernel.diagonal(sampled.points)))
        accepted = accept(H, proposals, uniforms, tolerance)[: problem.n - len(basis)]
        return basis.append(sampled.points[accepted], sampled.rows[accepted])[0]
