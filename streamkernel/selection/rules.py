"""The table of selection rules; each rule is a row of (draw, score, take).

| name | draw candidates | score | take |
|---|---|---|---|
| few-sweep, trace | residual-weighted, 4 to 8 per pick | function-space gain, on weighted rows | geometric share of n |
| few-sweep, prediction | uniform, 3 to 16 per pick | prediction gain | geometric share of n |
| sgma | uniform, 59 | function-space gain or another, on all rows | 1, or several |
| csi | uniform, 20 per pick, at first 1,200 | trace gain + prediction gain, on all rows | 40 |
| csi-lookahead | all, in memory | predicted trace gain + prediction gain | 1 |
| gp-posterior | uniform, 59 | decrease of the regularised risk, on all rows | 1, or several |
| matching-pursuit-kpca | all | function-space gain, on all rows | n |
| incomplete-cholesky | all | residual diagonal | as many as are certain |
| rpcholesky | residual-weighted | accept / reject | block |
| rpcholesky-block | residual-weighted | - | block |
| leverage | leverage-weighted | - | n |
| kmeans | - | - | n |
| uniform | uniform | - | n |
| columns | - | - | the p columns |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.selection._csi_look_ahead import LookAheadCSI
from streamkernel.selection._draws import AllRows, ResidualDraw, UniformDraw
from streamkernel.selection._gp_posterior import PosteriorGreedy
from streamkernel.selection._incomplete_cholesky import IncompleteCholesky
from streamkernel.selection._leverage import Leverage
from streamkernel.selection.candidates import candidates_needed
from streamkernel.selection.columns import Columns
from streamkernel.selection.greedy import GramForm, Greedy, RootForm
from streamkernel.selection.kmeans import KMeans
from streamkernel.selection.problem import Rule
from streamkernel.selection.rounds import Fixed, Geometric
from streamkernel.selection.rpcholesky import RPCholesky
from streamkernel.selection.scores import (
    ColumnNorm,
    Frobenius,
    FunctionSpace,
    Kronecker,
    Mixture,
    Pivot,
    Score,
    SparseFeatures,
)
from streamkernel.selection.uniform import Uniform
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

SCORES: dict[str, Callable[[], Score]] = {
    "function-space": FunctionSpace,
    "column-norm": ColumnNorm,
    "pivot": Pivot,
    "sparse-features": SparseFeatures,
    "frobenius": Frobenius,
    "kronecker": Kronecker,
}


def as_kappa(objective: str | float, name: str = "objective") -> float:
    """Weight kappa of the prediction gain: 0 for "trace", 1 for "prediction", or the number itself.

    Raises
    ------
    ParameterError
        The objective is neither a known name nor a number in [0, 1].
    """
    if objective == "trace":
        return 0.0
    if objective == "prediction":
        return 1.0
    if isinstance(objective, bool) or not isinstance(objective, (int, float)) or not 0.0 <= objective <= 1.0:
        words = "'trace', 'prediction' or " if name == "objective" else ""
        raise ParameterError(f"{option(name)} must be {words}a number in [0, 1], not {objective!r}", value=objective)
    return float(objective)


def _few_sweep(*, objective: str | float, has_targets: bool, candidates: int | None = None) -> Rule:
    kappa = as_kappa(objective) if has_targets else 0.0
    if kappa == 0.0:
        return Greedy("few-sweep trace", ResidualDraw(candidates), FunctionSpace(), Geometric())
    score = Mixture(kappa, rho=None)
    return Greedy("few-sweep prediction", UniformDraw(candidates), score, Geometric(), precision=np.dtype(np.float32))


def _sgma(
    *,
    score: str = "function-space",
    pool: str = "single",
    candidates: int | None = None,
    eps: float = 0.05,
    quantile: float = 0.95,
    picks: int | None = 10,
) -> Rule:
    if score not in SCORES:
        raise ParameterError(f"{option('score')} must be one of {', '.join(SCORES)}, not {score!r}", value=score)
    if pool not in ("single", "split", "shared"):
        raise ParameterError(f"{option('pool')} must be 'single', 'split' or 'shared', not {pool!r}", value=pool)
    candidates_needed(eps, quantile)
    # The null baseline sweeps once: its score does not depend on previous picks.
    take = Geometric(1) if score == "kronecker" else Fixed(1 if pool == "single" else picks or 10)
    level = None if candidates else (eps, quantile)
    draw = UniformDraw(candidates, all_rows=True, split=pool == "split", level=level)
    form = RootForm() if pool != "single" or score == "frobenius" else GramForm()
    return Greedy("sgma", draw, SCORES[score](), take, form)


def _csi(
    *, has_targets: bool, kappa: float = 0.99, candidates: int | None = None, picks: int = 40, centre: bool = True
) -> Rule:
    # A few well-chosen functions may be enough: by default the first pool is large.
    draw = UniformDraw(candidates or 20, all_rows=True, least_first=0 if candidates else 1200)
    return Greedy(
        "csi", draw, Mixture(as_kappa(kappa, "kappa") if has_targets else 0.0), Fixed(picks), RootForm(), centred=centre
    )


def _csi_lookahead(
    *,
    has_targets: bool,
    kappa: float = 0.99,
    delta: int = 40,
    centre: bool = True,
    gain_tolerance: float = 1e-4,
    published: bool = False,
) -> Rule:
    kappa = as_kappa(kappa, "kappa") if has_targets else 0.0
    return LookAheadCSI(delta, kappa, centre, gain_tolerance, published)


def _gp_posterior(
    *,
    has_targets: bool,
    candidates: int | None = None,
    dual_rows: int | None = None,
    eps: float = 0.05,
    gap: float | None = None,
    picks: int | None = None,
    quantile: float = 0.95,
    ridge: float | None = None,
) -> Rule:
    candidates_needed(eps, quantile)
    gap = checked_number("gap", gap or 0.0, zero=True)
    dual_rows = checked_integer("dual_rows", dual_rows or 0, 0)
    if ridge is not None:
        checked_number("ridge", ridge)
    draw = UniformDraw(candidates, all_rows=True, level=None if candidates else (eps, quantile))
    if not has_targets:
        if gap:
            raise ParameterError("gap compares risks and needs targets; give y, or leave it out")
        return Greedy("gp-posterior", draw, FunctionSpace(), Fixed(picks or 1))
    score = Mixture(1.0, ridge)
    return PosteriorGreedy("gp-posterior", draw, score, Fixed(picks or 1), gap=gap, dual_rows=dual_rows)


def _kpca() -> Rule:
    return Greedy("matching-pursuit-kpca", AllRows(), FunctionSpace(), Geometric(1), RootForm())


def _incomplete_cholesky(*, block: int | None = None, exact: bool = True) -> Rule:
    return IncompleteCholesky(block=block, share=1.0 if exact else 0.5)


def _leverage(*, ridge: float | None = None, growth: int = 2) -> Rule:
    return Leverage(ridge=ridge, growth=growth)


def _rpcholesky(*, block: int | None = None) -> Rule:
    return RPCholesky(block=block)


def _rpcholesky_block(*, block: int | None = None) -> Rule:
    return RPCholesky("rpcholesky-block", block=block, exact=False)


_BUILDERS: dict[str, Callable[..., Rule]] = {
    "few-sweep": _few_sweep,
    "sgma": _sgma,
    "csi": _csi,
    "csi-lookahead": _csi_lookahead,
    "gp-posterior": _gp_posterior,
    "matching-pursuit-kpca": _kpca,
    "rpcholesky": _rpcholesky,
    "rpcholesky-block": _rpcholesky_block,
    "incomplete-cholesky": _incomplete_cholesky,
    "leverage": _leverage,
    "kmeans": KMeans,
    "uniform": Uniform,
    "columns": Columns,
}
RULES = tuple(_BUILDERS)
DENSE_RULES = ("kmeans", "columns")
"""Rules whose points are no rows, and dense."""

_SHARED = ("objective", "has_targets")


@dataclass(frozen=True)
class RuleOption:
    """An option of a rule: its type (bool, int, float or str), and its default; None lets the rule choose the value."""

    kind: type
    default: Any


def options_of(rule: str) -> dict[str, RuleOption]:
    """The options of a rule, by name, in alphabetical order."""
    return dict(_options_of(rule))


@cache  # a fit asks ten times, and the types are evaluated anew each time
def _options_of(rule: str) -> dict[str, RuleOption]:
    build = _BUILDERS[rule]
    hints = get_type_hints(build)
    parameters = inspect.signature(build).parameters
    return {
        # The first type of "int | None".
        name: RuleOption((get_args(hints[name]) or (hints[name],))[0], parameters[name].default)
        for name in sorted(parameters)
        if name not in _SHARED
    }


def as_rule(
    rule: str | Rule, *, objective: str | float = "prediction", has_targets: bool = True, **options: Unchecked
) -> Rule:
    """A rule from its name and options.

    Parameters
    ----------
    rule : one of `RULES`, or a `Rule`, which is returned as it is.
    objective : objective of few-sweep; "trace" without targets.
    has_targets : True if the table has targets.
    options : options of the rule, see `options_of`; docs/methods.md describes each.

    Raises
    ------
    ParameterError
        The rule is unknown, it has no such option, or a value is invalid.
    """
    if isinstance(rule, Rule):
        if options:
            raise ParameterError(
                f"options ({', '.join(options)}) are for rules by name; {rule.name!r} was made already"
            )
        return rule
    if rule not in _BUILDERS:
        raise ParameterError(f"unknown rule {rule!r}; known rules are {', '.join(RULES)}")
    known = options_of(rule)
    for name, value in options.items():
        if name not in known:
            raise ParameterError(
                f"the rule {rule!r} has no option {name!r}; "
                + (f"its options are {', '.join(known)}" if known else "it has none")
            )
        if known[name].kind is bool and not isinstance(value, (bool, np.bool_)):
            raise ParameterError(f"{option(name)} must be True or False, not {value!r}", value=value)
    for name in ("candidates", "picks", "block"):
        value = options.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            raise ParameterError(f"{option(name)} must be a whole number > 0, not {value!r}", value=value)
    build = _BUILDERS[rule]
    shared = {"objective": objective, "has_targets": has_targets}
    parameters = inspect.signature(build).parameters
    return build(**options, **{name: value for name, value in shared.items() if name in parameters})
