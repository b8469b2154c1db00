"""Settings from options by name: the options of each kind, the files they name, and the error for unknown options."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kinds._kind import Kind
from streamkernel.kinds._registry import KINDS
from streamkernel.pursuit import AUTO
from streamkernel.settings.gaussian import GaussianSettings
from streamkernel.settings.parameter import parameters_in
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Fields
from streamkernel.wording import help_of, option

_MOST_QUERIES = 5000

# Settings of sums over blocks of rows, which only some approximations have.
_OF_BLOCKS = frozenset({"block_size", "partition"})

# Options of the command line whose settings have other names.
OPTION_SETTINGS = {
    stated.flag: name
    for kind in KINDS.values()
    for name, (stated, _) in parameters_in(kind.settings).items()
    if stated.flag
}


def takers(name: str) -> list[str]:
    """Names of the estimators that have a setting of this name."""
    return [kind.name for kind in KINDS.values() if name in kind.options]


def settings_of(kind: Kind, given: Fields) -> Any:
    """The kind's settings. A value of None stands for the default.

    Raises
    ------
    ParameterError
        An option is given that the estimator does not have; or one is out of range.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    check_options(kind, wanted)
    _check_used(kind, wanted)
    settings = kind.settings(**wanted)
    if isinstance(settings, GaussianSettings) and settings.approximation != "pitc":
        for name in sorted(_OF_BLOCKS & wanted.keys()):
            raise ParameterError(
                f"{option(name)} means nothing to the approximation {settings.approximation}; it is an option of pitc "
                f"({option('approximation', 'pitc')}), and of the estimator committee"
            )
    return settings


def with_stores_opened(kind: Kind, given: Fields) -> Fields:
    """Return the settings with the stores opened that they name in place of rows: query points, held-out rows.

    Raises
    ------
    ParameterError
        The estimator has no such setting (the store is then not opened), or there are too many query points.
    """
    found = dict(given)
    if isinstance(given.get("queries"), str):
        check_options(kind, ["queries"])
        found["queries"] = _query_points(given["queries"])
    if isinstance(given.get("validation"), str) and given["validation"] != AUTO:
        check_options(kind, ["validation"])
        found["validation"] = open_table(given["validation"], classify=kind.classify, sparse=True)
    return found


def _query_points(store: str) -> Table:
    """Open a store of at most 5000 query points."""
    table = open_table(store).without_targets()
    if table.n_rows > _MOST_QUERIES:
        raise ParameterError(
            f"{option('queries', store)} has {table.n_rows} rows; query points cost as basis functions do: "
            f"give at most {_MOST_QUERIES}"
        )
    return table


def check_options(kind: Kind, names: Iterable[str]) -> None:
    """Refuse options that the kind does not have: `ParameterError`."""
    for name in names:
        if name not in kind.options:
            others = takers(name)
            raise ParameterError(
                f"{option(name)} means nothing to the estimator {kind.name}; it is an option of {', '.join(others)}"
                if others
                else f"there is no option {name}{_nearest(kind, name)}; {help_of(kind.class_name)} lists them"
            )


def _check_used(kind: Kind, given: Fields) -> None:
    """Refuse values of settings that the kind has with their defaults only: `ParameterError`."""
    stated = parameters_in(kind.settings)
    for name in kind.settings.UNUSED:
        # Settings without rules check the options of their own pools, which the command line passes among these.
        if name == "rule_options" or name not in given:
            continue
        # No default is an array, whose comparison would be one too.
        if isinstance(given[name], np.ndarray) or given[name] != stated[name][1]:
            raise ParameterError(
                f"{option(name, given[name])} means nothing to the estimator {kind.name}, leave it out"
            )


def _nearest(kind: Kind, name: str) -> str:
    near = get_close_matches(name, sorted(kind.options | OPTION_SETTINGS.keys()), 1)
    return "".join(f", but {OPTION_SETTINGS.get(one, one)}" for one in near)
