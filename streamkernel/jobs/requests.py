"""What a job is asked to fit: an estimator or its name, checked, and its settings as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from streamkernel.byte_counts import parse_bytes
from streamkernel.errors import ParameterError
from streamkernel.jobs.specification import location_of
from streamkernel.kernels import Kernel, user_kernel_classes
from streamkernel.kinds import KINDS, settings_of
from streamkernel.pursuit import AUTO
from streamkernel.settings.basis import BasisSettings
from streamkernel.store.plain import plain
from streamkernel.table.synthetic import is_synthetic, normal_form
from streamkernel.type_aliases import Fields, FieldsView, Unchecked

if TYPE_CHECKING:
    from streamkernel.estimators.base import SavedEstimator


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
