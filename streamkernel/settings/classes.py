"""Settings of the classifiers: how much each class counts, and how probabilities are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.records import SettingsRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.generalised import GeneralisedSettings, GeneralisedSettingsRecord
from streamkernel.settings.parameter import parameter
from streamkernel.settings.pursuit import PursuitSettings, PursuitSettingsRecord
from streamkernel.settings.ridge import RidgeSettings, RidgeSettingsRecord
from streamkernel.table import Table
from streamkernel.table.class_weights import class_counts
from streamkernel.table.values import listed
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

Label = bool | int | float | str
BALANCED = "balanced"


class ClassifierSettingsRecord(SettingsRecord):
    """The options of a classifier's fit: pairs of a label and its weight, where weights were given."""

    class_weight: str | tuple[tuple[Label, float], ...] | None = None


@dataclass(frozen=True)
class ClassifierSettings(BasisSettings):
    """The fit of a classifier."""

    RECORD: ClassVar[type[SettingsRecord]] = ClassifierSettingsRecord

    class_weight: Unchecked = parameter(
        None,
        "The weight of each class, by which those of its rows are multiplied: balanced for the same sum in each class, "
        "(sum of all row weights) / (number of classes * sum of those of the class), or numbers by label.",
        words=(BALANCED,),
        kind=dict,
        optional=True,
        default_words="1 for each class",
    )

    def __post_init__(self) -> None:
        if self.class_weight is not None and not isinstance(self.class_weight, str):
            # Tuples: settings are compared, and a caller may change the dict. JSON has text only as keys.
            object.__setattr__(self, "class_weight", _pairs(self.class_weight))
        super().__post_init__()

    def class_weights(self, table: Table) -> tuple[float, ...] | None:
        """The weight of each class of a table, (C,), from one pass over y for "balanced"; None for one of 1 each.

        Raises
        ------
        ParameterError
            Weights are given for labels that are no classes, and some classes have none; or rows may have several
            labels.
        """
        if self.class_weight is None:
            return None
        if table.multilabel:
            raise ParameterError(
                f"{option('class_weight')} means nothing to rows that may have several labels; weight the rows instead"
            )
        assert table.classes is not None
        if isinstance(self.class_weight, str):
            counts = class_counts(table)
            # A class whose rows all have weight 0 is as if it were not there.
            held = counts > 0.0
            shares = counts[held].sum() / (np.count_nonzero(held) * np.where(held, counts, 1.0))
            return tuple(np.where(held, shares, 1.0).tolist())
        return self._given(table.classes.tolist())

    def _given(self, labels: list[Label]) -> tuple[float, ...]:
        by_label = dict(self.class_weight)
        # Numbers may be given as text: the command line and JSON have nothing else.
        by_text = {str(label): weight for label, weight in by_label.items() if isinstance(label, str)}
        known = [label if label in by_label else str(label) for label in labels]
        missing = [label for label, key in zip(labels, known, strict=True) if key not in by_label]
        unknown = [label for label in by_label if label not in known]
        if missing and unknown:
            raise ParameterError(
                f"{option('class_weight')} has a weight for {listed(map(repr, unknown))}, which is no class, and none "
                f"for {listed(map(repr, missing))}; the classes are {listed(map(repr, labels))}"
            )
        weights = tuple(float(by_label.get(label, by_text.get(str(label), 1.0))) for label in labels)
        if not any(weights):
            raise ParameterError(f"{option('class_weight')} is 0 for all classes; give one of them a weight > 0")
        return weights

    def to_config(self) -> Fields:
        config = super().to_config()
        # Runs that an earlier release interrupted have no such field; they go on as if it were absent.
        if config["class_weight"] is None:
            del config["class_weight"]
        return config


def _pairs(given: Unchecked) -> tuple[tuple[Label, float], ...]:
    """Pairs of a label and its weight, of a dict or of a list of pairs.

    Raises
    ------
    ParameterError
        It is neither, or a weight is no finite number of at least 0.
    """
    try:
        pairs = [(label, weight) for label, weight in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise ParameterError(
            f"{option('class_weight')} must be 'balanced' or a number for each class, not {given!r:.80}", value=given
        ) from None
    found: dict[Label, float] = {}
    for label, weight in pairs:
        name = label.item() if isinstance(label, np.generic) else label
        if not isinstance(name, (bool, int, float, str)):
            raise ParameterError(
                f"{option('class_weight')} names the class {name!r:.60}; labels are text or whole numbers", value=given
            )
        number = isinstance(weight, (int, float, np.integer, np.floating)) and not isinstance(weight, bool)
        if not number or not math.isfinite(weight) or weight < 0:
            raise ParameterError(
                f"{option('class_weight')} of the class {name!r} must be a finite number >= 0, not {weight!r}",
                value=given,
            )
        found[name] = float(weight)
    return tuple(found.items())


class RidgeClassifierSettingsRecord(RidgeSettingsRecord, ClassifierSettingsRecord):
    """The options of a fit of a ridge classifier."""


class PursuitClassifierSettingsRecord(PursuitSettingsRecord, ClassifierSettingsRecord):
    """The options of a pursuit of classes."""


class GeneralisedClassifierSettingsRecord(GeneralisedSettingsRecord, ClassifierSettingsRecord):
    """The options of a fit of a Gaussian process classifier."""


@dataclass(frozen=True)
class RidgeClassifierSettings(RidgeSettings, ClassifierSettings):
    """A kernel ridge fit to classes."""

    RECORD: ClassVar[type[RidgeClassifierSettingsRecord]] = RidgeClassifierSettingsRecord


@dataclass(frozen=True)
class PursuitClassifierSettings(PursuitSettings, ClassifierSettings):
    """A matching pursuit of classes."""

    RECORD: ClassVar[type[PursuitClassifierSettingsRecord]] = PursuitClassifierSettingsRecord


@dataclass(frozen=True)
class GeneralisedClassifierSettings(GeneralisedSettings, ClassifierSettings):
    """Gaussian process classification."""

    RECORD: ClassVar[type[GeneralisedClassifierSettingsRecord]] = GeneralisedClassifierSettingsRecord


def calibration_of_classes() -> Any:
    """The field `calibration` of settings of machines that separate classes."""
    return parameter(
        None,
        "How probabilities follow from decision values on held-out rows: platt (a logistic function), isotonic (an "
        "increasing one) or none.",
        kind=str,
        words=("platt", "isotonic", "none"),
        optional=True,
        default_words="platt where C is chosen by held-out rows, else none",
    )
