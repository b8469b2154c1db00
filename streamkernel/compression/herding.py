"""Kernel herding: rows whose mean features are near those of all rows (Chen, Welling & Smola 2010).

With the features phi of a kernel of rows with their targets, and their mean mu over all rows, each pick makes

    | 1/T sum_{t<=T} phi(x_t) - mu |^2

as small as a candidate can. A row may be picked several times; its weight is the number of its picks. Picks go on until
as many rows are picked as are wanted. mu is exact, from one sweep; candidates are drawn from the rows.

The kernel is ``k(x, x') [c = c']`` for rows of classes c: each class is herded by itself. For targets that are numbers
it is ``k(x, x') (1 + y.y')``, with the Nystroem features g of k: ``phi = (g, g y_1, ..., g y_d)``. The sums that a
regression on g needs of its targets are then near those of all rows.

A pick costs a product with all candidates. Therefore these are taken in parts, each for its share of the picks, while
the sum of all picks goes on: the cost grows with the number of rows, not with its square.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamkernel.compression.clustering import DOUBLE
from streamkernel.compression.compressed import Rows
from streamkernel.compression.drawing import Group
from streamkernel.engine import Session
from streamkernel.reductions import Sample
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums import Features, FeatureTargetSums, TargetFunctions
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

SUMS = "means of the features"
PART = 256  # picks of a part
CANDIDATES = 10  # for each row that is wanted
_MOST_PICKS = 4  # for each row that is wanted


def herded(features: Callable[[Int], Float], mu: Float, candidates: int, wanted: int) -> Int:
    """How often each candidate is picked, (r,): `wanted` of them at least once.

    Parameters
    ----------
    features : function of positions (b,) of candidates: their phi, (b, q).
    mu : (q,) mean of phi over all rows.
    candidates : number r of candidates, in random order.
    wanted : number of rows, at most r.
    """
    counts = np.zeros(candidates, np.int64)
    S, T = np.zeros(len(mu)), 0  # sum and number of the picks
    parts = max(1, -(-wanted // PART))
    for part in range(parts):
        first, last = (candidates * i // parts for i in (part, part + 1))
        own = wanted * (part + 1) // parts - wanted * part // parts
        phi = features(np.arange(first, last))
        picks, S, T = _picks(phi, mu, own, S, T)
        counts[first:last] = picks
    return counts


def _picks(phi: Float, mu: Float, wanted: int, S: Float, T: int) -> tuple[Int, Float, int]:
    """How often each of some candidates is picked, (r,), and the sum and number of all picks after these."""
    counts = np.zeros(len(phi), np.int64)
    squares, aim, total = np.einsum("ij,ij->i", phi, phi), phi @ mu, phi @ S
    picked, left = 0, _MOST_PICKS * wanted
    while picked < wanted:
        # |S + phi_j - (T + 1) mu|^2 less what all candidates share.
        score = squares + 2.0 * total - 2.0 * (T + 1) * aim
        if left <= wanted - picked:
            score[counts > 0] = np.inf  # the last picks are of new rows
        j = int(np.argmin(score))
        picked += int(counts[j] == 0)
        counts[j] += 1
        T, left = T + 1, left - 1
        S = S + phi[j]
        total = total + phi @ phi[j]
    return counts, S, T


def herded_rows(
    table: Table,
    scaling: Scaling,
    features: Features,
    targets: TargetFunctions,
    parts: list[Group],
    candidates: Sample,
    order: list[Int],
    session: Session,
) -> Rows:
    """Herded rows of each group; all rows of a group that is no larger than its share, with their own weights.

    Parameters
    ----------
    table : rows as stored.
    candidates : rows drawn from the groups, as stored.
    order : row numbers of the candidates of each group, in the order of their draw.
    """
    sums = session.sweep(FeatureTargetSums(scaling, features, targets), table, SUMS)
    taken, weights = [], []
    for part, numbers in zip(parts, order, strict=True):
        own = candidates.at(numbers)
        if part.size == part.rows:
            taken.append(own)
            weights.append(own.weights)
            continue
        mu = (sums[:, part.code] if targets.classes else sums.T.ravel()) / part.weight

        def phi(positions: Int, own: Sample = own) -> Float:
            G = features.of(scaling.of(own.X[positions])).astype(DOUBLE, copy=False)
            if targets.classes:
                return np.asarray(G)
            T = targets.of(own.Y[positions], len(positions))
            return np.concatenate([G * T[:, [t]] for t in range(T.shape[1])], axis=1)

        counts = herded(phi, mu, len(own), part.size)
        kept = np.flatnonzero(counts)
        taken.append(own.at_positions(kept))
        weights.append(counts[kept] * (part.weight / counts.sum()))
    rows = np.concatenate([each.rows for each in taken])
    by_number = np.argsort(rows)
    X, Y = (np.concatenate([getattr(each, name) for each in taken])[by_number] for name in ("X", "Y"))
    return Rows(X, Y, np.concatenate(weights)[by_number], rows[by_number])
