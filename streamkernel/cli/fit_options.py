"""Options of the commands that choose a basis: fit, plan and factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from streamkernel.cli.options import NumberOr, rows, run_options, stack
from streamkernel.selection import RULES, SCORES

__all__ = ["factor_options", "fit_options", "rule_options"]

F = TypeVar("F", bound=Callable[..., Any])

# Options of the rules, as `as_rule` names them; each rule says which of them it has.
RULE_OPTIONS = ("pool", "score", "candidates", "picks", "kappa", "delta", "block")

_rule_options = stack(
    click.option(
        "--rule",
        type=click.Choice(RULES),
        default="few-sweep",
        show_default=True,
        help="How the basis is chosen.",
    ),
    click.option(
        "--pool", type=click.Choice(["single", "split", "shared"]), default=None, help="Pools of the rule sgma."
    ),
    click.option("--score", type=click.Choice(list(SCORES)), default=None, help="Of the rule sgma."),
    click.option("--candidates", type=click.IntRange(min=1), default=None, help="For each pick (few-sweep, sgma, csi)"),
    click.option("--picks", type=click.IntRange(min=1), default=None, help="A sweep (sgma with pools, csi)."),
    click.option("--kappa", type=float, default=None, help="Weight of the targets in csi, in [0, 1]."),
    click.option("--delta", type=click.IntRange(min=0), default=None, help="Look-ahead of csi-lookahead."),
    click.option("--block", type=click.IntRange(min=1), default=None, help="Rows a look (rpcholesky, ...)."),
)


def rule_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those that were given."""
    return {name: options[name] for name in RULE_OPTIONS if options[name] is not None}


_kernel_options = stack(
    click.option("--kernel", default="gaussian", show_default=True, help="Name of the kernel."),
    click.option(
        "--lengthscale",
        type=NumberOr("median", "auto", many=True),
        default="median",
        show_default=True,
        help="A number, one per feature (a,b,c), the median distance, or a search around it.",
    ),
    click.option("--gamma", type=float, default=None, help="scikit-learn's gamma, instead of the lengthscale."),
    click.option("--degree", type=int, default=None, help="Of the polynomial kernel."),
    click.option("--coef0", type=float, default=None, help="Of the polynomial kernel."),
)

_scale_and_seed = stack(
    click.option(
        "--scale", type=click.Choice(["standard", "none"]), default="standard", show_default=True, help="Of features."
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."),
)

_size = stack(
    click.option("--basis", type=int, default=None, help="Basis functions. [default: sqrt(m) log m, at most 1000]"),
    click.option("--tol", type=float, default=0.0, show_default=True, help="Stop at this share of the trace."),
)


def _objective(default: str) -> Callable[[F], F]:
    return click.option(
        "--objective",
        type=NumberOr("trace", "prediction"),
        default=default,
        show_default=True,
        help="What few-sweep scores candidates by; a number mixes (1 is prediction).",
    )


fit_options = stack(
    click.option(
        "--estimator",
        type=click.Choice(["ridge", "ridge-classifier"]),
        default="ridge",
        show_default=True,
    ),
    _kernel_options,
    click.option("--alpha", type=NumberOr("gcv"), default="gcv", show_default=True, help="Ridge on the diagonal."),
    _size,
    _rule_options,
    _objective("prediction"),
    click.option("--intercept/--no-intercept", default=True, show_default=True, help="Fit a constant."),
    _scale_and_seed,
    rows,
    run_options,
)

factor_options = stack(
    _kernel_options,
    _size,
    _rule_options,
    _objective("trace"),
    _scale_and_seed,
    rows,
    run_options,
)
