"""Settings of boosting."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.records import Count, NonNegative, SettingsRecord
from streamkernel.selection import Rule, SupportVectors
from streamkernel.settings._searched import SearchedSettings
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.classes import ClassifierSettings, ClassifierSettingsRecord
from streamkernel.settings.parameter import parameter
from streamkernel.settings.ridge import LEAST_FOLDED
from streamkernel.table import Folds, Table
from streamkernel.wording import option

RESAMPLING, FILTERING = "resampling", "filtering"
BOUNDED, EXPONENTIAL = "bounded", "exponential"
SVM, RIDGE, KMP = "svm", "ridge", "kmp"
MACHINES = 3  # of boosting by filtering
# Rows of a member where their number is not given: this share of the rows, within these numbers.
SHARE, LEAST_MEMBER_ROWS, MOST_MEMBER_ROWS = 0.04, 200, 10_000
MOST_MEMBER = 20_000  # rows of a member, whose kernel matrix the ridge factors
_MOST_HELD = 0.5
_BUCKETS = 1000


class BoostingSettingsRecord(ClassifierSettingsRecord):
    """The options of a fit by boosting."""

    method: str
    learner: str
    voting: str | None
    members: Count
    member_rows: float | None
    C: float
    member_alpha: NonNegative
    validation: float
    patience: Count | None
    search_rows: Count | None
    calibration: str
    masses: str | None = None


@dataclass(frozen=True)
class BoostingSettings(SearchedSettings, ClassifierSettings):
    """A vote of members that are fitted one after another, each to rows that the ones before get wrong."""

    RECORD: ClassVar[type[SettingsRecord]] = BoostingSettingsRecord
    # No basis is chosen: the functions of a member are at rows that were drawn for it.
    UNUSED: ClassVar[tuple[str, ...]] = ("rule", "objective", "rule_options", "tol", "fit_intercept")

    n_components: int | None = parameter(
        None,
        "The largest number of functions of one member: of the learner kmp the number of its terms, of ridge those of "
        "rows that are drawn among its own, of svm the rows that it is fitted to.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words="30 for the learner kmp, else the rows of a member",
    )
    method: str = parameter(
        RESAMPLING,
        "How rows are drawn: resampling (AdaBoost: in proportion to weights that grow where members are wrong) or "
        "filtering (Schapire's three machines, of two classes).",
        kind=str,
        words=(RESAMPLING, FILTERING),
    )
    learner: str = parameter(
        SVM,
        "The members: svm (support vector machines by SMO), ridge (kernel ridge on all rows of a member) or kmp "
        "(matching pursuit of few functions).",
        kind=str,
        words=(SVM, RIDGE, KMP),
    )
    voting: str | None = parameter(
        None,
        "How members vote: hard (the weight of a member for its class, AdaBoost's vote) or soft (its weight times its "
        "confidence, how far the value of that class is above the next, at most the margin).",
        kind=str,
        words=("hard", "soft"),
        optional=True,
        default_words="soft, for filtering hard",
    )
    masses: str | None = parameter(
        None,
        "The mass of a row, in proportion to which it is drawn, from the margin u of the vote: bounded (MadaBoost: its "
        "weight times min(1, exp(-u))) or exponential (AdaBoost: its weight times exp(-u), u of the hard vote).",
        kind=str,
        words=(BOUNDED, EXPONENTIAL),
        optional=True,
        default_words="bounded for a soft vote, else exponential",
    )
    members: int = parameter(50, "The largest number of members of resampling.", kind=int, least=1)
    member_rows: float | None = parameter(
        None,
        "The rows that a member is fitted to: their number, or below 1 their share of all rows.",
        least=0.0,
        above=True,
        most=MOST_MEMBER,
        optional=True,
        default_words=f"4 % of the rows, at least {LEAST_MEMBER_ROWS} and at most {MOST_MEMBER_ROWS:,}",
    )
    C: float = parameter(1.0, "The cost of a unit of loss in a member of the learner svm.", least=0.0, above=True)
    member_alpha: float = parameter(
        0.1,
        "The ridge of a member of the learner ridge, added to the diagonal of its kernel matrix.",
        least=0.0,
        above=True,
    )
    validation: float = parameter(
        0.1,
        "The share of the rows that is held out of all members: of the votes of the first 1, 2, ... members the one "
        f"with the least error on them is kept; 0 for none. Of fewer than {LEAST_FOLDED} rows none is.",
        least=0.0,
        most=_MOST_HELD,
    )
    patience: int | None = parameter(
        None,
        "The fit ends after this number of members without a smaller error on held-out rows.",
        kind=int,
        least=1,
        optional=True,
        default_words="no such end",
    )
    search_rows: int | None = parameter(
        None,
        "The largest number of rows, from the first, that filtering reads to find the rows of each of its machines.",
        kind=int,
        least=1,
        optional=True,
        default_words="all rows",
    )
    calibration: str = parameter(
        "none",
        "How probabilities follow from the vote on held-out rows: platt (a logistic function), isotonic (an increasing "
        "one) or none.",
        kind=str,
        words=("platt", "isotonic", "none"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule_options:
            raise ParameterError(
                f"{option('rule_options', next(iter(self.rule_options)))} is of the choice of a basis, and the "
                "functions of boosting are at rows that are drawn for its members; leave it out"
            )
        rows = self.member_rows
        if rows is not None and rows >= 1 and (rows < 2 or rows != int(rows)):
            raise ParameterError(
                f"{option('member_rows')} is {rows:g}; give a whole number of at least 2 rows, or a share below 1",
                value=rows,
            )
        if self.learner == SVM and self.n_components is not None and rows is not None and rows > self.n_components:
            raise ParameterError(
                f"{option('member_rows')} is {rows:g} and {option('n_components')} {self.n_components}: each row of a "
                f"member of the learner svm may be a function; leave {option('n_components')} out"
            )
        if self.search_rows is not None and self.method != FILTERING:
            raise ParameterError(
                f"{option('search_rows')} is of filtering; leave it out, or give {option('method', FILTERING)}"
            )
        if self.voting == "soft" and self.filters:
            raise ParameterError(
                f"{option('voting')} soft is of resampling, and the three machines of filtering have a vote each; "
                f"leave {option('voting')} out"
            )
        if self.masses is not None and self.filters:
            raise ParameterError(
                f"{option('masses')} is of resampling, and filtering weights no rows; leave {option('masses')} out"
            )
        if self.validation == 0.0:
            for name, value in (("patience", self.patience), ("calibration", self.calibration)):
                if value not in (None, "none"):
                    raise ParameterError(
                        f"{option(name)} needs held-out rows, and {option('validation')} is 0; give a share of the rows"
                    )

    def selection_rule(self, *, has_targets: bool) -> Rule:
        return SupportVectors()

    def takes_columns(self, table: Table) -> bool:
        return False

    @property
    def filters(self) -> bool:
        """Whether it is boosting by filtering."""
        return self.method == FILTERING

    @property
    def soft(self) -> bool:
        """Whether votes count by their confidence."""
        return not self.filters and self.voting != "hard"

    @property
    def bounded(self) -> bool:
        """Whether the mass of a row is at most its weight."""
        return not self.filters and (self.soft if self.masses is None else self.masses == BOUNDED)

    @property
    def most_members(self) -> int:
        """The largest number of members."""
        return MACHINES if self.filters else self.members

    def rows_of_member(self, table: Table) -> int:
        """Number of rows that a member is fitted to; of fewer rows all are.

        Raises
        ------
        ParameterError
            A share of the rows is more rows than a member may have.
        """
        if self.member_rows is None:
            found = max(LEAST_MEMBER_ROWS, min(round(SHARE * table.counted), MOST_MEMBER_ROWS))
            return found if self.learner != SVM or self.n_components is None else max(2, min(found, self.n_components))
        if self.member_rows >= 1:
            return int(self.member_rows)
        found = max(2, round(self.member_rows * table.counted))
        if found > MOST_MEMBER:
            raise ParameterError(
                f"{option('member_rows')} {self.member_rows:g} is {found:,} rows of {table.counted:,}; a member has at "
                f"most {MOST_MEMBER:,}: give a number, or a smaller share"
            )
        return found

    def functions_of_member(self, table: Table) -> int:
        """Largest number of functions of a member."""
        rows = min(self.rows_of_member(table), table.n_rows)
        default = 30 if self.learner == KMP else rows
        return min(rows, default if self.n_components is None else self.n_components)

    def components(self, table: Table) -> int:
        """Largest number of functions of one member."""
        # The base class checks that the kernel fits the columns.
        BasisSettings.components(self, table)
        return self.functions_of_member(table)

    def folds(self, table: Table) -> Folds | None:
        """Folds of held-out rows, which count as one; None where no row is held out."""
        if self.validation == 0.0 or table.counted < LEAST_FOLDED:
            return None
        share = Fraction(max(round(self.validation * _BUCKETS), 1), _BUCKETS)
        return Folds(share.numerator, share.denominator, self.seed)


def check_classes(settings: BoostingSettings, classes: int) -> None:
    """Refuse filtering of more than two classes: `ParameterError`."""
    if settings.filters and classes > 2:
        raise ParameterError(
            f"{option('method')} filtering is of two classes, and the table has {classes}; give "
            f"{option('method', RESAMPLING)}"
        )
