"""One generation of one model, as it is served: its predictions and its description."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kinds import predicting_class, predictor_of
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.models.predicting import PredictingModel
from streamkernel.pairs import as_csr
from streamkernel.report.facts.standing import Standing, standing
from streamkernel.service.raw_rows import RawRows
from streamkernel.store import bundle_kind
from streamkernel.table import KnownColumns
from streamkernel.table.schema import Schema
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class Field:
    """One part of an answer.

    Attributes
    ----------
    name : its name in the answer.
    output : its name in the row map.
    width : number of columns; None for a vector.
    labels : class labels, if the values are codes.
    whole : whether the values are whole numbers: these codes, or sides.
    """

    name: str
    output: str
    width: int | None
    labels: tuple[Any, ...] | None = None
    whole: bool = False

    @property
    def columns(self) -> int:
        return 1 if self.width is None else self.width


@dataclass(frozen=True, eq=False)
class Outputs:
    """What requests with the same optional outputs get from one model. Threads share it.

    Attributes
    ----------
    model, digest : name and digest of the model.
    direct : predicts the rows.
    fields : the parts of an answer, in their order.
    classes : labels of a classifier.
    target_names : names of the targets.
    """

    model: str
    digest: str
    direct: DirectPredictions
    fields: tuple[Field, ...]
    classes: tuple[Any, ...] | None
    target_names: tuple[str, ...]


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
    _outputs: dict[tuple[bool, bool], Outputs] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.model.column_names)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of the columns by name, in their order."""
        return {name: position for position, name in enumerate(self.columns)}

    @cached_property
    def raw(self) -> RawRows | None:
        """The reader of rows as the table of the fit had them; None where all its columns were numbers."""
        config = self.model.record.table_schema
        if config is None:
            return None
        return RawRows(Schema.from_config(config, "the schema of the model").of_features())

    @cached_property
    def known_columns(self) -> KnownColumns:
        """Names of the columns, and whether the model was fitted with names."""
        return self.model.known_columns

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        labels = self.model.classes
        return None if labels is None else tuple(labels.tolist())

    @cached_property
    def standing(self) -> Standing | None:
        """The score on held-out rows; None for a model without."""
        found = standing(self.model)
        return found if isinstance(found, Standing) else None

    @property
    def has_std(self) -> bool:
        """Whether it predicts standard deviations."""
        kind = predictor_of(self.model)
        return kind is not None and kind.std

    @property
    def has_probabilities(self) -> bool:
        return self.model.has_probabilities

    def outputs(self, *, std: bool = False, probabilities: bool = False) -> Outputs:
        """The predictions, with these optional outputs.

        Raises
        ------
        ParameterError
            The model does not have one of the outputs.
        """
        found = self._outputs.get((std, probabilities))
        if found is None:
            found = self._outputs[std, probabilities] = self._new_outputs(std, probabilities)
        return found

    def _new_outputs(self, std: bool, probabilities: bool) -> Outputs:
        record = self.model.record
        for wanted, has, what in (
            (std, self.has_std, "standard deviations"),
            (probabilities, self.has_probabilities, "probabilities"),
        ):
            if wanted and not has:
                raise ParameterError(f"{self.name} is a {record.estimator} model, which has no {what}")
        # A classifier always computes its probabilities with its labels.
        direct = DirectPredictions(self.model, self.model.outputs(std=std))
        columns = direct.work.columns
        width, dtype = columns["prediction"]
        fields = [Field("prediction", "prediction", width, self.classes, whole=dtype.kind in "iu")]
        if "decision" in columns:
            fields.append(Field("decision", "decision", columns["decision"][0]))
        if std:
            fields.append(Field("std", "std", columns["std"][0]))
        if probabilities:
            fields.append(Field("probabilities", "probability", columns["probability"][0]))
        return Outputs(self.name, self.digest, direct, tuple(fields), self.classes, tuple(record.target_names))

    @property
    def example(self) -> Float:
        """An example row (p,): the first of the basis, in the units of the rows."""
        points = self.model.points[:1]
        if self.model.sparse:
            points = as_csr(points, len(self.columns)).toarray()
        return points[0].astype(np.float64) if len(points) else np.zeros(len(self.columns))

    def warm(self) -> None:
        """Predict once, so that no request waits for compilation and first allocations."""
        example = self.example[None, :]
        for outputs in (self.outputs(), self.outputs(std=self.has_std, probabilities=self.has_probabilities)):
            direct = outputs.direct
            for row in (example, example.astype(np.float32)):
                direct.each_alone(direct.prepared(row))


def load(path: Path | str, name: str, generation: int) -> LoadedModel:
    """Load the model at a path or URL, verified to the last byte and ready to predict.

    Raises
    ------
    StoreError
        There is no model, it is damaged, or the path holds something else.
    """
    model = predicting_class(bundle_kind(path), name).load(path)
    served = LoadedModel(name, model, generation, model.digest)
    served.warm()
    return served
