"""The Bayesian committee machine for classes and counts: Laplace's approximation for each member.

It needs one sweep, and n x n algebra for each function. With ``H = V diag(h) V^T`` and ``A = I + s H``, the whitened f
at the query points has mean ``sqrt(s) A^-1 g`` and covariance A^-1 (Tresp 2001, eqs. (8), (9); ALGORITHMS 6.2), so::

    E f(x) = mu + s z^T A^-1 g        var f(x) = s (k(x, x) - z^T z + z^T A^-1 z),        z = L^-1 k(Z, x)

The likelihoods are Bernoulli and Poisson. There is no softmax: its members would need the modes of all classes at once.
Each of more than two classes is fitted against the rest. `solve_newton` finds one mode of all rows in several sweeps;
this needs one sweep, and new rows can be added exactly, because a member's mode does not depend on other members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.committee.partition import cells_of, check_targets
from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import single_threaded_blas, solve_lower_t, symmetric_eigen
from streamkernel.reductions import Moments, RowMap
from streamkernel.reductions.likelihoods import Bernoulli, Likelihood, Poisson, likelihood_of
from streamkernel.reductions.members.generalised import GeneralisedMembers, GeneralisedSums
from streamkernel.reductions.predictions import (
    ClassProbabilities,
    KroneckerCovariance,
    LatentPosterior,
    PoissonPredictions,
)
from streamkernel.reductions.predictions.class_probabilities import OneAgainstRest
from streamkernel.reductions.sums import BlockNoise
from streamkernel.table import Table
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class GeneralisedCommittee:
    """A fitted committee.

    Attributes
    ----------
    likelihood : Bernoulli or Poisson.
    sums : sums of all members; the sums of appended rows merge with them.
    latents : the function, or one function for each class against the rest.
    """

    likelihood: Likelihood
    sums: GeneralisedSums
    latents: tuple[LatentPosterior, ...]

    @classmethod
    def of(cls, basis: Basis, sums: GeneralisedSums, signal: float, likelihood: Likelihood) -> GeneralisedCommittee:
        """The committee with these sums; O(n^3) operations for each function."""
        latents = tuple(_latent(basis, sums, signal, j) for j in range(len(sums.centre)))
        return cls(likelihood, sums, latents)

    def predictions(self, *, std: bool = False) -> RowMap:
        """Map from rows to predictions: probabilities of the classes, or rates (with `std` also their deviations)."""
        if isinstance(self.likelihood, Poisson):
            return PoissonPredictions(self.latents[0], std=std)
        return ClassProbabilities(self.latents[0]) if len(self.latents) == 1 else OneAgainstRest(self.latents)


def _latent(basis: Basis, sums: GeneralisedSums, signal: float, j: int) -> LatentPosterior:
    with single_threaded_blas():
        eigen = symmetric_eigen(sums.H[j], "the sums of the members")
        shrinkage = 1.0 / (1.0 + signal * np.maximum(eigen.values, 0.0))
        beta = signal * (eigen.vectors @ (shrinkage * (eigen.vectors.T @ sums.g[:, j])))
        coefficients = np.ascontiguousarray(solve_lower_t(basis.L, beta[:, None]))
    one = np.ones((1, 1))
    covariance = KroneckerCovariance(np.ascontiguousarray(eigen.vectors), one, shrinkage[:, None])
    return LatentPosterior(basis, coefficients, sums.centre[j : j + 1].copy(), one, signal, covariance)


def fit_generalised_committee(
    table: Table,
    basis: Basis,
    likelihood: str,
    signal: float,
    *,
    block_size: int = 1000,
    partition: str | Float = "rows",
    centre: ArrayLike | None = None,
    session: Session | None = None,
    seed: int = 0,
) -> GeneralisedCommittee:
    """Fit in one sweep; if no prior mean is given, one more sweep over the targets is needed.

    Parameters
    ----------
    table : rows (scaled) and targets: classes, 0 and 1, or counts. A row of weight w counts w times.
    basis : the query points.
    likelihood : "bernoulli" or "poisson".
    signal : signal variance s of f.
    block_size, partition : choice of the members, as in `committee_predict`.
    centre : prior mean of f, one number or one for each class; default: that of the best constant functions.

    Raises
    ------
    ParameterError, DataError
        There is no such likelihood or partition, or the targets are of another kind.
    """
    session = session or Session()
    check_targets(table)
    if likelihood == "softmax":
        raise ParameterError("a committee has no softmax; give likelihood = 'bernoulli', each class against the rest")
    kind, s = likelihood_of(likelihood, table.n_targets), checked_number("signal", signal)
    functions = table.n_targets if isinstance(kind, Bernoulli) and table.n_targets > 2 else 1
    size = checked_integer("block_size", block_size)
    if centre is None:
        mu = _constants(table, kind, functions, session)
    else:
        mu = np.broadcast_to(np.asarray(centre, np.float64), (functions,)).copy()
    cells = cells_of(partition, table, basis.kernel, session=session, seed=seed)
    work = GeneralisedMembers(basis, kind, s, mu, BlockNoise(s, 1.0, size, cells))
    return GeneralisedCommittee.of(basis, session.sweep(work, table, "members' modes"), s, kind)


def _constants(table: Table, likelihood: Likelihood, functions: int, session: Session) -> Float:
    """Constant values of f whose response is the mean of the targets."""
    found = session.sweep(Moments.of(table, table.n_targets), table, "statistics")
    assert found.y is not None
    weight = found.y.total
    totals = found.y.mean[-functions:] * weight
    shares = (likelihood.shares(total, weight) for total in totals.reshape(-1, 1))
    return np.array([likelihood.constants(share)[0] for share in shares])
