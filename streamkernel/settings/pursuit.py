"""Options of a matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from streamkernel.errors import DataError, ParameterError
from streamkernel.pursuit import AUTO, DRAWS, LOSSES, POOLS, VARIANTS, share_of
from streamkernel.records import Count, Record, SettingsRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.checks import checked_number
from streamkernel.settings.parameter import parameter
from streamkernel.table import KnownColumns, Table
from streamkernel.type_aliases import Fields
from streamkernel.wording import option

if TYPE_CHECKING:
    from streamkernel.pursuit import MatchingPursuit

# Names of the pool options that rules have, too.
_OWN_OF_RULES = ("pool", "candidates", "picks")


class ValidationTable(Record):
    """Another table, whose rows chose the size."""

    rows: Count
    fingerprint: str


class PursuitSettingsRecord(SettingsRecord):
    """The options of a pursuit."""

    variant: str
    loss: Literal["squared", "logistic"]
    shrinkage: float
    pool: str
    draw: str
    eps: float
    quantile: float
    validation: ValidationTable | str | float | None
    choose_by: str
    bound_gamma: float | None
    candidates: Count | None
    picks: Count | None
    patience: Count | None


@dataclass(frozen=True)
class PursuitSettings(BasisSettings):
    """A matching pursuit. It chooses the functions by its own rule; see `Pools` for the candidates of a sweep."""

    RECORD: ClassVar[type[PursuitSettingsRecord]] = PursuitSettingsRecord
    # Without a ridge more terms are seldom better, and each costs as much in every prediction.
    MOST_COMPONENTS: ClassVar[int] = 300
    UNUSED: ClassVar[tuple[str, ...]] = ("rule", "objective", "rule_options")

    n_components: int | None = parameter(
        None,
        "The largest number of terms.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words="sqrt(rows) log(rows), at most 300",
    )
    tol: float = parameter(
        0.0,
        "The fit ends when the squared error is at most this share of that of a constant.",
        "basis",
        least=0.0,
        most=1.0,
    )
    variant: str = parameter(
        "pre-fitting",
        "What a step picks and fits again: pre-fitting picks the function with the smallest residual after all "
        "coefficients are fitted again, back-fitting the function nearest to the residual, basic fits no other "
        "coefficient again.",
        kind=str,
        words=VARIANTS,
    )
    shrinkage: float = parameter(
        1.0, "The share of each step that the variant basic takes.", least=0.0, above=True, most=1.0
    )
    pool: str = parameter(
        "shared",
        "Whether all candidates of a sweep compete at each pick (shared), each pick has its own candidates (split), or "
        "every row is a candidate (full).",
        "basis",
        kind=str,
        words=POOLS,
    )
    draw: str = parameter(
        "uniform",
        "How candidates are drawn: all rows alike (uniform), or by their residuals (residual).",
        kind=str,
        words=DRAWS,
    )
    candidates: int | None = parameter(
        None,
        "The number of candidates for each pick.",
        "basis",
        kind=int,
        checked=False,
        least=1,
        optional=True,
    )
    picks: int | None = parameter(
        None, "The number of picks in a sweep.", "basis", kind=int, checked=False, least=1, optional=True
    )
    eps: float = parameter(
        0.05,
        "The probability that the candidates of a pick have no good one, for the pool split.",
        checked=False,
        least=0.0,
        above=True,
        most=1.0,
    )
    quantile: float = parameter(
        0.95,
        "The quantile above which a candidate is good, for the pool split.",
        checked=False,
        least=0.0,
        above=True,
        most=1.0,
    )
    validation: float | str | Table | None = parameter(
        AUTO,
        "The rows that choose the number of terms: a share of the rows, which is held out, or a table of other rows; "
        "0 for none.",
        kind=object,
        checked=False,
        optional=True,
        default_words="a tenth of the rows; of few rows more",
    )
    patience: int | None = parameter(
        None,
        "The fit ends after this number of terms without a smaller error on the held-out rows.",
        kind=int,
        least=1,
        optional=True,
    )
    choose_by: str = parameter(
        "loss",
        "What the held-out rows choose the number of terms by, for classes: the smallest loss, or the fewest errors.",
        kind=str,
        words=("loss", "error"),
    )
    bound_gamma: float | None = parameter(
        None,
        "For one target, the error above which a row counts as wrong in the bound of the report.",
        least=0.0,
        above=True,
        optional=True,
    )
    loss: str = parameter("squared", "The loss: squared, or for classes logistic.", kind=str, words=LOSSES)

    def __post_init__(self) -> None:
        for name in _OWN_OF_RULES:
            # The command line passes these among the options of the rules.
            if name in self.rule_options:
                object.__setattr__(self, name, self.rule_options[name])
        further = [name for name in self.rule_options if name not in _OWN_OF_RULES]
        if self.rule != "few-sweep" or further:
            what = option("rule_options", further[0]) if further else option("rule", self.rule)
            raise ParameterError(
                f"{what} means nothing to matching pursuit, which chooses functions by its own rule; leave it out, or "
                "choose another estimator"
            )
        number = isinstance(self.validation, (int, float, np.number)) and not isinstance(self.validation, bool)
        if number and self.validation == 0:
            object.__setattr__(self, "validation", None)
        super().__post_init__()
        if self.choose_by == "error" and self.validation is None:
            raise ParameterError(
                f"{option('choose_by', 'error')} counts held-out rows, and there are none; give {option('validation')}"
            )
        if self.validation is not None and not isinstance(self.validation, (str, Table)):
            if isinstance(self.validation, bool) or not isinstance(self.validation, (int, float, np.number)):
                kind = type(self.validation).__name__
                raise ParameterError(
                    f"{option('validation')} is of type {kind}; give a share of the rows, (X, y) or a table"
                )
            share = checked_number("validation", self.validation, least=0.0, exclusive=True, most=1.0)
            if share == 1.0:
                raise ParameterError(
                    f"{option('validation')} = 1 leaves no rows to fit; give a share of the rows below 1"
                )
        if self.patience is not None and self.validation is None:
            raise ParameterError(
                f"{option('patience')} watches held-out rows, and there are none; give {option('validation')} a share"
            )

    @property
    def needs_positive_definite(self) -> bool:
        return False

    def selection_rule(self, *, has_targets: bool) -> MatchingPursuit:
        # The command line reads the options of all kinds, and a fit of another kind need not load the pursuit.
        from streamkernel.pursuit import MatchingPursuit, Pools

        pools = Pools(self.pool, self.draw, self.candidates, self.picks, self.eps, self.quantile)
        return MatchingPursuit(
            self.variant,
            float(self.shrinkage),
            pools,
            bool(self.fit_intercept),
            self._watched_rows(),
            None if self.patience is None else int(self.patience),
            self.loss,
            self.choose_by == "error",
            None if self.bound_gamma is None else float(self.bound_gamma),
        )

    def takes_columns(self, table: Table) -> bool:
        return False

    def watching(self, table: Table) -> PursuitSettings:
        """The settings for a fit to `table`: other validation rows get its columns, classes and dtype, but no scale.

        Raises
        ------
        DataError
            The validation rows have other columns or targets, or labels that the rows of the fit do not have.
        """
        other = self.validation
        if isinstance(other, str) and other == AUTO:
            # Where the share is 0, the rows are too few: none are held out.
            return self if share_of(table.counted) else replace(self, validation=None)
        if not isinstance(other, Table) or table.targets is None:
            return self
        known = KnownColumns(
            table.columns, table.named, "the rows of the fit have", "give the same columns", "the validation table"
        )
        other = replace(known.matched(other).as_sparse(table.sparse), columns=table.columns, named=table.named)
        if other.targets is None:
            raise ParameterError(
                f"the {option('validation')} rows have no targets; ingest them with {option('target')}, or give (X, y)"
            )
        try:
            fitting = other.targets_in_order(table.target_names).for_model(table.classes, table.n_targets)
        except DataError as error:
            raise type(error)(f"of the validation rows: {error.message}") from error
        return replace(self, validation=replace(fitting, dtype=table.dtype, scaler=None))

    def to_config(self) -> Fields:
        return super().to_config() | {
            "rule": self.selection_rule(has_targets=True).name,
            "objective": "prediction",
            "rule_options": {},
            "validation": self._validation_config(),
        }

    def _validation_config(self) -> Any:
        if isinstance(self.validation, Table):
            return {"rows": self.validation.n_rows, "fingerprint": self.validation.fingerprint}
        return float(self.validation) if isinstance(self.validation, (int, float)) else self.validation

    def held_out(self, watched: float, rows: int) -> PursuitSettings:
        """The settings with "auto" replaced by the share that a fit to `rows` rows held out; None if `watched` is 0."""
        automatic = isinstance(self.validation, str) and self.validation == AUTO
        return replace(self, validation=share_of(rows) if watched > 0.0 else None) if automatic else self

    def _watched_rows(self) -> float | str | Table:
        """The rule's `watch` argument; a table that is not open counts as no held-out rows."""
        if isinstance(self.validation, str) and self.validation != AUTO:
            return 0.0
        return 0.0 if self.validation is None else self.validation
