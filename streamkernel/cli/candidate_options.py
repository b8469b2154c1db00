"""The options that name the estimators of a comparison and their settings.

Each setting is an option of ``streamkernel fit``, with the same values, checked by the same parser::

    --estimators ridge,small=ridge,svc --set basis=300 --set small.basis=50 --set svc.C=0.3,1,3
    small:  fit --estimator ridge --basis 300 --basis 50
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import click

from streamkernel.cli.fit_options import estimator_options
from streamkernel.cli.fit_request import settings_given
from streamkernel.cli.rule_options import NAMED
from streamkernel.comparison import Candidate, candidate
from streamkernel.kinds import KINDS, OPTION_SETTINGS
from streamkernel.type_aliases import Fields, Unchecked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_TRUTH = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True)
class Setting:
    """A value of `--set`; the name is None for all estimators that have the parameter."""

    name: str | None
    parameter: str
    value: str

    @property
    def text(self) -> str:
        """As it was given."""
        return f"{'' if self.name is None else self.name + '.'}{self.parameter}={self.value}"


def estimator_names(text: str) -> list[tuple[str, str]]:
    """Names in the comparison, and of estimators: ``ridge,small=ridge`` is [(ridge, ridge), (small, ridge)]."""
    pairs = []
    for part in text.split(","):
        name, _, estimator = (word.strip() for word in part.partition("="))
        if not _NAME.fullmatch(name):
            raise click.BadParameter(
                f"{part.strip()!r} is neither NAME nor NAME=ESTIMATOR, such as small=ridge; names are of letters, "
                "digits, - and _"
            )
        pairs.append((name, estimator or name))
    return pairs


def setting(text: str) -> Setting:
    """A value of `--set`: ``[NAME.]PARAMETER=VALUE``."""
    left, equals, value = text.partition("=")
    name, dot, parameter = left.rpartition(".")
    if not equals or not value or not parameter or (dot and not name):
        raise click.BadParameter(f"{text!r} is not [NAME.]PARAMETER=VALUE, such as basis=300 or ridge.alpha=0.1")
    return Setting(name if dot else None, parameter.replace("_", "-"), value)


@click.command("settings", add_help_option=False)
@estimator_options
def _settings(**options: Unchecked) -> None:
    """The options of a fit that are settings; only parsed."""


_OPTIONS = {
    flag.removeprefix("--"): each for each in _settings.params if isinstance(each, click.Option) for flag in each.opts
}


def named_candidates(names: Sequence[tuple[str, str]], settings: Sequence[Setting]) -> list[Candidate]:
    """The candidates of `--estimators` and `--set`.

    Raises
    ------
    click.BadParameter
        A setting is of no estimator that is compared, or no option of `fit`; or its value is of another type.
    ParameterError
        As of `candidate`.
    """
    for each in settings:
        _check(each, names)
    return [
        candidate(name, estimator, _given(estimator, [each for each in settings if each.name in (None, name)], name))
        for name, estimator in names
    ]


def _check(given: Setting, names: Sequence[tuple[str, str]]) -> None:
    """Raise `click.BadParameter` for a setting that nothing that is compared has."""
    if given.parameter not in _OPTIONS:
        near = get_close_matches(given.parameter, _OPTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else "; streamkernel fit --help lists them"
        raise click.BadParameter(f"{given.text}: {given.parameter} is no option of fit{hint}", param_hint="'--set'")
    called = [name for name, _ in names]
    if given.name is not None and given.name not in called:
        raise click.BadParameter(
            f"{given.text}: --estimators names no {given.name}, only {', '.join(called)}", param_hint="'--set'"
        )
    if given.name is None and not any(_takes(estimator, given.parameter) for _, estimator in names):
        raise click.BadParameter(f"{given.text}: no estimator that is compared has it", param_hint="'--set'")


def _takes(estimator: str, parameter: str) -> bool:
    """Whether an estimator has an option of `fit`; an unknown one has all, so that its name is refused instead."""
    if estimator not in KINDS:
        return True
    kind, option = KINDS[estimator], str(_OPTIONS[parameter].name)
    name = "rule_options" if option in NAMED and option not in kind.options else OPTION_SETTINGS.get(option, option)
    return name in kind.options and name not in kind.settings.UNUSED


def _given(estimator: str, settings: Sequence[Setting], name: str) -> Fields:
    """Settings by name; those of the estimator alone come after those of all."""
    ordered = sorted(settings, key=lambda each: each.name is not None)
    words = [_word(each) for each in ordered if each.name is not None or _takes(estimator, each.parameter)]
    try:
        with _settings.make_context(name, words) as context:
            return settings_given(context.params)
    except click.UsageError as error:
        raise click.BadParameter(f"{name}: {error.format_message()}", param_hint="'--set'") from None


def _word(given: Setting) -> str:
    """The argument of `fit` for a setting."""
    if not _OPTIONS[given.parameter].is_flag:
        return f"--{given.parameter}={given.value}"
    if given.value not in _TRUTH:
        raise click.BadParameter(f"{given.text}: {given.value!r} is neither yes nor no", param_hint="'--set'")
    return f"--{'' if _TRUTH[given.value] else 'no-'}{given.parameter}"
