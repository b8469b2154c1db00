"""A Bayesian committee of support vector machines. Experimental; `generalised` is the principled variant.

Members are machines of up to `block_size` rows, solved in memory. `reductions.svm_members` defines
their means and covariances, for which there is no published formula (Schwaighofer & Tresp 2001; ALGORITHMS 6.3). After
one sweep, as in every Bayesian committee::

    E f(x) = v^T A^-1 c        var f(x) = kappa(x, x) - v^T v + v^T A^-1 v,        v = L^-1 kappa(Z, x)

The variance is that of the Gaussian approximations; it gives no probability of a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.committee.partition import cells_of, check_targets
from streamkernel.engine import Session
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_rows
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.members.svm import SVMMembers, SVMSums
from streamkernel.reductions.sums import BlockNoise
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int, Unchecked


@dataclass(frozen=True)
class SVMCommittee:
    """A fitted committee of support vector machines.

    Attributes
    ----------
    kernel, signal, offset : ``kappa = signal k + offset``.
    points, L : query points Z (n, p), and the factor (n, n) of ``kappa(Z, Z)``.
    mean : (n,) ``A^-1 c``.
    root : (n, n) lower factor of A.
    sums : sums of all members.
    """

    kernel: Kernel
    signal: float
    offset: float
    points: Float
    L: Float
    mean: Float
    root: Float
    sums: SVMSums

    def moments(self, X: Unchecked) -> tuple[Float, Float]:
        """Mean and variance of f at rows X (q, p), (q,) each."""
        rows = np.asarray(checked_rows(X, "X", self.points.shape[1]), np.float64)
        with single_threaded_blas():
            V = solve_lower(self.L, self.signal * self.kernel.prepare(rows).block(self.points) + self.offset)
            prior = self.signal * self.kernel.diagonal(rows) + self.offset
            spread = solve_lower(self.root, V)
            left = np.maximum(prior - np.einsum("ij,ij->j", V, V), 0.0)
            return V.T @ self.mean, left + np.einsum("ij,ij->j", spread, spread)

    def classify(self, X: Unchecked) -> Int:
        """Code of the likelier class of each row, (q,)."""
        return (self.moments(X)[0] > 0.0).astype(np.int64)


def fit_svm_committee(
    table: Table,
    basis: Basis,
    signal: float = 1.0,
    *,
    C: float = 1.0,
    offset: float = 1.0,
    tau: float = 0.3,
    block_size: int = 500,
    partition: str | Float = "rows",
    session: Session | None = None,
    seed: int = 0,
) -> SVMCommittee:
    """Fit a committee of support vector machines in one sweep.

    Parameters
    ----------
    table : rows (scaled) of two classes, or of targets 0 and 1. A row of weight w costs w times as much.
    basis : the query points and the unit kernel k.
    signal, offset : variances of the function and of its constant.
    C : cost of a row.
    tau : variance left at the support vectors inside the box, where the margin is 1; at least 1e-6. Of 0.001, 0.1, 0.3
        and 1, the default was best, or as good, on covtype, a9a and a toy; with no variance, members count too much.
    block_size, partition : choice of the members, as in `committee_predict`. A member takes 48 b^2 bytes.

    Raises
    ------
    ParameterError, DataError
        A number is out of range, or the targets are of another kind.
    """
    session = session or Session()
    check_targets(table)
    s, constant, cost = (checked_number(*pair) for pair in (("signal", signal), ("offset", offset), ("C", C)))
    size, left = checked_integer("block_size", block_size), max(checked_number("tau", tau), 1e-6)
    cells = cells_of(partition, table, basis.kernel, session=session, seed=seed)
    members = BlockNoise(s, 1.0, size, cells)
    work = SVMMembers(basis, s, constant, cost, left, members)
    sums = session.sweep(work, table, "support vector machines")
    with single_threaded_blas():
        A = sums.A + np.eye(len(basis))
        root = cholesky(A, "the precision of the committee")
        mean = solve_lower_t(root, solve_lower(root, sums.c))
    return SVMCommittee(basis.kernel, s, constant, work.points, work.L, mean, root, sums)
