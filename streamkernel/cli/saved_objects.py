"""The saved object at a path: its kind (a table, a model, a transformer or a factor), and what it carries."""

from __future__ import annotations

from pathlib import Path

from streamkernel.blobs import joined
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.factors import BASIS, Factor
from streamkernel.factors.factor import entries_of
from streamkernel.kinds import predicting_class, transformer_class, transforming_class, updatable
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.transformers import TransformerModel
from streamkernel.models.updatable import UpdatableModel
from streamkernel.outputs import is_of_factor
from streamkernel.store import bundle_kind
from streamkernel.table import open_table
from streamkernel.table.schema import Schema
from streamkernel.table.synthetic import is_synthetic


def is_factor(path: str) -> bool:
    """Whether a factor is at the path, complete or not; loading an incomplete one raises an error with the remedy."""
    # List the path first: an error of the store then names the path, and not a part that may not exist. Some stores
    # cannot list.
    entries = entries_of(path)
    if (BASIS in entries or not entries) and bundle_kind(joined(path, BASIS)) == Factor.KIND:
        return True
    return bool(entries) and all(map(is_of_factor, entries))


def kind_of(path: str) -> str | None:
    """The kind of the saved object at a path; None for a table, for a foreign object, and where nothing is.

    Raises
    ------
    ModelFormatError
        The path leads to a part of a factor.
    """
    if is_synthetic(path):
        return None
    if is_factor(path):
        return Factor.KIND
    kind = bundle_kind(path)
    if kind == Factor.KIND:
        raise ModelFormatError(f"{path} is the basis of a factor; give the path of the factor, the folder it is in")
    return kind


def updatable_model(path: str | Path) -> UpdatableModel:
    """Load the model at a path for an update.

    Raises
    ------
    StoreError
        There is no model at the path, or one of a kind that cannot be updated.
    """
    return updatable(predicting_model(str(path)), path)


def predicting_model(path: str) -> PredictingModel:
    """Load the model at a path for predictions.

    Raises
    ------
    StoreError
        There is no model at the path; see `SavedModel.load`.
    """
    return predicting_class(kind_of(path), path).load(path)


def transformer_model(path: str) -> TransformerModel:
    """Load the transformer at a path.

    Raises
    ------
    StoreError
        There is none at the path; see `SavedModel.load`.
    """
    return transforming_class(kind_of(path), path).load(path)


def saved_schema(path: str) -> Schema:
    """The schema of the rows of a table, or of the rows that a model or a transformer was fitted to.

    Raises
    ------
    ParameterError
        They had numbers only, and no schema.
    StoreError
        There is nothing at the path that has one.
    """
    kind = kind_of(path)
    if kind is None:
        config = open_table(path, sparse=True).schema
    elif transformer := transformer_class(kind):
        config = transformer.load(path).record.table_schema
    else:
        config = predicting_model(path).record.table_schema
    if config is None:
        raise ParameterError(
            f"{path} was made of rows of numbers and has no schema; leave --schema out where all columns are numbers, "
            "or give a file or auto"
        )
    return Schema.from_config(config, f"the schema of {path}")
