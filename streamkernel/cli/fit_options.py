"""Options of the commands that choose a basis: fit, plan and factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from streamkernel.cli.options import NumberOr, ShareOrStore, rows, run_options, stack
from streamkernel.cli.rule_options import NAMED, RULE_OPTION
from streamkernel.kinds import PREDICTORS
from streamkernel.pursuit import DRAWS, LOSSES, VARIANTS
from streamkernel.selection import RULES, SCORES

__all__ = ["factor_options", "fit_options"]

F = TypeVar("F", bound=Callable[..., Any])


def _named(name: str, **kind: Any) -> Callable[[F], F]:
    """A rule option that has its own command line option."""
    return click.option(f"--{name}", default=None, help=NAMED[name], **kind)


_rule_options = stack(
    click.option(
        "--rule",
        type=click.Choice(RULES),
        default="few-sweep",
        show_default=True,
        help="How the basis is chosen.",
    ),
    _named("pool", type=click.Choice(["single", "split", "shared", "full"])),
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


def _lengthscale(*words: str, default: str) -> Callable[[F], F]:
    return click.option(
        "--lengthscale",
        type=NumberOr(*words, many=True),
        default=None,
        help=f"A number, one per feature (a,b,c), or how it is found. [default: {default}]",
    )


_kernel_options = stack(
    click.option("--kernel", default="gaussian", show_default=True, help="Name of the kernel."),
    click.option("--gamma", type=float, default=None, help="scikit-learn's gamma, instead of the lengthscale."),
    click.option("--degree", type=int, default=None, help="Of the polynomial kernel."),
    click.option("--coef0", type=float, default=None, help="Of the polynomial and sigmoid kernels."),
)

_scale_and_seed = stack(
    click.option(
        "--scale", type=click.Choice(["standard", "none"]), default="standard", show_default=True, help="Of features."
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."),
)

_size = stack(
    click.option(
        "--basis",
        type=int,
        default=None,
        help="Basis functions, or terms. [default: sqrt(m) log m, at most 1000, of kmp 300]",
    ),
    click.option(
        "--tol",
        type=float,
        default=0.0,
        show_default=True,
        help="Stop at this share of the trace; of kmp: of the squared error.",
    ),
)


def _objective(default: str) -> Callable[[F], F]:
    return click.option(
        "--objective",
        type=NumberOr("trace", "prediction"),
        default=default,
        show_default=True,
        help="What few-sweep scores candidates by; a number mixes (1 is prediction).",
    )


_VARIANCE = NumberOr("evidence")
_PROCESSES = "Of Gaussian processes, committees"

# Options of some estimators only; `settings_of` refuses those that the chosen estimator does not have.
_model_options = stack(
    click.option("--alpha", type=NumberOr("gcv"), default=None, help="Of ridge: on the diagonal. [default: gcv]"),
    click.option(
        "--solver",
        type=click.Choice(["auto", "direct", "cg"]),
        default=None,
        help="Of ridge: by sums, or by conjugate gradients, a sweep an iteration. [default: auto]",
    ),
    click.option(
        "--approximation",
        type=click.Choice(["fitc", "dtc", "pitc"]),
        default=None,
        help="Of gp: what is taken for cov(y | basis): a diagonal, a constant, blocks. [default: fitc]",
    ),
    click.option(
        "--block-size",
        type=click.IntRange(min=1),
        default=None,
        help="Of committee, and of gp with pitc: how many rows are a member, or a block. [default: 1000]",
    ),
    click.option(
        "--partition",
        type=click.Choice(["rows", "cells"]),
        default=None,
        help="Of the same: which rows, as they come or those near a common centre. [default: rows]",
    ),
    click.option("--queries", default=None, metavar="STORE", help="Of committee: rows that predictions are asked for."),
    click.option(
        "--tune",
        type=click.Choice(["sample", "full", "none"]),
        default=None,
        help=f"{_PROCESSES}: where lengthscales of evidence are found; of gp, committee also over all rows. "
        "[default: sample]",
    ),
    click.option("--ard/--no-ard", default=None, help=f"{_PROCESSES}: a lengthscale for each feature."),
    click.option("--signal-variance", type=_VARIANCE, default=None, help=f"{_PROCESSES}: of f. [default: evidence]"),
    click.option(
        "--noise-variance", type=_VARIANCE, default=None, help="Of gp, committee: of y given f. [default: evidence]"
    ),
)

# Options of kmp only.
_pursuit_options = stack(
    click.option(
        "--variant",
        type=click.Choice(VARIANTS),
        default=None,
        help="Of kmp: what is picked, and what is fitted again. [default: pre-fitting]",
    ),
    click.option(
        "--loss",
        type=click.Choice(LOSSES),
        default=None,
        help="Of kmp: squared, or of classes logistic. [default: squared]",
    ),
    click.option("--shrinkage", type=float, default=None, help="Of kmp, basic: share of each step. [default: 1]"),
    click.option(
        "--draw",
        type=click.Choice(DRAWS),
        default=None,
        help="Of kmp: candidates at random, or by what is left of them. [default: uniform]",
    ),
    click.option("--eps", type=float, default=None, help="Of kmp, split: probability of a bad pool. [default: 0.05]"),
    click.option("--quantile", type=float, default=None, help="Of kmp, split: what is a good pick. [default: 0.95]"),
    click.option(
        "--validation",
        type=ShareOrStore(),
        default=None,
        metavar="FLOAT|STORE",
        help="Of kmp: share of the rows that is held out, or a table of other rows. "
        "[default: 0.1, of few rows more; 0 for none]",
    ),
    click.option("--patience", type=int, default=None, help="Of kmp: end after so many terms that do not help there."),
    click.option(
        "--choose-by",
        type=click.Choice(["loss", "error"]),
        default=None,
        help="Of kmp, classes: what of the held-out rows chooses the size. [default: loss]",
    ),
    click.option("--bound-gamma", type=float, default=None, help="Of kmp: a miss by more is wrong, for the bound."),
)

fit_options = stack(
    click.option("--estimator", type=click.Choice(list(PREDICTORS)), default="ridge", show_default=True),
    _kernel_options,
    _lengthscale("median", "auto", "evidence", default="median; of Gaussian processes, committees: evidence"),
    _model_options,
    _pursuit_options,
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
    _lengthscale("median", "auto", default="median"),
    _size,
    _rule_options,
    _objective("trace"),
    _scale_and_seed,
    rows,
    run_options,
)
