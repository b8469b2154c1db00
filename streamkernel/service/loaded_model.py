"""One generation of one model, as it is served: what predicts, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.kinds import predicting_class, predictor_of
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.models.predicting import PredictingModel
from streamkernel.store import bundle_kind
from streamkernel.table import KnownColumns

__all__ = ["Field", "LoadedModel", "PredictionRequest", "load"]


@dataclass(frozen=True)
class PredictionRequest:
    """What of a prediction is wanted."""

    std: bool = False
    probabilities: bool = False


@dataclass(frozen=True)
class Field:
    """One part of an answer: its name, the row map's name of it, columns (None: a vector), and labels of codes."""

    name: str
    output: str
    width: int | None
    labels: tuple[Any, ...] | None = None

    @property
    def columns(self) -> int:
        return 1 if self.width is None else self.width


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, verified. Threads share it.

    Parameters
    ----------
    name : its folder's.
    model : as it was read.
    generation : how many models this service has had under the name, this one included.
    digest : of the model.
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
        """And whether the model was fitted with names."""
        return self.model.known_columns

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        labels = self.model.classes
        return None if labels is None else tuple(labels.tolist())

    @property
    def has_std(self) -> bool:
        """Whether it can say how far off a prediction may be."""
        kind = predictor_of(self.model)
        return kind is not None and kind.std

    @property
    def has_probabilities(self) -> bool:
        return self.model.has_probabilities

    def direct(self, asked: PredictionRequest) -> DirectPredictions:
        """What predicts that.

        Raises
        ------
        ParameterError
            The model does not have it.
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
            # A classifier's probabilities come with its labels, asked for or not.
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
    def example(self) -> NDArray[np.float64]:
        """(p,) a row that the model knows: the first of its basis, in the units of the rows."""
        points = self.model.points
        return points[0].astype(np.float64) if len(points) else np.zeros(len(self.columns))

    def warm(self) -> None:
        """Predict once, so that no request waits for what is made at the first."""
        for asked in (PredictionRequest(), PredictionRequest(std=self.has_std, probabilities=self.has_probabilities)):
            direct = self.direct(asked)
            for row in (self.example[None, :], self.example[None, :].astype(np.float32)):
                direct.each_alone(direct.prepared(row))


def load(path: Path, name: str, generation: int) -> LoadedModel:
    """The model at a path, verified to the last byte, ready to predict.

    Raises
    ------
    StoreError
        There is none, it is damaged, or it is something else.
    """
    stored = bundle_kind(path)
    if stored is None and not path.is_dir():
        raise StoreNotFoundError(f"nothing at {name}")
    model = predicting_class(stored, name).load(path)
    served = LoadedModel(name, model, generation, model.digest)
    served.warm()
    return served
