"""A linear map of the features from an average outer product of gradients."""

from __future__ import annotations

import numpy as np

from streamkernel.linalg.eigen import symmetric_eigen
from streamkernel.linalg.finite import require_finite
from streamkernel.type_aliases import Float

NEGLIGIBLE = 1e-10  # share of the largest eigenvalue, at or below which a direction is left out
_TIE = 1e-6  # relative difference of two components that rounding may exchange


def metric_factor(
    A: Float,
    power: float = 1.0,
    *,
    rank: int | None = None,
    diagonal: bool = False,
    negligible: float = NEGLIGIBLE,
) -> Float | None:
    """``T = c V s^(power / 2)`` (p, r) of ``A = V s V^T``, so that ``T T^T`` is in proportion to ``A^power``.

    Rows are mapped to ``u = T^T x``. The columns of T are orthogonal, the longest first. T does not depend on the scale
    of A: c makes the sum of squares of T equal to p. Uncorrelated features of variance 1 then keep the mean squared
    distance of two rows, 2 p, and a lengthscale keeps its order of magnitude. ``A = I`` gives ``T = I``. (A largest
    singular value of 1 would shrink all distances as soon as one direction stands out.)

    Parameters
    ----------
    A : (p, p) symmetric, positive semi-definite up to rounding.
    power : greater than 0; 1 for the metric of the gradients themselves, 1/2 for its root.
    rank : largest number of columns r; all by default.
    diagonal : True to read only the diagonal of A: each column of T scales one feature, in the order of the features.
    negligible : directions with ``s_j <= negligible s_1`` are left out. They have no digits, and T becomes narrower.

    Returns
    -------
    T : (p, r) float64, or None if A has no positive eigenvalue: the functions are constant, and no metric follows.
        In each column the first of the largest components, up to 1e-6 of their size, is positive, so that T does not
        depend on the signs that LAPACK gives to eigenvectors. Vectors of equal eigenvalues are known up to a rotation;
        ``T T^T`` is not affected unless `rank` separates them.

    Raises
    ------
    NumericalError
        A is not finite, or its eigenvalues did not converge.
    ValueError
        A is not square, or another argument is out of range.

    References
    ----------
    Radhakrishnan et al. 2024, "Mechanism for feature learning in neural networks and backpropagation-free machine
    learning models", Science 383; ALGORITHMS 19.
    """
    p = len(A)
    if A.shape != (p, p):
        raise ValueError(f"A has shape {A.shape}; it must be square")
    if not power > 0.0 or not 0.0 <= negligible < 1.0 or (rank is not None and rank < 1):
        raise ValueError(f"power = {power}, rank = {rank}, negligible = {negligible}: one is out of range")
    require_finite(A, "the average product of gradients")
    largest = float(np.abs(A).max(initial=0.0))
    if largest == 0.0:
        return None
    # Divided first: neither a square in LAPACK nor a power here over- or underflows for a large or small A.
    A = A / largest
    if diagonal:
        values, vectors = np.diagonal(A), np.eye(p)
    else:
        eigen = symmetric_eigen(A, "the average product of gradients")
        values, vectors = eigen.values, eigen.vectors
    # Stable: of equal values the first ones stay, in their order.
    order = np.argsort(-values, kind="stable")
    if values[order[0]] <= 0.0:
        return None
    order = order[values[order] > negligible * values[order[0]]][:rank]
    if diagonal:
        order = np.sort(order)
    lengths = (values[order] / values.max()) ** (power / 2.0)
    T: Float = np.ascontiguousarray(vectors[:, order] * (lengths * np.sqrt(p) / np.linalg.norm(lengths)))
    T *= _signs(T)
    return T


def _signs(T: Float) -> Float:
    """1 or -1 for each column, with the sign of its first component of largest size."""
    sizes = np.abs(T)
    leading = np.argmax(sizes >= (1.0 - _TIE) * sizes.max(axis=0), axis=0)
    signs: Float = np.sign(T[leading, np.arange(T.shape[1])])
    return signs
