"""Probabilities of more than two classes, from one function per class against the rest.

``p_c = q_c / sum_d q_d`` with ``q_c = E 1 / (1 + e^-f_c)``, f_c normal with the mean and variance of `LatentPosterior`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.predictions.class_probabilities import logistic_normal
from streamkernel.reductions.predictions.latent import LatentPosterior
from streamkernel.reductions.row_map import RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class OneAgainstRest(RowMap):
    """Class probabilities, and the code of the most probable class; the columns are those of `ClassProbabilities`.

    Parameters
    ----------
    latents : LatentPosterior of each class, of one function.
    """

    latents: tuple[LatentPosterior, ...]

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.latents)

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {"probability": (self.classes, np.dtype(np.float64)), "prediction": (None, np.dtype(np.int64))}

    def probabilities(self, X: AnyArray) -> Float:
        """Class probabilities (b, C); each row sums to 1."""
        found = np.empty((len(X), self.classes))
        for c, latent in enumerate(self.latents):
            mean, covariance = latent.moments(X)
            found[:, c] = logistic_normal(mean[:, 0], covariance[:, 0, 0])
        # If all probabilities of a row underflow to 0, all classes become equally likely.
        found += np.finfo(np.float64).tiny
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        return {"predicted": self.probabilities(X)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        probabilities = self.probabilities(block.X)
        return {"probability": probabilities, "prediction": probabilities.argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.latents[0].scratch_bytes(rows) + 8 * rows * (2 * self.classes + 32)

    def flops_per_row(self) -> float:
        return sum(latent.flops_per_row() + 400.0 for latent in self.latents)
