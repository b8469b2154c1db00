"""Settings of support vector machines, and of all problems that end at a duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.records import Count, NonNegative, SettingsRecord
from streamkernel.reductions.margins import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    PiecewiseLinear,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from streamkernel.selection import Rule, SupportVectors
from streamkernel.settings._searched import SEARCHED, SearchedSettings
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.classes import ClassifierSettings, ClassifierSettingsRecord, calibration_of_classes
from streamkernel.settings.parameter import parameter, parameters_in
from streamkernel.settings.ridge import BUCKETS, LEAST_FOLDED
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

DEFAULT_C = 1.0
CV = "cv"
FULL = "full"
ONE_VS_REST, ONE_VS_ONE = "one-vs-rest", "one-vs-one"
MOST_PAIRED = 50  # classes of one against one: each pair has sums of its own
# Rows of the working set of the full machine, where their number is not given.
MOST_WORKING_ROWS = 50_000


def half_decades(first: int, last: int) -> tuple[float, ...]:
    return tuple(10.0 ** (power / 2.0) for power in range(2 * first, 2 * last + 1))


class GapSettingsRecord(SettingsRecord):
    """The options of a fit that ends at a duality gap."""

    gap_tol: NonNegative
    max_sweeps: Count


@dataclass(frozen=True)
class GapSettings(BasisSettings):
    """A large margin problem on the whitened features of a basis, solved to a duality gap."""

    RECORD: ClassVar[type[SettingsRecord]] = GapSettingsRecord
    # Whether the square of the constant is in the objective, as those of the other coefficients are.
    penalised_constant: ClassVar[bool] = True

    gap_tol: float = parameter(
        1e-4,
        "The fit ends when the duality gap is at most this share of the objective.",
        least=0.0,
        above=True,
        most=1.0,
    )
    max_sweeps: int = parameter(100, "The largest number of sweeps of one solution.", kind=int, least=1)

    def costs(self, table: Table) -> tuple[float, ...]:
        """The values of C to try, in ascending order."""
        raise NotImplementedError

    @property
    def easier(self) -> str:
        """What takes fewer sweeps, in words for a warning."""
        return f"a smaller {option('C')}"

    @property
    def searches(self) -> bool:
        """Whether values of C beyond those of `costs` may be tried."""
        return False

    @property
    def full(self) -> bool:
        """Whether all rows are functions, and the support vectors are those of the model."""
        return False

    def pairs(self, classes: int) -> bool:
        """Whether a function is fitted for each pair of so many classes."""
        return False

    def losses(self, C: float) -> tuple[Loss, ...]:
        """The losses whose problems share all features and one target, for a cost C: one, or one for each quantile."""
        raise NotImplementedError


@dataclass(frozen=True)
class MachineSettings(GapSettings):
    """A machine on a basis, or on all rows."""

    EXACT: ClassVar[str] = ""  # the loss of the full machine, where there is a choice

    machine: str = parameter(
        "reduced",
        "What the functions are: those of a basis of chosen rows (reduced), or those of all rows, of which the support "
        f"vectors remain (full): exact, with at most as many support vectors as the basis size, {MOST_WORKING_ROWS:,} "
        "where it is not given.",
        kind=str,
        words=("reduced", FULL),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full:
            self._check_full()

    def _check_full(self) -> None:
        """Refuse settings that mean nothing to the full machine: `ParameterError`."""
        whole = option("machine", FULL)
        if not isinstance(self.losses(1.0)[0], PiecewiseLinear):
            raise ParameterError(
                f"{option('loss')} is {getattr(self, 'loss', '')}, with which all rows are support vectors; "
                f"{whole} has the exact one: give {option('loss', self.EXACT)}, or {option('machine', 'reduced')}"
            )
        stated = parameters_in(self)
        for name in ("rule", "rule_options", "objective", "tol"):
            if getattr(self, name) != stated[name][1]:
                raise ParameterError(
                    f"{option(name)} is of the choice of a basis, and the functions of {whole} are its support "
                    f"vectors; leave it out, or give {option('machine', 'reduced')}"
                )
        if self.searches:
            raise ParameterError(
                f"{option('C')} 'cv' is searched for with a basis; with {whole} give one or several numbers, such as "
                f"those around the C that {option('machine', 'reduced')} finds"
            )
        if self.n_components == 1:
            raise ParameterError(
                f"{option('n_components')} is 1, and the working set of {whole} needs two rows; give at least 2"
            )

    @property
    def full(self) -> bool:
        return self.machine == FULL

    def selection_rule(self, *, has_targets: bool) -> Rule:
        return SupportVectors() if self.full else super().selection_rule(has_targets=has_targets)

    def takes_columns(self, table: Table) -> bool:
        return not self.full and super().takes_columns(table)

    def components(self, table: Table) -> int:
        """As in the base class; of the full machine the rows of its working set."""
        found = super().components(table)
        return min(table.n_rows, MOST_WORKING_ROWS) if self.full and self.n_components is None else found

    def to_config(self) -> Fields:
        config = super().to_config()
        # Runs that an earlier release interrupted have no such field; they go on as if it were absent.
        if not self.full:
            del config["machine"]
        return config


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
        "Whether the model has a constant; its square is penalised as those of the other coefficients are, but for the "
        "full machine.",
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
