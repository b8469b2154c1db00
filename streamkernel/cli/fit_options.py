"""Options of the commands that choose a basis: fit, plan and factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from streamkernel.cli.options import NumberOr, rows, run_options, stack
from streamkernel.cli.rule_options import NAMED, RULE_OPTION
from streamkernel.selection import RULES, SCORES

__all__ = ["factor_options", "fit_options"]

F = TypeVar("F", bound=Callable[..., Any])


def _named(name: str, **kind: Any) -> Callable[[F], F]:
    """An option of some rules under its own name."""
    return click.option(f"--{name}", default=None, help=NAMED[name], **kind)


_rule_options = stack(
    click.option(
        "--rule",
        type=click.Choice(RULES),
        default="few-sweep",
        show_default=True,
        help="How the basis is chosen.",
    ),
    _named("pool", type=click.Choice(["single", "split", "shared"])),
    _named("score", type=click.Choice(list(SCORES))),
    _named("candidates", type=click.IntRange(min=1)),
    _named("picks", type=click.IntRange(min=1)),
    _named("kappa", type=float),
    _named("delta", type=click.IntRange(min=0)),
    _named("block", type=click.IntRange(min=1)),
    click.option(
        "--rule-option",
        "rule_options",
        type=RULE_OPTION,
        multiple=True,
        help="Any option of the rule, as centre=no; may be repeated. The rules' options are listed below.",
    ),
)


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
