"""A ridge on the functions that a pursuit has picked, of every size at once, judged by held-out rows.

With the columns D (r, n + c) of the constant and the functions in the order of picking, and ``k(Z, Z) = L L^T``::

    |Y - D b|^2 + alpha |L^T b_f|^2        b_f the coefficients of the functions: |f|_H^2 = b_f^T k(Z, Z) b_f

is the least squares fit of Y, and zeros, to D with sqrt(alpha) L^T below it. L^T is upper triangular: the first t of
its columns are the penalty of the first t functions, so that one QR factorisation has the ridge fit of every size, as
it has without the ridge (`Stages`).
"""

from __future__ import annotations

import numpy as np

from streamkernel.pursuit.stages import Stages
from streamkernel.type_aliases import Float

ALPHAS = (0.0, *(float(10.0**power) for power in range(-6, 3)))  # times the mean of k(z, z)


def ridge_stages(
    D: Float, Y: Float, L: Float, constant: bool, check: tuple[Float, Float], scale: Float
) -> tuple[Stages, float]:
    """The steps with the alpha whose best size has the least held-out error, and that alpha.

    Parameters
    ----------
    D, Y : (r, n + c) and (r, d), or a root of them.
    L : (n, n) of the functions.
    check : the same of held-out rows.
    scale : (d,) in whose units squared errors are added.
    """
    n = len(L)
    unit = float(np.einsum("ij,ij->", L, L)) / max(n, 1)
    found: tuple[float, Stages, float] | None = None
    for alpha in ALPHAS:
        penalty = np.zeros((n if alpha else 0, D.shape[1]))
        if alpha:
            penalty[:, int(constant) :] = np.sqrt(alpha * unit) * L.T
        targets = np.concatenate([Y, np.zeros((len(penalty), Y.shape[1]))])
        stages = Stages.least_squares(np.concatenate([D, penalty]), targets, constant)
        error = float((stages.errors(*check) / scale**2).sum(axis=1)[1:].min())
        if found is None or error < found[0]:
            found = error, stages, alpha * unit
    assert found is not None
    return found[1], found[2]
