"""One generation of one model, as it is served: its predictions and its description."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.kinds import predicting_class, predictor_of
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.models.predicting import PredictingModel
from streamkernel.store import bundle_kind
from streamkernel.table import KnownColumns
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class PredictionRequest:
    """The optional outputs that a request wants."""

    std: bool = False
    probabilities: bool = False


@dataclass(frozen=True)
class Field:
    """One part of an answer.

    Attributes
    ----------
    name : its name in the answer.
    output : its name in the row map.
    width : number of columns; None for a vector.
    labels : class labels, if the values are codes.
    """

    name: str
    output: str
    width: int | None
    labels: tuple[Any, ...] | None = None

    @property
    def columns(self) -> int:
        return 1 if self.width is None else self.width


@dataclass(frozen=True)
class LoadedModel:
    """A verified model in memory. Threads share it.

    Parameters
    ----------
    name : name of its folder.
    model : the model, as it was read.
    generation : number of models that this service has had under the name, including this one.
    digest : digest of the model.
    """

    name: str
    model: PredictingModel
    generation: int
    digest: str
    _direct: dict[PredictionRequest, DirectPredictions] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.model.column_names)

    @cached_property
    def known_columns(self) -> KnownColumns:
        """Names of the columns, and whether the model was fitted with names."""
        return self.model.known_columns

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        labels = self.model.classes
        return None if labels is None else tuple(labels.tolist())

    @property
    def has_std(self) -> bool:
        """Whether it predicts standard deviations."""
        kind = predictor_of(self.model)
        return kind is not None and kind.std

    @property
    def has_probabilities(self) -> bool:
        return self.model.has_probabilities

    def direct(self, asked: PredictionRequest) -> DirectPredictions:
        """The predictions with these outputs.

        Raises
        ------
        ParameterError
            The model does not have one of the outputs.
        """
        found = self._direct.get(asked)
        if found is None:
            if asked.std and not self.has_std:
                raise ParameterError(
                    f"{self.name} is a {self.model.record.estimator} model, which has no standard deviations"
                )
            if asked.probabilities and not self.has_probabilities:
                raise ParameterError(
                    f"{self.name} is a {self.model.record.estimator} model, which has no probabilities"
                )
            # A classifier always computes its probabilities with its labels.
            found = self._direct[asked] = DirectPredictions(self.model, self.model.outputs(std=asked.std))
        return found

    def fields(self, asked: PredictionRequest) -> list[Field]:
        """The parts of an answer, in their order."""
        columns = self.direct(asked).work.columns
        fields = [Field("prediction", "prediction", columns["prediction"][0], self.classes)]
        if asked.std:
            fields.append(Field("std", "std", columns["std"][0]))
        if asked.probabilities:
            fields.append(Field("probabilities", "probability", columns["probability"][0]))
        return fields

    @property
    def example(self) -> Float:
        """An example row (p,): the first of the basis, in the units of the rows."""
        points = self.model.points
        return points[0].astype(np.float64) if len(points) else np.zeros(len(self.columns))

    def warm(self) -> None:
        """Predict once, so that no request waits for compilation and first allocations."""
        for asked in (PredictionRequest(), PredictionRequest(std=self.has_std, probabilities=self.has_probabilities)):
            direct = self.direct(asked)
            for row in (self.example[None, :], self.example[None, :].astype(np.float32)):
                direct.each_alone(direct.prepared(row))


def load(path: Path, name: str, generation: int) -> LoadedModel:
    """Load the model at a path, verified to the last byte and ready to predict.

    Raises
    ------
    StoreError
        There is no model, it is damaged, or the path holds something else.
    """
    stored = bundle_kind(path)
    if stored is None and not path.is_dir():
        raise StoreNotFoundError(f"nothing at {name}")
    model = predicting_class(stored, name).load(path)
    served = LoadedModel(name, model, generation, model.digest)
    served.warm()
    return served
