"""Options of the selection rules: `streamkernel.selection.options_of` lists those of each rule."""

from __future__ import annotations

from typing import Any

import click

from streamkernel.errors import ParameterError
from streamkernel.selection import RULES, SCORES, RuleOption, options_of
from streamkernel.settings.basis import BasisSettings
from streamkernel.type_aliases import Fields, FieldsView, Unchecked

# Types and help of the options with a flag of their own; --rule-option gives any other.
NAMED: dict[str, tuple[Any, str]] = {
    "pool": (
        click.Choice(["single", "split", "shared", "full"]),
        "How sgma and kmp pool the candidates: one pool for each pick (single, split), one for several picks "
        "(shared), or every row (full, only kmp).",
    ),
    "score": (click.Choice(list(SCORES)), "How sgma scores candidates."),
    "candidates": (
        click.IntRange(min=1),
        "The number of candidates for each pick, for few-sweep, sgma, csi and kmp.",
    ),
    "picks": (click.IntRange(min=1), "The number of picks in a sweep, for csi, kmp and the pools of sgma."),
    "kappa": (float, "The weight of the targets in [0, 1], for csi and csi-lookahead."),
    "delta": (click.IntRange(min=0), "The number of columns that csi-lookahead looks ahead."),
    "block": (click.IntRange(min=1), "The number of rows that a rule with the option block reads at once."),
}

_TRUTH = {"yes": True, "true": True, "no": False, "false": False}
_WORDS = {bool: "yes or no", int: "a whole number", float: "a number", str: "a word"}


def name_and_value(given: str) -> tuple[str, str]:
    """The name of an option, and its value as text."""
    name, _, text = given.partition("=")
    if not name or not text:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE, such as centre=no")
    return name.replace("-", "_"), text


def rule_options(options: FieldsView) -> Fields:
    """The rule options that were given, by their own names or by --rule-option.

    Raises
    ------
    ParameterError
        An option is given twice, or its value is of another kind. `as_rule` refuses options that the rule does not
        have.
    """
    given = {name: options[name] for name in NAMED if options[name] is not None}
    known = options_of(options["rule"] or str(BasisSettings.rule))
    for name, text in options["rule_options"]:
        if name in given:
            raise ParameterError(f"{name} is given twice; give it once")
        given[name] = _value(name, text, known[name]) if name in known else text
    return given


def _value(name: str, text: str, option: RuleOption) -> Unchecked:
    try:
        return _TRUTH[text.lower()] if option.kind is bool else option.kind(text)
    except (KeyError, ValueError):
        raise ParameterError(f"--rule-option {name} must be {_WORDS[option.kind]}, not {text!r}") from None


def _shown(name: str, option: RuleOption) -> str:
    if option.default is None:
        return name
    default = {True: "yes", False: "no"}[option.default] if option.kind is bool else option.default
    return f"{name}={default}"


def _listed() -> str:
    # A line with only a backspace tells click not to rewrap the lines after it.
    lines = ["Options of the rules, with their defaults where these are fixed:", "", "\b"]
    for rule in RULES:
        known = options_of(rule)
        lines.append(f"  {rule:<22}{'  '.join(_shown(name, known[name]) for name in known) or '-'}")
    return "\n".join(lines)


RULES_AND_OPTIONS = _listed()
