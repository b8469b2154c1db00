"""Weights of the members of a committee, computed with the sums of the fit.

Member i adds ``s G_i^T Om_i^-1 G_i`` to the precision ``I + s H`` of the whitened f at the query points (Tresp 2001,
eq. (9); ALGORITHMS 6.1). Its weight is the share of its trace in the sum over all members, ``|Om_i^-1/2 G_i|_F^2 /
tr H``. The fit whitens these rows anyway, so that the weights cost no extra sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from streamkernel.kernels import Kernel
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.sums.gaussian_equations import GaussianEquations, GaussianSums
from streamkernel.reductions.sums.row_noise import SUPER_BLOCK, BlockNoise, Members
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int

_MEMBERS = ("member_rows", "member_precision")  # the parts of a state that are not those of `GaussianEquations`


@dataclass(frozen=True)
class MemberSums:
    """Sums of a committee, and the precision that each member added.

    Attributes
    ----------
    sums : GaussianSums of all members.
    rows : (B,) number of the first row of each member, ascending.
    precision : (B,) trace of the term that each member added to H.
    """

    sums: GaussianSums
    rows: Int
    precision: Float

    @property
    def weights(self) -> Float:
        """Shares (B,) of the precision, which sum to 1; zeros if the sum is 0."""
        total = float(self.precision.sum())
        return self.precision / total if total > 0.0 else np.zeros_like(self.precision)

    def merge(self, other: MemberSums) -> MemberSums:
        """The sums over both sets of members, as `GaussianSums.merge`."""
        rows, precision = (np.concatenate([getattr(self, n), getattr(other, n)]) for n in ("rows", "precision"))
        order = np.argsort(rows, kind="stable")
        return MemberSums(self.sums.merge(other.sums), rows[order], precision[order])


@dataclass(frozen=True)
class _MemberRecorder(BlockNoise):
    """BlockNoise that records the first row and the precision of each member when it whitens it; for one block."""

    rows: list[int] = field(default_factory=list)
    precision: list[float] = field(default_factory=list)

    def whiten(self, block: RowBlock, members: Members, kernel: Kernel, residual: Float, G: Float, Y: Float) -> float:
        log_det = super().whiten(block, members, kernel, residual, G, Y)
        starts = np.cumsum([0, *members.sizes[:-1]])
        squares, numbers = np.einsum("ij,ij->i", G, G), np.arange(len(block), dtype=np.int64)[members.rows]
        self.precision.extend(np.add.reduceat(squares, starts).tolist())
        self.rows.extend((block.start + np.minimum.reduceat(numbers, starts)).tolist())
        return log_det


@dataclass(frozen=True)
class MemberWeights(Reduction[MemberSums]):
    """`GaussianEquations` of a committee, and the weights of its members.

    Parameters
    ----------
    equations : GaussianEquations with `BlockNoise`.
    n_rows : number of rows m of the table, for the plan.
    """

    equations: GaussianEquations
    n_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.equations.row_noise, BlockNoise):
            raise ValueError("only blocks of noise are members")

    @property
    def row_multiple(self) -> int:
        return self.equations.row_multiple

    def empty(self) -> State:
        return self.equations.empty() | {"member_rows": np.zeros(0, np.int64), "member_precision": np.zeros(0)}

    def fold(self, state: State, block: RowBlock) -> State:
        noise = self._noise
        recorder = _MemberRecorder(noise.signal, noise.noise, noise.block_size, noise.cells, noise.share)
        sums = replace(self.equations, row_noise=recorder).fold(_without_members(state), block)
        found = {"member_rows": np.array(recorder.rows, np.int64), "member_precision": np.array(recorder.precision)}
        return sums | _joined_members(state, found)

    @property
    def _noise(self) -> BlockNoise:
        assert isinstance(self.equations.row_noise, BlockNoise)
        return self.equations.row_noise

    @property
    def symmetric(self) -> frozenset[str]:
        return self.equations.symmetric

    @property
    def lower_bytes(self) -> int:
        return self.equations.lower_bytes

    def combine(self, left: State, right: State) -> State:
        sums = self.equations.combine(_without_members(left), _without_members(right))
        return sums | _joined_members(left, right)

    def finalize(self, state: State) -> MemberSums:
        rows, precision = state.pop("member_rows"), state.pop("member_precision")
        order = np.argsort(rows, kind="stable")
        return MemberSums(self.equations.finalize(state), rows[order], precision[order])

    def state_bytes(self) -> int:
        noise = self._noise
        # The rows of 16 members are sorted by cells, and every cell may end with a short member.
        each = 1 if noise.cells is None else SUPER_BLOCK + len(noise.cells)
        return self.equations.state_bytes() + 16 * each * -(-self.n_rows // noise.row_multiple)

    def scratch_bytes(self, rows: int) -> int:
        return self.equations.scratch_bytes(rows) + 32 * rows

    def flops_per_row(self) -> float:
        return self.equations.flops_per_row() + 2.0 * len(self.equations.basis)


def _without_members(state: State) -> State:
    return {name: values for name, values in state.items() if name not in _MEMBERS}


def _joined_members(left: State, right: State) -> State:
    return {name: np.concatenate([left[name], right[name]]) for name in _MEMBERS}
