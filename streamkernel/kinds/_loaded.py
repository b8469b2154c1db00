"""The kind of a saved model or factor: the class that loads it, its name, and whether it can be updated."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from streamkernel.errors import ModelFormatError
from streamkernel.factors import Factor
from streamkernel.kinds._kind import Predictor
from streamkernel.kinds._registry import KINDS, PREDICTORS, TRANSFORMERS
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.models.updatable import UpdatableModel
from streamkernel.wording import call

if TYPE_CHECKING:
    from streamkernel.models.transformers import TransformerModel

# Several predictors may share a class of models, and so what is stored as its kind.
_PREDICTING = {kind.stored: kind for kind in PREDICTORS.values()}


def kind_of_class(name: str) -> str:
    """The name of the kind whose estimator's class has this name; an unknown name, of another release, itself."""
    return next((kind.name for kind in KINDS.values() if kind.class_name == name), name)


def predictor_of(model: SavedModel) -> Predictor | None:
    """The kind of a model that predicts; None for a name that this release does not know."""
    return PREDICTORS.get(model.record.estimator)


def title_of(model: SavedModel) -> str:
    """The title of a model's kind; a name that this release does not know stands for itself."""
    kind = predictor_of(model)
    return model.record.estimator if kind is None else kind.title


def transformer_class(stored: str | None) -> type[TransformerModel] | None:
    """The class that loads a transformer of a stored kind; None if that is no transformer's."""
    return next((kind.model for kind in TRANSFORMERS.values() if stored == kind.stored), None)


def predicting_class(stored: str | None, where: str) -> type[PredictingModel]:
    """The class that loads a model that predicts.

    Parameters
    ----------
    stored : the kind that is stored at `where`; None, or an unknown one, is left to `KernelRidge`'s model to refuse.
    where : its path or name, for the message.

    Raises
    ------
    ModelFormatError
        The kind does not predict.
    """
    if stored == Factor.KIND:
        raise ModelFormatError(f"{where} is a factor, not a model that predicts; make a model with {call('fit')}")
    for kind in TRANSFORMERS.values():
        if stored == kind.stored:
            raise ModelFormatError(
                f"{where} is a {kind.title}, not a model that predicts; {call('transform')} is for it"
            )
    return _PREDICTING.get(stored or "", PREDICTORS["ridge"]).model


def transforming_class(stored: str | None, where: str) -> type[TransformerModel]:
    """The class that loads a transformer; parameters are those of `predicting_class`.

    Raises
    ------
    ModelFormatError
        The object at `where` is no transformer.
    """
    found = transformer_class(stored)
    if found is not None:
        return found
    if stored == Factor.KIND:
        raise ModelFormatError(f"{where} is a factor, not a transformer; make one with {call('fit', 'estimator')}")
    if stored in _PREDICTING:
        raise ModelFormatError(f"{where} is a model that predicts, not a transformer; {call('predict')} is for it")
    # Its loader tells what is wrong with the path.
    return TRANSFORMERS["nystroem"].model


def updatable(model: PredictingModel, where: str | PathLike[str]) -> UpdatableModel:
    """The same model, as one into which new rows can be folded.

    Raises
    ------
    ModelFormatError
        Its kind cannot be updated.
    """
    kind = predictor_of(model)
    if kind is None or not kind.updates or not isinstance(model, UpdatableModel):
        able = ", ".join(each.name for each in PREDICTORS.values() if each.updates)
        name = model.record.estimator
        raise ModelFormatError(f"{where} is a {name} model, which cannot be updated (these can: {able}); fit it again")
    return model
