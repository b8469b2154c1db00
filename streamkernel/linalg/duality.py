"""Primal and dual objectives of kernel ridge regression, and the gap between them, along a path of picks.

For m rows, K (m, m), ridge rho and any a, u in R^m (Smola & Bartlett 2001, section 3; ALGORITHMS 10.6)::

    Qp(a) = -y^T K a + a^T (rho K + K^2) a / 2,    Qd(u) = -y^T u + u^T (rho I + K) u / 2
    Qp(a) + rho Qd(u) + |y|^2 / 2 >= 0,   = 0 if both are at their minima

Therefore every u gives a bound on the distance of a reduced fit from the fit with all rows. The reduced fit ``f = G
beta`` of the first t basis functions has ``2 Qp + |y|^2 = J = |y - G beta|^2 + rho |beta|^2``. Two choices of u cost no
sweep::

    sparse   u_J = (rho I + K_JJ)^-1 y_J on a few rows J, 0 elsewhere:   gap = (J - rho y_J^T u_J) / 2
    trace    u = r / rho, r = y - G beta:   gap = r^T (K - K~) r / (2 rho) <= tr(K - K~) |r|^2 / (2 rho)
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from streamkernel.linalg.cholesky import cholesky, solve_lower
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class DualityPath:
    """Gaps after each pick, summed over targets.

    Attributes
    ----------
    objective : (n,) ``J = |Y - G beta|^2 + rho |beta|^2``; it exceeds that of the full fit by at most twice the gap.
    explained : (n,) ``|Y|^2 - J``.
    sparse, trace : (n,) the two gaps.
    """

    objective: Float
    explained: Float
    sparse: Float
    trace: Float

    @property
    def gap(self) -> Float:
        """The smaller of the two gaps, (n,)."""
        return np.minimum(self.sparse, self.trace)

    @property
    def relative(self) -> Float:
        """Relative gap ``2 gap / (|Qp| + |rho Qd + |Y|^2 / 2|)``, (n,): 2 for f = 0, and 0 for the full fit."""
        # Qp = -explained / 2, and the other term is gap - Qp.
        gap, scale = self.gap, self.explained + self.gap
        return np.divide(2.0 * gap, scale, out=np.zeros_like(gap), where=scale > 0.0)

    def __len__(self) -> int:
        return len(self.objective)

    def part(self, which: slice) -> DualityPath:
        """The path of some of the picks."""
        return DualityPath(*(getattr(self, field.name)[which] for field in fields(self)))

    def and_then(self, more: DualityPath) -> DualityPath:
        """The path of these picks, followed by `more` picks."""
        pairs = ((getattr(self, field.name), getattr(more, field.name)) for field in fields(self))
        return DualityPath(*map(np.concatenate, pairs))


def duality_path(
    H: Float, g: Float, yy: float, rho: float, residual_path: Float, dual_kernel: Float, dual_targets: Float
) -> DualityPath:
    """The gaps for the first t functions of a basis, for every t, from the sums of the whole basis: O(n^3 + n^2 d).

    Parameters
    ----------
    H : (n, n) ``G^T G`` and g : (n, d) ``G^T Y``, whitened in the order of the picks.
    yy : ``|Y|_F^2``.
    rho : ridge > 0.
    residual_path : (n,) ``tr(K - K~)`` after each pick.
    dual_kernel, dual_targets : (e + n, e + n), (e + n, d) kernel matrix and targets of the rows J: first e rows that
        are always in J, then the picks, each of which joins J when it is picked. A row of zeros has no effect.

    Notes
    -----
    A row of weight w is multiplied by ``sqrt(w)``, both in the sums and in J.
    """
    n, extra = len(g), len(dual_targets) - len(g)
    L = cholesky(H + rho * np.eye(n), "H + rho I")
    inverse = solve_lower(L, np.eye(n))
    halves = inverse @ g
    explained = np.cumsum((halves**2).sum(axis=1))
    # For the first t functions, beta is the sum over j <= t of column j of L^-T times halves_j.
    square = np.zeros(n)
    for column in halves.T:
        beta = np.cumsum(inverse * column[:, None], axis=0)
        square += np.einsum("tj,tj->t", beta, beta)
    objective = np.maximum(yy - explained, 0.0)
    left = np.maximum(objective - rho * square, 0.0)
    factor = cholesky(dual_kernel + rho * np.eye(len(dual_kernel)), "the kernel matrix of the dual rows, and rho I")
    solved = np.cumsum((solve_lower(factor, dual_targets) ** 2).sum(axis=1))[extra:]
    return DualityPath(
        objective,
        yy - objective,
        np.maximum(0.5 * (objective - rho * solved), 0.0),
        np.maximum(0.5 * residual_path * left / rho, 0.0),
    )
