"""Settings of generalised Gaussian process regression: classes and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.records import Count
from streamkernel.settings.gaussian import TunedSettings, TunedSettingsRecord
from streamkernel.settings.parameter import parameter


class GeneralisedSettingsRecord(TunedSettingsRecord):
    """The options of a fit."""

    newton_tol: float
    max_iterations: Count


@dataclass(frozen=True)
class GeneralisedSettings(TunedSettings):
    """Generalised Gaussian process regression."""

    RECORD: ClassVar[type[GeneralisedSettingsRecord]] = GeneralisedSettingsRecord

    newton_tol: float = parameter(
        1e-6,
        "The fit ends when the predicted decrease of a Newton step is less than this share of the loss.",
        least=0.0,
        above=True,
    )
    max_iterations: int = parameter(30, "The largest number of Newton steps, one sweep each.", kind=int, least=1)
