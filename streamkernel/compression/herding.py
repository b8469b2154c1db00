"""Kernel herding: rows whose mean features are near those of all rows (Chen, Welling & Smola 2010).

With features phi of a row and its target, and their mean mu over all rows, each pick makes

    | 1/T sum_{t<=T} phi(x_t) - mu |^2

as small as a candidate can. All picks of a group have the same weight. A row is picked once; one whose own weight is
that of several picks, as often. mu is exact, from one sweep; candidates are drawn from the rows. Each class is herded
by itself.

A pick costs a product with all candidates. Therefore these are taken in parts, each for its share of the picks, while
the sum of all picks goes on: the cost grows with the number of rows, not with its square.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamkernel.compression.compressed import Rows
from streamkernel.compression.drawing import Group
from streamkernel.engine import Session
from streamkernel.reductions import Sample
from streamkernel.reductions.mean_features import FeatureRows, MeanFeatures, MeanFeatureSums
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

SUMS = "means of the features"
PART = 256  # picks of a part
_ROUNDING = 1e-9


def herded(features: Callable[[Int], FeatureRows], mu: Float, capacities: Int, wanted: int) -> Int:
    """How often each candidate is picked, (r,), in sum `wanted`.

    Parameters
    ----------
    features : function of positions (b,) of candidates: phi of these.
    mu : (Q,) mean of phi over all rows.
    capacities : (r,) how often each candidate may be picked, in random order.
    wanted : number of picks; fewer where candidates are used up.
    """
    candidates, T = len(capacities), 0
    counts = np.zeros(candidates, np.int64)
    S = np.zeros(len(mu))  # sum of phi over the picks
    parts = max(1, -(-wanted // PART))
    for part in range(parts):
        first, last = (candidates * i // parts for i in (part, part + 1))
        phi = features(np.arange(first, last))
        squares, aim, total = phi.squares, phi.times(mu), phi.times(S)
        while wanted * (part + 1) // parts > T:
            # |S + phi_j - T mu|^2 less what all candidates share.
            score = squares + 2.0 * total - 2.0 * (T + 1) * aim
            j = int(np.argmin(score))
            if score[j] == np.inf:
                break
            counts[first + j] += 1
            if counts[first + j] == capacities[first + j]:
                squares[j] = np.inf
            picked = phi.row(j)
            T, S, total = T + 1, S + picked, total + phi.times(picked)
        del phi  # before the next part has its own
    return counts


def herded_rows(
    table: Table,
    work: MeanFeatures,
    parts: list[Group],
    candidates: Sample,
    order: list[Int],
    session: Session,
) -> Rows:
    """Herded rows of each group; all rows of a group that is no larger than its share, with their own weights.

    Parameters
    ----------
    table : rows as stored.
    work : the map phi.
    candidates : rows drawn from the groups, as stored.
    order : row numbers of the candidates of each group, in the order of their draw.
    """
    sums = session.sweep(MeanFeatureSums(work), table, SUMS)
    taken, weights = [], []
    for part, numbers in zip(parts, order, strict=True):
        own = candidates.at(numbers)
        if part.size == part.rows:
            taken.append(own)
            weights.append(own.weights)
            continue

        def phi(positions: Int, own: Sample = own) -> FeatureRows:
            return work.rows_of(own.X[positions], own.Y[positions])

        # A weight that is a whole number of shares must not be one more by rounding.
        shares = own.weights * (part.size / part.weight)
        capacities = np.maximum(1, np.ceil(shares * (1.0 - _ROUNDING))).astype(np.int64)
        counts = herded(phi, work.mean(sums, part.code, part.weight), capacities, part.size)
        picked = np.flatnonzero(counts)
        taken.append(own.at_positions(picked))
        weights.append(counts[picked] * (part.weight / counts.sum()))
    rows = np.concatenate([each.rows for each in taken])
    by_number = np.argsort(rows)
    X, Y = (np.concatenate([getattr(each, name) for each in taken])[by_number] for name in ("X", "Y"))
    return Rows(X, Y, np.concatenate(weights)[by_number], rows[by_number])
