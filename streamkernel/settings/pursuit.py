"""Options of a matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from streamkernel.errors import DataError, ParameterError
from streamkernel.pursuit import AUTO, MatchingPursuit, Pools, share_of
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.checks import checked_choice, checked_number
from streamkernel.table import KnownColumns, Table
from streamkernel.table.model_targets import with_targets_of
from streamkernel.wording import option

__all__ = ["AUTO", "PursuitSettings"]

# Names of the pool options that rules have, too.
_OWN_OF_RULES = ("pool", "candidates", "picks")


@dataclass(frozen=True)
class PursuitSettings(BasisSettings):
    """Options of a matching pursuit: those of a basis, without its rule (the pursuit is the rule), and

    Parameters
    ----------
    variant : "pre-fitting", "back-fitting" or "basic".
    shrinkage : share of each step that "basic" takes, in (0, 1].
    pool, draw, candidates, picks, eps, quantile : candidates of each sweep; see `Pools`.
    validation : share of the rows that is held out and watched, in [0, 1); or a table of other rows. Of a job where
        that table is, which it opens before it fits. None for no such rows; "auto" for a tenth, of fewer than 500 rows
        50 but at most a quarter, and none where fewer than 20 rows differ. Rows that "auto" holds out choose a ridge on
        the functions, too; of all others the model is least squares.
    patience : end once so many terms have not bettered the error on these.
    choose_by : "loss" or "error": whether the size is that of their least loss, or, of classes, of their fewest errors.
    bound_gamma : of one target, by how much a row is missed that Theorem 3 calls wrong; None for no bound.
    loss : "squared", or, of classes, "logistic".
    tol : end once the residual sum of squares is ``tol`` times what a constant leaves.
    """

    # Without a ridge more terms are seldom better, and each costs as much in every prediction.
    MOST_COMPONENTS: ClassVar[int] = 300

    variant: str = "pre-fitting"
    shrinkage: float = 1.0
    pool: str = "shared"
    draw: str = "uniform"
    candidates: int | None = None
    picks: int | None = None
    eps: float = 0.05
    quantile: float = 0.95
    validation: float | str | Table | None = AUTO
    patience: int | None = None
    choose_by: str = "loss"
    bound_gamma: float | None = None
    loss: str = "squared"

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
        # Checked before `super().__post_init__`, which makes the rule of them.
        checked_number("shrinkage", self.shrinkage, least=0.0, exclusive=True, most=1.0)
        checked_choice("choose_by", self.choose_by, ("loss", "error"))
        if self.bound_gamma is not None:
            checked_number("bound_gamma", self.bound_gamma, least=0.0, exclusive=True)
        super().__post_init__()
        if self.choose_by == "error" and self.validation is None:
            raise ParameterError("choose_by='error' counts held-out rows, and there are none; give validation")
        if self.validation is not None and not isinstance(self.validation, (str, Table)):
            if isinstance(self.validation, bool) or not isinstance(self.validation, (int, float, np.number)):
                kind = type(self.validation).__name__
                raise ParameterError(f"validation is of type {kind}; give a share of the rows, (X, y) or a table")
            share = checked_number("validation", self.validation, least=0.0, exclusive=True, most=1.0)
            if share == 1.0:
                raise ParameterError("validation = 1 leaves no rows to fit; give a share of the rows below 1")
        if self.patience is not None:
            whole = isinstance(self.patience, (int, np.integer)) and not isinstance(self.patience, bool)
            if not whole or self.patience < 1:
                raise ParameterError(f"patience must be a whole number > 0, not {self.patience!r}")
            if self.validation is None:
                raise ParameterError("patience watches held-out rows, and there are none; give validation a share")

    @property
    def needs_positive_definite(self) -> bool:
        return False

    def selection_rule(self, *, has_targets: bool) -> MatchingPursuit:
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
            return self if share_of(table.n_rows) else replace(self, validation=None)
        if not isinstance(other, Table) or table.targets is None:
            return self
        known = KnownColumns(
            table.columns, table.named, "the rows of the fit have", "give the same columns", "the validation table"
        )
        other = replace(known.matched(other), columns=table.columns, named=table.named)
        if other.targets is None:
            raise ParameterError(
                f"the {option('validation')} rows have no targets; ingest them with {option('target')}, or give (X, y)"
            )
        try:
            fitting = with_targets_of(other, table.classes, table.n_targets)
        except DataError as error:
            raise type(error)(f"the validation rows: {error.message}") from error
        return replace(self, validation=replace(fitting, dtype=table.dtype, scaler=None))

    def to_config(self) -> dict[str, Any]:
        whole = {name: getattr(self, name) for name in ("candidates", "picks", "patience")}
        return super().to_config() | {
            "rule": self.selection_rule(has_targets=True).name,
            "objective": "prediction",
            "rule_options": {},
            "variant": self.variant,
            "shrinkage": float(self.shrinkage),
            "pool": self.pool,
            "draw": self.draw,
            "loss": self.loss,
            "eps": float(self.eps),
            "quantile": float(self.quantile),
            "validation": self._validation_config(),
            "choose_by": self.choose_by,
            "bound_gamma": None if self.bound_gamma is None else float(self.bound_gamma),
            **{name: None if value is None else int(value) for name, value in whole.items()},
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
