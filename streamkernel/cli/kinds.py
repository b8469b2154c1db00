"""What lies at a path: a table, a model, a transformer or a factor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamkernel.blobs import joined
from streamkernel.errors import ModelFormatError, StreamKernelError
from streamkernel.estimators import RidgeModel
from streamkernel.estimators.gaussian_model import GaussianModel
from streamkernel.estimators.generalised_model import GeneralisedModel
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.estimators.kernel_cca_model import KernelCCAModel
from streamkernel.estimators.pursuit_model import PursuitModel
from streamkernel.estimators.transformers import KernelPCAModel, NystroemModel, TransformerModel
from streamkernel.estimators.updatable import Updatable
from streamkernel.factors import BASIS, ROWS, Factor
from streamkernel.factors.factor import entries_of
from streamkernel.store import bundle_kind

__all__ = [
    "MODELS",
    "TRANSFORMERS",
    "UPDATABLE",
    "fields_of",
    "is_factor",
    "kind_of",
    "predicting_model",
    "updatable_model",
]

MODELS: dict[str, type[PredictingModel]] = {
    model.KIND: model for model in (RidgeModel, GaussianModel, GeneralisedModel, PursuitModel)
}
UPDATABLE: tuple[type[Updatable[Any]], ...] = (RidgeModel, GaussianModel)
TRANSFORMERS: dict[str, type[TransformerModel]] = {
    model.KIND: model for model in (NystroemModel, KernelPCAModel, KernelCCAModel)
}

# What each kind is, and what serves whoever wanted predictions of it.
_OTHERS = {
    Factor.KIND: ("a factor", "make a model with streamkernel fit"),
    NystroemModel.KIND: ("a Nystroem transformer", "Nystroem.load transforms rows, from Python"),
    KernelPCAModel.KIND: ("a kernel PCA", "KernelPCA.load transforms rows, from Python"),
    KernelCCAModel.KIND: ("a kernel CCA", "KernelCCA.load transforms rows, from Python"),
}


@contextmanager
def fields_of(*paths: str) -> Iterator[None]:
    """Around what takes fields of something saved: whole to its digests, it may yet say what none of ours says.

    Raises
    ------
    ModelFormatError
        A field is missing or is not what it should be.
    """
    try:
        yield
    except StreamKernelError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFormatError(
            f"{', '.join(paths)}: a field is missing or is not what it should be ({error!r:.200}); make it again "
            "(--debug shows which)"
        ) from error


def is_factor(path: str) -> bool:
    """Whether a factor is there, be it one that is not whole: then loading it says how to go on."""
    # First what is there: of a place that fails an error then names the path, and no part that it may not have. Some
    # places cannot list.
    entries = entries_of(path)
    if (BASIS in entries or not entries) and bundle_kind(joined(path, BASIS)) == Factor.KIND:
        return True
    names = {name.lstrip(".").partition(".")[0] for name in entries}
    return bool(names) and names <= {BASIS, ROWS}


def kind_of(path: str) -> str | None:
    """The kind of what was saved at a path; None for a table, for what is not ours, and for nothing at all.

    Raises
    ------
    ModelFormatError
        The path is that of a factor's part.
    """
    if is_factor(path):
        return Factor.KIND
    kind = bundle_kind(path)
    if kind == Factor.KIND:
        raise ModelFormatError(f"{path} is the basis of a factor; give the path of the factor, the folder it is in")
    return kind


def updatable_model(path: str | Path) -> Updatable[Any]:
    """The model at a path, which is to be updated.

    Raises
    ------
    StoreError
        Something else is there, or nothing; or a model of a kind that cannot be updated.
    """
    model: Any = predicting_model(str(path))
    if not isinstance(model, UPDATABLE):
        raise ModelFormatError(f"{path} is a {model.config['estimator']} model, which cannot be updated; fit it again")
    updatable: Updatable[Any] = model
    return updatable


def predicting_model(path: str) -> PredictingModel:
    """The model at a path, which is to predict.

    Raises
    ------
    StoreError
        Something else is there, or nothing; see `SavedModel.load`.
    """
    kind = kind_of(path)
    if kind in _OTHERS:
        what, remedy = _OTHERS[kind]
        raise ModelFormatError(f"{path} is {what}, not a model that predicts; {remedy}")
    return MODELS.get(kind or "", RidgeModel).load(path)
