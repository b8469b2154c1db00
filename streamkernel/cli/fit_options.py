"""Options of the commands that choose a basis: fit, plan, submit and factor.

They come from the fields of the settings: each states its option's type, default, section and line of help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from streamkernel.cli.grouped_help import section_option
from streamkernel.cli.options import NumberOr, plan_run_options, rows, run_options, stack, weight
from streamkernel.cli.rule_options import NAMED, name_and_value
from streamkernel.kinds import KINDS
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.classes import BALANCED
from streamkernel.settings.compression import CompressionSettings
from streamkernel.settings.parameter import Parameter, parameters_in
from streamkernel.type_aliases import Fields

F = TypeVar("F", bound=Callable[..., Any])

# What the settings of each estimator state about one parameter: meaning and default.
Stated = Mapping[str, tuple[Parameter, Any]]

_ESTIMATOR, _BASIS = "Estimator", "Basis and rule"
_SECTIONS = {"kernel": "Kernel", "basis": _BASIS, "rows": "Rows"}
SECTIONS = (_ESTIMATOR, *_SECTIONS.values())
COMPRESSION_SECTIONS = ("Method", *_SECTIONS.values())

# Where the settings of a factor have other defaults than those of a fit.
FACTOR_DEFAULTS = {"objective": "trace"}


def _share_or_store(value: str) -> float | str:
    """A number, or the path or URL of a table."""
    try:
        return float(value)
    except ValueError:
        return value


def _metric(value: str) -> str | list[list[float]]:
    """A word, or the matrix in a file: .npy, or numbers separated by commas or blanks, a row a line."""
    if value in _METRIC_WORDS:
        return value
    path = Path(value)
    if not path.is_file():
        raise click.BadParameter(f"{value!r} is neither {', '.join(_METRIC_WORDS)} nor a file")
    try:
        if path.suffix == ".npy":
            matrix = np.load(path, allow_pickle=False)
        else:
            lines = path.read_text(encoding="utf-8").splitlines()
            matrix = np.array([line.replace(",", " ").split() for line in lines if line.strip()], dtype=float)
        if matrix.dtype.kind not in "biuf" or matrix.size == 0:
            raise ValueError(f"an array of {matrix.dtype}, of shape {matrix.shape}")
        return matrix.astype(float).tolist()  # type: ignore[no-any-return]  # a list of rows
    except (OSError, ValueError, EOFError) as error:
        raise click.BadParameter(f"{value} holds no matrix of numbers: {error}") from None


def _class_weight(value: str) -> str | dict[str, float]:
    """The word balanced, or weights by label."""
    if value == BALANCED:
        return value
    try:
        return {label: float(weight) for label, weight in (part.rsplit("=", 1) for part in value.split(","))}
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither {BALANCED} nor LABEL=NUMBER,LABEL=NUMBER,...") from None


def _view_columns(value: str) -> tuple[list[str], list[str]]:
    """Two groups of columns, by name or position, with a semicolon between: a,b;c,d or 0,1;2,3."""
    groups = [[name.strip() for name in group.split(",")] for group in value.split(";")]
    if len(groups) != 2 or not all(name for group in groups for name in group):
        raise click.BadParameter(f"{value!r} is not two groups of columns, such as a,b;c,d")
    first, second = groups
    return first, second


_METRIC_WORDS = parameters_in(BasisSettings)["metric"][0].words
_TYPES = {
    "validation": _share_or_store,
    "queries": str,
    "metric": _metric,
    "class_weight": _class_weight,
    "view_columns": _view_columns,
}
_METAVARS = {
    "view_columns": "NAME,...;NAME,...",
    "metric": "|".join((*_METRIC_WORDS, "FILE")),
    "class_weight": f"{BALANCED}|LABEL=FLOAT,...",
    "validation": "FLOAT|STORE",
    "queries": "STORE",
    "kernel": "NAME",
    "rule": "NAME",
}


def _type(name: str, parameter: Parameter) -> Any:
    if name in _TYPES:
        return _TYPES[name]
    if parameter.kind is list or (parameter.words and parameter.kind is float):
        return NumberOr(*parameter.words, many=parameter.kind is list)
    if parameter.words and parameter.kind is int:
        return NumberOr(*parameter.words, kind=int)
    if parameter.words:
        return click.Choice(parameter.words)
    if parameter.kind is int and not parameter.optional:
        return click.IntRange(min=int(parameter.least))
    return parameter.kind


def _typed(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]


def _in_words(texts: Mapping[str, str], joint: str) -> str:
    """The text of most estimators, and those of the others where they differ, or what these add to it."""
    takers: dict[str, list[str]] = {}
    for name, text in texts.items():
        takers.setdefault(text, []).append(name)
    # A text that another one only continues stands first.
    first, *others = sorted(takers, key=lambda text: not all(each.startswith(text) for each in takers))
    return first + "".join(joint.format(_listed(takers[text]), text.removeprefix(first).strip()) for text in others)


def _option(
    name: str, stated: Stated, unused: frozenset[str] = frozenset(), own_section: str | None = None
) -> Callable[[F], F]:
    """The option of one parameter; its default, None, stands for that of the settings.

    Parameters
    ----------
    unused : estimators to which the parameter, or the rules, mean nothing; their help leaves it out.
    own_section : section of the help for parameters of no group; None for one that names the estimators.
    """
    used = {kind: each for kind, each in stated.items() if kind not in unused}
    stated_by = [each for each, _ in used.values()]
    # Estimators may take other words for the same parameter: the option takes all of them, the settings check.
    words = tuple(dict.fromkeys(word for each in stated_by for word in each.words))
    parameter = replace(max(stated_by, key=lambda each: len(each.words)), words=words)
    more = " The end of this help lists the rules." if name == "rule" else ""
    helps = {kind: each.help + more for kind, (each, _) in used.items()}
    defaults = {kind: each.default_words or _typed(default) for kind, (each, default) in used.items()}
    flag = (parameter.flag or name).replace("_", "-")
    attributes: Fields = {
        "default": None,
        "help": _with_default(_in_words(helps, " For {}: {}"), _in_words(defaults, "; for {}: {}")),
        "by_estimator": {kind: _with_default(helps[kind], defaults[kind]) for kind in used},
    }
    section = _SECTIONS.get(parameter.group, own_section or f"Options of {_listed([*used])}")
    if parameter.kind is bool:
        return section_option(section, f"--{flag}/--no-{flag}", **attributes)
    metavar = _METAVARS.get(name, "INTEGER" if parameter.kind is int and not parameter.words else None)
    # Named, because click makes small letters of a flag: C.
    own = flag.replace("-", "_")
    return section_option(section, f"--{flag}", own, type=_type(name, parameter), metavar=metavar, **attributes)


def _with_default(help: str, default: str) -> str:
    return f"{help} [default: {default}]" if default else help


def _rule_options(stated: Mapping[str, Stated], unused: frozenset[str]) -> list[Callable[[F], F]]:
    """The options of rules: those that have flags of their own, and one for all others."""
    rules = [kind for kind in stated["rule"] if kind not in unused]
    options = [
        section_option(
            _BASIS,
            f"--{name}",
            type=kind,
            default=None,
            help=help,
            metavar="INTEGER" if isinstance(kind, click.IntRange) else None,
            by_estimator=dict.fromkeys(rules, help)
            | {
                kind: _with_default(each.help, _typed(default))
                for kind, (each, default) in stated.get(name, {}).items()
            },
        )
        for name, (kind, help) in NAMED.items()
    ]
    help = "An option of the rule, such as centre=no; may be repeated. The end of this help lists the options."
    return [
        *options,
        section_option(
            _BASIS,
            "--rule-option",
            "rule_options",
            type=name_and_value,
            metavar="NAME=VALUE",
            multiple=True,
            help=help,
            by_estimator=dict.fromkeys(rules, help),
        ),
    ]


def _options(stated: Mapping[str, Stated], own_section: str | None = None) -> Callable[[F], F]:
    """The options of all parameters that the command line has."""
    unused = {name: frozenset(kind.name for kind in KINDS.values() if name in kind.settings.UNUSED) for name in stated}
    return stack(
        *(
            _option(name, kinds, unused[name], own_section)
            for name, kinds in stated.items()
            if name not in NAMED and all(parameter.flag is not None for parameter, _ in kinds.values())
        ),
        *_rule_options(stated, unused["rule"]),
    )


def _of_kinds() -> dict[str, dict[str, tuple[Parameter, Any]]]:
    found: dict[str, dict[str, tuple[Parameter, Any]]] = {}
    for kind in KINDS.values():
        for name, stated in parameters_in(kind.settings).items():
            found.setdefault(name, {})[kind.name] = stated
    return found


def _of_factor() -> dict[str, Stated]:
    """What a factor has: no targets, and so no constant."""
    return {
        name: {"factor": (parameter, FACTOR_DEFAULTS.get(name, default))}
        for name, (parameter, default) in parameters_in(BasisSettings).items()
        if name != "fit_intercept"
    }


# Of all estimators, without those of a run.
estimator_options = _options(_of_kinds())

_fit = stack(
    section_option(
        _ESTIMATOR,
        "--estimator",
        type=click.Choice(list(KINDS)),
        default="ridge",
        show_default=True,
        metavar="NAME",
        help=f"The estimator: {', '.join(KINDS)}. --estimator NAME --help lists only the options of that one.",
    ),
    estimator_options,
    rows,
    weight,
)

fit_options = stack(_fit, run_options)

plan_options = stack(_fit, plan_run_options)


def _of_compression() -> dict[str, Stated]:
    stated = parameters_in(CompressionSettings)
    return {name: {"compress": each} for name, each in stated.items() if name not in CompressionSettings.UNUSED}


compression_options = stack(_options(_of_compression(), COMPRESSION_SECTIONS[0]), rows, weight, run_options)

factor_options = stack(_options(_of_factor()), rows, weight, run_options)
