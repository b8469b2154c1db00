"""The table of rules: each a row of (draw, score, take).

| name | draw candidates | score | take |
|---|---|---|---|
| uniform | uniform | - | n |
| sgma | uniform, 59 | function-space gain, on all rows | 1 |
| rpcholesky | residual-weighted | accept / reject | block |
| rpcholesky-block | residual-weighted | - | block |
| few-sweep, trace | residual-weighted, 4 a pick | function-space gain, on weighted rows | a geometric share of n |
| few-sweep, prediction | uniform, 4 to 16 a pick | what it explains of Y | a geometric share of n |
"""

from __future__ import annotations

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.selection.draws import ResidualDraw, UniformDraw
from streamkernel.selection.greedy import Greedy
from streamkernel.selection.problem import Rule
from streamkernel.selection.rpcholesky import RPCholesky
from streamkernel.selection.takes import Fixed, Geometric
from streamkernel.selection.uniform import Uniform

__all__ = ["RULES", "as_kappa", "as_rule"]

RULES = ("few-sweep", "sgma", "rpcholesky", "rpcholesky-block", "uniform")

SGMA_CANDIDATES = 59  # the best of 59 is in the top 5 % with probability 0.95 (Smola & Schoelkopf 2000, section 2.2)


def as_kappa(objective: str | float) -> float:
    """Share of the prediction gain: 0 for "trace", 1 for "prediction", or the number itself."""
    if objective == "trace":
        return 0.0
    if objective == "prediction":
        return 1.0
    if isinstance(objective, bool) or not isinstance(objective, (int, float)) or not 0.0 <= objective <= 1.0:
        raise ParameterError(f"objective must be 'trace', 'prediction' or a number in [0, 1], not {objective!r}")
    return float(objective)


def as_rule(
    rule: str | Rule,
    *,
    objective: str | float = "prediction",
    pool: str = "single",
    candidates: int | None = None,
    picks: int | None = None,
    block: int | None = None,
    has_targets: bool = True,
) -> Rule:
    """A rule from its name and options.

    Parameters
    ----------
    rule : one of `RULES`, or a `Rule`, returned as it is.
    objective : of few-sweep; without targets it is "trace".
    pool : of sgma: "single" (a fresh 59 for every pick), "split" or "shared" (`picks` picks a sweep).
    candidates : candidates for each pick.
    picks : of sgma with split or shared pools, picks a sweep.
    block : of rpcholesky, proposals a look; 1 is the plain rule.
    """
    if isinstance(rule, Rule):
        return rule
    if rule == "uniform":
        return Uniform()
    if rule == "rpcholesky":
        return RPCholesky(block=block)
    if rule == "rpcholesky-block":
        return RPCholesky("rpcholesky-block", block=block, exact=False)
    if rule == "sgma":
        if pool not in ("single", "split", "shared"):
            raise ParameterError(f"pool must be 'single', 'split' or 'shared', not {pool!r}")
        at_once = 1 if pool == "single" else picks or 10
        draw = UniformDraw(candidates or SGMA_CANDIDATES, all_rows=True, split=pool == "split")
        return Greedy("sgma", draw, 0.0, Fixed(at_once), root=pool != "single")
    if rule == "few-sweep":
        kappa = as_kappa(objective) if has_targets else 0.0
        if kappa == 0.0:
            return Greedy("few-sweep trace", ResidualDraw(candidates or 4), 0.0, Geometric())
        single = np.dtype(np.float32)
        return Greedy("few-sweep prediction", UniformDraw(candidates), kappa, Geometric(), precision=single, rho=None)
    raise ParameterError(f"unknown rule {rule!r}; known rules are {', '.join(RULES)}")
