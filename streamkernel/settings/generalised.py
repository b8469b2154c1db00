"""Settings of generalised Gaussian process regression: classes and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.settings.checks import checked_number
from streamkernel.settings.gaussian import TunedSettings

__all__ = ["GeneralisedSettings"]


@dataclass(frozen=True)
class GeneralisedSettings(TunedSettings):
    """Options of generalised Gaussian process regression: those of `TunedSettings`, and

    Parameters
    ----------
    newton_tol : the fit ends when the predicted decrease of a step is less than this share of the loss.
    max_iterations : limit on Newton steps, one sweep each.
    """

    newton_tol: float = 1e-6
    max_iterations: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_number("newton_tol", self.newton_tol, least=0.0, exclusive=True)
        count = self.max_iterations
        if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ParameterError(f"max_iterations must be a whole number > 0, not {count!r}")

    def to_config(self) -> dict[str, Any]:
        return super().to_config() | {
            "newton_tol": float(self.newton_tol),
            "max_iterations": int(self.max_iterations),
        }
