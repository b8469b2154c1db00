"""The work of a job as plain JSON: an estimator's name and settings, and locations. No pickle, no arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from streamkernel.blobs import normalised
from streamkernel.byte_counts import parse_bytes
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kernels import Kernel, user_kernel_classes
from streamkernel.kinds import KINDS, Kind, check_options, settings_of, with_stores_opened
from streamkernel.pursuit import AUTO
from streamkernel.records import JsonObject, Record
from streamkernel.records.json_types import AtLeast, Count
from streamkernel.settings.basis import BasisSettings
from streamkernel.store.plain import plain
from streamkernel.table import Table, with_weights_of
from streamkernel.table.synthetic import is_synthetic, normal_form
from streamkernel.type_aliases import Fields, FieldsView, Unchecked

if TYPE_CHECKING:
    from streamkernel.estimators.base import SavedEstimator


class JobSpecification(Record, kw_only=False):
    """One fit.

    Attributes
    ----------
    estimator : name of the estimator, a key of `KINDS`.
    settings : its settings by name, plain JSON.
    table, model : locations of the rows and of the fitted model.
    rows : half-open slice of the stored rows, None for all.
    queries : location of the query points of a committee.
    overwrite : whether an existing model may be replaced.
    memory_limit : bytes, for all processes together; None for the machines' memory.
    lease_seconds : seconds without a record of the driver after which it is replaced.
    weight : the column that is the row weights, or "none" for no weights; None for those of the table.
    """

    estimator: str
    settings: JsonObject
    table: str
    model: str
    rows: tuple[int | None, int | None] | None = None
    queries: str | None = None
    overwrite: bool = False
    memory_limit: Count | None = None
    lease_seconds: Annotated[float, AtLeast(1.0)] = 15.0
    weight: str | None = None

    @classmethod
    def from_config(cls, config: object, where: str = "") -> Self:
        work = super().from_config(config, where)
        if work.estimator not in KINDS:
            raise ModelFormatError(f"its estimator {work.estimator!r:.60} is unknown to this release")
        return work

    @property
    def kind(self) -> Kind:
        return KINDS[self.estimator]

    def opened_settings(self) -> Any:
        """The settings as an object; the query points are read."""
        # Jobs that an earlier release wrote down have no metric, and mean none.
        given = {"metric": "none", **self.settings}
        given |= {} if self.queries is None else {"queries": self.queries}
        check_options(self.kind, given)
        # Not `settings_of`: here all settings are given, with the defaults among them; a None is a chosen value, and
        # the default may differ from it.
        return self.kind.settings(**with_stores_opened(self.kind, given))

    def with_stores(self, settings: BasisSettings) -> Any:
        """Settings that were checked already, with the stores opened that they name."""
        named = {"queries": self.queries, "validation": self.settings.get("validation")}
        named = {name: store for name, store in named.items() if isinstance(store, str) and store != AUTO}
        return replace(settings, **with_stores_opened(self.kind, named)) if named else settings

    def tables(self) -> tuple[Table, Table]:
        """All rows of the table, and those of the fit."""
        whole = with_weights_of(self.kind.open(self.table), self.weight)
        if self.rows is None:
            return whole, whole
        first, last = self.rows
        return whole, whole.slice(whole.start if first is None else first, whole.stop if last is None else last)


@dataclass(frozen=True)
class RequestedFit:
    """What a job fits: an estimator's name, its checked settings, the same as plain JSON, and its memory limit."""

    estimator: str
    settings: BasisSettings
    plain: Fields
    memory_limit: int | None = None


def requested(estimator: SavedEstimator | str, settings: FieldsView | None = None) -> RequestedFit:
    """Check what a job is to fit.

    Raises
    ------
    ParameterError
        Jobs do not know this estimator, a setting is wrong, or JSON cannot hold it.
    """
    if isinstance(estimator, str):
        if estimator not in KINDS:
            raise ParameterError(f"there is no estimator {estimator!r}; choose one of {', '.join(KINDS)}")
        made = settings_of(KINDS[estimator], dict(settings or {}))
        return RequestedFit(estimator, made, _plain_settings(made))
    if settings:
        raise ParameterError("settings belong to an estimator's name; an estimator has its own parameters")
    from streamkernel.estimators.base import (
        SavedEstimator,  # who has an estimator has loaded scikit-learn
    )

    kind = getattr(estimator, "_kind", None)
    if not isinstance(estimator, SavedEstimator) or kind not in KINDS:
        raise ParameterError(
            f"a job cannot fit a {type(estimator).__name__}; give one of "
            f"{', '.join(each.class_name for each in KINDS.values())}, or its name"
        )
    for name in ("client", "progress"):
        if getattr(estimator, name) is not None:
            raise ParameterError(
                f"{name} belongs to this process, and a job outlives it; leave it out: the job runs on the session's "
                "cluster, and job.progress tells how far it is"
            )
    made = estimator._settings()
    return RequestedFit(kind, made, _plain_settings(made), parse_bytes(estimator.memory_limit))


def _plain_settings(settings: BasisSettings) -> Fields:
    plain_settings: Fields = {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, Kernel):
            if own := user_kernel_classes(value):
                raise ParameterError(
                    f"a job cannot fit with the kernel {own[0].__name__}: its workers do not load your code; fit it "
                    "with an estimator and client="
                )
            value = value.to_config()
        is_share = isinstance(value, (int, float, type(None))) or (isinstance(value, str) and value == AUTO)
        if each.name == "validation" and not is_share:
            value = rows_location("validation rows", value)
        if each.name == "queries":
            if value is not None:
                raise ParameterError(
                    "queries are an array, which a job's record does not hold; ingest them and give submit their "
                    "location: submit(..., queries='queries.zarr')"
                )
            continue
        if isinstance(value, np.ndarray) and value.size > 10_000:
            raise ParameterError(
                f"{each.name} has {value.size} values, too many for a job's record; give names or numbers"
            )
        try:
            plain_settings[each.name] = plain(value, each.name)
        except ParameterError as error:
            raise ParameterError(
                f"{error.message}; a job is described by plain values: give a rule by its name and rule_options, "
                "a kernel by its name and parameters, or fit in this process"
            ) from error
    return plain_settings


def rows_location(what: str, value: Unchecked) -> str:
    """`location_of` rows that are read: it may also be the URL of a table that is made when it is read."""
    if isinstance(value, str) and is_synthetic(value):
        return normal_form(value)
    return location_of(what, value)


def location_of(what: str, value: Unchecked) -> str:
    """A location as text that has the same meaning in another process.

    Raises
    ------
    ParameterError
        The value is an array or a table of this process.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str) and value:
        return str(normalised(value))
    raise ParameterError(
        f"a job needs the location of the {what}, not a {type(value).__name__}: the cluster cannot see what is in this "
        "process; streamkernel.ingest(X, 'rows.zarr') writes rows to a store, and rows=(a, b) takes a part of them"
    )
