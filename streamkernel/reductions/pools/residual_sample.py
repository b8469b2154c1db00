"""One sweep over the residuals of the rows: their exact sum, and rows drawn in proportion to them.

Per row, ``r_i = k(x_i, x_i) - |L^-1 k(Z, x_i)|^2``. One sweep computes

- the certificate of the current basis, ``tr R = sum_i r_i``;
- **candidates**, drawn without replacement with probability ~ r_i: the rows with the smallest keys ``E_i / r_i``, E_i
  exponential (Efraimidis & Spirakis 2006, the A-Res keys ``u^(1/r)`` in logarithms). Their order is that of
  successive sampling;
- **scoring rows**, drawn by priority sampling (Duffield, Lund & Thorup 2007): the rows with the largest ``r_i / u_i``.
  With tau the largest priority of the other rows, the sum of ``max(1, tau / r_i) f_i`` over the drawn rows is an
  unbiased estimate of ``sum_i f_i`` over the rows with r_i > 0. No row is drawn twice.

Rows with weights count as often as their weights say: w_i r_i stands in the place of r_i, and the weights of the
scoring rows are multiplied by w_i.

Both keys come from a counter-based generator keyed by (seed, stream, row).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.row_random import row_uniforms
from streamkernel.table import Folds, RowBlock
from streamkernel.type_aliases import Float

_LEAST_RESIDUAL = 1e-300  # whose inverse, times any logarithm of a uniform number, is finite


@dataclass(frozen=True)
class ResidualSampleResult:
    """Result of the sweep.

    Attributes
    ----------
    residual_trace, trace : sums of the residual and of the kernel's diagonal, by the row weights
    candidates : Sample
        The drawn candidates, in the order of the draw (not of the row numbers).
    residuals : (k,) residual of each candidate, times its row weight
    scoring : Sample of scoring rows; its `weights` are the importance weights
    """

    residual_trace: float
    trace: float
    candidates: Sample
    residuals: Float
    scoring: Sample


def _smallest(state: State, prefix: str, size: int) -> State:
    """The `size` rows with the smallest keys. Ties are broken by row number: the order of the rows does not matter."""
    order = np.lexsort((state[f"{prefix}rows"], state[f"{prefix}keys"]))[:size]
    return {name: values[order] for name, values in state.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class ResidualSample(Reduction[ResidualSampleResult]):
    """Accumulate a `ResidualSampleResult`.

    Parameters
    ----------
    basis : Basis of the functions chosen so far (may be empty).
    n_candidates, n_scoring : numbers of candidates and of scoring rows to draw (0 for none).
    seed, stream : key of the draw.
    n_targets : number of targets of the table.
    folds : folds of the rows, whose table has keys: no row of a validation fold is a scoring row. None for no folds.
    """

    basis: Basis
    n_candidates: int
    n_scoring: int
    seed: int
    stream: tuple[int, ...]
    n_targets: int = 0
    folds: Folds | None = None

    def map_block(self, block: RowBlock) -> State:
        b = len(block.X)
        residual = own = self.basis.residual(block.X)
        variates = row_uniforms(self.seed, self.stream, block.start, b)
        diagonal = self.basis.kernel.diagonal(block.X)
        if block.weights is not None:
            residual, diagonal = block.weights * residual, block.weights * diagonal
        state: State = {"totals": np.array([residual.sum(), diagonal.sum(dtype=np.float64)])}
        # A weight next to 0 would make the key of a row infinite: such a row is not drawn. Where the residual without
        # the weight is so small, rows are out of the range of floating point, which the division below reports.
        alive = np.flatnonzero((residual > 0.0) & ((residual >= _LEAST_RESIDUAL) | (own < _LEAST_RESIDUAL)))
        # The residual of a chosen row is rounding only, and the row must not be drawn again.
        alive = alive[~np.isin(block.start + alive, self.basis.rows)]
        r = residual[alive]
        # Keys ascending: candidates by exponential races, scoring rows by negated priority.
        keys = {"c_": -np.log(variates[alive, 0]) / r, "s_": -r / variates[alive, 1]}
        if self.folds is not None and self.n_scoring:
            assert block.keys is not None, "folds need a table with keys"
            keys["s_"][self.folds.held_out(block.keys)[alive]] = np.inf
        # One extra scoring row: its priority is the threshold of the estimator.
        sizes = {"c_": self.n_candidates, "s_": self.n_scoring + 1 if self.n_scoring else 0}
        for prefix, size in sizes.items():
            chosen = np.argsort(keys[prefix], kind="stable")[:size]
            chosen = chosen[np.isfinite(keys[prefix][chosen])]
            local = alive[chosen]
            state[f"{prefix}keys"] = keys[prefix][chosen]
            state[f"{prefix}rows"] = block.start + local.astype(np.int64)
            state[f"{prefix}residual"] = r[chosen]
            state[f"{prefix}X"] = block.X[local]
            if block.weights is not None:
                state[f"{prefix}weights"] = block.weights[local]
            state[f"{prefix}Y"] = np.zeros((len(local), self.n_targets)) if block.Y is None else block.Y[local]
        return state

    def combine(self, left: State, right: State) -> State:
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name != "totals"}
        return {
            "totals": left["totals"] + right["totals"],
            **_smallest(both, "c_", self.n_candidates),
            **_smallest(both, "s_", self.n_scoring + 1 if self.n_scoring else 0),
        }

    def finalize(self, state: State) -> ResidualSampleResult:
        drawn = {**state, **_smallest(state, "c_", self.n_candidates)}
        candidates = Sample(drawn["c_rows"], drawn["c_X"], drawn["c_Y"], np.ones(len(drawn["c_rows"])))
        priorities = -state["s_keys"]
        r = state["s_residual"]
        threshold = 0.0
        if self.n_scoring and len(priorities) > self.n_scoring:
            threshold = float(priorities[self.n_scoring])
            r = r[: self.n_scoring]
        kept = np.argsort(state["s_rows"][: len(r)])
        scoring = Sample(
            state["s_rows"][kept], state["s_X"][kept], state["s_Y"][kept], np.maximum(1.0, threshold / r[kept])
        )
        if "s_weights" in state:
            scoring = replace(scoring, weights=scoring.weights * state["s_weights"][kept])
        residual_trace, trace = (float(value) for value in state["totals"])
        return ResidualSampleResult(residual_trace, trace, candidates, drawn["c_residual"], scoring)

    def state_bytes(self) -> int:
        p, item = self.basis.points.shape[1], self.basis.points.dtype.itemsize
        return int((self.n_candidates + self.n_scoring + 1) * (32 + p * item + 8 * self.n_targets) + 16)

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (sum(self.basis.points.shape) + 12))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * p + 100)
