"""What lies at a path: a table, a model, a transformer or a factor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamkernel.blobs import joined
from streamkernel.errors import ModelFormatError, StreamKernelError
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.estimators.kinds import predicting_class, updatable
from streamkernel.estimators.updatable import Updatable
from streamkernel.factors import BASIS, ROWS, Factor
from streamkernel.factors.factor import entries_of
from streamkernel.store import bundle_kind

__all__ = ["fields_of", "is_factor", "kind_of", "predicting_model", "updatable_model"]


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
    return updatable(predicting_model(str(path)), path)


def predicting_model(path: str) -> PredictingModel:
    """The model at a path, which is to predict.

    Raises
    ------
    StoreError
        Something else is there, or nothing; see `SavedModel.load`.
    """
    return predicting_class(kind_of(path), path).load(path)
