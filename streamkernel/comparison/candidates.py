"""What is compared: estimators with their settings, under names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from streamkernel.errors import DataError, ParameterError
from streamkernel.kinds import KINDS, PREDICTORS, Predictor, settings_of, with_stores_opened
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option


@dataclass(frozen=True)
class Candidate:
    """An estimator to compare.

    Attributes
    ----------
    name : its name in the comparison.
    kind : what is fitted.
    settings : its settings, checked.
    """

    name: str
    kind: Predictor
    settings: BasisSettings


def candidate(name: str, estimator: str, given: Fields) -> Candidate:
    """The candidate of a name, for an estimator by its name (`--estimator`) and settings by name.

    Raises
    ------
    ParameterError
        There is no such estimator, it does not predict targets, or a setting is wrong.
    """
    kind = _predictor(estimator)
    with _called(name):
        return Candidate(name, kind, settings_of(kind, with_stores_opened(kind, given)))


@contextmanager
def _called(name: str) -> Iterator[None]:
    """Say in errors of settings whose they are."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{name}: {error.message}") from error


def candidates_of(estimators: Unchecked) -> list[Candidate]:
    """The candidates of `cross_validate`: one estimator, several, or a dict of them by name.

    Raises
    ------
    ParameterError
        An object is none of this package's estimators that predict, or parameters are wrong.
    """
    if isinstance(estimators, Mapping):
        pairs = [(str(name), each) for name, each in estimators.items()]
    elif isinstance(estimators, Sequence) and not isinstance(estimators, str):
        pairs = _numbered(list(estimators))
    else:
        pairs = _numbered([estimators])
    return [_of_object(name, each) for name, each in pairs]


def _numbered(estimators: list[Any]) -> list[tuple[str, Any]]:
    """Estimators with the names of their kinds; of several of one kind the second is called ridge-2."""
    seen: dict[str, int] = {}
    named = []
    for each in estimators:
        kind = each if isinstance(each, str) else _kind_name(each)
        seen[kind] = seen.get(kind, 0) + 1
        named.append((kind if seen[kind] == 1 else f"{kind}-{seen[kind]}", each))
    return named


def _kind_name(estimator: Unchecked) -> str:
    found = next((kind.name for kind in KINDS.values() if type(estimator).__name__ == kind.class_name), None)
    return type(estimator).__name__ if found is None else found


def _of_object(name: str, estimator: Unchecked) -> Candidate:
    if isinstance(estimator, str):
        return candidate(name, estimator, {})
    kind = next((kind for kind in KINDS.values() if type(estimator) is kind.estimator), None)
    if kind is None:
        raise ParameterError(
            f"{option('estimators')}: {type(estimator).__name__} is none of streamkernel's estimators; give one of "
            "them, or the name of one, such as 'ridge'"
        )
    with _called(name):
        return Candidate(name, _predictor(kind.name), estimator._settings())


def comparable() -> list[str]:
    """Names of the estimators that have an error."""
    return [kind.name for kind in PREDICTORS.values() if kind.errors]


def _predictor(name: str) -> Predictor:
    """The kind of this name, which predicts targets."""
    able = comparable()
    if name in able:
        return PREDICTORS[name]
    if name in KINDS:
        what = "needs no targets" if name in PREDICTORS else "transforms rows"
        raise ParameterError(
            f"{option('estimators', name)} {what}, so that it has no error to compare; choose from {', '.join(able)}"
        )
    near = get_close_matches(name, able, 1)
    hint = f"did you mean {near[0]}? There are {', '.join(able)}" if near else f"choose from {', '.join(able)}"
    raise ParameterError(f"{option('estimators')}: there is no estimator {name!r}; {hint}")


def opened_for(
    candidates: Sequence[Candidate], source: Unchecked, y: Unchecked = None, *, weights: Unchecked = None
) -> Table:
    """The table of a comparison: its target is class labels where a candidate takes no other.

    Parameters
    ----------
    source, y, weights : as of `open_table`.

    Raises
    ------
    DataError
        A candidate takes class labels, and the target is numbers.
    StreamKernelError
        As of `open_table`.
    """
    classify = any(each.kind.classify for each in candidates)
    try:
        return open_table(source, y, weights=weights, classify=classify, sparse=True)
    except DataError as error:
        # The classes derived from it are of other faults, such as NaN.
        if not classify or type(error) is not DataError:
            raise
        if open_table(source, y, weights=weights, sparse=True).classes is not None:
            raise
        names = _listed(each for each in candidates if each.kind.classify)
        detail = error.message.removeprefix("Unknown label type: ")
        raise DataError(
            f"{option('estimators')}: {names} can only predict class labels, and the target is numbers ({detail}); "
            f"leave out {names}, or give class labels as the target"
        ) from error


def _listed(candidates: Iterable[Candidate]) -> str:
    return ", ".join(each.name for each in candidates)


def _check_sort(candidates: Sequence[Candidate], table: Table) -> None:
    """Refuse estimators of numbers beside some of classes where the target may be either."""
    if table.classes is None or table.classes.dtype.kind not in "biuf":
        return
    labels = _listed(each for each in candidates if each.kind.classify)
    numbers = _listed(each for each in candidates if not each.kind.errors_for(table))
    if labels and numbers:
        raise ParameterError(
            f"{option('estimators')}: {numbers} can only predict numbers, {labels} only class labels, and the target "
            f"is whole numbers, which may be either; leave out {numbers}, or {labels}"
        )


def check_candidates(candidates: Sequence[Candidate], table: Table, error: str | None) -> str:
    """The name of the error by which these are compared, after the checks that need no read.

    Parameters
    ----------
    error : name that was asked for; None for the usual one that all have.

    Raises
    ------
    ParameterError
        There is no candidate, two have one name, one cannot be fitted to the targets or to sparse rows, or they have no
        error in common.
    """
    if not candidates:
        raise ParameterError(f"{option('estimators')} names none; give at least one")
    names = [each.name for each in candidates]
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None:
        raise ParameterError(f"{option('estimators')}: two are called {again!r}; give each a name of its own")
    if table.n_targets == 0:
        raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
    _check_sort(candidates, table)
    for each in candidates:
        with _called(each.name):
            each.kind.check(table, each.kind.name)
            if table.sparse:
                each.settings.for_table(table).check_sparse(table)
    own = {each.name: each.kind.errors_for(table) for each in candidates}
    lacking = next((name for name, errors in own.items() if not errors), None)
    if lacking is not None:
        what = "class labels" if table.classes is not None else "numbers"
        raise ParameterError(f"{lacking} is not for targets that are {what}; leave it out")
    common = [name for name in own[names[0]] if all(name in errors for errors in own.values())]
    if error in common:
        return str(error)
    if error is None and common:
        return common[0]
    listed = "; ".join(f"{name}: {', '.join(errors)}" for name, errors in own.items())
    what = "they have no error in common" if error is None else f"not all have the error {error!r}"
    raise ParameterError(
        f"{option('error')}: {what} ({listed}); compare estimators of one sort, by one of their errors"
    )
