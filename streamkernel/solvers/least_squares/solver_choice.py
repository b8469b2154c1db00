"""Choice of the solver of the reduced system by the operations that a plan counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Step, step_of
from streamkernel.kernels import Gaussian
from streamkernel.kernels.parameters import checked_integer
from streamkernel.reductions.sums import (
    EachFold,
    FeatureGram,
    Features,
    NormalEquations,
    NormalProduct,
    NormalTargets,
)
from streamkernel.table import Folds, Table

# n^3 operations on the driver, direct: the tridiagonal form of H, half of which reads a matrix for each row, and its
# whitening; CG: the Cholesky factor of P and the product L^T L.
_DIRECT_ALGEBRA, _CG_ALGEBRA = 6.0, 4.0 / 3.0
# The same with folds; direct: some factors for each fold beside it; CG: one more factor, and some for the first n/2
# functions.
_DIRECT_SEARCH, _CG_SEARCH = 2.0, 2.0 / 3.0
# Sweeps of a search for alpha, and of the solve that begins where it ended (measured; docs/linear_systems.md).
_SEARCH, _AFTER = 20, 25
# A kernel value costs more than its 2 p operations: it takes as long as this number of further operations of a matrix
# product (measured).
_VALUE = 50.0
# Half decades from the sample's alpha that a search solves for at once: more rows, and more functions, as a rule want
# less.
STEPS = (-2, -1, 0, 1)


@dataclass(frozen=True)
class SolverChoice:
    """The work of both solvers, in operations of a matrix product.

    Attributes
    ----------
    solver : "direct" or "cg", the one with less work.
    direct, cg : operations of each solver.
    """

    solver: Literal["direct", "cg"]
    direct: float
    cg: float


def choose_solver(
    m: int,
    n: int,
    p: int,
    d: int = 1,
    *,
    iterations: int = 30,
    residual_trace: bool = True,
    sample: int = 0,
    search: bool = False,
) -> SolverChoice:
    """Choose between the direct solve (`RidgeSystem`) and conjugate gradients (`FalkonSystem`).

    ::

        direct    m (n^2 + n (v + 2 d)) + 6 n^3
        cg        (iterations + 1) m n (v + 4 d) + m n (v + 2 d) + 4/3 n^3
                  + m n^2 for the exact residual trace + sample (2 n^2 + n v) for a better preconditioner

    and for an alpha by folds 2 n^3 and ``20 m n (v + 16 d) + 2/3 n^3`` more, where v is the cost of a kernel value. For
    an ill-conditioned basis the blocks are whitened before the sum, and the direct solve takes another m n^2
    (`NormalEquations.of`). This is not known before the basis is selected.

    Parameters
    ----------
    m, n, p, d : numbers of rows, basis functions, features and targets.
    iterations : expected number of iterations of conjugate gradients.
    residual_trace : True if conjugate gradients must compute the exact certificate, which the direct solve always has.
    sample : number of rows that the preconditioner is made from; 0 for the basis points.
    search : True if alpha is found by errors on held-out folds.
    """
    m, n, p, d = (checked_integer(name, value) for name, value in zip("mnpd", (m, n, p, d), strict=True))
    basis = Basis.unfilled(Gaussian(1.0), n, p)
    sums = step_of("final sweep", NormalEquations(basis, np.zeros(d), leading=0), m, kernel_columns=n)
    products = falkon_steps(
        basis, m, d, iterations=iterations, residual_trace=residual_trace, sample=sample, search=search
    )
    direct = _work([sums]) + (_DIRECT_ALGEBRA + search * _DIRECT_SEARCH) * n**3
    cg = _work(products) + (_CG_ALGEBRA + search * _CG_SEARCH) * n**3
    return SolverChoice("direct" if direct <= cg else "cg", direct, cg)


def falkon_steps(
    basis: Basis,
    rows: Table | int,
    d: int,
    *,
    iterations: int = 30,
    residual_trace: bool = True,
    sample: int = 0,
    folds: Folds | None = None,
    search: bool = False,
) -> list[Step]:
    """Costs of `FalkonSystem` and one solve, for a plan.

    Parameters
    ----------
    basis : n functions; its shapes are enough (`Basis.unfilled`).
    rows : the table, or its number of rows if only operations are needed; d : number of its targets.
    folds : the fold whose sums are kept apart.
    search : True for a search for alpha (`alpha_of_sample`, `FalkonFolds`) before it.
    """
    n, p = basis.points.shape
    # L, the guess, its shifted copy and factor; the vectors of a solve, and those of a search and its solutions.
    held = 8 * (4 * n * n + (60 if search else 6) * n * d)
    seen = step_of(
        "sample for the preconditioner",
        NormalEquations(basis, np.zeros(d)) if search else FeatureGram(Features.of_basis(basis)),
        rows,
        sampled=min(sample, rows if isinstance(rows, int) else rows.n_rows),
        kernel_columns=n,
        where="sample",
        # With a search the rows, those of them that are trained on, and their targets.
        held_bytes=held + 8 * sample * (2 if search else 1) * (p + d),
    )
    targets = NormalTargets(basis, np.zeros(d), whiten=residual_trace)
    first = step_of(
        "right side of the normal equations",
        targets if folds is None else EachFold(targets, folds),
        rows,
        kernel_columns=n,
        held_bytes=held,
    )
    each = NormalProduct(basis, unfilled(n, d))
    steps = [first, *([seen] if sample else [])]
    if search:
        steps.reverse()
        # Also where nothing can be held out yet: of a number of rows.
        work = EachFold(NormalProduct(basis, unfilled(n, len(STEPS) * d)), folds or Folds(1))
        name, iterations = "products without held-out rows", _AFTER
        steps.append(step_of(name, work, rows, kernel_columns=n, times=_SEARCH, held_bytes=held))
    else:
        held += 8 * sample * (p + d)
    # One more product for the true residual at the end.
    steps.append(step_of("product with G^T G", each, rows, kernel_columns=n, times=iterations + 1, held_bytes=held))
    return steps


def rows_for_search(m: int, n: int, p: int, d: int) -> int:
    """Number of rows for the preconditioner of a search for alpha, which takes more sweeps than one solve.

    At least 8 n; more where they take no more memory than one n x n matrix, and no more work than the search's sweeps.
    """
    by_work = _SEARCH * m * (2.0 * p + _VALUE + 4.0 * len(STEPS) * d) / (2.0 * n)
    return min(max(8 * n, int(min(n * n / (p + d), by_work))), m)


def _work(steps: Iterable[Step]) -> float:
    return float(sum(step.flops + _VALUE * step.times * step.rows * step.kernel_columns for step in steps))
