"""What a user asks of a matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.estimators.settings import BasisSettings, checked_number
from streamkernel.pursuit import MatchingPursuit, Pools

__all__ = ["PursuitSettings"]

# What the pool and its size are called where rules have such options, too.
_OWN_OF_RULES = ("pool", "candidates", "picks")


@dataclass(frozen=True)
class PursuitSettings(BasisSettings):
    """Options of a matching pursuit: those of a basis but for its rule, which the pursuit is, and

    Parameters
    ----------
    variant : "pre-fitting", "back-fitting" or "basic".
    shrinkage : of the steps of basic, in (0, 1].
    pool, draw, candidates, picks, eps, quantile : candidates of each sweep; see `Pools`.
    validation : share of the rows that is held out and watched, in [0, 1).
    patience : end once so many terms have not bettered the error on these.
    loss : "squared", or, of two classes, "logistic".
    tol : end once the residual sum of squares is ``tol`` times what a constant leaves.
    """

    variant: str = "pre-fitting"
    shrinkage: float = 1.0
    pool: str = "shared"
    draw: str = "uniform"
    candidates: int | None = None
    picks: int | None = None
    eps: float = 0.05
    quantile: float = 0.95
    validation: float | None = None
    patience: int | None = None
    loss: str = "squared"

    def __post_init__(self) -> None:
        for name in _OWN_OF_RULES:
            # On the command line these stand among the options of the rules.
            if name in self.rule_options:
                object.__setattr__(self, name, self.rule_options[name])
        further = [name for name in self.rule_options if name not in _OWN_OF_RULES]
        if self.rule != "few-sweep" or further:
            what = f"--rule-option {further[0]}" if further else f"--rule {self.rule}"
            raise ParameterError(
                f"{what} means nothing to matching pursuit, which chooses functions by its own rule; leave it out, or "
                "choose another estimator"
            )
        super().__post_init__()
        checked_number("shrinkage", self.shrinkage, least=0.0, exclusive=True, most=1.0)
        if self.validation is not None:
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
            float(self.validation or 0.0),
            None if self.patience is None else int(self.patience),
            self.loss,
        )

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
            "validation": None if self.validation is None else float(self.validation),
            **{name: None if value is None else int(value) for name, value in whole.items()},
        }
