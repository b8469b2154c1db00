"""Settings of support vector machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.records import NonNegative, SettingsRecord
from streamkernel.reductions.margins import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from streamkernel.settings._searched import SEARCHED, SearchedSettings
from streamkernel.settings.classes import ClassifierSettings, ClassifierSettingsRecord, calibration_of_classes
from streamkernel.settings.gap import GapSettings, GapSettingsRecord, MachineSettings
from streamkernel.settings.parameter import parameter
from streamkernel.settings.ridge import BUCKETS, LEAST_FOLDED
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

DEFAULT_C = 1.0
CV = "cv"
ONE_VS_REST, ONE_VS_ONE = "one-vs-rest", "one-vs-one"
MOST_PAIRED = 50  # classes of one against one: each pair has sums of its own


def half_decades(first: int, last: int) -> tuple[float, ...]:
    return tuple(10.0 ** (power / 2.0) for power in range(2 * first, 2 * last + 1))


class MarginSettingsRecord(GapSettingsRecord):
    """The options of a fit of a support vector machine."""

    C: Literal["cv"] | float | tuple[float, ...]


@dataclass(frozen=True)
class MarginSettings(SearchedSettings, GapSettings):
    """A support vector machine on the whitened features of a basis."""

    RECORD: ClassVar[type[SettingsRecord]] = MarginSettingsRecord
    # Values of C that a search tries on a sample. It goes on beyond its ends where the error still falls.
    GRID: ClassVar[tuple[float, ...]] = half_decades(-2, 3)

    fit_intercept: bool = parameter(
        True,
        "Whether the model has a constant. Its square is penalised like those of the other coefficients; that of the "
        "full machine is not.",
        "rows",
        kind=bool,
        flag="intercept",
    )
    C: Unchecked = parameter(
        None,
        "The cost of a unit of loss, in deviations of the target: a number, several (0.1,1,10) or cv for a search; of "
        "several the one with the least error on held-out rows is taken.",
        words=(CV,),
        kind=list,
        optional=True,
        default_words=f"cv {SEARCHED}, 1 below and for the full machine",
    )

    def __post_init__(self) -> None:
        if not (self.C is None or isinstance(self.C, str)):
            # Tuples: settings are compared, and a caller may change the list.
            object.__setattr__(self, "C", _costs(self.C))
        super().__post_init__()

    def left_to(self, table: Table) -> Fields:
        """As in the base class, and C: by held-out rows with as many rows, else 1."""
        found = super().left_to(table)
        return found if self.C is not None else found | {"C": CV if self.enough(table) and not self.full else DEFAULT_C}

    def costs(self, table: Table) -> tuple[float, ...]:
        """As in the base class; of too few rows to hold some out, 1 in place of a search."""
        if isinstance(self.C, str) or self.C is None:
            return self.GRID if table.counted >= LEAST_FOLDED else (DEFAULT_C,)
        return self.C if isinstance(self.C, tuple) else (self.C,)

    @property
    def searches(self) -> bool:
        return isinstance(self.C, str)

    @property
    def holds_out(self) -> bool:
        """Whether held-out rows are needed where there are enough rows."""
        return self.searches or isinstance(self.C, tuple)

    def folds(self, rows: int) -> Folds | None:
        """One validation fold; None where nothing is chosen by it, or of too few rows."""
        if rows < LEAST_FOLDED:
            if isinstance(self.C, tuple):
                raise ParameterError(
                    f"{option('C')} has {len(self.C)} values, and of {rows} rows too few can be held out to choose by; "
                    f"give one, or at least {LEAST_FOLDED} rows"
                )
            return None
        return Folds(1, BUCKETS, self.seed) if self.holds_out else None


def numbers_of(values: Unchecked) -> tuple[bool, list[float]]:
    """Whether there are several numbers, and these; none where one of them is no number."""
    several = isinstance(values, (Sequence, np.ndarray)) and np.ndim(values) > 0
    each = list(values) if several else [values]
    try:
        numbers = [float(value) for value in each]
    except (TypeError, ValueError):
        return several, []
    return several, [] if any(isinstance(value, (bool, np.bool_, str, bytes)) for value in each) else numbers


def _costs(values: Unchecked) -> float | tuple[float, ...]:
    """One cost, or several in ascending order.

    Raises
    ------
    ParameterError
        They are no finite numbers > 0.
    """
    _, numbers = numbers_of(values)
    if not numbers or not all(math.isfinite(value) and value > 0.0 for value in numbers):
        raise ParameterError(
            f"{option('C')} must be 'cv', a finite number > 0 or several of them, not {values!r:.80}", value=values
        )
    distinct = tuple(sorted(set(numbers)))
    return distinct if len(distinct) > 1 else distinct[0]


_CLASS_LOSSES: dict[str, Callable[[float, float], Loss]] = {
    "squared_hinge": lambda C, sharpness: SquaredHinge(C),
    "hinge": lambda C, sharpness: Hinge(C),
    "smoothed_hinge": SmoothedHinge,
    "logistic": lambda C, sharpness: Logistic(C),
}
_NUMBER_LOSSES: dict[str, Callable[[float, float], Loss]] = {
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "epsilon_insensitive": EpsilonInsensitive,
    "huber": Huber,
}


@dataclass(frozen=True)
class CalibratedSettings(MarginSettings):
    """A support vector machine whose values may be corrected by the held-out rows; subclasses state how."""

    calibration: str | None = parameter(None, "", kind=str, words=("none",), optional=True)

    @property
    def calibrates(self) -> bool:
        """Whether values are corrected, of enough rows."""
        return self.calibration != "none" if self.calibration is not None else super().holds_out

    @property
    def holds_out(self) -> bool:
        return super().holds_out or self.calibrates


class MarginClassifierSettingsRecord(MarginSettingsRecord, ClassifierSettingsRecord):
    """The options of a fit of a support vector classifier."""

    loss: str
    sharpness: float
    calibration: str | None
    multi_class: str = "one-vs-rest"
    machine: str = "reduced"


@dataclass(frozen=True)
class MarginClassifierSettings(CalibratedSettings, MachineSettings, ClassifierSettings):
    """A support vector classifier."""

    RECORD: ClassVar[type[SettingsRecord]] = MarginClassifierSettingsRecord
    TAKES_MATRIX: ClassVar[bool] = True
    EXACT: ClassVar[str] = "hinge"

    loss: str = parameter(
        "squared_hinge",
        "The loss of a row: squared_hinge (by Newton's method, the fewest sweeps), hinge (exact, by an interior point "
        "method), smoothed_hinge (the squared hinge without its corner) or logistic.",
        kind=str,
        words=tuple(_CLASS_LOSSES),
    )
    sharpness: float = parameter(
        5.0, "The sharpness s of the smoothed hinge log(1 + exp(s x)) / s.", least=0.0, above=True
    )
    calibration: str | None = calibration_of_classes()
    multi_class: str = parameter(
        ONE_VS_REST,
        "The functions of three or more classes: one-vs-rest (a function for each class, and the largest wins) or "
        "one-vs-one (a function for each pair of classes, of the rows of these two, and the most votes win).",
        kind=str,
        words=(ONE_VS_REST, ONE_VS_ONE),
    )

    def _check_full(self) -> None:
        super()._check_full()
        if self.multi_class != ONE_VS_REST:
            raise ParameterError(
                f"{option('multi_class')} {self.multi_class} is of the reduced machine; give "
                f"{option('multi_class', ONE_VS_REST)}, or {option('machine', 'reduced')}"
            )

    def pairs(self, classes: int) -> bool:
        """Whether a function is fitted for each pair of so many classes.

        Raises
        ------
        ParameterError
            There are too many classes for that.
        """
        if self.multi_class != ONE_VS_ONE or classes < 3:
            return False
        if classes > MOST_PAIRED:
            raise ParameterError(
                f"{option('multi_class')} {ONE_VS_ONE} has a function for each of {classes * (classes - 1) // 2:,} "
                f"pairs of {classes} classes; give {option('multi_class', ONE_VS_REST)}, or at most {MOST_PAIRED} "
                "classes"
            )
        return True

    def losses(self, C: float) -> tuple[Loss, ...]:
        return (_CLASS_LOSSES[self.loss](C, self.sharpness),)


class MarginRegressorSettingsRecord(MarginSettingsRecord):
    """The options of a fit of a support vector regression."""

    loss: str
    epsilon: NonNegative
    machine: str = "reduced"


@dataclass(frozen=True)
class MarginRegressorSettings(MarginSettings, MachineSettings):
    """A support vector regression."""

    RECORD: ClassVar[type[SettingsRecord]] = MarginRegressorSettingsRecord
    TAKES_MATRIX: ClassVar[bool] = True
    EXACT: ClassVar[str] = "epsilon_insensitive"
    # Functions with little noise want a much larger C than boundaries do.
    GRID: ClassVar[tuple[float, ...]] = half_decades(-1, 5)

    loss: str = parameter(
        "squared_epsilon_insensitive",
        "The loss of a row: squared_epsilon_insensitive (by Newton's method, the fewest sweeps), epsilon_insensitive "
        "(exact, by an interior point method) or huber.",
        kind=str,
        words=tuple(_NUMBER_LOSSES),
    )
    epsilon: float = parameter(
        0.1,
        "Half the width of the tube in which errors cost nothing, in deviations of the target; for huber the error "
        "from which the loss is linear.",
        least=0.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "huber" and not self.epsilon > 0.0:
            raise ParameterError(
                f"{option('epsilon')} is 0, and the loss huber is linear from there on: it has no curvature; give a "
                f"number > 0, or {option('loss', 'epsilon_insensitive')}",
                value=self.epsilon,
            )

    def losses(self, C: float) -> tuple[Loss, ...]:
        return (_NUMBER_LOSSES[self.loss](C, self.epsilon),)
