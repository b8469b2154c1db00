"""The query points of a Bayesian committee machine, and whether there are enough of them.

The members are taken to be independent given f at the query points (Tresp 2001, eq. (7)): a good assumption where these
are at least as many as the effective degrees of freedom of the process (Tresp 2000)::

    N_Q >= p_eff = tr s K (s K + noise I)^-1 = sum_j s l_j / (s l_j + noise),      l_j eigenvalues of K (m, m)

K is never there. Two lower estimates of p_eff are (ALGORITHMS 6.1):

- from the sums of a fit: K~ = G G^T <= K has the eigenvalues h of ``H = G^T G``. `degrees_of_features` is less than
  N_Q by construction: it never breaks the rule, but says how many of the query points the data use up;
- from c rows of m, drawn uniformly: the eigenvalues of K / m are about those of the sample's own matrix over c, so that
  ``l_j = (m / c) l_j(K_c)``. Exact for c = m; below it on average otherwise, since p_eff is concave in the mean over
  rows of ``phi phi^T`` (Jensen), and less than c: `degrees_of_sample` needs c of several times N_Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_rows
from streamkernel.linalg import require_finite, single_threaded_blas

__all__ = ["QuerySetRule", "degrees_of_features", "degrees_of_sample", "query_set"]

Float = NDArray[np.float64]


def query_set(landmarks: Basis, points: Any) -> tuple[Basis, NDArray[np.int64]]:
    """Landmarks and the points that predictions are asked for, as one query set.

    Returns
    -------
    basis : the landmarks, then the points, less those that depend on what comes before them; their row numbers are -1.
    kept : (r,) positions of the points that were kept. What was dropped is predicted as well: it lies in their span.
    """
    asked = checked_rows(points, "points", landmarks.points.shape[1])
    return landmarks.append(asked, np.full(len(asked), -1, np.int64))


def degrees_of_features(H: Float, signal: float, noise: float = 1.0) -> float:
    """``sum_j s h_j / (s h_j + noise)``, h the eigenvalues of ``H = G^T G``; noise 1 where ``Om^-1`` is within H."""
    return _degrees(H, 1.0, signal, noise, "the whitened normal equations")


def degrees_of_sample(X: ArrayLike, rows: int, kernel: Kernel, signal: float, noise: float) -> float:
    """The estimate from c rows X (c, p) of `rows`: ``sum_j s l_j / (s l_j + noise)``, ``l_j = (m / c) l_j(k(X, X))``.

    Costs c^3 operations and two (c, c) matrices.
    """
    sample = np.asarray(checked_rows(X), np.float64)
    if checked_integer("rows", rows) < len(sample):
        raise ParameterError(f"a sample of {len(sample)} of {rows} rows has duplicates; give one without replacement")
    return _degrees(kernel(sample), rows / max(len(sample), 1), signal, noise, "the kernel matrix of the sample")


def _degrees(A: Float, factor: float, signal: float, noise: float, what: str) -> float:
    s, variance = checked_number("signal", signal) * factor, checked_number("noise", noise)
    require_finite(A, what)
    with single_threaded_blas():
        values = scipy.linalg.eigvalsh(A, check_finite=False) if len(A) else np.zeros(0)
    scaled = s * np.maximum(values, 0.0)
    return float((scaled / (scaled + variance)).sum())


@dataclass(frozen=True)
class QuerySetRule:
    """The rule, looked at.

    Attributes
    ----------
    points : N_Q.
    from_features, from_sample : lower estimates of p_eff; None where it was not asked for.
    sample : rows of the sample.
    """

    points: int
    from_features: float | None = None
    from_sample: float | None = None
    sample: int = 0

    @property
    def degrees(self) -> float:
        """The larger of the estimates."""
        return max(self.from_features or 0.0, self.from_sample or 0.0)

    @property
    def broken(self) -> bool:
        """Whether there are surely fewer query points than degrees of freedom."""
        return self.degrees > self.points

    @property
    def warning(self) -> str | None:
        """One line for the user where the rule is broken."""
        if not self.broken:
            return None
        least = int(np.ceil(self.degrees))
        return (
            f"the committee has {self.points} query points for {self.degrees:.4g} effective degrees of freedom or more "
            f"(a sample of {self.sample:,} rows): its members are not independent given so few; give {least} basis "
            "functions or more, or a longer lengthscale"
        )
