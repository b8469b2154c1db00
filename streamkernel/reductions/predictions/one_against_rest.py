"""Probabilities of more than two classes, from one function per class against the rest.

``p_c = q_c / sum_d q_d`` with ``q_c = E 1 / (1 + e^-f_c)``, f_c normal with the mean and variance of `LatentPosterior`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.predictions.class_probabilities import logistic_normal
from streamkernel.reductions.predictions.latent import LatentPosterior
from streamkernel.reductions.row_map import ProbabilityMap
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True)
class OneAgainstRest(ProbabilityMap):
    """The normalised probabilities of one process per class.

    Parameters
    ----------
    latents : LatentPosterior of each class, of one function.
    """

    latents: tuple[LatentPosterior, ...]

    @property
    def classes(self) -> int:
        return len(self.latents)

    def probabilities(self, X: AnyArray) -> Float:
        found = np.empty((len(X), self.classes))
        for c, latent in enumerate(self.latents):
            mean, covariance = latent.moments(X)
            found[:, c] = logistic_normal(mean[:, 0], covariance[:, 0, 0])
        # If all probabilities of a row underflow to 0, all classes become equally likely.
        found += np.finfo(np.float64).tiny
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def scratch_bytes(self, rows: int) -> int:
        return self.latents[0].scratch_bytes(rows) + 8 * rows * (2 * self.classes + 32)

    def flops_per_row(self) -> float:
        return sum(latent.flops_per_row() + 400.0 for latent in self.latents)
