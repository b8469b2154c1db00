"""The query points of a Bayesian committee machine, and a check of their number.

Members are assumed to be independent given f at the query points (Tresp 2001, eq. (7)). This is a good assumption if
there are at least as many query points as effective degrees of freedom of the process (Tresp 2000)::

    N_Q >= p_eff = tr s K (s K + noise I)^-1 = sum_j s l_j / (s l_j + noise),      l_j eigenvalues of K (m, m)

K is never computed. Two lower estimates of p_eff are (ALGORITHMS 6.1):

- from the sums of a fit: K~ = G G^T <= K has the eigenvalues h of ``H = G^T G``. `degrees_of_features` is always less
  than N_Q, so it never breaks the rule; it shows how many of the query points the data use;
- from c rows of m, drawn uniformly: the eigenvalues of K / m are about those of the sample's own matrix over c, so that
  ``l_j = (m / c) l_j(K_c)``. This is exact for c = m. Otherwise it is below p_eff on average, because p_eff is concave
  in the mean over rows of ``phi phi^T`` (Jensen). It is also less than c, so `degrees_of_sample` needs a sample of
  several times N_Q rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_rows
from streamkernel.linalg import require_finite, single_threaded_blas
from streamkernel.type_aliases import Float, Int, Unchecked


def query_set(landmarks: Basis, points: Unchecked) -> tuple[Basis, Int]:
    """Landmarks and the points of the predictions, as one query set.

    Returns
    -------
    basis : landmarks, then points, without those that depend on the ones before them; row numbers of points are -1.
    kept : (r,) positions, among `points`, of those in the basis. The others lie in its span: they can be predicted too.
    """
    asked = checked_rows(points, "points", landmarks.points.shape[1])
    return landmarks.append(asked, np.full(len(asked), -1, np.int64))


def degrees_of_features(H: Float, signal: float, noise: float = 1.0) -> float:
    """``sum_j s h_j / (s h_j + noise)``, h the eigenvalues of ``H = G^T G``; noise is 1 if H contains ``Om^-1``."""
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
        values = np.linalg.eigvalsh(A) if len(A) else np.zeros(0)
    scaled = s * np.maximum(values, 0.0)
    return float((scaled / (scaled + variance)).sum())


@dataclass(frozen=True)
class QuerySetRule:
    """The rule on the number of query points, with its numbers.

    Attributes
    ----------
    points : number N_Q of query points.
    from_features, from_sample : lower estimates of p_eff; None if not requested.
    sample : number of rows of the sample.
    """

    points: int
    from_features: float | None = None
    from_sample: float | None = None
    sample: int = 0

    @property
    def degrees(self) -> float:
        """The larger one of the estimates."""
        return max(self.from_features or 0.0, self.from_sample or 0.0)

    @property
    def broken(self) -> bool:
        """Whether there are certainly fewer query points than degrees of freedom."""
        return self.degrees > self.points

    @property
    def warning(self) -> str | None:
        """A warning of one line if the rule is broken; else None."""
        if not self.broken:
            return None
        least = int(np.ceil(self.degrees))
        return (
            f"the committee has {self.points} query points for {self.degrees:.4g} effective degrees of freedom or more "
            f"(a sample of {self.sample:,} rows): its members are not independent given so few; give {least} basis "
            "functions or more, or a longer lengthscale"
        )
