"""Settings of quantile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.records import SettingsRecord
from streamkernel.reductions.margins import Loss, Pinball
from streamkernel.settings.margins import CalibratedSettings, MarginSettingsRecord, half_decades, numbers_of
from streamkernel.settings.parameter import parameter
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

MOST_LEVELS = 100  # quantiles of one fit, each with sums of its own


class QuantileSettingsRecord(MarginSettingsRecord):
    """The options of a fit of quantiles."""

    quantile: float | tuple[float, ...]
    calibration: str | None


@dataclass(frozen=True)
class QuantileSettings(CalibratedSettings):
    """Quantiles of the target at each row, of one level or of several."""

    RECORD: ClassVar[type[SettingsRecord]] = QuantileSettingsRecord
    TAKES_MATRIX: ClassVar[bool] = True
    GRID: ClassVar[tuple[float, ...]] = half_decades(-1, 4)
    # With a free constant exactly the share q of the rows of the fit is below (Takeuchi et al. 2006, lemma 3).
    penalised_constant: ClassVar[bool] = False

    fit_intercept: bool = parameter(
        True, "Whether the model has a constant, which is not penalised.", "rows", kind=bool, flag="intercept"
    )
    quantile: Unchecked = parameter(
        0.5,
        "The level of the quantile, the share of the targets below it: a number between 0 and 1, or several "
        "(0.05,0.5,0.95), whose functions are solved for in the same sweeps and do not cross.",
        kind=list,
    )
    calibration: str | None = parameter(
        None,
        "Whether each function is shifted so that its share of the held-out rows is below it: held-out or none.",
        kind=str,
        words=("held-out", "none"),
        optional=True,
        default_words="held-out where C is chosen by held-out rows, else none",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantile", _levels(self.quantile))
        super().__post_init__()

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels in ascending order."""
        return self.quantile if isinstance(self.quantile, tuple) else (self.quantile,)

    def losses(self, C: float) -> tuple[Loss, ...]:
        return tuple(Pinball(C, level) for level in self.levels)


def _levels(values: Unchecked) -> float | tuple[float, ...]:
    """One level, or several in ascending order.

    Raises
    ------
    ParameterError
        They are no different numbers between 0 and 1.
    """
    several, numbers = numbers_of(values)
    if not numbers or not all(0.0 < level < 1.0 for level in numbers) or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"{option('quantile')} must be a number between 0 and 1, or several different ones, not {values!r:.80}",
            value=values,
        )
    if len(numbers) > MOST_LEVELS:
        raise ParameterError(
            f"{option('quantile')} has {len(numbers)} levels; give at most {MOST_LEVELS}, and interpolate between them",
            value=values,
        )
    return tuple(sorted(numbers)) if several else numbers[0]
