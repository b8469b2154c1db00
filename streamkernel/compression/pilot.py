"""A ridge regression on all rows, near which a compressed table shall have the same likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import RidgeSystem
from streamkernel.table import Table
from streamkernel.type_aliases import Float

FIT = "fit to all rows"


@dataclass(frozen=True)
class Pilot:
    """``f(x) = g(x) beta + intercept``, of the indicators of classes or of numbers; g are whitened features.

    Attributes
    ----------
    beta : (n, d), intercept : (d,).
    """

    beta: Float
    intercept: Float


def pilot_of(table: Table, basis: Basis, centre: Float, scale: Float | None, session: Session) -> Pilot:
    """The fit, in one sweep. Its ridge is that of the smallest GCV score, and no smaller than the mean of k(x, x).

    With a smaller ridge the fit follows single rows, and doubts them less than new rows: on covtype-subset, where GCV
    takes .02, the error of an SVM on squashed rows, less that of all rows, is .35 of that of random rows, with 1 .14;
    that of logistic regression .66 and .15.

    Parameters
    ----------
    table : scaled rows, with their targets.
    centre : (d,) constant near the mean of each target.
    scale : (d,) variances of targets that are numbers; None for classes.
    """
    sums = session.sweep(NormalEquations.of(basis, centre, table.n_rows), table, FIT)
    system = RidgeSystem(basis, sums, scale=scale)
    solution = system.solve(max(system.choose_alpha(), sums.trace / sums.weight))
    return Pilot(np.ascontiguousarray(basis.L.T @ solution.coefficients), solution.intercept)
